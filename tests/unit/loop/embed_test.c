/* embed_test.c - a loop inside a foreign loop: poll(2), epoll, or another weft loop.
 *
 * A wait without a limit that does not hang proves that no wake is lost.  Where the descriptor
 * must not be readable, a few iterations run first, because it may be readable spuriously.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <weft/embed.h>
#include "unit/loop/embed_host.h"

/* --- the descriptor ----------------------------------------------------- */

TEST(a_loop_on_the_poll_backend_has_no_descriptor_and_still_runs)
{
	weft_loop *loop = make();
	int ran = 0, fd = weft_loop_fd(loop);

	if (!has_fd())
		CHECK_EQ(fd, WEFT_ENOSYS);
	OK(weft_loop_post(loop, count, &ran));
	OK(weft_loop_run(loop));
	CHECK_EQ(ran, 1);
	OK(weft_loop_free(loop));
}

TEST(a_loop_without_work_is_not_readable_and_has_no_next_deadline)
{
	weft_loop *loop = make();

	if (has_fd()) {
		int fd = weft_loop_fd(loop);

		CHECK(!readable(loop, 0));
		CHECK_EQ(weft_loop_next(loop), WEFT_NEVER);
		OK(weft_loop_run_once(loop, WEFT_NOWAIT));
		CHECK_EQ(weft_loop_fd(loop), fd);
		CHECK(!readable(loop, 0));
		CHECK_EQ(weft_loop_next(loop), WEFT_NEVER);
	}
	OK(weft_loop_free(loop));
}

static void
on_cancel(weft_op *op, int why, void *arg)
{
	(void)arg;
	(void)weft_op_finish(op, why);
}

enum { POST, NUMBER, IMMEDIATE, WAKE, LEAVE, FINISH, DEEDS };

static void *
do_deed(void *arg)
{
	struct deed *deed = arg;

	switch (deed->what) {
	case POST:
		OK(weft_loop_post(deed->loop, count, &deed->ran));
		break;
	case NUMBER:
		CHECK(weft_schedule_timeout(deed->loop, 0, count, &deed->ran) > 0);
		break;
	case IMMEDIATE:
		CHECK(weft_schedule_immediate(deed->loop, count, &deed->ran) > 0);
		break;
	case WAKE:
		weft_loop_wake(deed->loop);
		deed->ran++;
		break;
	case LEAVE:
		weft_loop_break(deed->loop);
		deed->ran++;
		break;
	default:
		OK(weft_op_finish(&deed->op, 7));
		break;
	}
	return NULL;
}

TEST(actions_of_other_threads_make_the_descriptor_readable)
{
	for (int what = 0; has_fd() && what < DEEDS; what++) {
		struct deed deed = { .loop = make(), .what = what };

		CHECK(!readable(deed.loop, 0));
		for (int round = 1; round < 4; round++) {
			if (what == FINISH) {
				OK(weft_op_init(&deed.op, deed.loop, on_op, &deed));
				OK(weft_op_begin(&deed.op, on_cancel, NULL, WEFT_NEVER));
			}
			elsewhere(do_deed, &deed);
			CHECK(readable(deed.loop, -1));
			(void)weft_loop_run_once(deed.loop, WEFT_NOWAIT);
			check_quiet(deed.loop);
			CHECK_EQ(deed.ran, round);
		}
		OK(weft_loop_free(deed.loop));
	}
}

TEST(actions_of_the_host_between_iterations_request_an_iteration)
{
	for (int what = 0; has_fd() && what < FINISH; what++) {
		struct deed deed = { .loop = make(), .what = what };

		check_quiet(deed.loop);
		(void)do_deed(&deed);
		CHECK(readable(deed.loop, 0) || weft_loop_next(deed.loop) == WEFT_NOWAIT);
		(void)weft_loop_run_once(deed.loop, WEFT_NOWAIT);
		check_quiet(deed.loop);
		CHECK_EQ(deed.ran, 1);
		OK(weft_loop_free(deed.loop));
	}
}

TEST(a_post_made_before_the_descriptor_was_opened_is_not_missed)
{
	weft_loop *loop = make();
	int ran = 0;

	if (has_fd()) {
		OK(weft_loop_post(loop, count, &ran));
		(void)weft_loop_fd(loop);
		CHECK_EQ(weft_loop_next(loop), WEFT_NOWAIT);
		OK(weft_loop_run_once(loop, WEFT_NOWAIT));
		CHECK_EQ(ran, 1);
		check_quiet(loop);
	}
	OK(weft_loop_free(loop));
}

