/* waitable_models.c - shared channels and select, over all schedules.
 *
 * The models call the real source.  Each value that was sent arrives once, the values of one
 * sender arrive in order, and no thread waits forever; the explorer reports such a wait as a
 * deadlock.  main() also runs the models of waitable_locks.c.
 */
#include "waitable_world.h"

/* A value encodes its sender and its number among that sender's values. */
#define VALUE(who, number) ((uint64_t)(16 * (who) + (number)))

static void
note(struct world *w, uint64_t value)
{
	uint64_t who = value / 16;

	EXPLORE_CHECK(who < 2 && value % 16 == w->last[who] + 1);
	w->last[who]++;
}

/* --- senders ------------------------------------------------------------ */

static void
send_some(struct world *w, unsigned who, unsigned count)
{
	for (unsigned i = 1; i <= count; i++)
		EXPLORE_CHECK(send_value(w, w->a, VALUE(who, i), WEFT_NEVER) == 0);
}

static void
send_one(void *state)
{
	send_some(state, 0, 1);
}

static void
send_two(void *state)
{
	send_some(state, 0, 2);
}

static void
send_other(void *state)
{
	send_some(state, 1, 1);
}

/* Two values, or fewer if the channel is closed. */
static void
send_until_closed(void *state)
{
	struct world *w = state;

	while (w->done[0] < 2) {
		w->rc[0] = send_value(w, w->a, VALUE(0, w->done[0] + 1), WEFT_NEVER);
		if (w->rc[0] < 0)
			break;
		w->done[0]++;
	}
	EXPLORE_CHECK(w->rc[0] == 0 || w->rc[0] == WEFT_ECLOSED);
}

static void
send_and_close(void *state)
{
	struct world *w = state;

	send_until_closed(w);
	close_chan(w, w->a);
}

static void
send_soon(void *state)
{
	struct world *w = state;

	w->rc[1] = send_value(w, w->a, VALUE(0, 1), SOON);
}

/* Tries twice: the second try may come after a wait has timed out, which must not be queued. */
static void
send_now_twice(void *state)
{
	struct world *w = state;

	for (int i = 0; i < 2; i++) {
		w->rc[1] = send_value(w, w->a, VALUE(0, 1), WEFT_NOWAIT);
		if (w->rc[1] == 0)
			return;
	}
}

static void
send_to_both(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(send_value(w, w->a, VALUE(0, 1), WEFT_NEVER) == 0);
	EXPLORE_CHECK(send_value(w, w->b, VALUE(1, 1), WEFT_NEVER) == 0);
}

static void
send_to_a(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(send_value(w, w->a, VALUE(0, 1), WEFT_NEVER) == 0);
}

static void
send_to_b(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(send_value(w, w->b, VALUE(1, 1), WEFT_NEVER) == 0);
}

static void
send_and_unref(void *state)
{
	struct world *w = state;

	send_one(w);
	weft_chan_unref(w->a);
}

/* --- receivers ---------------------------------------------------------- */

static void
recv_some(struct world *w, unsigned count)
{
	while (count-- > 0) {
		uint64_t value;

		EXPLORE_CHECK(recv_value(w, w->a, &value, WEFT_NEVER) == 0);
		note(w, value);
	}
}

static void
recv_one(void *state)
{
	recv_some(state, 1);
}

/* One of two receivers. */
static void
recv_either(void *state)
{
	struct world *w = state;
	uint64_t value;

	EXPLORE_CHECK(recv_value(w, w->a, &value, WEFT_NEVER) == 0);
	w->got[explore_thread()] = (uint32_t)value;
}

static void
recv_two(void *state)
{
	recv_some(state, 2);
}

/* Receive what is in the channel and, depending on the deadline, what arrives until it is
 * closed. */
static void
recv_rest(struct world *w, uint64_t deadline_ns)
{
	uint64_t value;

	while ((w->rc[1] = recv_value(w, w->a, &value, deadline_ns)) == 0)
		note(w, value);
}

static void
recv_until_closed(void *state)
{
	struct world *w = state;

	recv_rest(w, WEFT_NEVER);
	EXPLORE_CHECK(w->rc[1] == WEFT_ECLOSED);
}

/* One of several receivers that wait when the channel is closed. */
static void
recv_nothing(void *state)
{
	struct world *w = state;
	uint64_t value;

	EXPLORE_CHECK(recv_value(w, w->a, &value, WEFT_NEVER) == WEFT_ECLOSED);
}

static void
recv_soon(void *state)
{
	struct world *w = state;
	uint64_t value = 0;

	w->rc[0] = recv_value(w, w->a, &value, SOON);
	EXPLORE_CHECK(w->rc[0] == WEFT_ETIMEDOUT || value == VALUE(0, 1));
}

