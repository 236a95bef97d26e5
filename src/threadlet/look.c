/* look.c - listing threadlets.
 *
 * While a loop runs, only its own thread may read its threadlets.  So a listing from elsewhere
 * is a request: the caller wakes the loop, and the loop answers when it empties its inbox.  A
 * loop that does not run is held for a moment, and read by the caller itself.
 *
 *   1. A request is pending (in the registry), being answered, or neither; under the registry's
 *      lock.  The requester may withdraw a pending request, and waits for one being answered.
 *   2. Only a loop that runs answers.  Its run may end without an answer.  Therefore each wait
 *      is short, and then the state of the loop is checked again.
 *   3. The scheduler's list is in order of arrival.  A cursor is the `seq` of the last threadlet
 *      that was read.  `mark` says where the list continues, and moves if that threadlet ends.
 *      With several readers it may be another reader's; then the position is searched for.
 */
#include "base/switch/frames.h"
#include "threadlet/threadlet.h"

#define SLICE_MAX 64u
#define WAIT_NS   (10 * WEFT_MS) /* invariant 2 */

struct weft__look {
	struct weft__look *next;
	weft_loop *loop;
	uint64_t cursor;
	weft_threadlet_info *out;
	size_t max;
	int count;
	bool asked; /* pending; under the lock, as `next` */
	weft__a32 answered;
	weft_loop *home; /* loop of the waiting threadlet, or NULL */
	struct weft__waiter waiter;
	struct weft__node_head node;
};

/* --- one threadlet ------------------------------------------------------ */

const char *
weft__waiter_what(const struct weft__waiter *waiter)
{
	static const char *const names[] = {
		[WEFT__OP_POLL] = "fd",         [WEFT__OP_RECV] = "recv",
		[WEFT__OP_RECV_MULTI] = "recv", [WEFT__OP_ACCEPT] = "accept",
		[WEFT__OP_SEND] = "send",       [WEFT__OP_SENDMSG] = "send",
		[WEFT__OP_SENDFILE] = "send",   [WEFT__OP_CONNECT] = "connect",
	};
	const struct weft__op *op = weft__waiter_op(waiter);

	return op && op->kind >= WEFT__OP_POLL ? names[op->kind] : waiter->what;
}

/* An op that waits for a descriptor names it. */
static void
describe_op(const struct weft__op *op, weft_threadlet_info *out)
{
	if (op->place.block && out->deadline_ns == WEFT_NEVER)
		out->deadline_ns = op->place.due_ns;
	if (op->kind >= WEFT__OP_POLL)
		out->waits_on = op->fd;
}

static void
describe_wait(const struct weft__threadlet *t, weft_threadlet_info *out)
{
	const struct weft__waiter *waiter = t->waiter;
	const struct weft__op *op = waiter ? weft__waiter_op(waiter) : NULL;

	out->state = waiter ? "waiting" : "ready";
	out->waits_for = waiter ? weft__waiter_what(waiter) : "";
	out->waits_on = waiter ? waiter->on : 0;
	out->deadline_ns = t->place.block ? t->place.due_ns : WEFT_NEVER;
	if (op)
		describe_op(op, out);
}

static void
describe_stack(const struct weft__threadlet *t, weft_threadlet_info *out)
{
	struct weft__stack *stack = t->stack;
	const char *end;

	out->stack_bytes = weft__stack_bytes(stack->class);
	end = stack->base + out->stack_bytes;
	out->stack_high = weft__sys->stack_touched(stack->base, out->stack_bytes);
	if (weft__self() == t) {
		out->state = "running";
		out->stack_used = (size_t)(end - (const char *)__builtin_frame_address(0));
		(void)weft__frames_walk(weft__frame_here(t), out->frames, 16);
	} else {
		out->stack_used = (size_t)(end - (const char *)t->context.sp);
		(void)weft__frames_of(&t->context, out->frames, 16);
	}
	if (out->stack_high < out->stack_used)
		out->stack_high = out->stack_used;
	if (!out->frames[0]) /* it has not begun to run */
		out->frames[0] = out->fn;
}

