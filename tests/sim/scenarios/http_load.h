/* http_load.h - many slow peers, more requests than can be answered, and exact limits.
 *
 * Needs: http_world.h.  Thread: the first simulated one.
 */
#ifndef WEFT_SIM_HTTP_LOAD_H
#define WEFT_SIM_HTTP_LOAD_H

#include "sim/scenarios/http_world.h"

/* A planted bug, as if the server had it. */
enum http_load_spoil {
	HTTP_LOAD_SPOIL_NOTHING,
	HTTP_LOAD_SPOIL_KEEP,   /* a slow peer is kept */
	HTTP_LOAD_SPOIL_HASTE,  /* a slow peer is dropped early */
	HTTP_LOAD_SPOIL_HOLD,   /* a healthy peer has to wait */
	HTTP_LOAD_SPOIL_MEMORY, /* more memory is used than allowed */
	HTTP_LOAD_SPOIL_SHED,   /* more requests are rejected than necessary */
	HTTP_LOAD_SPOIL_SPIN,   /* accept is retried without a pause */
};

struct http_crowd {
	uint32_t quiet; /* idle peers, from the start or after one reply */
	uint32_t slow;  /* peers that send or read one byte a second */
	enum http_load_spoil spoil;
};

void http_slow_play(const struct http_crowd *crowd);
void http_overload_play(enum http_load_spoil spoil);
void http_limit_play(enum http_load_spoil spoil); /* NOTHING, KEEP or HASTE */

/* Handlers: reply with a few bytes; and the same after reading the whole body. */
static inline int
http_on_small(weft_http *http, void *arg)
{
	(void)arg;
	return weft_http_reply(http, 200, "text/plain",
	                       (weft_span){ "hello", 5 }, WEFT_NEVER);
}

static inline int
http_on_sink(weft_http *http, void *arg)
{
	char buf[512];
	ssize_t n;

	(void)arg;
	do
		n = weft_http_read(http, buf, sizeof(buf), WEFT_NEVER);
	while (n > 0);
	return n < 0 ? (int)n : http_on_small(http, arg);
}

#define HTTP_LOAD_MASK                                                         \
	(SIM_MASK(SIM_RESET) | SIM_MASK(SIM_REFUSE) | SIM_MASK(SIM_ERRNO)      \
	 | SIM_MASK(SIM_ALLOC) | SIM_MASK(SIM_CLOCK) | SIM_MASK(SIM_THREAD)    \
	 | SIM_MASK(SIM_LATE) | SIM_MASK(SIM_DELAY))

/* Without faults that take time from the server, too. */
#define HTTP_OVERLOAD_MASK \
	(HTTP_LOAD_MASK | SIM_MASK(SIM_EAGAIN) | SIM_MASK(SIM_SHORT))

#endif
