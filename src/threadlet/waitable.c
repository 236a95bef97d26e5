/* waitable.c - waitables: what locks, channels and similar objects have in common.
 *
 *   1. Queues are changed only inside the waitable.  Code that takes a waiter from a queue claims
 *      the waiter there.  A deadline or a cancellation claims the waiter elsewhere, and leaves it
 *      in the queue; its owner then removes it, inside, before the wait returns.  So every
 *      waiter in a queue still exists.
 *   2. A claimed waiter is woken outside of the waitable, so that the wake delays no other
 *      caller.  After the wake its memory, and perhaps the waitable's, may be gone.
 *   3. The thread that wakes a waiter has written the result, and the value, before.  For a
 *      threadlet that has suspended, the inbox of its loop orders that; for all other waiters W
 *      does (release, acquire).
 *   4. A threadlet may spin for a moment first: if another thread is about to wake it, that
 *      takes less time than to suspend and resume.  Then the waiter exchanges SLEEPS in, and the
 *      waking thread exchanges WOKEN in.  Whichever comes second sees the other: either the
 *      waiter does not sleep, or the waking thread wakes it.
 */
#include "threadlet/waitable.h"

#define SPIN_NS (3 * WEFT_US)

static int
bind_to_loop(struct weft__waitable *waitable)
{
	weft_loop *loop = weft__thread_self()->loop;
	uint64_t none = 0;

	if (!loop)
		return weft__misuse(
			WEFT_EWRONGLOOP,
			"sync object or channel: it is not shared, and no loop runs on this "
			"thread; make it with WEFT_SHARED");
	if (weft__cas(&waitable->loop_id, &none, weft__loop_id(loop), WEFT__RELAXED))
		return 0;
	return weft__misuse(
		WEFT_EWRONGLOOP,
		"sync object or channel: it is not shared, and belongs to another loop; make it "
		"with WEFT_SHARED");
}

void
weft__waitable_lock_slow(struct weft__lock *lock)
{
	for (int i = 0; i < WEFT__WAITABLE_TRIES; i++) {
		uint32_t free = 0;

		for (int k = 1 << i; k > 0; k--)
			weft__pause();
		if (weft__cas(&lock->word, &free, 1, WEFT__ACQUIRE))
			return;
	}
	weft__lock_take(lock);
}

int
weft__waitable_enter_slow(struct weft__waitable *waitable)
{
	const struct weft__waitable_pair *pair =
		(const struct weft__waitable_pair *)(const void *)waitable;

	if (!(waitable->flags & WEFT_SHARED))
		return waitable->flags == 0
		               ? bind_to_loop(waitable)
		               : weft__misuse(
				       WEFT_EINVAL,
				       "sync object: it is not initialized; use WEFT_INIT or "
				       "WEFT_SHARED_INIT");
	if (!(waitable->flags & WEFT__WAITABLE_PAIR)) {
		weft__waitable_lock(&waitable->lock);
		return 0;
	}
	weft__waitable_lock(pair->first);
	weft__waitable_lock(pair->second);
	return 0;
}

void
weft__waitable_leave_pair(struct weft__waitable_pair *pair)
{
	weft__lock_give(pair->second);
	weft__lock_give(pair->first);
}

int
weft__waitable_may_wait(bool shared, uint64_t deadline_ns)
{
	const struct weft__thread *thread = weft__thread_self();

	if (shared && !thread->loop && deadline_ns != WEFT_NOWAIT)
		return 0;
	return weft__may_wait(deadline_ns);
}

void
weft__shared_waiter_init(struct weft__shared_waiter *w, const char *what, const void *on)
{
	struct weft__threadlet *self = weft__self();

	*w = (struct weft__shared_waiter){
		.waiter = { .threadlet = self, .what = what, .on = (intptr_t)on, .shared = true },
		.loop = self ? self->sched->loop : NULL,
		.may_spin = true,
	};
}

void
weft__waitable_end_wait(struct weft__waiter *waiter, int why)
{
	if (weft__claim(waiter))
		weft__wake(waiter, why);
}

bool
weft__waitable_may_spin(struct weft__spin_backoff *backoff)
{
	const struct weft__threadlet *self = weft__self();
	const weft_loop *loop = self ? self->sched->loop : NULL;

	return WEFT__WAITABLE_TRIES > 0 && loop && weft__loop_may_spin(loop)
	       && weft__spin_is_due(backoff);
}

/* Invariant 4.  Returns whether it was woken already. */
static bool
spin_for_wake(struct weft__shared_waiter *w)
{
	struct weft__spin_backoff *backoff = w->loop ? weft__loop_wait_spins(w->loop) : NULL;

	if (backoff && w->may_spin && weft__waitable_may_spin(backoff))
		weft__spin_update(backoff, weft__spin_on(&w->woken, WEFT__WAIT_SPINS, SPIN_NS),
		                  WEFT__WAITABLE_SKIPS_MAX);
	return weft__exchange(&w->woken, WEFT__WAIT_SLEEPS, WEFT__ACQUIRE)
	       == WEFT__WAIT_WOKEN; /* W */
}

