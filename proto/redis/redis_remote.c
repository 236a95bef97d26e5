/* redis_remote.c - remote requests: commands from other loops, plain threads, ops and promises.
 *
 * A caller that waits has the command run on the endpoint's loop, by weft_loop_call().
 *
 * A command for an op or a promise is a remote request (struct request), with a copy of its
 * bytes.  Two owners share it: the op or promise, and the endpoint's loop.  It is sent by a post
 * that needs no memory.  On the endpoint's loop it is a command like any other, with an op of
 * that loop.
 *
 *   1. The first to claim the request wins: the endpoint's loop with the result, which it has
 *      written before, or the op that no longer wants the result.  The atomic exchange orders the
 *      two.
 *   2. A caller's op is finished only on its own loop, by on_outer_cancel() or by a post that
 *      delivers the result.  So these two never race.  If the post is refused, that loop is
 *      stopping, and then on_outer_cancel() ends the op.
 *   3. The endpoint is referenced from the post until its loop has released the request, and
 *      that loop as long as the request exists.  The loop of a caller's op is referenced until
 *      the op is over; if the result is on its way then, until the result has arrived.
 *   4. The endpoint's loop decides whether the deadline or the reply came first, because the
 *      reply may have arrived where only that loop can see it.  The caller waits for this
 *      decision and gives up on its own only if that loop is late by more than LATE_NS: that loop
 *      may never run, or may even wait for the caller.
 */
#include "redis_client.h"
#include <weft/threadlet.h>

/* The claim of a request: by nothing yet, by the endpoint's loop, by the op. */
enum { OPEN, DONE, GONE };

#define LATE_NS WEFT_S

struct request {
	struct weft__redis_command command;
	weft_redis *redis;
	weft_loop *loop; /* of the endpoint, referenced */
	struct weft__refs refs;
	uint32_t claim; /* atomic */
	int rc;
	weft_op op; /* on the endpoint's loop */
	weft_node begin, cancel;
	uint64_t deadline_ns;
	weft_promise *promise; /* for this promise, */
	weft_op *outer;        /* or for this op, */
	weft_loop *outer_loop; /* on its loop, referenced */
	weft_redis_reply **out;
	weft_node delivery;
	bool is_over; /* the outer op has finished */
	char bytes[];
};

static struct request *
request_ref(struct request *request)
{
	weft__refs_add(&request->refs);
	return request;
}

static void
request_unref(struct request *request)
{
	if (!weft__refs_drop(&request->refs))
		return;
	weft_release(request->command.text);
	weft_redis_reply_free(request->command.reply);
	if (request->outer_loop)
		(void)weft_loop_unref(request->outer_loop);
	(void)weft_loop_unref(request->loop);
	weft_release(request);
}

/* weft__redis_arg() counts line feeds.  No command of Redis has a line feed in its name, but a
 * caller may pass such a name. */
static void
copy_args(struct request *request, const struct weft__redis_command *from)
{
	struct weft__redis_command *command = &request->command;
	bool plain = !memchr(from->name.data, '\n', from->name.size);

	(void)weft__resp_put(request->bytes, from->args, from->count);
	command->name = plain ? weft__redis_arg(request->bytes, 0, from->name.size)
	                      : weft_text("a command");
	if (plain && (from->flags & WEFT__REDIS_KEYED))
		command->key = weft__redis_arg(request->bytes, 1, from->key.size);
	else
		command->flags &= (uint8_t)~WEFT__REDIS_KEYED;
}

static struct request *
request_make(weft_redis *redis, const struct weft__redis_command *from, uint64_t deadline_ns)
{
	size_t size = from->bytes ? from->size : weft__resp_size(from->args, from->count);
	struct request *request = weft_alloc(sizeof(*request) + size);

	if (!request) {
		(void)weft_fail(WEFT_ENOMEM, "weft_redis_call: out of memory");
		return NULL;
	}
	*request = (struct request){
		.command = { .bytes = request->bytes,
		             .size = size,
		             .name = from->name,
		             .replies = from->replies,
		             .flags = from->flags },
		.redis = redis,
		.loop = weft_loop_ref(redis->loop),
		.refs = WEFT__REFS_ONE,
		.deadline_ns = deadline_ns,
	};
	if (from->bytes)
		memcpy(request->bytes, from->bytes, size);
	else
		copy_args(request, from);
	return request;
}

