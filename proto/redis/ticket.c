/* ticket.c - remote requests: commands from other loops, plain threads, ops and promises.
 *
 * A remote request (struct ticket) is a command with a copy of its bytes.  Two owners share it:
 * the waiter and the endpoint's loop.  It is sent by a post that needs no memory.  On the
 * endpoint's loop it is a command like any other, with an op of that loop.
 *
 *   1. The first to claim the request wins: the loop with the result, which it has written
 *      before, or the waiter that no longer wants it.  The atomic exchange orders the two.
 *   2. A caller's op is finished only on its own loop, by on_outer_cancel() or by a post that
 *      delivers the result.  So these two never race.  If the post is refused, that loop is
 *      stopping, and then on_outer_cancel() ends the op.
 *   3. The endpoint is referenced from the post until its loop has released the request, and
 *      that loop as long as the request exists.  The loop of a caller's op is referenced until
 *      the op is over; if the result was on its way, until it has arrived.
 *   4. The endpoint's loop decides whether the deadline or the reply came first, because the
 *      reply may have arrived where only that loop can see it.  The caller waits for its
 *      decision and gives up on its own only if the loop is late by more than LATE_NS: the loop
 *      may never run, or even wait for the caller.
 */
#include "client.h"
#include <weft/threadlet.h>

enum { OPEN, DONE, GONE };

#define LATE_NS WEFT_S

struct ticket {
	struct weft__redis_command command;
	weft_redis *redis;
	weft_loop *loop; /* of the endpoint, referenced */
	uint32_t owners; /* atomic */
	uint32_t claim;  /* atomic */
	int rc;
	weft_op op; /* on the endpoint's loop */
	weft_node begin, cancel;
	uint64_t deadline_ns;
	weft_event told;       /* shared; for a waiting caller, */
	weft_promise *promise; /* or this promise, */
	weft_op *outer;        /* or this op, */
	weft_loop *home;       /* on its loop, referenced */
	weft_redis_reply **out;
	weft_node news;
	bool is_over; /* the outer op has finished */
	char bytes[];
};

static struct ticket *
hold(struct ticket *ticket)
{
	__atomic_add_fetch(&ticket->owners, 1, __ATOMIC_RELAXED);
	return ticket;
}

