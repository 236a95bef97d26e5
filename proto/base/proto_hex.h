/* proto_hex.h - hexadecimal digits, and percent-coding.  Private to proto/ and bindings/. */
#ifndef WEFT_PROTO_HEX_H
#define WEFT_PROTO_HEX_H

#include <stddef.h>

/* The value of a hexadecimal digit; -1 for another byte. */
static inline int
weft__hex_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	digit |= 0x20;
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* The byte that two hexadecimal digits mean; -1 for others. */
static inline int
weft__hex_byte(const char *digits)
{
	int high = weft__hex_value(digits[0]), low = high < 0 ? -1 : weft__hex_value(digits[1]);

	return low < 0 ? -1 : high << 4 | low;
}

/* Decode the byte at *at and move *at behind it.  Returns the byte; -1 for a "%" without two
 * hexadecimal digits. */
static inline int
weft__percent_next(const char **at, const char *end)
{
	const char *x = *at;

	if (*x != '%') {
		*at = x + 1;
		return (unsigned char)*x;
	}
	*at = x + 3;
	return end - x < 3 ? -1 : weft__hex_byte(x + 1);
}

#endif
