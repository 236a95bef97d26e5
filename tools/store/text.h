/* text.h - byte strings, and numbers in them.
 *
 * A word refers to borrowed bytes.  A text owns its bytes, and may have room for more.
 */
#ifndef STORE_TEXT_H
#define STORE_TEXT_H

#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include "heap.h"

#define TEXT_MAX ((size_t)512 << 20) /* largest string, in bytes */

struct word {
	const char *data;
	size_t      size;
};

struct text {
	uint32_t size, room;
	char     bytes[];
};

#define WORD(literal) ((struct word){ "" literal, sizeof(literal) - 1 })

static inline struct word
text_word(const struct text *text)
{
	return (struct word){ text->bytes, text->size };
}

struct text *text_new(struct heap *heap, struct word word);
void         text_free(struct heap *heap, struct text *text);

/* Make room for `size` bytes, and some to spare.  Takes `text`, and returns it or its
 * replacement. */
struct text *text_reserve(struct heap *heap, struct text *text, size_t size);

static inline bool
word_equal(struct word a, struct word b)
{
	return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* Case-insensitive comparison. */
static inline bool
word_is(struct word word, const char *name)
{
	return word.size == strlen(name) && strncasecmp(word.data, name, word.size) == 0;
}

/* Bytewise order; a prefix comes before the longer word. */
int word_order(struct word a, struct word b);

/* Whether `word` matches a pattern of *, ?, [a-z], [^...] and \x. */
bool word_matches(struct word pattern, struct word word);

/* --- numbers ---------------------------------------------------------------- */

#define NUMBER_MAX 24 /* longest integer as text */
#define REAL_MAX   64 /* longest double; for a long double with all digits it is REAL_WIDE_MAX */
#define REAL_WIDE_MAX 5200

/* Parse an integer in canonical form: no plus sign, no leading zeros, no blanks. */
bool number_read(struct word word, int64_t *out);

size_t number_write(char out[NUMBER_MAX], int64_t number);

/* Parse anything that strtod(3) accepts, without leading blanks, except NaN. */
bool real_read(struct word word, double *out);
bool real_read_wide(struct word word, long double *out);

/* Format with 17 significant digits; or as a decimal without trailing zeros. */
size_t real_write(char out[REAL_MAX], double real);
size_t real_write_wide(char out[REAL_WIDE_MAX], long double real);

#endif