/* --- on the endpoint's loop -------------------------------------------------- */

/* weft__redis_report() has given text and reply away or freed them. */
static int
request_report(struct request *request, weft_redis_reply **out)
{
	int rc = weft__redis_report(&request->command, request->rc, out);

	request->command.text = NULL;
	request->command.reply = NULL;
	return rc;
}

static void
request_settle(struct request *request)
{
	weft_redis_reply *reply = NULL;
	int rc = request_report(request, &reply);

	if (rc == 0)
		(void)weft_promise_resolve(request->promise,
		                           weft_value_ptr(&weft_type_redis, reply));
	else
		(void)weft_promise_reject(request->promise, weft_value_error(rc));
	(void)weft_promise_unref(request->promise);
}

/* Runs on the loop of the outer op. */
static void
finish_outer(void *arg)
{
	struct request *request = arg;
	weft_loop *outer_loop = request->outer_loop;

	request->outer_loop = NULL; /* keep the loop until the end of this function: invariant 3 */
	if (!request->is_over) {
		request->is_over = true;
		(void)weft_op_finish(request->outer, request_report(request, request->out));
		request_unref(request);
	}
	request_unref(request);
	(void)weft_loop_unref(outer_loop);
}

static void
send_to_outer_loop(struct request *request)
{
	weft_loop *outer_loop = request->outer_loop;

	request->delivery = (weft_node){ .fn = finish_outer, .arg = request_ref(request) };
	if (weft_loop_current() == outer_loop)
		finish_outer(request);
	else if (weft_loop_post_node(outer_loop, &request->delivery) < 0)
		request_unref(request);
}

static void
request_deliver(struct request *request, int rc)
{
	weft_redis *redis = request->redis;

	request->rc = rc;
	if (request->promise)
		request_settle(request);
	else if (__atomic_exchange_n(&request->claim, DONE, __ATOMIC_ACQ_REL) == OPEN)
		send_to_outer_loop(request);
	request_unref(request);
	weft__redis_unref(redis);
}

static void
request_on_end(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	request_deliver(arg, (int)result);
}

static void
on_op_cancel(weft_op *op, int why, void *arg)
{
	struct request *request = arg;

	(void)op;
	weft__redis_give_up(request->redis, &request->command, why);
}

static void
request_finish(struct weft__redis_command *command, int rc)
{
	(void)weft_op_finish(command->op, rc);
}

/* The text of a refusal is stored in the command. */
static void
request_refuse(struct request *request, int rc)
{
	request->command.text = weft__redis_copy(weft_detail(), strlen(weft_detail()));
	request_deliver(request, rc);
}

static void
request_begin(void *arg)
{
	struct request *request = arg;
	weft_redis *redis = request->redis;
	int rc = weft__redis_admit(redis, &request->command);

	(void)weft_op_init(&request->op, redis->loop, request_on_end, request);
	request->command.op = &request->op;
	request->command.done = request_finish;
	if (rc == 0)
		rc = weft_op_begin(&request->op, on_op_cancel, request, request->deadline_ns);
	if (rc < 0)
		request_refuse(request, rc);
	else
		weft__redis_submit(redis, &request->command);
}