static void
ticket_drop(struct ticket *ticket)
{
	if (__atomic_sub_fetch(&ticket->owners, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	weft_release(ticket->command.text);
	weft_redis_reply_free(ticket->command.reply);
	if (ticket->home)
		(void)weft_loop_unref(ticket->home);
	(void)weft_loop_unref(ticket->loop);
	weft_release(ticket);
}

/* weft__redis_word() counts line feeds.  No command's name contains one, but a caller may pass
 * one. */
static void
copy_words(struct ticket *ticket, const struct weft__redis_command *from)
{
	struct weft__redis_command *command = &ticket->command;
	bool plain = !memchr(from->name.data, '\n', from->name.size);

	(void)weft__resp_put(ticket->bytes, from->words, from->count);
	command->name = plain ? weft__redis_word(ticket->bytes, 0, from->name.size)
	                      : weft_text("a command");
	if (plain && (from->flags & WEFT__REDIS_KEYED))
		command->key = weft__redis_word(ticket->bytes, 1, from->key.size);
	else
		command->flags &= (uint8_t)~WEFT__REDIS_KEYED;
}

static struct ticket *
ticket_make(weft_redis *redis, const struct weft__redis_command *from, uint64_t deadline_ns)
{
	size_t size = from->bytes ? from->size : weft__resp_size(from->words, from->count);
	struct ticket *ticket = weft_alloc(sizeof(*ticket) + size);

	if (!ticket) {
		(void)weft_fail(WEFT_ENOMEM, "no memory for a command");
		return NULL;
	}
	*ticket = (struct ticket){
		.command = { .bytes = ticket->bytes,
		             .size = size,
		             .name = from->name,
		             .replies = from->replies,
		             .flags = from->flags },
		.redis = redis,
		.loop = weft_loop_ref(redis->loop),
		.owners = 1,
		.deadline_ns = deadline_ns,
		.told = WEFT_SHARED_INIT,
	};
	if (from->bytes)
		memcpy(ticket->bytes, from->bytes, size);
	else
		copy_words(ticket, from);
	return ticket;
}

/* --- on the endpoint's loop -------------------------------------------------- */

/* weft__redis_tell() has given text and reply away or freed them. */
static int
ticket_notify(struct ticket *ticket, weft_redis_reply **out)
{
	int rc = weft__redis_tell(&ticket->command, ticket->rc, out);

	ticket->command.text = NULL;
	ticket->command.reply = NULL;
	return rc;
}

static void
ticket_settle(struct ticket *ticket)
{
	weft_redis_reply *reply = NULL;
	int rc = ticket_notify(ticket, &reply);

	if (rc == 0)
		(void)weft_promise_resolve(ticket->promise,
		                           weft_value_ptr(&weft_type_redis, reply));
	else
		(void)weft_promise_reject(ticket->promise, weft_value_error(rc));
	(void)weft_promise_unref(ticket->promise);
}

/* Runs on the loop of the outer op. */
static void
bring(void *arg)
{
	struct ticket *ticket = arg;
	weft_loop *home = ticket->home;

	ticket->home = NULL; /* keep the loop until the end of this function: invariant 3 */
	if (!ticket->is_over) {
		ticket->is_over = true;
		(void)weft_op_finish(ticket->outer, ticket_notify(ticket, ticket->out));
		ticket_drop(ticket);
	}
	ticket_drop(ticket);
	(void)weft_loop_unref(home);
}

static void
tell_waiter(struct ticket *ticket)
{
	weft_loop *home = ticket->home;

	if (!ticket->outer) {
		(void)weft_event_set(&ticket->told);
		return;
	}
	ticket->news = (weft_node){ .fn = bring, .arg = hold(ticket) };
	if (weft_loop_current() == home)
		bring(ticket);
	else if (weft_loop_post_node(home, &ticket->news) < 0)
		ticket_drop(ticket);
}

static void
deliver(struct ticket *ticket, int rc)
{
	weft_redis *redis = ticket->redis;

	ticket->rc = rc;
	if (ticket->promise)
		ticket_settle(ticket);
	else if (__atomic_exchange_n(&ticket->claim, DONE, __ATOMIC_ACQ_REL) == OPEN)
		tell_waiter(ticket);
	ticket_drop(ticket);
	weft__redis_unref(redis);
}

static void
ticket_on_end(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	deliver(arg, (int)result);
}

static void
on_op_cancel(weft_op *op, int why, void *arg)
{
	struct ticket *ticket = arg;

	(void)op;
	weft__redis_forget(ticket->redis, &ticket->command, why);
}

static void
ticket_finish(struct weft__redis_command *command, int rc)
{
	(void)weft_op_finish(command->op, rc);
}

/* The text of a refusal is stored in the command. */
static void
ticket_refuse(struct ticket *ticket, int rc)
{
	ticket->command.text = weft__redis_copy(weft_detail(), strlen(weft_detail()));
	deliver(ticket, rc);
}

static void
ticket_begin(void *arg)
{
	struct ticket *ticket = arg;
	weft_redis *redis = ticket->redis;
	int rc = weft__redis_admit(redis, &ticket->command);

	(void)weft_op_init(&ticket->op, redis->loop, ticket_on_end, ticket);
	ticket->command.op = &ticket->op;
	ticket->command.done = ticket_finish;
	if (rc == 0)
		rc = weft_op_begin(&ticket->op, on_op_cancel, ticket, ticket->deadline_ns);
	if (rc < 0)
		ticket_refuse(ticket, rc);
	else
		weft__redis_submit(redis, &ticket->command);
}

static void
cancel(void *arg)
{
	struct ticket *ticket = arg;

	weft_op_cancel(&ticket->op); /* it has begun: posts run in order */
	ticket_drop(ticket);
}

/* --- on other threads and loops ---------------------------------------------- */

/* When a caller gives up on its own; invariant 4. */
static uint64_t
give_up_at(uint64_t deadline_ns)
{
	return deadline_ns < WEFT_NEVER - LATE_NS ? deadline_ns + LATE_NS : deadline_ns;
}

/* Post the request, or begin it if the loop is the caller's.  On failure it is dropped. */
static int
ticket_hand_over(struct ticket *ticket)
{
	weft_redis *redis = weft__redis_ref(ticket->redis);
	int rc = 0;

	ticket->begin = (weft_node){ .fn = ticket_begin, .arg = ticket };
	ticket->cancel = (weft_node){ .fn = cancel, .arg = ticket };
	if (weft_loop_current() == redis->loop)
		ticket_begin(ticket);
	else
		rc = weft_loop_post_node(redis->loop, &ticket->begin);
	if (rc < 0) {
		ticket_drop(ticket);
		weft__redis_unref(redis);
		return weft_fail(rc, "redis: the endpoint's loop has stopped");
	}
	return 0;
}

/* The result is no longer wanted. */
static void
give_up(struct ticket *ticket)
{
	if (weft_loop_post_node(ticket->loop, &hold(ticket)->cancel) < 0)
		ticket_drop(ticket);
}

int
weft__redis_run_afar(weft_redis *redis, struct weft__redis_command *command, weft_redis_reply **out,
                     uint64_t deadline_ns)
{
	struct ticket *ticket = ticket_make(redis, command, deadline_ns);
	int rc;

	if (!ticket)
		return WEFT_ENOMEM;
	(void)hold(ticket);
	rc = ticket_hand_over(ticket);
	if (rc == 0) {
		rc = weft_event_wait(&ticket->told, give_up_at(deadline_ns));
		if (rc < 0 && __atomic_exchange_n(&ticket->claim, GONE, __ATOMIC_ACQ_REL) == OPEN)
			give_up(ticket);
		else
			rc = ticket_notify(ticket, out);
	}
	ticket_drop(ticket);
	return rc;
}

static void
on_outer_cancel(weft_op *op, int why, void *arg)
{
	struct ticket *ticket = arg;

	ticket->is_over = true;
	(void)weft_op_finish(op, why);
	if (__atomic_exchange_n(&ticket->claim, GONE, __ATOMIC_ACQ_REL) == OPEN) {
		ticket->home = weft_loop_unref(ticket->home);
		give_up(ticket);
	}
	ticket_drop(ticket);
}

int
weft_redis_call_op(weft_redis *redis, const weft_span *words, size_t count, weft_redis_reply **out,
                   weft_op *op, uint64_t deadline_ns)
{
	struct weft__redis_command command;
	struct ticket *ticket;
	int rc;

	if (!redis || !op || !op->loop)
		return weft_fail(WEFT_EINVAL, "weft_redis_call_op: redis or op is NULL, or the "
		                              "op is not initialized");
	rc = weft__redis_command_init(redis, &command, words, count);
	if (rc == 0)
		rc = op->loop == redis->loop ? weft__redis_admit(redis, &command)
		                             : weft__redis_check(redis, &command);
	if (rc < 0)
		return rc;
	ticket = ticket_make(redis, &command, deadline_ns);
	if (!ticket)
		return WEFT_ENOMEM;
	ticket->outer = op;
	ticket->out = out;
	ticket->home = weft_loop_ref(op->loop);
	rc = weft_op_begin(op, on_outer_cancel, ticket, give_up_at(deadline_ns));
	if (rc < 0) {
		ticket_drop(ticket);
		return rc;
	}
	rc = ticket_hand_over(hold(ticket));
	if (rc < 0) {
		ticket->is_over = true;
		(void)weft_op_finish(op, rc);
		ticket_drop(ticket);
	}
	return 0;
}

weft_promise *
weft_redis_call_promise(weft_redis *redis, const weft_span *words, size_t count,
                        uint64_t deadline_ns)
{
	struct weft__redis_command command;
	weft_promise *promise = weft_promise_new(NULL);
	struct ticket *ticket = NULL;
	int rc = redis ? 0 : weft_fail(WEFT_EINVAL, "weft_redis_call_promise: redis is NULL");

	if (!promise)
		return NULL;
	if (rc == 0)
		rc = weft__redis_command_init(redis, &command, words, count);
	if (rc == 0)
		ticket = ticket_make(redis, &command, deadline_ns);
	if (rc == 0 && !ticket)
		return weft_promise_unref(promise);
	if (rc == 0) {
		ticket->promise = weft_promise_ref(promise);
		rc = ticket_hand_over(ticket);
		if (rc < 0) /* the request was dropped without its reference */
			(void)weft_promise_unref(promise);
	}
	if (rc < 0)
		(void)weft_promise_reject(promise, weft_value_error(rc));
	return promise;
}
