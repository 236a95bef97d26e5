/* blocking.h - a plain client of Redis: one socket, one call at a time, which blocks. */
#ifndef WEFT_DEMO_BLOCKING_H
#define WEFT_DEMO_BLOCKING_H

#include <stddef.h>
#include <stdint.h>
#include "service.h"

#define BLOCKING_BUFFER 65536
#define BLOCKING_ITEMS  512

struct blocking {
	int    fd; /* -1: not connected */
	size_t size, used;
	char   buffer[BLOCKING_BUFFER];
};

/* A reply: texts, each with a NUL behind it, in the connection's buffer until the next
 * call.  One that is no list has one; nil has none. */
struct blocking_reply {
	size_t count;
	char  *items[BLOCKING_ITEMS];
};

void blocking_init(struct blocking *client);
void blocking_close(struct blocking *client);

/* Send a command, words between spaces, in the manner of printf(3), and wait for its reply;
 * connect before that, if need be.  After an error it is not connected any more.
 * Returns 0 or a negative error, with a text in weft_detail(). */
int blocking_call(struct blocking *client, const struct demo *demo,
                  struct blocking_reply *out, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
