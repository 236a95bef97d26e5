/* client.c - a client: receives bytes, runs requests, collects replies. */
#include <assert.h>
#include "command.h"
#include "say.h"

#define HIGH ((size_t)256 << 10) /* with more unread output than this, requests wait */
#define KEEP ((size_t)64 << 10)  /* unused */

struct id_node {
	struct node node;
	struct client *client;
	uint64_t id;
};

static void
add_id(struct client *client)
{
	struct weft_store *store = client->store;
	struct id_node *node = heap_take(&store->heap, sizeof(*node));

	client->id = node->id = ++store->last_id;
	node->client = client;
	table_add(&store->ids, &node->node, sizeof(node->id));
	client->by_id = &node->node;
}

struct client *
client_by_id(const struct weft_store *store, uint64_t id)
{
	struct node *node = table_find(&store->ids, (struct word){ (const char *)&id, sizeof(id) });

	return node ? ((struct id_node *)(void *)node)->client : NULL;
}

static void
link_client(struct client *client)
{
	struct weft_store *store = client->store;

	client->next = store->clients;
	if (client->next)
		client->next->before = client;
	store->clients = client;
	store->client_count++;
}

static void
unlink_client(struct client *client)
{
	struct weft_store *store = client->store;

	if (client->before)
		client->before->next = client->next;
	else
		store->clients = client->next;
	if (client->next)
		client->next->before = client->before;
	store->client_count--;
}

struct client *
client_new(struct weft_store *store)
{
	struct client *client = heap_new(&store->heap, sizeof(*client));

	if (!store->ids.heap)
		table_init(&store->ids, &store->heap, offsetof(struct id_node, id));
	client->store = store;
	client->base = &store->bases[0];
	client->protocol = 2;
	client->queued_end = &client->queued;
	client->since_ms = client->active_ms = store->now_ms;
	reader_init(&client->reader, &store->traffic);
	if (!store->password)
		client->flags |= CLIENT_KNOWN;
	client->reader.is_stranger = store->password != NULL;
	interests_init(&client->channels, &store->heap);
	interests_init(&client->patterns, &store->heap);
	interests_init(&client->watches, &store->heap);
	interests_init(&client->waits, &store->heap);
	add_id(client);
	link_client(client);
	store->stats.connections++;
	return client;
}

static void
free_text(struct heap *heap, struct text **text)
{
	text_free(heap, *text);
	*text = NULL;
}

void
client_reset(struct client *client)
{
	struct heap *heap = &client->store->heap;

	client_wait_end(client);
	multi_end(client);
	interest_drop_all(client, &client->channels);
	interest_drop_all(client, &client->patterns);
	client->flags &= ~(uint32_t)(CLIENT_TRACKS | CLIENT_NOLOOP | CLIENT_OPTIN | CLIENT_OPTOUT
	                             | CLIENT_CACHING | CLIENT_SILENT | CLIENT_SKIP | CLIENT_SKIPS);
	client->redirect = 0;
	client->base = &client->store->bases[0];
	client->protocol = 2;
	free_text(heap, &client->name);
	if (client->store->password)
		client->flags &= ~(uint32_t)CLIENT_KNOWN;
}

static void
undirty(struct client *client)
{
	struct client **link = &client->store->dirty;

	if (!(client->flags & CLIENT_DIRTY))
		return;
	while (*link != client)
		link = &(*link)->next_dirty;
	*link = client->next_dirty;
}

void
client_free(struct client *client)
{
	struct heap *heap = &client->store->heap;

	client_reset(client);
	tracking_forget(client);
	(void)weft_timer_stop(&client->timer);
	client_resume_end(client);
	undirty(client);
	unlink_client(client);
	table_remove(&client->store->ids, client->by_id);
	heap_give(heap, client->by_id, sizeof(struct id_node));
	reader_fini(&client->reader);
	heap_give(&client->store->traffic, client->in.data, client->in.room);
	heap_give(&client->store->traffic, client->out.data, client->out.room);
	heap_give(&client->store->traffic, client->flying.data, client->flying.room);
	free_text(heap, &client->library);
	free_text(heap, &client->library_version);
	heap_give(heap, client, sizeof(*client));
}

/* --- requests --------------------------------------------------------------- */

bool
client_waits(const struct client *client)
{
	if (client->flags & (CLIENT_BLOCKED | CLIENT_DOOMED | CLIENT_LAST))
		return true;
	return client->stream && client->out.size + client->flying.size > HIGH;
}

static void
store_client_refuse(struct client *client)
{
	say_error(client, "ERR Protocol error: %s", client->reader.wrong);
	client->flags |= CLIENT_LAST;
	client_dirty(client);
}

/* Returns how many bytes were consumed. */
static size_t
run_all(struct client *client, const char *data, size_t size)
{
	struct reader *reader = &client->reader;
	size_t used = 0;

	while (used < size && !client_waits(client)) {
		ssize_t whole = reader_next(reader, &client->store->limits, data + used,
		                            size - used);

		if (whole == 0)
			break;
		if (whole < 0) {
			store_client_refuse(client);
			break;
		}
		run_request(client, reader->words, reader->count);
		reader_reset(reader);
		used += (size_t)whole;
	}
	return client->flags & (CLIENT_DOOMED | CLIENT_LAST) ? size : used;
}

/* Doubles the buffer, based on what has arrived. */
static void
store_client_keep(struct client *client, const char *data, size_t size)
{
	struct heap *heap = &client->store->traffic;
	struct buffer *in = &client->in;
	size_t need = in->size + size, room = need < 1024 ? 1024 : need * 2;

	if (need > in->room) {
		const char *old = in->data;

		in->data = heap_resize(heap, in->data, in->room, room);
		in->room = room;
		if (in->size > 0)
			reader_moved(&client->reader, old, in->data);
	}
	if (in->size == 0)
		reader_moved(&client->reader, data, in->data);
	memcpy(in->data + in->size, data, size);
	in->size = need;
}

static void
drop_input(struct client *client)
{
	struct buffer *in = &client->in;

	in->size = 0;
	heap_give(&client->store->traffic, in->data, in->room);
	*in = (struct buffer){ 0 };
}

void
client_go_on(struct client *client)
{
	struct buffer *in = &client->in;
	size_t used;

	if (in->size == 0
	    || (client_waits(client) && !(client->flags & (CLIENT_DOOMED | CLIENT_LAST))))
		return;
	used = run_all(client, in->data, in->size);
	if (used == in->size) {
		drop_input(client);
		return;
	}
	if (used == 0)
		return;
	memmove(in->data, in->data + used, in->size - used);
	in->size -= used;
	reader_moved(&client->reader, in->data + used, in->data);
}

void
client_feed(struct client *client, const char *data, size_t size)
{
	size_t used;

	client->active_ms = client->store->now_ms = client->store->clock_ms();
	client->store->stats.in_bytes += size;
	if (client->in.size > 0) {
		store_client_keep(client, data, size);
		client_go_on(client);
		return;
	}
	used = run_all(client, data, size);
	if (used < size)
		store_client_keep(client, data + used, size - used);
}
