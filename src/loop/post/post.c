/* post.c - handing calls to a loop, from any thread. */
#include "loop/post/producer.h"
#include "loop/core/loop.h"

static __attribute__((noinline, cold)) int
refused(weft_loop *loop, int error, const char *call)
{
	(void)weft__add(&loop->counts.refused, 1, WEFT__RELAXED);
	return weft__fail_in(error, call,
	                     error == WEFT_EAGAIN ? "the inbox is full, or there is no memory"
	                                          : "the loop is stopping");
}

/* A function of its own, so that post_node() remains small enough to be inlined. */
static __attribute__((noinline, cold)) int
refused_node(weft_loop *loop, int error)
{
	return refused(loop, error, "weft_loop_post_node");
}

/* Post through this thread's producer queue.  0, or an error. */
static int
post_by_producer(weft_loop *loop, weft_fn fn, void *arg)
{
	int rc = weft__inbox_is_closed(&loop->inbox) ? WEFT_ESHUTDOWN
	                                             : weft__producer_post(&loop->inbox, fn, arg);

	if (rc > 0)
		weft__loop_wake_sleeper(loop, rc);
	return rc < 0 ? refused(loop, rc, "weft_loop_post") : 0;
}

/* The same, recorded in the trace.  Once the post is accepted, the loop may be freed. */
static __attribute__((noinline, cold)) int
post_traced(weft_loop *loop, weft_fn fn, void *arg)
{
	uint64_t begin_ns = weft__sys->now(), id = loop->inbox.id;
	int rc = post_by_producer(loop, fn, arg);

	if (rc == 0)
		weft__trace_did(WEFT__TRACE_POST, weft__producer_last_key(id),
		                (const void *)(uintptr_t)fn, begin_ns);
	return rc;
}

/* The slow path of every post.  0, or an error. */
static __attribute__((noinline)) int
post(weft_loop *loop, weft_fn fn, void *arg)
{
	if (!loop || !fn)
		return weft__misuse(WEFT_EINVAL, "weft_loop_post: there is no loop, or fn is NULL");
	if (weft__loop_is_forked(loop))
		return weft__misuse(WEFT_EWRONGLOOP,
		                    "weft_loop_post: the loop was made by a parent process");
	return weft__tracing() ? post_traced(loop, fn, arg) : post_by_producer(loop, fn, arg);
}

/* An entry has been written, and the loop must be signaled. */
static __attribute__((noinline)) int
loop_post_notify(weft_loop *loop, struct weft__producer *producer)
{
	int rc = weft__producer_signal(&loop->inbox, producer);

	if (rc > 0)
		weft__loop_wake_sleeper(loop, rc);
	return rc < 0 ? refused(loop, rc, "weft_loop_post") : 0;
}

/* This thread's producer queue of the loop, if the thread used it last, it has room, and the
 * fast path is allowed.  Else NULL. */
static inline struct weft__producer *
producer_at_hand(const weft_loop *loop)
{
	const struct weft__thread *self = weft__thread_here();
	struct weft__producer *producer;

	if (!loop || !self || self->post_id != loop->inbox.id || weft__loop_is_forked(loop)
	    || weft__tracing() || weft__inbox_is_closed(&loop->inbox))
		return NULL;
	producer = self->post_producer;
	return weft__producer_is_full(producer) ? NULL : producer;
}

/* The rare cases are tail calls, so that the fast path saves no registers. */
int
weft_loop_post(weft_loop *loop, weft_fn fn, void *arg)
{
	struct weft__producer *producer = producer_at_hand(loop);

	if (__builtin_expect(!producer || !fn, 0))
		return post(weft__loop_or_current(loop), fn, arg);
	if (__builtin_expect(!weft__producer_put(producer, fn, arg), 0))
		return loop_post_notify(loop, producer);
	return 0;
}

