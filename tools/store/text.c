/* text.c - byte strings, and numbers in them. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "text.h"

static size_t
size_of(size_t room)
{
	return sizeof(struct text) + room;
}

struct text *
text_new(struct heap *heap, struct word word)
{
	struct text *text = heap_take(heap, size_of(word.size));

	text->size = text->room = (uint32_t)word.size;
	memcpy(text->bytes, word.data, word.size);
	return text;
}

void
text_free(struct heap *heap, struct text *text)
{
	if (text)
		heap_give(heap, text, size_of(text->room));
}

struct text *
text_reserve(struct heap *heap, struct text *text, size_t size)
{
	size_t room = size < ((size_t)1 << 20) ? size * 2 : size + ((size_t)1 << 20);

	if (size <= text->room)
		return text;
	if (room > TEXT_MAX)
		room = size;
	text = heap_resize(heap, text, size_of(text->room), size_of(room));
	text->room = (uint32_t)room;
	return text;
}

int
word_order(struct word a, struct word b)
{
	size_t both = a.size < b.size ? a.size : b.size;
	int order = memcmp(a.data, b.data, both);

	return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* --- patterns --------------------------------------------------------------- */

/* Matches one class "[...]"; `*at` is after the bracket, and is moved after the class. */
static bool
is_in_class(struct word pattern, size_t *at, unsigned char c)
{
	const unsigned char *p = (const unsigned char *)pattern.data;
	bool negated = *at < pattern.size && p[*at] == '^', found = false;
	size_t i = *at + negated;

	for (; i < pattern.size && p[i] != ']'; i++) {
		unsigned char low = p[i], high;

		if (low == '\\' && i + 1 < pattern.size) {
			found |= p[++i] == c;
			continue;
		}
		high = low;
		if (i + 2 < pattern.size && p[i + 1] == '-') {
			high = p[i + 2];
			i += 2;
		}
		found |= low <= high ? c >= low && c <= high : c >= high && c <= low;
	}
	*at = i < pattern.size ? i + 1 : i;
	return found != negated;
}

/* Whether a byte matches the pattern element at `*at`, which is moved after it. */
static bool
byte_matches(struct word pattern, size_t *at, char c)
{
	char p = pattern.data[(*at)++];

	if (p == '?')
		return true;
	if (p == '[')
		return is_in_class(pattern, at, (unsigned char)c);
	if (p == '\\' && *at < pattern.size)
		p = pattern.data[(*at)++];
	return p == c;
}

/* Only the last star is retried, so the cost is at most the product of both sizes. */
bool
word_matches(struct word pattern, struct word word)
{
	size_t p = 0, w = 0, star = SIZE_MAX, resume = 0;

	while (w < word.size) {
		if (p < pattern.size && pattern.data[p] == '*') {
			star = ++p;
			resume = w;
			continue;
		}
		if (p < pattern.size && byte_matches(pattern, &p, word.data[w])) {
			w++;
			continue;
		}
		if (star == SIZE_MAX)
			return false;
		p = star;
		w = ++resume;
	}
	while (p < pattern.size && pattern.data[p] == '*')
		p++;
	return p == pattern.size;
}

/* --- integers --------------------------------------------------------------- */

bool
number_read(struct word word, int64_t *out)
{
	bool negative = word.size > 0 && word.data[0] == '-';
	size_t i = negative;
	uint64_t value = 0, most = (uint64_t)INT64_MAX + negative;

	if (word.size == 1 && word.data[0] == '0') {
		*out = 0;
		return true;
	}
	if (i == word.size || word.size - i > 19 || word.data[i] < '1')
		return false;
	for (; i < word.size; i++) {
		unsigned digit = (unsigned)(word.data[i] - '0');

		if (digit > 9)
			return false;
		value = value * 10 + digit; /* 19 digits cannot overflow */
	}
	if (value > most)
		return false;
	*out = (int64_t)(negative ? -value : value);
	return true;
}

size_t
number_write(char out[NUMBER_MAX], int64_t number)
{
	char digits[NUMBER_MAX];
	uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;
	size_t count = 0, size = 0;

	do {
		digits[count++] = (char)('0' + left % 10);
		left /= 10;
	} while (left > 0);
	if (number < 0)
		out[size++] = '-';
	while (count > 0)
		out[size++] = digits[--count];
	return size;
}

/* --- floating point --------------------------------------------------------- */

bool
real_read(struct word word, double *out)
{
	char text[512], *end;
	double real;

	if (word.size == 0 || word.size >= sizeof(text) || isspace((unsigned char)word.data[0]))
		return false;
	memcpy(text, word.data, word.size);
	text[word.size] = '\0';
	errno = 0;
	real = strtod(text, &end);
	if (end != text + word.size || isnan(real)
	    || (errno == ERANGE && (isinf(real) || real == 0)))
		return false;
	*out = real;
	return true;
}

bool
real_read_wide(struct word word, long double *out)
{
	char text[5 * 1024], *end;
	long double real;

	if (word.size == 0 || word.size >= sizeof(text) || isspace((unsigned char)word.data[0]))
		return false;
	memcpy(text, word.data, word.size);
	text[word.size] = '\0';
	errno = 0;
	real = strtold(text, &end);
	if (end != text + word.size || isnan(real)
	    || (errno == ERANGE && (isinf(real) || real == 0)))
		return false;
	*out = real;
	return true;
}

size_t
real_write(char out[REAL_MAX], double real)
{
	if (isinf(real))
		return (size_t)snprintf(out, REAL_MAX, "%s", real > 0 ? "inf" : "-inf");
	return (size_t)snprintf(out, REAL_MAX, "%.17g", real);
}

size_t
real_write_wide(char out[REAL_WIDE_MAX], long double real)
{
	size_t size = (size_t)snprintf(out, REAL_WIDE_MAX, "%.17Lf", real);

	if (memchr(out, '.', size)) {
		while (out[size - 1] == '0')
			size--;
		if (out[size - 1] == '.')
			size--;
	}
	if (size == 2 && memcmp(out, "-0", 2) == 0) {
		out[0] = '0';
		size = 1;
	}
	return size;
}
