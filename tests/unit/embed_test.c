/* embed_test.c - a loop inside another's: inside poll(2), epoll, and another weft loop.
 *
 * A wait without limit that does not hang stands for "no wake is lost".  Where a
 * descriptor must be quiet, a few turns may come first: it may be readable for nothing.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>
#include "test.h"

#define OK(call) CHECK_EQ(call, 0)
#define HOUR     (3600 * WEFT_S)

/* The poll backend has no descriptor, and one test. */
static bool
has_fd(void)
{
	weft_loop *loop = weft_loop_new(NULL);
	int fd = weft_loop_fd(loop);

	OK(weft_loop_free(loop));
	CHECK(fd >= 0 || fd == WEFT_ENOSYS);
	return fd >= 0;
}

static weft_loop *
make(void)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_NO_SPIN };
	weft_loop *loop = weft_loop_new(&opts);

	CHECK(loop != NULL);
	return loop;
}

/* Wait until the descriptor is readable, for `ms` at most. */
static bool
readable(weft_loop *loop, int ms)
{
	struct pollfd p = { .fd = weft_loop_fd(loop), .events = POLLIN };

	CHECK(p.fd >= 0);
	return poll(&p, 1, ms) == 1;
}

/* A few turns at most, and nothing is left to be done. */
static void
check_quiet(weft_loop *loop)
{
	for (int i = 0; i < 3; i++)
		(void)weft_loop_run_once(loop, WEFT_NOW);
	CHECK(!readable(loop, 0));
	CHECK(weft_loop_next(loop) != WEFT_NOW);
}

/* Milliseconds for poll(2), rounded up; -1: no limit. */
static int
until(uint64_t next_ns)
{
	uint64_t now_ns = weft_now();

	if (next_ns == WEFT_NEVER)
		return -1;
	return next_ns <= now_ns
	               ? 0
	               : (int)((next_ns - now_ns + WEFT_MS - 1) / WEFT_MS);
}

/* One round of a foreign loop. */
static int
host_once(weft_loop *loop)
{
	(void)readable(loop, until(weft_loop_next(loop)));
	return weft_loop_run_once(loop, WEFT_NOW);
}

static void
count(void *arg)
{
	++*(int *)arg;
}

static void
elsewhere(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	OK(pthread_create(&thread, NULL, fn, arg));
	OK(pthread_join(thread, NULL));
}

/* --- the descriptor ----------------------------------------------------- */

TEST(the_poll_backend_has_no_descriptor_and_works_on)
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

TEST(a_quiet_loop_is_not_readable_and_plans_nothing)
{
	weft_loop *loop = make();

	if (has_fd()) {
		int fd = weft_loop_fd(loop);

		CHECK(!readable(loop, 0));
		CHECK_EQ(weft_loop_next(loop), WEFT_NEVER);
		OK(weft_loop_run_once(loop, WEFT_NOW));
		CHECK_EQ(weft_loop_fd(loop), fd);
		CHECK(!readable(loop, 0));
		CHECK_EQ(weft_loop_next(loop), WEFT_NEVER);
	}
	OK(weft_loop_free(loop));
}

struct deed {
	weft_loop *loop;
	weft_op op;
	int ran;
	int what;
};

static void
on_op(weft_op *op, int64_t result, void *arg)
{
	struct deed *deed = arg;

	(void)op;
	CHECK(result == 7 || result == 1);
	deed->ran++;
}

static void
on_cancel(weft_op *op, int why, void *arg)
{
	(void)arg;
	(void)weft_op_finish(op, why);
}

enum { POST, FIRST, NUMBER, IMMEDIATE, WAKE, LEAVE, FINISH, DEEDS };

