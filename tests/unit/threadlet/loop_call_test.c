/* loop_call_test.c - a function runs on another loop while its caller waits. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <weft/embed.h>
#include "unit/threadlet/sched.h"

struct call {
	weft_loop *other;
	weft_threadlet_fn fn;
	uint64_t deadline_ns; /* 0: never */
	weft_chan *begun;     /* the function has begun; or NULL */
	int runs;
	int rc;         /* result of weft_loop_call() */
	char text[128]; /* its message */
	int ended;      /* the function's wait returned this */
};

static int
make_call(void *arg)
{
	struct call *call = arg;

	call->rc = weft_loop_call(call->other, call->fn, call,
	                          call->deadline_ns ? call->deadline_ns : WEFT_NEVER);
	(void)snprintf(call->text, sizeof(call->text), "%s", weft_detail());
	return 0;
}

static void *
call_from_thread(void *arg)
{
	(void)make_call(arg);
	return NULL;
}

static void
run_on_thread(struct call *call)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, call_from_thread, call), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* --- results ------------------------------------------------------------------ */

static int
return_seven(void *arg)
{
	struct call *call = arg;

	call->runs++;
	CHECK(weft_loop_current() == call->other);
	OK(weft_yield()); /* it may suspend */
	return 7;
}

static int
fail_with_text(void *arg)
{
	struct call *call = arg;

	call->runs++;
	return weft_fail(WEFT_ENOENT, "no room number %d", 12);
}

TEST(threadlet_gets_the_result_of_a_function_on_another_loop)
{
	struct call call = { .other = make_started(), .fn = return_seven };

	run_threadlet(make_call, &call);
	CHECK_EQ(call.rc, 7);
	CHECK_EQ(call.runs, 1);
	stop_and_free(call.other);
}

TEST(plain_thread_gets_the_result_of_a_function_on_a_loop)
{
	struct call call = { .other = make_started(), .fn = return_seven };

	run_on_thread(&call);
	CHECK_EQ(call.rc, 7);
	stop_and_free(call.other);
}

static int
call_own_loop(void *arg)
{
	struct call *call = arg;

	call->other = weft_loop_current();
	return make_call(call);
}

TEST(threadlet_gets_the_result_of_a_function_on_its_own_loop)
{
	struct call call = { .fn = return_seven };

	run_threadlet(call_own_loop, &call);
	CHECK_EQ(call.rc, 7);
}

TEST(thread_that_embeds_a_loop_cannot_wait_for_it)
{
	struct call call = { .other = make(), .fn = return_seven };

	if (weft_loop_fd(call.other) >= 0) { /* the poll backend has none */
		(void)make_call(&call);
		CHECK_EQ(call.rc, WEFT_EDEADLK);
		CHECK_EQ(call.runs, 0);
	}
	OK(weft_loop_free(call.other));
}

TEST(error_of_the_function_keeps_its_message)
{
	struct call call = { .other = make_started(), .fn = fail_with_text };

	run_threadlet(make_call, &call);
	CHECK_EQ(call.rc, WEFT_ENOENT);
	CHECK(strcmp(call.text, "no room number 12") == 0);
	memset(call.text, 0, sizeof(call.text));
	run_on_thread(&call);
	CHECK_EQ(call.rc, WEFT_ENOENT);
	CHECK(strcmp(call.text, "no room number 12") == 0);
	stop_and_free(call.other);
}

/* --- the caller stops waiting ------------------------------------------------- */

TEST(function_that_has_not_begun_by_the_deadline_never_runs)
{
	struct call call = { .other = make(), .fn = return_seven };

	call.deadline_ns = weft_after(WEFT_MS);
	run_on_thread(&call); /* no thread runs the loop */
	CHECK_EQ(call.rc, WEFT_ETIMEDOUT);
	OK(weft_loop_run(call.other));
	CHECK_EQ(call.runs, 0);
	OK(weft_loop_free(call.other));
}

static int
sleep_in_call(void *arg)
{
	struct call *call = arg;
	int begun = 1;

	call->runs++;
	if (call->begun)
		OK(weft_chan_send(call->begun, &begun, WEFT_NEVER));
	call->ended = weft_sleep_until(WEFT_NEVER);
	return call->ended == WEFT_EINTR ? 5 : call->ended;
}

/* End the wait of the caller after the function has begun. */
static int
end_caller(struct call *call, int (*end)(weft_threadlet id))
{
	weft_scope scope;
	weft_threadlet caller;
	int begun;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	caller = weft_scope_go(&scope, make_call, call);
	CHECK(caller > 0);
	OK(weft_chan_recv(call->begun, &begun, WEFT_NEVER));
	OK(end(caller));
	OK(weft_scope_close(&scope));
	return 0;
}

static int
cancel_caller(void *arg)
{
	return end_caller(arg, weft_cancel);
}

static int
interrupt_caller(void *arg)
{
	return end_caller(arg, weft_interrupt);
}

static void
run_to_end(struct call *call, weft_threadlet_fn fn)
{
	call->other = make_started();
	call->fn = sleep_in_call;
	call->begun = weft_chan_new(sizeof(int), 1, WEFT_SHARED);
	run_threadlet(fn, call);
	CHECK_EQ(call->runs, 1);
	(void)weft_chan_unref(call->begun);
	stop_and_free(call->other);
}

