/* store_bytes.h - counted memory, byte strings, and numbers as text.
 *
 * The store counts the bytes that it allocates, so that they can be limited.  A block knows its
 * size, so freeing it needs no size.  After everything is freed the count is 0; the tests and the
 * fuzzer check that.  A slice borrows bytes; a string owns them.
 */
#ifndef STORE_BYTES_H
#define STORE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* --- memory ----------------------------------------------------------------- */

struct memory {
	size_t   used, peak; /* bytes */
	uint64_t random;     /* state of memory_random(); the first one is a secret */
};

/* Allocate a block of zeros.  If there is no memory, the process aborts with a message. */
void *memory_alloc(struct memory *memory, size_t size);

/* Change the size, and keep as much of the content as fits; `block` may be NULL. */
void *memory_resize(struct memory *memory, void *block, size_t size);

/* Free a block; accepts NULL. */
void memory_free(struct memory *memory, void *block);

uint64_t memory_random(struct memory *memory);

/* --- byte strings ----------------------------------------------------------- */

struct slice {
	const char *data;
	size_t      size;
};

struct string {
	size_t size;
	char   bytes[];
};

#define SLICE(literal) ((struct slice){ "" literal, sizeof(literal) - 1 })

static inline struct slice
string_slice(const struct string *string)
{
	return (struct slice){ string->bytes, string->size };
}

struct string *string_new(struct memory *memory, struct slice slice);

static inline bool
slice_equal(struct slice a, struct slice b)
{
	return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* Case-insensitive comparison. */
static inline bool
slice_is(struct slice slice, const char *name)
{
	return slice.size == strlen(name) && strncasecmp(slice.data, name, slice.size) == 0;
}

/* Bytewise order; a prefix comes before the longer slice. */
int slice_order(struct slice a, struct slice b);

/* Whether `slice` matches a pattern of *, ?, [a-z], [^...] and \x. */
bool slice_matches(struct slice pattern, struct slice slice);

/* Put a number into bytes that are in the order of the numbers, and get it again. */
static inline void
bytes_put(char out[8], uint64_t number)
{
	number = __builtin_bswap64(number);
	memcpy(out, &number, 8);
}

static inline uint64_t
bytes_get(const char *bytes)
{
	uint64_t number;

	memcpy(&number, bytes, 8);
	return __builtin_bswap64(number);
}

/* --- numbers ---------------------------------------------------------------- */

#define INTEGER_MAX 24 /* longest integer as text */

/* Parse an integer in canonical form: no plus sign, no leading zeros, no blanks. */
bool integer_parse(struct slice slice, int64_t *out);

struct slice integer_format(char out[INTEGER_MAX], int64_t number);

/* Parse anything that strtod(3) accepts, without leading blanks, except NaN. */
bool double_parse(struct slice slice, double *out);

#endif
