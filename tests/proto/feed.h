/* feed.h - one message passed to the HTTP parser in pieces, and the outcome.
 *
 * The outcome must be the same however the message is split.  Before each call the bytes are
 * copied to an allocation of their exact size, so that a sanitizer detects reads beyond them
 * and uses of stale pointers.  For tests and for fuzzing; needs no test runner.
 */
#ifndef WEFT_TEST_FEED_H
#define WEFT_TEST_FEED_H

#include "http/parse/parse.h"

enum feed_kind { FEED_REQUEST, FEED_RESPONSE, FEED_CHUNKED };

struct feed {
	enum feed_kind           kind; /* FEED_CHUNKED: a chunked body without a header section */
	enum weft__http_reply_to    asked;
	uint32_t                 room; /* for headers; 0: WEFT__HTTP_FIELDS_MAX */
	struct weft__http_limits limits;
};

/* How the bytes are split. */
enum feed_cuts { FEED_WHOLE, FEED_BYTES, FEED_TWO, FEED_RANDOM };

struct feed_cut {
	enum feed_cuts how;
	uint64_t       number; /* FEED_TWO: size of the first piece; FEED_RANDOM: seed */
};

struct outcome {
	int      rc;        /* of the last call: MORE, DONE or an error */
	int      close_rc;  /* of the end of input in a body */
	bool     has_head;
	size_t   used;      /* bytes of the message that were consumed; not after an error */
	uint64_t body_size, body_hash;
	size_t   trailers_at;
	struct weft__http_fault fault;
	struct weft__http_head  head;
	struct weft__http_body  body;
	struct weft__http_field fields[WEFT__HTTP_FIELDS_MAX + 1];
	struct weft__http_field trailers[WEFT__HTTP_FIELDS_MAX + 1];
};

/* Feed data[0..size); fills `out`. */
void feed_run(const struct feed *feed, const char *data, size_t size, struct feed_cut cut,
              struct outcome *out);

/* NULL if both are equal; otherwise a text that names the difference. */
const char *feed_difference(const struct outcome *a, const struct outcome *b);

#endif
