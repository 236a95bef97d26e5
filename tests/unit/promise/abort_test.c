/* abort_test.c - abort signals: they fire once, for listeners, scopes and promises. */
#include <pthread.h>
#include <sched.h>
#include "promise/promise.h"
#include "unit/threadlet/sched.h"

static weft_value
none(void)
{
	return (weft_value){ 0 };
}

static weft_node
listener(char mark)
{
	return (weft_node){ .fn = note, .arg = MARK(mark) };
}

TEST(listeners_are_called_once_in_order_after_the_call_that_fires)
{
	weft_loop *loop = make();
	weft_abort *abort = weft_abort_new(loop);
	weft_node a = listener('a'), b = listener('b'), c = listener('c');

	OK(weft__abort_push(abort, &a));
	OK(weft__abort_push(abort, &b));
	OK(weft__abort_push(abort, &c));
	weft__abort_drop(abort, &b);
	OK(weft_abort_check(abort, NULL));
	OK(weft_abort_fire(abort, none()));
	CHECK_EQ(weft_abort_fire(abort, none()), WEFT_EALREADY);
	CHECK_EQ(weft_abort_check(abort, NULL), WEFT_ECANCELED);
	CHECK_STR(trace, "");
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "ac");
	OK(weft__abort_push(abort, &b));
	OK(weft__abort_push(abort, &a)); /* can still be dropped after the signal fired */
	weft__abort_drop(abort, &a);
	CHECK_STR(trace, "ac");
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "acb");
	CHECK(weft_abort_ref(abort) == abort);
	CHECK(!weft_abort_unref(abort));
	CHECK(!weft_abort_unref(abort));
	stop_idle(loop);
}

TEST(a_signal_has_its_reason_and_text)
{
	weft_loop *loop = make();
	weft_abort *abort = weft_abort_new(loop);
	weft_value reason;

	OK(weft_abort_fire(abort, weft_value_text("enough")));
	CHECK_EQ(weft_abort_check(abort, &reason), WEFT_ECANCELED);
	CHECK(reason.type == &weft_type_text);
	CHECK_STR((const char *)reason.as.ptr, "enough");
	CHECK_STR(weft_detail(), "enough");
	(void)weft_abort_unref(abort);
	abort = weft_abort_new(loop);
	(void)weft_fail(WEFT_EPERM, "not you");
	OK(weft_abort_fire(abort, weft_value_error(WEFT_EPERM)));
	(void)weft_fail(WEFT_EINVAL, "something else");
	CHECK_EQ(weft_abort_check(abort, NULL), WEFT_EPERM);
	CHECK_STR(weft_detail(), "not you");
	(void)weft_abort_unref(abort);
	OK(weft_loop_run(loop));
	stop_idle(loop);
}

TEST(a_signal_that_can_no_longer_be_fired_drops_its_listeners)
{
	weft_loop *loop = make();
	weft_abort *abort = weft_abort_new(loop);
	weft_node a = listener('a');

	OK(weft__abort_push(abort, &a));
	(void)weft_abort_unref(abort);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "");
	stop_idle(loop);
}

TEST(signals_fire_when_the_loop_stops)
{
	weft_loop *loop = make();
	weft_abort *abort = weft_abort_new(loop);
	weft_node a = listener('a');

	OK(weft__abort_push(abort, &a));
	stop_idle(loop);
	CHECK_STR(trace, "a");
	CHECK_EQ(weft_abort_check(abort, NULL), WEFT_ESHUTDOWN);
	(void)weft_abort_unref(abort);
}

TEST(a_timeout_signal_fires_at_its_time_or_is_dropped_with_its_timer)
{
	weft_loop *loop = make();
	weft_abort *soon = weft_abort_new_timeout(loop, weft_after(WEFT_MS));
	weft_abort *late = weft_abort_new_timeout(loop, weft_after(HOUR));
	weft_abort *never = weft_abort_new_timeout(loop, WEFT_NEVER);

	OK(weft_loop_run(loop)); /* timeout signals do not keep the loop alive */
	while (weft_abort_check(soon, NULL) == 0)
		(void)weft_loop_run_once(loop, weft_after(WEFT_MS));
	CHECK_EQ(weft_abort_check(soon, NULL), WEFT_ETIMEDOUT);
	OK(weft_abort_check(late, NULL));
	OK(weft_abort_check(never, NULL));
	(void)weft_abort_unref(soon);
	OK(weft_abort_fire(late, none())); /* before its time */
	OK(weft_loop_run(loop));
	(void)weft_abort_unref(late);
	(void)weft_abort_unref(never);
	late = weft_abort_new_timeout(loop, weft_after(HOUR));
	(void)weft_abort_unref(late);
	stop_idle(loop);
}

