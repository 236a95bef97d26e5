/* store.c - weft store: the embedded store as a program. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

static struct program the_store;

static const char *
read_listen(const struct args_option *option, const char *value)
{
	(void)option;
	if (the_store.address_count == ADDRESSES_MAX)
		return "too many addresses";
	the_store.addresses[the_store.address_count++] = value;
	return NULL;
}

static const char *
read_password(const struct args_option *option, const char *name)
{
	const char *password = getenv(name);

	*(const char **)option->out = password;
	return password && *password ? NULL : "the variable is not set, or empty";
}

static const struct args_option options[] = {
	{ "--listen", "ADDRESS",
	  "tcp://HOST:PORT or unix:PATH, any number of them;\n"
	  "default tcp://127.0.0.1:6379",
	  read_listen, NULL, 0, 0, NULL },
	{ "--memory-max", "BYTES", "limit for data; above it, commands that add data fail with OOM",
	  args_size, &the_store.opts.memory_max, 0, 0, NULL },
	{ "--clients-max", "N", "default 10000", args_number, &the_store.opts.clients_max, 1,
	  UINT32_MAX / 2, NULL },
	{ "--output-max", "BYTES", "unread output, above which a client is dropped; default 256m",
	  args_size, &the_store.opts.output_max, 0, 0, NULL },
	{ "--bulk-max", "BYTES", "largest argument of a request; default 512m", args_size,
	  &the_store.opts.bulk_max, 0, 0, NULL },
	{ "--password-env", "NAME", "a variable with the password that AUTH must give",
	  read_password, &the_store.opts.password, 0, 0, NULL },
	{ "--without-password", NULL, "allow non-local addresses without a password", args_flag,
	  &the_store.opts.without_password, 0, 0, NULL },
	{ 0 },
};

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

static int
run_store(int argc, char **argv)
{
	int count = args_read(&verb_store, argc, argv);
	weft_loop *loop;

	if (count < 0)
		return args_status(count);
	if (count > 0)
		return args_misused(&verb_store, "unexpected argument");
	if (the_store.address_count == 0)
		the_store.addresses[the_store.address_count++] = "tcp://127.0.0.1:6379";
	loop = weft_loop_new(NULL);
	if (!loop || store_start(&the_store, loop) < 0) {
		fprintf(stderr, "weft store: %s\n", weft_detail());
		return 1;
	}
	if (weft_loop_run(loop) < 0)
		return 1;
	return weft_loop_free(loop) < 0;
}

const struct args_verb verb_store = {
	.name = "store",
	.run = run_store,
	.usage = "store [OPTION...]",
	.summary = "serve a small in-memory store that speaks the Redis protocol",
	.about = "A small store for demos and tests.  The commands that it has behave as those of\n"
		 "redis-server 7.0.  All data is in memory, and lost when it ends: nothing is\n"
		 "written to disk.  SIGTERM ends it.",
	.options = options,
	.notes = "BYTES may end with k, m or g.",
};