static void
recv_and_unref(void *state)
{
	struct world *w = state;

	recv_one(w);
	weft_chan_unref(w->a);
}

static void
close_a(void *state)
{
	struct world *w = state;

	close_chan(w, w->a);
}

/* --- select ------------------------------------------------------------- */

static void
select_some(struct world *w, unsigned count)
{
	while (count-- > 0) {
		uint64_t values[2];
		weft_case cases[2] = { { .recv = w->a, .value = &values[0] },
			               { .recv = w->b, .value = &values[1] } };
		int which = select_two(w, cases, WEFT_NEVER);

		EXPLORE_CHECK(which >= 0 && cases[which].result == 0);
		note(w, weft__get(values[which]));
	}
}

static void
select_two_values(void *state)
{
	select_some(state, 2);
}

static void
select_to_send(void *state)
{
	struct world *w = state;
	uint64_t value;
	weft_case cases[2] = { { .send = w->a, .value = &value },
		               { .send = w->b, .value = &value } };

	weft__put(value, VALUE(0, 1));
	w->rc[0] = select_two(w, cases, WEFT_NEVER);
	EXPLORE_CHECK(w->rc[0] >= 0 && cases[w->rc[0]].result == 0);
}

static void
select_to_recv(void *state)
{
	struct world *w = state;
	uint64_t value;
	weft_case cases[2] = { { .recv = w->b, .value = &value },
		               { .recv = w->a, .value = &value } };
	int which = select_two(w, cases, WEFT_NEVER);

	EXPLORE_CHECK(which >= 0 && cases[which].result == 0);
	w->rc[1] = 1 - which;
	note(w, weft__get(value));
}

/* Sends or receives on one channel, whichever is possible first. */
static void
select_either(void *state)
{
	struct world *w = state;
	int who = explore_thread();
	uint64_t out, in;
	weft_case cases[2] = { { .send = w->a, .value = &out }, { .recv = w->a, .value = &in } };

	weft__put(out, VALUE(who, 1));
	w->rc[who] = select_two(w, cases, WEFT_NEVER);
	EXPLORE_CHECK(w->rc[who] >= 0 && cases[w->rc[who]].result == 0);
	EXPLORE_CHECK(w->rc[who] == 0 || weft__get(in) == VALUE((unsigned)(1 - who), 1));
}

/* Receives from one channel that both cases name. */
static void
select_twice_the_same(void *state)
{
	struct world *w = state;

	for (int i = 0; i < 2; i++) {
		uint64_t values[2];
		weft_case cases[2] = { { .recv = w->a, .value = &values[0] },
			               { .recv = w->a, .value = &values[1] } };
		int which = select_two(w, cases, WEFT_NEVER);

		EXPLORE_CHECK(which >= 0 && cases[which].result == 0);
		note(w, weft__get(values[which]));
	}
}

static void
select_soon(void *state)
{
	struct world *w = state;
	uint64_t values[2];
	weft_case cases[2] = { { .recv = w->a, .value = &values[0] },
		               { .recv = w->b, .value = &values[1] } };
	int which = select_two(w, cases, SOON);

	w->rc[0] = which < 0 ? which : 0;
	EXPLORE_CHECK(
		which == WEFT_ETIMEDOUT
		|| (which == 0 && cases[0].result == 0 && weft__get(values[0]) == VALUE(0, 1)));
}

/* --- checks ------------------------------------------------------------- */

static void
check_nothing_left(void *state)
{
	struct world *w = state;
	uint64_t value;

	EXPLORE_CHECK(weft_chan_recv(w->a, &value, WEFT_NOWAIT) < 0);
	EXPLORE_CHECK(weft_chan_recv(w->b, &value, WEFT_NOWAIT) < 0);
	EXPLORE_CHECK(!w->a->senders.first && !w->a->receivers.first);
	give_up(w);
}

/* What was sent before the channel was closed can still be received. */
static void
check_sent(void *state)
{
	struct world *w = state;

	recv_rest(w, WEFT_NOWAIT);
	EXPLORE_CHECK(w->rc[1] == WEFT_ECLOSED && w->last[0] == w->done[0]);
	check_nothing_left(w);
}

/* Sender and receiver agree: both succeeded, or both timed out. */
static void
check_agreed(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->rc[0] == 0 || w->rc[0] == WEFT_ETIMEDOUT);
	EXPLORE_CHECK(w->rc[0] == w->rc[1]);
	check_nothing_left(w);
}

static void
check_both_got(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->got[1] + w->got[2] == 3 && w->got[1] != w->got[2]);
	check_nothing_left(w);
}

static void
check_same_channel(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->rc[0] == w->rc[1]);
	check_nothing_left(w);
}

