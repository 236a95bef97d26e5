/* go.c - a threadlet from its start to its end.
 *
 *   1. A start on another loop takes all it needs here, so that it fails here or not at
 *      all; the threadlet itself is the node that travels.
 *   2. The end comes in this order: scopes left open, cleanups, values, word to whoever
 *      joins, and the stack, which is somebody else's to give back (crew.c).
 *   3. One that is joined on another loop travels there when it is dead, stack and all.
 */
#include "base/report.h"
#include "threadlet/threadlet.h"

#define COLOR_BYTES \
	((size_t)128) /* tops differ by this, modulo COLORS; see stack.c */
#define COLORS 12u

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

/* Invariant 3. */
static void
on_came_home(void *arg)
{
	struct weft__threadlet *dead = arg;
	struct weft__handle *handle = dead->handle;
	weft_loop *loop = handle->scope->owner->crew->loop;
	int result = dead->result;
	bool told = dead->was_told;

	loop->own_run++;
	weft__stack_give(&handle->scope->owner->crew->stacks, dead->stack);
	weft__scope_child_ended(handle, result, told);
}

void
weft__threadlet_bury(struct weft__crew *crew, struct weft__threadlet *dead)
{
	struct weft__handle *handle = dead->handle;

	weft__context_fini(&dead->context);
	if (handle)
		weft__loop_tell(handle->scope->owner->crew->loop,
		                (struct weft__node_head *)(void *)&dead->node,
		                on_came_home, dead);
	else
		weft__stack_give(&crew->stacks, dead->stack);
}

static void
report_failure(const struct weft__threadlet *self, int error)
{
	weft__report(&(weft_report){
		.kind = WEFT_REPORT_FAILED,
		.error = error,
		.loop = self->crew->loop,
		.threadlet = (int64_t)weft__load(&self->handle->id,
	                                         WEFT__RELAXED),
		.name = self->name,
		.text = weft_detail()[0] ? weft_detail() : weft_strerror(error),
	});
}

/* Tell whoever joins it.  Afterwards a handle is left only if it has to travel. */
static void
tell_end(struct weft__threadlet *self)
{
	struct weft__handle *handle = self->handle;
	struct weft__crew *crew = self->crew;

	handle->threadlet = NULL;
	if (handle->scope && handle->scope->owner->crew != crew) {
		weft__handle_move(handle, handle->scope->owner->crew);
		return; /* invariant 3 */
	}
	self->handle = NULL;
	if (handle->scope) {
		weft__scope_child_ended(handle, self->result, self->was_told);
		return;
	}
	weft__handle_give(&crew->handles, handle);
}

static void
unlink_from_crew(struct weft__threadlet *self)
{
	struct weft__crew *crew = self->crew;

	if (crew->mark == self)
		crew->mark = self->older;
	if (crew->witness == self)
		crew->witness = NULL;
	if (self->newer)
		self->newer->older = self->older;
	else
		crew->newest = self->older;
	if (self->older)
		self->older->newer = self->newer;
	weft__count(&crew->loop->threadlets, (uint64_t)-1);
	weft__count(&crew->loop->alive, -(uint64_t)!self->background);
}

static struct weft__context *
threadlet_main(void *arg)
{
	struct weft__threadlet *self = arg;
	int error;

	weft__arrive(self);
	self->result = self->fn(self->arg);
	self->was_told = self->base_why != 0;
	error = weft__scopes_close(self);
	if (error < 0)
		report_failure(self, error);
	self->closing = true;
	self->interrupted = false;
	self->why = 0;
	run_cleanups(self);
	weft__threadlet_end_locals(self);
	(void)weft__scopes_close(self); /* of cleanups */
	if (self->result < 0 && !self->was_told && !self->handle->scope)
		report_failure(self, self->result);
	if (self->crew->thread->buffer)
		weft__sys->release(self->crew->thread->buffer);
	self->crew->thread->buffer = NULL;
	unlink_from_crew(self);
	tell_end(self);
	return weft__leave_for_ever(self);
}

/* --- the start ---------------------------------------------------------- */

/* Lay a threadlet at the top of its stack. */
static struct weft__threadlet *
lay(struct weft__stack *stack, const struct weft__start *start)
{
	size_t bytes = weft__stack_bytes(weft__stack_class_of(stack));
	size_t color = stack->number % COLORS * COLOR_BYTES;
	struct weft__text name;
	struct weft__threadlet *t =
		(struct weft__threadlet *)(void *)(stack->base + bytes - color)
		- 1;

	/* Not all of it at once: that takes longer than a switch. */
	for (size_t i = 0; i < sizeof(t->zero) / sizeof(t->zero[0]); i++)
		t->zero[i] = 0;
	t->place.block = NULL;
	t->fn = start->fn;
	t->arg = start->arg;
	t->stack = stack;
	t->spawned_at = start->from;
	t->background = start->opts->background;
	name = weft__text_begin(t->name, sizeof(t->name));
	if (start->opts->name)
		weft__text_add(&name, start->opts->name);
	weft__context_make(&t->context, stack->base,
	                   (size_t)((char *)t - stack->base), threadlet_main,
	                   t);
	return t;
}

/* It is here, on its loop's thread. */
static void
enlist(struct weft__crew *crew, struct weft__threadlet *t)
{
	weft_loop *loop = crew->loop;

	t->older = crew->newest;
	if (crew->newest)
		crew->newest->newer = t;
	crew->newest = t;
	t->seq = ++crew->seq;
	weft__count(&loop->threadlets, 1);
	weft__count(&loop->alive, !t->background);
	if (weft__loop_is_stopping(loop) && !t->why)
		t->why = t->base_why = WEFT_ECANCELED;
	t->since_ns = weft__loop_time(loop);
	weft__make_ready(t);
}

