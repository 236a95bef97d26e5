/* cancel.c - telling threadlets to end, or one wait of them.
 *
 * A threadlet has levels: its base, and above it each scope it has open.  Cancelling a
 * level reaches all levels above it, up to one that is shielded, and the children of
 * each; what the topmost level says holds for the waits of the threadlet itself.
 *
 *   1. A level keeps the first reason it was given; then all above it, up to a shield,
 *      and all children have one.
 *   2. Children are told one after the other, from a list, not by recursion: the tree
 *      may be as deep as there are threadlets, and stacks are small.
 */
#include "threadlet/threadlet.h"

/* Threadlets still to be told. */
struct round {
	struct weft__threadlet *first;
	int why;
};

static void
add(struct round *round, struct weft__threadlet *t)
{
	if (t->base_why)
		return; /* told before; invariant 1 */
	t->base_why = round->why;
	t->told = round->first;
	round->first = t;
}

static void
end_level(struct round *round, const struct weft__crew *crew,
          struct weft__scope *scope)
{
	if (scope->why)
		return;
	scope->why = round->why;
	for (struct weft__handle *h = scope->live; h; h = h->next) {
		if (weft__load(&h->crew, WEFT__RELAXED) == (uintptr_t)crew)
			add(round, h->threadlet);
		else
			(void)weft__handle_ask(
				(int64_t)weft__load(&h->id, WEFT__RELAXED),
				round->why == WEFT_ETIMEDOUT
					? WEFT__REQUEST_TIMEOUT
					: WEFT__REQUEST_CANCEL);
	}
}

/* End the levels of `t` from `bottom` (NULL: its base) up to the nearest shield. */
static void
end_levels(struct round *round, struct weft__threadlet *t,
           struct weft__scope *bottom)
{
	struct weft__scope *shield = NULL, *scope;

	if (t->closing && !bottom)
		return;
	for (scope = t->scope; scope != bottom; scope = scope->outer)
		if (scope->flags & WEFT_SHIELD)
			shield = scope;
	scope = shield ? shield->outer : t->scope;
	for (; scope != bottom; scope = scope->outer)
		end_level(round, t->crew, scope);
	if (bottom)
		end_level(round, t->crew, bottom);
	if (shield || t->why)
		return;
	t->why = round->why;
	weft__ask(t, t->why);
}

static void
tell_all(struct round *round) /* invariant 2 */
{
	struct weft__threadlet *t;

	while ((t = round->first)) {
		round->first = t->told;
		end_levels(round, t, NULL);
	}
}

void
weft__threadlet_end(struct weft__threadlet *threadlet, int why)
{
	struct round round = { .why = why };

	add(&round, threadlet);
	tell_all(&round);
}

void
weft__scope_end(struct weft__scope *scope, int why)
{
	struct round round = { .why = why };

	end_levels(&round, scope->owner, scope);
	tell_all(&round);
}

static void
interrupt(struct weft__threadlet *t)
{
	if (t->waiter && !t->waiter->deaf)
		weft__ask(t, WEFT_EINTR);
	else
		t->interrupted = true;
}

/* Asked by another thread. */
void
weft__on_asked(void *arg)
{
	struct weft__handle *handle = arg;
	struct weft__crew *crew = (struct weft__crew *)weft__load(
		&handle->crew, WEFT__RELAXED);
	int64_t wanted;
	unsigned requests = weft__handle_take_requests(handle, &wanted);

	weft__thread_self()->loop->own_run++;
	if (!weft__handle_find(crew, wanted)
	    || crew->loop != weft__thread_self()->loop || !handle->threadlet)
		return; /* it has ended */
	if (requests & WEFT__REQUEST_CANCEL)
		weft__threadlet_end(handle->threadlet, WEFT_ECANCELED);
	if (requests & WEFT__REQUEST_TIMEOUT)
		weft__threadlet_end(handle->threadlet, WEFT_ETIMEDOUT);
	if (requests & WEFT__REQUEST_INTERRUPT)
		interrupt(handle->threadlet);
}

/* The handle, if its threadlet runs on the calling thread's loop. */
static struct weft__handle *
find_here(weft_threadlet id)
{
	weft_loop *loop = weft__thread_self()->loop;
	struct weft__crew *crew = loop ? (struct weft__crew *)weft__load(
					  &loop->crew, WEFT__RELAXED)
	                               : NULL;

	return crew ? weft__handle_find(crew, id) : NULL;
}

static int
ask(weft_threadlet id, unsigned request)
{
	struct weft__handle *handle = find_here(id);

	if (!handle)
		return weft__handle_ask(id, request);
	if (!handle->threadlet)
		return weft__fail(WEFT_ESRCH, "it has ended");
	if (request == WEFT__REQUEST_CANCEL)
		weft__threadlet_end(handle->threadlet, WEFT_ECANCELED);
	else
		interrupt(handle->threadlet);
	return 0;
}

int
weft_cancel(weft_threadlet id)
{
	return ask(id, WEFT__REQUEST_CANCEL);
}

int
weft_interrupt(weft_threadlet id)
{
	return ask(id, WEFT__REQUEST_INTERRUPT);
}
