/* threadlet_stop_test.c - threadlets when their loop is stopped, left, and run again. */
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>
#include <weft/embed.h>
#include <weft/metrics.h>
#include "unit/threadlet/sched.h"

static uint64_t
turns_of(weft_loop *loop)
{
	struct weft_loop_stats stats;

	OK(weft_loop_stats(loop, &stats));
	return stats.turns;
}

/* --- idle loops -------------------------------------------------------------- */

static weft_loop *idle;
static int key;

/* Runs when the idle loop ends, which a threadlet of another loop causes. */
static void
drop(void *arg)
{
	CHECK_EQ(weft_self(), 0);
	CHECK(weft_loop_current() == idle);
	CHECK_EQ(weft_sleep_until(weft_after(WEFT_MS)), WEFT_ENOSUSPEND);
	CHECK_EQ(weft_yield(), WEFT_ENOSUSPEND);
	note(arg);
}

static int
end_idle_loop(void *arg)
{
	weft_threadlet self = weft_self();
	weft_loop *mine = weft_loop_current();

	if (arg) {
		weft_loop_shutdown(idle);
		CHECK_EQ(weft_loop_state(idle), WEFT_STOPPED);
	}
	OK(weft_loop_free(idle));
	CHECK_EQ(weft_self(), self);
	CHECK(weft_loop_current() == mine);
	OK(weft_sleep_until(weft_after(1)));
	note(MARK('e'));
	return 0;
}

TEST(callback_run_by_the_end_of_an_idle_loop_is_outside_the_calling_threadlet)
{
	if (!key)
		key = weft_key_new(drop);
	for (int stop = 0; stop < 2; stop++) {
		idle = weft_loop_new(NULL);
		OK(weft_loop_local_set(idle, key, MARK('d')));
		run_threadlet(end_idle_loop, stop ? MARK(1) : NULL);
		CHECK_STR(trace, "de");
	}
}

static weft_threadlet asked;
static sem_t ready, done;

static void *
ask(void *arg)
{
	OK(sem_wait(&ready));
	OK(weft_cancel(asked));
	OK(weft_interrupt(asked));
	OK(sem_post(&done));
	return arg;
}

/* Ends after the requests were made, in a loop iteration that no longer checks them. */
static int
end_asked(void *arg)
{
	(void)arg;
	OK(sem_post(&ready));
	OK(sem_wait(&done));
	return 0;
}

TEST(pending_request_in_an_idle_loop_is_freed_with_it)
{
	OK(sem_init(&ready, 0, 0));
	OK(sem_init(&done, 0, 0));
	for (int stop = 0; stop < 2; stop++) {
		pthread_t asking;

		idle = weft_loop_new(NULL);
		asked = go_on(idle, end_asked, NULL);
		asking = thread(ask, NULL);
		CHECK(weft_loop_run_once(idle, WEFT_NOWAIT) >= 0);
		OK(pthread_join(asking, NULL));
		CHECK_EQ(weft_loop_state(idle), WEFT_IDLE);
		run_threadlet(end_idle_loop, stop ? MARK(1) : NULL);
		CHECK_STR(trace, "e");
	}
	OK(sem_destroy(&ready));
	OK(sem_destroy(&done));
}

/* --- late starts -------------------------------------------------------------- */

static struct pair line;

static void
try_every_wait(void)
{
	weft_op op;
	char byte;

	CHECK_EQ(weft_check_canceled(), WEFT_ECANCELED);
	CHECK_EQ(weft_yield(), WEFT_ECANCELED);
	CHECK_EQ(weft_sleep_until(weft_after(HOUR)), WEFT_ECANCELED);
	CHECK_EQ(weft_sleep_until(WEFT_NOWAIT), WEFT_ECANCELED);
	CHECK_EQ(weft_wait_fd(line.fd, WEFT_READABLE, WEFT_NEVER), WEFT_ECANCELED);
	OK(weft_op_init(&op, NULL, NULL, NULL));
	OK(weft_op_sleep(&op, weft_after(HOUR)));
	CHECK_EQ(weft_op_wait(&op, WEFT_NEVER), WEFT_ECANCELED);
	OK(weft_op_recv(&op, line.fd, &byte, 1, 0, WEFT_NEVER));
	CHECK_EQ(weft_op_wait(&op, WEFT_NEVER), WEFT_ECANCELED);
}

