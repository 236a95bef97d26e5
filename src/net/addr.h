/* addr.h - the one reader of address text, and sockaddrs inside of weft_addr.
 *
 * Addresses that come from the kernel are made by weft__addr_from(), so that equal ones
 * are equal bytes: what lies behind them is zero, Unix paths end with one NUL that
 * counts, and IPv4 in the clothes of IPv6 (a peer, as a socket for both sees it) is
 * plain IPv4.
 *
 * Needs: base.  Thread: any.
 */
#ifndef WEFT_NET_ADDR_H
#define WEFT_NET_ADDR_H

#include <sys/socket.h>
#include <weft/addr.h>

enum weft__addr_scheme {
	WEFT__ADDR_TCP,
	WEFT__ADDR_TLS,
	WEFT__ADDR_UDP,
	WEFT__ADDR_UNIX,
	WEFT__ADDR_UNIXDGRAM,
	WEFT__ADDR_FD,
};

struct weft__addr_parts {
	enum weft__addr_scheme scheme;
	const char *host;      /* in the text, without brackets and scope; or NULL */
	size_t      host_size; /* 0: every interface */
	uint16_t    port;
	const char *path;      /* of Unix, with the '@' of abstract ones; or NULL */
	size_t      path_size; /* 0: without a name */
	int         fd;        /* of fd:N, else -1 */
	bool        is_literal; /* `addr` is filled; else the host is a name, or it is fd:N */
	weft_addr   addr;
};

/* Take an address apart.  0 and fills `out`, which points into `text`; WEFT_EINVAL, and
 * the text of the error says where it is wrong. */
int weft__addr_split(const char *text, struct weft__addr_parts *out);

static inline const struct sockaddr *
weft__addr_sockaddr(const weft_addr *addr)
{
	return (const struct sockaddr *)(const void *)addr->bytes;
}

/* AF_INET, ..., or AF_UNSPEC if there is no address in it. */
int weft__addr_family(const weft_addr *addr);

/* Its port, and itself with another one; 0 and no change if it has none. */
uint16_t weft__addr_port(const weft_addr *addr);
void     weft__addr_set_port(weft_addr *addr, uint16_t port);

/* The kernel has written so many bytes into it, or would have: make it as said above.
 * Its kind is there. */
void weft__addr_settle(weft_addr *addr, socklen_t size);

/* Fill `out` from what the kernel gave elsewhere. */
void weft__addr_from(const struct sockaddr *from, socklen_t size, uint32_t kind,
                     weft_addr *out);

/* All of IPv4 on `port`: what an empty host is where there is no IPv6. */
void weft__addr_any4(uint16_t port, uint32_t kind, weft_addr *out);

/* An IPv4 address for an IPv6 socket; others stay. */
void weft__addr_map(weft_addr *addr);

#endif
