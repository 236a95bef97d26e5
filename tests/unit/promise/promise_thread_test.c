/* promise_thread_test.c - promises between threads and loops: races.
 *
 * Two threads meet in rounds.  A round is prepared, both threads do their part at the same
 * time, and then the result is checked.  Whatever the order, each promise settles once, each
 * handler is called once, and each value is dropped once.
 */
#include <sched.h>
#include "base/os.h"
#include "unit/promise/promised.h"

#define ROUNDS (TEST_TSAN ? 150 : 300)

static weft_loop *loop_a, *loop_b;
static weft_promise *p, *q, *end;
static struct token tokens[2], other;
static weft__a32 handled, errors;
static int results[2];
static int now; /* the number of the round */

/* --- rounds --------------------------------------------------------------- */

static pthread_barrier_t barrier;
static weft_fn parts[2];
static bool over;

static void
meet(void)
{
	int rc = pthread_barrier_wait(&barrier);

	CHECK(rc == 0 || rc == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void *
do_part(void *arg)
{
	intptr_t who = (intptr_t)arg;

	for (;;) {
		meet();
		if (over)
			return NULL;
		/* Delay one of the two threads, in each round the other one. */
		for (int i = now % 7 * (now % 2 == who) * 40; i > 0; i--)
			weft__pause();
		parts[who](MARK(who));
		meet();
	}
}

/* Run rounds of two concurrent parts.  Each begins with `prepare` and ends with `check`. */
static void
rounds(void (*prepare)(void), weft_fn one, weft_fn two, void (*check)(void))
{
	pthread_t ids[2];

	over = false;
	parts[0] = one;
	parts[1] = two;
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, 3), 0);
	for (int i = 0; i < 2; i++)
		ids[i] = thread(do_part, MARK(i));
	for (now = 0; now < ROUNDS; now++) {
		weft__store(&handled, 0, WEFT__RELAXED);
		weft__store(&errors, 0, WEFT__RELAXED);
		results[0] = results[1] = 77;
		prepare();
		meet();
		meet();
		check();
		CHECK_EQ(owners(&tokens[0]) + owners(&tokens[1]) + owners(&other), 0);
	}
	over = true;
	meet();
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(ids[i], NULL), 0);
	CHECK_EQ(pthread_barrier_destroy(&barrier), 0);
}

static void
rounds_on_loops(void (*prepare)(void), weft_fn one, weft_fn two, void (*check)(void))
{
	loop_a = make_started();
	loop_b = make_started();
	rounds(prepare, one, two, check);
	stop_and_free(loop_a);
	stop_and_free(loop_b);
}

/* --- handlers that count ---------------------------------------------------- */

static int
count_value(const weft_value *in, weft_value *out, void *arg)
{
	(void)arg;
	(void)weft__add(&handled, 1, WEFT__RELAXED);
	*out = integer(number_of(in));
	return 0;
}

static int
count_error(const weft_value *in, weft_value *out, void *arg)
{
	(void)weft__add(&errors, 1, WEFT__RELAXED);
	return count_value(in, out, arg);
}

static weft_promise *
then_count(weft_promise *promise)
{
	return weft_promise_then(promise, count_value, count_error, NULL);
}

static void
check_counts(uint32_t count, uint32_t with_error)
{
	CHECK_EQ(weft__load(&handled, WEFT__ACQUIRE), count);
	CHECK_EQ(weft__load(&errors, WEFT__ACQUIRE), with_error);
}

/* Wait for the end of the chain, and drop it.  Returns its number. */
static int64_t
finish(weft_promise *promise)
{
	weft_value value = { 0 };
	int64_t number;

	OK(weft_await(promise, &value, WEFT_NEVER));
	number = number_of(&value);
	drop(promise);
	return number;
}

/* flush() waits until the loop has run everything that was posted before. */
static void
note_flush(void *arg)
{
	weft__store((weft__a32 *)arg, 1, WEFT__RELEASE);
}

static void
flush(weft_loop *loop)
{
	weft__a32 done;

	weft__store(&done, 0, WEFT__RELAXED);
	OK(weft_loop_post(loop, note_flush, &done));
	while (!weft__load(&done, WEFT__ACQUIRE))
		sched_yield();
}

