/* store_bytes.c - counted memory, byte strings, and numbers as text. */
#include "store/data/store_bytes.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/base.h>

/* --- memory ----------------------------------------------------------------- */

struct block {
	size_t size;
	_Alignas(max_align_t) char bytes[];
};

static struct block *
block_of(void *bytes)
{
	return (struct block *)(void *)((char *)bytes - offsetof(struct block, bytes));
}

void *
memory_alloc(struct memory *memory, size_t size)
{
	struct block *block = weft_alloc(sizeof(*block) + size);

	if (!block) {
		fprintf(stderr, "store: out of memory: cannot allocate %zu bytes\n", size);
		abort();
	}
	block->size = size;
	memory->used += size;
	if (memory->used > memory->peak)
		memory->peak = memory->used;
	return memset(block->bytes, 0, size);
}

void *
memory_resize(struct memory *memory, void *bytes, size_t size)
{
	void *other = memory_alloc(memory, size);

	if (bytes) {
		size_t old = block_of(bytes)->size;

		memcpy(other, bytes, old < size ? old : size);
		memory_free(memory, bytes);
	}
	return other;
}

void
memory_free(struct memory *memory, void *bytes)
{
	if (!bytes)
		return;
	memory->used -= block_of(bytes)->size;
	weft_release(block_of(bytes));
}

/* xorshift64* */
uint64_t
memory_random(struct memory *memory)
{
	memory->random ^= memory->random >> 12;
	memory->random ^= memory->random << 25;
	memory->random ^= memory->random >> 27;
	return memory->random * UINT64_C(0x2545f4914f6cdd1d);
}

/* --- byte strings ----------------------------------------------------------- */

struct string *
string_new(struct memory *memory, struct slice slice)
{
	struct string *string = memory_alloc(memory, sizeof(*string) + slice.size);

	string->size = slice.size;
	memcpy(string->bytes, slice.data, slice.size);
	return string;
}

int
slice_order(struct slice a, struct slice b)
{
	size_t both = a.size < b.size ? a.size : b.size;
	int order = memcmp(a.data, b.data, both);

	return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* --- patterns --------------------------------------------------------------- */

/* Matches one class "[...]"; `*at` is after the bracket, and is moved after the class. */
static bool
class_matches(struct slice pattern, size_t *at, unsigned char c)
{
	const unsigned char *p = (const unsigned char *)pattern.data;
	bool negated = *at < pattern.size && p[*at] == '^', found = false;

	for (*at += negated; *at < pattern.size && p[*at] != ']'; ++*at) {
		unsigned char low, high;

		if (p[*at] == '\\' && *at + 1 < pattern.size)
			++*at;
		low = high = p[*at];
		if (*at + 2 < pattern.size && p[*at + 1] == '-') {
			high = p[*at + 2];
			*at += 2;
		}
		found |= (c >= low && c <= high) || (c >= high && c <= low);
	}
	*at += *at < pattern.size;
	return found != negated;
}

/* Whether a byte matches the pattern element at `*at`, which is moved after it. */
static bool
byte_matches(struct slice pattern, size_t *at, char c)
{
	char p = pattern.data[(*at)++];

	if (p == '?')
		return true;
	if (p == '[')
		return class_matches(pattern, at, (unsigned char)c);
	if (p == '\\' && *at < pattern.size)
		p = pattern.data[(*at)++];
	return p == c;
}

/* Only the last star is retried, so the cost is at most the product of both sizes. */
bool
slice_matches(struct slice pattern, struct slice slice)
{
	size_t p = 0, i = 0, star = SIZE_MAX, resume = 0;

	while (i < slice.size) {
		if (p < pattern.size && pattern.data[p] == '*') {
			star = ++p;
			resume = i;
			continue;
		}
		if (p < pattern.size && byte_matches(pattern, &p, slice.data[i])) {
			i++;
			continue;
		}
		if (star == SIZE_MAX)
			return false;
		p = star;
		i = ++resume;
	}
	while (p < pattern.size && pattern.data[p] == '*')
		p++;
	return p == pattern.size;
}

/* --- numbers ---------------------------------------------------------------- */

bool
integer_parse(struct slice slice, int64_t *out)
{
	bool negative = slice.size > 0 && slice.data[0] == '-';
	uint64_t value = 0, most = (uint64_t)INT64_MAX + negative;
	size_t i = negative;

	if (i == slice.size || slice.size - i > 19 || (slice.data[i] == '0' && slice.size > 1))
		return false;
	for (; i < slice.size; i++) {
		unsigned digit = (unsigned)(slice.data[i] - '0');

		if (digit > 9)
			return false;
		value = value * 10 + digit; /* 19 digits cannot overflow */
	}
	*out = (int64_t)(negative ? -value : value);
	return value <= most;
}

struct slice
integer_format(char out[INTEGER_MAX], int64_t number)
{
	int size = snprintf(out, INTEGER_MAX, "%lld", (long long)number);

	return (struct slice){ out, (size_t)size };
}

bool
double_parse(struct slice slice, double *out)
{
	char text[512], *end;
	double number;

	if (slice.size == 0 || slice.size >= sizeof(text) || isspace((unsigned char)slice.data[0]))
		return false;
	memcpy(text, slice.data, slice.size);
	text[slice.size] = '\0';
	errno = 0;
	number = strtod(text, &end);
	if (end != text + slice.size || isnan(number)
	    || (errno == ERANGE && (isinf(number) || number == 0)))
		return false;
	*out = number;
	return true;
}