static void
on_arrival(void *arg)
{
	struct weft__threadlet *t = arg;

	weft__add(&t->crew->coming, (uint64_t)-1, WEFT__RELAXED);
	enlist(t->crew, t);
}

/* A stack and a handle; NULL without memory. */
static struct weft__threadlet *
make(struct weft__crew *crew, const struct weft__start *start, int class,
     bool here)
{
	struct weft__stack *stack = weft__stack_take(
		here ? &crew->stacks : NULL, class);
	struct weft__handle *handle =
		stack ? weft__handle_take(here ? &crew->handles : NULL) : NULL;
	struct weft__threadlet *t;

	if (!handle) {
		if (stack)
			weft__stack_give(here ? &crew->stacks : NULL, stack);
		return NULL;
	}
	t = lay(stack, start);
	t->crew = crew;
	t->handle = handle;
	handle->threadlet = t;
	handle->ended = false;
	return t;
}

/* It will not run: the loop accepts nothing more. */
static void
unmake(struct weft__threadlet *t)
{
	struct weft__handle *handle = t->handle;
	struct weft__stack *stack = t->stack;

	weft__context_fini(&t->context);
	if (handle->scope)
		weft__scope_remove(handle);
	weft__handle_give(NULL, handle);
	weft__stack_give(NULL, stack);
}

static weft_threadlet
ship(struct weft__crew *crew, struct weft__threadlet *t)
{
	weft_node *node = (weft_node *)(void *)&t->node;
	weft_threadlet id;
	int rc;

	id = weft__handle_show(t->handle, crew);
	t->node = (struct weft__node){ 0 };
	node->fn = on_arrival;
	node->arg = t;
	weft__add(&crew->coming, 1, WEFT__RELAXED);
	rc = weft_loop_post_node(crew->loop, node);
	if (rc == 0)
		return id;
	weft__add(&crew->coming, (uint64_t)-1, WEFT__RELAXED);
	unmake(t);
	return rc;
}

/* May a threadlet be started here, in that scope?  0, or an error. */
static int
check(const struct weft__start *start, weft_loop *loop,
      struct weft__scope **scope)
{
	*scope = NULL;
	if (!start->fn || !loop)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_go: no function, or no loop");
	if (weft__loop_is_forked(loop))
		return weft__misuse(WEFT_EXDEV, "weft_go: after fork");
	if (!start->scope)
		return 0;
	*scope = weft__scope_of(start->scope);
	if (!*scope)
		return weft__misuse(WEFT_EINVAL, "weft_go: no open scope");
	if ((*scope)->owner->crew->loop != weft__thread_self()->loop)
		return weft__misuse(WEFT_EXDEV,
		                    "weft_go: a scope of another loop");
	return (*scope)->why;
}

static bool
is_full(const struct weft__crew *crew)
{
	return weft__count_get(&crew->loop->threadlets)
	               + weft__load(&crew->coming, WEFT__RELAXED)
	       >= crew->max;
}

weft_threadlet
weft__go_on(weft_loop *loop, const struct weft__start *start)
{
	struct weft__scope *scope;
	struct weft__crew *crew;
	struct weft__threadlet *t;
	bool here;
	int rc = check(start, loop, &scope);
	int class;

	if (rc < 0)
		return rc;
	crew = weft__crew_of(loop);
	if (!crew)
		return weft__fail(WEFT_ENOMEM, "weft_go: out of memory");
	class = start->opts->stack_bytes
	                ? weft__stack_class(start->opts->stack_bytes)
	                : crew->class;
	if (class < 0)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_go: a stack larger than 1 GiB");
	if (is_full(crew))
		return weft__fail(WEFT_EAGAIN, "weft_go: threadlet_max of the "
		                               "loop is reached");
	here = weft__thread_self()->loop == loop;
	if (here && weft__load(&loop->state, WEFT__RELAXED) == WEFT_STOPPED)
		return weft__fail(WEFT_ESHUTDOWN, "weft_go: it has stopped");
	t = make(crew, start, class, here);
	if (!t)
		return weft__fail(WEFT_ENOMEM, "weft_go: out of memory");
	if (scope)
		weft__scope_add(scope, t->handle);
	if (!here)
		return ship(crew, t);
	enlist(crew, t);
	return weft__handle_show(t->handle, crew);
}

/* On a loop that was named, else the caller's, else where there is least to do. */
static weft_threadlet
go(weft_loop *loop, const struct weft__start *start)
{
	return !loop || loop == WEFT_LEAST_LOADED ? weft__go_place(start)
	                                          : weft__go_on(loop, start);
}

static const weft_go_opts defaults;

weft_threadlet
weft_go(weft_threadlet_fn fn, void *arg)
{
	struct weft__start how = { &defaults, NULL, fn, arg,
		                   __builtin_return_address(0) };

	return go(weft__thread_self()->loop, &how);
}

weft_threadlet
weft_go_with(const weft_go_opts *opts, weft_threadlet_fn fn, void *arg)
{
	struct weft__start how = { opts ? opts : &defaults,
		                   opts ? opts->scope : NULL, fn, arg,
		                   __builtin_return_address(0) };

	return go(weft__loop_or_current(how.opts->loop), &how);
}

weft_threadlet
weft_scope_go(weft_scope *scope, weft_threadlet_fn fn, void *arg)
{
	struct weft__start how = { &defaults, scope, fn, arg,
		                   __builtin_return_address(0) };

	if (!scope)
		return weft__misuse(WEFT_EINVAL, "weft_scope_go: NULL");
	return go(weft__thread_self()->loop, &how);
}