void
weft__threadlet_describe(const struct weft__threadlet *t, weft_threadlet_info *out)
{
	*out = (weft_threadlet_info){
		.id = (int64_t)weft__load(&t->handle->id, WEFT__RELAXED),
		.since_ns = t->since_ns,
		.spawned_at = t->spawned_at,
		.fn = (const void *)(uintptr_t)t->fn,
	};
	__builtin_memcpy(out->name, t->name, sizeof(out->name));
	describe_wait(t, out);
	describe_stack(t, out);
}

/* --- a slice ------------------------------------------------------------ */

/* Invariant 3. */
static struct weft__threadlet *
find_place(const struct weft__sched *sched, uint64_t cursor)
{
	struct weft__threadlet *t = sched->newest;

	if (cursor == 0)
		return t;
	if (sched->mark && sched->mark->seq < cursor
	    && (!sched->mark->newer || sched->mark->newer->seq >= cursor))
		return sched->mark;
	while (t && t->seq >= cursor)
		t = t->older;
	return t;
}

/* On the loop's thread, or with the loop held. */
static void
threadlet_look_copy(struct weft__look *look)
{
	struct weft__sched *sched = weft__sched_at(look->loop);
	struct weft__threadlet *t = find_place(sched, look->cursor);

	for (; t && (size_t)look->count < look->max; t = t->older) {
		weft__threadlet_describe(t, &look->out[look->count++]);
		look->cursor = t->seq;
	}
	sched->mark = t;
}

/* --- requests to a loop that runs --------------------------------------- */

static void
on_answer(void *arg)
{
	struct weft__look *look = arg;

	if (weft__claim(&look->waiter))
		weft__wake(&look->waiter, 0);
}

void
weft__sched_look(weft_loop *loop)
{
	struct weft__look **link, *look;

	for (;;) {
		weft__lock_take(&weft__registry.lock);
		link = &weft__registry.asked;
		while (*link && (*link)->loop != loop)
			link = &(*link)->next;
		look = *link;
		if (look) {
			*link = look->next;
			look->asked = false;
			weft__loop_add_looks(loop, -1);
		}
		weft__lock_give(&weft__registry.lock);
		if (!look)
			return;
		threadlet_look_copy(look);
		if (look->home) {
			weft__loop_send(look->home, &look->node, on_answer, look);
			continue;
		}
		weft__store(&look->answered, 1, WEFT__RELEASE);
		weft__sys->unpark(&look->answered); /* it may be gone, which does no harm */
	}
}

static void
threadlet_look_request(struct weft__look *look)
{
	weft__lock_take(&weft__registry.lock);
	look->asked = true;
	look->next = weft__registry.asked;
	weft__registry.asked = look;
	weft__loop_add_looks(look->loop, 1);
	weft__lock_give(&weft__registry.lock);
	weft__loop_wake(look->loop);
}

/* Withdraw a request.  Returns false if it is being answered already. */
static bool
take_back(struct weft__look *look)
{
	struct weft__look **link = &weft__registry.asked;
	bool asked;

	weft__lock_take(&weft__registry.lock);
	asked = look->asked;
	if (asked) {
		while (*link != look)
			link = &(*link)->next;
		*link = look->next;
		look->asked = false;
		weft__loop_add_looks(look->loop, -1);
	}
	weft__lock_give(&weft__registry.lock);
	return asked;
}

static void
ask_to_end(struct weft__waiter *waiter, int why)
{
	struct weft__look *look =
		(struct weft__look *)(void *)((char *)waiter - offsetof(struct weft__look, waiter));

	if (take_back(look) && weft__claim(waiter))
		weft__wake(waiter, why);
}

