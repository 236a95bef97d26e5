/* weft.c - the weft program: the first argument selects a verb. */
#include <stdio.h>
#include <string.h>
#include <weft/base.h>
#include "verbs.h"

static const struct args_verb *const verbs[] = {
#ifdef WEFT_HAS_JS
	&verb_run, &verb_eval,
#endif
	&verb_dag, &verb_demo, &verb_store, &verb_top,
};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static int
usage(FILE *to, int status)
{
	fputs("usage: weft VERB [ARGUMENT...]\n       weft --version | --help\n\n", to);
	for (size_t i = 0; i < VERBS; i++)
		fprintf(to, "  %-6s %s\n", verbs[i]->name, verbs[i]->summary);
	fputs("\nweft VERB --help lists the options of a verb.\n", to);
	return status;
}

int
main(int argc, char **argv)
{
	if (argc < 2)
		return usage(stderr, 2);
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return printf("weft %s\n", weft_version()) < 0;
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return usage(stdout, 0);
	for (size_t i = 0; i < VERBS; i++)
		if (strcmp(argv[1], verbs[i]->name) == 0)
			return verbs[i]->run(argc - 2, argv + 2);
	fprintf(stderr, "weft: unknown %s: %s\n\n", *argv[1] == '-' ? "option" : "verb", argv[1]);
	return usage(stderr, 2);
}
