/* promise_await_test.c - waiting for a promise, on threadlets and plain threads.
 *
 * Tests in which several threads settle and wait at once are in promise_thread_test.c.
 */
#include <sched.h>
#include "unit/promise/promised.h"

static weft_promise *p;
static struct token token;
static int results[4];
static weft_threadlet ids[4];

/* --- settled promises ------------------------------------------------------- */

static void
settle_in_each_way(weft_loop *loop, weft_promise *promises[4])
{
	for (int i = 0; i < 4; i++)
		promises[i] = weft_promise_new(loop);
	OK(weft_promise_resolve(promises[0], alone(&token, 5)));
	(void)weft_fail(WEFT_EPROTO, "its own text");
	OK(weft_promise_reject(promises[1], weft_value_error(WEFT_EPROTO)));
	(void)weft_fail(WEFT_EPERM, "of another");
	OK(weft_promise_reject(promises[2], weft_value_text("a sentence")));
	OK(weft_promise_reject(promises[3], integer(9)));
}

static void
check_each_way(weft_promise *promises[4], uint64_t deadline_ns)
{
	weft_value value = integer(77);

	CHECK_EQ(weft_await(promises[1], &value, deadline_ns), WEFT_EPROTO);
	CHECK_STR(weft_detail(), "its own text");
	CHECK_EQ(weft_await(promises[2], &value, deadline_ns), WEFT_EREJECTED);
	CHECK_STR(weft_detail(), "a sentence");
	CHECK_EQ(weft_await(promises[3], &value, deadline_ns), WEFT_EREJECTED);
	CHECK_STR(weft_detail(), weft_strerror(WEFT_EREJECTED));
	CHECK_EQ(number_of(&value), 77); /* written only on success */
	OK(weft_await(promises[0], &value, deadline_ns));
	CHECK_EQ(number_of(&value), 5);
	CHECK_EQ(owners(&token), 1); /* the value is borrowed */
	OK(weft_await(promises[0], NULL, deadline_ns));
}

static int
look_on_threadlet(void *arg)
{
	check_each_way(arg, WEFT_NOWAIT);
	check_each_way(arg, WEFT_NEVER);
	return 0;
}

static void
look_in_callback(void *arg)
{
	check_each_way(arg, WEFT_NOWAIT);
	check_each_way(arg, WEFT_NEVER); /* there is nothing to wait for */
}

TEST(awaiting_a_settled_promise_returns_at_once_everywhere)
{
	weft_loop *loop = make();
	weft_promise *promises[4];

	settle_in_each_way(loop, promises);
	check_each_way(promises, WEFT_NOWAIT);
	check_each_way(promises, WEFT_NEVER);
	(void)go_on(loop, look_on_threadlet, promises);
	OK(weft_loop_post(loop, look_in_callback, promises));
	OK(weft_loop_run(loop));
	stop_idle(loop);
	check_each_way(promises, weft_after(HOUR)); /* also after the loop was freed */
	for (int i = 0; i < 4; i++)
		drop(promises[i]);
	CHECK_EQ(owners(&token), 0);
}

/* --- pending promises ------------------------------------------------------- */

static int
await_5(void *arg)
{
	weft_value value;

	OK(weft_await(p, &value, WEFT_NEVER));
	CHECK_EQ(number_of(&value), 5);
	note(arg);
	return 0;
}

static void
resolve_p(void *arg)
{
	OK(weft_promise_resolve(p, integer((intptr_t)arg)));
	note(MARK('r'));
}

TEST(threadlets_that_await_a_promise_resume_in_order_when_it_settles)
{
	weft_loop *loop = make();

	p = weft_promise_new(loop);
	also_note(p, 'h');
	for (int i = 0; i < 3; i++)
		(void)go_on(loop, await_5, MARK('a' + i));
	turns(loop, 3);
	CHECK_STR(trace, "");
	OK(weft_loop_post(loop, resolve_p, MARK(5)));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "rhabc"); /* microtasks run right after the callback that resolves */
	drop(p);
	stop_idle(loop);
}