/* --- descriptors -------------------------------------------------------- */

TEST(an_op_started_between_iterations_completes)
{
	struct deed deed = { .loop = make() };
	int fds[2];
	char byte;

	make_pair(fds);
	for (int i = 1; has_fd() && i < 4; i++) {
		OK(weft_op_init(&deed.op, deed.loop, on_op, &deed));
		OK(weft_op_recv(&deed.op, fds[0], &byte, 1, 0, WEFT_NEVER));
		while (weft_loop_next(deed.loop) == WEFT_NOWAIT)
			CHECK_EQ(weft_loop_run_once(deed.loop, WEFT_NOWAIT), 1);
		CHECK(!readable(deed.loop, 0));
		put(fds[1]);
		CHECK(readable(deed.loop, -1));
		while (deed.ran < i)
			(void)host_once(deed.loop);
		check_quiet(deed.loop);
	}
	OK(weft_loop_free(deed.loop));
	close_pair(fds);
}

static void
on_readable(weft_watch *watch, int what, void *arg)
{
	char byte;

	CHECK(what & WEFT_READABLE);
	CHECK_EQ(read((int)watch->id, &byte, 1), 1);
	++*(int *)arg;
}

TEST(a_watch_started_between_iterations_is_called)
{
	weft_loop *loop = make();
	weft_watch watch = WEFT_INIT;
	int fds[2], calls = 0;

	make_pair(fds);
	if (has_fd()) {
		CHECK(!readable(loop, 0));
		OK(weft_watch_start(loop, &watch, fds[0], WEFT_READABLE, on_readable, &calls));
		for (int i = 1; i < 4; i++) {
			while (weft_loop_next(loop) == WEFT_NOWAIT)
				(void)weft_loop_run_once(loop, WEFT_NOWAIT);
			CHECK(!readable(loop, 0));
			put(fds[1]);
			while (calls < i)
				(void)host_once(loop);
		}
		CHECK_EQ(weft_watch_stop(&watch), 1);
	}
	OK(weft_loop_free(loop));
	close_pair(fds);
}

static void
on_file(weft_watch *watch, int what, void *arg)
{
	(void)watch;
	CHECK(what > 0);
	++*(int *)arg;
}

TEST(a_watched_regular_file_requests_an_iteration_every_time)
{
	weft_loop *loop = make();
	weft_watch watch = WEFT_INIT;
	int calls = 0, fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	if (has_fd()) {
		(void)weft_loop_fd(loop);
		OK(weft_watch_start(loop, &watch, fd, WEFT_READABLE, on_file, &calls));
		CHECK_EQ(weft_loop_next(loop), WEFT_NOWAIT);
		(void)weft_loop_run_once(loop, WEFT_NOWAIT);
		CHECK(calls > 0);
		CHECK_EQ(weft_loop_next(loop), WEFT_NOWAIT);
		CHECK_EQ(weft_watch_stop(&watch), 1);
		check_quiet(loop);
	}
	OK(weft_loop_free(loop));
	OK(close(fd));
}

/* Close a descriptor while a duplicate of it is open.  The loop then has to rebuild its epoll
 * instance. */
static void
close_behind_its_back(weft_loop *loop)
{
	weft_watch watch = WEFT_INIT;
	int fds[2], copy, calls = 0;

	make_pair(fds);
	OK(weft_watch_start(loop, &watch, fds[0], WEFT_READABLE, on_readable, &calls));
	(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	CHECK_EQ(weft_watch_stop(&watch), 1);
	copy = dup(fds[0]);
	OK(close(fds[0]));
	put(fds[1]);
	check_quiet(loop);
	OK(close(copy));
	OK(close(fds[1]));
	OK(calls);
}

TEST(the_descriptor_stays_valid_when_the_epoll_instance_is_rebuilt)
{
	weft_loop *loop = make(), *host = make();
	weft_watch watch = WEFT_INIT;
	int calls = 0, ran = 0;

	if (has_fd()) {
		int fd = weft_loop_fd(loop);

		OK(weft_watch_start(host, &watch, fd, WEFT_READABLE, on_file, &calls));
		close_behind_its_back(loop);
		CHECK_EQ(weft_loop_fd(loop), fd);
		calls = 0;
		OK(weft_loop_post(loop, count, &ran));
		while (calls == 0)
			(void)weft_loop_run_once(host, WEFT_NEVER);
		check_quiet(loop);
		CHECK_EQ(ran, 1);
		CHECK_EQ(weft_watch_stop(&watch), 1);
	}
	OK(weft_loop_free(host));
	OK(weft_loop_free(loop));
}

/* --- inside a foreign loop ---------------------------------------------- */

TEST(timers_fire_on_time_inside_a_foreign_loop)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT, far = WEFT_INIT;
	int ticks = 0;

	if (has_fd()) {
		uint64_t due_ns = weft_after(2 * WEFT_MS);

		OK(weft_timer_start(loop, &timer, due_ns, WEFT_MS, on_timer, &ticks));
		OK(weft_timer_start(loop, &far, weft_after(HOUR), 0, on_timer, &ticks));
		CHECK_EQ(weft_loop_next(loop), due_ns);
		while (ticks < 3)
			CHECK_EQ(host_once(loop), 1);
		CHECK(weft_now() >= due_ns + WEFT_MS);
		CHECK_EQ(weft_timer_stop(&timer), 1);
		CHECK_EQ(weft_timer_stop(&far), 1);
	}
	OK(weft_loop_free(loop));
}

