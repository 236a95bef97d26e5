/* crew.c - the threadlet scheduler of a loop: which threadlet runs next, and on which stack.
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
pop(weft_loop *loop)
{
	struct weft__threadlet *next = loop->ready.first;
	uint32_t left = weft__count_get(&loop->left);

	if (!next || left == 0)
		return NULL;
	weft__count_set(&loop->left, left - 1);
	loop->ready.first = next->next;
	fetch_ahead(next->next);
	return next;
}

/* The threadlet to run next; NULL: the loop. */
static inline struct weft__threadlet *
pick(weft_loop *loop)
{
	if (loop->ticks.count | loop->microtasks.count | loop->hooks.checkpoints
	    | loop->traced) /* invariants 2, 5 */
		return NULL;
	return pop(loop);
}

/* Not inlined: most switches do not need it. */
__attribute__((noinline)) static void
bury_dead(struct weft__crew *crew)
{
	struct weft__threadlet *dead = crew->dead;

	crew->dead = NULL;
	weft__threadlet_bury(crew, dead);
}

static inline void
bury(struct weft__crew *crew) /* invariant 3 */
{
	if (crew->dead)
		bury_dead(crew);
}

/* Invariant 4: after a switch to `self`, restore its state. */
static inline void
restore(struct weft__crew *crew, const struct weft__threadlet *self)
{
	*crew->error = self->saved_errno;
	if (__builtin_expect(crew->exceptions != NULL, 0)) {
		crew->exceptions[0] = self->exceptions[0];
		crew->exceptions[1] = self->exceptions[1];
	}
}

static inline void
save(struct weft__crew *crew, struct weft__threadlet *self)
{
	self->saved_errno = *crew->error;
	if (__builtin_expect(crew->exceptions != NULL, 0)) {
		self->exceptions[0] = crew->exceptions[0];
		self->exceptions[1] = crew->exceptions[1];
	}
}

static inline void
arrive(struct weft__crew *crew, const struct weft__threadlet *self)
{
	bury(crew);
	restore(crew, self);
	crew->streak = 0;
}

void
weft__arrive(struct weft__threadlet *self)
{
	arrive(self->crew, self);
}

void
weft__leave(struct weft__threadlet *self)
{
	struct weft__crew *crew = self->crew;
	weft_loop *loop = weft__loop_here();
	struct weft__threadlet *next = pick(loop);

	if (next == self)
		return;
	save(crew, self);
	self->since_ns = loop->now_ns;
	crew->thread->threadlet = next;
	weft__switch(&self->context, next ? &next->context : &crew->context);
	arrive(crew, self);
}

struct weft__context *
weft__leave_for_ever(struct weft__threadlet *self)
{
	struct weft__crew *crew = self->crew;
	struct weft__threadlet *next = pick(weft__loop_here());

	crew->dead = self;
	crew->thread->threadlet = next;
	return next ? &next->context : &crew->context;
}

/* --- the loop's part ---------------------------------------------------- */

/* This thread runs the loop from now on. */
static void
board(struct weft__crew *crew, struct weft__thread *thread)
{
	weft__context_init(&crew->context);
	crew->thread = thread;
	crew->error = weft__errno();
	crew->exceptions = weft__exceptions();
}

static struct weft__crew *
crew_at(weft_loop *loop)
{
	return (struct weft__crew *)weft__load(&loop->crew, WEFT__ACQUIRE);
}

/* Invariant 5.  Returns when `next` has suspended, or is dead and not reaped yet. */
WEFT__SELDOM static void
switch_traced(struct weft__crew *crew, struct weft__threadlet *next)
{
	weft__trace_come(next);
	weft__switch(&crew->context, &next->context);
	weft__trace_leave(next, crew->dead == next);
}

static void
change_to(struct weft__crew *crew, struct weft__threadlet *next)
{
	struct weft__thread *thread = crew->thread;
	int error = *crew->error;
	void *exceptions[2] = { NULL, NULL };

	if (crew->exceptions)
		__builtin_memcpy(exceptions, crew->exceptions, sizeof(exceptions));
	thread->threadlet = next;
	if (__builtin_expect(crew->loop->traced, 0))
		switch_traced(crew, next);
	else
		weft__switch(&crew->context, &next->context);
	if (crew->exceptions)
		__builtin_memcpy(crew->exceptions, exceptions, sizeof(exceptions));
	bury(crew);
	*crew->error = error;
}

