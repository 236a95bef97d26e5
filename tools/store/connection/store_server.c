/* store_server.c - opening, listening and closing. */
#include <assert.h>
#include <sys/random.h>
#include <time.h>
#include "store/connection/client.h"

#define STRING_MAX  ((size_t)512 << 20)
#define REQUEST_MAX ((size_t)1 << 30)

static int64_t
wall_clock_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A limit of 0 is the default.  Of some the default is the maximum: 0 - 1 is above it. */
static void
set_limits(struct weft_store *store, const weft_store_opts *opts)
{
	weft_store_opts *set = &store->opts;

	if (opts)
		*set = *opts;
	if (set->bulk_max - 1 >= STRING_MAX)
		set->bulk_max = STRING_MAX;
	if (set->request_max - 1 >= REQUEST_MAX)
		set->request_max = REQUEST_MAX;
	set->args_max = set->args_max ? set->args_max : 1u << 20;
	set->inline_max = set->inline_max ? set->inline_max : 64u << 10;
	set->output_max = set->output_max ? set->output_max : (size_t)256 << 20;
	set->clients_max = set->clients_max ? set->clients_max : 10000;
	store->limits = (struct reader_limits){ set->bulk_max, set->request_max, set->args_max,
		                                set->inline_max };
	if (set->password)
		store->password = string_new(
			&store->memory, (struct slice){ set->password, strlen(set->password) });
	set->password = NULL;
}

int
weft_store_open(weft_loop *loop, const weft_store_opts *opts, weft_store **out)
{
	struct weft_store *store;

	if (!loop)
		loop = weft_loop_current();
	if (!loop || !out)
		return weft_fail(WEFT_EINVAL, "weft_store_open: there is no loop, or out is NULL");
	store = weft_alloc(sizeof(*store));
	if (!store)
		return weft_fail(WEFT_ENOMEM, "weft_store_open: out of memory");
	memset(store, 0, sizeof(*store));
	store->loop = loop;
	set_limits(store, opts);
	if (getrandom(&store->memory.random, sizeof(uint64_t), 0) < 0)
		store->memory.random = weft_now();
	store->clock_ms = wall_clock_ms;
	store->start_ms = store->now_ms = wall_clock_ms();
	map_init(&store->keys, &store->memory, offsetof(struct key, name));
	map_init(&store->clients, &store->memory, offsetof(struct client, id));
	map_init(&store->awaited, &store->memory, offsetof(struct topic, name));
	map_init(&store->channels, &store->memory, offsetof(struct topic, name));
	map_init(&store->patterns, &store->memory, offsetof(struct topic, name));
	store->ready_end = &store->ready;
	store->refs = 1;
	*out = store;
	return 0;
}

/* --- listening -------------------------------------------------------------- */

static void
on_accept(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	struct weft_store *store = arg;

	(void)error;
	if (peer) {
		(void)weft_store_serve(store, peer);
		return;
	}
	for (size_t i = 0; i < LISTENERS_MAX; i++)
		if (store->listeners[i] == listener) { /* the loop is shutting down */
			store->listeners[i] = NULL;
			weft_listener_close(listener);
		}
	store_unref(store);
}

/* Any client that reaches the port of a store without a password can read and write everything. */
static int
check_exposure(const weft_store *store, const char *address, weft_listener *listener)
{
	weft_addr local;
	int rc = weft_listener_local(listener, &local);

	if (rc < 0 || store->password || store->opts.without_password || weft_addr_is_local(&local))
		return rc;
	return weft_fail(WEFT_EPERM,
	                 "weft_store_listen: %s is reachable from other machines: set a "
	                 "password, or allow clients without one",
	                 address);
}

int
weft_store_listen(weft_store *store, const char *address, weft_addr *bound)
{
	weft_listener_opts opts = {
		.connections_max = store->opts.clients_max + 64,
		.replace = true,
	};
	weft_listener *listener;
	size_t i = 0;
	int rc = weft_listener_open(address, &opts, &listener);

	if (rc < 0)
		return rc;
	while (i < LISTENERS_MAX && store->listeners[i])
		i++;
	rc = check_exposure(store, address, listener);
	if (rc == 0 && i == LISTENERS_MAX)
		rc = weft_fail(WEFT_EAGAIN, "weft_store_listen: too many addresses");
	if (rc == 0 && bound)
		rc = weft_listener_local(listener, bound);
	if (rc == 0)
		rc = weft_listener_start(listener, store->loop, on_accept, store);
	if (rc < 0) {
		weft_listener_close(listener);
		return rc;
	}
	store->listeners[i] = listener;
	store->refs++;
	return 0;
}

int
weft_store_serve(weft_store *store, weft_stream *stream)
{
	static const char full[] = "-ERR max number of clients reached\r\n";
	weft_go_opts opts = { .name = "store client", .loop = store->loop };
	weft_span span = { full, sizeof(full) - 1 };
	struct client *client;

	if (store->closing) {
		weft_stream_reset(stream);
		return weft_fail(WEFT_ESHUTDOWN, "weft_store_serve: the store is closing");
	}
	if (map_count(&store->clients) >= store->opts.clients_max) {
		(void)weft_stream_write_some(stream, &span, 1);
		weft_stream_close(stream);
		return weft_fail(WEFT_EAGAIN, "weft_store_serve: there are %u clients, the limit",
		                 store->opts.clients_max);
	}
	client = client_new(store);
	client->stream = stream;
	(void)weft_op_init(&client->input, store->loop, NULL, NULL);
	client->threadlet = weft_go_with(&opts, client_serve, client);
	if (client->threadlet < 0) {
		int rc = (int)client->threadlet;

		client_free(client);
		weft_stream_reset(stream);
		return rc;
	}
	store->refs++;
	return 0;
}

/* --- closing ---------------------------------------------------------------- */

size_t
store_free(struct weft_store *store)
{
	size_t leaked;

	while (map_count(&store->clients) > 0)
		client_free(map_at(&store->clients, 0));
	keys_clear(store);
	memory_free(&store->memory, store->password);
	leaked = store->memory.used + store->traffic.used;
	weft_release(store);
	return leaked;
}

void
store_unref(struct weft_store *store)
{
	weft_store_closed_fn on_closed = store->on_closed;
	void *arg = store->closed_arg;
	size_t leaked;

	if (--store->refs > 0)
		return;
	leaked = store_free(store);
	assert(leaked == 0);
	(void)leaked;
	if (on_closed)
		on_closed(arg);
}

void
weft_store_close(weft_store *store, weft_store_closed_fn on_closed, void *arg)
{
	if (!store)
		return;
	store->closing = true;
	store->on_closed = on_closed;
	store->closed_arg = arg;
	for (size_t i = 0; i < map_count(&store->clients); i++)
		client_drop(map_at(&store->clients, i));
	for (size_t i = 0; i < LISTENERS_MAX; i++) {
		weft_listener *listener = store->listeners[i];

		store->listeners[i] = NULL;
		weft_listener_close(listener);
	}
	store_unref(store);
}