/* --- settle against settle ---------------------------------------------------- */

static void
make_p(void)
{
	p = weft_promise_new(loop_a);
	end = then_count(then_count(hold(p)));
}

static void
settle_p(void *arg)
{
	intptr_t who = (intptr_t)arg;
	weft_value value = alone(&tokens[who], 10 + (int)who);

	results[who] = (now + who) % 3 ? weft_promise_resolve(p, value)
	                               : weft_promise_reject(p, value);
}

static void
check_one_won(void)
{
	int winner = results[0] == 0 ? 0 : 1;

	CHECK_EQ(results[winner], 0);
	CHECK_EQ(results[1 - winner], WEFT_EALREADY);
	CHECK_EQ(finish(end), 10 + winner);
	CHECK_EQ(weft__load(&handled, WEFT__ACQUIRE), 2);
	drop(p);
	flush(loop_a);
}

TEST(only_one_of_two_threads_that_settle_a_promise_wins)
{
	rounds_on_loops(make_p, settle_p, settle_p, check_one_won);
}

/* One thread resolves with a promise of the other loop. */
static void
make_p_and_q(void)
{
	q = weft_promise_new(loop_b);
	make_p();
}

static void
follow_q(void *arg)
{
	(void)arg;
	results[0] = weft_promise_resolve(p, weft_value_promise(hold(q)));
}

static void
settle_q(void *arg)
{
	(void)arg;
	results[1] = weft_promise_resolve(q, alone(&tokens[1], 11));
}

static void
check_both_settled(void)
{
	CHECK_EQ(results[0], 0);
	CHECK_EQ(results[1], 0);
	CHECK_EQ(finish(end), 11);
	check_counts(2, 0);
	drop(p);
	drop(q);
	flush(loop_b);
	flush(loop_a);
}

TEST(a_promise_may_follow_one_of_another_loop_while_that_settles)
{
	rounds_on_loops(make_p_and_q, follow_q, settle_q, check_both_settled);
}

/* --- settle against await ------------------------------------------------------ */

static void
await_p(void *arg)
{
	weft_value value = integer(77);
	uint64_t deadline_ns = now % 3 == 0   ? WEFT_NEVER
	                       : now % 3 == 1 ? weft_after(now * 10u)
	                                      : WEFT_NOWAIT;

	(void)arg;
	results[0] = weft_await(p, &value, deadline_ns);
	if (results[0] == 0)
		CHECK_EQ(number_of(&value), 11);
	else
		CHECK(results[0] == WEFT_ETIMEDOUT && deadline_ns != WEFT_NEVER);
}

static void
resolve_p(void *arg)
{
	intptr_t who = (intptr_t)arg;

	results[who] = weft_promise_resolve(p, alone(&tokens[who], 10 + (int)who));
}

static void
check_awaited(void)
{
	CHECK_EQ(results[1], 0);
	CHECK_EQ(finish(end), 11);
	drop(p);
	flush(loop_a);
}

TEST(an_await_concurrent_with_a_resolve_gets_the_value_or_times_out)
{
	rounds_on_loops(make_p, await_p, resolve_p, check_awaited);
}

/* A threadlet of the other loop awaits.  It is canceled while the promise settles. */
static weft_threadlet waiter;
static weft__a32 waited;

static int
await_on_b(void *arg)
{
	weft_value value = integer(77);
	uint64_t deadline_ns = now % 4 ? WEFT_NEVER : weft_after(now * 10u);

	(void)arg;
	results[0] = weft_await(p, &value, deadline_ns);
	CHECK(results[0] == 0 ? number_of(&value) == 11
	                      : results[0] == WEFT_ECANCELED || results[0] == WEFT_ETIMEDOUT);
	drop(p);
	weft__store(&waited, 1, WEFT__RELEASE);
	return 0;
}

static void
make_p_with_waiter(void)
{
	weft__store(&waited, 0, WEFT__RELAXED);
	make_p();
	(void)hold(p);
	waiter = go_on(loop_b, await_on_b, NULL);
	if (now % 2)
		flush(loop_b);
}