static int
await_first(void *arg)
{
	weft_value value = integer(77);
	intptr_t which = (intptr_t)arg;

	results[which] = weft_await(p, &value, WEFT_NEVER);
	CHECK_EQ(number_of(&value), 77);
	return 0;
}

static void
tell_them(void *arg)
{
	(void)arg;
	OK(weft_cancel(ids[0]));
	OK(weft_interrupt(ids[1]));
}

TEST(cancellation_and_interruption_end_a_wait_and_not_the_promise)
{
	weft_loop *loop = make();

	p = weft_promise_new(loop);
	for (int i = 0; i < 3; i++)
		ids[i] = go_on(loop, await_first, MARK(i));
	ids[3] = go_on(loop, await_5, MARK('w'));
	turns(loop, 3);
	OK(weft_cancel(ids[2]));
	OK(weft_loop_post(loop, tell_them, NULL));
	turns(loop, 5);
	CHECK_EQ(results[0], WEFT_ECANCELED);
	CHECK_EQ(results[1], WEFT_EINTR);
	CHECK_EQ(results[2], WEFT_ECANCELED);
	check_pending(p);
	OK(weft_loop_post(loop, resolve_p, MARK(5)));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "rw");
	drop(p);
	stop_idle(loop);
}

static int
await_soon(void *arg)
{
	weft_value value = integer(77);

	(void)arg;
	CHECK_EQ(weft_await(p, &value, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_await(p, &value, weft_after(1)), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_await(p, &value, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(number_of(&value), 77);
	note(MARK('t'));
	return 0;
}

TEST(a_deadline_ends_a_wait_and_not_the_promise)
{
	weft_loop *loop = make();

	p = weft_promise_new(loop);
	(void)go_on(loop, await_soon, NULL);
	(void)go_on(loop, await_5, MARK('w'));
	while (!trace[0])
		(void)weft_loop_run_once(loop, weft_after(WEFT_MS));
	(void)await_soon(NULL); /* on a plain thread */
	OK(weft_promise_resolve(p, integer(5)));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "ttw");
	drop(p);
	stop_idle(loop);
}

static int
await_cancelled(void *arg)
{
	weft_value value;

	(void)arg;
	CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_ECANCELED);
	CHECK_EQ(weft_await(p, &value, WEFT_NEVER), WEFT_ECANCELED);
	OK(weft_await(p, &value, WEFT_NOWAIT)); /* this does not wait */
	CHECK_EQ(number_of(&value), 5);
	note(MARK('c'));
	return 0;
}

TEST(a_canceled_threadlet_does_not_wait_for_a_promise)
{
	weft_loop *loop = make();

	p = weft_promise_new(loop);
	OK(weft_promise_resolve(p, integer(5)));
	ids[0] = go_on(loop, await_cancelled, NULL);
	turns(loop, 3);
	OK(weft_cancel(ids[0]));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "c");
	drop(p);
	stop_idle(loop);
}