static void *
do_deed(void *arg)
{
	struct deed *deed = arg;

	switch (deed->what) {
	case POST:
		OK(weft_loop_post(deed->loop, count, &deed->ran));
		break;
	case FIRST:
		OK(weft_loop_post_first(deed->loop, count, &deed->ran));
		break;
	case NUMBER:
		CHECK(weft_schedule_timeout(deed->loop, 0, count, &deed->ran)
		      > 0);
		break;
	case IMMEDIATE:
		CHECK(weft_schedule_immediate(deed->loop, count, &deed->ran)
		      > 0);
		break;
	case WAKE:
		weft_loop_wake(deed->loop);
		deed->ran++;
		break;
	case LEAVE:
		weft_loop_leave(deed->loop);
		deed->ran++;
		break;
	default:
		OK(weft_op_finish(&deed->op, 7));
		break;
	}
	return NULL;
}

TEST(whatever_other_threads_do_shows_in_the_descriptor)
{
	for (int what = 0; has_fd() && what < DEEDS; what++) {
		struct deed deed = { .loop = make(), .what = what };

		CHECK(!readable(deed.loop, 0));
		for (int round = 1; round < 4; round++) {
			if (what == FINISH) {
				OK(weft_op_init(&deed.op, deed.loop, on_op,
				                &deed));
				OK(weft_op_begin(&deed.op, on_cancel, NULL,
				                 WEFT_NEVER));
			}
			elsewhere(do_deed, &deed);
			CHECK(readable(deed.loop, -1));
			(void)weft_loop_run_once(deed.loop, WEFT_NOW);
			check_quiet(deed.loop);
			CHECK_EQ(deed.ran, round);
		}
		OK(weft_loop_free(deed.loop));
	}
}

TEST(what_the_host_itself_does_between_turns_is_noticed)
{
	for (int what = 0; has_fd() && what < FINISH; what++) {
		struct deed deed = { .loop = make(), .what = what };

		check_quiet(deed.loop);
		(void)do_deed(&deed);
		CHECK(readable(deed.loop, 0)
		      || weft_loop_next(deed.loop) == WEFT_NOW);
		(void)weft_loop_run_once(deed.loop, WEFT_NOW);
		check_quiet(deed.loop);
		CHECK_EQ(deed.ran, 1);
		OK(weft_loop_free(deed.loop));
	}
}

TEST(a_post_made_before_the_descriptor_was_asked_for_is_not_missed)
{
	weft_loop *loop = make();
	int ran = 0;

	if (has_fd()) {
		OK(weft_loop_post(loop, count, &ran));
		(void)weft_loop_fd(loop);
		CHECK_EQ(weft_loop_next(loop), WEFT_NOW);
		OK(weft_loop_run_once(loop, WEFT_NOW));
		CHECK_EQ(ran, 1);
		check_quiet(loop);
	}
	OK(weft_loop_free(loop));
}

/* --- descriptors -------------------------------------------------------- */

static void
make_pair(int fds[2])
{
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
}

static void
close_pair(const int fds[2])
{
	OK(close(fds[0]));
	OK(close(fds[1]));
}

static void
put(int fd)
{
	CHECK_EQ(send(fd, "x", 1, MSG_DONTWAIT), 1);
}

