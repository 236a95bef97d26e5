/* turn.c - one loop iteration, on one screen.
 *
 *   1. Each phase runs what was there when it began; what callbacks add runs in a later phase
 *      or iteration.  So no source starves another: the budgets bound an iteration.
 *   2. A microtask checkpoint follows every callback.
 *   3. After a callback, nothing is touched that the callback could have freed.  The loop
 *      itself cannot be freed while it runs.
 *
 * A phase that many iterations do not need is WEFT__NOINLINE, so that the code of the iteration
 * stays small.
 */
#include "loop/post/producer.h"
#include "loop/core/loop.h"

#define RESUME_NS (20 * WEFT_MS) /* until a throttled accept is tried again */

/* Fire a timer, or let a deadline expire.  Returns the number of timers fired: 1 or 0. */
static unsigned
expire(weft_loop *loop, struct weft__wheel_entry *entry)
{
	switch (entry->kind & WEFT__ENTRY_KIND) {
	case WEFT__ENTRY_TIMER:
		if (weft__loop_is_stopping(loop) && !(entry->kind & WEFT__ENTRY_FIRM))
			return 0; /* disarmed without a call */
		weft__timer_fire(&loop->wheel, weft__entry_timer(entry));
		return 1;
	case WEFT__ENTRY_TIMER_HANDLE:
		return weft__timer_handle_expire(loop, entry);
	case WEFT__ENTRY_OP:
		weft__op_expire(loop, entry);
		return 0;
	case WEFT__ENTRY_THREADLET:
	case WEFT__ENTRY_SCOPE:
		weft__loop_sched(loop)->expire(loop, entry);
		return 0;
	default:
		weft__ready_resume(&loop->backend);
		return 0;
	}
}

static WEFT__NOINLINE void
run_timers(weft_loop *loop)
{
	struct weft_wheel *wheel = &loop->wheel;
	struct weft__wheel_entry *entry;
	uint64_t before_ns = wheel->now_ns;
	unsigned left = WEFT__CALLS_MAX, fired = 0;

	if (loop->ending)
		return;
	if (!weft__wheel_has_run(wheel)) {
		if (weft__loop_time(loop) < wheel->bound_ns)
			return;
		weft__wheel_collect(wheel, loop->now_ns);
	}
	while (left-- > 0 && (loop->draining || !weft__loop_is_stopping(loop))
	       && (entry = weft__wheel_pop(wheel))) {
		if ((entry->kind & WEFT__ENTRY_DEADLINE)
		    && !weft__deadline_may_expire(loop, entry)) {
			weft__wheel_put_back(wheel, entry);
			break;
		}
		if (loop->timed && left == WEFT__CALLS_MAX - 1)
			weft__sampler_late(loop, entry->due_ns, before_ns);
		fired += expire(loop, entry);
		weft__checkpoint(loop);
	}
	weft__count(&loop->counts.timers_fired, fired);
	weft__loop_called(loop, WEFT_PHASE_TIMERS, fired);
}

void
weft__loop_end_phase(weft_loop *loop, int phase, uint32_t calls)
{
	if (loop->timed)
		weft__sampler_mark(loop, phase);
	if (loop->traced)
		weft__trace_phase(loop, phase, calls);
}

/* The trace key of the post that the next call of a list, or of a producer queue, came from. */
static uint64_t
key_in_list(const struct weft__node_list *list)
{
	const struct weft__node *node = list->first;

	while (node && (weft__get(node->kind) & WEFT__NODE_PRODUCER))
		node = node->next; /* it has no call */
	return (uintptr_t)node;
}

static uint64_t
key_in_producer(const struct weft__producer *producer)
{
	uint64_t done = weft__load(&producer->done, WEFT__RELAXED);
	const struct weft__node *node = producer->nodes.first;

	return node && node->before == done ? (uintptr_t)node : weft__producer_key(producer, done);
}

/* A post that is about to run, and the time; read before its memory is released. */
struct trace_point {
	uint64_t key, at_ns;
};

static const struct trace_point untraced;

static WEFT__NOINLINE struct trace_point
trace_point_now(uint64_t key)
{
	return (struct trace_point){ key, weft__sys->now() };
}

static WEFT__NOINLINE void
call_traced(weft_loop *loop, weft_fn fn, void *arg, struct trace_point point)
{
	fn(arg);
	weft__checkpoint(loop);
	weft__trace_did(WEFT__TRACE_RAN, point.key, (const void *)(uintptr_t)fn, point.at_ns);
}

/* Run at most `max` calls of a list.  A node without a function only wakes the loop.  Returns how
 * many were posts, or with `own` how many were run. */
static inline __attribute__((always_inline)) uint32_t
run_calls(weft_loop *loop, struct weft__node_list *list, uint32_t max, bool traced, bool own)
{
	struct trace_point point = traced ? trace_point_now(key_in_list(list)) : untraced;
	struct weft__node_call call;
	uint32_t count = 0;

	for (; max > 0 && weft__node_pop(list, &call); max--) {
		if (!call.fn) {
			weft__loop_take_wake(loop);
		} else if (traced) {
			call_traced(loop, call.fn, call.arg, point);
		} else {
			call.fn(call.arg);
			weft__checkpoint(loop);
		}
		count += own || call.is_post;
		point = traced ? trace_point_now(key_in_list(list)) : untraced;
	}
	return count;
}