static void
cancel_waiter(void *arg)
{
	(void)arg;
	(void)weft_cancel(waiter);
}

static void
check_waited(void)
{
	CHECK_EQ(results[1], 0);
	CHECK_EQ(finish(end), 11);
	while (!weft__load(&waited, WEFT__ACQUIRE))
		sched_yield();
	drop(p);
	flush(loop_b);
	flush(loop_a);
}

TEST(an_await_on_another_loop_gets_the_value_or_is_canceled)
{
	rounds_on_loops(make_p_with_waiter, cancel_waiter, resolve_p, check_waited);
}

/* --- settle against stop ------------------------------------------------------- */

static void
make_p_on_new_loop(void)
{
	loop_a = make_started();
	make_p();
}

static void
stop_a(void *arg)
{
	(void)arg;
	weft_loop_shutdown(loop_a);
}

static void
check_stopped(void)
{
	OK(weft_loop_wait_stopped(loop_a, WEFT_NEVER));
	CHECK(results[1] == 0 || results[1] == WEFT_EALREADY);
	CHECK_EQ(weft__load(&handled, WEFT__ACQUIRE), 2);
	if (results[1] == 0)
		check_fulfilled(p, 11);
	else
		check_rejected(p, WEFT_ESHUTDOWN);
	CHECK(weft_promise_state(end, NULL) != WEFT_PENDING);
	OK(weft_loop_free(loop_a));
	drop(p);
	drop(end);
}

TEST(a_resolve_concurrent_with_the_loop_stop_wins_or_is_too_late)
{
	rounds(make_p_on_new_loop, stop_a, resolve_p, check_stopped);
}

static void
drop_p(void *arg)
{
	(void)arg;
	drop(p);
}

static void
check_stopped_and_dropped(void)
{
	OK(weft_loop_wait_stopped(loop_a, WEFT_NEVER));
	CHECK_EQ(weft__load(&handled, WEFT__ACQUIRE), 2);
	CHECK(weft_promise_state(end, NULL) != WEFT_PENDING);
	OK(weft_loop_free(loop_a));
	drop(end);
}

TEST(the_last_reference_may_be_dropped_while_the_loop_stops)
{
	rounds(make_p_on_new_loop, stop_a, drop_p, check_stopped_and_dropped);
}

static void
make_bare_p_on_new_loop(void)
{
	loop_a = make_started();
	p = weft_promise_new(loop_a);
}

static void
check_freed(void)
{
	OK(weft_loop_wait_stopped(loop_a, WEFT_NEVER));
	OK(weft_loop_free(loop_a));
}

TEST(a_promise_without_handlers_may_be_dropped_while_the_loop_stops)
{
	rounds(make_bare_p_on_new_loop, stop_a, drop_p, check_freed);
}

/* New promises, chains and thenables.  In every other round they are the first on the loop. */
static int
settle_at_once(void *ptr, weft_promise *into)
{
	struct token *token = ptr;

	return weft_promise_resolve(into, integer(token->number));
}

static const weft_type type_thenable = { .name = "thenable",
	                                 .drop = drop_token,
	                                 .then = settle_at_once };

static void
make_new_loop(void)
{
	loop_a = make_started();
	p = now % 2 ? weft_promise_new(loop_a) : NULL;
}

static void
use_much(void *arg)
{
	weft_promise *fresh = weft_promise_new(loop_a), *chained;

	(void)arg;
	CHECK(fresh != NULL);
	chained = then_count(hold(fresh));
	results[1] = weft_promise_resolve(fresh, make_value(&type_thenable, &other, 5));
	CHECK(results[1] == 0 || results[1] == WEFT_EALREADY);
	drop(fresh);
	end = chained ? then_count(chained) : NULL;
}

static void
check_all_ended(void)
{
	OK(weft_loop_wait_stopped(loop_a, WEFT_NEVER));
	CHECK(weft__load(&handled, WEFT__ACQUIRE) <= 2);
	if (end)
		CHECK(weft_promise_state(end, NULL) != WEFT_PENDING);
	drop(end);
	drop(p);
	OK(weft_loop_free(loop_a));
}

