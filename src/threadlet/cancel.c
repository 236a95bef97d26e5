/* cancel.c - canceling threadlets and scopes, and interrupting single waits.
 *
 * A threadlet has levels: its base, and above it each scope that it has open.  Canceling a
 * level cancels all levels above it, up to a shielded one, and the children of each.  The state
 * of the topmost level applies to the threadlet's own waits.
 *
 *   1. A level keeps the first reason it was given.  From then on all levels above it, up to a
 *      shield, and all children have a reason, too.
 *   2. Children are canceled one after the other, from a list, not by recursion: the tree may
 *      be as deep as there are threadlets, and stacks are small.
 */
#include "threadlet/threadlet.h"

/* Threadlets that the cancellation has yet to reach. */
struct cancellation {
	struct weft__threadlet *first;
	int why;
};

static void
threadlet_cancel_add(struct cancellation *cancellation, struct weft__threadlet *t)
{
	if (t->base_why)
		return; /* canceled before; invariant 1 */
	t->base_why = cancellation->why;
	t->next_canceled = cancellation->first;
	cancellation->first = t;
}

static void
end_level(struct cancellation *cancellation, const struct weft__sched *sched,
          struct weft__scope *scope)
{
	if (scope->why)
		return;
	scope->why = cancellation->why;
	for (struct weft__handle *h = scope->live; h; h = h->next) {
		if (weft__load(&h->sched, WEFT__ACQUIRE) != (uintptr_t)sched)
			(void)weft__handle_request((int64_t)weft__load(&h->id, WEFT__RELAXED),
			                           cancellation->why == WEFT_ETIMEDOUT
			                                   ? WEFT__REQUEST_TIMEOUT
			                                   : WEFT__REQUEST_CANCEL);
		else if (h->threadlet) /* else it is on its way to the scope's loop */
			threadlet_cancel_add(cancellation, h->threadlet);
	}
}

/* End the levels of `t` from `bottom` (NULL: its base) up to the nearest shield. */
static void
end_levels(struct cancellation *cancellation, struct weft__threadlet *t, struct weft__scope *bottom)
{
	struct weft__scope *shield = NULL, *scope;

	if (t->closing && !bottom)
		return;
	for (scope = t->scope; scope != bottom; scope = scope->outer)
		if (scope->flags & WEFT_SHIELD)
			shield = scope;
	scope = shield ? shield->outer : t->scope;
	for (; scope != bottom; scope = scope->outer)
		end_level(cancellation, t->sched, scope);
	if (bottom)
		end_level(cancellation, t->sched, bottom);
	if (shield || t->why)
		return;
	t->why = cancellation->why;
	weft__request_end(t, t->why);
}

static void
cancel_all(struct cancellation *cancellation) /* invariant 2 */
{
	struct weft__threadlet *t;

	while ((t = cancellation->first)) {
		cancellation->first = t->next_canceled;
		end_levels(cancellation, t, NULL);
	}
}

void
weft__threadlet_end(struct weft__threadlet *threadlet, int why)
{
	struct cancellation cancellation = { .why = why };

	threadlet_cancel_add(&cancellation, threadlet);
	cancel_all(&cancellation);
}

void
weft__scope_end(struct weft__scope *scope, int why)
{
	struct cancellation cancellation = { .why = why };

	end_levels(&cancellation, scope->owner, scope);
	cancel_all(&cancellation);
}

/* The call that returns WEFT_EINTR clears the mark: the current call, or the next one if the
 * current call already has its result. */
static void
interrupt(struct weft__threadlet *t)
{
	t->interrupted = true;
	weft__request_end(t, WEFT_EINTR);
}

