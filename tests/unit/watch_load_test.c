/* watch_load_test.c - watches: what they cost, and many of them.
 *
 * A turn with WEFT_NOW looks at descriptors once, so where nothing must happen a few
 * turns stand for "never", and where something must happen soon, for "soon".
 */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/sys.h"
#include "test.h"

#define OK(call) CHECK_EQ(call, 0)

/* A watch that counts, and then does what it is told. */
struct probe {
	weft_watch watch;
	int calls, ends;
	int what; /* the last readiness */
	void (*act)(struct probe *probe);
	struct probe *other;
	int fd;
};

static void
on_ready(weft_watch *watch, int what, void *arg)
{
	struct probe *p = arg;

	CHECK(watch == &p->watch);
	CHECK(weft_loop_current() == watch->loop);
	CHECK_EQ(watch->id, p->fd);
	if (what < 0) {
		CHECK_EQ(what, WEFT_ESHUTDOWN);
		CHECK_EQ(weft_watch_stop(watch), 0);
		p->ends++;
	} else {
		CHECK(what > 0);
		CHECK_EQ(p->ends, 0);
		p->calls++;
		p->what = what;
	}
	if (p->act)
		p->act(p);
}

static weft_loop *
make(void)
{
	weft_loop *loop = weft_loop_new(NULL);

	CHECK(loop != NULL);
	return loop;
}

static void
watch(weft_loop *loop, struct probe *p, int fd, uint32_t events)
{
	p->fd = fd;
	OK(weft_watch_start(loop, &p->watch, fd, events, on_ready, p));
}

static void
turns(weft_loop *loop, int count)
{
	while (count-- > 0)
		(void)weft_loop_run_once(loop, WEFT_NOW);
}

struct pair {
	int fd, peer;
};

static struct pair
make_pair(void)
{
	int fds[2];

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	return (struct pair){ fds[0], fds[1] };
}

static void
close_pair(struct pair pair)
{
	OK(close(pair.fd));
	OK(close(pair.peer));
}

static void
put(int fd)
{
	CHECK_EQ(send(fd, "x", 1, MSG_DONTWAIT), 1);
}

/* --- calls -------------------------------------------------------------- */

static int64_t calls; /* that were counted */

static int
count_kind(int fd)
{
	calls++;
	return weft__sys_real.kind(fd);
}

static int
count_poll(struct pollfd *fds, size_t count, int64_t timeout_ns)
{
	calls++;
	return weft__sys_real.poll(fds, count, timeout_ns);
}

static int
count_epoll_wait(int ep, struct epoll_event *events, int max,
                 int64_t timeout_ns)
{
	calls++;
	return weft__sys_real.epoll_wait(ep, events, max, timeout_ns);
}

static int
count_epoll_ctl(int ep, int op, int fd, struct epoll_event *event)
{
	calls++;
	return weft__sys_real.epoll_ctl(ep, op, fd, event);
}

static const struct weft__sys *plain;

/* Count calls that wait, or that say for what. */
static void
count_calls(void)
{
	static struct weft__sys counting;

	plain = weft__sys;
	counting = *plain;
	counting.kind = count_kind;
	counting.poll = count_poll;
	counting.epoll_wait = count_epoll_wait;
	counting.epoll_ctl = count_epoll_ctl;
	weft__sys = &counting;
}

static void
wake_up(weft_timer *timer, void *arg)
{
	(void)timer;
	weft_loop_leave(arg);
}

/* How many calls the loop makes in a while in which nothing is to be done. */
static int64_t
idle_calls(weft_loop *loop)
{
	weft_timer timer = WEFT_INIT;

	calls = 0;
	OK(weft_timer_start(loop, &timer, weft_in(20 * WEFT_MS), 0, wake_up,
	                    loop));
	OK(weft_loop_run(loop));
	return calls;
}

TEST(muting_makes_no_system_call)
{
	struct pair pair = make_pair();
	struct probe p = { .calls = 0 };
	weft_loop *loop;

	count_calls();
	loop = make();
	watch(loop, &p, pair.fd, WEFT_READABLE);
	turns(loop, 1);
	calls = 0;
	watch(loop, &p, pair.fd, 0);
	CHECK_EQ(calls, 0);
	CHECK_EQ(weft_watch_stop(&p.watch), 1);
	OK(weft_loop_free(loop));
	weft__sys = plain;
	close_pair(pair);
}

TEST(a_hangup_of_what_is_muted_is_not_told_and_keeps_nobody_awake)
{
	struct pair pair = make_pair(), quiet = make_pair();
	struct probe p = { .calls = 0 }, q = { .calls = 0 };
	weft_loop *loop;

	count_calls();
	loop = make();
	watch(loop, &q, quiet.fd, WEFT_READABLE);
	watch(loop, &p, pair.fd, WEFT_READABLE);
	turns(loop, 1);
	OK(close(pair.peer));
	watch(loop, &p, pair.fd, 0);
	CHECK(idle_calls(loop) < 20);
	CHECK_EQ(p.calls, 0);
	CHECK_EQ(weft_watch_stop(&p.watch), 1);
	CHECK_EQ(weft_watch_stop(&q.watch), 1);
	OK(weft_loop_free(loop));
	weft__sys = plain;
	OK(close(pair.fd));
	close_pair(quiet);
}

TEST(a_descriptor_closed_while_a_copy_of_it_lives_keeps_nobody_awake)
{
	struct pair pair = make_pair(), quiet = make_pair();
	struct probe p = { .calls = 0 }, q = { .calls = 0 };
	weft_loop *loop;
	int copy = dup(pair.fd);

	count_calls();
	loop = make();
	watch(loop, &q, quiet.fd, WEFT_READABLE);
	watch(loop, &p, pair.fd, WEFT_READABLE);
	turns(loop, 1);
	OK(close(pair.fd));
	put(pair.peer);
	turns(loop, 2);
	(void)weft_watch_stop(&p.watch);
	turns(loop, 2);
	CHECK(idle_calls(loop) < 100);
	CHECK_EQ(weft_watch_stop(&q.watch), 1);
	OK(weft_loop_free(loop));
	weft__sys = plain;
	close_pair(quiet);
	close_pair((struct pair){ copy, pair.peer });
}

/* --- many --------------------------------------------------------------- */

TEST(however_many_stay_ready_each_is_called_soon)
{
	enum { COUNT = 600 };
	static struct probe probes[COUNT];
	static struct pair pairs[COUNT];
	weft_loop *loop = make();
	int called = 0;

	for (int i = 0; i < COUNT; i++) {
		pairs[i] = make_pair();
		put(pairs[i].peer);
		watch(loop, &probes[i], pairs[i].fd, WEFT_READABLE);
	}
	turns(loop, 10);
	for (int i = 0; i < COUNT; i++) {
		called += probes[i].calls > 0;
		CHECK_EQ(weft_watch_stop(&probes[i].watch), 1);
		close_pair(pairs[i]);
	}
	CHECK_EQ(called, COUNT);
	OK(weft_loop_free(loop));
}
