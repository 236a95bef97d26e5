/* sched.c - the threadlet scheduler of a loop: which threadlet runs next, and on which stack.
 *
 * In its threadlet phase the loop switches to the first ready threadlet.  A threadlet that
 * suspends switches directly to the next one, and the last one switches back to the loop.
 *
 *   1. At most LEFT_MAX switches are made in a phase, so threadlets that yield all the time do not
 *      starve the rest of the loop.  A threadlet that becomes ready goes to the end of the queue.
 *   2. Microtasks and callbacks run on the thread's own stack.  As soon as there are some, the
 *      next switch goes to the loop.
 *   3. A dead threadlet cannot give its own stack back: the threadlet or loop that
 *      runs next reaps it.
 *   4. Thread state (errno, C++ exceptions) belongs to the running threadlet, or to the loop,
 *      and is saved and restored with each switch.
 *   5. While an iteration is traced, every switch goes through the loop, which records it.  So
 *      direct switches need no check for tracing.
 */
#include "threadlet/threadlet.h"

#define LEFT_MAX 64

/* Many threadlets do not fit into the caches.  Called with the threadlet that will run after the
 * one just popped: prefetch the top of its stack, and the struct of the threadlet behind it. */
static inline __attribute__((always_inline)) void
fetch_ahead(const struct weft__threadlet *next)
{
	if (!next)
		return;
	__builtin_prefetch(next->context.sp);
	__builtin_prefetch((const char *)next->context.sp + 64);
	__builtin_prefetch((const char *)next->context.sp + 128);
	__builtin_prefetch((const char *)next->context.sp + 192);
	if (next->next) {
		__builtin_prefetch(next->next);
		__builtin_prefetch(&next->next->why);
	}
}

static inline struct weft__threadlet *
sched_pop(weft_loop *loop)
{
	struct weft__run_queue *ready = weft__loop_ready(loop);
	struct weft__threadlet *next = ready->first;
	uint32_t left = weft__loop_left(loop);

	if (!next || left == 0)
		return NULL;
	weft__loop_set_left(loop, left - 1);
	ready->first = next->next;
	fetch_ahead(next->next);
	return next;
}

/* The threadlet to run next; NULL: the loop. */
static inline struct weft__threadlet *
pick(weft_loop *loop)
{
	if (weft__loop_must_return(loop)) /* invariants 2, 5 */
		return NULL;
	return sched_pop(loop);
}

/* Not inlined: most switches do not need it. */
__attribute__((noinline)) static void
reap_dead(struct weft__sched *sched)
{
	struct weft__threadlet *dead = sched->dead;

	sched->dead = NULL;
	weft__threadlet_reap(sched, dead);
}

static inline void
reap(struct weft__sched *sched) /* invariant 3 */
{
	if (sched->dead)
		reap_dead(sched);
}

/* Invariant 4: after a switch to `self`, restore its state. */
static inline void
restore(struct weft__sched *sched, const struct weft__threadlet *self)
{
	*sched->error = self->saved_errno;
	if (__builtin_expect(sched->exceptions != NULL, 0)) {
		sched->exceptions[0] = self->exceptions[0];
		sched->exceptions[1] = self->exceptions[1];
	}
}

static inline void
save(struct weft__sched *sched, struct weft__threadlet *self)
{
	self->saved_errno = *sched->error;
	if (__builtin_expect(sched->exceptions != NULL, 0)) {
		self->exceptions[0] = sched->exceptions[0];
		self->exceptions[1] = sched->exceptions[1];
	}
}

static inline void
switch_in(struct weft__sched *sched, const struct weft__threadlet *self)
{
	reap(sched);
	restore(sched, self);
	sched->streak = 0;
}

void
weft__switch_in(struct weft__threadlet *self)
{
	switch_in(self->sched, self);
}

void
weft__switch_out(struct weft__threadlet *self)
{
	struct weft__sched *sched = self->sched;
	weft_loop *loop = weft__loop_here();
	struct weft__threadlet *next = pick(loop);

	if (next == self)
		return;
	save(sched, self);
	self->since_ns = weft__loop_last_ns(loop);
	sched->thread->threadlet = next;
	weft__switch(&self->context, next ? &next->context : &sched->context);
	switch_in(sched, self);
}

struct weft__context *
weft__switch_out_dead(struct weft__threadlet *self)
{
	struct weft__sched *sched = self->sched;
	struct weft__threadlet *next = pick(weft__loop_here());

	sched->dead = self;
	sched->thread->threadlet = next;
	return next ? &next->context : &sched->context;
}

/* --- the loop's part ---------------------------------------------------- */

/* This thread runs the loop from now on. */
static void
bind_thread(struct weft__sched *sched, struct weft__thread *thread)
{
	weft__context_init(&sched->context);
	sched->thread = thread;
	sched->error = weft__errno();
	sched->exceptions = weft__exceptions();
}