TEST(an_op_started_between_turns_is_heard_of)
{
	struct deed deed = { .loop = make() };
	int fds[2];
	char byte;

	make_pair(fds);
	for (int i = 1; has_fd() && i < 4; i++) {
		OK(weft_op_init(&deed.op, deed.loop, on_op, &deed));
		OK(weft_op_recv(&deed.op, fds[0], &byte, 1, 0, WEFT_NEVER));
		while (weft_loop_next(deed.loop) == WEFT_NOW)
			CHECK_EQ(weft_loop_run_once(deed.loop, WEFT_NOW), 1);
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

TEST(a_watch_started_between_turns_is_heard_of)
{
	weft_loop *loop = make();
	weft_watch watch = WEFT_INIT;
	int fds[2], told = 0;

	make_pair(fds);
	if (has_fd()) {
		CHECK(!readable(loop, 0));
		OK(weft_watch_start(loop, &watch, fds[0], WEFT_READABLE,
		                    on_readable, &told));
		for (int i = 1; i < 4; i++) {
			while (weft_loop_next(loop) == WEFT_NOW)
				(void)weft_loop_run_once(loop, WEFT_NOW);
			CHECK(!readable(loop, 0));
			put(fds[1]);
			while (told < i)
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

TEST(a_watched_file_makes_every_turn_needed)
{
	weft_loop *loop = make();
	weft_watch watch = WEFT_INIT;
	int told = 0, fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	if (has_fd()) {
		(void)weft_loop_fd(loop);
		OK(weft_watch_start(loop, &watch, fd, WEFT_READABLE, on_file,
		                    &told));
		CHECK_EQ(weft_loop_next(loop), WEFT_NOW);
		(void)weft_loop_run_once(loop, WEFT_NOW);
		CHECK(told > 0);
		CHECK_EQ(weft_loop_next(loop), WEFT_NOW);
		CHECK_EQ(weft_watch_stop(&watch), 1);
		check_quiet(loop);
	}
	OK(weft_loop_free(loop));
	OK(close(fd));
}

/* A number that is closed while a copy of it lives makes the loop's epoll anew. */
static void
close_behind_its_back(weft_loop *loop)
{
	weft_watch watch = WEFT_INIT;
	int fds[2], copy, told = 0;

	make_pair(fds);
	OK(weft_watch_start(loop, &watch, fds[0], WEFT_READABLE, on_readable,
	                    &told));
	(void)weft_loop_run_once(loop, WEFT_NOW);
	CHECK_EQ(weft_watch_stop(&watch), 1);
	copy = dup(fds[0]);
	OK(close(fds[0]));
	put(fds[1]);
	check_quiet(loop);
	OK(close(copy));
	OK(close(fds[1]));
	OK(told);
}

TEST(the_descriptor_stays_the_same_for_whoever_holds_it)
{
	weft_loop *loop = make(), *host = make();
	weft_watch watch = WEFT_INIT;
	int told = 0, ran = 0;

	if (has_fd()) {
		int fd = weft_loop_fd(loop);

		OK(weft_watch_start(host, &watch, fd, WEFT_READABLE, on_file,
		                    &told));
		close_behind_its_back(loop);
		CHECK_EQ(weft_loop_fd(loop), fd);
		told = 0;
		OK(weft_loop_post(loop, count, &ran));
		while (told == 0)
			(void)weft_loop_run_once(host, WEFT_NEVER);
		check_quiet(loop);
		CHECK_EQ(ran, 1);
		CHECK_EQ(weft_watch_stop(&watch), 1);
	}
	OK(weft_loop_free(host));
	OK(weft_loop_free(loop));
}

/* --- inside a foreign loop ---------------------------------------------- */

static void
on_timer(weft_timer *timer, void *arg)
{
	(void)timer;
	++*(int *)arg;
}

TEST(timers_fire_in_time_inside_a_foreign_loop)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT, far = WEFT_INIT;
	int ticks = 0;

	if (has_fd()) {
		uint64_t due_ns = weft_in(2 * WEFT_MS);

		OK(weft_timer_start(loop, &timer, due_ns, WEFT_MS, on_timer,
		                    &ticks));
		OK(weft_timer_start(loop, &far, weft_in(HOUR), 0, on_timer,
		                    &ticks));
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
		while (weft_loop_post(deed->loop, count, &deed->ran)
		       == WEFT_EAGAIN)
			sched_yield();
		if (i % 16 == 0)
			sched_yield(); /* so that it goes to sleep now and then */
	}
	return NULL;
}

TEST(threads_that_post_to_an_embedded_loop_are_all_heard)
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

/* --- inside another weft loop ------------------------------------------- */

struct nest {
	weft_loop *outer, *inner;
	weft_watch watch;
	weft_timer timer;
	weft_loop_hook hook;
	int turns;
};

static void on_inner_due(weft_timer *timer, void *arg);

static void
plan(struct nest *nest)
{
	uint64_t next_ns = weft_loop_next(nest->inner);

	if (next_ns == WEFT_NEVER)
		(void)weft_timer_stop(&nest->timer);
	else
		OK(weft_timer_start(nest->outer, &nest->timer, next_ns, 0,
		                    on_inner_due, nest));
}

static void
turn_inner(struct nest *nest)
{
	CHECK(weft_loop_run_once(nest->inner, WEFT_NOW) >= 0);
	nest->turns++;
	weft_loop_leave(nest->outer); /* before it waits: let the test look */
	plan(nest);
}

static void
on_inner_due(weft_timer *timer, void *arg)
{
	(void)timer;
	turn_inner(arg);
}

static void
on_inner_ready(weft_watch *watch, int what, void *arg)
{
	(void)watch;
	CHECK(what & WEFT_READABLE);
	turn_inner(arg);
}

static void
on_changed(weft_loop *loop, void *arg)
{
	struct nest *nest = arg;

	CHECK(loop == nest->inner);
	plan(nest);
}

static void
make_nest(struct nest *nest)
{
	*nest = (struct nest){ .outer = make(), .inner = make() };
	nest->hook = (weft_loop_hook){ .next_changed = on_changed,
		                       .arg = nest };
	OK(weft_loop_push_hook(nest->inner, &nest->hook));
	OK(weft_watch_start(nest->outer, &nest->watch,
	                    weft_loop_fd(nest->inner), WEFT_READABLE,
	                    on_inner_ready, nest));
	plan(nest);
}

static void
end_nest(struct nest *nest)
{
	CHECK_EQ(weft_watch_stop(&nest->watch), 1);
	(void)weft_timer_stop(&nest->timer);
	OK(weft_loop_free(nest->inner));
	OK(weft_loop_free(nest->outer));
}

static void *
post_later(void *arg)
{
	struct deed *deed = arg;

	for (int i = 0; i < 200; i++)
		OK(weft_loop_post(deed->loop, count, &deed->ran));
	return NULL;
}

TEST(a_loop_lives_inside_another_by_its_descriptor_and_its_hook)
{
	struct nest nest;
	struct deed deed = { 0 };
	weft_timer timer = WEFT_INIT;
	pthread_t thread;
	int ticks = 0;

	if (!has_fd())
		return;
	make_nest(&nest);
	deed.loop = nest.inner;
	OK(pthread_create(&thread, NULL, post_later, &deed));
	OK(weft_timer_start(nest.inner, &timer, weft_in(WEFT_MS), 0, on_timer,
	                    &ticks));
	while (deed.ran < 200 || ticks < 1)
		CHECK_EQ(weft_loop_run_once(nest.outer, WEFT_NEVER), 1);
	OK(pthread_join(thread, NULL));
	OK(weft_schedule_microtask(nest.inner, count, &ticks));
	while (ticks < 2)
		CHECK_EQ(weft_loop_run_once(nest.outer, WEFT_NEVER), 1);
	CHECK_EQ(deed.ran, 200);
	end_nest(&nest);
}

TEST(an_idle_loop_inside_another_makes_no_turns)
{
	struct nest nest;
	int turns;

	if (!has_fd())
		return;
	make_nest(&nest);
	for (int i = 0; i < 5; i++)
		(void)weft_loop_run_once(nest.outer, WEFT_NOW);
	turns = nest.turns;
	for (int i = 0; i < 20; i++)
		(void)weft_loop_run_once(nest.outer, WEFT_NOW);
	CHECK_EQ(nest.turns, turns);
	end_nest(&nest);
}

/* --- the end ------------------------------------------------------------ */

static void *
stop(void *arg)
{
	weft_loop_stop(arg);
	return NULL;
}

TEST(a_loop_stopped_by_another_thread_stops_when_it_is_next_run)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT;
	int ticks = 0;

	if (has_fd()) {
		OK(weft_timer_start(loop, &timer, weft_in(HOUR), 0, on_timer,
		                    &ticks));
		CHECK(!readable(loop, 0));
		elsewhere(stop, loop);
		CHECK_EQ(weft_loop_state(loop), WEFT_STOPPING);
		CHECK(readable(loop, -1) && weft_loop_next(loop) == WEFT_NOW);
	}
	if (weft_loop_state(loop) == WEFT_STOPPING) {
		CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
		OK(weft_loop_run_once(loop, WEFT_NOW));
		CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
		CHECK_EQ(weft_loop_run_once(loop, WEFT_NOW), WEFT_EALREADY);
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
		weft_loop_stop(busy);
		CHECK_EQ(weft_loop_state(busy), WEFT_STOPPING);
		CHECK_EQ(weft_loop_next(busy), WEFT_NOW);
		OK(weft_loop_run_once(busy, WEFT_NOW));
		CHECK_EQ(ran, 1);
	}
	weft_loop_stop(loop);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	OK(weft_loop_free(loop));
	OK(weft_loop_free(busy));
}

TEST(an_embedded_loop_is_freed_between_turns_and_not_with_posts_to_run)
{
	weft_loop *loop = make(), *quiet = make();
	int ran = 0;

	if (has_fd()) {
		(void)weft_loop_fd(quiet);
		(void)weft_loop_fd(loop);
		OK(weft_loop_post(loop, count, &ran));
		CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
		CHECK(readable(loop, 0) && weft_loop_next(loop) == WEFT_NOW);
		OK(weft_loop_run_once(loop, WEFT_NOW));
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
	weft_loop_stop(deed->loop);
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
				(void)poll(&p, 1,
				           until(weft_loop_next(deed.loop)));
			(void)weft_loop_run_once(deed.loop, WEFT_NOW);
		}
		OK(pthread_join(thread, NULL));
		CHECK_EQ(deed.ran, POSTS);
		OK(weft_loop_free(deed.loop));
	}
}

/* --- other ways to run it ----------------------------------------------- */

TEST(an_embedded_loop_can_be_run_and_goes_on_being_embedded)
{
	struct deed deed = { .loop = make(), .what = POST };
	weft_timer timer = WEFT_INIT;
	int ticks = 0;

	if (has_fd()) {
		CHECK(!readable(deed.loop, 0));
		elsewhere(do_deed, &deed);
		OK(weft_timer_start(deed.loop, &timer, weft_in(WEFT_MS), 0,
		                    on_timer, &ticks));
		OK(weft_loop_run(deed.loop));
		CHECK_EQ(deed.ran + ticks, 2);
		check_quiet(deed.loop);
		elsewhere(do_deed, &deed);
		CHECK(readable(deed.loop, -1));
		CHECK_EQ(weft_loop_run_once(deed.loop, weft_in(HOUR)), 0);
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

TEST(a_movable_loop_has_one_host_after_the_other)
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
ask_elsewhere(void *arg)
{
	CHECK_MISUSE(weft_loop_fd(arg), WEFT_EXDEV);
	CHECK_MISUSE(weft_loop_next(arg), WEFT_NEVER);
	return NULL;
}

static void
ask_from_inside(void *arg)
{
	elsewhere(ask_elsewhere, arg);
	if (has_fd())
		CHECK(weft_loop_fd(NULL) >= 0);
	CHECK_EQ(weft_loop_next(NULL), WEFT_NEVER);
}

TEST(the_descriptor_is_asked_for_without_a_loop_or_elsewhere)
{
	weft_loop *loop = make();

	CHECK_MISUSE(weft_loop_fd(NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_next(NULL), WEFT_NEVER);
	OK(weft_loop_post(loop, ask_from_inside, loop));
	OK(weft_loop_run_once(loop, WEFT_NOW));
	if (has_fd())
		check_quiet(loop);
	OK(weft_loop_free(loop));
}