TEST(promises_may_be_created_and_chained_while_the_loop_stops)
{
	rounds(make_new_loop, stop_a, use_much, check_all_ended);
}

/* --- chained from other threads -------------------------------------------------- */

#define CHAINED 24

static weft__a32 order;
static uint32_t places[2][CHAINED];
static weft_promise *ends[2][CHAINED];

static int
note_place(const weft_value *in, weft_value *out, void *arg)
{
	(void)out;
	CHECK_EQ(number_of(in), 10);
	*(uint32_t *)arg = weft__add(&order, 1, WEFT__RELAXED) + 1;
	return 0;
}

static void
chain_one(intptr_t who, int i)
{
	ends[who][i] = weft_promise_then(hold(p), note_place, NULL, &places[who][i]);
	CHECK(ends[who][i] != NULL);
}

static void
make_p_to_chain(void)
{
	memset(places, 0, sizeof(places));
	weft__store(&order, 0, WEFT__RELAXED);
	p = weft_promise_new(loop_a);
}

/* The first thread also settles the promise on the way. */
static void
chain_many(void *arg)
{
	intptr_t who = (intptr_t)arg;

	for (int i = 0; i < CHAINED; i++) {
		if (who == 0 && i == now % CHAINED)
			resolve_p(arg);
		chain_one(who, i);
	}
}

static void
check_order(void)
{
	for (int who = 0; who < 2; who++)
		for (int i = 0; i < CHAINED; i++) {
			OK(weft_await(ends[who][i], NULL, WEFT_NEVER));
			CHECK(places[who][i] > (i ? places[who][i - 1] : 0));
			drop(ends[who][i]);
		}
	CHECK_EQ(weft__load(&order, WEFT__RELAXED), 2 * CHAINED);
	drop(p);
	flush(loop_a);
}

TEST(handlers_added_by_threads_run_once_in_the_order_of_each_thread)
{
	rounds_on_loops(make_p_to_chain, chain_many, chain_many, check_order);
}

/* --- the last reference ------------------------------------------------------------ */

static void
make_p_twice_held(void)
{
	make_p();
	(void)hold(p);
}

static void
check_broken(void)
{
	CHECK_EQ(finish(end), WEFT_ECLOSED);
	check_counts(2, 1);
	flush(loop_a);
}

TEST(a_pending_promise_is_rejected_when_both_threads_have_dropped_it)
{
	rounds_on_loops(make_p_twice_held, drop_p, drop_p, check_broken);
}

static void
settle_and_drop(void *arg)
{
	resolve_p(arg);
	drop(p);
}

static void
check_settled_and_dropped(void)
{
	OK(results[1]);
	CHECK_EQ(finish(end), 11);
	check_counts(2, 0);
	flush(loop_a);
}

TEST(one_thread_may_drop_a_promise_while_another_settles_it)
{
	rounds_on_loops(make_p_twice_held, drop_p, settle_and_drop, check_settled_and_dropped);
}

/* The promise is created on the loop's thread. */
static void
make_p_here(void *arg)
{
	make_p_twice_held();
	weft__store((weft__a32 *)arg, 1, WEFT__RELEASE);
}

static void
make_on_a(weft_fn fn)
{
	weft__a32 made;

	weft__store(&made, 0, WEFT__RELAXED);
	OK(weft_loop_post(loop_a, fn, &made));
	while (!weft__load(&made, WEFT__ACQUIRE))
		sched_yield();
}

static void
make_p_on_a(void)
{
	make_on_a(make_p_here);
}

static void
drop_p_on_a(void *arg)
{
	OK(weft_loop_post(loop_a, drop_p, arg));
}

TEST(a_loop_and_a_thread_may_drop_a_promise_of_the_loop_at_once)
{
	rounds_on_loops(make_p_on_a, drop_p, drop_p_on_a, check_broken);
}

/* --- handled by another thread than the one that reported ------------------------ */

static weft__a32 reported;

/* Relaxed: only the library must order what the two threads do. */
static void
on_report(void *arg, const weft_report *report)
{
	(void)arg;
	if (report->kind == WEFT_REPORT_UNHANDLED)
		weft__store(&reported, 1, WEFT__RELAXED);
}

