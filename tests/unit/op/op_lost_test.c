/* op_lost_test.c - the system call by which a loop waits begins to fail.
 *
 * The calls of the sys table are replaced by calls that fail from some moment on.  That happens
 * when a program installs a system call filter (seccomp) for itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/metrics.h>
#include "base/os.h"
#include "stream_pair.h"
#include "unit/threadlet/sched.h"

#define SOON weft_after(10 * WEFT_S) /* never reached, unless an event is lost */

/* --- failing calls ------------------------------------------------------ */

static const struct weft__sys *allowing;
static weft__a32 fails;    /* the calls fail */
static int error;          /* with this error, */
static int register_error; /* and io_uring_register(2) with this, unless 0 */
static weft__a32 failed;   /* how many failed */
static int reports;
static char report[160];

static bool
is_failing(void)
{
	return weft__load(&fails, WEFT__RELAXED);
}

static int
fail(void)
{
	(void)weft__add(&failed, 1, WEFT__RELAXED);
	return error;
}

/* A poll of one descriptor without a timeout is not a wait. */
static int
lose_poll(struct pollfd *fds, size_t count, int64_t timeout_ns)
{
	return is_failing() && (count > 1 || timeout_ns != 0)
	               ? fail()
	               : allowing->poll(fds, count, timeout_ns);
}

static int
lose_epoll_wait(int ep, struct epoll_event *events, int max, int64_t timeout_ns)
{
	return is_failing() ? fail() : allowing->epoll_wait(ep, events, max, timeout_ns);
}

static int
lose_uring_enter(int ring, uint32_t submit, uint32_t wait, uint32_t flags, const void *arg)
{
	return is_failing() ? fail() : allowing->uring_enter(ring, submit, wait, flags, arg);
}

static int
lose_uring_register(int ring, uint32_t what, void *arg, uint32_t count)
{
	return is_failing() && register_error ? register_error
	                                      : allowing->uring_register(ring, what, arg, count);
}

static void
note_report(void *arg, const weft_report *about)
{
	(void)arg;
	CHECK_EQ(about->kind, WEFT_REPORT_BACKEND);
	CHECK_EQ(about->error, error);
	(void)snprintf(report, sizeof(report), "%s", about->text);
	reports++;
}

static const char *
backend_name(void)
{
	static struct weft_loop_stats stats;

	weft_loop_stats(NULL, &stats);
	return stats.backend;
}

/* From lose() on, the wait call of the loop's backend fails.  With `also_epoll`, that of epoll
 * fails, too. */
static void
prepare_loss(int with, bool also_epoll)
{
	static struct weft__sys losing;
	const char *name = backend_name();

	allowing = weft__sys;
	losing = *allowing;
	if (strcmp(name, "poll") == 0)
		losing.poll = lose_poll;
	else if (strcmp(name, "epoll") == 0 || also_epoll)
		losing.epoll_wait = lose_epoll_wait;
	if (strcmp(name, "uring") == 0) {
		losing.uring_enter = lose_uring_enter;
		losing.uring_register = lose_uring_register;
	}
	error = with;
	reports = 0;
	weft__store(&failed, 0, WEFT__RELAXED);
	weft__hooks.on_report = note_report;
	weft__sys = &losing;
}

static void
lose(void)
{
	weft__store(&fails, 1, WEFT__RELAXED);
}

static void
end_loss(void)
{
	weft__store(&fails, 0, WEFT__RELAXED);
	weft__sys = allowing;
	weft__hooks.on_report = NULL;
	register_error = 0;
}

/* --- what waits --------------------------------------------------------- */

enum { RECEIVE, RECEIVE_MULTI, POLL, WRITE, TAKE, OPS };

struct waiting {
	struct pair pairs[OPS];
	struct sockaddr_in name;
	weft_op ops[OPS];
	int64_t results[OPS];
	int ended;
	char byte;
	char bytes[1 << 20];
	struct pair watched;
	weft_watch watch;
	int seen;
	weft_stream *stream, *peer;
	weft_threadlet reader;
	ssize_t read;
};

static struct waiting all;

static void
on_end(weft_op *op, int64_t result, void *arg)
{
	all.results[(intptr_t)arg] = result;
	if (op->more && result > 0)
		weft_op_cancel(op); /* one result is enough */
	all.ended += !op->more;
}

static void
on_event(weft_watch *watch, int what, void *arg)
{
	(void)arg;
	all.seen = what;
	(void)weft_watch_stop(watch);
}

