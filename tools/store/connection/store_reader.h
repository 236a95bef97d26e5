/* store_reader.h - parses requests.
 *
 * A request is an array of bulk strings, or an inline command.  Arguments point into the input;
 * only inline commands are copied.
 */
#ifndef STORE_READER_H
#define STORE_READER_H

#include <sys/types.h>
#include "store/data/store_bytes.h"

/* Limits before authentication. */
#define READER_UNAUTH_ARGS 10
#define READER_UNAUTH_BULK 16384

struct reader_limits {
	size_t   bulk_max, request_max;
	uint32_t args_max, inline_max;
};

struct reader {
	struct memory *memory;
	struct slice  *argv; /* arguments of the request */
	size_t         argc, room;
	int64_t        left; /* arguments of the request that have not arrived */
	size_t         at;   /* how much of the request has been parsed */
	const char    *data; /* where the request was at the last call */
	struct string *line; /* copy of an inline command */
	size_t         need; /* after 0: call again when this much of the request has arrived */
	char           error[64]; /* after -1 */
	bool           unauthenticated; /* not authenticated: stricter limits */
};

/* Parse the request that `data` begins with.  Returns its size and sets its arguments, which are
 * valid until the next call; 0 if it is incomplete, and continues in the next call; -1 if it is not
 * valid. */
ssize_t reader_next(struct reader *reader, const struct reader_limits *limits, const char *data,
                    size_t size);

/* Free the memory. */
void reader_clear(struct reader *reader);

#endif
