/* go.c - a threadlet from its start to its end.
 *
 *   1. A start on another loop allocates all it needs on the calling thread, so that it fails
 *      there or not at all.  The threadlet itself is the node that is posted to that loop.
 *   2. A threadlet ends in this order: scopes left open, cleanups, notification of the
 *      joiner, and the stack, which the threadlet or loop that runs next gives back (sched.c).
 *   3. A dead threadlet that is joined on another loop is posted there, with its stack.
 */
#include "base/os.h"
#include "threadlet/threadlet.h"

/* --- the end ------------------------------------------------------------ */

static void
run_cleanups(struct weft__threadlet *self)
{
	struct weft__node *node;

	while ((node = self->cleanups)) {
		self->cleanups = node->next;
		node->fn(node->arg);
	}
}

/* Invariant 3: on the loop of its scope. */
static void
on_dead_received(void *arg)
{
	struct weft__threadlet *dead = arg;
	struct weft__handle *handle = dead->handle;
	int result = dead->result;
	bool canceled = dead->was_canceled;

	weft__stack_give(&handle->scope->owner->sched->stacks, dead->stack);
	weft__scope_child_ended(handle, result, canceled);
}

void
weft__threadlet_reap(struct weft__sched *sched, struct weft__threadlet *dead)
{
	struct weft__handle *handle = dead->handle;

	if (handle)
		weft__loop_send(handle->scope->owner->sched->loop,
		                (struct weft__node_head *)(void *)&dead->node, on_dead_received,
		                dead);
	else
		weft__stack_give(&sched->stacks, dead->stack);
}

/* A threadlet without a name is named by its function. */
static void
report_failure(const struct weft__threadlet *self, int error, const char *text)
{
	char buf[128];
	struct weft__text name = weft__text_begin(buf, sizeof(buf));

	if (self->name[0])
		weft__text_add(&name, self->name);
	else
		weft__os_add_symbol(&name, (const void *)(uintptr_t)self->fn);
	weft__loop_report(&(weft_report){
		.kind = WEFT_REPORT_FAILED,
		.error = error,
		.loop = self->sched->loop,
		.threadlet = (int64_t)weft__load(&self->handle->id, WEFT__RELAXED),
		.name = buf,
		.text = text && text[0] ? text : weft_strerror(error),
	});
}

/* Notify the joiner.  A handle that is left afterwards means that the threadlet is to be
 * posted. */
static void
notify_joiner(struct weft__threadlet *self)
{
	struct weft__handle *handle = self->handle;
	struct weft__scope *scope = handle->scope;
	struct weft__sched *sched = self->sched;

	handle->threadlet = NULL;
	if (scope && scope->owner->sched != sched) {
		weft__handle_move(handle, scope->owner->sched);
		return; /* invariant 3 */
	}
	self->handle = NULL;
	if (!scope)
		weft__handle_give(&sched->handles, handle);
	else if (!weft__scope_ends_with(scope, handle, self->result))
		weft__scope_child_ended(handle, self->result, self->was_canceled);
}

static void
unlink_from_sched(struct weft__threadlet *self)
{
	struct weft__sched *sched = self->sched;
	struct weft__threadlet *older = self->older, *newer = self->newer;

	if (sched->mark == self)
		sched->mark = older;
	if (sched->witness == self)
		sched->witness = NULL;
	if (newer)
		newer->older = older;
	else
		sched->newest = older;
	if (older)
		older->newer = newer;
	weft__loop_add_threadlets(sched->loop, -1);
	if (self->background)
		weft__loop_add_alive(sched->loop, 1);
}

/* Its function has returned, and has left something open. */
static bool
has_left(const struct weft__threadlet *self)
{
	return ((uintptr_t)self->scope | (uintptr_t)self->cleanups) != 0;
}

/* The threadlet has failed.  Takes `text` and keeps it for the joiners, or reports it. */
static void
end_failed(struct weft__threadlet *self, char *text)
{
	if (self->handle->scope) {
		self->handle->text = text;
		return;
	}
	if (!self->was_canceled)
		report_failure(self, self->result, text);
	weft__sys->release(text);
}

