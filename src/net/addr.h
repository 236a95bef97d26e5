/* addr.h - the parser of address text, and the sockaddr inside a weft_addr.
 *
 * Addresses from the kernel pass through weft__addr_from() or weft__addr_settle(), so that
 * equal addresses are equal bytes: unused bytes are zero, a Unix path ends with one NUL that
 * counts, and an IPv4-mapped IPv6 address (a peer, as a dual-stack socket sees it) becomes
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
	const char *path;      /* Unix, with the '@' of an abstract name; or NULL */
	size_t      path_size; /* 0: a socket without a name */
	int         fd;        /* of fd:N, else -1 */
	bool        is_literal; /* `addr` is filled; else the host is a name, or this is fd:N */
	weft_addr   addr;
};

/* Parse an address.  Returns 0 and fills `out`, which points into `text`; or WEFT_EINVAL, and
 * the error text names the position. */
int weft__addr_split(const char *text, struct weft__addr_parts *out);

static inline const struct sockaddr *
weft__addr_sockaddr(const weft_addr *addr)
{
	return (const struct sockaddr *)(const void *)addr->bytes;
}

/* AF_INET, ..., or AF_UNSPEC if `addr` holds no address. */
int weft__addr_family(const weft_addr *addr);

/* Get and set the port.  An address without a port has 0, and is not changed. */
uint16_t weft__addr_port(const weft_addr *addr);
void     weft__addr_set_port(weft_addr *addr, uint16_t port);

/* Normalize an address as described above.  The kernel has written `size` bytes into it, or
 * would have if there were room.  Its `kind` is set already. */
void weft__addr_settle(weft_addr *addr, socklen_t size);

/* Fill `out` from a sockaddr that the kernel has returned. */
void weft__addr_from(const struct sockaddr *from, socklen_t size, uint32_t kind,
                     weft_addr *out);

/* Every IPv4 address, on `port`: the meaning of an empty host where there is no IPv6. */
void weft__addr_any4(uint16_t port, uint32_t kind, weft_addr *out);

/* Make an IPv4 address IPv4-mapped, for an IPv6 socket; others stay unchanged. */
void weft__addr_map(weft_addr *addr);

#endif
