/* store.c - opening, listening and closing. */
#include <assert.h>
#include <sys/random.h>
#include <time.h>
#include "command.h"
#include "say.h"

#define EXPIRY_NS    (100 * WEFT_MS)
#define TRACKING_MAX ((size_t)64 << 20)

static int64_t
wall_clock_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void
set_seed(struct heap *heap, uint64_t seed)
{
	uint64_t drawn[2] = { seed, seed ^ UINT64_C(0x5bd1e995a7c6f3d1) };

	if (!seed && getrandom(drawn, sizeof(drawn), 0) != (ssize_t)sizeof(drawn))
		drawn[0] = drawn[1] = weft_now();
	heap->seed = drawn[0];
	heap->drawn = drawn[1];
}

static size_t
size_or(size_t given, size_t usual, size_t most)
{
	if (given == 0)
		return usual;
	return given < most ? given : most;
}

static size_t
tracking_default(const weft_store_opts *opts)
{
	size_t part = opts->memory_max / 16;

	return part > 0 && part < TRACKING_MAX ? part : TRACKING_MAX;
}

static void
set_limits(struct weft_store *store, const weft_store_opts *opts)
{
	weft_store_opts *set = &store->opts;

	if (opts)
		*set = *opts;
	set->bulk_max = size_or(set->bulk_max, TEXT_MAX, TEXT_MAX);
	set->request_max = size_or(set->request_max, (size_t)1 << 30, (size_t)1 << 30);
	set->words_max = set->words_max ? set->words_max : 1u << 20;
	set->inline_max = set->inline_max ? set->inline_max : 64u << 10;
	set->output_max = size_or(set->output_max, (size_t)256 << 20, SIZE_MAX);
	set->clients_max = set->clients_max ? set->clients_max : 10000;
	set->tracking_max = size_or(set->tracking_max, tracking_default(set), SIZE_MAX);
	store->limits = (struct reader_limits){ set->bulk_max, set->request_max, set->words_max,
		                                set->inline_max };
}

static void
init_tables(struct weft_store *store)
{
	for (uint32_t i = 0; i < BASES; i++)
		base_init(&store->bases[i], &store->heap, i);
	topics_init(&store->channels, &store->heap);
	topics_init(&store->patterns, &store->heap);
	topics_init(&store->watched, &store->heap);
	topics_init(&store->blocked, &store->heap);
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
		return weft_fail(WEFT_ENOMEM, "store: out of memory");
	memset(store, 0, sizeof(*store));
	store->loop = loop;
	set_limits(store, opts);
	set_seed(&store->heap, store->opts.seed);
	if (store->opts.password)
		store->password = text_new(
			&store->heap,
			(struct word){ store->opts.password, strlen(store->opts.password) });
	store->opts.password = NULL;
	store->clock_ms = wall_clock_ms;
	store->start_ms = store->now_ms = wall_clock_ms();
	init_tables(store);
	store->resumed_end = &store->resumed;
	store->flush.fn = store_flush;
	store->flush.arg = store;
	store->held = 1;
	*out = store;
	return 0;
}

/* --- expiry ----------------------------------------------------------------- */

static void
on_expiry(weft_timer *timer, void *arg)
{
	struct weft_store *store = arg;
	uint32_t mortal = 0;
	bool more;

	store->now_ms = store->clock_ms();
	more = !store->lazy && keys_expire_some(store);
	for (uint32_t i = 0; i < BASES; i++)
		mortal += store->bases[i].mortal_count;
	store->expires = mortal > 0
	                 && weft_timer_start(store->loop, timer,
	                                     more ? WEFT_NOWAIT : weft_after(EXPIRY_NS), 0,
	                                     on_expiry, store)
	                            == 0;
}

/* A store without expiring keys has no timer, so it causes no wakeups. */
void
store_expires(struct weft_store *store)
{
	if (store->expires)
		return;
	weft_timer_set_background(&store->expiry, true);
	store->expires = weft_timer_start(store->loop, &store->expiry, weft_after(EXPIRY_NS), 0,
	                                  on_expiry, store)
	                 == 0;
}

