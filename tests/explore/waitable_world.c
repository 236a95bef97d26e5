/* waitable_world.c - the world of the models of waitables, with the planted bugs.
 *
 * A planted bug is a copy of the protocol with one step missing or in the wrong place.
 */
#include "waitable_world.h"

static void
setup(struct world *w, size_t capacity)
{
	w->bug = (enum bug)planted;
	w->a = weft_chan_new(sizeof(uint64_t), capacity, WEFT_SHARED);
	w->b = weft_chan_new(sizeof(uint64_t), capacity, WEFT_SHARED);
}

void
setup_0(void *state)
{
	setup(state, 0);
}

void
setup_1(void *state)
{
	setup(state, 1);
}

void
setup_2(void *state)
{
	setup(state, 2);
}

void
give_up(void *state)
{
	struct world *w = state;

	weft_chan_unref(w->a);
	weft_chan_unref(w->b);
}

/* --- waiting ------------------------------------------------------------ */

/* As in waitable.c, except for the bugs. */
static int
park(struct world *w, struct weft__shared_waiter *waiter, uint64_t deadline_ns)
{
	if (w->bug == LATE_SLEEP)
		weft__store(&waiter->woken, WEFT__WAIT_SLEEPS, WEFT__RELAXED);
	else if (weft__exchange(&waiter->woken, WEFT__WAIT_SLEEPS, WEFT__ACQUIRE)
	         == WEFT__WAIT_WOKEN)
		return (int)weft__get(waiter->waiter.result);
	while (weft__load(&waiter->woken, WEFT__ACQUIRE) != WEFT__WAIT_WOKEN) {
		if (weft__sys->park(&waiter->woken, WEFT__WAIT_SLEEPS, deadline_ns) != -ETIMEDOUT)
			continue;
		if (w->bug == NO_CLAIM || weft__claim(&waiter->waiter))
			return WEFT_ETIMEDOUT;
		deadline_ns = WEFT_NEVER;
	}
	return (int)weft__get(waiter->waiter.result);
}

/* Called inside the waitable; leaves it and waits. */
static int
wait_in(struct world *w, struct weft__waitable *waitable, struct weft__waits *queue, void *value,
        uint64_t deadline_ns)
{
	struct weft__shared_waiter waiter;
	struct weft__wait wait = { .waiter = &waiter.waiter, .value = value };
	int rc;

	weft__shared_waiter_init(&waiter, "model", queue);
	if (w->bug == LATE_PUSH) {
		weft__waitable_leave(waitable);
		(void)weft__waitable_enter(waitable);
	}
	weft__wait_push(queue, &wait);
	weft__waitable_leave(waitable);
	rc = park(w, &waiter, deadline_ns);
	if (weft__get(waiter.waiter.chosen) || w->bug == NO_DROP)
		return rc;
	(void)weft__waitable_enter(waitable);
	weft__wait_drop(&wait);
	weft__waitable_leave(waitable);
	return rc;
}

/* --- channels ----------------------------------------------------------- */

static int
recv_badly(struct world *w, weft_chan *chan, uint64_t *out, uint64_t deadline_ns)
{
	struct weft__wait *wake;
	int rc;

	(void)weft__waitable_enter(weft__chan_waitable(chan));
	rc = weft__chan_recv(chan, out, &wake);
	if (rc == WEFT_EAGAIN)
		return wait_in(w, weft__chan_waitable(chan), &chan->receivers, out, deadline_ns);
	weft__waitable_leave(weft__chan_waitable(chan));
	if (wake)
		weft__waitable_wake(wake->waiter, 0);
	return rc;
}

/* Send to a waiting receiver, if there is one. */
static bool
send_badly(struct world *w, weft_chan *chan, uint64_t value)
{
	struct weft__wait *wait;

	(void)weft__waitable_enter(weft__chan_waitable(chan));
	wait = weft__wait_claim(&chan->receivers);
	if (wait && w->bug == NO_UNPARK) {
		struct weft__shared_waiter *waiter =
			(struct weft__shared_waiter *)(void *)wait->waiter;

		weft__put(*(uint64_t *)wait->value, value);
		weft__put(wait->waiter->result, 0);
		weft__waitable_leave(weft__chan_waitable(chan));
		weft__store(&waiter->woken, WEFT__WAIT_WOKEN, WEFT__RELEASE);
		return true;
	}
	if (wait) {
		uint64_t *out = wait->value;

		weft__waitable_wake(wait->waiter, 0);
		weft__put(*out, value);
	}
	weft__waitable_leave(weft__chan_waitable(chan));
	return wait != NULL;
}

/* Send under the senders' lock alone, if the channel's only slot is free. */
static bool
send_alone_badly(struct world *w, weft_chan *chan, uint64_t value)
{
	uint64_t count = weft__count_get(&chan->in.count);
	bool free;

	weft__waitable_lock(&chan->in.lock);
	free = weft__load(&chan->out.count, WEFT__ACQUIRE) == count
	       && (w->bug == NO_CHECK || !weft__get(chan->receivers.first));
	if (free && w->bug == EARLY_COUNT)
		weft__store(&chan->in.count, count + 1, WEFT__RELEASE);
	if (free)
		weft__put(*(uint64_t *)(void *)chan->values, value);
	if (free && w->bug == NO_CHECK)
		weft__store(&chan->in.count, count + 1, WEFT__RELEASE);
	weft__lock_give(&chan->in.lock);
	return free;
}