static int
read_stream(void *arg)
{
	char c;

	(void)arg;
	all.read = weft_stream_read(all.stream, &c, 1, SOON);
	return 0;
}

static void
begin_all(void)
{
	memset(&all, 0, sizeof(all));
	for (intptr_t i = 0; i < OPS; i++) {
		all.pairs[i] = make_pair();
		OK(weft_op_init(&all.ops[i], NULL, on_end, (void *)i));
	}
	close_pair(all.pairs[TAKE]);
	all.pairs[TAKE] = (struct pair){ make_listener(4, &all.name), -1 };
	fill(all.pairs[WRITE].fd);
	OK(weft_op_recv(&all.ops[RECEIVE], all.pairs[RECEIVE].fd, &all.byte, 1, 0, SOON));
	OK(weft_op_recv_multi(&all.ops[RECEIVE_MULTI], all.pairs[RECEIVE_MULTI].fd, SOON));
	OK(weft_op_poll(&all.ops[POLL], all.pairs[POLL].fd, WEFT_READABLE, SOON));
	OK(weft_op_send(&all.ops[WRITE], all.pairs[WRITE].fd, all.bytes, 1000, 0, SOON));
	OK(weft_op_accept(&all.ops[TAKE], all.pairs[TAKE].fd, 0, SOON));
	all.watched = make_pair();
	OK(weft_watch_start(NULL, &all.watch, all.watched.fd, WEFT_READABLE, on_event, NULL));
	OK(open_stream_pair(&all.stream, &all.peer));
	all.reader = weft_go(read_stream, NULL);
	CHECK(all.reader > 0);
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	CHECK_EQ(all.ended, 0);
}

/* Let everything happen that is waited for. */
static void
feed_all(void)
{
	put(all.pairs[RECEIVE].peer, "x");
	put(all.pairs[RECEIVE_MULTI].peer, "xyz");
	put(all.pairs[POLL].peer, "x");
	CHECK(drain(all.pairs[WRITE].peer) > 0);
	all.pairs[TAKE].peer = make_client(&all.name);
	put(all.watched.peer, "x");
	CHECK_EQ(weft_stream_write(all.peer, "x", 1, WEFT_NOWAIT), 1);
}

static void
await_all(void)
{
	while (all.ended < OPS || all.seen == 0 || all.read == 0)
		OK(weft_sleep_until(weft_after(100 * WEFT_US)));
}

static void
end_all(void)
{
	for (int i = 0; i < OPS; i++) {
		OK(close(all.pairs[i].fd));
		if (all.pairs[i].peer >= 0)
			OK(close(all.pairs[i].peer));
	}
	if (all.results[TAKE] >= 0)
		OK(close((int)all.results[TAKE]));
	close_pair(all.watched);
	weft_stream_close(all.stream);
	weft_stream_close(all.peer);
}

/* --- with a fallback ---------------------------------------------------- */

static int
go_on_by_epoll(void *arg)
{
	struct weft_loop_stats stats;

	begin_all();
	if (strcmp(backend_name(), "uring") != 0) { /* there is no fallback */
		feed_all();
		await_all();
		end_all();
		return 0;
	}
	prepare_loss(*(const int *)arg, false);
	register_error = ((const int *)arg)[1];
	lose();
	feed_all();
	await_all();
	CHECK_EQ(all.results[RECEIVE], 1);
	CHECK_EQ(all.byte, 'x');
	CHECK_EQ(all.results[POLL], WEFT_READABLE);
	CHECK_EQ(all.results[WRITE], 1000);
	CHECK(all.results[TAKE] >= 0);
	CHECK_EQ(all.seen, WEFT_READABLE);
	CHECK_EQ(all.read, 1);
	weft_loop_stats(NULL, &stats);
	CHECK_STR(stats.backend, "epoll");
	CHECK_STR(stats.backend_reason, "io_uring_enter: EPERM, so epoll");
	CHECK_EQ(reports, 1);
	CHECK_STR(report,
	          "the loop's way to wait for events has failed: io_uring_enter: EPERM, so epoll");
	CHECK_EQ(weft__load(&failed, WEFT__RELAXED), 8);
	end_all();
	begin_all(); /* and it works again after that */
	feed_all();
	await_all();
	CHECK_EQ(all.results[RECEIVE], 1);
	end_all();
	end_loss();
	return 0;
}

TEST(a_loop_that_can_no_longer_enter_its_ring_continues_with_epoll)
{
	static const int errors[][2] = { { -EPERM, 0 }, { -EPERM, -EPERM } };

	for (int i = 0; i < 2; i++)
		run_threadlet(go_on_by_epoll, (void *)(uintptr_t)&errors[i]);
}