static void
cancel(void *arg)
{
	struct request *request = arg;

	weft_op_cancel(&request->op); /* it has begun: posts run in order */
	request_unref(request);
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
request_submit(struct request *request)
{
	weft_redis *redis = weft__redis_ref(request->redis);
	int rc = 0;

	request->begin = (weft_node){ .fn = request_begin, .arg = request };
	request->cancel = (weft_node){ .fn = cancel, .arg = request };
	if (weft_loop_current() == redis->loop)
		request_begin(request);
	else
		rc = weft_loop_post_node(redis->loop, &request->begin);
	if (rc < 0) {
		request_unref(request);
		weft__redis_unref(redis);
		return weft_fail(rc, "weft_redis_call: the endpoint's loop has stopped");
	}
	return 0;
}

/* The result is no longer wanted. */
static void
request_cancel(struct request *request)
{
	if (weft_loop_post_node(request->loop, &request_ref(request)->cancel) < 0)
		request_unref(request);
}

struct remote_call {
	weft_redis *redis;
	struct weft__redis_command *command;
	weft_redis_reply **out;
	uint64_t deadline_ns;
};

static int
remote_run(void *arg)
{
	struct remote_call *call = arg;

	if (weft_now() >= call->deadline_ns)
		return weft_fail(WEFT_ETIMEDOUT,
		                 "weft_redis_call: the endpoint's loop took the command "
		                 "after the deadline");
	return weft__redis_run(call->redis, call->command, call->out, call->deadline_ns);
}

int
weft__redis_run_remote(weft_redis *redis, struct weft__redis_command *command,
                       weft_redis_reply **out, uint64_t deadline_ns)
{
	struct remote_call call = { weft__redis_ref(redis), command, out, deadline_ns };
	int rc = weft_loop_call(redis->loop, remote_run, &call, give_up_at(deadline_ns));

	weft__redis_unref(redis);
	return rc;
}

static void
on_outer_cancel(weft_op *op, int why, void *arg)
{
	struct request *request = arg;

	request->is_over = true;
	(void)weft_op_finish(op, why);
	if (__atomic_exchange_n(&request->claim, GONE, __ATOMIC_ACQ_REL) == OPEN) {
		request->outer_loop = weft_loop_unref(request->outer_loop);
		request_cancel(request);
	}
	request_unref(request);
}

int
weft_redis_call_op(weft_redis *redis, const weft_span *args, size_t count, weft_redis_reply **out,
                   weft_op *op, uint64_t deadline_ns)
{
	struct weft__redis_command command;
	struct request *request;
	int rc;

	if (!redis || !op || !op->loop)
		return weft_fail(WEFT_EINVAL, "weft_redis_call_op: redis or op is NULL, or the "
		                              "op is not initialized");
	rc = weft__redis_command_init(redis, &command, args, count);
	if (rc == 0)
		rc = op->loop == redis->loop ? weft__redis_admit(redis, &command)
		                             : weft__redis_check(redis, &command);
	if (rc < 0)
		return rc;
	request = request_make(redis, &command, deadline_ns);
	if (!request)
		return WEFT_ENOMEM;
	request->outer = op;
	request->out = out;
	request->outer_loop = weft_loop_ref(op->loop);
	rc = weft_op_begin(op, on_outer_cancel, request, give_up_at(deadline_ns));
	if (rc < 0) {
		request_unref(request);
		return rc;
	}
	rc = request_submit(request_ref(request));
	if (rc < 0) {
		request->is_over = true;
		(void)weft_op_finish(op, rc);
		request_unref(request);
	}
	return 0;
}

weft_promise *
weft_redis_call_promise(weft_redis *redis, const weft_span *args, size_t count,
                        uint64_t deadline_ns)
{
	struct weft__redis_command command;
	weft_promise *promise = weft_promise_new(NULL);
	struct request *request = NULL;
	int rc = redis ? 0 : weft_fail(WEFT_EINVAL, "weft_redis_call_promise: redis is NULL");

	if (!promise)
		return NULL;
	if (rc == 0)
		rc = weft__redis_command_init(redis, &command, args, count);
	if (rc == 0)
		request = request_make(redis, &command, deadline_ns);
	if (rc == 0 && !request)
		return weft_promise_unref(promise);
	if (rc == 0) {
		request->promise = weft_promise_ref(promise);
		rc = request_submit(request);
		if (rc < 0) /* the request was dropped without its reference */
			(void)weft_promise_unref(promise);
	}
	if (rc < 0)
		(void)weft_promise_reject(promise, weft_value_error(rc));
	return promise;
}
