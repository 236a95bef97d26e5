/* demo.h - the demo: a ranking service on one loop, and a page that shows it live.
 *
 * GET /feed/<viewer> is one run of one graph of steps: a profile, candidates from three sources,
 * the features of each candidate by a separate Redis call, scores on the CPU pool, and the best
 * of them as JSON.  GET /threads/<viewer> does the same work on 8 threads that block.  A
 * moderate load requests both; /demo/events reports the results.
 */
#ifndef WEFT_DEMO_H
#define WEFT_DEMO_H

#include <stdbool.h>
#include <stdint.h>

#define DEMO_PORT    7070
#define DEMO_PORTS   10   /* further ports to try, if none was specified */
#define DEMO_LOOPS   64
#define DEMO_LOAD    3000 /* largest values of the settings */
#define DEMO_FAN_OUT 400
#define DEMO_DELAY   20000

struct demo_settings {
	uint32_t load;     /* requests per second that the demo itself makes */
	uint32_t fan_out;  /* candidates per request, each a Redis call; at least 1 */
	uint32_t delay_us; /* simulated round-trip delay to Redis */
	uint32_t compare;  /* 1: send the load to the threads, too */
};

struct demo_opts {
	const char *redis;     /* redis://..., redis+unix:/PATH; NULL: the embedded store */
	const char *address;   /* to listen on */
	uint32_t    port;      /* 0: the system chooses */
	bool        port_free; /* `port` is only the default: other ports may be used */
	uint32_t    loops;     /* serving loops */
	uint64_t    seed;      /* of the data set */
	bool        quiet;     /* print only the address of the page */
	struct demo_settings settings;
};

/* Set all options to their defaults. */
void demo_defaults(struct demo_opts *opts);

/* Run until SIGINT or SIGTERM, then finish requests in flight.  Returns an exit status. */
int demo_run(const struct demo_opts *opts);

#endif
