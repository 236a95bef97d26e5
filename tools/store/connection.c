/* connection.c - the streams of clients: input, and one write for all replies.
 *
 * The replies of a loop iteration are written before the loop waits.  While a write is in
 * progress, new replies are collected in the other buffer.  A stream is not read while its
 * client's requests wait and much input is buffered.
 */
#include <assert.h>
#include "command.h"
#include "say.h"

#define AHEAD ((size_t)64 << 10) /* buffered input, above which the stream is paused */
#define SLAB  16384u

/* --- writing ---------------------------------------------------------------- */

void
client_dirty(struct client *client)
{
	struct weft_store *store = client->store;

	if (client->flags & CLIENT_DIRTY)
		return;
	client->flags |= CLIENT_DIRTY;
	client->next_dirty = store->dirty;
	store->dirty = client;
	if (!client->stream || store->flushes)
		return;
	store->flushes = true;
	(void)weft_loop_post_before_wait(store->loop, &store->flush);
}

/* Buffers of the usual size are kept for reuse. */
static void
recycle(struct weft_store *store, struct buffer *buffer)
{
	size_t most = sizeof(store->spare) / sizeof(store->spare[0]);

	if (buffer->room == SLAB && store->spare_count < most) {
		buffer->size = 0;
		store->spare[store->spare_count++] = *buffer;
	} else {
		heap_give(&store->traffic, buffer->data, buffer->room);
	}
	*buffer = (struct buffer){ 0 };
}

/* Drops the connection; the client is freed when the stream has closed. */
static void
connection_drop(struct client *client)
{
	weft_stream *stream = client->stream;

	client->stream = NULL;
	client->flags |= CLIENT_DOOMED;
	client_reset(client);
	weft_stream_reset(stream);
}

static void
part(struct client *client)
{
	weft_stream *stream = client->stream;

	client->stream = NULL;
	client->flags |= CLIENT_DOOMED;
	client_reset(client);
	weft_stream_close(stream);
}

static void
flush(struct client *client)
{
	if (!client->stream)
		return;
	if (client->flags & CLIENT_DOOMED) {
		connection_drop(client);
		return;
	}
	if (client->flags & CLIENT_WRITES)
		return;
	if (client->out.size == 0) {
		if (client->flags & CLIENT_LAST)
			part(client);
		return;
	}
	client->flying = client->out;
	client->out = (struct buffer){ 0 };
	client->span = (weft_span){ client->flying.data, client->flying.size };
	client->flags |= CLIENT_WRITES;
	client->store->stats.out_bytes += client->flying.size;
	if (weft_stream_write_op(client->stream, &client->span, 1, &client->write, WEFT_NEVER)
	    < 0) {
		client->flags &= ~(uint32_t)CLIENT_WRITES;
		connection_drop(client);
	}
}

void
store_flush(void *arg)
{
	struct weft_store *store = arg;

	store->flushes = false;
	if (store->resumed) {
		store->now_ms = store->clock_ms();
		store_resume(store);
	}
	while (store->dirty) {
		struct client *client = store->dirty;

		store->dirty = client->next_dirty;
		client->flags &= ~(uint32_t)CLIENT_DIRTY;
		flush(client);
	}
	if (store->held == 0)
		store_end(store);
}

/* --- reading ---------------------------------------------------------------- */

static void on_data(weft_stream *stream, const void *data, ssize_t size, void *arg);
static void on_close(void *arg);

static const weft_stream_events events = { .on_data = on_data, .on_close = on_close };

void
client_read_on(struct client *client)
{
	if (!(client->flags & CLIENT_PAUSED) || client_waits(client))
		return;
	client->flags &= ~(uint32_t)CLIENT_PAUSED;
	if (weft_stream_start(client->stream, NULL, &events, client) < 0)
		connection_drop(client);
}

static void
on_written(weft_op *op, int64_t result, void *arg)
{
	struct client *client = arg;

	(void)op;
	client->flags &= ~(uint32_t)CLIENT_WRITES;
	recycle(client->store, &client->flying);
	if (!client->stream)
		return;
	if (result < 0) {
		connection_drop(client);
		return;
	}
	if (client->in.size > 0) {
		client->store->now_ms = client->store->clock_ms();
		client_go_on(client);
	}
	if ((client->flags & CLIENT_ENDED) && !client_waits(client))
		client->flags |= CLIENT_LAST;
	flush(client);
	if (client->stream)
		client_read_on(client);
}

/* The peer has closed its sending side: replies to its requests are still written, unless it is
 * blocked on a key. */
static void
connection_on_end(struct client *client, ssize_t error)
{
	if (error < 0 || (client->flags & CLIENT_BLOCKED)) {
		connection_drop(client);
		return;
	}
	client->flags |= CLIENT_ENDED;
	if (client->in.size == 0 || !client_waits(client))
		client->flags |= CLIENT_LAST;
	flush(client);
}

static void
on_data(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct client *client = arg;

	if (!client->stream)
		return;
	if (size <= 0) {
		connection_on_end(client, size);
		return;
	}
	client_feed(client, data, (size_t)size);
	if (!client->stream)
		return;
	(void)weft_stream_skip(stream, (size_t)size);
	if (client->in.size > AHEAD && client_waits(client)) {
		client->flags |= CLIENT_PAUSED;
		(void)weft_stream_stop(stream);
	}
}

static void
on_close(void *arg)
{
	struct client *client = arg;
	struct weft_store *store = client->store;

	client->stream = NULL;
	client_free(client);
	store_leave(store);
}

int
store_accept(struct weft_store *store, weft_stream *stream)
{
	static const char full[] = "-ERR max number of clients reached\r\n";
	struct client *client;
	int rc;

	if (store->client_count >= store->opts.clients_max) {
		weft_span span = { full, sizeof(full) - 1 };

		store->stats.rejected++;
		(void)weft_stream_write_some(stream, &span, 1);
		weft_stream_close(stream);
		return weft_fail(WEFT_EAGAIN, "store: too many clients");
	}
	store->now_ms = store->clock_ms();
	client = client_new(store);
	client->stream = stream;
	store->held++;
	rc = weft_op_init(&client->write, store->loop, on_written, client);
	if (rc == 0)
		rc = weft_stream_start(stream, store->loop, &events, client);
	if (rc < 0) { /* on_close will not be called */
		client->stream = NULL;
		weft_stream_reset(stream);
		client_free(client);
		store_leave(store);
	}
	return rc;
}
