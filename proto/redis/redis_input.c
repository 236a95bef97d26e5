/* redis_input.c - incoming replies: find them, build them, pair them with pending entries.
 *
 * Complete replies are read in place, in the stream's queue.  An incomplete reply is copied to
 * `in`, and what arrives next is appended, so that each reply is contiguous.  `in` grows as
 * bytes arrive, never by an announced length.  A large reply takes over this memory.
 */
#include "redis_client.h"

#define LARGE   (16u << 10) /* bytes of a reply that takes over `in` */
#define IN_KEEP (64u << 10)

/* Report the error to the oldest pending command, and drop the connection. */
static void
break_off(struct weft__redis_conn *conn, int error)
{
	struct weft__redis_pending *pending;
	struct weft__redis_command *command = NULL;

	if (conn->head < conn->tail) {
		pending = weft__redis_pending_at(conn, conn->head);
		command = pending->command;
		pending->command = NULL;
	}
	if (command) {
		command->state = WEFT__REDIS_NOWHERE;
		weft__redis_end(conn->redis, command, error, weft_detail());
	}
	weft__redis_conn_slot_lost(conn->slot, error);
}

/* --- pairing ----------------------------------------------------------------- */

/* A reply within a transaction: to MULTI, or to a command that was queued. */
static void
note_part(struct weft__redis_pending *pending, weft_redis_reply *reply)
{
	struct weft__redis_command *command = pending->command;
	uint32_t number = command ? command->replies - pending->left : 0;

	if (command && !command->text && weft_redis_reply_type(reply) == WEFT_REDIS_ERROR) {
		weft_span text = { "", 0 };

		(void)weft_redis_text(reply, &text);
		(void)weft_fail(WEFT_EREPLY, "command %u of the transaction: %.*s",
		                (unsigned)number, (int)text.size, (const char *)text.data);
		command->text = weft__redis_copy(weft_detail(), strlen(weft_detail()));
	}
	weft_redis_reply_free(reply);
}

static void
pair(struct weft__redis_conn *conn, weft_redis_reply *reply)
{
	struct weft__redis_pending pending = *weft__redis_pending_at(conn, conn->head);
	weft_redis *redis = conn->redis;

	if (pending.left > 1) {
		note_part(&pending, reply);
		weft__redis_pending_at(conn, conn->head)->left--;
		return;
	}
	conn->head++;
	if (pending.handshake) {
		weft__redis_handshake_reply(conn, pending.handshake, reply);
		return;
	}
	if (pending.command) {
		weft__redis_answer(redis, pending.command, reply);
	} else {
		redis->stats.late++;
		weft_redis_reply_free(reply);
	}
	redis->failures = 0;
}

/* There is no memory for a reply: only its command fails. */
static void
pair_nothing(struct weft__redis_conn *conn)
{
	struct weft__redis_pending *pending = weft__redis_pending_at(conn, conn->head);
	struct weft__redis_command *command = pending->command;
	bool in_handshake = pending->handshake;

	if (--pending->left == 0)
		conn->head++;
	else
		pending->command = NULL;
	if (command) {
		command->state = WEFT__REDIS_NOWHERE;
		weft__redis_end(conn->redis, command, WEFT_ENOMEM, NULL);
	}
	if (in_handshake)
		weft__redis_conn_slot_failed(conn->slot, WEFT_ENOMEM,
		                             "weft_redis_*: out of memory");
}

/* --- reading ----------------------------------------------------------------- */

/* After the handshake nothing on the connection of subscriptions is a reply; in RESP2 messages
 * only look like replies. */
static bool
is_push(const struct weft__redis_conn *conn, char first)
{
	return first == '>' || (conn->slot->kind == WEFT__REDIS_SUBSCRIPTIONS && !conn->handshakes);
}