static int
nap(void *arg)
{
	OK(weft_sleep_until(weft_after(1)));
	note(arg);
	return 0;
}

static int
come_late(void *arg)
{
	weft_scope scope, shield;

	try_every_wait();
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK_EQ(weft_scope_go(&scope, nap, NULL), WEFT_ECANCELED);
	OK(weft_scope_close(&scope));
	OK(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER));
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	put(line.peer, "y");
	CHECK_EQ(weft_wait_fd(line.fd, WEFT_READABLE, WEFT_NEVER), WEFT_READABLE);
	take(line.fd);
	OK(weft_scope_close(&shield));
	try_every_wait();
	note(arg);
	return 0;
}

static void
go_late(void *arg)
{
	CHECK(weft_go(come_late, arg) > 0);
}

static void
come_late_to(weft_loop *loop)
{
	line = make_pair();
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "l");
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	OK(weft_loop_free(loop));
	close_pair(line);
}

TEST(threadlet_started_on_a_stopping_loop_is_canceled_except_in_shields)
{
	weft_loop *loop = make();

	go_on(loop, come_late, MARK('l'));
	come_late_to(loop);
	loop = make();
	OK(weft_loop_post(loop, go_late, MARK('l')));
	come_late_to(loop);
}

static weft_loop *far;

static int
nap_shielded(void *arg)
{
	weft_scope shield;

	(void)arg;
	OK(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER));
	OK(weft_sleep_until(weft_after(30 * WEFT_MS)));
	return weft_scope_close(&shield);
}

/* Starts on a stopping loop, and waits for a threadlet on a loop that keeps running. */
static int
wait_for_far(void *arg)
{
	weft_scope shield;
	weft_go_opts opts = { .loop = far, .scope = &shield };

	note(arg);
	OK(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER));
	CHECK(weft_go_with(&opts, nap_shielded, NULL) > 0);
	return weft_scope_close(&shield);
}

TEST(stopping_loop_that_waits_for_another_does_not_spin)
{
	weft_loop *loop = make();

	far = make_started();
	go_on(loop, wait_for_far, MARK('w'));
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "w");
	CHECK(turns_of(loop) <= 16);
	stop_and_free(far);
	OK(weft_loop_free(loop));
}

/* --- weft_loop_break() --------------------------------------------------------- */

static int
leave_while_stopping(void *arg)
{
	weft_scope shield;

	OK(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER));
	weft_loop_shutdown(NULL);
	if (arg) /* then the loop is already ending */
		OK(weft_sleep_until(weft_after(1)));
	weft_loop_break(NULL);
	OK(weft_sleep_until(weft_after(20 * WEFT_MS)));
	note(MARK('l'));
	return weft_scope_close(&shield);
}

TEST(break_of_a_stopping_loop_does_not_make_it_spin)
{
	for (int later = 0; later < 2; later++) {
		weft_loop *loop = make();

		go_on(loop, leave_while_stopping, later ? MARK(1) : NULL);
		while (weft_loop_state(loop) != WEFT_STOPPED)
			OK(weft_loop_run(loop));
		CHECK_STR(trace, "l");
		CHECK(turns_of(loop) <= 16);
		OK(weft_loop_free(loop));
	}
}

static int
sleep_for_ever(void *arg)
{
	OK(sem_post(&ready));
	CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_ECANCELED);
	note(arg);
	OK(sem_post(&done));
	return 0;
}

TEST(loop_ended_by_break_continues_on_another_thread)
{
	weft_loop *loop = make_started();
	weft_threadlet id;

	OK(sem_init(&ready, 0, 0));
	OK(sem_init(&done, 0, 0));
	id = go_on(loop, sleep_for_ever, MARK('1'));
	go_on(loop, sleep_for_ever, MARK('2'));
	OK(sem_wait(&ready));
	OK(sem_wait(&ready));
	for (int i = 0; i < 3; i++) {
		weft_loop_break(loop);
		watch_for(loop, WEFT_IDLE);
		OK(weft_loop_start(loop));
	}
	OK(weft_cancel(id));
	OK(sem_wait(&done));
	weft_loop_break(loop);
	watch_for(loop, WEFT_IDLE);
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPING);
	OK(weft_loop_run(loop)); /* and on this thread */
	CHECK_STR(trace, "12");
	OK(weft_loop_free(loop));
	OK(sem_destroy(&ready));
	OK(sem_destroy(&done));
}

