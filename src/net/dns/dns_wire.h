/* dns_wire.h - what is read from answers of servers before c-ares reads them.
 *
 * Needs: nothing.  Thread: any.
 */
#ifndef WEFT_NET_DNS_WIRE_H
#define WEFT_NET_DNS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long it may be kept that there is no such name or record (RFC 2308): in seconds,
 * or -1 if the message says something else, or does not say. */
int64_t weft__dns_negative_ttl(const void *message, size_t size);

#define WEFT__DNS_QUESTION_MAX 256u

/* Whether an answer is cut, or has a record that cannot be one.  If so, fills `name` with the
 * name that it was asked for, in small letters.  False also for what is no answer to one
 * question, and for an answer that says that it is cut. */
bool weft__dns_is_malformed(const void *message, size_t size,
                            char name[WEFT__DNS_QUESTION_MAX]);

#endif
