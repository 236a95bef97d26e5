/* scope.c - scopes: threadlets that are joined, and what bounds them.
 *
 *   1. A child is in `live` until it has ended.  Then it is in `ended`, where its result can be
 *      joined, until the scope is closed or ENDED_MAX later children have ended.  The handle of
 *      the last child of a closing scope may be given back at once.
 *   2. Children may run on other loops.  The scope's loop uses those members of their handles
 *      that handle.h assigns to it, and it alone gives the handles back.
 *   3. A scope is closed only when no child is left; so it outlives all pointers to it.
 */
#include "threadlet/threadlet.h"

#define ENDED_MAX 65536u
#define KNOWN     (uint32_t)(WEFT_FAIL_FAST | WEFT_SHIELD)

static void
threadlet_scope_give(struct weft__sched *sched, struct weft__scope *scope)
{
	weft__assert(!scope->live);
	weft__assert(!scope->text);
	scope->handle = NULL;
	scope->error = 0;
	scope->outer = sched->scopes;
	sched->scopes = scope;
}

/* Arm the deadline, or move it.  Returns 0, or WEFT_ENOMEM. */
static int
arm(struct weft__scope *scope, uint64_t deadline_ns)
{
	struct weft_wheel *wheel = weft__loop_wheel(scope->owner->sched->loop);

	if (scope->entry.block)
		(void)weft__wheel_drop(wheel, &scope->entry);
	if (deadline_ns == WEFT_NEVER)
		return 0;
	scope->entry.kind = WEFT__ENTRY_SCOPE | WEFT__ENTRY_BACKGROUND | WEFT__ENTRY_DEADLINE;
	return weft__wheel_add(wheel, &scope->entry, deadline_ns);
}

static struct weft__scope *
threadlet_scope_take(struct weft__sched *sched)
{
	struct weft__scope *scope = sched->scopes;

	if (scope)
		sched->scopes = scope->outer;
	return scope;
}

static inline void
open_in(struct weft__threadlet *self, struct weft__scope *scope, weft_scope *handle, uint32_t flags,
        uint64_t deadline_ns)
{
	int why = flags & WEFT_SHIELD ? 0 : self->why;

	if (!why && deadline_ns == WEFT_NOWAIT)
		why = WEFT_ETIMEDOUT;
	scope->owner = self;
	scope->outer = self->scope;
	scope->handle = handle;
	scope->flags = flags;
	self->scope = scope;
	self->why = scope->why = why;
	handle->flags = flags;
	handle->error = 0;
	handle->deadline_ns = deadline_ns;
	handle->opaque[0] = (uintptr_t)scope;
}

__attribute__((noinline)) static int
open_slow(weft_scope *handle, uint32_t flags, uint64_t deadline_ns)
{
	struct weft__threadlet *self = weft__self();
	struct weft__scope *scope;

	if (!handle || (flags & ~KNOWN))
		return weft__misuse(WEFT_EINVAL,
		                    "weft_scope_open: scope is NULL, or flags has unknown bits");
	if (!self)
		return weft__fail(WEFT_ENOSUSPEND,
		                  "weft_scope_open: the caller is not a threadlet");
	if (weft__loop_is_forked(self->sched->loop))
		return weft__misuse(WEFT_EWRONGLOOP,
		                    "weft_scope_open: the loop belongs to the parent process");
	scope = threadlet_scope_take(self->sched);
	if (!scope)
		scope = weft__alloc_zero(sizeof(*scope));
	if (!scope)
		return weft__fail(WEFT_ENOMEM, "weft_scope_open: out of memory");
	scope->owner = self;
	if (arm(scope, deadline_ns) < 0) {
		threadlet_scope_give(self->sched, scope);
		return weft__fail(WEFT_ENOMEM, "weft_scope_open: out of memory");
	}
	open_in(self, scope, handle, flags, deadline_ns);
	return 0;
}

int
weft_scope_open(weft_scope *handle, uint32_t flags, uint64_t deadline_ns)
{
	struct weft__threadlet *self = weft__self();

	if (!self || !handle || (flags & ~KNOWN) || deadline_ns != WEFT_NEVER
	    || weft__loop_is_forked(weft__loop_here()) || !self->sched->scopes)
		return open_slow(handle, flags, deadline_ns);
	open_in(self, threadlet_scope_take(self->sched), handle, flags, deadline_ns);
	return 0;
}

struct weft__scope *
weft__scope_here(const weft_scope *handle)
{
	struct weft__scope *scope = weft__scope_of(handle);

	return scope && scope->owner->sched->loop == weft__thread_self()->loop ? scope : NULL;
}

