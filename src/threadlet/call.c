/* call.c - calls of a threadlet that suspend by themselves: yield, sleep, descriptors, ops. */
#include "threadlet/threadlet.h"

weft_threadlet
weft_self(void)
{
	const struct weft__threadlet *self = weft__self();

	return self ? (int64_t)weft__load(&self->handle->id, WEFT__RELAXED) : 0;
}

int
weft_check_canceled(void)
{
	struct weft__threadlet *self = weft__self();
	const struct weft__thread *thread;

	if (!self) {
		thread = weft__thread_self();
		return thread->canceled ? thread->canceled(thread->canceled_arg) : 0;
	}
	if (self->why || weft__loop_is_forked(self->sched->loop))
		return self->why;
	return weft__threadlet_recheck(self);
}

int
weft_yield(void)
{
	struct weft__threadlet *self = weft__self();

	if (!self || self->why | self->interrupted || weft__loop_is_forked(weft__loop_here())) {
		int rc = weft__may_wait_in(WEFT_NEVER, "weft_yield");

		if (rc < 0)
			return rc;
	}
	weft__make_ready(weft__loop_here(), self);
	weft__switch_out(self);
	return self->why;
}

/* The waiter is in the frame of the public function.  So the compiler keeps that frame, by which
 * reports find the place in the program. */
static int
threadlet_sleep(struct weft__waiter *waiter, uint64_t deadline_ns)
{
	int rc = deadline_ns == WEFT_NOWAIT ? weft_yield() : weft__may_wait(deadline_ns);

	if (rc < 0 || deadline_ns == WEFT_NOWAIT)
		return rc;
	return (int)weft__wait(waiter, deadline_ns);
}

int
weft_sleep(int64_t delay_ns)
{
	struct weft__waiter waiter = { .what = "sleep", .sleeps = true };

	if (delay_ns < 0)
		return weft__misuse(WEFT_EINVAL, "weft_sleep: the delay is negative; to sleep "
		                                 "without an end use weft_sleep_until");
	if (!weft__self())
		return weft__fail(WEFT_ENOSUSPEND, "weft_sleep: only a threadlet can sleep; use a "
		                                   "timer in a callback");
	return threadlet_sleep(&waiter,
	                       delay_ns == 0 ? WEFT_NOWAIT : weft_after((uint64_t)delay_ns));
}

int
weft_sleep_until(uint64_t deadline_ns)
{
	struct weft__waiter waiter = { .what = "sleep until", .sleeps = true };

	if (!weft__self())
		return weft__fail(WEFT_ENOSUSPEND, "weft_sleep_until: only a threadlet can sleep; "
		                                   "use a timer in a callback");
	return threadlet_sleep(&waiter, deadline_ns);
}

/* --- ops ---------------------------------------------------------------- */

/* An op that a background threadlet waits for does not keep the loop alive, either. */
static void
init_op(weft_op *op, weft_op_fn on_done, void *arg)
{
	(void)weft_op_init(op, NULL, on_done, arg);
	weft_op_set_background(op, weft__self()->background);
}

void
weft__op_init_waited(weft_op *op)
{
	init_op(op, NULL, NULL);
}

/* The waiter of an op.  Only the op ends the wait. */
struct op_waiter {
	struct weft__waiter waiter;
	struct weft__op *op;
};

static void
request_op_end(struct weft__waiter *waiter, int why)
{
	weft__op_request_cancel(((struct op_waiter *)(void *)waiter)->op, why);
}

const struct weft__op *
weft__waiter_op(const struct weft__waiter *waiter)
{
	return waiter->request_end == request_op_end
	               ? ((const struct op_waiter *)(const void *)waiter)->op
	               : NULL;
}

int
weft_wait_fd(int fd, uint32_t events, uint64_t deadline_ns)
{
	struct op_waiter w = { .waiter = {
				       .what = "fd", .on = fd, .request_end = request_op_end } };
	weft_op op;
	int rc = weft__may_wait_in(WEFT_NEVER, "weft_wait_fd");

	w.op = (struct weft__op *)(void *)&op;
	if (rc < 0)
		return rc;
	init_op(&op, weft__op_waited, &w);
	rc = weft_op_poll(&op, fd, events & ~(uint32_t)WEFT_MULTI, deadline_ns);
	return rc < 0 ? rc : (int)weft__wait(&w.waiter, WEFT_NEVER);
}

/* Wait until the op has finished, whatever happens, because the op may be on the
 * caller's stack. */
static int64_t
wait_op(struct weft__op *op, const char *what, uint64_t deadline_ns, bool deaf)
{
	struct op_waiter w = { .waiter = { .what = what,
		                           .on = (intptr_t)op,
		                           .deaf = deaf,
		                           .request_end = request_op_end },
		               .op = op };
	void *arg = op->arg;

	op->on_done = weft__op_waited;
	op->arg = &w;
	(void)weft__wait(&w.waiter, deadline_ns);
	op->on_done = NULL;
	op->arg = arg;
	return op->result;
}

static int
check_op(const struct weft__op *op)
{
	if (!op || op->kind == WEFT__OP_NONE || (op->pending && op->on_done))
		return weft__misuse(WEFT_EINVAL,
		                    "weft_op_wait: the op is NULL, was never started, or has an "
		                    "on_done");
	if (!weft__self())
		return weft__fail(WEFT_ENOSUSPEND, "weft_op_wait: the caller is not a threadlet");
	if (op->loop != weft__self()->sched->loop)
		return weft__misuse(WEFT_EWRONGLOOP,
		                    "weft_op_wait: the op belongs to another loop");
	return 0;
}

int64_t
weft_op_wait(weft_op *handle, uint64_t deadline_ns)
{
	struct weft__op *op = weft__op_of(handle);
	int64_t result;
	int rc = check_op(op);

	if (op && !op->pending && op->kind != WEFT__OP_NONE)
		return op->result;
	if (rc < 0)
		return rc;
	rc = weft__may_wait_in(deadline_ns, "weft_op_wait");
	if (deadline_ns == WEFT_NOWAIT || rc == WEFT_EWRONGLOOP)
		return rc;
	if (rc < 0)
		weft__op_request_cancel(op, rc);
	result = wait_op(op, "op", deadline_ns, rc < 0);
	if (rc == WEFT_EINTR && result != WEFT_EINTR)
		weft__self()->interrupted = true; /* for the next call */
	return result;
}

int64_t
weft__op_wait(weft_op *handle, const char *what)
{
	return wait_op(weft__op_of(handle), what, WEFT_NEVER, false);
}

int64_t
weft__op_wait_shielded(weft_op *handle, const char *what)
{
	struct weft__op *op = weft__op_of(handle);

	return op->pending ? wait_op(op, what, WEFT_NEVER, true) : op->result;
}

/* --- cleanups ----------------------------------------------------------- */

void
weft__cleanup_push(struct weft__node *node)
{
	struct weft__threadlet *self = weft__self();

	node->next = self->cleanups;
	self->cleanups = node;
}