static void
crew_run(weft_loop *loop)
{
	struct weft__crew *crew = crew_at(loop);
	struct weft__thread *thread = weft__thread_self();
	struct weft__threadlet *next;

	if (crew->thread != thread)
		board(crew, thread);
	if (weft__load(&weft__overflow_is_caught, WEFT__RELAXED) && !thread->has_signal_stack)
		weft__overflow_prepare(thread);
	(void)weft__loop_time(loop);
	crew->modes = weft__modes();
	weft__count_set(&loop->left, LEFT_MAX);
	while ((next = pop(loop))) {
		change_to(crew, next);
		weft__checkpoint(loop);
	}
	weft__loop_called(loop, WEFT_PHASE_THREADLETS, LEFT_MAX - weft__count_get(&loop->left));
}

/* In a signal handler on the loop's thread. */
static void
crew_tell_holder(weft_loop *loop, struct weft__holder *out)
{
	const struct weft__threadlet *t = weft__self();

	if (!t || t->crew->loop != loop)
		return;
	out->id = weft__threadlet_id(t);
	__builtin_memcpy(out->name, t->name, sizeof(out->name));
	out->spawned_at = t->spawned_at;
	out->fn = (const void *)(uintptr_t)t->fn;
	out->low = t->stack->base;
	out->high = (const char *)t;
}

static void
crew_cancel(weft_loop *loop)
{
	struct weft__threadlet *t = crew_at(loop)->newest;

	while (t && t->older)
		t = t->older;
	for (; t; t = t->newer)
		weft__threadlet_end(t, WEFT_ECANCELED);
}

static size_t
crew_trim(weft_loop *loop)
{
	struct weft__crew *crew = crew_at(loop);

	return weft__stack_trim(&crew->stacks);
}

/* Not before the scheduler ends: a scope that was left open may still point to its record. */
static void
free_scopes(struct weft__crew *crew)
{
	while (crew->scopes) {
		struct weft__scope *scope = crew->scopes;

		crew->scopes = scope->outer;
		weft__sys->release(scope);
	}
}

/* In a forked child the stacks of threadlets that were alive are lost with the loop: the
 * parent's threads, which could run them, do not exist there. */
static void
crew_fini(weft_loop *loop, bool alone)
{
	struct weft__crew *crew = crew_at(loop);

	if (!alone) {
		weft__assert(!crew->newest && !crew->dead);
		(void)crew_trim(loop);
		free_scopes(crew);
		weft__handles_fini(crew);
	}
	weft__sys->release(crew);
}

const struct weft__crew_ops weft__crew_ops = {
	.run = crew_run,
	.cancel = crew_cancel,
	.expire = weft__crew_expire,
	.trim = crew_trim,
	.check = weft__crew_check,
	.look = weft__crew_look,
	.tell_holder = crew_tell_holder,
	.add_rest = weft__crew_add_rest,
	.trace_mark = weft__threadlet_trace_mark,
	.fini = crew_fini,
	.layout = weft_gdb_layout,
};

struct weft__crew *
weft__crew_make(weft_loop *loop)
{
	struct weft__crew *crew = weft__alloc_zero(sizeof(*crew));
	uintptr_t other = 0;

	if (!crew)
		return NULL;
	weft__put(crew->loop, loop);
	crew->modes = weft__modes();
	crew->max = loop->threadlet_max;
	crew->class = weft__stack_class(loop->stack_bytes);
	weft__handles_init();
	if (weft__cas(&loop->crew, &other, (uintptr_t)crew, WEFT__RELEASE))
		return crew;
	/* Another thread was first.  It released the lock of the handles, in
	 * weft__handles_init(), before it published its scheduler.  weft__handles_fini() takes
	 * that lock, and so acquires what the other thread wrote. */
	weft__handles_fini(crew);
	weft__sys->release(crew);
	return (struct weft__crew *)other;
}

void
weft__loop_tell(weft_loop *loop, struct weft__node_head *head, weft_fn fn, void *arg)
{
	struct weft__node *node = (struct weft__node *)(void *)head;

	weft__put(node->fn, fn);
	weft__put(node->arg, arg);
	weft__put(node->kind, WEFT__NODE_OWN | WEFT__NODE_KEEP | WEFT__NODE_FIRST);
	weft__loop_kick(loop, weft__inbox_push(&loop->inbox, node, true));
}

void
weft__threadlets_forked(void)
{
	weft__handles_forked();
	weft__stacks_forked();
	weft__runtimes_forked();
}