/* A plain thread parks. */
static int64_t
park(struct weft__shared_waiter *w, uint64_t deadline_ns)
{
	while (weft__load(&w->woken, WEFT__ACQUIRE) /* W */
	       != WEFT__WAIT_WOKEN) {
		int rc = weft__sys->park(&w->woken, WEFT__WAIT_SLEEPS, deadline_ns);

		if (rc != -ETIMEDOUT)
			continue;
		if (weft__claim(&w->waiter))
			return weft__fail(WEFT_ETIMEDOUT,
			                  weft__wait_text(w->waiter.what, WEFT_ETIMEDOUT));
		deadline_ns = WEFT_NEVER; /* the wake is on its way */
	}
	return weft__get(w->waiter.result);
}

int64_t
weft__shared_wait(struct weft__shared_waiter *w, uint64_t deadline_ns)
{
	if (w->waiter.shared && spin_for_wake(w)) {
		if (w->waiter.threadlet)
			(void)weft__yield(w->waiter.threadlet);
		return weft__get(w->waiter.result);
	}
	return w->waiter.threadlet ? weft__wait(&w->waiter, deadline_ns) : park(w, deadline_ns);
}

static void
on_woken(void *arg)
{
	struct weft__waiter *waiter = arg;

	weft__wake(waiter, weft__get(waiter->result));
}

/* Invariant 3. */
void
weft__waitable_wake_shared(struct weft__shared_waiter *w, int64_t result)
{
	weft_loop *loop = w->loop;

	if (loop && loop == weft__thread_self()->loop) {
		weft__wake(&w->waiter, result);
		return;
	}
	weft__put(w->waiter.result, result);
	if (weft__exchange(&w->woken, WEFT__WAIT_WOKEN, WEFT__RELEASE) /* W */
	    != WEFT__WAIT_SLEEPS)
		return;
	if (loop)
		weft__loop_send(loop, &w->node, on_woken, &w->waiter);
	else
		weft__sys->unpark(&w->woken); /* the word may be gone, which does no harm */
}

struct weft__wait *
weft__waitable_claim_all(struct weft__waits *queue)
{
	struct weft__wait *first = NULL, **end = &first, *wait;

	while ((wait = weft__wait_claim(queue))) {
		weft__put(*end, wait);
		end = &wait->next;
	}
	weft__put(*end, NULL);
	return first;
}

int
weft__waitable_wake_all(struct weft__wait *list, int64_t result)
{
	int count = 0;

	while (list) {
		struct weft__wait *wait = list;

		list = weft__get(wait->next); /* `wait` is invalid after the wake */
		weft__waitable_wake(wait->waiter, result);
		count++;
	}
	return count;
}

/* --- waiting in a queue ------------------------------------------------- */

static inline int
wait_local(struct weft__threadlet *self, struct weft__waits *queue, const char *what, void *value,
           bool deaf, uint64_t deadline_ns)
{
	struct weft__waiter waiter = {
		.threadlet = self, .what = what, .on = (intptr_t)queue, .deaf = deaf
	};
	struct weft__wait wait = { .waiter = &waiter, .value = value };
	int rc;

	weft__wait_push(queue, &wait);
	rc = (int)weft__wait_as(self, &waiter, deadline_ns);
	if (wait.queue)
		weft__wait_drop(&wait);
	return rc;
}

/* Without a stack canary: the function has no array that could overflow. */
__attribute__((no_stack_protector)) struct weft__waitable_return
weft__waitable_wait_from(struct weft__waits *queue, const char *what, void *value,
                         uint64_t deadline_ns, struct weft__threadlet *self, const void *site)
{
	const weft_loop *loop = weft__loop_here();
	struct weft__sched *sched = self->sched;
	int rc;

	if (deadline_ns == WEFT_NOWAIT || weft__loop_is_ending(loop) || weft__loop_is_forked(loop))
		return (struct weft__waitable_return){ weft__may_wait(deadline_ns), false };
	sched->site = site;
	rc = wait_local(self, queue, what, value, false, deadline_ns);
	return (struct weft__waitable_return){ rc, sched->site != site };
}

static int
wait_shared(struct weft__waitable *waitable, const struct weft__waitable_wait *how,
            uint64_t deadline_ns)
{
	struct {
		struct weft__shared_waiter w;
		struct weft__wait wait; /* next to `w`, for the waking thread's cache */
	} here;
	int rc;

	weft__shared_waiter_init(&here.w, how->what, how->queue);
	here.w.waiter.deaf = how->deaf;
	here.wait = (struct weft__wait){ .waiter = &here.w.waiter, .value = how->value };
	weft__wait_push(how->queue, &here.wait);
	weft__waitable_leave(waitable);
	rc = (int)weft__shared_wait(&here.w, deadline_ns);
	if (weft__get(here.w.waiter.chosen)) /* by a claimer: the waitable may be gone */
		return rc;
	(void)weft__waitable_enter(waitable); /* invariant 1 */
	weft__wait_drop(&here.wait);
	weft__waitable_leave(waitable);
	return rc;
}

int
weft__waitable_wait(struct weft__waitable *waitable, const struct weft__waitable_wait *how,
                    uint64_t deadline_ns)
{
	bool shared = waitable->flags & WEFT_SHARED;
	int rc = how->deaf ? 0 : weft__waitable_may_wait(shared, deadline_ns);

	if (rc < 0) {
		weft__waitable_leave(waitable);
		return rc;
	}
	return shared ? wait_shared(waitable, how, deadline_ns)
	              : wait_local(weft__self(), how->queue, how->what, how->value, how->deaf,
	                           deadline_ns);
}
