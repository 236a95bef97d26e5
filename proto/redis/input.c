/* input.c - incoming replies: find them, build them, pair them with pending entries.
 *
 * Complete replies are read in place, in the stream's queue.  An incomplete reply is copied to
 * `in`, and what arrives next is appended, so that each reply is contiguous.  `in` grows as
 * bytes arrive, never by an announced length.  A large reply takes over this memory.
 */
#include "client.h"

#define LARGE   (16u << 10) /* bytes of a reply that takes over `in` */
#define IN_KEEP (64u << 10)

/* Report the error to the oldest pending command, and drop the connection. */
static void
break_off(struct weft__redis_wire *wire, int error)
{
	struct weft__redis_slot *slot;
	struct weft__redis_command *command = NULL;

	if (wire->head < wire->tail) {
		slot = weft__redis_slot_at(wire, wire->head);
		command = slot->command;
		slot->command = NULL;
	}
	if (command) {
		command->state = WEFT__REDIS_NOWHERE;
		weft__redis_end(wire->redis, command, error, weft_detail());
	}
	weft__redis_line_lost(wire->line, error);
}

/* --- pairing ----------------------------------------------------------------- */

/* A reply within a transaction: to MULTI, or to a command that was queued. */
static void
note_part(struct weft__redis_slot *slot, weft_redis_reply *reply)
{
	struct weft__redis_command *command = slot->command;
	uint32_t number = command ? command->replies - slot->left : 0;

	if (command && !command->text && weft_redis_reply_type(reply) == WEFT_REDIS_ERROR) {
		weft_span said = { "", 0 };

		(void)weft_redis_text(reply, &said);
		(void)weft_fail(WEFT_EREPLY, "command %u of the transaction: %.*s",
		                (unsigned)number, (int)said.size, (const char *)said.data);
		command->text = weft__redis_copy(weft_detail(), strlen(weft_detail()));
	}
	weft_redis_reply_free(reply);
}

static void
pair(struct weft__redis_wire *wire, weft_redis_reply *reply)
{
	struct weft__redis_slot slot = *weft__redis_slot_at(wire, wire->head);
	weft_redis *redis = wire->redis;

	if (slot.left > 1) {
		note_part(&slot, reply);
		weft__redis_slot_at(wire, wire->head)->left--;
		return;
	}
	wire->head++;
	if (slot.greeting) {
		weft__redis_greeted(wire, slot.greeting, reply);
		return;
	}
	if (slot.command) {
		weft__redis_answer(redis, slot.command, reply);
	} else {
		redis->stats.late++;
		weft_redis_reply_free(reply);
	}
	redis->failures = 0;
}

/* There is no memory for a reply: only its command fails. */
static void
pair_nothing(struct weft__redis_wire *wire)
{
	struct weft__redis_slot *slot = weft__redis_slot_at(wire, wire->head);
	struct weft__redis_command *command = slot->command;
	bool greets = slot->greeting;

	if (--slot->left == 0)
		wire->head++;
	else
		slot->command = NULL;
	if (command) {
		command->state = WEFT__REDIS_NOWHERE;
		weft__redis_end(wire->redis, command, WEFT_ENOMEM, NULL);
	}
	if (greets)
		weft__redis_line_failed(wire->line, WEFT_ENOMEM, "no memory for a reply");
}

/* --- reading ----------------------------------------------------------------- */

/* After the handshake nothing on the connection of subscriptions is a reply; in RESP2 messages
 * only look like replies. */
static bool
is_push(const struct weft__redis_wire *wire, char first)
{
	return first == '>' || (wire->line->kind == WEFT__REDIS_FEEDS && !wire->greetings);
}