static void
check_one_each(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->rc[0] + w->rc[1] == 1);
	check_nothing_left(w);
}

static void
check_gone(void *state)
{
	struct world *w = state;

	weft_chan_unref(w->b);
}

static void
setup_two_refs(void *state)
{
	struct world *w = state;

	setup_1(w);
	weft_chan_ref(w->a);
}

/* --- the models --------------------------------------------------------- */

#define TWO(name_, setup_, one_, other_, check_, ...) \
	MODEL(name_, setup_, .threads = 2, .thread = { one_, other_ }, .check = check_, __VA_ARGS__)
#define THREE(name_, setup_, one_, other_, third_, check_, bound_)                              \
	MODEL(name_, setup_, .threads = 3, .thread = { one_, other_, third_ }, .check = check_, \
	      .preemptions = bound_)

enum { LAST, HANDS, SOONER, CLOSED_UPON, SELECTS, PLACE };

static const struct explore_model models[] = {
	[LAST] = TWO("the last who lets go gives the memory back", setup_two_refs, send_and_unref,
	             recv_and_unref, check_gone, .spurious = 0),
	[HANDS] = TWO("a value goes from hand to hand", setup_0, send_two, recv_two,
	              check_nothing_left, .spurious = 1),
	[SOONER] = TWO("a receiver with a deadline has the value or has not", setup_0, recv_soon,
	               send_soon, check_agreed, .timeouts = true),
	[CLOSED_UPON] = THREE("closing ends all who receive", setup_0, recv_nothing, recv_nothing,
	                      close_a, check_nothing_left, 2),
	[SELECTS] = TWO("a select takes what comes in either channel", setup_0, select_two_values,
	                send_to_both, check_nothing_left, .preemptions = 3),
	[PLACE] = TWO("values pass a channel with one place in order", setup_1, send_two, recv_two,
	              check_nothing_left, .spurious = 1),
	THREE("two send to one, hand to hand", setup_0, send_one, send_other, recv_two,
	      check_nothing_left, 2),
	THREE("two send to one by one place", setup_1, send_one, send_other, recv_two,
	      check_nothing_left, 2),
	THREE("two receive from one", setup_0, send_two, recv_either, recv_either, check_both_got,
	      2),
	TWO("what was sent as the channel closes can be received", setup_1, send_until_closed,
	    close_a, check_sent, .spurious = 1),
	TWO("a receiver gets the rest, and then the end", setup_1, recv_until_closed,
	    send_and_close, check_sent, .preemptions = 3),
	TWO("a wait that has ended is in no queue", setup_0, recv_soon, send_now_twice,
	    check_agreed, .timeouts = true),
	THREE("a select takes from two senders", setup_0, select_two_values, send_to_a, send_to_b,
	      check_nothing_left, 1),
	TWO("two selects that meet agree on a channel", setup_0, select_to_send, select_to_recv,
	    check_same_channel, .spurious = 1),
	TWO("two selects that would send or receive do one each", setup_0, select_either,
	    select_either, check_one_each, .spurious = 1),
	TWO("a select that names a channel twice gets each value once", setup_0,
	    select_twice_the_same, send_two, check_nothing_left, .preemptions = 3),
	TWO("a select with a deadline has the value or has not", setup_0, select_soon, send_soon,
	    check_agreed, .timeouts = true),
};

static const struct plant plants[] = {
	{ NO_CLAIM, &models[SOONER], 0, "ends a wait without claiming it" },
	{ NO_DROP, &models[SOONER], 0, "leaves a wait that has ended queued" },
	{ LATE_PUSH, &models[HANDS], 0, "looks, leaves the waitable, and queues" },
	{ LATE_SLEEP, &models[HANDS], 0, "sleeps without minding that it was woken" },
	{ EARLY_WAKE, &models[HANDS], 0, "wakes, and then copies the value" },
	{ NO_UNPARK, &models[HANDS], 0, "tells a waiter, and does not wake it" },
	{ LATE_READ, &models[CLOSED_UPON], 0, "reads what comes after one it woke" },
	{ NO_CHECK, &models[LAST], 0, "puts a value where it is, while one waits for it" },
	{ EARLY_COUNT, &models[PLACE], 0, "counts a value in, and then puts it there" },
	{ ONE_WAITABLE, &models[SELECTS], 0, "selects waitable by waitable" },
};

static const struct model_set chan_models = {
	.models = models,
	.plants = plants,
	.model_count = COUNT(models),
	.plant_count = COUNT(plants),
};

int
main(int argc, char **argv)
{
	static const struct model_set *const sets[] = { &chan_models, &lock_models };

	(void)argv;
	return models_run(sets, COUNT(sets), argc);
}
