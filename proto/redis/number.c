/* number.c - parse integers and decimal numbers as Redis writes them.
 *
 * A decimal number is split into digits and an exponent.  Nearly all are so short that one
 * multiplication or division of two exact doubles gives the nearest double.  The others go to
 * strtod(), written without a decimal point, since the locale may use another character.
 */
#include <stdio.h>
#include <stdlib.h>
#include "resp.h"

#define DIGITS_MAX   800        /* further digits affect rounding only by not being 0 */
#define EXPONENT_MAX 1000000000 /* beyond every double, whatever the digits */

static bool
is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/* Up to 19 digits fit in `number`; the result may still exceed int64_t. */
bool
weft__resp_integer(const char *text, size_t size, int64_t *out)
{
	bool negative = size > 0 && text[0] == '-';
	size_t at = negative;
	uint64_t number = 0;

	if (size - at - 1 > 18 || (text[at] == '0' && size > 1))
		return false;
	for (; at < size; at++) {
		if (!is_digit(text[at]))
			return false;
		number = number * 10 + (uint64_t)(text[at] - '0');
	}
	if (number > (uint64_t)INT64_MAX + negative)
		return false;
	if (out)
		*out = negative ? (int64_t)-number : (int64_t)number;
	return true;
}

/* --- decimal numbers ------------------------------------------------------- */

struct decimal {
	char digits[DIGITS_MAX + 32]; /* without leading zeros */
	size_t count;
	int64_t exponent; /* power of ten of the last digit */
	bool negative;
	bool more; /* digits other than 0 were left out */
};

static size_t
skip_digits(const char *text, size_t at, size_t size)
{
	while (at < size && is_digit(text[at]))
		at++;
	return at;
}

static void
keep_digits(struct decimal *d, const char *text, size_t from, size_t to)
{
	for (; from < to; from++) {
		if (d->count == 0 && text[from] == '0')
			continue;
		if (d->count < DIGITS_MAX) {
			d->digits[d->count++] = text[from];
			continue;
		}
		d->exponent++;
		d->more |= text[from] != '0';
	}
}

/* Parse the exponent after an "e"; there is at least one byte.  Returns where it ends. */
static size_t
read_exponent(const char *text, size_t at, size_t size, int64_t *out)
{
	bool negative = text[at] == '-';
	int64_t number = 0;

	if (text[at] == '-' || text[at] == '+')
		at++;
	for (; at < size && is_digit(text[at]); at++)
		if (number < EXPONENT_MAX)
			number = number * 10 + (text[at] - '0');
	*out = negative ? -number : number;
	return at;
}

/* Split a text into digits and exponent.  False unless it is digits, optionally with a point
 * and more digits, optionally with an exponent. */
static bool
take_apart(struct decimal *d, const char *text, size_t size)
{
	size_t whole, point, at;
	int64_t exponent = 0;

	d->count = 0;
	d->exponent = 0;
	d->more = false;
	d->negative = size > 0 && text[0] == '-';
	whole = d->negative;
	at = point = skip_digits(text, whole, size);
	if (point == whole || (text[whole] == '0' && point > whole + 1))
		return false;
	keep_digits(d, text, whole, point);
	if (at < size && text[at] == '.') {
		at = skip_digits(text, point + 1, size);
		if (at == point + 1)
			return false;
		keep_digits(d, text, point + 1, at);
		d->exponent -= (int64_t)(at - point - 1);
	}
	if (at < size && (text[at] | 0x20) == 'e') {
		if (at + 1 == size || !is_digit(text[size - 1]))
			return false;
		at = read_exponent(text, at + 1, size, &exponent);
		d->exponent += exponent;
	}
	return at == size;
}

static double
by_library(struct decimal *d)
{
	int64_t exponent = d->exponent;

	/* One more digit represents all that were left out. */
	if (d->more) {
		d->digits[d->count++] = '1';
		exponent--;
	}
	if (exponent > 99999 || exponent < -99999)
		exponent = exponent < 0 ? -99999 : 99999;
	(void)snprintf(d->digits + d->count, 16, "e%d", (int)exponent);
	return strtod(d->digits, NULL);
}

static double
value_of(struct decimal *d)
{
	static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
		                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
		                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	uint64_t number = 0;

	if (d->count == 0)
		return 0;
	if (d->count > 15 || d->exponent < -22 || d->exponent > 22)
		return by_library(d);
	for (size_t i = 0; i < d->count; i++)
		number = number * 10 + (uint64_t)(d->digits[i] - '0');
	return d->exponent < 0 ? (double)number / tens[-d->exponent]
	                       : (double)number * tens[d->exponent];
}

/* "inf" and "nan", which printf(3) may write with a sign. */
static bool
is_special(const char *text, size_t size, double *out)
{
	bool negative = size > 0 && text[0] == '-';
	bool infinite;

	if (size != 3u + negative)
		return false;
	infinite = memcmp(text + negative, "inf", 3) == 0;
	if (!infinite && memcmp(text + negative, "nan", 3) != 0)
		return false;
	*out = infinite ? __builtin_inf() : __builtin_nan("");
	*out = negative && infinite ? -*out : *out;
	return true;
}

bool
weft__resp_number(const char *text, size_t size, double *out)
{
	struct decimal d;
	double number;

	if (!is_special(text, size, &number)) {
		if (!take_apart(&d, text, size))
			return false;
		if (!out)
			return true;
		number = value_of(&d);
		number = d.negative ? -number : number;
	}
	if (out)
		*out = number;
	return true;
}