static void
await_in_callback(void *arg)
{
	(void)arg;
	CHECK_EQ(weft_await(p, NULL, WEFT_NEVER), WEFT_ENOSUSPEND);
	CHECK_EQ(weft_await(p, NULL, weft_after(HOUR)), WEFT_ENOSUSPEND);
	CHECK_EQ(weft_await(p, NULL, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	note(MARK('d'));
}

static int
await_in_handler(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	(void)out;
	await_in_callback(arg);
	return 0;
}

TEST(callbacks_and_handlers_cannot_wait_for_a_promise)
{
	weft_loop *loop = make();
	weft_promise *done = weft_promise_new(loop);

	p = weft_promise_new(loop);
	OK(weft_promise_resolve(done, integer(1)));
	drop(weft_promise_then(done, await_in_handler, NULL, NULL));
	OK(weft_loop_post(loop, await_in_callback, NULL));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "dd");
	drop(p);
	stop_idle(loop);
	CHECK_MISUSE(weft_await(NULL, NULL, WEFT_NOWAIT), WEFT_EINVAL);
}

/* --- ends ------------------------------------------------------------------- */

TEST(a_threadlet_that_awaits_is_canceled_when_its_loop_stops)
{
	weft_loop *loop = make();

	p = weft_promise_new(loop);
	ids[0] = go_on(loop, await_first, MARK(0));
	turns(loop, 3);
	stop_idle(loop);
	CHECK_EQ(results[0], WEFT_ECANCELED);
	end_rejected(p, WEFT_ESHUTDOWN);
}

static void *
await_shutdown(void *arg)
{
	weft_value value = integer(77);

	CHECK_EQ(weft_await(arg, &value, WEFT_NEVER), WEFT_ESHUTDOWN);
	CHECK_STR(weft_detail(), "weft_promise_*: the promise's loop is stopping");
	CHECK_EQ(number_of(&value), 77);
	return NULL;
}

TEST(an_await_of_a_plain_thread_ends_when_the_loop_stops)
{
	weft_loop *loop = make();
	weft_promise *promise = weft_promise_new(loop);
	pthread_t id = thread(await_shutdown, promise);

	stop_idle(loop);
	CHECK_EQ(pthread_join(id, NULL), 0);
	drop(promise);
}

static int
await_elsewhere(void *arg)
{
	CHECK(!await_shutdown(arg));
	note(MARK('e'));
	return 0;
}

TEST(an_await_of_a_threadlet_of_another_loop_ends_when_the_loop_stops)
{
	weft_loop *loop = make(), *other = make();
	weft_promise *promise = weft_promise_new(loop);

	(void)go_on(other, await_elsewhere, promise);
	turns(other, 3);
	stop_idle(loop);
	OK(weft_loop_run(other));
	CHECK_STR(trace, "e");
	drop(promise);
	stop_idle(other);
}

static int
await_chain(void *arg)
{
	weft_value value;

	(void)arg;
	OK(weft_await(p, &value, WEFT_NEVER));
	CHECK_EQ(number_of(&value), 7);
	note(MARK('c'));
	return 0;
}

TEST(threadlets_of_two_loops_wait_for_the_end_of_a_chain)
{
	weft_loop *loop = make(), *other = make();
	weft_promise *first = weft_promise_new(loop);

	p = weft_promise_then(hold(first), note_and_add, NULL, MARK('1'));
	p = weft_promise_then(p, note_and_add, NULL, MARK('2'));
	(void)go_on(loop, await_chain, NULL);
	(void)go_on(other, await_chain, NULL);
	turns(loop, 2);
	turns(other, 2);
	OK(weft_promise_resolve(first, integer(5)));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "12c");
	OK(weft_loop_run(other));
	CHECK_STR(trace, "12cc");
	drop(first);
	drop(p);
	stop_idle(loop);
	stop_idle(other);
}

/* Each waiting threadlet holds a reference, so the value stays when others drop theirs. */
static int
await_and_drop(void *arg)
{
	weft_value value;

	OK(weft_await(arg, &value, WEFT_NEVER));
	CHECK_EQ(owners(&token), 1);
	note(MARK('0' + number_of(&value)));
	drop(arg);
	return 0;
}

TEST(the_value_of_a_promise_is_dropped_with_its_last_reference)
{
	weft_loop *loop = make();

	p = weft_promise_new(loop);
	for (int i = 0; i < 3; i++)
		(void)go_on(loop, await_and_drop, hold(p));
	turns(loop, 2);
	OK(weft_promise_resolve(p, alone(&token, 6)));
	drop(p);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "666");
	CHECK_EQ(owners(&token), 0);
	stop_idle(loop);
}
