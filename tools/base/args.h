/* args.h - command lines: one table per verb describes its options, and is also its help.
 *
 * scripts/man.py reads the same tables from the source and makes weft(1) from them.  So a table
 * contains string literals only, in the order of the members below.
 */
#ifndef WEFT_TOOLS_ARGS_H
#define WEFT_TOOLS_ARGS_H

#include <stdbool.h>
#include <stdint.h>

struct args_option;

/* Stores the value of an option; the value of a flag is NULL.  Returns NULL, or what is wrong
 * with the value. */
typedef const char *(*args_fn)(const struct args_option *option, const char *value);

struct args_option {
	const char *name;     /* with its dashes */
	const char *value;    /* what the help calls its value; NULL: it is a flag */
	const char *help;     /* lines with \n between them */
	args_fn read;
	void *out;
	uint64_t min, max;    /* for numbers */
	const char *commands; /* if the verb has commands: those with this option; NULL: all */
};

struct args_verb {
	const char *name;
	int (*run)(int argc, char **argv); /* gets the words after the verb; returns a status */
	const char *usage;                 /* what follows "weft ", one line for each form */
	const char *summary;               /* in the help of the program */
	const char *about;
	const struct args_option *options; /* the last one has no name; NULL: none */
	const char *notes;                 /* after the options; or NULL */
};

/* Readers: a bool that becomes true; a text that is not empty; a whole number from min to max in
 * a uint32_t or a uint64_t; a size_t with an optional suffix k, m or g. */
const char *args_flag(const struct args_option *option, const char *value);
const char *args_text(const struct args_option *option, const char *value);
const char *args_number(const struct args_option *option, const char *value);
const char *args_number64(const struct args_option *option, const char *value);
const char *args_size(const struct args_option *option, const char *value);

/* Store all options, and move the other words to the front of `argv`; options and words may be
 * mixed.  Returns the number of words.  After --help or an error it has printed a text and
 * returns a negative number: args_fail() of the exit status.  args_status() is the reverse. */
int args_read(const struct args_verb *verb, int argc, char **argv);
int args_fail(int status);
int args_status(int rc);

/* Print the help of the verb.  Returns an exit status. */
int args_help(const struct args_verb *verb);

/* Print what is wrong, and the usage of the verb, to standard error.  Returns the exit status. */
int args_misused(const struct args_verb *verb, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
