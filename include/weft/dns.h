/* weft/dns.h - name resolution, forward and reverse, without blocking a loop.
 *
 * The resolver uses the hosts file, the search list and resolv.conf, and reads these files again
 * after a minute.  Each loop caches answers for their TTL, at least one second and at most one
 * hour, up to 1,024 names.  Concurrent queries for the same name share one answer.  Names below
 * "localhost" resolve to this host without a query.  Pass internationalized names in their ASCII
 * form (xn--...).  weft_stream_connect() resolves names itself.  Only threadlets may call the
 * functions below, also with WEFT_NOWAIT.
 *
 * With c-ares the library queries servers on the loop's own descriptors.  A build without
 * c-ares calls the system's resolver in the blocking pool (WEFT_BLOCKING); a loop that stops
 * then waits for those calls to return.
 */
#ifndef WEFT_DNS_H
#define WEFT_DNS_H

#include <weft/addr.h>
#include <weft/base.h>
#include <weft/op.h>

WEFT_BEGIN

/* Find the addresses for `address` ("tcp://example.org:443"), in the order of RFC 6724 with
 * alternating families; unreachable addresses come last.  IP addresses and Unix paths resolve to
 * themselves.
 * Returns the number of addresses, at most `max`; WEFT_ENONAME; WEFT_EAGAIN if no server could
 * answer or 10,000 names are queued; WEFT_EPROTO if the answer is malformed; WEFT_ENOMEM,
 * WEFT_EINVAL.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_dns_resolve(const char *address, weft_addr *out, size_t max,
                              uint64_t deadline_ns);

/* Find the host name of `addr`.
 * Returns its length; WEFT_EMSGSIZE if the name and its NUL need more than `max` bytes; errors as
 * weft_dns_resolve().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_dns_reverse(const weft_addr *addr, char *out, size_t max,
                              uint64_t deadline_ns);

WEFT_END
#endif