WEFT__COLD static void
end_all(struct weft__threadlet *self)
{
	/* Copied first: scopes and cleanups may fail with texts of their own. */
	char *text = self->result < 0 ? weft__copy_detail(self->result) : NULL;
	int error = weft__scopes_close(self);

	if (error < 0)
		report_failure(self, error, weft_detail());
	self->closing = true;
	self->interrupted = false;
	self->why = 0;
	if (self->result < 0)
		end_failed(self, text);
	do { /* each may leave work for the others */
		run_cleanups(self);
		(void)weft__scopes_close(self);
	} while (has_left(self));
}

WEFT__COLD static void
end_text(struct weft__threadlet *self)
{
	weft__sys->release(self->failure.words);
	self->failure.words = NULL;
}

static struct weft__context *
threadlet_main(void *arg)
{
	struct weft__threadlet *self = arg;

	weft__switch_in(self);
	self->result = self->fn(self->arg);
	self->was_canceled = self->base_why != 0;
	if (self->result < 0 || has_left(self))
		end_all(self);
	if (self->failure.words)
		end_text(self);
	unlink_from_sched(self);
	notify_joiner(self);
	return weft__switch_out_dead(self);
}

/* --- the start ---------------------------------------------------------- */

WEFT__COLD static void
set_name(struct weft__threadlet *t, const char *text)
{
	struct weft__text name = weft__text_begin(t->name, sizeof(t->name));

	weft__text_add(&name, text);
}

static struct weft__threadlet *
threadlet_at_top(const struct weft__stack *stack)
{
	return (struct weft__threadlet *)(void *)stack->top - 1;
}

/* Set up a threadlet at the top of its stack.  It stays there from function to function, as
 * long as the stack keeps its pages. */
WEFT__COLD static void
prepare_stack(struct weft__stack *stack, uint64_t modes)
{
	struct weft__threadlet *t = threadlet_at_top(stack);

	*t = (struct weft__threadlet){ .stack = stack };
	weft__context_make(&t->context, stack->base, (size_t)((char *)t - stack->base),
	                   threadlet_main, t);
	weft__context_renew(&t->context, modes);
	stack->prepared = true;
}

void
weft__threadlet_unprepare(struct weft__stack *stack)
{
	weft__context_fini(&threadlet_at_top(stack)->context);
	stack->prepared = false;
}

/* Set what the caller gave, and all that an earlier function may have changed. */
static inline void
threadlet_go_fill(struct weft__threadlet *t, const struct weft__start *start,
                  struct weft__sched *sched, struct weft__handle *handle)
{
	for (size_t i = 0; i < sizeof(t->zero) / sizeof(t->zero[0]); i++)
		t->zero[i] = 0;
	t->failure.text = NULL;
	t->sched = sched;
	t->handle = handle;
	t->fn = start->fn;
	t->arg = start->arg;
	t->spawned_at = start->from;
	t->background = start->opts->background;
	t->name[0] = '\0';
	if (start->opts->name)
		set_name(t, start->opts->name);
	handle->threadlet = t;
	handle->ended = false;
}

/* Add it to the scheduler, as its newest threadlet, and to the ready queue. */
static inline void
link_to_sched(struct weft__sched *sched, weft_loop *loop, struct weft__threadlet *t)
{
	struct weft__threadlet *older = sched->newest;

	t->older = older;
	t->newer = NULL;
	if (older)
		older->newer = t;
	sched->newest = t;
	t->seq = ++sched->seq;
	weft__loop_add_threadlets(loop, 1);
	weft__make_ready(loop, t);
}

/* Adopt a threadlet that has arrived, on its loop's thread. */
static void
adopt(struct weft__sched *sched, struct weft__threadlet *t)
{
	weft_loop *loop = sched->loop;

	if (__builtin_expect(weft__tracing() != 0, 0) && weft__loop_is_in_turn(loop)
	    && !weft__loop_is_traced(loop))
		t->trace_what = NULL; /* it may still run untraced in this iteration */
	if (t->background)
		weft__loop_add_alive(loop, -1);
	if (weft__loop_is_stopping(loop) && !t->why)
		t->why = t->base_why = WEFT_ECANCELED;
	link_to_sched(sched, loop, t);
}

static void
on_start_received(void *arg)
{
	struct weft__threadlet *t = arg;

	weft__add(&t->sched->starting, (uint64_t)-1, WEFT__RELAXED);
	t->since_ns = weft__loop_time(t->sched->loop);
	adopt(t->sched, t);
}