void
weft__on_request(struct weft__mailbox *box, struct weft__letter *letter)
{
	struct weft__sched *sched = (struct weft__sched *)(void *)((char *)box
	                                                           - offsetof(struct weft__sched,
	                                                                      requests));
	struct weft__handle *handle;
	unsigned requests = weft__handle_receive(sched, letter, &handle);
	struct weft__threadlet *t = requests ? handle->threadlet : NULL;

	if (!t)
		return; /* it has ended */
	if (requests & WEFT__REQUEST_CANCEL)
		weft__threadlet_end(t, WEFT_ECANCELED);
	if (requests & WEFT__REQUEST_TIMEOUT)
		weft__threadlet_end(t, WEFT_ETIMEDOUT);
	if (requests & WEFT__REQUEST_INTERRUPT)
		interrupt(t);
}

/* The handle of a threadlet of the calling thread's loop, or NULL. */
static struct weft__handle *
find_here(weft_threadlet id)
{
	weft_loop *loop = weft__thread_self()->loop;
	struct weft__sched *sched = loop ? weft__sched_at(loop) : NULL;

	return sched ? weft__handle_find(sched, id) : NULL;
}

static int
threadlet_cancel_request(weft_threadlet id, unsigned request)
{
	const weft_loop *loop = weft__thread_self()->loop;
	struct weft__handle *handle;

	if (loop && weft__loop_is_forked(loop))
		return weft__misuse_in(WEFT_EWRONGLOOP,
		                       request == WEFT__REQUEST_CANCEL ? "weft_cancel"
		                                                       : "weft_interrupt",
		                       "the loop was made by a parent process");
	handle = find_here(id);
	if (!handle)
		return weft__handle_request(id, request);
	if (!handle->threadlet)
		return weft__fail(WEFT_ESRCH,
		                  request == WEFT__REQUEST_CANCEL
		                          ? "weft_cancel: the threadlet has already ended"
		                          : "weft_interrupt: the threadlet has already "
		                            "ended");
	if (request == WEFT__REQUEST_CANCEL)
		weft__threadlet_end(handle->threadlet, WEFT_ECANCELED);
	else
		interrupt(handle->threadlet);
	return 0;
}

int
weft_cancel(weft_threadlet id)
{
	return threadlet_cancel_request(id, WEFT__REQUEST_CANCEL);
}

int
weft_interrupt(weft_threadlet id)
{
	return threadlet_cancel_request(id, WEFT__REQUEST_INTERRUPT);
}

/* The error with which a scope has to end now, or 0. */
static int
why_over(const struct weft__scope *scope, uint64_t now_ns)
{
	if (scope->why)
		return 0; /* it has been ended already */
	if (scope->entry.block && scope->entry.due_ns <= now_ns)
		return WEFT_ETIMEDOUT;
	return scope->tie ? scope->tie->check(scope->tie) : 0;
}

/* Find a scope around `t` that has to end, and the reason; NULL: none.  Continues with the
 * scopes of the threadlet that opened the scope of `t`, and so on, as far as they are on the same
 * loop.  Stops at a shield. */
static struct weft__scope *
find_over(const struct weft__threadlet *t, uint64_t now_ns, int *why)
{
	struct weft__scope *scope = t->scope;

	for (;;) {
		for (; scope; scope = scope->outer) {
			*why = why_over(scope, now_ns);
			if (*why)
				return scope;
			if (scope->flags & WEFT_SHIELD)
				return NULL;
		}
		scope = t->handle->scope;
		if (!scope || scope->owner->sched != t->sched)
			return NULL;
		t = scope->owner;
	}
}

/* Does now what the loop would do in its next iteration, so that later waits of `self` return the
 * same error. */
int
weft__threadlet_recheck(struct weft__threadlet *self)
{
	struct weft__scope *over;
	int why;

	if (self->closing)
		return self->why;
	if (weft__loop_is_stopping(self->sched->loop))
		weft__threadlet_end(self, WEFT_ECANCELED);
	weft__mailbox_drain(&self->sched->requests);
	while (!self->why && (over = find_over(self, weft__sys->now(), &why))) {
		if (over->entry.block)
			(void)weft__wheel_drop(weft__loop_wheel(self->sched->loop), &over->entry);
		weft__scope_end(over, why);
	}
	return self->why;
}