int
weft_scope_set_deadline(weft_scope *handle, uint64_t deadline_ns)
{
	struct weft__scope *scope = weft__scope_here(handle);
	int rc;

	if (!scope)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_scope_set_deadline: the scope is not open on this loop");
	if (weft__loop_is_forked(scope->owner->sched->loop))
		return weft__misuse(
			WEFT_EWRONGLOOP,
			"weft_scope_set_deadline: the loop belongs to the parent process");
	if (scope->why)
		return weft__fail(
			WEFT_EALREADY,
			"weft_scope_set_deadline: the scope is already canceled or timed out");
	rc = arm(scope, deadline_ns);
	if (rc < 0) /* none was armed before: moving one needs no memory */
		return weft__fail(rc, "weft_scope_set_deadline: out of memory");
	handle->deadline_ns = deadline_ns;
	return 0;
}

void
weft_scope_cancel(weft_scope *handle)
{
	struct weft__scope *scope = weft__scope_here(handle);

	if (scope && !weft__loop_is_forked(scope->owner->sched->loop))
		weft__scope_end(scope, WEFT_ECANCELED);
	else
		(void)weft__misuse(WEFT_EINVAL,
		                   "weft_scope_cancel: the scope is not open on this loop");
}

/* --- children ----------------------------------------------------------- */

void
weft__scope_remove(struct weft__handle *handle)
{
	struct weft__scope *scope = handle->scope;
	struct weft__handle *next = handle->next, *prev = handle->prev;

	if (prev)
		prev->next = next;
	else
		scope->live = next;
	if (next)
		next->prev = prev;
	scope->live_count--;
}

WEFT__COLD static void
drop_text(char **text)
{
	weft__sys->release(*text);
	*text = NULL;
}

static void
forget_oldest(struct weft__scope *scope)
{
	struct weft__handle *handle = scope->ended;

	weft__assert(handle->scope == scope && scope->ended_count > 0);
	scope->ended = handle->next;
	scope->ended_count--;
	if (handle->text)
		drop_text(&handle->text);
	weft__handle_give(&scope->owner->sched->handles, handle);
}

static char *
copy_text(const char *text)
{
	size_t size = __builtin_strlen(text) + 1;
	char *copy = weft__sys->alloc(size);

	return copy ? __builtin_memcpy(copy, text, size) : NULL;
}

/* The handle may be given back before the scope is closed, so the scope has its own text. */
WEFT__COLD static void
threadlet_scope_fail(struct weft__scope *scope, int error, const char *text)
{
	if (scope->error)
		return;
	scope->error = error;
	scope->text = text ? copy_text(text) : NULL;
	if (scope->handle)
		scope->handle->error = error;
	if (scope->flags & WEFT_FAIL_FAST)
		weft__scope_end(scope, WEFT_ECANCELED);
}

static void
wake_joiners(struct weft__handle *handle, int result)
{
	struct weft__wait *joiner;

	while ((joiner = weft__wait_claim(&handle->joiners))) {
		*(int64_t *)joiner->value = result;
		if (result < 0)
			weft__pass_text(result, handle->text, &joiner->waiter->threadlet->failure);
		weft__wake(joiner->waiter, 0);
	}
}

/* Invariant 1. */
static void
remember(struct weft__scope *scope, struct weft__handle *handle)
{
	handle->next = NULL;
	if (scope->ended)
		scope->ended_last->next = handle;
	else
		scope->ended = handle;
	scope->ended_last = handle;
	if (++scope->ended_count > ENDED_MAX)
		forget_oldest(scope);
}

void
weft__scope_child_ended(struct weft__handle *handle, int result, bool canceled)
{
	struct weft__scope *scope = handle->scope;

	weft__assert(!handle->ended && scope->live_count > 0);
	handle->ended = true;
	handle->result = result;
	weft__scope_remove(handle);
	if (handle->joiners.first)
		wake_joiners(handle, result);
	remember(scope, handle);
	if (result < 0 && !canceled)
		threadlet_scope_fail(scope, result, handle->text);
	if (scope->live_count == 0 && scope->closer && weft__claim(scope->closer))
		weft__wake(scope->closer, 0);
}

/* Invariant 3. */
__attribute__((noinline)) static void
await_children(struct weft__scope *scope)
{
	struct weft__waiter waiter;

	do {
		waiter = (struct weft__waiter){ .what = "scope",
			                        .on = (intptr_t)scope->handle,
			                        .deaf = true };
		scope->closer = &waiter;
		(void)weft__wait(&waiter, WEFT_NEVER);
		scope->closer = NULL;
	} while (scope->live_count > 0); /* other threadlets may have started more */
}

/* Free what its deadline, its results and its tie use. */
__attribute__((noinline)) static void
clear(struct weft__scope *scope)
{
	if (scope->entry.block)
		(void)weft__wheel_drop(weft__loop_wheel(scope->owner->sched->loop), &scope->entry);
	while (scope->ended)
		forget_oldest(scope);
	if (scope->tie)
		scope->tie->cut(scope->tie);
	scope->tie = NULL;
}