/* Take a stack and a handle; NULL without memory. */
static struct weft__threadlet *
threadlet_go_make(struct weft__sched *sched, const struct weft__start *start, int size_class,
                  bool here)
{
	struct weft__stack *stack = weft__stack_take(here ? &sched->stacks : NULL, size_class);
	struct weft__handle *handle = stack ? weft__handle_take(here ? &sched->handles : NULL)
	                                    : NULL;
	uint64_t modes = here ? sched->modes : weft__modes();
	struct weft__threadlet *t;

	if (!handle) {
		if (stack)
			weft__stack_give(here ? &sched->stacks : NULL, stack);
		return NULL;
	}
	t = threadlet_at_top(stack);
	if (stack->prepared)
		weft__context_renew(&t->context, modes);
	else
		prepare_stack(stack, modes);
	threadlet_go_fill(t, start, sched, handle);
	if (weft__tracing())
		weft__trace_start(t);
	return t;
}

/* The threadlet will not run: the loop no longer accepts posts. */
static void
undo_start(struct weft__threadlet *t)
{
	struct weft__handle *handle = t->handle;
	struct weft__stack *stack = t->stack;

	if (handle->scope)
		weft__scope_remove(handle);
	weft__handle_give(NULL, handle);
	weft__stack_give(NULL, stack);
}

WEFT__COLD static weft_threadlet
post_to_loop(struct weft__sched *sched, struct weft__threadlet *t)
{
	weft_node *node = (weft_node *)(void *)&t->node;
	weft_threadlet id;
	int rc;

	id = weft__handle_show(t->handle, sched);
	t->node = (struct weft__node){ 0 };
	node->fn = on_start_received;
	node->arg = t;
	weft__add(&sched->starting, 1, WEFT__RELAXED);
	rc = weft_loop_post_node(sched->loop, node);
	if (rc == 0)
		return id;
	weft__add(&sched->starting, (uint64_t)-1, WEFT__RELAXED);
	undo_start(t);
	return rc;
}

/* May a threadlet be started here, in that scope?  Returns 0, or an error. */
static int
threadlet_go_check(const struct weft__start *start, weft_loop *loop, struct weft__scope **scope)
{
	*scope = NULL;
	if (!start->fn || !loop)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_go: fn is NULL, or there is no loop to run it on");
	if (weft__loop_is_forked(loop))
		return weft__misuse(WEFT_EWRONGLOOP,
		                    "weft_go: the loop belongs to the parent process");
	if (!start->scope)
		return 0;
	*scope = weft__scope_of(start->scope);
	if (!*scope)
		return weft__misuse(WEFT_EINVAL, "weft_go: the scope is not open");
	if ((*scope)->owner->sched->loop != weft__thread_self()->loop)
		return weft__misuse(WEFT_EWRONGLOOP, "weft_go: the scope belongs to another loop");
	return (*scope)->why;
}

static bool
is_full(const struct weft__sched *sched)
{
	return weft__loop_threadlets(sched->loop) + weft__load(&sched->starting, WEFT__RELAXED)
	       >= sched->max;
}

weft_threadlet
weft__go_on(weft_loop *loop, const struct weft__start *start)
{
	struct weft__scope *scope;
	struct weft__sched *sched;
	struct weft__threadlet *t;
	bool here;
	int rc = threadlet_go_check(start, loop, &scope);
	int size_class;

	if (rc < 0)
		return rc;
	sched = weft__sched_of(loop);
	if (!sched)
		return weft__fail(WEFT_ENOMEM, "weft_go: out of memory");
	size_class = start->opts->stack_bytes ? weft__stack_class(start->opts->stack_bytes)
	                                      : sched->size_class;
	if (size_class < 0)
		return weft__misuse(WEFT_EINVAL, "weft_go: stack_bytes is larger than 1 GiB");
	if (is_full(sched))
		return weft__fail(WEFT_EAGAIN,
		                  "weft_go: the loop already has threadlet_max threadlets");
	here = weft__thread_self()->loop == loop;
	if (here && weft_loop_state(loop) == WEFT_STOPPED)
		return weft__fail(WEFT_ESHUTDOWN, "weft_go: the loop has stopped");
	t = threadlet_go_make(sched, start, size_class, here);
	if (!t)
		return weft__fail(WEFT_ENOMEM, "weft_go: out of memory");
	if (scope)
		weft__scope_add(scope, t->handle);
	if (!here)
		return post_to_loop(sched, t);
	t->since_ns = weft__loop_time(loop);
	adopt(sched, t);
	return weft__handle_show(t->handle, sched);
}