TEST(a_combined_signal_fires_with_the_first_of_its_sources)
{
	weft_loop *loop = make();
	const weft_abort *sources[3];
	weft_abort *any;

	for (int i = 0; i < 3; i++)
		sources[i] = weft_abort_new(loop);
	any = weft_abort_new_any(loop, sources, 3);
	OK(weft_abort_fire((weft_abort *)(uintptr_t)sources[1], weft_value_text("b")));
	OK(weft_abort_fire((weft_abort *)(uintptr_t)sources[0], weft_value_text("a")));
	OK(weft_loop_run(loop));
	CHECK_EQ(weft_abort_check(any, NULL), WEFT_ECANCELED);
	CHECK_STR(weft_detail(), "b");
	(void)weft_abort_unref(any);
	any = weft_abort_new_any(loop, sources, 3); /* two sources have already fired */
	CHECK_EQ(weft_abort_check(any, NULL), WEFT_ECANCELED);
	(void)weft_abort_unref(any);
	any = weft_abort_new_any(loop, sources + 2, 1); /* dropped before its source fires */
	(void)weft_abort_unref(any);
	for (int i = 0; i < 3; i++)
		(void)weft_abort_unref(sources[i]);
	OK(weft_loop_run(loop));
	stop_idle(loop);
}

/* --- scopes --------------------------------------------------------------- */

struct play {
	weft_abort *abort;
	int result, closed;
};

static int
sleep_in_scope(void *arg)
{
	struct play *play = arg;
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	OK(weft_abort_scope(play->abort, &scope));
	play->result = weft_sleep_until(weft_after(HOUR));
	CHECK_EQ(weft_sleep_until(weft_after(HOUR)), play->result);
	play->closed = weft_scope_close(&scope);
	OK(weft_yield()); /* outside the scope nothing is canceled */
	return 0;
}

static int
fire_soon(void *arg)
{
	struct play *play = arg;

	OK(weft_yield());
	return weft_abort_fire(play->abort, weft_value_error(WEFT_EPERM));
}

TEST(a_signal_cancels_the_calls_inside_its_scope)
{
	weft_loop *loop = make();
	struct play play = { .abort = weft_abort_new(loop) };

	(void)go_on(loop, sleep_in_scope, &play);
	(void)go_on(loop, fire_soon, &play);
	OK(weft_loop_run(loop));
	CHECK_EQ(play.result, WEFT_EPERM);
	OK(play.closed);
	play.result = 0;
	(void)go_on(loop, sleep_in_scope, &play); /* the signal has already fired */
	OK(weft_loop_run(loop));
	CHECK_EQ(play.result, WEFT_EPERM);
	(void)weft_abort_unref(play.abort);
	stop_idle(loop);
}

static int
leave_scope(void *arg)
{
	struct play *play = arg;
	weft_scope scope;

	for (int i = 0; i < 100; i++) {
		OK(weft_scope_open(&scope, 0, WEFT_NEVER));
		OK(weft_abort_scope(play->abort, &scope));
		if (i == 0)
			CHECK_MISUSE(weft_abort_scope(play->abort, &scope), WEFT_EBUSY);
		OK(weft_yield());
		OK(weft_scope_close(&scope));
	}
	return 0;
}

TEST(a_closed_scope_is_not_canceled_by_its_signal)
{
	weft_loop *loop = make();
	struct play play = { .abort = weft_abort_new(loop) };

	(void)go_on(loop, leave_scope, &play);
	OK(weft_loop_run(loop));
	OK(weft_abort_fire(play.abort, none()));
	OK(weft_loop_run(loop));
	(void)weft_abort_unref(play.abort);
	stop_idle(loop);
}

TEST(a_signal_cancels_scopes_on_other_loops)
{
	weft_loop *loop = make_started(), *other = make();
	struct play play = { .abort = weft_abort_new(loop) };

	(void)go_on(other, sleep_in_scope, &play);
	(void)weft_loop_run_once(other, WEFT_NOWAIT);
	OK(weft_abort_fire(play.abort, none())); /* from a thread that runs neither loop */
	OK(weft_loop_run(other));
	CHECK_EQ(play.result, WEFT_ECANCELED);
	(void)go_on(other, leave_scope, &play);
	(void)weft_abort_unref(play.abort);
	play.abort = weft_abort_new(loop);
	OK(weft_loop_run(other));
	(void)weft_abort_unref(play.abort);
	stop_idle(other);
	stop_and_free(loop);
}

/* --- promises ------------------------------------------------------------- */