/* Invariant 5.  Returns when `next` has suspended, or is dead and not reaped yet. */
WEFT__COLD static void
switch_traced(struct weft__sched *sched, struct weft__threadlet *next)
{
	weft__trace_resume(next);
	weft__switch(&sched->context, &next->context);
	weft__trace_suspend(next, sched->dead == next);
}

static void
change_to(struct weft__sched *sched, struct weft__threadlet *next)
{
	struct weft__thread *thread = sched->thread;
	int error = *sched->error;
	void *exceptions[2] = { NULL, NULL };

	if (sched->exceptions)
		__builtin_memcpy(exceptions, sched->exceptions, sizeof(exceptions));
	thread->threadlet = next;
	if (__builtin_expect(weft__loop_is_traced(sched->loop), 0))
		switch_traced(sched, next);
	else
		weft__switch(&sched->context, &next->context);
	if (sched->exceptions)
		__builtin_memcpy(sched->exceptions, exceptions, sizeof(exceptions));
	reap(sched);
	*sched->error = error;
}

static void
sched_run(weft_loop *loop)
{
	struct weft__sched *sched = weft__sched_at(loop);
	struct weft__thread *thread = weft__thread_self();
	struct weft__threadlet *next;

	if (sched->thread != thread)
		bind_thread(sched, thread);
	if (weft__load(&weft__overflow_is_caught, WEFT__RELAXED) && !thread->has_signal_stack)
		weft__overflow_prepare(thread);
	(void)weft__loop_time(loop);
	sched->modes = weft__modes();
	weft__loop_set_left(loop, LEFT_MAX);
	while ((next = sched_pop(loop))) {
		change_to(sched, next);
		weft__checkpoint(loop);
	}
	weft__loop_called(loop, WEFT_PHASE_THREADLETS, LEFT_MAX - weft__loop_left(loop));
}

/* In a signal handler on the loop's thread. */
static void
sched_describe_holder(weft_loop *loop, struct weft__holder *out)
{
	const struct weft__threadlet *t = weft__self();

	if (!t || t->sched->loop != loop)
		return;
	out->id = weft__threadlet_id(t);
	__builtin_memcpy(out->name, t->name, sizeof(out->name));
	out->spawned_at = t->spawned_at;
	out->fn = (const void *)(uintptr_t)t->fn;
	out->low = t->stack->base;
	out->high = (const char *)t;
}

static void
sched_cancel(weft_loop *loop)
{
	struct weft__threadlet *t = weft__sched_at(loop)->newest;

	while (t && t->older)
		t = t->older;
	for (; t; t = t->newer)
		weft__threadlet_end(t, WEFT_ECANCELED);
}

/* Not before the scheduler ends: a weft_scope that was never closed may still point to its
 * struct. */
static void
free_scopes(struct weft__sched *sched)
{
	while (sched->scopes) {
		struct weft__scope *scope = sched->scopes;

		sched->scopes = scope->outer;
		weft__sys->release(scope);
	}
}

/* In a forked child the stacks of threadlets that were alive are lost with the loop: the
 * parent's threads, which could run them, do not exist there. */
static void
sched_free(weft_loop *loop, bool alone)
{
	struct weft__sched *sched = weft__sched_at(loop);

	if (!alone) {
		weft__assert(!sched->newest && !sched->dead);
		weft__stacks_fini(&sched->stacks);
		free_scopes(sched);
		weft__handles_fini(sched);
	}
	weft__sys->release(sched);
}

static const struct weft__sched_ops sched_ops = {
	.part.free = sched_free,
	.run = sched_run,
	.cancel = sched_cancel,
	.expire = weft__sched_expire,
	.check = weft__sched_check,
	.answer_listings = weft__sched_answer_listings,
	.describe_holder = sched_describe_holder,
	.add_unfinished = weft__sched_add_unfinished,
	.trace_mark = weft__threadlet_trace_mark,
	.layout = weft_gdb_layout,
};

void
weft__threadlets_forked(void)
{
	weft__handles_forked();
	weft__stacks_forked();
}

struct weft__sched *
weft__sched_make(weft_loop *loop)
{
	struct weft__sched *sched = weft__alloc_zero(sizeof(*sched));
	struct weft__part *other;

	if (!sched)
		return NULL;
	sched->part.ops = &sched_ops.part;
	weft__put(sched->loop, loop);
	weft__mailbox_init(&sched->requests, loop, weft__on_request);
	sched->modes = weft__modes();
	sched->max = weft__loop_threadlet_max(loop);
	sched->size_class = weft__stack_class(weft__loop_stack_bytes(loop));
	weft__handles_init();
	other = weft__loop_attach(loop, WEFT__PART_SCHED, &sched->part);
	if (other == &sched->part)
		return sched;
	/* Another thread was first.  It released the lock of the handles, in
	 * weft__handles_init(), before it published its scheduler.  weft__handles_fini() takes
	 * that lock, and so acquires what the other thread wrote. */
	weft__handles_fini(sched);
	weft__sys->release(sched);
	return (struct weft__sched *)(void *)other;
}