int
send_value(struct world *w, weft_chan *chan, uint64_t value, uint64_t deadline_ns)
{
	uint64_t copy;

	if ((w->bug == NO_CHECK || w->bug == EARLY_COUNT) && send_alone_badly(w, chan, value))
		return 0;

	if ((w->bug == EARLY_WAKE || w->bug == NO_UNPARK) && send_badly(w, chan, value))
		return 0;
	weft__put(copy, value);
	return weft_chan_send(chan, &copy, deadline_ns);
}

int
recv_value(struct world *w, weft_chan *chan, uint64_t *out, uint64_t deadline_ns)
{
	uint64_t copy;
	int rc = w->bug == NO_CLAIM || w->bug == NO_DROP || w->bug == LATE_PUSH
	                         || w->bug == LATE_SLEEP
	                 ? recv_badly(w, chan, &copy, deadline_ns)
	                 : weft_chan_recv(chan, &copy, deadline_ns);

	if (rc == 0)
		*out = weft__get(copy);
	return rc;
}

static void
wake_badly(struct weft__wait *wait, int64_t result)
{
	while (wait) {
		weft__waitable_wake(wait->waiter, result);
		wait = weft__get(wait->next);
	}
}

void
close_chan(struct world *w, weft_chan *chan)
{
	struct weft__wait *all;

	if (w->bug != LATE_READ) {
		weft_chan_close(chan);
		return;
	}
	(void)weft__waitable_enter(weft__chan_waitable(chan));
	weft__put(chan->closed, true);
	all = weft__waitable_claim_all(&chan->receivers);
	weft__waitable_leave(weft__chan_waitable(chan));
	wake_badly(all, WEFT_ECLOSED);
}

/* --- the event ---------------------------------------------------------- */

void
set_event(struct world *w)
{
	struct weft__waitable *waitable = (struct weft__waitable *)(void *)w->event;

	if (w->bug != LATE_LEAVE) {
		EXPLORE_CHECK(weft_event_set(w->event) == 0);
		return;
	}
	(void)weft__waitable_enter(waitable);
	(void)weft__waitable_wake_all(weft__waitable_claim_all(weft__event_waits(w->event)), 0);
	weft__waitable_leave(waitable);
	EXPLORE_CHECK(weft_event_set(w->event) == 0);
}

/* --- select ------------------------------------------------------------- */

/* With two receive cases. */
static int
select_badly(struct world *w, weft_case cases[2], uint64_t deadline_ns)
{
	struct weft__shared_waiter waiter;
	struct weft__wait waits[2];
	struct weft__wait *wake = NULL;
	int rc = WEFT_EAGAIN, i;

	weft__shared_waiter_init(&waiter, "model", w);
	for (i = 0; i < 2 && rc == WEFT_EAGAIN; i++) {
		struct weft_chan *chan = cases[i].recv;

		waits[i] = (struct weft__wait){ .waiter = &waiter.waiter, .value = cases[i].value };
		(void)weft__waitable_enter(weft__chan_waitable(chan));
		rc = weft__chan_recv(chan, cases[i].value, &wake);
		if (rc == WEFT_EAGAIN)
			weft__wait_push(&chan->receivers, &waits[i]);
		weft__waitable_leave(weft__chan_waitable(chan));
	}
	if (rc == WEFT_EAGAIN)
		rc = park(w, &waiter, deadline_ns);
	else if (wake)
		weft__waitable_wake(wake->waiter, 0);
	for (int k = 0; k < i; k++) {
		(void)weft__waitable_enter(weft__chan_waitable(cases[k].recv));
		if (weft__get(waits[k].queue))
			weft__wait_drop(&waits[k]);
		weft__waitable_leave(weft__chan_waitable(cases[k].recv));
	}
	cases[i - 1].result = rc;
	return waiter.waiter.chosen == &waits[0] ? 0 : i - 1;
}

int
select_two(struct world *w, weft_case cases[2], uint64_t deadline_ns)
{
	/* The select draws the case that it tries first from this value: explore both. */
	weft__thread_self()->chance = 1 + (uint32_t)explore_choose(2);
	return w->bug == ONE_WAITABLE ? select_badly(w, cases, deadline_ns)
	                              : weft_select(cases, 2, deadline_ns);
}

/* --- locks -------------------------------------------------------------- */

struct cond {
	struct weft__waitable waitable;
	struct weft__waits waits;
};

struct mutex {
	struct weft__waitable waitable;
	struct weft__waits waits;
	void *owner;
};

int
wait_for_cond(struct world *w, uint64_t deadline_ns)
{
	struct cond *cond = (struct cond *)(void *)&w->cond;
	int rc;

	if (w->bug != EARLY_UNLOCK)
		return weft_cond_wait(&w->cond, &w->mutex, deadline_ns);
	EXPLORE_CHECK(weft_mutex_unlock(&w->mutex) == 0);
	(void)weft__waitable_enter(&cond->waitable);
	rc = wait_in(w, &cond->waitable, &cond->waits, NULL, deadline_ns);
	EXPLORE_CHECK(weft_mutex_lock(&w->mutex, WEFT_NEVER) == 0);
	return rc;
}

void
unlock_mutex(struct world *w)
{
	struct mutex *mutex = (struct mutex *)(void *)&w->mutex;
	struct weft__wait *next;

	if (w->bug != NO_OWNER) {
		EXPLORE_CHECK(weft_mutex_unlock(&w->mutex) == 0);
		return;
	}
	(void)weft__waitable_enter(&mutex->waitable);
	next = weft__wait_claim(&mutex->waits);
	weft__put(mutex->owner, NULL);
	weft__waitable_leave(&mutex->waitable);
	if (next)
		weft__waitable_wake(next->waiter, 0);
}