/* The scope is closed with its error.  If `reports`, the error becomes its owner's failure. */
WEFT__COLD static void
take_error(struct weft__threadlet *self, struct weft__scope *scope, bool reports)
{
	if (reports)
		weft__pass_text(scope->error, scope->text, &self->failure);
	drop_text(&scope->text);
}

static inline int
threadlet_scope_finish(struct weft__threadlet *self, struct weft__scope *scope, bool reports)
{
	struct weft__scope *outer = scope->outer;
	int error;

	if (scope->live_count > 0)
		await_children(scope);
	if (scope->entry.block || scope->ended || scope->tie)
		clear(scope);
	error = scope->error;
	if (error)
		take_error(self, scope, reports);
	self->scope = outer;
	self->why = outer ? outer->why : self->closing ? 0 : self->base_why;
	threadlet_scope_give(self->sched, scope);
	return error;
}

WEFT__COLD static int
refuse_close(bool forked)
{
	return forked ? weft__misuse(WEFT_EWRONGLOOP,
	                             "weft_scope_close: the loop belongs to the parent process")
	              : weft__misuse(
			      WEFT_EINVAL,
			      "weft_scope_close: the scope is not the one that the caller opened "
			      "last");
}

int
weft_scope_close(weft_scope *handle)
{
	struct weft__threadlet *self = weft__self();
	struct weft__scope *scope = self ? self->scope : NULL;
	bool is_it = handle && scope && scope->handle == handle;
	int rc;

	if (!is_it || weft__loop_is_forked(weft__loop_here()))
		return refuse_close(is_it);
	rc = threadlet_scope_finish(self, scope, true);
	handle->opaque[0] = 0;
	return rc;
}

/* The frames that held the public structs are gone. */
int
weft__scopes_close(struct weft__threadlet *self)
{
	int error = 0;

	for (struct weft__scope *s = self->scope; s; s = s->outer)
		s->handle = NULL;
	while (self->scope) {
		int rc = threadlet_scope_finish(self, self->scope, error == 0);

		error = error ? error : rc;
	}
	return error;
}

/* --- joining ------------------------------------------------------------ */

/* The handle of a threadlet that was started in a scope of this loop.  By invariant 2 the handle
 * keeps its ID while the loop of its scope reads it. */
static int
threadlet_scope_find(int64_t id, struct weft__handle **out)
{
	weft_loop *loop = weft__thread_self()->loop;
	uintptr_t here = loop ? (uintptr_t)weft__sched_at(loop) : 0;
	/* Without a scheduler there may be no handles at all. */
	struct weft__handle *handle = here ? weft__handle_find_any(id) : NULL;
	uintptr_t scope_sched = handle ? weft__load(&handle->scope_sched, WEFT__RELAXED) : 0;

	if (loop && weft__loop_is_forked(loop))
		return weft__misuse(WEFT_EWRONGLOOP,
		                    "weft_join: the loop belongs to the parent process");
	if (!scope_sched)
		return weft__fail(WEFT_ESRCH,
		                  "weft_join: there is no such threadlet in an open scope");
	if (scope_sched != here)
		return weft__fail(WEFT_EWRONGLOOP,
		                  "weft_join: the threadlet is in a scope of another loop");
	*out = handle;
	return 0;
}

int
weft_join(weft_threadlet id, int *out, uint64_t deadline_ns)
{
	int64_t value = 0;
	struct weft__waiter waiter = { .what = "join", .on = id };
	struct weft__wait wait = { .waiter = &waiter, .value = &value };
	struct weft__handle *handle = NULL;
	int rc = threadlet_scope_find(id, &handle);

	if (rc < 0)
		return rc;
	if (handle->ended) {
		if (handle->result < 0)
			weft__pass_text(handle->result, handle->text,
			                weft__failure_of(weft__thread_self()));
		if (out)
			*out = handle->result;
		return 0;
	}
	if (id == weft_self())
		return weft__fail(WEFT_EDEADLK, "weft_join: a threadlet cannot join itself");
	rc = weft__may_wait_in(deadline_ns, "weft_join");
	if (rc < 0)
		return rc;
	weft__wait_push(&handle->joiners, &wait);
	rc = (int)weft__wait(&waiter, deadline_ns);
	weft__wait_drop(&wait);
	if (rc == 0 && out)
		*out = (int)value;
	return rc;
}

void
weft__join_push(weft_threadlet id, struct weft__wait *wait)
{
	struct weft__handle *handle = NULL;

	if (threadlet_scope_find(id, &handle) == 0)
		weft__wait_push(&handle->joiners, wait);
}
