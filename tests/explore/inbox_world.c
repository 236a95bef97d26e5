/* inbox_world.c - the world of the inbox models: the loop's side, and checks. */
#include "inbox_world.h"

/* --- creation and end --------------------------------------------------- */

void
open_world(struct world *w, uint32_t slots_max)
{
	w->bug = (enum bug)planted;
	w->inbox = weft__sys->alloc(sizeof(*w->inbox));
	weft__inbox_init(w->inbox, slots_max);
}

void
end_world(struct world *w, bool alone)
{
	weft__inbox_fini(w->inbox, alone);
	weft__sys->release(w->inbox);
	w->inbox = NULL;
}

void
setup(void *state)
{
	open_world(state, 2);
}

/* --- producers ---------------------------------------------------------- */

void
mark(void *arg)
{
	(void)arg;
}

void
fill(struct weft__node *node, uintptr_t what)
{
	weft__put(node->fn, mark);
	weft__put(node->arg, (void *)what);
	weft__put(node->kind, 0);
}

void
wake(struct world *w, struct weft__inbox *inbox, int mode)
{
	uint64_t one = 1;

	if (mode <= 0 || w->bug == NO_WAKE_CALL)
		return;
	if (mode == WEFT__IN_PARK) {
		weft__inbox_futex_wake(inbox);
	} else {
		EXPLORE_CHECK(weft__get(w->opened) == 1);
		(void)weft__sys->write(EXPLORE_FD, &one, sizeof(one));
	}
	weft__inbox_wake_done(inbox);
}

/* --- the loop's side ---------------------------------------------------- */

void
note(struct world *w, void *arg)
{
	uintptr_t what = (uintptr_t)arg;
	unsigned who = (unsigned)what / 16;

	w->got++;
	if (what == UNORDERED)
		return;
	EXPLORE_CHECK(what % 16 == w->last[who] + 1);
	w->last[who]++;
}

void
run_producers(struct world *w)
{
	for (uint32_t left = w->inbox->listed.count; left > 0; left--) {
		struct weft__producer *producer = weft__producer_begin(w->inbox);
		uint32_t ran = 0;
		weft_fn fn;
		void *arg;

		while (weft__producer_next(producer, &fn, &arg)) {
			EXPLORE_CHECK(fn == mark);
			note(w, arg);
			ran++;
		}
		weft__producer_end(producer, ran);
	}
}

void
take_all(struct world *w)
{
	struct weft__node_call call;

	(void)weft__inbox_take(w->inbox, &w->first, &w->rest);
	if (w->bug == LIFO && w->rest.first && w->rest.first->next) {
		struct weft__node *a = w->rest.first, *b = a->next;

		w->rest.first = b;
		b->next = a;
		a->next = NULL;
	}
	while (weft__node_pop(&w->rest, &call)) {
		EXPLORE_CHECK(call.fn == mark);
		note(w, call.arg);
	}
	run_producers(w);
}

void
open_backend(struct world *w)
{
	if (!w->opened)
		weft__put(w->opened, 1);
}

void
sleep_once(struct world *w, bool by_fd)
{
	if (by_fd) {
		open_backend(w);
		if (!weft__inbox_begin_sleep(w->inbox, WEFT__IN_BACKEND))
			return;
		(void)explore_fd_wait(EXPLORE_FD, WEFT_NEVER);
		weft__inbox_end_sleep(w->inbox, WEFT__IN_BACKEND);
	} else if (w->bug == NO_COMPARE) {
		if (!weft__inbox_has(w->inbox)
		    && weft__inbox_begin_sleep(w->inbox, WEFT__IN_PARK)) {
			static weft__a32 other;

			(void)weft__sys->park(&other, 0, WEFT_NEVER);
		}
	} else if (weft__inbox_begin_sleep(w->inbox, WEFT__IN_PARK)) {
		weft__inbox_park(w->inbox, WEFT_NEVER);
		weft__inbox_end_sleep(w->inbox, WEFT__IN_PARK);
	}
}

void
consume(struct world *w, uint32_t want, bool switch_modes)
{
	for (;;) {
		take_all(w);
		if (w->got >= want)
			return;
		sleep_once(w, switch_modes && explore_choose(2));
	}
}

void
consume_two(void *state)
{
	consume(state, 2, false);
}

/* Take the first call and free the inbox at once. */
void
consume_and_free(void *state)
{
	struct world *w = state;

	consume(w, 1, false);
	end_world(w, w->bug == NO_DEBT);
}

/* Close, take what was accepted, and never take again. */
void
close_and_take(void *state)
{
	struct world *w = state;

	if (w->bug != LATE_CLOSE)
		weft__inbox_close(w->inbox);
	do
		take_all(w);
	while (w->bug != NO_REST && (!weft__producers_rest(w->inbox) || weft__inbox_has(w->inbox)));
	if (w->bug == LATE_CLOSE)
		weft__inbox_close(w->inbox);
}

/* --- checks ------------------------------------------------------------- */

void
check_accepted(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->got == weft__load(&w->accepted, WEFT__RELAXED));
	end_world(w, false);
}

void
check_gone(void *state)
{
	(void)state;
}
