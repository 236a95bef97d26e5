/* top.c - weft top: monitors a running program in a terminal, through its admin endpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "top/terminal.h"
#include "top/top.h"
#include "verbs.h"

#define DEFAULT_TARGET "http://127.0.0.1:7070"

static const char help[] =
	"usage: weft top [OPTION...] [URL|SOCKET]\n"
	"\n"
	"Monitor a running weft program that has an admin endpoint (weft_admin_open()): its\n"
	"loops, threadlets, and its own values.  Name the program by a URL, as HOST:PORT,\n"
	"by a port of this machine, as unix:PATH, or by the path of a socket;\n"
	"default " DEFAULT_TARGET ".\n"
	"\n"
	"  --token TOKEN   for the admin endpoint; default: the variable WEFT_TOKEN,\n"
	"                  which other users cannot read\n"
	"  --period MS     time between two updates, 250 to 10000; default 1000\n"
	"  --once          print all tables as text and exit; the default if standard\n"
	"                  input or output is not a terminal, or TERM is dumb\n"
	"\n"
	"The key h lists all keys.  NO_COLOR turns colors off.  Exit status: 0; 1 if the\n"
	"program cannot be shown; 2 for wrong arguments; 128 plus the number of a signal.\n";

static int
misused(const char *format, const char *word)
{
	fputs("weft top: ", stderr);
	fprintf(stderr, format, word);
	fputs("\n\n", stderr);
	fputs(help, stderr);
	return 2;
}

static bool
read_period(const char *text, uint32_t *out)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || number < PERIOD_LEAST_MS
	    || number > PERIOD_MOST_MS)
		return false;
	*out = (uint32_t)number;
	return true;
}

/* Reads an option that takes a value.  Returns false if either is not valid. */
static bool
read_value(struct top_opts *opts, const char *name, const char *value)
{
	if (strcmp(name, "--period") == 0)
		return read_period(value, &opts->period_ms);
	if (strcmp(name, "--token") != 0 || !*value)
		return false;
	opts->token = value;
	return true;
}

/* Returns 0 or an exit status. */
static int
read_words(struct top_opts *opts, int argc, char **argv)
{
	static char shown[TARGET_MAX];
	const char *target = DEFAULT_TARGET;
	int given = 0;

	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--once") == 0)
			opts->once = true;
		else if (*argv[i] != '-' && given++)
			return misused("unexpected argument: %s",
			               weft_addr_mask(argv[i], shown, sizeof(shown)));
		else if (*argv[i] != '-')
			target = argv[i];
		else if (i + 1 == argc || !read_value(opts, argv[i], argv[i + 1]))
			return misused("unknown option, or missing or invalid value: %s", argv[i]);
		else
			i++;
	}
	if (target_url(target, opts->base) < 0)
		return misused("%s", weft_detail());
	opts->name = weft_addr_mask(target, shown, sizeof(shown));
	return 0;
}

int
verb_top(int argc, char **argv)
{
	static struct top_opts opts = { .period_ms = 1000 };
	int status;

	if (argc == 3 && strcmp(argv[2], "--help") == 0)
		return fputs(help, stdout) < 0;
	opts.token = getenv("WEFT_TOKEN");
	if (opts.token && !*opts.token)
		opts.token = NULL;
	status = read_words(&opts, argc - 2, argv + 2);
	if (status != 0)
		return status;
	if (!terminal_is_there())
		opts.once = true;
	if (opts.once)
		opts.period_ms = PERIOD_LEAST_MS; /* rates need two readings */
	return top_run(&opts);
}
