/* dns_wire.h - reads replies of servers before c-ares reads them.
 *
 * Needs: nothing.  Thread: any.
 */
#ifndef WEFT_NET_DNS_WIRE_H
#define WEFT_NET_DNS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long a negative answer, no such name or record, may be cached (RFC 2308).  Returns
 * seconds, or -1 if the message is no negative answer, or does not give the time. */
int64_t weft__dns_negative_ttl(const void *message, size_t size);

#define WEFT__DNS_QUESTION_MAX 256u

/* Whether a reply is incomplete, or has an invalid record.  If so, fills `name` with the
 * queried name, in lower case.  False also for a message that is not a reply to one question,
 * and for a reply that is marked as truncated. */
bool weft__dns_is_malformed(const void *message, size_t size,
                            char name[WEFT__DNS_QUESTION_MAX]);

#endif
