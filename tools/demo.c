/* demo.c - weft demo: an example service that ranks feeds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "demo/demo.h"
#include "verbs.h"

static const char help[] =
	"usage: weft demo [OPTION...]\n"
	"\n"
	"A service that ranks a feed for each viewer: every request is a graph of steps with a\n"
	"hundred Redis calls in flight on one loop thread.  A page shows it live, beside the\n"
	"same work on 8 threads that block.  SIGTERM or SIGINT ends it after all admitted\n"
	"requests are answered.\n"
	"\n"
	"  --redis URL     redis://[USER:PASSWORD@]HOST[:PORT][/DB] or redis+unix:/PATH; keys\n"
	"                  that begin with demo: are written there; default: the embedded store\n"
	"  --port N        default 7070, or one of the next ten; 0: the system chooses\n"
	"  --address A     address to listen on; default 127.0.0.1\n"
	"  --loops N       number of serving loops; default 1\n"
	"  --seed N        of the data set; default 7\n"
	"  --load N        requests per second of the built-in load; default 50\n"
	"  --fan-out N     candidates of a request, each a Redis call; default 120\n"
	"  --delay-us N    simulated round-trip delay to Redis; default 1000\n"
	"  --compare 0|1   also send the load to the 8 threads; default 1\n"
	"  --quiet         print only the address of the page\n";

/* Parses a whole number from `min` to `max`. */
static bool
demo_read_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	size_t size = strlen(text);
	unsigned long long number = strtoull(text, NULL, 10);

	if (size == 0 || size > 18 || strspn(text, "0123456789") != size)
		return false;
	*out = number;
	return number >= min && number <= max;
}

static bool
read_small(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
	uint64_t number = 0;
	bool good = demo_read_number(text, min, max, &number);

	*out = good ? (uint32_t)number : *out;
	return good;
}

static bool
read_option(struct demo_opts *opts, const char *name, const char *value)
{
	struct demo_settings *settings = &opts->settings;

	if (strcmp(name, "--redis") == 0)
		return (opts->redis = value);
	if (strcmp(name, "--address") == 0)
		return (opts->address = value) && strlen(value) < 64;
	if (strcmp(name, "--port") == 0) {
		opts->port_free = false;
		return read_small(value, 0, 65535, &opts->port);
	}
	if (strcmp(name, "--loops") == 0)
		return read_small(value, 1, DEMO_LOOPS, &opts->loops);
	if (strcmp(name, "--seed") == 0)
		return demo_read_number(value, 0, UINT64_MAX, &opts->seed);
	if (strcmp(name, "--load") == 0)
		return read_small(value, 0, DEMO_LOAD, &settings->load);
	if (strcmp(name, "--fan-out") == 0)
		return read_small(value, 1, DEMO_FAN_OUT, &settings->fan_out);
	if (strcmp(name, "--delay-us") == 0)
		return read_small(value, 0, DEMO_DELAY, &settings->delay_us);
	if (strcmp(name, "--compare") == 0)
		return read_small(value, 0, 1, &settings->compare);
	return false;
}

static bool
demo_read_options(struct demo_opts *opts, int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--quiet") == 0) {
			opts->quiet = true;
			continue;
		}
		if (i + 1 == argc || !read_option(opts, argv[i], argv[i + 1])) {
			/* The value is not printed: it may be a password. */
			fprintf(stderr,
			        "weft demo: %s: unknown option, or missing or invalid value\n\n",
			        argv[i]);
			return false;
		}
		i++;
	}
	return true;
}

int
verb_demo(int argc, char **argv)
{
	struct demo_opts opts;

	if (argc == 3 && strcmp(argv[2], "--help") == 0)
		return fputs(help, stdout) < 0;
	demo_defaults(&opts);
	if (!demo_read_options(&opts, argc, argv)) {
		fputs(help, stderr);
		return 2;
	}
	return demo_run(&opts);
}
