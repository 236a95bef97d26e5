/* weft/dns.h - names to addresses and back, without blocking a loop.
 *
 * Honours hosts file, search list and resolv.conf.  Answers are kept by each loop for
 * their TTL, a second at least and an hour at most, 1,024 names in all; who asks for a
 * name that is being asked for waits for the same answer.  Names below "localhost" are
 * this host, and nobody is asked.  Names of other scripts are to be given in their ASCII
 * form (xn--...).  weft_stream_connect() does this by itself.
 *
 * The library is built with c-ares, which asks on the loop's own descriptors; or without,
 * then the system is asked on threads of WEFT_BLOCKING, and a loop that stops waits
 * for those calls to return.
 */
#ifndef WEFT_DNS_H
#define WEFT_DNS_H

#include <weft/addr.h>
#include <weft/base.h>
#include <weft/op.h>

WEFT_BEGIN

/* Find the addresses for `address` ("tcp://example.org:443"): best first by RFC 6724,
 * families in turn, what cannot be reached from here last.  Literal ones and Unix paths
 * are themselves.
 * Returns their number, at most `max`; WEFT_ENONAME, WEFT_EAGAIN if no server could
 * answer or 10,000 names wait to be asked for, WEFT_EPROTO if the answer makes no sense,
 * WEFT_ENOMEM, WEFT_EINVAL.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_dns_resolve(const char *address, weft_addr *out, size_t max,
                              uint64_t deadline_ns);

/* The same as an op, which finishes with the number; `out` belongs to it until
 * then.
 * Returns as every start (weft/op.h); WEFT_EAGAIN if 10,000 names wait.
 * Thread: loop of `op`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dns_resolve_op(const char *address, weft_addr *out, size_t max,
                                 weft_op *op, uint64_t deadline_ns);

/* Find the host name of `addr`.
 * Returns its length, WEFT_EMSGSIZE if it does not fit `max` with its NUL, and errors as
 * weft_dns_resolve().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_dns_reverse(const weft_addr *addr, char *out, size_t max,
                              uint64_t deadline_ns);

/* Forget this loop's cached answers and read the configuration again.  What is being
 * asked for is asked for anew, or told and not kept.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_dns_reset(void);

WEFT_END
#endif