static int
wait_as_threadlet(struct weft__look *look, uint64_t until_ns)
{
	look->waiter = (struct weft__waiter){ .what = "look",
		                              .on = (intptr_t)look->loop,
		                              .ask = ask_to_end };
	look->home = weft__self()->sched->loop;
	threadlet_look_request(look);
	return (int)weft__wait(&look->waiter, until_ns);
}

static int
wait_as_thread(struct weft__look *look, uint64_t until_ns)
{
	int rc = 0;

	threadlet_look_request(look);
	while (!weft__load(&look->answered, WEFT__ACQUIRE)) {
		if (rc == -ETIMEDOUT && take_back(look))
			return WEFT_ETIMEDOUT;
		if (rc == -ETIMEDOUT)
			until_ns = WEFT_NEVER;
		rc = weft__sys->park(&look->answered, 0, until_ns);
	}
	return 0;
}

/* --- the calls ---------------------------------------------------------- */

/* May the caller wait for another loop?  Returns 0, or an error. */
static int
check_wait(uint64_t deadline_ns)
{
	if (weft__self() || deadline_ns == WEFT_NOWAIT)
		return weft__may_wait(deadline_ns);
	return weft__thread_self()->loop ? weft__fail(
		       WEFT_ENOSUSPEND,
		       "weft_threadlet_list: a callback cannot wait for another loop; call it "
		       "from a threadlet")
	                                 : 0;
}

/* Invariant 2. */
static int
look_from_outside(struct weft__look *look, uint64_t deadline_ns)
{
	uint64_t until_ns;
	int rc;

	while (!weft__loop_is_going(look->loop)) {
		if (weft__loop_hold(look->loop)) {
			threadlet_look_copy(look);
			weft__loop_give_back(look->loop);
			return 0;
		}
		rc = check_wait(deadline_ns);
		if (rc < 0)
			return rc;
		until_ns = weft_after(WAIT_NS);
		until_ns = until_ns < deadline_ns ? until_ns : deadline_ns;
		rc = weft__self() ? wait_as_threadlet(look, until_ns)
		                  : wait_as_thread(look, until_ns);
		if (rc != WEFT_ETIMEDOUT || weft__sys->now() >= deadline_ns)
			return rc;
	}
	return 0;
}

/* The loop cannot be freed meanwhile. */
static int
threadlet_look_list(weft_loop *loop, uint64_t *cursor, struct weft__look *look,
                    uint64_t deadline_ns)
{
	int rc = 0;

	if (!weft__sched_at(loop))
		return 0;
	look->loop = loop;
	look->cursor = *cursor;
	if (loop == weft__thread_self()->loop)
		threadlet_look_copy(look);
	else
		rc = look_from_outside(look, deadline_ns);
	if (rc < 0)
		return rc;
	*cursor = look->cursor;
	return look->count;
}

int
weft__threadlet_list(weft_loop *loop, uint64_t *cursor, weft_threadlet_info *out, size_t max,
                     uint64_t deadline_ns)
{
	struct weft__look look = { .out = out, .max = max < SLICE_MAX ? max : SLICE_MAX };
	int rc;

	weft__loop_enter(loop);
	rc = threadlet_look_list(loop, cursor, &look, deadline_ns);
	weft__loop_exit(loop);
	return rc;
}

int
weft_threadlet_list(uint64_t loop_id, uint64_t *cursor, weft_threadlet_info *out, size_t max,
                    uint64_t deadline_ns)
{
	struct weft__look look = { .out = out, .max = max < SLICE_MAX ? max : SLICE_MAX };
	weft_loop *loop;
	int rc;

	if (!cursor || !out || max == 0)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_threadlet_list: cursor or out is NULL, or max is 0");
	loop = weft__registry_find(loop_id);
	if (!loop)
		return weft__fail(WEFT_ENOENT, "weft_threadlet_list: no loop has that ID");
	rc = threadlet_look_list(loop, cursor, &look, deadline_ns);
	weft__loop_exit(loop);
	return rc;
}