static int
nap_twice(void *arg)
{
	(void)nap(arg);
	return nap(arg);
}

static void *
run_with_threadlets(void *arg)
{
	go_on(arg, nap_twice, MARK('n'));
	OK(weft_loop_run(arg));
	return NULL;
}

TEST(threads_run_a_loop_in_turn_each_with_threadlets)
{
	weft_loop *loop = make();

	for (int i = 0; i < 3; i++)
		OK(pthread_join(thread(run_with_threadlets, loop), NULL));
	CHECK_STR(trace, "nnnnnn");
	OK(weft_loop_free(loop));
}

/* --- weft_loop_run_once() ------------------------------------------------------- */

static int
stop_and_await_line(void *arg)
{
	weft_scope shield;

	weft_loop_shutdown(NULL);
	OK(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER));
	CHECK_EQ(weft_wait_fd(line.fd, WEFT_READABLE, WEFT_NEVER), WEFT_READABLE);
	note(arg);
	return weft_scope_close(&shield);
}

TEST(run_once_of_a_stopping_loop_keeps_to_its_deadline)
{
	weft_loop *loop = make();

	line = make_pair();
	go_on(loop, stop_and_await_line, MARK('s'));
	for (int i = 0; i < 5; i++) {
		uint64_t until_ns = weft_after(2 * WEFT_MS);

		CHECK_EQ(weft_loop_run_once(loop, i % 2 ? WEFT_NOWAIT : until_ns), 1);
		CHECK_EQ(weft_loop_state(loop), WEFT_STOPPING);
		if (i == 4) /* nothing but the deadline ends the wait */
			CHECK(weft_now() >= until_ns);
	}
	CHECK_STR(trace, "");
	put(line.peer, "y");
	while (weft_loop_run_once(loop, weft_after(HOUR)) == 1)
		;
	CHECK_STR(trace, "s");
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	OK(weft_loop_free(loop));
	close_pair(line);
}

TEST(run_once_of_a_loop_stopped_before_it_ran_keeps_to_its_deadline)
{
	weft_loop *loop = make();

	line = make_pair();
	go_on(loop, stop_and_await_line, MARK('s'));
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_run_once(loop, weft_after(WEFT_MS)), 1);
	CHECK_EQ(weft_loop_run_once(loop, weft_after(WEFT_MS)), 1);
	put(line.peer, "y");
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "s");
	OK(weft_loop_free(loop));
	close_pair(line);
}

/* --- computing while the loop is stopped ------------------------------------ */

static weft__a32 computes, is_stopped;

/* Does not suspend before the loop is stopped. */
static int
compute_until_stopped(void *arg)
{
	weft_scope shield;

	OK(weft_check_canceled());
	weft__store(&computes, 1, WEFT__RELEASE);
	if (!arg)
		weft_loop_shutdown(NULL);
	while (arg && !weft__load(&is_stopped, WEFT__ACQUIRE))
		;
	OK(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER));
	OK(weft_check_canceled());
	OK(weft_scope_close(&shield));
	CHECK_EQ(weft_check_canceled(), WEFT_ECANCELED);
	CHECK_EQ(weft_check_canceled(), WEFT_ECANCELED); /* it stays canceled */
	CHECK_EQ(weft_yield(), WEFT_ECANCELED);
	note(MARK('c'));
	return 0;
}

TEST(computing_threadlet_sees_that_its_loop_is_stopped)
{
	weft_loop *loop = make_started();

	weft__store(&computes, 0, WEFT__RELAXED);
	weft__store(&is_stopped, 0, WEFT__RELAXED);
	(void)go_on(loop, compute_until_stopped, MARK(1));
	while (!weft__load(&computes, WEFT__ACQUIRE))
		(void)sched_yield();
	weft_loop_shutdown(loop);
	weft__store(&is_stopped, 1, WEFT__RELEASE);
	OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
	OK(weft_loop_free(loop));
	CHECK_STR(trace, "c");
}

TEST(computing_threadlet_sees_that_it_has_stopped_its_own_loop)
{
	run_threadlet(compute_until_stopped, NULL);
	CHECK_STR(trace, "c");
}