static void
make_p_alone_here(void *arg)
{
	p = hold(weft_promise_new(loop_a));
	weft__store((weft__a32 *)arg, 1, WEFT__RELEASE);
}

static void
make_p_unreported(void)
{
	weft__store(&reported, 0, WEFT__RELAXED);
	make_on_a(make_p_alone_here);
}

static void
reject_p_and_drop(void *arg)
{
	(void)arg;
	OK(weft_promise_reject(p, weft_value_error(WEFT_EPROTO)));
	drop(p);
}

static void
reject_p_on_a(void *arg)
{
	OK(weft_loop_post(loop_a, reject_p_and_drop, arg));
}

static void
handle_p_when_reported(void *arg)
{
	(void)arg;
	while (!weft__load(&reported, WEFT__RELAXED))
		sched_yield();
	end = then_count(p);
}

static void
check_handled(void)
{
	(void)finish(end);
	check_counts(1, 1);
}

TEST(a_rejection_reported_by_the_loop_may_be_handled_by_another_thread)
{
	weft__hooks.on_report = on_report;
	rounds_on_loops(make_p_unreported, reject_p_on_a, handle_p_when_reported, check_handled);
	weft__hooks.on_report = NULL;
}

/* --- combinations of two loops -------------------------------------------------- */

static weft_promise *(*combine)(weft_promise *const *promises, size_t count);

/* Only the two parts and the combined promise hold the promises. */
static void
make_both(void)
{
	weft_promise *both[2];

	p = both[0] = weft_promise_new(loop_a);
	q = both[1] = weft_promise_new(loop_b);
	(void)hold(p);
	(void)hold(q);
	end = combine(both, 2);
	CHECK(end != NULL);
}

static void
settle_mine(void *arg)
{
	intptr_t who = (intptr_t)arg;
	weft_promise *mine = who ? q : p;

	OK(weft_promise_resolve(mine, alone(&tokens[who], 10 + (int)who)));
	drop(mine);
}

static void
check_both_in_list(void)
{
	weft_value value = { 0 };
	const weft_list *list;

	OK(weft_await(end, &value, WEFT_NEVER));
	CHECK(value.type == &weft_type_list);
	list = value.as.ptr;
	CHECK_EQ(list->count, 2);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(number_of(&list->items[i]), 10 + i);
	drop(end);
	flush(loop_b);
	flush(loop_a);
}

/* Each part runs on the loop of its promise, so the promise is dropped before the value moves
 * on. */
static void
settle_mine_there(void *arg)
{
	OK(weft_loop_post(arg ? loop_b : loop_a, settle_mine, arg));
}

TEST(all_of_two_loops_moves_unshareable_values_into_its_list)
{
	combine = weft_promise_all;
	rounds_on_loops(make_both, settle_mine_there, settle_mine_there, check_both_in_list);
}

static void
check_either(void)
{
	weft_value value = { 0 };

	OK(weft_await(end, &value, WEFT_NEVER));
	CHECK(number_of(&value) == 10 || number_of(&value) == 11);
	flush(loop_b);
	flush(loop_a);
	drop(end);
	flush(loop_a);
}

TEST(a_race_of_two_loops_has_one_winner)
{
	combine = weft_promise_race;
	rounds_on_loops(make_both, settle_mine, settle_mine, check_either);
}

TEST(any_of_two_loops_has_one_value)
{
	combine = weft_promise_any;
	rounds_on_loops(make_both, settle_mine, settle_mine, check_either);
}

/* One of the loops stops meanwhile. */
static void
make_both_on_new_loops(void)
{
	loop_a = make_started();
	loop_b = make_started();
	make_both();
	q = weft_promise_unref(q);
}

static void
check_one_loop_stopped(void)
{
	int rc = weft_await(end, NULL, WEFT_NEVER);

	CHECK(rc == WEFT_ECLOSED || rc == WEFT_ESHUTDOWN);
	drop(end);
	stop_and_free(loop_a);
	stop_and_free(loop_b);
}

TEST(one_of_two_loops_may_stop_while_all_is_pending)
{
	combine = weft_promise_all;
	rounds(make_both_on_new_loops, stop_a, drop_p, check_one_loop_stopped);
}
