/* blocking.h - a plain Redis client: one socket, one blocking call at a time. */
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

/* A reply: NUL-terminated strings in the connection's buffer, valid until the next call.  A
 * reply that is not a list has one string; nil has none. */
struct blocking_reply {
	size_t count;
	char  *items[BLOCKING_ITEMS];
};

void blocking_init(struct blocking *client);
void blocking_close(struct blocking *client);

/* Send a command, formatted as by printf(3) with arguments separated by spaces, and wait for its
 * reply.  Connects first, if needed.  After an error the client is disconnected.  Returns 0 or a
 * negative error, with a text in weft_detail(). */
int blocking_call(struct blocking *client, const struct demo *demo,
                  struct blocking_reply *out, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