static int
guard_promises(void *arg)
{
	struct play *play = arg;
	weft_promise *held[4], *guarded[4];
	weft_value value;

	for (int i = 0; i < 4; i++) {
		held[i] = weft_promise_new(NULL);
		guarded[i] = weft_abort_promise(play->abort, weft_promise_ref(held[i]));
	}
	OK(weft_promise_resolve(held[0], weft_value_integer(7)));
	OK(weft_promise_reject(held[1], weft_value_error(WEFT_EPERM)));
	OK(weft_await(guarded[0], &value, WEFT_NEVER));
	CHECK_EQ(value.as.integer, 7);
	CHECK_EQ(weft_await(guarded[1], NULL, WEFT_NEVER), WEFT_EPERM);
	CHECK_EQ(weft_await(guarded[2], NULL, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	OK(weft_abort_fire(play->abort, weft_value_error(WEFT_EINTR)));
	CHECK_EQ(weft_await(guarded[2], NULL, WEFT_NEVER), WEFT_EINTR);
	OK(weft_promise_resolve(held[2], none())); /* too late */
	(void)weft_promise_unref(guarded[3]);      /* dropped without awaiting it */
	guarded[3] = weft_abort_promise(play->abort, weft_promise_ref(held[3]));
	CHECK_EQ(weft_await(guarded[3], NULL, WEFT_NOWAIT), WEFT_EINTR);
	for (int i = 0; i < 4; i++) {
		(void)weft_promise_unref(held[i]);
		(void)weft_promise_unref(guarded[i]);
	}
	return 0;
}

TEST(a_guarded_promise_settles_like_its_source_unless_the_signal_is_first)
{
	weft_loop *loop = make(), *other = make_started();
	struct play play = { .abort = weft_abort_new(loop) };

	(void)go_on(loop, guard_promises, &play);
	OK(weft_loop_run(loop));
	(void)weft_abort_unref(play.abort);
	play.abort = weft_abort_new(other);
	(void)go_on(loop, guard_promises, &play);
	OK(weft_loop_run(loop));
	(void)weft_abort_unref(play.abort);
	stop_idle(loop);
	stop_and_free(other);
}

/* --- threadlets that compute ------------------------------------------------ */

static weft_abort *fired_elsewhere;
static weft__a32 computes, has_fired;

static void *
fire_elsewhere(void *arg)
{
	while (!weft__load(&computes, WEFT__ACQUIRE))
		(void)sched_yield();
	OK(weft_abort_fire(fired_elsewhere, none()));
	weft__store(&has_fired, 1, WEFT__RELEASE);
	return arg;
}

/* Compute inside a scope until another thread has fired `fired_elsewhere`.  The scope is tied
 * to it by `signal`. */
static void
compute_until_fired(const weft_abort *signal)
{
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	OK(weft_abort_scope(signal, &scope));
	OK(weft_check_canceled());
	weft__store(&computes, 1, WEFT__RELEASE);
	while (!weft__load(&has_fired, WEFT__ACQUIRE))
		;
	CHECK_EQ(weft_check_canceled(), WEFT_ECANCELED);
	CHECK_EQ(weft_abort_check(signal, NULL), WEFT_ECANCELED);
	OK(weft_scope_close(&scope));
	OK(weft_check_canceled());
}

static int
compute_in_scope(void *arg)
{
	weft_abort *other = weft_abort_new(NULL), *either;
	const weft_abort *sources[2];

	fired_elsewhere = weft_abort_new(NULL);
	sources[0] = other;
	sources[1] = fired_elsewhere;
	either = weft_abort_new_any(NULL, sources, 2);
	compute_until_fired(arg ? either : fired_elsewhere);
	note(MARK('c'));
	(void)weft_abort_unref(either);
	(void)weft_abort_unref(other);
	(void)weft_abort_unref(fired_elsewhere);
	return 0;
}

TEST(a_computing_threadlet_sees_that_the_signal_of_its_scope_has_fired)
{
	for (int any = 0; any < 2; any++) {
		pthread_t thread;

		weft__store(&computes, 0, WEFT__RELAXED);
		weft__store(&has_fired, 0, WEFT__RELAXED);
		OK(pthread_create(&thread, NULL, fire_elsewhere, NULL));
		run_threadlet(compute_in_scope, any ? MARK(1) : NULL);
		OK(pthread_join(thread, NULL));
		CHECK_STR(trace, "c");
	}
}

static int
compute_past_a_timeout(void *arg)
{
	uint64_t until_ns = weft_after(WEFT_MS);
	weft_abort *timeout = weft_abort_new_timeout(NULL, until_ns);
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	OK(weft_abort_scope(timeout, &scope));
	while (weft_now() < until_ns)
		;
	CHECK_EQ(weft_check_canceled(), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_abort_check(timeout, NULL), WEFT_ETIMEDOUT);
	OK(weft_scope_close(&scope));
	OK(weft_yield());
	(void)weft_abort_unref(timeout);
	note(MARK('c'));
	return 0;
}

TEST(a_computing_threadlet_sees_the_timeout_of_the_signal_of_its_scope)
{
	run_threadlet(compute_past_a_timeout, NULL);
	CHECK_STR(trace, "c");
}