static const weft_go_opts defaults;

/* The fast path: a threadlet starts another one on its loop, with a cached stack and handle.
 * Returns 0 if the slow path must be taken, for whatever reason. */
static inline __attribute__((always_inline)) weft_threadlet
go_here(const struct weft__start *start)
{
	const struct weft__threadlet *self = weft__self();
	struct weft__scope *scope = weft__scope_of(start->scope);
	struct weft__sched *sched = self ? self->sched : NULL;
	struct weft__stack *stack = sched ? sched->stacks.free[sched->size_class] : NULL;
	struct weft__handle *handle = sched ? sched->handles.free : NULL;
	struct weft__threadlet *t;

	if (!start->fn || !stack || !stack->prepared || !handle
	    || weft__loop_is_forked(weft__loop_here()) || weft__tracing()
	    || weft__loop_is_stopping(weft__loop_here()) || is_full(sched))
		return 0;
	if (start->scope && (!scope || scope->owner->sched != sched || scope->why))
		return 0;
	t = threadlet_at_top(weft__stack_pop(&sched->stacks, sched->size_class));
	weft__context_renew(&t->context, sched->modes);
	threadlet_go_fill(t, start, sched, weft__handle_pop(&sched->handles));
	if (scope)
		weft__scope_add(scope, handle);
	t->since_ns = weft__loop_last_ns(weft__loop_here()); /* read before this threadlet ran */
	/* It is not traced, not canceled by a stopping loop and not in the background. */
	link_to_sched(sched, weft__loop_here(), t);
	return weft__handle_show(handle, sched);
}

weft__aptr weft__go_anywhere;

/* On the least loaded loop. */
static weft_threadlet
go_least_loaded(const struct weft__start *start)
{
	weft_loop *loop = weft__thread_self()->loop;
	const struct weft__runtime_ops *runtime = loop ? weft__loop_runtime(loop) : NULL;
	weft__go_fn anywhere;

	if (loop)
		return weft__go_on(runtime ? runtime->least_loaded(loop) : loop, start);
	anywhere = (weft__go_fn)weft__load(&weft__go_anywhere, WEFT__ACQUIRE);
	return anywhere ? anywhere(start)
	                : weft__misuse(WEFT_EINVAL, "weft_go: no loop runs on this thread, and no "
	                                            "runtime is running");
}

/* On the given loop, else on the least loaded one. */
WEFT__COLD static weft_threadlet
go(weft_loop *loop, const struct weft__start *start)
{
	return !loop || loop == WEFT_LEAST_LOADED ? go_least_loaded(start)
	                                          : weft__go_on(loop, start);
}

WEFT__COLD static weft_threadlet
go_elsewhere(weft_scope *scope, weft_threadlet_fn fn, void *arg, const void *from)
{
	struct weft__start how = { &defaults, scope, fn, arg, from };

	return go(weft__thread_self()->loop, &how);
}

weft_threadlet
weft_go(weft_threadlet_fn fn, void *arg)
{
	const void *from = __builtin_return_address(0);
	weft_threadlet id = go_here(&(struct weft__start){ &defaults, NULL, fn, arg, from });

	return id ? id : go_elsewhere(NULL, fn, arg, from);
}

weft_threadlet
weft_go_with(const weft_go_opts *opts, weft_threadlet_fn fn, void *arg)
{
	struct weft__start how = { opts ? opts : &defaults, opts ? opts->scope : NULL, fn, arg,
		                   __builtin_return_address(0) };

	return go(weft__loop_or_current(how.opts->loop), &how);
}

weft_threadlet
weft_scope_go(weft_scope *scope, weft_threadlet_fn fn, void *arg)
{
	const void *from = __builtin_return_address(0);
	weft_threadlet id;

	if (!scope)
		return weft__misuse(WEFT_EINVAL, "weft_scope_go: scope is NULL");
	id = go_here(&(struct weft__start){ &defaults, scope, fn, arg, from });
	return id ? id : go_elsewhere(scope, fn, arg, from);
}
