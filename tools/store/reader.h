/* reader.h - parses requests from bytes that arrive in pieces.
 *
 * A request is an array of bulk strings, or an inline command, in which arguments may be quoted.
 * Arguments point into the input; only inline commands are copied.  The reader continues where
 * it stopped: no byte is parsed twice, however the input was split.
 */
#ifndef STORE_READER_H
#define STORE_READER_H

#include <sys/types.h>
#include "text.h"

#define READER_WORDS 8 /* arguments that need no allocation */
#define READER_STRANGER_WORDS 10 /* limits before authentication */
#define READER_STRANGER_BULK 16384

struct reader_limits {
	size_t   bulk_max, request_max;
	uint32_t words_max, inline_max;
};

struct reader {
	struct heap *heap;
	struct word *words; /* arguments of the request */
	uint32_t     count, room;
	int64_t      left; /* arguments still to come; 0: the first line is next */
	size_t       at;   /* position of the parser, from the start of the request */
	size_t       bulk; /* size of the next argument */
	bool         has_bulk;
	bool         is_stranger; /* not authenticated: stricter limits */
	struct text *line; /* copy of an inline command */
	char         wrong[64]; /* the error, after -1 */
	struct word  few[READER_WORDS];
};

void reader_init(struct reader *reader, struct heap *heap);
void reader_fini(struct reader *reader);

/* Continue parsing.  `data` is the same request from its first byte; `size` is the number of
 * bytes available, which may include further requests.  Returns the size of the request when it
 * is complete, and its arguments are set; 0 if it is incomplete; -1 if it is not valid. */
ssize_t reader_next(struct reader *reader, const struct reader_limits *limits, const char *data,
                    size_t size);

/* Prepare for the next request. */
void reader_reset(struct reader *reader);

/* Adjust the arguments after the input has moved in memory. */
void reader_moved(struct reader *reader, const char *from, const char *to);

#endif
