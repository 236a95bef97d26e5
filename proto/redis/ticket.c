/* ticket.c - commands from elsewhere: other loops, plain threads, ops and promises.
 *
 * A ticket is a command with a copy of its bytes, in memory of two owners: who waits for
 * it, and the endpoint's loop.  It goes there by a post that cannot run out, and is a
 * command like all others then, with an op of that loop.
 *
 *   1. Whoever comes first claims the ticket: the loop with the result, which is written
 *      before, or the waiter, who does not want it any more.  The exchange orders it.
 *   2. The op of a caller is finished on its own loop alone, by on_cancel or by a post that
 *      brings the result; so these two never meet.  A post that is refused means that the
 *      loop stops, and then on_cancel ends the op.
 *   3. The endpoint is held from the post until its loop has let go of the ticket, and that
 *      loop as long as the ticket is there; the loop of a caller's op until the op is over,
 *      and if the result was on its way, until that has come.
 *   4. The endpoint's loop decides whether the deadline or the reply came first: the reply
 *      may have arrived where only that loop can see it.  The caller waits for its word,
 *      and gives up on its own only if the loop is late by more than LATE_NS: it may
 *      be one that never turns, and even wait for the caller.
 */
#include "client.h"
#include <weft/threadlet.h>

enum { OPEN, DONE, GONE };

#define LATE_NS WEFT_S