#define THREADS 3
#define POSTS   2000

static void *
post_many(void *arg)
{
	struct deed *deed = arg;

	for (int i = 0; i < POSTS; i++) {
		while (weft_loop_post(deed->loop, count, &deed->ran) == WEFT_EAGAIN)
			sched_yield();
		if (i % 16 == 0)
			sched_yield(); /* so that the loop sleeps now and then */
	}
	return NULL;
}

TEST(all_posts_of_other_threads_to_an_embedded_loop_run)
{
	struct deed deed = { .loop = make() };
	pthread_t threads[THREADS];

	if (has_fd()) {
		CHECK(weft_loop_fd(deed.loop) >= 0);
		for (int i = 0; i < THREADS; i++)
			OK(pthread_create(&threads[i], NULL, post_many, &deed));
		while (deed.ran < THREADS * POSTS)
			(void)host_once(deed.loop);
		for (int i = 0; i < THREADS; i++)
			OK(pthread_join(threads[i], NULL));
		CHECK_EQ(deed.ran, THREADS * POSTS);
		check_quiet(deed.loop);
	}
	OK(weft_loop_free(deed.loop));
}

/* --- the end ------------------------------------------------------------ */

static void *
stop(void *arg)
{
	weft_loop_shutdown(arg);
	return NULL;
}

TEST(a_loop_stopped_by_another_thread_stops_when_it_is_next_run)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT;
	int ticks = 0;

	if (has_fd()) {
		OK(weft_timer_start(loop, &timer, weft_after(HOUR), 0, on_timer, &ticks));
		CHECK(!readable(loop, 0));
		elsewhere(stop, loop);
		CHECK_EQ(weft_loop_state(loop), WEFT_STOPPING);
		CHECK(readable(loop, -1) && weft_loop_next(loop) == WEFT_NOWAIT);
	}
	if (weft_loop_state(loop) == WEFT_STOPPING) {
		CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
		OK(weft_loop_run_once(loop, WEFT_NOWAIT));
		CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
		CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), WEFT_EALREADY);
		CHECK_EQ(weft_loop_next(loop), WEFT_NEVER);
		CHECK_EQ(weft_loop_fd(loop), WEFT_ESHUTDOWN);
	}
	OK(weft_loop_free(loop));
	OK(ticks);
}

TEST(a_loop_stopped_by_its_host_stops_at_once_unless_it_has_work)
{
	weft_loop *loop = make(), *busy = make();
	int ran = 0;

	if (has_fd()) {
		(void)weft_loop_fd(loop);
		(void)weft_loop_fd(busy);
		OK(weft_loop_post(busy, count, &ran));
		weft_loop_shutdown(busy);
		CHECK_EQ(weft_loop_state(busy), WEFT_STOPPING);
		CHECK(readable(busy, -1)); /* a host that only polls the descriptor notices, too */
		CHECK_EQ(weft_loop_next(busy), WEFT_NOWAIT);
		CHECK_EQ(weft_loop_wait_stopped(busy, WEFT_NEVER), WEFT_EDEADLK);
		OK(weft_loop_run_once(busy, WEFT_NOWAIT));
		CHECK_EQ(ran, 1);
	}
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	OK(weft_loop_free(loop));
	OK(weft_loop_free(busy));
}

