/* detail_test.c - the weft_detail() text of waits that end early. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include "stream_pair.h"
#include "unit/threadlet/sched.h"

static weft_chan *empty, *full;
static weft_promise *promise;
static weft_loop *other; /* never stopped */
static int fds[2];       /* a pipe without a writer */

static int
wait_chan_recv(uint64_t deadline_ns)
{
	int value;

	return weft_chan_recv(empty, &value, deadline_ns);
}

static int
wait_chan_send(uint64_t deadline_ns)
{
	int value = 1;

	return weft_chan_send(full, &value, deadline_ns);
}

static int
wait_event(uint64_t deadline_ns)
{
	weft_event event = WEFT_INIT;

	return weft_event_wait(&event, deadline_ns);
}

static int
wait_shared_event(uint64_t deadline_ns)
{
	weft_event event = WEFT_SHARED_INIT;

	return weft_event_wait(&event, deadline_ns);
}

static int
wait_sem(uint64_t deadline_ns)
{
	weft_sem sem = WEFT_INIT;

	return weft_sem_acquire(&sem, deadline_ns);
}

static int
wait_fd(uint64_t deadline_ns)
{
	return weft_wait_fd(fds[0], WEFT_READABLE, deadline_ns);
}

static int
wait_promise(uint64_t deadline_ns)
{
	weft_value value;

	return weft_await(promise, &value, deadline_ns);
}

static int
wait_stop(uint64_t deadline_ns)
{
	return weft_loop_wait_stopped(other, deadline_ns);
}

static int
wait_signal(uint64_t deadline_ns)
{
	return weft_signal_wait(WEFT_SIG(SIGUSR2), deadline_ns);
}

static const struct {
	const char *call;
	int (*fn)(uint64_t deadline_ns);
} waits[] = {
	{ "weft_chan_recv", wait_chan_recv }, { "weft_chan_send", wait_chan_send },
	{ "weft_event_wait", wait_event },    { "weft_event_wait", wait_shared_event },
	{ "weft_sem_acquire", wait_sem },     { "weft_wait_fd", wait_fd },
	{ "weft_await", wait_promise },       { "weft_loop_wait_stopped", wait_stop },
	{ "weft_signal_wait", wait_signal },
};

enum { WAITS = sizeof(waits) / sizeof(waits[0]) };

static void
check_detail(const char *call, int error)
{
	char text[100];

	(void)snprintf(text, sizeof(text), "%s: %s", call, weft_strerror(error));
	CHECK_STR(weft_detail(), text);
}

static void
make_objects(void)
{
	int value = 1;

	empty = weft_chan_new(sizeof(int), 1, 0);
	full = weft_chan_new(sizeof(int), 1, 0);
	OK(weft_chan_send(full, &value, WEFT_NOWAIT));
	promise = weft_promise_new(NULL);
	other = make();
	OK(pipe(fds));
}

static void
end_objects(void)
{
	weft_chan_unref(empty);
	weft_chan_unref(full);
	weft_promise_unref(promise);
	OK(weft_loop_free(other));
	OK(close(fds[0]));
	OK(close(fds[1]));
}

static int
time_out(void *arg)
{
	(void)arg;
	make_objects();
	for (int i = 0; i < WAITS; i++) {
		(void)weft_fail(WEFT_EPROTO, "of an earlier failure");
		CHECK_EQ(waits[i].fn(weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
		check_detail(waits[i].call, WEFT_ETIMEDOUT);
	}
	end_objects();
	return 0;
}

TEST(detail_of_a_wait_that_timed_out_names_the_call)
{
	run_threadlet(time_out, NULL);
}

static int
be_cancelled(void *arg)
{
	int (*fn)(uint64_t) = waits[(intptr_t)arg].fn;

	CHECK_EQ(fn(WEFT_NEVER), WEFT_ECANCELED);
	check_detail(waits[(intptr_t)arg].call, WEFT_ECANCELED);
	return 0;
}

static int
cancel_all(void *arg)
{
	(void)arg;
	make_objects();
	for (int i = 0; i < WAITS; i++) {
		weft_scope scope;
		weft_go_opts opts = { .scope = &scope };
		weft_threadlet id;

		weft_scope_open(&scope, 0, WEFT_NEVER);
		id = weft_go_with(&opts, be_cancelled, MARK(i));
		OK(weft_yield()); /* now it waits */
		OK(weft_cancel(id));
		OK(weft_scope_close(&scope));
	}
	end_objects();
	return 0;
}

TEST(detail_of_a_canceled_wait_names_the_call)
{
	run_threadlet(cancel_all, NULL);
}

TEST(detail_of_a_plain_threads_wait_names_the_call)
{
	CHECK_EQ(wait_shared_event(weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	check_detail("weft_event_wait", WEFT_ETIMEDOUT);
}

static int
try_without_waiting(void *arg)
{
	weft_event event = WEFT_INIT;

	(void)arg;
	(void)weft_fail(WEFT_EPROTO, "of an earlier failure");
	CHECK_EQ(weft_event_wait(&event, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_STR(weft_detail(), "timed out: WEFT_NOWAIT does not wait");
	return 0;
}

TEST(detail_of_a_nonwaiting_call_is_not_an_earlier_text)
{
	run_threadlet(try_without_waiting, NULL);
}

static int
read_late(void *arg)
{
	weft_stream *pair[2];
	char byte;

	(void)arg;
	OK(open_stream_pair(&pair[0], &pair[1]));
	CHECK_EQ(weft_stream_read(pair[0], &byte, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	check_detail("weft_stream_read", WEFT_ETIMEDOUT);
	weft_stream_close(pair[0]);
	weft_stream_close(pair[1]);
	return 0;
}

TEST(detail_of_a_read_that_timed_out_names_the_call)
{
	run_threadlet(read_late, NULL);
}
