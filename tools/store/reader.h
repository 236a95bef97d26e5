/* reader.h - requests: words out of bytes that come in pieces.
 *
 * A request is an array of bulks, or a plain line of words, some in quotes.  The words lie where
 * the bytes lie; nothing is copied, but for lines in quotes.  A reader goes on where it stopped:
 * no byte is looked at twice, however they were cut.
 */
#ifndef STORE_READER_H
#define STORE_READER_H

#include <sys/types.h>
#include "text.h"

#define READER_WORDS 8 /* that need no memory of their own */
#define READER_STRANGER_WORDS 10 /* of one who must authenticate first */
#define READER_STRANGER_BULK 16384

struct reader_limits {
	size_t   bulk_max, request_max;
	uint32_t words_max, inline_max;
};

struct reader {
	struct heap *heap;
	struct word *words; /* of the request */
	uint32_t     count, room;
	int64_t      left; /* words to come; 0: the first line is to come */
	size_t       at;   /* read so far, from the request's first byte */
	size_t       bulk; /* size of the word that is coming */
	bool         has_bulk;
	bool         is_stranger; /* tighter limits */
	struct text *line; /* words of a line in quotes */
	char         wrong[64]; /* what is, after -1 */
	struct word  few[READER_WORDS];
};

void reader_init(struct reader *reader, struct heap *heap);
void reader_fini(struct reader *reader);

/* Read on.  `data` is the same request from its first byte, `size` what has arrived of it, and of
 * others behind it.
 * Returns its size when it is complete, with its words; 0 if it is not; -1 if it is wrong. */
ssize_t reader_next(struct reader *reader, const struct reader_limits *limits, const char *data,
                    size_t size);

/* Be ready for the next request. */
void reader_reset(struct reader *reader);

/* The bytes of the request have moved. */
void reader_moved(struct reader *reader, const char *from, const char *to);

#endif
