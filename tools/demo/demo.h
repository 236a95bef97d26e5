/* demo.h - the demo: a service that ranks feeds on one loop, the same work on 8 threads that block,
 * a load for both, and a page that shows them live. */
#ifndef WEFT_DEMO_H
#define WEFT_DEMO_H

#include <base/args.h>

#define DEMO_FAN_OUT   400        /* at most */
#define DEMO_PORT_FREE UINT32_MAX /* 7070, or one of the next ten */

/* What the page can change: requests per second of the built-in load; candidates of a request, each
 * a Redis call; microseconds added to each call; 1: send the load to the threads, too. */
enum demo_setting { LOAD, FAN_OUT, DELAY_US, COMPARE, SETTINGS };

struct demo_opts {
	const char *redis;   /* address for weft_redis_open(); NULL: the embedded store */
	const char *address; /* to listen on */
	uint32_t    port;    /* 0: the system chooses */
	uint32_t    loops;   /* serving loops */
	uint64_t    seed;    /* of the data set */
	bool        quiet;   /* print only the address of the page */
	uint32_t    settings[SETTINGS];
	const struct args_option *setting_options; /* those of the settings, in their order */
};

/* Run until SIGINT or SIGTERM, then finish requests in flight.  Returns an exit status. */
int demo_run(const struct demo_opts *opts);

#endif
