/* ip.h - IPv4 and IPv6 addresses as text, without ports.
 *
 * Strict: every address is written in one form, and only unambiguous text is read.  IPv4 is
 * four decimal numbers without leading zeros, because some programs read those as octal.  IPv6
 * is eight groups of up to four hexadecimal digits; "::" replaces one or more zero groups, and
 * the last two groups may be an IPv4 address.  Text is written as RFC 5952 specifies.
 *
 * Needs: nothing.  Thread: any.
 */
#ifndef WEFT_NET_IP_H
#define WEFT_NET_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/text.h"

/* Parse all of `text`.  On failure returns false and leaves `out` unchanged. */
bool weft__ip4_read(const char *text, size_t size, uint8_t out[4]);
bool weft__ip6_read(const char *text, size_t size, uint8_t out[16]);

void weft__ip4_write(struct weft__text *text, const uint8_t ip[4]);
void weft__ip6_write(struct weft__text *text, const uint8_t ip[16]);

/* Whether `ip` is an IPv4-mapped address: ::ffff:1.2.3.4. */
bool weft__ip6_is_mapped(const uint8_t ip[16]);

/* Parse a decimal number up to `max`, without leading zeros. */
bool weft__digits_read(const char *text, size_t size, uint32_t max, uint32_t *out);

#endif