static WEFT__NOINLINE uint32_t
run_list_traced(weft_loop *loop, struct weft__node_list *list, uint32_t max)
{
	return run_calls(loop, list, max, true, list == &loop->first);
}

static uint32_t
run_list(weft_loop *loop, struct weft__node_list *list, uint32_t max)
{
	return __builtin_expect(loop->traced, 0) ? run_list_traced(loop, list, max)
	                                         : run_calls(loop, list, max, false, false);
}

/* Run at most `share` entries of a producer queue. */
static inline __attribute__((always_inline)) uint32_t
run_producer(weft_loop *loop, struct weft__producer *producer, uint32_t share, bool traced)
{
	struct trace_point point = traced ? trace_point_now(key_in_producer(producer)) : untraced;
	uint32_t ran = 0;
	weft_fn fn;
	void *arg;

	while (ran < share && weft__producer_next(producer, &fn, &arg)) {
		ran++;
		if (traced) {
			call_traced(loop, fn, arg, point);
			point = trace_point_now(key_in_producer(producer));
		} else {
			fn(arg);
			weft__checkpoint(loop);
		}
	}
	return ran;
}

static WEFT__NOINLINE uint32_t
run_producer_traced(weft_loop *loop, struct weft__producer *producer, uint32_t share)
{
	return run_producer(loop, producer, share, true);
}

/* Run at most `budget` entries of producer queues that have signaled; returns how many. */
static WEFT__NOINLINE uint32_t
run_producers(weft_loop *loop, uint32_t budget)
{
	uint32_t all = 0;

	for (uint32_t producers = loop->inbox.listed.count; producers > 0 && all < budget;
	     producers--) {
		struct weft__producer *producer = weft__producer_begin(&loop->inbox);
		uint32_t share = (budget - all + producers - 1) / producers, ran;

		ran = __builtin_expect(loop->traced, 0)
		              ? run_producer_traced(loop, producer, share)
		              : run_producer(loop, producer, share, false);
		weft__producer_end(producer, ran);
		all += ran;
	}
	weft__count(&loop->counts.taken, all);
	return all;
}

/* Run the library's own nodes. */
static inline __attribute__((always_inline)) void
run_first(weft_loop *loop)
{
	struct weft__node_list *first = &loop->first;
	uint32_t ran = __builtin_expect(loop->traced, 0)
	                       ? run_list_traced(loop, first, WEFT__CALLS_MAX)
	                       : run_calls(loop, first, WEFT__CALLS_MAX, false, true);

	weft__count(&loop->counts.internal, -(uint64_t)ran);
}

/* Run the library's own nodes, then the posts: a list, and the producer queues.  In most
 * iterations some of these are empty.  Returns how many posts came by producer queues. */
static inline __attribute__((always_inline)) uint32_t
run_posts(weft_loop *loop)
{
	uint32_t calls = 0, by_producers = 0;

	if (loop->first.first)
		run_first(loop);
	if (loop->posts.first)
		calls = run_list(loop, &loop->posts, loop->budget);
	if (loop->inbox.listed.count > 0)
		by_producers = run_producers(loop, loop->budget);
	if (calls | by_producers)
		weft__loop_called(loop, WEFT_PHASE_INBOX, calls + by_producers);
	return by_producers;
}

/* Run the queues of bindings.  Their time counts as the inbox phase. */
static WEFT__NOINLINE void
run_ready(weft_loop *loop)
{
	weft__hooks_ready(loop);
	if ((uintptr_t)loop->timed | loop->traced)
		weft__loop_end_phase(loop, WEFT_PHASE_INBOX, 0);
}

/* Run the nodes of weft_loop_post_before_wait(), once each, whatever they add. */
static WEFT__NOINLINE void
run_last(weft_loop *loop)
{
	struct weft__node_list last = loop->last;
	uint32_t calls;

	loop->last = (struct weft__node_list){ 0 };
	*last.end = NULL;
	calls = run_list(loop, &last, UINT32_MAX);
	weft__count(&loop->counts.taken, calls);
	weft__loop_called(loop, WEFT_PHASE_INBOX, calls);
}

/* Checked in order of likelihood. */
bool
weft__loop_has_work(const weft_loop *loop)
{
	return loop->own.first || loop->ready.first || weft__inbox_has(&loop->inbox)
	       || loop->posts.first || loop->first.first || loop->backend.done.first
	       || loop->backend.events_count > 0 || loop->last.first || loop->timer_handles.due
	       || weft__loop_task_count(loop) > 0 || loop->hooks.more > 0 || loop->promises_due
	       || loop->backend.ended;
}

bool
weft__loop_is_runnable(const weft_loop *loop)
{
	return weft__loop_has_work(loop) || weft__wheel_has_run(&loop->wheel);
}

