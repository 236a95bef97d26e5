/* ip.h - IPv4 and IPv6 addresses as text, without ports.
 *
 * Strict: every address has one text that is written, and what is read leaves no doubt.
 * Four decimal numbers without leading zeros, since some take those for octal; eight
 * groups of up to four hexadecimal digits, of which "::" stands for one or more zeroes,
 * and the last two may be an IPv4 address.  Written is what RFC 5952 wants.
 *
 * Needs: nothing.  Thread: any.
 */
#ifndef WEFT_NET_IP_H
#define WEFT_NET_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/text.h"

/* Read all of `text`; false, and `out` is as it was. */
bool weft__ip4_read(const char *text, size_t size, uint8_t out[4]);
bool weft__ip6_read(const char *text, size_t size, uint8_t out[16]);

void weft__ip4_write(struct weft__text *text, const uint8_t ip[4]);
void weft__ip6_write(struct weft__text *text, const uint8_t ip[16]);

/* An IPv4 address in the clothes of IPv6: ::ffff:1.2.3.4. */
bool weft__ip6_is_mapped(const uint8_t ip[16]);

/* A decimal number up to `max`, without leading zeros. */
bool weft__digits_read(const char *text, size_t size, uint32_t max, uint32_t *out);

#endif
