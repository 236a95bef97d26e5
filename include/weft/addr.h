/* weft/addr.h - network addresses as values, and their text.
 *
 * Text forms, the same in every call: tcp://host:port, tls://host:port,
 * udp://host:port, unix:/path, unix:@abstract, unixdgram:/path, fd:N.  IPv6 in
 * brackets, of a link with its scope: [fe80::1%eth0]; port 0 lets the system choose;
 * an empty host means every interface, of IPv6 and IPv4.
 */
#ifndef WEFT_ADDR_H
#define WEFT_ADDR_H

#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_addr { /* zeroed: no address */
	uint32_t size;        /* of the sockaddr in `bytes` */
	uint32_t kind;        /* SOCK_STREAM, SOCK_DGRAM */
	uint8_t  bytes[120];  /* a struct sockaddr_* */
} weft_addr;

#define WEFT_ADDR_TEXT_MAX 160

/* Read an address with a literal host; names need weft_dns_resolve().
 * Returns 0 and fills `out`, WEFT_EINVAL (weft_detail() tells where).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_addr_parse(const char *text, weft_addr *out);

/* Write an address as text that weft_addr_parse() reads; scopes as numbers.
 * Returns the length, WEFT_EMSGSIZE if `max` is too small, WEFT_EINVAL if it is none or
 * has no text: an abstract name with a zero byte.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_addr_format(const weft_addr *addr, char *out, size_t max);

/* Copy the text of an address or URL to `out`, of `max` bytes with the NUL, in a form that may
 * be shown and logged: user and password before an "@", and what is behind a "?", are
 * replaced by "***".  The text need not be well-formed.
 * Returns `out`.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API const char *weft_addr_mask(const char *text, char *out, size_t max);

/* Whether two addresses are the same, ports included.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API bool weft_addr_equal(const weft_addr *a, const weft_addr *b);

/* Whether an address is of this machine alone: of a Unix socket, or of the loopback, also as
 * IPv6 writes IPv4.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API bool weft_addr_is_local(const weft_addr *addr);

typedef struct weft_interface {
	char      name[16];
	uint32_t  index;
	uint32_t  flags;      /* IFF_* */
	weft_addr addr;
	uint32_t  prefix_bits;
} weft_interface;

/* List the machine's interfaces, one entry for each address.
 * Returns their number, which may exceed `max`; fills the first `max`.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_addr_interfaces(weft_interface *out, size_t max);

WEFT_END
#endif
