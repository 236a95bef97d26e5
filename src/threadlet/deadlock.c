/* deadlock.c - detects threadlets that wait only for each other.
 *
 * The check runs when a loop is about to sleep without a deadline, while no op, no watch and no
 * timer is there to wake it.  A post is always possible, so a deadlock is never certain.  But
 * if only threadlets keep the loop alive, and each of them waits for code on its own loop,
 * something is most likely wrong.
 *
 * The loops of a runtime are checked together (runtime/quiet.c), when all of them sleep.
 *
 *   1. A witness is a threadlet that something else can wake.  While there is one, there is no
 *      deadlock; so the last witness found is checked first.
 *   2. A reported deadlock is not reported again before a threadlet has run.
 *   3. If a threadlet has run after a report, and not because of the report hook, then posts
 *      wake these threadlets.  That is how this loop works, and it is no longer checked.
 */
#include "threadlet/threadlet.h"

#define TEXT_BYTES ((size_t)16384)

/* The threadlets that are checked: those of one scheduler, alone or together with those of all
 * loops of its runtime. */
struct suspects {
	struct weft__sched *sched;
	const struct weft__part *runtime; /* NULL: alone */
};

/* Is that scheduler not among those that are checked? */
static bool
is_outside(const struct suspects *all, const struct weft__sched *sched)
{
	return sched != all->sched
	       && (!all->runtime
	           || weft__loop_part(sched->loop, WEFT__PART_RUNTIME) != all->runtime);
}

/* Its threadlet runs outside, or has ended there and is on its way to the scope's loop. */
static bool
is_distant(const struct suspects *all, const struct weft__handle *handle)
{
	const struct weft__sched *sched = (struct weft__sched *)weft__load(&handle->sched,
	                                                                   WEFT__ACQUIRE); /* M */

	return is_outside(all, sched) || (!handle->threadlet && !handle->ended);
}

static bool
has_distant_child(const struct suspects *all, const struct weft__scope *scope)
{
	for (const struct weft__handle *h = scope->live; h; h = h->next)
		if (is_distant(all, h))
			return true;
	return false;
}

static bool
is_witness(const struct suspects *all, const struct weft__threadlet *t)
{
	const struct weft__waiter *waiter = t->waiter;
	const struct weft__scope *scope = t->handle->scope;
	const struct weft__handle *joined;

	if (!waiter || waiter->request_end || waiter->sleeps)
		return true;
	if (waiter->shared)
		return !all->runtime
		       || weft__loop_runtime(all->sched->loop)
		                  ->has_outside_wakers(all->sched->loop);
	if (scope && is_outside(all, scope->owner->sched))
		return true; /* its scope can be canceled there */
	if (t->scope && t->scope->closer == waiter)
		return has_distant_child(all, t->scope);
	if (__builtin_strcmp(waiter->what, "join") != 0)
		return false;
	joined = weft__handle_find_any(waiter->on);
	return !joined || is_distant(all, joined);
}

/* Is there no witness?  Counts the threadlets that keep a run going. */
static bool
has_no_witness(const struct suspects *all, uint64_t *alive)
{
	struct weft__sched *sched = all->sched;

	if (weft__load(&sched->starting, WEFT__RELAXED) > 0
	    || (sched->witness && is_witness(all, sched->witness)))
		return false; /* invariant 1 */
	for (struct weft__threadlet *t = sched->newest; t; t = t->older) {
		sched->witness = is_witness(all, t) ? t : NULL;
		if (sched->witness)
			return false;
		*alive += !t->background;
	}
	return true;
}

static bool
is_stuck(struct weft__sched *sched)
{
	uint64_t alive = 0;

	return has_no_witness(&(struct suspects){ sched, NULL }, &alive) && alive > 0
	       && alive == weft__loop_alive(sched->loop);
}

bool
weft__sched_is_stuck(weft_loop *loop, uint64_t *alive)
{
	struct suspects all = { weft__sched_at(loop), weft__loop_part(loop, WEFT__PART_RUNTIME) };

	return !all.sched || has_no_witness(&all, alive);
}

static void
deadlock_report(struct weft__sched *sched)
{
	char *buf = weft__sys->alloc(TEXT_BYTES);
	weft_report about = {
		.kind = WEFT_REPORT_DEADLOCK,
		.error = WEFT_EDEADLK,
		.loop = sched->loop,
		.name = weft__loop_name(sched->loop),
		.text = "deadlock: the threadlets wait only for each other",
	};

	if (buf) {
		struct weft__text text = weft__text_begin(buf, TEXT_BYTES);

		weft__text_add(&text, about.text);
		weft__text_add(&text, ":\n");
		weft__add_sched(&text, sched);
		weft__text_end_line(&text);
		about.text = buf;
	}
	weft__loop_report(&about);
	weft__sys->release(buf);
}

void
weft__sched_check(weft_loop *loop)
{
	struct weft__sched *sched = weft__sched_at(loop);
	uint64_t ran = weft__count_get(&weft__loop_counts(loop)->calls[WEFT_PHASE_THREADLETS]);

	if (sched->woken_by_posts || sched->stuck_at == ran + 1)
		return; /* invariant 2 */
	if (sched->stuck_at) {
		sched->woken_by_posts = true; /* invariant 3 */
		return;
	}
	if (!is_stuck(sched))
		return;
	sched->stuck_at = ran + 1;
	deadlock_report(sched);
	if (weft__loop_is_runnable(loop) || weft__loop_is_stopping(loop))
		sched->stuck_at = 0;
}