TEST(an_embedded_loop_is_freed_between_iterations_unless_it_has_posts)
{
	weft_loop *loop = make(), *quiet = make();
	int ran = 0;

	if (has_fd()) {
		(void)weft_loop_fd(quiet);
		(void)weft_loop_fd(loop);
		OK(weft_loop_post(loop, count, &ran));
		CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
		CHECK(readable(loop, 0) && weft_loop_next(loop) == WEFT_NOWAIT);
		OK(weft_loop_run_once(loop, WEFT_NOWAIT));
		CHECK_EQ(ran, 1);
	}
	OK(weft_loop_free(quiet));
	OK(weft_loop_free(loop));
}

static void *
post_and_stop(void *arg)
{
	struct deed *deed = arg;

	(void)post_many(deed);
	weft_loop_shutdown(deed->loop);
	return NULL;
}

TEST(a_host_runs_a_loop_to_its_end_while_threads_post_and_stop_it)
{
	for (int i = 0; has_fd() && i < 20; i++) {
		struct deed deed = { .loop = make() };
		pthread_t thread;

		CHECK(weft_loop_fd(deed.loop) >= 0);
		OK(pthread_create(&thread, NULL, post_and_stop, &deed));
		while (weft_loop_state(deed.loop) != WEFT_STOPPED) {
			struct pollfd p = { .events = POLLIN };

			p.fd = weft_loop_fd(deed.loop);
			if (p.fd >= 0)
				(void)poll(&p, 1, until(weft_loop_next(deed.loop)));
			(void)weft_loop_run_once(deed.loop, WEFT_NOWAIT);
		}
		OK(pthread_join(thread, NULL));
		CHECK_EQ(deed.ran, POSTS);
		OK(weft_loop_free(deed.loop));
	}
}

/* --- other ways to run it ----------------------------------------------- */

TEST(an_embedded_loop_can_be_run_directly_and_stays_embedded)
{
	struct deed deed = { .loop = make(), .what = POST };
	weft_timer timer = WEFT_INIT;
	int ticks = 0;

	if (has_fd()) {
		CHECK(!readable(deed.loop, 0));
		elsewhere(do_deed, &deed);
		OK(weft_timer_start(deed.loop, &timer, weft_after(WEFT_MS), 0, on_timer, &ticks));
		OK(weft_loop_run(deed.loop));
		CHECK_EQ(deed.ran + ticks, 2);
		check_quiet(deed.loop);
		elsewhere(do_deed, &deed);
		CHECK(readable(deed.loop, -1));
		CHECK_EQ(weft_loop_run_once(deed.loop, weft_after(HOUR)), 0);
		check_quiet(deed.loop);
		CHECK_EQ(deed.ran, 2);
	}
	OK(weft_loop_free(deed.loop));
}

static void *
host_quietly(void *arg)
{
	check_quiet(arg);
	return NULL;
}

TEST(a_movable_loop_moves_from_one_host_thread_to_another)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_MOVABLE };
	struct deed deed = { .loop = weft_loop_new(&opts), .what = POST };

	if (has_fd()) {
		check_quiet(deed.loop);
		for (int i = 1; i < 4; i++) {
			elsewhere(do_deed, &deed);
			CHECK(readable(deed.loop, -1));
			elsewhere(host_quietly, deed.loop);
			CHECK_EQ(deed.ran, i);
		}
	}
	OK(weft_loop_free(deed.loop));
}

/* --- misuse ------------------------------------------------------------- */

static void *
query_elsewhere(void *arg)
{
	CHECK_MISUSE(weft_loop_fd(arg), WEFT_EWRONGLOOP);
	CHECK_MISUSE(weft_loop_next(arg), WEFT_NEVER);
	return NULL;
}

static void
query_from_inside(void *arg)
{
	elsewhere(query_elsewhere, arg);
	if (has_fd())
		CHECK(weft_loop_fd(NULL) >= 0);
	CHECK_EQ(weft_loop_next(NULL), WEFT_NEVER);
}

TEST(the_descriptor_of_no_loop_or_of_a_foreign_thread_is_misuse)
{
	weft_loop *loop = make();

	CHECK_MISUSE(weft_loop_fd(NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_next(NULL), WEFT_NEVER);
	OK(weft_loop_post(loop, query_from_inside, loop));
	OK(weft_loop_run_once(loop, WEFT_NOWAIT));
	if (has_fd())
		check_quiet(loop);
	OK(weft_loop_free(loop));
}
