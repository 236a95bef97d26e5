/* weft.c - the weft program: the first argument selects a verb. */
#include <stdio.h>
#include <string.h>
#include <weft/base.h>
#include "verbs.h"

struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *usage, *help;
};

static const struct verb verbs[] = {
#ifdef WEFT_HAS_JS
	{ "run", verb_run, "run FILE.js [ARGUMENT...]",
	  "  run    run the module in FILE.js until it has no work left\n" },
	{ "eval", verb_eval, "eval CODE [ARGUMENT...]",
	  "  eval   run CODE as a script and print its result; a promise\n"
	  "         is awaited first\n" },
#endif
	{ "dag", verb_dag, "dag run|trace|check|dot FILE",
	  "  dag    run the commands of a DAG file in dependency order, or check it;\n"
	  "         weft dag --help lists its options\n" },
	{ "demo", verb_demo, "demo [OPTION...]",
	  "  demo   serve a ranking service with a page that shows it live;\n"
	  "         weft demo --help lists its options\n" },
	{ "store", verb_store, "store [OPTION...]",
	  "  store  serve a small in-memory store that speaks the Redis protocol;\n"
	  "         weft store --help lists its options\n" },
	{ "top", verb_top, "top [OPTION...] [URL|SOCKET]",
	  "  top    monitor a running program in a terminal, through its admin endpoint;\n"
	  "         weft top --help lists its options\n" },
};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static int
usage(FILE *to, int status)
{
	for (size_t i = 0; i < VERBS; i++)
		fprintf(to, "%s weft %s\n", i == 0 ? "usage:" : "      ", verbs[i].usage);
	fprintf(to, "       weft --version | --help\n\n");
	for (size_t i = 0; i < VERBS; i++)
		fputs(verbs[i].help, to);
	return status;
}

static int
verb_usage(const struct verb *verb, FILE *to, int status)
{
	fprintf(to, "usage: weft %s\n\n%s", verb->usage, verb->help);
	return status;
}

static int
run_verb(const struct verb *verb, int argc, char **argv)
{
	int status = verb->run(argc, argv);

	if (status == VERB_HELP)
		return verb_usage(verb, stdout, 0);
	return status == VERB_MISUSED ? verb_usage(verb, stderr, 2) : status;
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return printf("weft %s\n", weft_version()) < 0;
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return usage(stdout, 0);
	for (size_t i = 0; argc > 1 && i < VERBS; i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return run_verb(&verbs[i], argc, argv);
	if (argc > 1)
		fprintf(stderr, "weft: unknown verb: %s\n\n", argv[1]);
	return usage(stderr, 2);
}