struct ticket {
	struct weft__redis_command command;
	weft_redis *redis;
	weft_loop *loop; /* of the endpoint, held */
	uint32_t owners; /* atomic */
	uint32_t claim;  /* atomic */
	int rc;
	weft_op op; /* of the endpoint's loop */
	weft_node begin, cancel;
	uint64_t deadline_ns;
	weft_event told;       /* shared; of who waits here */
	weft_promise *promise; /* or of this, */
	weft_op *outer;        /* or of this one, */
	weft_loop *home;       /* on its loop, held */
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
drop(struct ticket *ticket)
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

/* The name has no line feed in it, or it would be no command; but who knows. */
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
make(weft_redis *redis, const struct weft__redis_command *from, uint64_t deadline_ns)
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

/* What weft__redis_tell() has given away is not the ticket's any more. */
static int
tell(struct ticket *ticket, weft_redis_reply **out)
{
	int rc = weft__redis_tell(&ticket->command, ticket->rc, out);

	ticket->command.text = NULL;
	ticket->command.reply = NULL;
	return rc;
}

static void
settle(struct ticket *ticket)
{
	weft_redis_reply *reply = NULL;
	int rc = tell(ticket, &reply);

	if (rc == 0)
		(void)weft_promise_resolve(ticket->promise,
		                           weft_value_ptr(&weft_type_redis, reply));
	else
		(void)weft_promise_reject(ticket->promise, weft_value_error(rc));
	(void)weft_promise_unref(ticket->promise);
}

/* On the loop of the outer op. */
static void
bring(void *arg)
{
	struct ticket *ticket = arg;
	weft_loop *home = ticket->home;

	ticket->home = NULL; /* invariant 3: who learns of the end may free it */
	if (!ticket->is_over) {
		ticket->is_over = true;
		(void)weft_op_finish(ticket->outer, tell(ticket, ticket->out));
		drop(ticket);
	}
	drop(ticket);
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
		drop(ticket);
}

static void
deliver(struct ticket *ticket, int rc)
{
	weft_redis *redis = ticket->redis;

	ticket->rc = rc;
	if (ticket->promise)
		settle(ticket);
	else if (__atomic_exchange_n(&ticket->claim, DONE, __ATOMIC_ACQ_REL) == OPEN)
		tell_waiter(ticket);
	drop(ticket);
	weft__redis_unref(redis);
}

static void
on_end(weft_op *op, int64_t result, void *arg)
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
finish(struct weft__redis_command *command, int rc)
{
	(void)weft_op_finish(command->op, rc);
}

/* The text of a refusal goes with the command. */
static void
refuse(struct ticket *ticket, int rc)
{
	ticket->command.text = weft__redis_copy(weft_detail(), strlen(weft_detail()));
	deliver(ticket, rc);
}

static void
begin(void *arg)
{
	struct ticket *ticket = arg;
	weft_redis *redis = ticket->redis;
	int rc = weft__redis_admit(redis, &ticket->command);

	(void)weft_op_init(&ticket->op, redis->loop, on_end, ticket);
	ticket->command.op = &ticket->op;
	ticket->command.done = finish;
	if (rc == 0)
		rc = weft_op_begin(&ticket->op, on_op_cancel, ticket, ticket->deadline_ns);
	if (rc < 0)
		refuse(ticket, rc);
	else
		weft__redis_submit(redis, &ticket->command);
}

static void
cancel(void *arg)
{
	struct ticket *ticket = arg;

	weft_op_cancel(&ticket->op); /* it has begun: posts are in order */
	drop(ticket);
}

/* --- from elsewhere ---------------------------------------------------------- */

/* When a caller gives up on its own; invariant 4. */
static uint64_t
give_up_at(uint64_t deadline_ns)
{
	return deadline_ns < WEFT_NEVER - LATE_NS ? deadline_ns + LATE_NS : deadline_ns;
}

/* Send the ticket, or begin it if the loop is the caller's.  On failure it is gone. */
static int
hand_over(struct ticket *ticket)
{
	weft_redis *redis = weft__redis_ref(ticket->redis);
	int rc = 0;

	ticket->begin = (weft_node){ .fn = begin, .arg = ticket };
	ticket->cancel = (weft_node){ .fn = cancel, .arg = ticket };
	if (weft_loop_current() == redis->loop)
		begin(ticket);
	else
		rc = weft_loop_post_node(redis->loop, &ticket->begin);
	if (rc < 0) {
		drop(ticket);
		weft__redis_unref(redis);
		return weft_fail(rc, "the loop of the endpoint has stopped");
	}
	return 0;
}

/* It is not wanted any more. */
static void
give_up(struct ticket *ticket)
{
	if (weft_loop_post_node(ticket->loop, &hold(ticket)->cancel) < 0)
		drop(ticket);
}

int
weft__redis_run_afar(weft_redis *redis, struct weft__redis_command *command, weft_redis_reply **out,
                     uint64_t deadline_ns)
{
	struct ticket *ticket = make(redis, command, deadline_ns);
	int rc;

	if (!ticket)
		return WEFT_ENOMEM;
	(void)hold(ticket);
	rc = hand_over(ticket);
	if (rc == 0) {
		rc = weft_event_wait(&ticket->told, give_up_at(deadline_ns));
		if (rc < 0 && __atomic_exchange_n(&ticket->claim, GONE, __ATOMIC_ACQ_REL) == OPEN)
			give_up(ticket);
		else
			rc = tell(ticket, out);
	}
	drop(ticket);
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
	drop(ticket);
}

int
weft_redis_call_op(weft_redis *redis, const weft_span *words, size_t count, weft_redis_reply **out,
                   weft_op *op, uint64_t deadline_ns)
{
	struct weft__redis_command command;
	struct ticket *ticket;
	int rc;

	if (!redis || !op || !op->loop)
		return weft_fail(WEFT_EINVAL, "weft_redis_call_op: NULL, or an "
		                              "op that was not initialised");
	rc = weft__redis_command_init(redis, &command, words, count);
	if (rc == 0)
		rc = op->loop == redis->loop ? weft__redis_admit(redis, &command)
		                             : weft__redis_check(redis, &command);
	if (rc < 0)
		return rc;
	ticket = make(redis, &command, deadline_ns);
	if (!ticket)
		return WEFT_ENOMEM;
	ticket->outer = op;
	ticket->out = out;
	ticket->home = weft_loop_ref(op->loop);
	rc = weft_op_begin(op, on_outer_cancel, ticket, give_up_at(deadline_ns));
	if (rc < 0) {
		drop(ticket);
		return rc;
	}
	rc = hand_over(hold(ticket));
	if (rc < 0) {
		ticket->is_over = true;
		(void)weft_op_finish(op, rc);
		drop(ticket);
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
	int rc = redis ? 0 : weft_fail(WEFT_EINVAL, "weft_redis_call_promise: NULL");

	if (!promise)
		return NULL;
	if (rc == 0)
		rc = weft__redis_command_init(redis, &command, words, count);
	if (rc == 0)
		ticket = make(redis, &command, deadline_ns);
	if (rc == 0 && !ticket)
		return weft_promise_unref(promise);
	if (rc == 0) {
		ticket->promise = weft_promise_ref(promise);
		rc = hand_over(ticket);
		if (rc < 0) /* the ticket went without it */
			(void)weft_promise_unref(promise);
	}
	if (rc < 0)
		(void)weft_promise_reject(promise, weft_value_error(rc));
	return promise;
}
