/* dns_wire.h - what is read from answers of servers before c-ares reads them.
 *
 * Needs: nothing.  Thread: any.
 */
#ifndef WEFT_NET_DNS_WIRE_H
#define WEFT_NET_DNS_WIRE_H

#include <stddef.h>
#include <stdint.h>

/* How long it may be kept that there is no such name or record (RFC 2308): in seconds,
 * or -1 if the message says something else, or does not say. */
int64_t weft__dns_negative_ttl(const void *message, size_t size);

#endif