/* --- listening -------------------------------------------------------------- */

static void
on_accept(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	struct listening *listening = arg, **link;
	struct weft_store *store = listening->store;

	(void)error;
	if (peer) {
		if (store->closing)
			weft_stream_reset(peer);
		else
			(void)store_accept(store, peer);
		return;
	}
	link = &store->listening;
	while (*link && *link != listening)
		link = &(*link)->next;
	if (*link) { /* the loop is shutting down */
		*link = listening->next;
		weft_listener_close(listener);
	}
	heap_give(&store->heap, listening, sizeof(*listening));
	store_leave(store);
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
	struct listening *listening;
	weft_listener *listener;
	int rc = weft_listener_open(address, &opts, &listener);

	if (rc < 0)
		return rc;
	rc = check_exposure(store, address, listener);
	if (rc == 0 && bound)
		rc = weft_listener_local(listener, bound);
	listening = heap_new(&store->heap, sizeof(*listening));
	*listening = (struct listening){ store, listener, store->listening };
	if (rc == 0)
		rc = weft_listener_start(listener, store->loop, on_accept, listening);
	if (rc < 0) {
		weft_listener_close(listener);
		heap_give(&store->heap, listening, sizeof(*listening));
		return rc;
	}
	store->listening = listening;
	store->held++;
	return 0;
}

int
weft_store_serve(weft_store *store, weft_stream *stream)
{
	if (store->closing) {
		weft_stream_reset(stream);
		return weft_fail(WEFT_ESHUTDOWN, "weft_store_serve: the store is closing");
	}
	return store_accept(store, stream);
}

/* --- closing ---------------------------------------------------------------- */

static void
free_tables(struct weft_store *store)
{
	for (uint32_t i = 0; i < BASES; i++)
		base_fini(&store->bases[i]);
	tracking_fini(store);
	if (store->ids.heap)
		table_clear(&store->ids, NULL, NULL);
	table_clear(&store->channels, NULL, NULL);
	table_clear(&store->patterns, NULL, NULL);
	table_clear(&store->watched, NULL, NULL);
	table_clear(&store->blocked, NULL, NULL);
}

size_t
store_free(struct weft_store *store)
{
	struct heap *heap = &store->heap;
	size_t lost;

	while (store->clients)
		client_free(store->clients);
	free_tables(store);
	while (store->spare_count > 0) {
		struct buffer *spare = &store->spare[--store->spare_count];

		heap_give(&store->traffic, spare->data, spare->room);
	}
	heap_give(heap, store->ready, store->ready_room * sizeof(*store->ready));
	heap_give(heap, store->own, store->own_room * sizeof(*store->own));
	text_free(heap, store->password);
	(void)weft_timer_stop(&store->expiry);
	lost = heap->used + store->traffic.used;
	weft_release(store);
	return lost;
}

void
store_end(struct weft_store *store)
{
	weft_store_closed_fn on_closed = store->on_closed;
	void *arg = store->closed_arg;
	size_t lost = store_free(store);

	assert(lost == 0);
	(void)lost;
	if (on_closed)
		on_closed(arg);
}

/* Must be the last action of the caller, because it may free the store.  If the flush is queued,
 * that frees it instead. */
void
store_leave(struct weft_store *store)
{
	if (--store->held == 0 && !store->flushes)
		store_end(store);
}

void
weft_store_close(weft_store *store, weft_store_closed_fn on_closed, void *arg)
{
	if (!store)
		return;
	store->closing = true;
	store->on_closed = on_closed;
	store->closed_arg = arg;
	for (struct client *client = store->clients; client; client = client->next) {
		client->flags |= CLIENT_DOOMED;
		client_dirty(client);
	}
	while (store->listening) {
		struct listening *listening = store->listening;

		store->listening = listening->next;
		weft_listener_close(listening->listener);
	}
	store_leave(store);
}
