/* http_load.h - many slow peers, more requests than can be answered, and exact limits.
 *
 * Needs: http_world.h.  Thread: the first simulated one.
 */
#ifndef WEFT_SIM_HTTP_LOAD_H
#define WEFT_SIM_HTTP_LOAD_H

#include "sim/scenarios/http_world.h"

/* What is done wrong on purpose, as if the server did it. */
enum http_load_spoil {
	HTTP_LOAD_SPOIL_NOTHING,
	HTTP_LOAD_SPOIL_KEEP,   /* who is slow is kept */
	HTTP_LOAD_SPOIL_HASTE,  /* who is slow is dropped early */
	HTTP_LOAD_SPOIL_HOLD,   /* who is not has to wait */
	HTTP_LOAD_SPOIL_MEMORY, /* more is used than may be */
	HTTP_LOAD_SPOIL_SHED,   /* more is shed than need be */
	HTTP_LOAD_SPOIL_SPIN,   /* who cannot accept tries without end */
};

struct http_crowd {
	uint32_t quiet; /* that say nothing */
	uint32_t slow;  /* of which each says a byte a second, or reads one */
	enum http_load_spoil spoil;
};

void http_slow_play(const struct http_crowd *crowd);
void http_overload_play(enum http_load_spoil spoil);
void http_limit_play(enum http_load_spoil spoil); /* NOTHING, KEEP or HASTE */

/* Handlers: a few bytes; and the same when the body was read to its end. */
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

/* Nor what takes time from the server. */
#define HTTP_OVERLOAD_MASK \
	(HTTP_LOAD_MASK | SIM_MASK(SIM_EAGAIN) | SIM_MASK(SIM_SHORT))

#endif