/* Process one complete reply; `rc` is the result of its build. */
static void
input_take(struct weft__redis_wire *wire, char first, int rc, weft_redis_reply *reply)
{
	bool pushed = is_push(wire, first);

	weft__resp_restart(&wire->scan);
	if (pushed) {
		wire->redis->stats.pushes++;
		if (rc == 0)
			weft__redis_pushed(wire, reply);
		else /* it may have been an invalidation */
			break_off(wire, weft_fail(WEFT_ENOMEM, "no memory for a message"));
		return;
	}
	if (wire->head == wire->tail) {
		if (rc == 0)
			weft_redis_reply_free(reply);
		break_off(wire,
		          weft_fail(WEFT_EPROTO,
		                    "redis: the server sent a reply that no command waits for"));
		return;
	}
	if (rc == 0)
		pair(wire, reply);
	else
		pair_nothing(wire);
}

/* Process complete replies.  Returns the number of bytes they used. */
static size_t
read_some(struct weft__redis_wire *wire, const char *data, size_t size)
{
	const struct weft__resp_limits *limits = &wire->redis->limits;
	size_t at = 0;

	while (wire->line && at < size) {
		weft_redis_reply *reply = NULL;
		ssize_t n = weft__resp_scan(&wire->scan, limits, data + at, size - at);
		int rc;

		if (n == 0)
			break;
		if (n < 0) {
			break_off(wire, (int)n);
			break;
		}
		rc = weft__resp_build(&wire->scan, data + at, (size_t)n, &reply);
		input_take(wire, data[at], rc, reply);
		at += (size_t)n;
	}
	return at;
}

/* The reply at the front of `in` is complete, and so large that it takes over the memory. */
static bool
take_large(struct weft__redis_wire *wire, size_t size)
{
	struct weft__redis_bytes *in = &wire->in, rest = { 0 };
	weft_redis_reply *reply = NULL;
	char first = in->data[0];
	size_t more = in->size - size;
	int rc;

	if (more > 0 && !weft__redis_bytes_reserve(&rest, more))
		return false;
	if (more > 0)
		memcpy(rest.data, in->data + size, more);
	rest.size = more;
	rc = weft__resp_build_taking(&wire->scan, in->data, size, &reply);
	if (rc < 0)
		weft_release(in->data);
	*in = rest;
	input_take(wire, first, rc, reply);
	return true;
}

/* Process large replies at the front of `in`.  False: there is nothing more to read. */
static bool
read_large(struct weft__redis_wire *wire)
{
	struct weft__redis_bytes *in = &wire->in;

	while (in->size >= LARGE) {
		ssize_t n = weft__resp_scan(&wire->scan, &wire->redis->limits, in->data, in->size);

		if (n < 0)
			break_off(wire, (int)n);
		if (n <= 0)
			return false;
		if (n < (ssize_t)LARGE || !take_large(wire, (size_t)n)) {
			weft__resp_restart(&wire->scan); /* continue with read_some() */
			break;
		}
		if (!wire->line)
			return false;
	}
	return true;
}

static void
read_gathered(struct weft__redis_wire *wire)
{
	struct weft__redis_bytes *in = &wire->in;
	size_t at;

	if (!read_large(wire))
		return;
	at = read_some(wire, in->data, in->size);
	in->size -= at;
	if (in->size > 0)
		memmove(in->data, in->data + at, in->size);
	else if (in->room > IN_KEEP)
		weft__redis_bytes_drop(in);
}

void
weft__redis_wire_read(struct weft__redis_wire *wire, const char *data, size_t size)
{
	size_t at = wire->in.size > 0 ? 0 : read_some(wire, data, size);

	if (!wire->line)
		return;
	if (at < size) {
		if (!weft__redis_bytes_reserve(&wire->in, size - at)) {
			break_off(wire, weft_fail(WEFT_ENOMEM, "no memory for a reply"));
			return;
		}
		memcpy(wire->in.data + wire->in.size, data + at, size - at);
		wire->in.size += size - at;
		if (at == 0)
			read_gathered(wire);
	}
	if (wire->line)
		weft__redis_line_answered(wire->line);
}
