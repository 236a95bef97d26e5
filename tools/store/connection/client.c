/* client.c - a client: from bytes to requests, and from replies to bytes.
 *
 * Each connection has a threadlet.  It runs the requests that have arrived, writes their replies,
 * and then waits for more bytes.  While it writes, or while its client is blocked, requests wait
 * in the read queue of the stream.  A message from another client ends the wait for bytes.
 */
#include "store/connection/client.h"
#include "store/commands/commands.h"

#define OUT_HIGH ((size_t)256 << 10) /* above this output is written before more requests run */
#define READ_MAX ((size_t)64 << 10)  /* of the read queue, unless one request is larger */

struct client *
client_new(struct weft_store *store)
{
	struct client *client;
	char id[8];

	bytes_put(id, ++store->last_id);
	client = map_add(&store->clients, (struct slice){ id, 8 });
	client->store = store;
	client->protocol = 2;
	client->deadline_ns = WEFT_NEVER;
	client->read_max = READ_MAX;
	client->reader.memory = &store->traffic;
	client->reader.need = 1;
	client->reader.unauthenticated = store->password != NULL;
	if (!store->password)
		client->flags |= CLIENT_AUTHENTICATED;
	map_init(&client->channels, &store->memory, offsetof(struct interest, name));
	map_init(&client->patterns, &store->memory, offsetof(struct interest, name));
	map_init(&client->awaited, &store->memory, offsetof(struct interest, name));
	return client;
}

void
client_reset(struct client *client)
{
	client_unblock(client);
	topic_leave_all(&client->channels);
	topic_leave_all(&client->patterns);
	client->protocol = 2;
	if (client->store->password)
		client->flags &= ~(uint32_t)CLIENT_AUTHENTICATED;
}

void
client_free(struct client *client)
{
	struct weft_store *store = client->store;

	client_reset(client);
	reader_clear(&client->reader);
	memory_free(&store->traffic, client->out.data);
	map_remove(&store->clients, client);
}

void
client_wake(struct client *client)
{
	if (client->input.pending)
		weft_op_cancel(&client->input);
}

void
client_drop(struct client *client)
{
	client->flags |= CLIENT_CLOSING;
	(void)weft_cancel(client->threadlet);
}

size_t
client_run(struct client *client, const char *data, size_t size)
{
	const uint32_t waits = CLIENT_BLOCKED | CLIENT_CLOSING | CLIENT_LAST;
	struct weft_store *store = client->store;
	size_t used = 0;

	store->now_ms = store->clock_ms();
	client->reader.need = 1;
	while (used < size && !(client->flags & waits) && client->out.size <= OUT_HIGH) {
		ssize_t whole = reader_next(&client->reader, &store->limits, data + used,
		                            size - used);

		if (whole == 0)
			break;
		if (whole < 0) {
			reply_error(client, "ERR Protocol error: %s", client->reader.error);
			client->flags |= CLIENT_LAST;
			break;
		}
		commands_run(client, client->reader.argv, client->reader.argc);
		client->reader.need = 1;
		used += (size_t)whole;
	}
	return used;
}

/* --- connections ------------------------------------------------------------ */

/* Runs the requests that have arrived.  Returns how many bytes they had. */
static size_t
run_arrived(struct client *client)
{
	const void *data;
	ssize_t size = weft_stream_peek(client->stream, client->reader.need, &data, WEFT_NOWAIT);
	size_t used = size > 0 ? client_run(client, data, (size_t)size) : 0;

	(void)weft_stream_skip(client->stream, used);
	return used;
}

static bool
write_output(struct client *client)
{
	char *data = client->out.data;
	ssize_t written;

	client->unwritten = client->out.size;
	memset(&client->out, 0, sizeof(client->out));
	written = weft_stream_write(client->stream, data, client->unwritten, WEFT_NEVER);
	client->unwritten = 0;
	memory_free(&client->store->traffic, data);
	return written >= 0;
}

/* Waits for the next request, or for a wake.  If the client is blocked, any byte ends the wait,
 * because the end of the stream must; once the read queue is full, the end is not noticed.
 * Returns false at the end of the stream or on an error. */
static bool
wait_for_input(struct client *client)
{
	bool blocked = client->flags & CLIENT_BLOCKED;
	size_t min = blocked ? client->arrived + 1 : client->reader.need;
	size_t read_max = blocked || min < READ_MAX ? READ_MAX : min;
	int64_t result;

	if (client->read_max != read_max)
		(void)weft_stream_set(client->stream, "read_max", (int64_t)read_max);
	client->read_max = read_max;
	if (weft_stream_peek_op(client->stream, min, &client->input, client->deadline_ns) == 0)
		result = weft_op_wait(&client->input, WEFT_NEVER);
	else if (blocked && weft_op_sleep(&client->input, client->deadline_ns) == 0)
		result = weft_op_wait(&client->input, WEFT_NEVER) < 0 ? WEFT_ECANCELED
		                                                      : WEFT_ETIMEDOUT;
	else
		return false;
	client->store->resuming -= client->resuming;
	client->resuming = false;
	if (result == WEFT_ETIMEDOUT && (client->flags & CLIENT_BLOCKED)) {
		reply_null_array(client);
		client_unblock(client);
	}
	client->arrived = blocked && result > 0 ? (size_t)result : 0;
	if (result == WEFT_ECANCELED)
		return weft_check_canceled() == 0;
	return result == WEFT_ETIMEDOUT || result >= (int64_t)min;
}

int
client_serve(void *arg)
{
	struct client *client = arg;
	struct weft_store *store = client->store;
	bool is_open = true;

	while (is_open && !(client->flags & CLIENT_CLOSING)) {
		size_t used = run_arrived(client);

		while (store->resuming > 0 && weft_yield() == 0)
			; /* their next requests run before ours */
		if (client->out.size > 0)
			is_open = write_output(client);
		else if (client->flags & CLIENT_LAST)
			break;
		else if (used == 0)
			is_open = wait_for_input(client);
	}
	if (client->flags & CLIENT_CLOSING)
		weft_stream_reset(client->stream);
	else
		weft_stream_close(client->stream);
	client_free(client);
	store_unref(store);
	return 0;
}
