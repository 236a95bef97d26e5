/* demo.h - the demo: a ranking service on one loop, and what makes it worth looking at.
 *
 * GET /feed/<viewer> is one run of one graph of steps: a profile, candidates of three
 * sources, the features of each candidate by a Redis call of its own, scores on the CPU
 * pool, and the best of them as JSON.  GET /threads/<viewer> is the same work by 8 threads
 * that block.  A gentle load asks for both; /demo/events tells how they fare.
 */
#ifndef WEFT_DEMO_H
#define WEFT_DEMO_H

#include <stdbool.h>
#include <stdint.h>

#define DEMO_PORT    7070
#define DEMO_PORTS   10   /* that are tried after it, if none was asked for */
#define DEMO_LOOPS   64
#define DEMO_LOAD    3000 /* greatest values of the settings */
#define DEMO_FAN_OUT 400
#define DEMO_DELAY   20000

struct demo_settings {
	uint32_t load;     /* requests per second that the demo makes itself */
	uint32_t fan_out;  /* candidates of a request, each a Redis call; at least 1 */
	uint32_t delay_us; /* that Redis seems to be away, there and back */
	uint32_t compare;  /* 1: the load goes to the threads, too */
};

struct demo_opts {
	const char *redis;     /* redis://..., redis+unix:/PATH; NULL: a store of its own */
	const char *address;   /* to listen at */
	uint32_t    port;      /* 0: the system chooses */
	bool        port_free; /* `port` was not asked for: others are as good */
	uint32_t    loops;     /* that serve */
	uint64_t    seed;      /* of the data set */
	bool        quiet;     /* say where the page is, and nothing else */
	struct demo_settings settings;
};

/* Defaults of all that. */
void demo_defaults(struct demo_opts *opts);

/* Run until SIGINT or SIGTERM, then let requests in flight end.  Returns an exit status. */
int demo_run(const struct demo_opts *opts);

#endif
