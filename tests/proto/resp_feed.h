/* resp_feed.h - a Redis reply that arrives in pieces, and its tree written as bytes again.
 *
 * For tests and for fuzzing.  The parser gets the bytes in an allocation of their exact size,
 * so that a sanitizer detects reads beyond them.
 */
#ifndef WEFT_TESTS_RESP_FEED_H
#define WEFT_TESTS_RESP_FEED_H

#include "redis/resp.h"

struct resp_cut {
	enum { RESP_WHOLE, RESP_BYTES, RESP_TWO, RESP_RANDOM } how;
	uint64_t number; /* size of the first piece, or the seed */
};

/* A buffer from malloc(). */
struct resp_text {
	char  *data;
	size_t size, room;
};

/* The outcome: the result of the scan, and the tree written again, or the text of
 * weft_detail(). */
struct resp_outcome {
	ssize_t          rc;
	struct resp_text text;
};

/* Append bytes, or formatted text. */
void resp_add(struct resp_text *text, const void *data, size_t size);
void resp_addf(struct resp_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Parse the reply at the start of the data, split in this way, until it is complete or refused. */
void resp_feed(const struct weft__resp_limits *limits, const char *data, size_t size,
               struct resp_cut cut, struct resp_outcome *out);
void resp_outcome_drop(struct resp_outcome *outcome);

/* Whether two outcomes are equal, including their texts. */
bool resp_same(const struct resp_outcome *a, const struct resp_outcome *b);

/* Write a tree in a canonical form: texts as $, errors as !, nil as _, attributes not at all.
 * Aborts if a text is not followed by a NUL. */
void resp_write(struct resp_text *out, const weft_redis_reply *reply);

/* Parse a reply that consists of all bytes; with weft__resp_build_taking() if `taking`.  NULL
 * if they are not one reply. */
weft_redis_reply *resp_read(const char *data, size_t size, bool taking);

#endif
