/* resp_feed.h - a reply of Redis that comes in pieces, and its tree as bytes again.
 *
 * For tests and for fuzzing: what is fed lies in memory of just the size that has
 * arrived, so that a sanitizer sees a look beyond.
 */
#ifndef WEFT_TESTS_RESP_FEED_H
#define WEFT_TESTS_RESP_FEED_H

#include "redis/resp.h"

struct resp_cut {
	enum { RESP_WHOLE, RESP_BYTES, RESP_TWO, RESP_RANDOM } how;
	uint64_t number; /* where, or the seed */
};

/* Bytes of malloc(). */
struct resp_text {
	char  *data;
	size_t size, room;
};

/* What came of it: the scan's answer, and the tree written again, or what
 * weft_detail() said. */
struct resp_outcome {
	ssize_t          rc;
	struct resp_text text;
};

/* Add bytes; of printf(3). */
void resp_add(struct resp_text *text, const void *data, size_t size);
void resp_addf(struct resp_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Feed what is at the front of the data, cut like that, until it is read or refused. */
void resp_feed(const struct weft__resp_limits *limits, const char *data, size_t size,
               struct resp_cut cut, struct resp_outcome *out);
void resp_outcome_drop(struct resp_outcome *outcome);

/* Whether two outcomes are the same, down to the words. */
bool resp_same(const struct resp_outcome *a, const struct resp_outcome *b);

/* Write a tree with the one form that each kind has here: texts as $, errors as !, nil
 * as _, attributes not at all.  Dies if a text is not followed by a NUL. */
void resp_write(struct resp_text *out, const weft_redis_reply *reply);

/* The reply that is all of the bytes; by the other way of building it if `taking`.
 * NULL if it is none. */
weft_redis_reply *resp_read(const char *data, size_t size, bool taking);

#endif
