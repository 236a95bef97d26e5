/* demo.c - weft demo: an example service that ranks feeds. */
#include <stddef.h>
#include "demo/demo.h"
#include "verbs.h"

static struct demo_opts opts = {
	.address = "127.0.0.1",
	.port = DEMO_PORT_FREE,
	.loops = 1,
	.seed = 7,
	.settings = { [LOAD] = 50, [FAN_OUT] = 120, [DELAY_US] = 1000, [COMPARE] = 1 },
};

/* The settings come first, in the order of enum demo_setting. */
static const struct args_option options[] = {
	{ "--load", "N", "requests per second of the built-in load; default 50", args_number,
	  &opts.settings[LOAD], 0, 3000, NULL },
	{ "--fan-out", "N", "candidates of a request, each a Redis call; default 120", args_number,
	  &opts.settings[FAN_OUT], 1, DEMO_FAN_OUT, NULL },
	{ "--delay-us", "N", "delay added to each Redis call; default 1000", args_number,
	  &opts.settings[DELAY_US], 0, 20000, NULL },
	{ "--compare", "0|1", "also send the load to the 8 threads; default 1", args_number,
	  &opts.settings[COMPARE], 0, 1, NULL },
	{ "--redis", "URL",
	  "redis://[USER:PASSWORD@]HOST[:PORT][/DB], rediss://... or redis+unix:/PATH;\n"
	  "keys that begin with demo: are written there; default: the embedded store",
	  args_text, &opts.redis, 0, 0, NULL },
	{ "--port", "N", "default 7070, or one of the next ten; 0: the system chooses", args_number,
	  &opts.port, 0, 65535, NULL },
	{ "--address", "A", "address to listen on; default 127.0.0.1", args_text, &opts.address, 0,
	  0, NULL },
	{ "--loops", "N", "number of serving loops; default 1", args_number, &opts.loops, 1, 64,
	  NULL },
	{ "--seed", "N", "of the data set; default 7", args_number64, &opts.seed, 0,
	  999999999999999999, NULL },
	{ "--quiet", NULL, "print only the address of the page", args_flag, &opts.quiet, 0, 0,
	  NULL },
	{ 0 },
};

static int
run_demo(int argc, char **argv)
{
	int count = args_read(&verb_demo, argc, argv);

	if (count < 0)
		return args_status(count);
	if (count > 0)
		return args_misused(&verb_demo, "unexpected argument");
	opts.setting_options = options;
	return demo_run(&opts);
}

const struct args_verb verb_demo = {
	.name = "demo",
	.run = run_demo,
	.usage = "demo [OPTION...]",
	.summary = "serve a ranking service with a page that shows it live",
	.about = "A service that ranks a feed for each viewer: every request is a graph of steps\n"
		 "with a hundred Redis calls in flight on one loop thread.  A page shows it live,\n"
		 "beside the same work on 8 threads that block.  SIGTERM or SIGINT ends it after\n"
		 "all admitted requests are answered.",
	.options = options,
};