/* Process one complete reply; `rc` is the result of its build. */
static void
input_take(struct weft__redis_conn *conn, char first, int rc, weft_redis_reply *reply)
{
	bool pushed = is_push(conn, first);

	weft__resp_restart(&conn->scan);
	if (pushed) {
		conn->redis->stats.pushes++;
		if (rc == 0)
			weft__redis_pushed(conn, reply);
		else /* it may have been an invalidation */
			break_off(conn, weft_fail(WEFT_ENOMEM, "weft_redis_*: out of memory"));
		return;
	}
	if (conn->head == conn->tail) {
		if (rc == 0)
			weft_redis_reply_free(reply);
		break_off(
			conn,
			weft_fail(
				WEFT_EPROTO,
				"weft_redis_*: the server sent a reply that no command waits for"));
		return;
	}
	if (rc == 0)
		pair(conn, reply);
	else
		pair_nothing(conn);
}

/* Process complete replies.  Returns the number of bytes they used. */
static size_t
read_some(struct weft__redis_conn *conn, const char *data, size_t size)
{
	const struct weft__resp_limits *limits = &conn->redis->limits;
	size_t at = 0;

	while (conn->slot && at < size) {
		weft_redis_reply *reply = NULL;
		ssize_t n = weft__resp_scan(&conn->scan, limits, data + at, size - at);
		int rc;

		if (n == 0)
			break;
		if (n < 0) {
			break_off(conn, (int)n);
			break;
		}
		rc = weft__resp_build(&conn->scan, data + at, (size_t)n, &reply);
		input_take(conn, data[at], rc, reply);
		at += (size_t)n;
	}
	return at;
}

/* The reply at the front of `in` is complete, and so large that it takes over the memory. */
static bool
take_large(struct weft__redis_conn *conn, size_t size)
{
	struct weft__buffer *in = &conn->in, rest = { 0 };
	weft_redis_reply *reply = NULL;
	char first = in->data[0];
	size_t more = in->size - size;
	int rc;

	if (more > 0 && !weft__buffer_reserve(&rest, more))
		return false;
	if (more > 0)
		memcpy(rest.data, in->data + size, more);
	rest.size = more;
	rc = weft__resp_build_taking(&conn->scan, in->data, size, &reply);
	if (rc < 0)
		weft_release(in->data);
	*in = rest;
	input_take(conn, first, rc, reply);
	return true;
}

/* Process large replies at the front of `in`.  False: there is nothing more to read. */
static bool
read_large(struct weft__redis_conn *conn)
{
	struct weft__buffer *in = &conn->in;

	while (in->size >= LARGE) {
		ssize_t n = weft__resp_scan(&conn->scan, &conn->redis->limits, in->data, in->size);

		if (n < 0)
			break_off(conn, (int)n);
		if (n <= 0)
			return false;
		if (n < (ssize_t)LARGE || !take_large(conn, (size_t)n)) {
			weft__resp_restart(&conn->scan); /* continue with read_some() */
			break;
		}
		if (!conn->slot)
			return false;
	}
	return true;
}

static void
read_gathered(struct weft__redis_conn *conn)
{
	struct weft__buffer *in = &conn->in;
	size_t at;

	if (!read_large(conn))
		return;
	at = read_some(conn, in->data, in->size);
	in->size -= at;
	if (in->size > 0)
		memmove(in->data, in->data + at, in->size);
	else if (in->room > IN_KEEP)
		weft__buffer_free(in);
}

void
weft__redis_conn_read(struct weft__redis_conn *conn, const char *data, size_t size)
{
	size_t at = conn->in.size > 0 ? 0 : read_some(conn, data, size);

	if (!conn->slot)
		return;
	if (at < size) {
		if (!weft__buffer_reserve(&conn->in, size - at)) {
			break_off(conn, weft_fail(WEFT_ENOMEM, "weft_redis_*: out of memory"));
			return;
		}
		memcpy(conn->in.data + conn->in.size, data + at, size - at);
		conn->in.size += size - at;
		if (at == 0)
			read_gathered(conn);
	}
	if (conn->slot)
		weft__redis_conn_slot_answered(conn->slot);
}
