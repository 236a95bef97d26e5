/* weft/addr.h - network addresses: parse, format, compare.
 *
 * All calls use the same text forms: tcp://host:port, tls://host:port, udp://host:port,
 * unix:/path, unix:@abstract, unixdgram:/path, fd:N.  IPv6 addresses are in brackets,
 * link-local ones with their scope: [fe80::1%eth0].  With port 0 the system chooses a port.  An
 * empty host means every interface, of IPv6 and IPv4.
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

/* Parse an address whose host is an IP address, or a Unix address; for host names use
 * weft_dns_resolve().  fd:N is refused, because it names no address.
 * Returns 0 and fills `out`; WEFT_EINVAL, and weft_detail() says which part is wrong.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_addr_parse(const char *text, weft_addr *out);

/* Format an address as text that weft_addr_parse() accepts.  The scope of an IPv6 address is
 * written as a number.
 * Returns the length; WEFT_EMSGSIZE if `max` is too small; WEFT_EINVAL if `addr` holds no
 * address, or one without a text form: an abstract name that is empty or contains a zero byte,
 * or a Unix path that begins with "@".
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_addr_format(const weft_addr *addr, char *out, size_t max);

/* Copy the text of an address or URL to `out`, of `max` bytes with the NUL, for display and
 * logs.  User and password before an "@", and the query of a URL after its "?", are replaced by
 * "***".
 * The text need not be well-formed.
 * Returns `out`.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API const char *weft_addr_mask(const char *text, char *out, size_t max);

/* Check whether two addresses are equal, their ports and kinds included.
 * Returns true if they are.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API bool weft_addr_equal(const weft_addr *a, const weft_addr *b);

/* Check whether only this machine can use an address: a Unix socket or a loopback address,
 * including an IPv4 loopback address that is mapped to IPv6.
 * Returns true if it is.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API bool weft_addr_is_local(const weft_addr *addr);

WEFT_END
#endif