TEST(canceled_caller_cancels_the_function_and_waits_for_it)
{
	struct call call = { 0 };

	run_to_end(&call, cancel_caller);
	CHECK_EQ(call.ended, WEFT_ECANCELED);
	CHECK_EQ(call.rc, WEFT_ECANCELED);
}

TEST(interrupt_of_the_caller_reaches_the_function)
{
	struct call call = { 0 };

	run_to_end(&call, interrupt_caller);
	CHECK_EQ(call.ended, WEFT_EINTR);
	CHECK_EQ(call.rc, 5);
}

/* Call with longer and longer deadlines, until the function begins before the deadline. */
static void
call_until_begun(struct call *call, bool from_threadlet)
{
	for (uint64_t ms = 1; call->runs == 0; ms *= 2) {
		call->deadline_ns = weft_after(ms * WEFT_MS);
		if (from_threadlet)
			run_threadlet(make_call, call);
		else
			run_on_thread(call);
		CHECK_EQ(call->rc, WEFT_ETIMEDOUT);
	}
	CHECK_EQ(call->ended, WEFT_ETIMEDOUT);
}

TEST(deadline_of_the_call_ends_the_wait_of_the_function)
{
	struct call call = { .other = make_started(), .fn = sleep_in_call };

	call_until_begun(&call, true);
	call.runs = 0;
	call_until_begun(&call, false);
	stop_and_free(call.other);
}

/* --- stopped loops ---------------------------------------------------------------- */

TEST(call_to_a_stopped_loop_fails)
{
	struct call call = { .other = make_started(), .fn = return_seven };

	weft_loop_shutdown(call.other);
	OK(weft_loop_wait_stopped(call.other, WEFT_NEVER));
	run_threadlet(make_call, &call);
	CHECK_EQ(call.rc, WEFT_ESHUTDOWN);
	run_on_thread(&call);
	CHECK_EQ(call.rc, WEFT_ESHUTDOWN);
	CHECK_EQ(call.runs, 0);
	OK(weft_loop_free(call.other));
}

static int
stop_during_call(void *arg)
{
	struct call *call = arg;
	weft_scope scope;
	int begun;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, make_call, call) > 0);
	OK(weft_chan_recv(call->begun, &begun, WEFT_NEVER));
	weft_loop_shutdown(call->other);
	OK(weft_scope_close(&scope));
	return 0;
}

TEST(loop_that_stops_cancels_the_function_and_the_caller_learns_of_the_shutdown)
{
	struct call call = { 0 };

	run_to_end(&call, stop_during_call);
	CHECK_EQ(call.ended, WEFT_ECANCELED);
	CHECK_EQ(call.rc, WEFT_ESHUTDOWN);
}

/* Two loops that call each other, and stop in the middle of it. */
enum { CALLERS = 8, CALLS = TEST_TSAN ? 50 : 500 };

struct storm {
	weft_loop *loops[2];
	int calls, answers, refusals;
};

static int
add_one(void *arg)
{
	int *value = arg;
	int rc = weft_yield();

	*value += 1;
	return rc;
}

static int
call_often(void *arg)
{
	struct storm *storm = arg;
	weft_loop *other = storm->loops[weft_loop_current() == storm->loops[0]];

	for (int i = 0; i < CALLS; i++) {
		int value = 0; /* on this stack: nothing writes it once the call has returned */
		int rc = weft_loop_call(other, add_one, &value, WEFT_NEVER);

		CHECK(rc == 0 ? value == 1 : rc < 0);
		(void)__atomic_add_fetch(rc == 0 ? &storm->answers : &storm->refusals, 1,
		                         __ATOMIC_RELAXED);
		if (rc < 0)
			break;
	}
	return 0;
}

TEST(loops_that_call_each_other_can_stop_at_any_time)
{
	struct storm storm = { .loops = { make_started(), make_started() } };

	for (int i = 0; i < 2 * CALLERS; i++)
		(void)go_on(storm.loops[i % 2], call_often, &storm);
	while (__atomic_load_n(&storm.answers, __ATOMIC_RELAXED) < CALLS)
		(void)sched_yield();
	weft_loop_shutdown(storm.loops[0]);
	OK(weft_loop_wait_stopped(storm.loops[0], WEFT_NEVER));
	stop_and_free(storm.loops[1]);
	OK(weft_loop_free(storm.loops[0]));
}

/* --- misuse --------------------------------------------------------------------- */

static void
call_in_callback(void *arg)
{
	struct call *call = arg;

	(void)make_call(call);
}

TEST(callback_learns_that_it_cannot_wait_for_another_loop)
{
	struct call call = { .other = make_started(), .fn = return_seven };
	weft_loop *loop = make();

	OK(weft_loop_post(loop, call_in_callback, &call));
	OK(weft_loop_run(loop));
	CHECK_EQ(call.rc, WEFT_ENOSUSPEND);
	CHECK_EQ(call.runs, 0);
	OK(weft_loop_free(loop));
	stop_and_free(call.other);
}

TEST(call_without_a_loop_or_a_function_is_refused)
{
	struct call call = { 0 };

	CHECK_MISUSE(weft_loop_call(NULL, return_seven, &call, WEFT_NEVER), WEFT_EINVAL);
	call.other = make();
	CHECK_MISUSE(weft_loop_call(call.other, NULL, &call, WEFT_NEVER), WEFT_EINVAL);
	OK(weft_loop_free(call.other));
}
