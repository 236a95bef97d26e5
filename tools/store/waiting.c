/* waiting.c - clients that are blocked on keys, and how they are served.
 *
 * A request that finds nothing is kept, and its client is added to the topics of its keys.  When
 * one of these keys appears, the clients of its topic are retried in the order in which they
 * came, after the command that created the key, or after the whole transaction.
 */
#include "command.h"
#include "say.h"

void
client_wait_end(struct client *client)
{
	if (!(client->flags & CLIENT_BLOCKED))
		return;
	client->flags &= ~(uint32_t)CLIENT_BLOCKED;
	client->store->blocked_count--;
	interest_drop_all(client, &client->waits);
	(void)weft_timer_stop(&client->timer);
	request_free(&client->store->heap, client->waiting);
	client->waiting = NULL;
}

/* Requests that have arrived meanwhile run before the loop waits, not from here. */
static void
go_on_later(struct client *client)
{
	struct weft_store *store = client->store;

	if (client->in.size == 0 || (client->flags & CLIENT_RESUMES))
		return;
	client->flags |= CLIENT_RESUMES;
	client->next_resumed = NULL;
	*store->resumed_end = client;
	store->resumed_end = &client->next_resumed;
	client_dirty(client);
}

/* A resumed client may cause others to be resumed. */
void
store_resume(struct weft_store *store)
{
	while (store->resumed) {
		struct client *client = store->resumed;

		client_resume_end(client);
		client_go_on(client);
		if (client->stream)
			client_read_on(client);
	}
}

void
client_resume_end(struct client *client)
{
	struct weft_store *store = client->store;
	struct client **link = &store->resumed;

	if (!(client->flags & CLIENT_RESUMES))
		return;
	client->flags &= ~(uint32_t)CLIENT_RESUMES;
	while (*link != client)
		link = &(*link)->next_resumed;
	*link = client->next_resumed;
	if (!*link)
		store->resumed_end = link;
}

void
client_time_out(struct client *client, bool tell)
{
	if (tell)
		say_null_array(client);
	client_wait_end(client);
	go_on_later(client);
}

static void
on_timer(weft_timer *timer, void *arg)
{
	struct client *client = arg;
	struct weft_store *store = client->store;

	(void)timer;
	store->now_ms = store->clock_ms();
	client_time_out(client, true);
}

/* Keeps a copy of the current request. */
void
client_wait(struct client *client, const struct word *keys, size_t count, int64_t timeout_ms)
{
	struct weft_store *store = client->store;

	if (client->flags & CLIENT_RETRY)
		return;
	for (size_t i = 0; i < count; i++) {
		struct text *name = scoped_name(store, client->base, keys[i]);

		(void)interest_add(client, &client->waits, &store->blocked, text_word(name));
		text_free(&store->heap, name);
	}
	client->flags |= CLIENT_BLOCKED;
	store->blocked_count++;
	client->waiting = request_keep(&store->heap, client->command, client->reader.words,
	                               client->reader.count);
	if (timeout_ms > 0)
		(void)weft_timer_start(store->loop, &client->timer,
		                       weft_after((uint64_t)timeout_ms * WEFT_MS), 0, on_timer,
		                       client);
}

void
keys_ready(struct client *client, struct word name)
{
	struct weft_store *store = client->store;
	struct text *scoped;

	if (table_count(&store->blocked) == 0)
		return;
	scoped = scoped_name(store, client->base, name);
	if (!topic_find(&store->blocked, text_word(scoped))) {
		text_free(&store->heap, scoped);
		return;
	}
	if (store->ready_count == store->ready_room) {
		uint32_t room = store->ready_room ? store->ready_room * 2 : 8;

		store->ready = heap_resize(&store->heap, store->ready,
		                           store->ready_room * sizeof(*store->ready),
		                           room * sizeof(*store->ready));
		store->ready_room = room;
	}
	store->ready[store->ready_count++] = scoped;
}

/* Returns whether the client was served. */
static bool
try_again(struct client *client)
{
	size_t said = client->out.size;
	struct request *request = client->waiting;
	uint32_t silent = client->flags & (CLIENT_SILENT | CLIENT_SKIP);

	client->store->runs = client;
	client->flags |= CLIENT_RETRY;
	client->flags &= ~(uint32_t)(CLIENT_SILENT | CLIENT_SKIP);
	client->served = false;
	run_command(client, request->command, request->words, request->count);
	client->flags &= ~(uint32_t)CLIENT_RETRY;
	client->flags |= silent;
	if (!client->served) {
		client->out.size = said; /* the key has another type: keep waiting */
		return false;
	}
	if (silent)
		client->out.size = said;
	client_wait_end(client);
	go_on_later(client);
	return true;
}

/* Serves clients in the order in which they came; one that gets nothing is skipped. */
static void
serve_topic(struct weft_store *store, struct word name)
{
	struct topic *topic = topic_find(&store->blocked, name);
	uint32_t at = 0, tries = topic ? topic->count : 0;

	for (; topic && at < topic->count && tries > 0; tries--) {
		if (!try_again(topic->clients[at]))
			at++;
		topic = topic_find(&store->blocked, name);
	}
}

/* Serving may make other keys ready, by moving elements between lists. */
void
serve_ready(struct weft_store *store)
{
	for (uint32_t i = 0; i < store->ready_count; i++) {
		struct text *name = store->ready[i];

		serve_topic(store, text_word(name));
		text_free(&store->heap, name);
		if (store->own_count > 0)
			tracking_tell_own(store);
	}
	store->ready_count = 0;
}
