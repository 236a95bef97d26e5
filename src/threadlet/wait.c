/* wait.c - how a threadlet waits, and how that ends.
 *
 * A waiter says what is waited for and carries the result.  Whoever ends the wait claims
 * it first; see threadlet.h.  Deadlines, cancellation and interruption only ask: a wait
 * for an op asks the op, which ends it when it has finished; all others end at once.
 */
#include "threadlet/threadlet.h"

int
weft__may_wait(uint64_t deadline_ns)
{
	struct weft__threadlet *self = weft__self();

	if (deadline_ns == WEFT_NOW)
		return WEFT_ETIMEDOUT;
	if (!self)
		return weft__fail(WEFT_EDEADLK,
		                  "outside of threadlets there is nothing to "
		                  "suspend");
	if (weft__loop_is_forked(self->crew->loop))
		return weft__misuse(WEFT_EXDEV, "a forked child cannot go on "
		                                "with its parent's loop");
	if (self->crew->loop->ending)
		return weft__fail(WEFT_ESHUTDOWN, "the loop has stopped");
	if (self->why)
		return self->why;
	if (self->interrupted) {
		self->interrupted = false;
		return WEFT_EINTR;
	}
	return 0;
}

void
weft__ask(struct weft__threadlet *threadlet, int why)
{
	struct weft__waiter *waiter = threadlet->waiter;

	if (!waiter || waiter->deaf)
		return;
	if (waiter->ask)
		waiter->ask(waiter, why);
	else if (weft__claim(waiter))
		weft__wake(waiter, why);
}

void
weft__wait_until(struct weft__threadlet *self, uint64_t deadline_ns)
{
	struct weft_wheel *wheel = &self->crew->loop->wheel;

	if (__builtin_expect(self->place.block != NULL, 0))
		(void)weft__wheel_drop(wheel, &self->place);
	self->place.tag = WEFT__TAG_THREADLET | WEFT__PLACE_BACKGROUND;
	if (weft__wheel_add(wheel, &self->place, deadline_ns) < 0)
		weft__ask(self, WEFT_ENOMEM);
}

int
weft__give_way(struct weft__threadlet *self)
{
	self->crew->streak = 0;
	weft__make_ready(weft__loop_here(), self);
	weft__leave(self);
	return 0;
}

/* --- queues ------------------------------------------------------------- */

void
weft__wait_drop(struct weft__wait *wait)
{
	struct weft__waits *queue = weft__get(wait->queue);
	struct weft__wait *next, *prev;

	if (!queue)
		return;
	next = weft__get(wait->next);
	prev = weft__get(wait->prev);
	if (prev)
		weft__put(prev->next, next);
	else
		weft__put(queue->first, next);
	if (next)
		weft__put(next->prev, prev);
	else
		weft__put(queue->last, prev);
	weft__put(wait->queue, NULL);
}

/* --- deadlines ---------------------------------------------------------- */

void
weft__crew_expire(weft_loop *loop, struct weft__place *place)
{
	struct weft__threadlet *t;

	(void)loop;
	if ((place->tag & WEFT__TAG_KIND) == WEFT__TAG_SCOPE) {
		weft__scope_end(weft__place_scope(place), WEFT_ETIMEDOUT);
		return;
	}
	t = weft__place_threadlet(place);
	if (t->waiter && t->waiter->sleeps)
		weft__ask(t, 0);
	else
		weft__ask(t, WEFT_ETIMEDOUT);
}

/* --- ops ---------------------------------------------------------------- */

void
weft__op_waited(weft_op *op, int64_t result, void *arg)
{
	struct weft__waiter *waiter = arg;
	const struct weft__op *own = (struct weft__op *)(void *)op;

	if (op->more || !weft__claim(waiter))
		return;
	if (own->kind == WEFT__OP_OWN && own->has_text)
		weft__pass_words((int)result, &waiter->threadlet->failure);
	weft__wake(waiter, result);
}
