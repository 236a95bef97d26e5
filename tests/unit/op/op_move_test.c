/* op_move_test.c - loops that move from thread to thread, with ops and watches.
 *
 * Only one thread runs the loop at a time: the others have been joined.
 */
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include "test.h"

#define OK(call) CHECK_EQ(call, 0)

static int pair[2];

static weft_loop *
make(void)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_MOVABLE };
	weft_loop *loop = weft_loop_new(&opts);

	CHECK(loop != NULL);
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	return loop;
}

static void
end(weft_loop *loop)
{
	OK(weft_loop_free(loop));
	OK(close(pair[0]));
	OK(close(pair[1]));
}

struct letter {
	weft_loop *loop;
	weft_op op;
	char byte;
	int64_t got;
};

static void
on_done(weft_op *op, int64_t result, void *arg)
{
	struct letter *letter = arg;

	CHECK(weft_loop_current() == op->loop);
	letter->got = result;
}

/* Start a receive, and submit it to the kernel. */
static void *
start(void *arg)
{
	struct letter *letter = arg;

	letter->got = 0;
	OK(weft_op_init(&letter->op, letter->loop, on_done, letter));
	OK(weft_op_recv(&letter->op, pair[0], &letter->byte, 1, 0, WEFT_NEVER));
	CHECK_EQ(weft_loop_run_once(letter->loop, WEFT_NOWAIT), 1);
	return NULL;
}

static void *
finish(void *arg)
{
	struct letter *letter = arg;

	OK(weft_loop_run(letter->loop));
	CHECK_EQ(letter->got, 1);
	return NULL;
}

static void
elsewhere(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	OK(pthread_create(&thread, NULL, fn, arg));
	OK(pthread_join(thread, NULL));
}

static void
put(char byte)
{
	CHECK_EQ(send(pair[1], &byte, 1, 0), 1);
}

TEST(an_op_started_on_one_thread_finishes_on_another)
{
	struct letter letter = { .loop = make() };

	for (char c = 'a'; c < 'd'; c++) {
		(void)start(&letter);
		put(c);
		elsewhere(finish, &letter);
		CHECK_EQ(letter.byte, c);
	}
	end(letter.loop);
}

TEST(an_op_outlives_the_thread_that_started_it)
{
	struct letter letter = { .loop = make() };

	elsewhere(start, &letter);
	put('x');
	(void)finish(&letter);
	CHECK_EQ(letter.byte, 'x');
	elsewhere(start, &letter);
	put('y');
	elsewhere(finish, &letter);
	CHECK_EQ(letter.byte, 'y');
	end(letter.loop);
}

static void
on_ready(weft_watch *watch, int what, void *arg)
{
	CHECK(what & WEFT_READABLE);
	++*(int *)arg;
	CHECK_EQ(weft_watch_stop(watch), 1);
}

static void *
run(void *arg)
{
	OK(weft_loop_run(arg));
	return NULL;
}

TEST(a_watch_started_on_one_thread_is_called_on_another)
{
	weft_loop *loop = make();
	weft_watch watch = WEFT_INIT;
	int calls = 0;

	OK(weft_watch_start(loop, &watch, pair[0], WEFT_READABLE, on_ready, &calls));
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	put('x');
	elsewhere(run, loop);
	CHECK_EQ(calls, 1);
	end(loop);
}

TEST(a_movable_loop_that_has_run_here_can_be_started)
{
	struct letter letter = { .loop = make() };

	(void)start(&letter);
	OK(weft_loop_start(letter.loop));
	put('x');
	while (weft_loop_state(letter.loop) < WEFT_RUNNING)
		;
	weft_loop_shutdown(letter.loop);
	OK(weft_loop_wait_stopped(letter.loop, WEFT_NEVER));
	CHECK(letter.got == 1 || letter.got == WEFT_ESHUTDOWN);
	end(letter.loop);
}
