/* store_blocking.c - clients that are blocked on keys, and how they are served.
 *
 * A request that finds nothing is copied, and its client joins the topics of its keys.  When one
 * of these keys changes, the requests of the clients of its topic run again, in the order in
 * which the clients came, after the command that changed the key.
 */
#include "store/commands/commands.h"

#define TIMEOUT_MAX (INT64_MAX / (int64_t)(2 * WEFT_MS)) /* longer is as good as forever */

struct request {
	const struct command *command;
	size_t argc;
	struct slice argv[];
};

static struct request *
request_copy(const struct client *client)
{
	size_t head = sizeof(struct request) + client->argc * sizeof(struct slice), bytes = head;
	struct request *request;
	char *at;

	for (size_t i = 0; i < client->argc; i++)
		bytes += client->argv[i].size;
	request = memory_alloc(&client->store->memory, bytes);
	request->command = client->command;
	request->argc = client->argc;
	at = (char *)request + head;
	for (size_t i = 0; i < client->argc; i++) {
		struct slice arg = client->argv[i];

		request->argv[i] = (struct slice){ memcpy(at, arg.data, arg.size), arg.size };
		at += arg.size;
	}
	return request;
}

void
client_block(struct client *client, size_t first, size_t count, int64_t timeout_ms)
{
	if (client->flags & CLIENT_RETRY) {
		client->served = false;
		return;
	}
	for (size_t i = first; i < first + count; i++)
		topic_join(client, &client->awaited, &client->store->awaited, client->argv[i]);
	client->flags |= CLIENT_BLOCKED;
	client->store->blocked_count++;
	client->blocked = request_copy(client);
	if (timeout_ms > 0 && timeout_ms < TIMEOUT_MAX)
		client->deadline_ns = weft_after((uint64_t)timeout_ms * WEFT_MS);
}

void
client_unblock(struct client *client)
{
	if (!(client->flags & CLIENT_BLOCKED))
		return;
	client->flags &= ~(uint32_t)CLIENT_BLOCKED;
	client->store->blocked_count--;
	topic_leave_all(&client->awaited);
	client->deadline_ns = WEFT_NEVER;
	memory_free(&client->store->memory, client->blocked);
	client_wake(client); /* requests may have arrived meanwhile */
}

void
block_key_changed(struct weft_store *store, struct slice name)
{
	struct topic *topic = map_find(&store->awaited, name);

	if (!topic || topic->is_ready)
		return;
	topic->is_ready = true;
	topic->next_ready = NULL;
	*store->ready_end = topic;
	store->ready_end = &topic->next_ready;
}

/* Runs a blocked request again. */
static void
block_retry(struct client *client)
{
	size_t written = client->out.size;
	struct request *request = client->blocked;

	if (client->flags & CLIENT_CLOSING)
		return;
	client->served = true;
	client->flags |= CLIENT_RETRY;
	command_run(client, request->command, request->argv, request->argc);
	client->flags &= ~(uint32_t)CLIENT_RETRY;
	if (!client->served) {
		client->out.size = written;
		return;
	}
	if (client->input.pending && !client->resuming) {
		client->resuming = true;
		client->store->resuming++;
	}
	client_unblock(client);
}

/* A client that is served leaves the topic, which stays in the list meanwhile. */
void
block_serve(struct weft_store *store)
{
	while (store->ready) {
		struct topic *topic = store->ready;

		for (struct interest *interest = topic->first, *next; interest; interest = next) {
			next = interest->next;
			block_retry(interest->client);
		}
		store->ready = topic->next_ready;
		if (!store->ready)
			store->ready_end = &store->ready;
		topic->is_ready = false;
		topic_release(topic);
	}
}
