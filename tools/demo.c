/* demo.c - weft demo: an example service that ranks feeds. */
#include <string.h>
#include "demo/demo.h"
#include "verbs.h"

static struct demo_opts opts;

static const char *
read_address(const struct args_option *option, const char *value)
{
	return strlen(value) < 64 ? args_text(option, value) : "the value is too long";
}

static const char *
read_port(const struct args_option *option, const char *value)
{
	opts.port_free = false;
	return args_number(option, value);
}

static const struct args_option options[] = {
	{ "--redis", "URL",
	  "redis://[USER:PASSWORD@]HOST[:PORT][/DB] or redis+unix:/PATH; keys\n"
	  "that begin with demo: are written there; default: the embedded store",
	  args_text, &opts.redis, 0, 0, NULL },
	{ "--port", "N", "default 7070, or one of the next ten; 0: the system chooses", read_port,
	  &opts.port, 0, 65535, NULL },
	{ "--address", "A", "address to listen on; default 127.0.0.1", read_address, &opts.address,
	  0, 0, NULL },
	{ "--loops", "N", "number of serving loops; default 1", args_number, &opts.loops, 1,
	  DEMO_LOOPS, NULL },
	{ "--seed", "N", "of the data set; default 7", args_number64, &opts.seed, 0,
	  999999999999999999, NULL },
	{ "--load", "N", "requests per second of the built-in load; default 50", args_number,
	  &opts.settings.load, 0, DEMO_LOAD, NULL },
	{ "--fan-out", "N", "candidates of a request, each a Redis call; default 120", args_number,
	  &opts.settings.fan_out, 1, DEMO_FAN_OUT, NULL },
	{ "--delay-us", "N", "simulated round-trip delay to Redis; default 1000", args_number,
	  &opts.settings.delay_us, 0, DEMO_DELAY, NULL },
	{ "--compare", "0|1", "also send the load to the 8 threads; default 1", args_number,
	  &opts.settings.compare, 0, 1, NULL },
	{ "--quiet", NULL, "print only the address of the page", args_flag, &opts.quiet, 0, 0,
	  NULL },
	{ 0 },
};

static int
run_demo(int argc, char **argv)
{
	int count;

	demo_defaults(&opts);
	count = args_read(&verb_demo, argc, argv);
	if (count < 0)
		return args_status(count);
	if (count > 0)
		return args_misused(&verb_demo, "unexpected argument");
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
