/* args.c - command lines, read by a table of options.
 *
 * An error names the verb, the option and what is wrong, but not the value: it may be a password.
 */
#include "args.h"
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- values ------------------------------------------------------------------- */

const char *
args_flag(const struct args_option *option, const char *value)
{
	(void)value;
	*(bool *)option->out = true;
	return NULL;
}

const char *
args_text(const struct args_option *option, const char *value)
{
	*(const char **)option->out = value;
	return *value ? NULL : "the value is empty";
}

const char *
args_number64(const struct args_option *option, const char *value)
{
	static _Thread_local char wrong[80];
	size_t size = strlen(value);
	uint64_t number = strtoull(value, NULL, 10);

	if (size == 0 || size > 18 || strspn(value, "0123456789") != size || number < option->min
	    || number > option->max) {
		(void)snprintf(wrong, sizeof(wrong),
		               "the value must be a number from %" PRIu64 " to %" PRIu64,
		               option->min, option->max);
		return wrong;
	}
	*(uint64_t *)option->out = number;
	return NULL;
}

const char *
args_number(const struct args_option *option, const char *value)
{
	struct args_option wide = *option;
	uint64_t number;
	const char *wrong;

	wide.out = &number;
	wrong = args_number64(&wide, value);
	if (!wrong)
		*(uint32_t *)option->out = (uint32_t)number;
	return wrong;
}

const char *
args_size(const struct args_option *option, const char *value)
{
	static const char units[] = "kmg";
	char *end;
	unsigned long long number = strtoull(value, &end, 10);
	const char *unit = *end ? strchr(units, *end | 0x20) : NULL;
	unsigned shift = unit ? 10u * (unsigned)(unit - units + 1) : 0;

	if (*value < '0' || *value > '9' || (*end && (!unit || end[1]))
	    || number > SIZE_MAX >> shift)
		return "the value must be a number of bytes; it may end with k, m or g";
	*(size_t *)option->out = (size_t)number << shift;
	return NULL;
}

/* --- help --------------------------------------------------------------------- */

/* Prints lines; `indent` cells come before each but the first. */
static void
print_lines(FILE *to, const char *text, int indent, const char *prefix)
{
	for (const char *end; *text; text = end) {
		end = text + strcspn(text, "\n");
		fprintf(to, "%s%.*s\n", prefix, (int)(end - text), text);
		end += *end == '\n';
		if (*end)
			fprintf(to, "%*s", indent, "");
	}
}

static void
print_usage(const struct args_verb *verb, FILE *to)
{
	fputs("usage: ", to);
	print_lines(to, verb->usage, 7, "weft ");
}

static int
head_size(const struct args_option *option)
{
	return (int)(strlen(option->name) + (option->value ? strlen(option->value) + 1 : 0));
}

static void
print_options(const struct args_option *options)
{
	int widest = 0;

	for (const struct args_option *o = options; o->name; o++)
		widest = head_size(o) > widest ? head_size(o) : widest;
	putchar('\n');
	for (const struct args_option *o = options; o->name; o++) {
		printf("  %s %-*s  ", o->name, widest - (int)strlen(o->name) - 1,
		       o->value ? o->value : "");
		print_lines(stdout, o->help, widest + 4, "");
	}
}

int
args_help(const struct args_verb *verb)
{
	print_usage(verb, stdout);
	printf("\n%s\n", verb->about);
	if (verb->options)
		print_options(verb->options);
	if (verb->notes)
		printf("\n%s\n", verb->notes);
	return fflush(stdout) != 0;
}

int
args_misused(const struct args_verb *verb, const char *format, ...)
{
	va_list list;

	fprintf(stderr, "weft %s: ", verb->name);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputs("\n\n", stderr);
	print_usage(verb, stderr);
	fprintf(stderr, "weft %s --help prints more.\n", verb->name);
	return 2;
}

/* --- reading ------------------------------------------------------------------ */

int
args_fail(int status)
{
	return -1 - status;
}

int
args_status(int rc)
{
	return -1 - rc;
}

static const struct args_option *
args_find(const struct args_verb *verb, const char *name)
{
	for (const struct args_option *o = verb->options; o && o->name; o++)
		if (strcmp(o->name, name) == 0)
			return o;
	return NULL;
}

/* Reads the option in argv[0].  Returns the number of words it has, or an error. */
static int
read_option(const struct args_verb *verb, int argc, char **argv)
{
	const struct args_option *option = args_find(verb, argv[0]);
	const char *wrong;

	if (!option)
		return args_fail(args_misused(verb, "%s: unknown option", argv[0]));
	if (option->value && argc < 2)
		return args_fail(
			args_misused(verb, "%s: the value %s is missing", argv[0], option->value));
	wrong = option->read(option, option->value ? argv[1] : NULL);
	if (wrong)
		return args_fail(args_misused(verb, "%s: %s", argv[0], wrong));
	return option->value ? 2 : 1;
}

/* The first word is a command: it must have all options that were given. */
static int
check_commands(const struct args_verb *verb, uint64_t given, const char *command)
{
	for (size_t i = 0; given >> i; i++) {
		const struct args_option *option = &verb->options[i];

		if ((given >> i & 1) && option->commands && !strstr(option->commands, command))
			return args_fail(args_misused(verb, "%s: %s has no such option",
			                              option->name, command));
	}
	return 0;
}

int
args_read(const struct args_verb *verb, int argc, char **argv)
{
	uint64_t given = 0;
	ptrdiff_t index;
	int words = 0, rc;

	for (int i = 0; i < argc; i += rc) {
		rc = 1;
		if (strcmp(argv[i], "--help") == 0)
			return args_fail(args_help(verb));
		if (*argv[i] != '-') {
			argv[words++] = argv[i];
			continue;
		}
		rc = read_option(verb, argc - i, argv + i);
		if (rc < 0)
			return rc;
		index = args_find(verb, argv[i]) - verb->options;
		assert(index < 64); /* bits of `given` */
		given |= UINT64_C(1) << index;
	}
	rc = words > 0 ? check_commands(verb, given, argv[0]) : 0;
	return rc < 0 ? rc : words;
}