bool
weft__loop_is_alive(weft_loop *loop)
{
	if (weft__loop_alive(loop) > 0)
		return true;
	weft__producers_check(&loop->inbox);
	return weft__loop_is_runnable(loop);
}

/* The time until which the wait may last; WEFT_NOWAIT: no wait. */
static uint64_t
wait_until(weft_loop *loop, uint64_t deadline_ns)
{
	uint64_t bound_ns;
	bool wake = loop->wake_pending;

	loop->wake_pending = false;
	if (wake || deadline_ns == WEFT_NOWAIT || weft__loop_is_runnable(loop)
	    || (weft__load(&loop->break_requested, WEFT__RELAXED) && !weft__loop_is_stopping(loop)))
		return WEFT_NOWAIT;
	if (loop->ending
	    || (weft__loop_is_stopping(loop)
	        && (!loop->draining || weft__count_get(&loop->threadlets) == 0)))
		return loop->ending && loop->ops > 0 ? deadline_ns : WEFT_NOWAIT;
	if (weft__loop_alive(loop) == 0 && !loop->keep && !loop->draining)
		return WEFT_NOWAIT;
	bound_ns = weft__wheel_bound(&loop->wheel);
	return bound_ns < deadline_ns ? bound_ns : deadline_ns;
}

/* As far as the loop knows, only posts can still arrive from outside. */
static bool
is_alone(const weft_loop *loop)
{
	return weft__count_get(&loop->threadlets) > 0 && loop->ops == 0
	       && loop->backend.fds.in_use == 0 && !loop->hooks.first
	       && (!loop->keep || loop->draining) && !weft__loop_is_embedded(loop);
}

static void
wait(weft_loop *loop, uint64_t deadline_ns)
{
	uint64_t until_ns = wait_until(loop, deadline_ns);

	if (until_ns == WEFT_NOWAIT) {
		weft__loop_poll(loop);
		return;
	}
	if (loop->hooks.first) {
		weft__hooks_before_wait(loop, true);
		until_ns = wait_until(loop, deadline_ns); /* hooks may add work */
	} else if (until_ns == WEFT_NEVER && is_alone(loop)) {
		weft__loop_sched(loop)->check(loop);
		until_ns = wait_until(loop, deadline_ns); /* the report hook may add work */
	}
	if (until_ns != WEFT_NOWAIT)
		weft__loop_sleep(loop, until_ns);
	else
		weft__loop_poll_kernel(loop);
	loop->now_ns = 0;
	if (loop->hooks.first)
		weft__hooks_after_wait(loop, true);
}

/* Throttled accepts are tried again a little later. */
static WEFT__NOINLINE void
plan_resume(weft_loop *loop)
{
	if (loop->resume.block || loop->ending)
		return;
	loop->resume.kind = WEFT__ENTRY_RESUME | WEFT__ENTRY_BACKGROUND;
	/* Without memory for the entry, the next iteration follows at once and adds it. */
	if (weft__wheel_add(&loop->wheel, &loop->resume, weft__loop_time(loop) + RESUME_NS) < 0)
		loop->wake_pending = true;
}

/* Deliver what the kernel reported. */
static WEFT__NOINLINE void
run_reported(weft_loop *loop)
{
	struct weft__ready ready;
	uint32_t calls = 0;

	for (; loop->backend.ops && calls < WEFT__CALLS_MAX
	       && loop->backend.ops->next(&loop->backend, &ready);
	     calls++) {
		if (ready.watch)
			ready.watch->fn(ready.watch, (int)ready.ready, ready.watch->arg);
		else
			weft__op_deliver(loop, ready.op);
		weft__checkpoint(loop);
	}
	weft__loop_called(loop, WEFT_PHASE_DONE, calls);
	loop->backend.more |= calls == WEFT__CALLS_MAX;
}

void
weft__turn(weft_loop *loop, uint64_t deadline_ns)
{
	uint32_t taken;

	loop->now_ns = 0;
	loop->in_turn = true;
	if (weft__count(&loop->counts.turns, 1) == loop->timed_turn)
		weft__sampler_begin(loop);
	if (__builtin_expect(weft__tracing() | loop->traced, 0))
		weft__trace_turn(loop);
	if (weft__count_get(&loop->wheel.count) > 0)
		run_timers(loop);
	taken = weft__loop_take(loop);
	taken += run_posts(loop);
	if (loop->ready.first)
		weft__loop_sched(loop)->run(loop);
	if (loop->hooks.first)
		run_ready(loop);
	if (loop->last.first)
		run_last(loop);
	weft__loop_gather(loop, taken);
	wait(loop, deadline_ns);
	if (loop->backend.ops)
		run_reported(loop);
	if (loop->backend.done.first)
		weft__ops_run_done(loop);
	if (loop->backend.throttled.first)
		plan_resume(loop);
	if (loop->timer_handles.due)
		weft__timer_handles_run_due(loop);
	if (loop->backend.ended)
		weft__watches_run_ended(loop);
	if (loop->expiry.stage)
		weft__expiry_step(loop);
	if (loop->timed)
		weft__sampler_end(loop);
	loop->in_turn = false;
}
