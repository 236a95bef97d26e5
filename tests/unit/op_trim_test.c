/* op_trim_test.c - a loop returns unused memory, and works without it. */
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include "test.h"

#define OK(call) CHECK_EQ(call, 0)
#define HOUR     (3600 * WEFT_S)
#define MANY     1000

static int calls;

static weft_loop *
make(void)
{
	weft_loop *loop = weft_loop_new(NULL);

	CHECK(loop != NULL);
	calls = 0;
	return loop;
}

static void
count(void *arg)
{
	(void)arg;
	calls++;
}

static void
on_timer(weft_timer *timer, void *arg)
{
	(void)timer;
	(void)arg;
	calls++;
}

/* Use many of everything that needs no descriptor, until all have ended. */
static void
use(weft_loop *loop)
{
	static weft_timer timers[MANY];

	for (int i = 0; i < MANY; i++) {
		OK(weft_timer_start(loop, &timers[i], weft_after(0), 0, on_timer, NULL));
		OK(weft_schedule_microtask(loop, count, NULL));
		OK(weft_schedule_tick(loop, count, NULL));
		CHECK(weft_schedule_timeout(loop, 0, count, NULL) > 0);
		CHECK(weft_schedule_immediate(loop, count, NULL) > 0);
	}
	OK(weft_loop_run(loop));
	CHECK_EQ(calls, 5 * MANY);
	calls = 0;
}

TEST(trim_frees_unused_memory_once_and_it_is_allocated_again_when_needed)
{
	weft_loop *loop = make();
	int64_t held = test_live_allocations();

	OK(weft_loop_trim(loop));
	for (int i = 0; i < 3; i++) {
		use(loop);
		CHECK(test_live_allocations() > held);
		CHECK(weft_loop_trim(loop) > MANY * 16 * 2);
		CHECK_EQ(test_live_allocations(), held);
		OK(weft_loop_trim(loop));
	}
	OK(weft_loop_free(loop));
}

TEST(trim_keeps_memory_that_is_in_use)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT;
	int64_t id;

	use(loop);
	OK(weft_timer_start(loop, &timer, weft_after(HOUR), 0, on_timer, NULL));
	id = weft_schedule_timeout(loop, HOUR, count, NULL);
	CHECK(id > 0);
	OK(weft_schedule_tick(loop, count, NULL));
	CHECK(weft_loop_trim(loop) > 0); /* the queue of the microtasks */
	OK(weft_loop_trim(loop));
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	CHECK_EQ(calls, 1);
	CHECK_EQ(weft_timer_stop(&timer), 1);
	OK(weft_schedule_clear(loop, id, NULL));
	OK(weft_loop_run(loop));
	CHECK(weft_loop_trim(loop) > 0);
	OK(weft_loop_free(loop));
}

static void
trim(void *arg)
{
	(void)arg;
	CHECK(weft_loop_trim(NULL) >= 0);
	calls++;
}

static void
trim_at_timer(weft_timer *timer, void *arg)
{
	(void)timer;
	trim(arg);
}

static void
trim_at_op(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	CHECK_EQ(result, 0);
	trim(arg);
}

TEST(every_callback_may_trim)
{
	weft_loop *loop = make();
	weft_timer timers[3] = { 0 };
	weft_op op;

	for (int i = 0; i < 3; i++) {
		OK(weft_timer_start(loop, &timers[i], weft_after(0), 0, trim_at_timer, NULL));
		OK(weft_loop_post(loop, trim, NULL));
		OK(weft_schedule_microtask(loop, trim, NULL));
		OK(weft_schedule_tick(loop, trim, NULL));
		CHECK(weft_schedule_timeout(loop, 0, trim, NULL) > 0);
		CHECK(weft_schedule_immediate(loop, trim, NULL) > 0);
	}
	OK(weft_op_init(&op, loop, trim_at_op, NULL));
	OK(weft_op_sleep(&op, weft_after(0)));
	OK(weft_loop_run(loop));
	CHECK_EQ(calls, 19);
	OK(weft_loop_free(loop));
}

/* --- descriptors -------------------------------------------------------- */

static int64_t got;
static char byte;

static void
on_data(weft_op *op, int64_t result, void *arg)
{
	(void)arg;
	got = result;
	if (result <= 0)
		return;
	CHECK(weft_loop_trim(NULL) >= 0); /* keeps the buffer that is being read */
	byte = *(const char *)weft_op_data(op);
}

static void
receive(weft_loop *loop, const int fds[2], char what)
{
	static weft_op op;

	OK(weft_op_init(&op, loop, on_data, NULL));
	OK(weft_op_recv_multi(&op, fds[0], WEFT_NEVER));
	for (int i = 0; i < 2; i++) {
		byte = '\0';
		CHECK_EQ(send(fds[1], &what, 1, 0), 1);
		while (byte != what)
			CHECK_EQ(weft_loop_run_once(loop, WEFT_NEVER), 1);
		CHECK(weft_loop_trim(loop) >= 0); /* between results, too */
	}
	weft_op_cancel(&op);
	OK(weft_loop_run(loop));
	CHECK_EQ(got, WEFT_ECANCELED);
}

TEST(trim_frees_receive_buffers_when_no_op_receives)
{
	weft_loop *loop = make();
	int fds[2];

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	for (char c = 'a'; c < 'd'; c++) {
		receive(loop, fds, c);
		(void)weft_loop_trim(loop);
		OK(weft_loop_trim(loop));
	}
	OK(weft_loop_free(loop));
	OK(close(fds[0]));
	OK(close(fds[1]));
}

static void
on_readable(weft_watch *watch, int what, void *arg)
{
	(void)arg;
	CHECK(what & WEFT_READABLE);
	calls++;
	CHECK_EQ(weft_watch_stop(watch), 1);
}

static void
on_closed(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	(void)arg;
	CHECK_EQ(result, 0);
}

TEST(trim_frees_the_descriptor_pages_of_closed_descriptors)
{
	weft_loop *loop = make();
	weft_watch watch = WEFT_INIT;
	weft_op op;

	OK(weft_op_init(&op, loop, on_closed, NULL));
	for (int i = 1; i < 4; i++) {
		int fds[2];

		OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
		OK(weft_watch_start(loop, &watch, fds[0], WEFT_READABLE, on_readable, NULL));
		CHECK_EQ(send(fds[1], "x", 1, 0), 1);
		CHECK(weft_loop_trim(loop) >= 0);
		OK(weft_loop_run(loop));
		CHECK_EQ(calls, i);
		OK(weft_op_close(&op, fds[0]));
		OK(weft_loop_run(loop));
		OK(close(fds[1]));
		CHECK(weft_loop_trim(loop) > 0);
		OK(weft_loop_trim(loop));
	}
	OK(weft_loop_free(loop));
}

/* --- misuse ------------------------------------------------------------- */

static void *
trim_elsewhere(void *arg)
{
	CHECK_MISUSE(weft_loop_trim(arg), WEFT_EWRONGLOOP);
	return NULL;
}

static void
try_elsewhere(void *arg)
{
	pthread_t thread;

	OK(pthread_create(&thread, NULL, trim_elsewhere, arg));
	OK(pthread_join(thread, NULL));
}

TEST(trim_of_no_loop_a_foreign_loop_or_a_stopped_loop_is_refused)
{
	weft_loop *loop = make();

	CHECK_MISUSE(weft_loop_trim(NULL), WEFT_EINVAL);
	OK(weft_loop_post(loop, try_elsewhere, loop));
	OK(weft_loop_run(loop));
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_trim(loop), WEFT_ESHUTDOWN);
	OK(weft_loop_free(loop));
}
