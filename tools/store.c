/* store.c - weft store: the embedded store as a program. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>
#include "store/store.h"
#include "verbs.h"

#define ADDRESSES_MAX 16

struct program {
	weft_store_opts opts;
	const char *addresses[ADDRESSES_MAX];
	size_t address_count;
	weft_store *store;
	weft_watch watches[2];
};

static const char help[] =
	"usage: weft store [OPTION...]\n"
	"\n"
	"A small store that is compatible with redis-server 7.0.  All data is in memory,\n"
	"and lost when it ends: nothing is written to disk.  SIGTERM ends it.\n"
	"\n"
	"  --listen ADDRESS     tcp://HOST:PORT or unix:PATH, any number of them;\n"
	"                       default tcp://127.0.0.1:6379\n"
	"  --memory-max BYTES   limit for data; above it, commands that add data fail with OOM\n"
	"  --clients-max N      default 10000\n"
	"  --output-max BYTES   unread output, above which a client is dropped; default 256m\n"
	"  --bulk-max BYTES     largest argument of a request; default 512m\n"
	"  --password-env NAME  a variable with the password that AUTH must give\n"
	"  --without-password   allow non-local addresses without a password\n"
	"  --tracking-max BYTES memory for client tracking; default 64m\n"
	"  --debug              allow DEBUG, which can block the store\n"
	"\n"
	"BYTES may end with k, m or g.\n";

/* Parses a number with an optional suffix k, m or g.  Returns false if it is not valid. */
static bool
read_size(const char *text, size_t *out)
{
	static const char units[] = "kmg";
	char *end;
	unsigned long long number = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end | 0x20) : NULL;
	unsigned shift = unit ? 10u * (unsigned)(unit - units + 1) : 0;

	if (end == text || *text == '-' || (*end && (!unit || end[1]))
	    || number > SIZE_MAX >> shift)
		return false;
	*out = (size_t)number << shift;
	return true;
}

static bool
store_read_number(const char *text, uint32_t *out)
{
	size_t number;

	if (!read_size(text, &number) || number == 0 || number > UINT32_MAX / 2)
		return false;
	*out = (uint32_t)number;
	return true;
}

static bool
read_password(const char *name, const char **out)
{
	*out = getenv(name);
	return *out && **out;
}

/* Returns false if the option or its value is not valid. */
static bool
read_option(struct program *program, const char *name, const char *value)
{
	weft_store_opts *opts = &program->opts;

	if (strcmp(name, "--listen") == 0) {
		if (program->address_count == ADDRESSES_MAX)
			return false;
		program->addresses[program->address_count++] = value;
		return true;
	}
	if (strcmp(name, "--memory-max") == 0)
		return read_size(value, &opts->memory_max);
	if (strcmp(name, "--clients-max") == 0)
		return store_read_number(value, &opts->clients_max);
	if (strcmp(name, "--output-max") == 0)
		return read_size(value, &opts->output_max);
	if (strcmp(name, "--bulk-max") == 0)
		return read_size(value, &opts->bulk_max);
	if (strcmp(name, "--tracking-max") == 0)
		return read_size(value, &opts->tracking_max);
	if (strcmp(name, "--password-env") == 0)
		return read_password(value, &opts->password);
	return false;
}

/* Returns false if it is not an option without a value. */
static bool
read_switch(struct program *program, const char *name)
{
	if (strcmp(name, "--debug") == 0)
		program->opts.debug = true;
	else if (strcmp(name, "--without-password") == 0)
		program->opts.without_password = true;
	else
		return false;
	return true;
}

static bool
store_read_options(struct program *program, int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (read_switch(program, argv[i]))
			continue;
		if (i + 1 == argc || !read_option(program, argv[i], argv[i + 1])) {
			/* The value is not printed: it may be a password. */
			fprintf(stderr,
			        "weft store: %s: unknown option, or missing or invalid value\n\n",
			        argv[i]);
			return false;
		}
		i++;
	}
	if (program->address_count == 0)
		program->addresses[program->address_count++] = "tcp://127.0.0.1:6379";
	return true;
}

static void
store_on_signal(weft_watch *watch, int what, void *arg)
{
	struct program *program = arg;

	(void)watch, (void)what;
	for (int i = 0; i < 2; i++)
		(void)weft_watch_stop(&program->watches[i]);
	weft_store_close(program->store, NULL, NULL);
	program->store = NULL;
}

/* Prints each address once the store listens on it. */
static int
listen_at(struct program *program, const char *address)
{
	char text[WEFT_ADDR_TEXT_MAX];
	weft_addr bound;
	int rc = weft_store_listen(program->store, address, &bound);

	if (rc < 0)
		return rc;
	if (weft_addr_format(&bound, text, sizeof(text)) < 0)
		(void)snprintf(text, sizeof(text), "%s", address);
	printf("weft store: %s, in memory only\n", text);
	return 0;
}

static int
store_start(struct program *program, weft_loop *loop)
{
	int rc = weft_store_open(loop, &program->opts, &program->store);

	for (size_t i = 0; i < program->address_count && rc == 0; i++)
		rc = listen_at(program, program->addresses[i]);
	if (rc == 0)
		rc = weft_watch_start_signal(loop, &program->watches[0], SIGTERM, store_on_signal,
		                             program);
	if (rc == 0)
		rc = weft_watch_start_signal(loop, &program->watches[1], SIGINT, store_on_signal,
		                             program);
	fflush(stdout);
	return rc;
}

int
verb_store(int argc, char **argv)
{
	static struct program program;
	weft_loop *loop;

	if (argc == 3 && strcmp(argv[2], "--help") == 0)
		return fputs(help, stdout) < 0;
	if (!store_read_options(&program, argc, argv)) {
		fputs(help, stderr);
		return 2;
	}
	loop = weft_loop_new(NULL);
	if (!loop || store_start(&program, loop) < 0) {
		fprintf(stderr, "weft store: %s\n", weft_detail());
		return 1;
	}
	if (weft_loop_run(loop) < 0)
		return 1;
	return weft_loop_free(loop) < 0;
}