/* A loop that posts to itself does not wait for a batch (weft__loop_gather()). */
static inline void
note_own(weft_loop *loop)
{
	uintptr_t self = (uintptr_t)weft__thread_here();

	if (self && weft__load(&loop->runner, WEFT__RELAXED) == self)
		loop->spin.own = true;
}

/* The loop's own thread bypasses the inbox, unless something that it posted before may still
 * be there: a node in the inbox, or entries in a producer queue. */
static inline bool
post_here(weft_loop *loop, struct weft__node *node)
{
	const struct weft__thread *self = weft__thread_here();

	if (!self || weft__load(&loop->runner, WEFT__RELAXED) != (uintptr_t)self || self->producers
	    || weft__load(&loop->inbox.head, WEFT__RELAXED))
		return false;
	weft__node_append(&loop->own, node);
	loop->own_count++;
	return true;
}

/* Post a node whose state is QUEUED already.  0, or an error. */
static inline int
post_node(weft_loop *loop, struct weft__node *node)
{
	int rc;

	if (post_here(loop, node))
		return 0;
	note_own(loop);
	rc = weft__inbox_is_closed(&loop->inbox) ? WEFT_ESHUTDOWN
	                                         : weft__producer_post_node(&loop->inbox, node);
	if (rc < 0)
		weft__store(&node->state, 0, WEFT__RELAXED);
	else
		weft__loop_wake_sleeper(loop, rc);
	return rc < 0 ? refused_node(loop, rc) : 0;
}

/* The same, recorded in the trace.  Once the post is accepted, the loop and the node may be
 * freed. */
static __attribute__((noinline, cold)) int
post_node_traced(weft_loop *loop, struct weft__node *node)
{
	uint64_t begin_ns = weft__sys->now();
	const void *fn = (const void *)(uintptr_t)node->fn;
	int rc = post_node(loop, node);

	if (rc == 0)
		weft__trace_did(WEFT__TRACE_POST, (uintptr_t)node, fn, begin_ns);
	return rc;
}

int
weft_loop_post_node(weft_loop *loop, weft_node *handle)
{
	struct weft__node *node = (struct weft__node *)(void *)handle;

	loop = weft__loop_or_current(loop);
	if (!loop || !node || !node->fn)
		return weft__misuse(
			WEFT_EINVAL,
			"weft_loop_post_node: there is no loop, or node or its fn is NULL");
	if (weft__loop_is_forked(loop))
		return weft__misuse(WEFT_EWRONGLOOP,
		                    "weft_loop_post_node: the loop was made by a parent process");
	if (weft__load(&node->state, WEFT__ACQUIRE)) /* N, in inbox.c */
		return weft__misuse(WEFT_EBUSY, "weft_loop_post_node: the node is already queued");
	weft__store(&node->state, WEFT__NODE_QUEUED, WEFT__RELAXED);
	weft__put(node->kind, 0);
	if (__builtin_expect(weft__tracing(), 0))
		return post_node_traced(loop, node);
	return post_node(loop, node);
}

int
weft_loop_post_before_wait(weft_loop *loop, weft_node *handle)
{
	struct weft__node *node = (struct weft__node *)(void *)handle;
	int rc;

	loop = weft__loop_or_current(loop);
	rc = weft__loop_check(loop, "weft_loop_post_before_wait");
	if (rc < 0)
		return rc;
	if (!node || !node->fn)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_loop_post_before_wait: node or its fn is NULL");
	if (weft__load(&node->state, WEFT__RELAXED))
		return 0; /* stays queued */
	weft__store(&node->state, WEFT__NODE_QUEUED, WEFT__RELAXED);
	weft__node_append(&loop->last, node);
	weft__loop_changed(loop);
	return 0;
}

void
weft_loop_wake(weft_loop *loop)
{
	loop = weft__loop_or_current(loop);
	if (!loop || weft__loop_is_forked(loop))
		return;
	weft__loop_enter(loop);
	weft__loop_wake(loop);
	weft__loop_exit(loop);
}