/* The kernel refuses to cancel what is in the ring, too.  On a movable loop its requests would
 * still run, on any system call of the thread. */
static int
feed_after_loss(void *arg)
{
	(void)arg;
	begin_all();
	if (strcmp(backend_name(), "uring") != 0) {
		feed_all();
		await_all();
		end_all();
		return 0;
	}
	prepare_loss(-EPERM, false);
	register_error = -EPERM;
	lose();
	while (reports == 0)
		OK(weft_sleep_until(weft_after(100 * WEFT_US)));
	CHECK_EQ(all.ended, 0);
	feed_all();
	await_all();
	CHECK_EQ(all.results[RECEIVE], 1);
	CHECK_EQ(all.byte, 'x');
	CHECK_EQ(all.results[WRITE], 1000);
	CHECK(all.results[TAKE] >= 0);
	CHECK_EQ(all.read, 1);
	end_all();
	end_loss();
	return 0;
}

TEST(a_ring_that_is_lost_takes_nothing_that_arrives_later)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_MOVABLE };
	weft_loop *loop = weft_loop_new(&opts);

	CHECK(loop);
	(void)go_on(loop, feed_after_loss, NULL);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

/* --- without a fallback ------------------------------------------------- */

static void
on_post(void *arg)
{
	*(bool *)arg = true;
}

static int
fail_all(void *arg)
{
	bool posted = false;
	uint32_t way;

	(void)arg;
	begin_all();
	way = strcmp(backend_name(), "uring") == 0 ? 2 : 1;
	prepare_loss(-EPERM, true);
	lose();
	await_all();
	for (int i = 0; i < OPS; i++)
		CHECK_EQ(all.results[i], -EPERM);
	CHECK_EQ(all.seen, -EPERM);
	CHECK_EQ(all.read, -EPERM);
	CHECK_EQ(reports, way);
	CHECK_EQ(weft__load(&failed, WEFT__RELAXED), 8 * way);
	CHECK_EQ(weft_wait_fd(all.watched.fd, WEFT_READABLE, SOON), -EPERM);
	CHECK_EQ(weft_watch_start(NULL, &all.watch, all.watched.fd, WEFT_READABLE, on_event, NULL),
	         -EPERM);
	OK(weft_loop_post(NULL, on_post, &posted));
	while (!posted) /* timers and posts still work */
		OK(weft_sleep_until(weft_after(100 * WEFT_US)));
	CHECK_EQ(weft__load(&failed, WEFT__RELAXED), 8 * way);
	CHECK_STR(backend_name(), "none");
	end_all();
	end_loss();
	return 0;
}

TEST(a_loop_without_any_way_to_wait_fails_its_waiters_and_keeps_running)
{
	run_threadlet(fail_all, NULL);
}

/* --- stopping ----------------------------------------------------------- */

static int
wait_on(void *arg)
{
	(void)arg;
	begin_all();
	prepare_loss(-EPERM, false);
	lose();
	weft_loop_shutdown(weft_loop_current());
	(void)weft_sleep_until(WEFT_NEVER);
	return 0;
}

TEST(a_loop_without_any_way_to_wait_can_be_stopped)
{
	weft_loop *loop = make();

	(void)go_on(loop, wait_on, NULL);
	OK(weft_loop_run(loop));
	CHECK_EQ(all.ended, OPS);
	CHECK(all.seen < 0);
	CHECK(all.read < 0);
	end_loss();
	end_all();
	OK(weft_loop_free(loop));
}

/* --- errors that pass --------------------------------------------------- */

static int
lack_memory(void *arg)
{
	uint64_t begin_ns;

	(void)arg;
	begin_all();
	prepare_loss(-ENOMEM, true);
	feed_all();
	begin_ns = weft_now();
	lose();
	OK(weft_sleep_until(weft_after(20 * WEFT_MS)));
	weft__store(&fails, 0, WEFT__RELAXED);
	/* At most one failure per millisecond, plus those of other iterations. */
	CHECK(weft__load(&failed, WEFT__RELAXED) <= 2 * ((weft_now() - begin_ns) / WEFT_MS + 4));
	await_all();
	CHECK_EQ(all.results[RECEIVE], 1);
	CHECK_EQ(all.results[WRITE], 1000);
	CHECK_EQ(all.read, 1);
	CHECK_EQ(reports, 0);
	end_all();
	end_loss();
	return 0;
}

TEST(a_wait_that_fails_without_memory_is_retried_later)
{
	run_threadlet(lack_memory, NULL);
}
