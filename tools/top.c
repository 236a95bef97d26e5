/* top.c - weft top: monitors a running program in a terminal, through its admin endpoint. */
#include <stdlib.h>
#include "base/terminal.h"
#include "top/top.h"
#include "verbs.h"

#define DEFAULT_TARGET "http://127.0.0.1:7070"

static struct top_opts opts = { .period_ms = 1000 };

static const struct args_option options[] = {
	{ "--token", "TOKEN",
	  "for the admin endpoint; default: the variable WEFT_TOKEN,\n"
	  "which other users cannot read",
	  args_text, &opts.token, 0, 0, NULL },
	{ "--period", "MS", "time between two updates, 250 to 10000; default 1000", args_number,
	  &opts.period_ms, PERIOD_LEAST_MS, PERIOD_MOST_MS, NULL },
	{ "--once", NULL,
	  "print all tables as text and exit; the default if standard\n"
	  "input or output is not a terminal, or TERM is dumb",
	  args_flag, &opts.once, 0, 0, NULL },
	{ 0 },
};

/* Reads the command line.  Returns 0, or a negative number for args_status(). */
static int
read_words(int argc, char **argv)
{
	static char shown[TARGET_MAX];
	int count = args_read(&verb_top, argc, argv);
	const char *target = count > 0 ? argv[0] : DEFAULT_TARGET;

	if (count < 0)
		return count;
	if (count > 1)
		return args_fail(args_misused(&verb_top, "unexpected argument: %s",
		                              weft_addr_mask(argv[1], shown, sizeof(shown))));
	if (target_url(target, opts.base) < 0)
		return args_fail(args_misused(&verb_top, "%s", weft_detail()));
	opts.name = weft_addr_mask(target, shown, sizeof(shown));
	return 0;
}

static int
run_top(int argc, char **argv)
{
	int rc;

	opts.token = getenv("WEFT_TOKEN");
	if (opts.token && !*opts.token)
		opts.token = NULL;
	rc = read_words(argc, argv);
	if (rc < 0)
		return args_status(rc);
	if (!terminal_is_there())
		opts.once = true;
	if (opts.once)
		opts.period_ms = PERIOD_LEAST_MS; /* rates need two readings */
	return top_run(&opts);
}

const struct args_verb verb_top = {
	.name = "top",
	.run = run_top,
	.usage = "top [OPTION...] [URL|SOCKET]",
	.summary = "monitor a running program in a terminal, through its admin endpoint",
	.about =
		"Monitor a running weft program that has an admin endpoint (weft_admin_open()):\n"
		"its loops, threadlets, and own values.  Name the program by a URL, as HOST:PORT,\n"
		"by a port of this machine, as unix:PATH, or by the path of a socket;\n"
		"default " DEFAULT_TARGET ".",
	.options = options,
	.notes = "The key h lists all keys.  NO_COLOR turns colors off.  Exit status: 0; 1 if the\n"
		 "program cannot be shown; 2 for wrong arguments; 128 plus the number of a signal.",
};
