/* op_reuse_test.c - a descriptor is closed behind the library's back, and its number is reused.
 *
 * One threadlet does everything.  A victim waits on a descriptor, close(2) closes it without
 * notice, and a newcomer gets the lowest free number, which is the same one.  The newcomer must
 * work, and the victim must end with WEFT_EBADF.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/os.h"
#include "stream_pair.h"
#include "unit/threadlet/sched.h"

#define SOON weft_after(10 * WEFT_S) /* never reached, unless an event is lost */

/* --- victims ------------------------------------------------------------ */

struct victim {
	int fd, peer;
	weft_op op;
	weft_watch watch;
	weft_threadlet waiter;
	int calls; /* with readiness */
	int ends;
	int64_t result;
	char buf[8];
};

static void
on_victim_done(weft_op *op, int64_t result, void *arg)
{
	struct victim *v = arg;

	CHECK(!op->more);
	v->ends++;
	v->result = result;
}

static void
on_victim_ready(weft_watch *watch, int what, void *arg)
{
	struct victim *v = arg;

	CHECK(watch == &v->watch);
	if (what >= 0) {
		v->calls++;
		return;
	}
	v->ends++;
	v->result = what;
}

static void
watch_victim(struct victim *v, uint32_t events)
{
	OK(weft_watch_start(NULL, &v->watch, v->fd, events, on_victim_ready, v));
}

static void
begin_watch(struct victim *v)
{
	watch_victim(v, WEFT_READABLE);
}

static void
begin_edge_watch(struct victim *v)
{
	watch_victim(v, WEFT_READABLE | WEFT_EDGE);
}

static void
begin_watch_of_both(struct victim *v)
{
	fill(v->fd);
	watch_victim(v, BOTH);
}

static void
begin_muted_watch(struct victim *v)
{
	watch_victim(v, 0);
}

/* The loop removes a muted watch from the kernel when the kernel reports an event for it. */
static void
begin_disarmed_watch(struct victim *v)
{
	watch_victim(v, WEFT_READABLE);
	watch_victim(v, 0);
	put(v->peer, "x");
	for (int i = 0; i < 3; i++)
		OK(weft_sleep_until(weft_after(WEFT_US)));
	CHECK_EQ(v->calls, 0);
}

/* A regular file, which is always ready. */
static void
begin_file_watch(struct victim *v)
{
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CHECK_EQ(dup2(file, v->fd), v->fd);
	OK(close(file));
	watch_victim(v, WEFT_READABLE);
}

static void
init_op(struct victim *v)
{
	OK(weft_op_init(&v->op, NULL, on_victim_done, v));
}

static void
begin_poll(struct victim *v)
{
	init_op(v);
	OK(weft_op_poll(&v->op, v->fd, WEFT_READABLE, WEFT_NEVER));
}

static void
begin_poll_multi(struct victim *v)
{
	init_op(v);
	OK(weft_op_poll(&v->op, v->fd, WEFT_READABLE | WEFT_MULTI, WEFT_NEVER));
}

static void
begin_recv(struct victim *v)
{
	init_op(v);
	OK(weft_op_recv(&v->op, v->fd, v->buf, sizeof(v->buf), 0, WEFT_NEVER));
}

static int
wait_for_victim(void *arg)
{
	struct victim *v = arg;

	v->result = weft_wait_fd(v->fd, WEFT_READABLE, WEFT_NEVER);
	v->ends++;
	return 0;
}

static void
begin_threadlet(struct victim *v)
{
	v->waiter = weft_go(wait_for_victim, v);
	CHECK(v->waiter > 0);
}

static const struct {
	const char *name;
	void (*begin)(struct victim *v);
} victims[] = {
	{ "a watch", begin_watch },
	{ "an edge watch", begin_edge_watch },
	{ "a watch of both sides", begin_watch_of_both },
	{ "a muted watch", begin_muted_watch },
	{ "a disarmed watch", begin_disarmed_watch },
	{ "a watched file", begin_file_watch },
	{ "a poll op", begin_poll },
	{ "a poll op for every change", begin_poll_multi },
	{ "a receive op", begin_recv },
	{ "weft_wait_fd()", begin_threadlet },
};

/* --- newcomers ---------------------------------------------------------- */

static int number; /* the number that the newcomer must get */

static struct pair
get_pair(void)
{
	struct pair pair = make_pair();

	CHECK_EQ(pair.fd, number);
	return pair;
}

static void
count_ready(weft_watch *watch, int what, void *arg)
{
	(void)watch;
	CHECK_EQ(what, WEFT_READABLE);
	++*(int *)arg;
}

static void
use_watch(void)
{
	struct pair pair = get_pair();
	weft_watch fresh = WEFT_INIT;
	int seen = 0;

	OK(weft_watch_start(NULL, &fresh, pair.fd, WEFT_READABLE, count_ready, &seen));
	put(pair.peer, "x");
	while (seen == 0)
		OK(weft_sleep_until(weft_after(WEFT_US)));
	CHECK_EQ(weft_watch_stop(&fresh), 1);
	close_pair(pair);
}

/* The other direction than the victim's, so the two do not compete for it. */
static void
use_write_side(void)
{
	struct pair pair = get_pair();

	CHECK_EQ(weft_wait_fd(pair.fd, WEFT_WRITABLE, SOON), WEFT_WRITABLE);
	CHECK_EQ(weft_wait_fd(pair.fd, WEFT_WRITABLE, SOON), WEFT_WRITABLE);
	put(pair.peer, "x");
	CHECK_EQ(weft_wait_fd(pair.fd, WEFT_READABLE, SOON), WEFT_READABLE);
	close_pair(pair);
}

static void
use_wait_fd(void)
{
	struct pair pair = get_pair();

	CHECK_EQ(weft_wait_fd(pair.fd, WEFT_READABLE, weft_after(WEFT_US)), WEFT_ETIMEDOUT);
	put(pair.peer, "x");
	CHECK_EQ(weft_wait_fd(pair.fd, WEFT_READABLE, SOON), WEFT_READABLE);
	close_pair(pair);
}

static void
use_recv(void)
{
	struct pair pair = get_pair();
	weft_op op;
	char c = 0;

	OK(weft_op_init(&op, NULL, NULL, NULL));
	OK(weft_op_recv(&op, pair.fd, &c, 1, 0, SOON));
	put(pair.peer, "x");
	CHECK_EQ(weft_op_wait(&op, WEFT_NEVER), 1);
	CHECK_EQ(c, 'x');
	close_pair(pair);
}

/* A byte in each direction, and the end. */
static void
talk(weft_stream *a, weft_stream *b)
{
	char c = 0;

	CHECK_EQ(weft_stream_read(a, &c, 1, weft_after(WEFT_US)), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_stream_write(b, "x", 1, SOON), 1);
	CHECK_EQ(weft_stream_read(a, &c, 1, SOON), 1);
	CHECK_EQ(weft_stream_write(a, "y", 1, SOON), 1);
	CHECK_EQ(weft_stream_read(b, &c, 1, SOON), 1);
	CHECK_EQ(c, 'y');
	weft_stream_close(a);
	CHECK_EQ(weft_stream_read(b, &c, 1, SOON), 0);
	weft_stream_close(b);
}

static void
use_stream(void)
{
	weft_stream *a, *b;

	OK(open_stream_pair(&a, &b));
	CHECK_EQ(weft_stream_fd(a), number);
	talk(a, b);
}

static void
use_given_stream(void)
{
	struct pair pair = get_pair();
	weft_stream *a, *b;

	OK(weft_stream_open_fd(pair.fd, false, &a));
	OK(weft_stream_open_fd(pair.peer, false, &b));
	talk(a, b);
}

static void
connect_to(weft_listener *listener, weft_stream **out)
{
	char text[WEFT_ADDR_TEXT_MAX];
	weft_addr addr;

	OK(weft_listener_local(listener, &addr));
	CHECK(weft_addr_format(&addr, text, sizeof(text)) > 0);
	OK(weft_stream_connect(text, NULL, out, SOON));
}

static void
use_listener(void)
{
	weft_listener *listener;
	weft_stream *a, *b;

	OK(weft_listener_open("tcp://127.0.0.1:0", NULL, &listener));
	connect_to(listener, &b);
	OK(weft_listener_accept(listener, &a, SOON));
	weft_listener_close(listener);
	talk(a, b);
}

static void
use_dgram(void)
{
	char c = 0;
	weft_message in = { .data = &c, .size = 1 }, out = { .data = &c };
	weft_dgram *dgram;

	OK(weft_dgram_open("udp://127.0.0.1:0", NULL, &dgram));
	CHECK_EQ(weft_dgram_fd(dgram), number);
	CHECK_EQ(weft_dgram_recv(dgram, &in, 1, weft_after(WEFT_US)), WEFT_ETIMEDOUT);
	OK(weft_dgram_local(dgram, &out.addr));
	CHECK_EQ(weft_dgram_send(dgram, &out, 1, SOON), 1);
	CHECK_EQ(weft_dgram_recv(dgram, &in, 1, SOON), 1);
	weft_dgram_close(dgram);
}

static void
use_child(void)
{
	static const char *const argv[] = { "true", NULL };
	weft_child *child;
	int status = -1;

	OK(weft_child_open(argv, NULL, &child, WEFT_NEVER));
	OK(weft_child_wait(child, &status, SOON));
	CHECK_EQ(status, 0);
	weft_child_close(child);
}

static void
use_signal(void)
{
	CHECK_EQ(weft_signal_wait(WEFT_SIG(SIGUSR1), weft_after(WEFT_US)), WEFT_ETIMEDOUT);
}

static const struct {
	const char *name;
	void (*use)(void);
} newcomers[] = {
	{ "a watch", use_watch },          { "weft_wait_fd() to write", use_write_side },
	{ "weft_wait_fd()", use_wait_fd }, { "a receive op", use_recv },
	{ "a stream", use_stream },        { "a stream of a given descriptor", use_given_stream },
	{ "a listener", use_listener },    { "a datagram socket", use_dgram },
	{ "a child", use_child },          { "signals", use_signal },
};

/* --- every victim meets every newcomer ---------------------------------- */

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

struct meeting {
	size_t victim, newcomer;
};

static int
meet(void *arg)
{
	const struct meeting *m = arg;
	struct pair pair = make_pair();
	struct victim v = { .fd = pair.fd, .peer = pair.peer };
	int before;

	victims[m->victim].begin(&v);
	OK(weft_sleep_until(weft_after(WEFT_US)));
	number = v.fd;
	before = v.calls;
	OK(close(v.fd));
	newcomers[m->newcomer].use();
	OK(weft_sleep_until(weft_after(WEFT_US)));
	if (v.ends == 0) /* the number was used only briefly */
		use_wait_fd();
	while (v.ends == 0)
		OK(weft_sleep_until(weft_after(WEFT_US)));
	CHECK_EQ(v.result, WEFT_EBADF);
	CHECK_EQ(v.ends, 1);
	CHECK_EQ(v.calls, before); /* never called for the newcomer's readiness */
	CHECK_EQ(weft_watch_stop(&v.watch), 0);
	OK(close(v.peer));
	return 0;
}

TEST(a_number_closed_without_notice_works_for_a_new_file_and_ends_the_old)
{
	for (size_t i = 0; i < COUNT(victims); i++)
		for (size_t j = 0; j < COUNT(newcomers); j++) {
			struct meeting m = { i, j };

			(void)printf("%s, then %s\n", victims[i].name, newcomers[j].name);
			(void)fflush(stdout);
			run_threadlet(meet, &m);
		}
}

/* Nothing is armed for a regular file, and the loop never sleeps while it watches one. */
static int
close_file(void *arg)
{
	struct pair pair = make_pair();
	struct victim v = { .fd = pair.fd, .peer = pair.peer };

	(void)arg;
	begin_file_watch(&v);
	OK(weft_sleep_until(weft_after(WEFT_US)));
	OK(close(v.fd));
	while (v.ends == 0)
		OK(weft_sleep_until(weft_after(WEFT_US)));
	CHECK_EQ(v.result, WEFT_EBADF);
	OK(close(v.peer));
	return 0;
}

TEST(a_watched_regular_file_closed_without_notice_ends_by_itself)
{
	run_threadlet(close_file, NULL);
}

/* --- accepts ------------------------------------------------------------ */

static int
listen_on(struct sockaddr_in *addr)
{
	socklen_t size = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET,
		                      .sin_addr = { htonl(INADDR_LOOPBACK) } };
	OK(bind(fd, (struct sockaddr *)addr, sizeof(*addr)));
	OK(listen(fd, 8));
	OK(getsockname(fd, (struct sockaddr *)addr, &size));
	return fd;
}

static int
connect_client(const struct sockaddr_in *addr)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	OK(connect(fd, (const struct sockaddr *)addr, sizeof(*addr)));
	return fd;
}

static int64_t
accept_one(int fd, uint64_t deadline_ns)
{
	weft_op op;

	OK(weft_op_init(&op, NULL, NULL, NULL));
	OK(weft_op_accept(&op, fd, 0, deadline_ns));
	return weft_op_wait(&op, WEFT_NEVER);
}

/* The first listener has one more connection when it is closed. */
static int
accept_on_a_reused_number(void *arg)
{
	struct sockaddr_in addr;
	int listener = listen_on(&addr), first = listener, clients[2];
	int64_t accepted;

	(void)arg;
	for (int i = 0; i < 2; i++)
		clients[i] = connect_client(&addr);
	accepted = accept_one(listener, SOON);
	CHECK(accepted >= 0);
	OK(close((int)accepted));
	OK(close(listener));
	listener = listen_on(&addr);
	CHECK_EQ(listener, first);
	CHECK_EQ(accept_one(listener, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	OK(close(listener));
	for (int i = 0; i < 2; i++)
		OK(close(clients[i]));
	return 0;
}

TEST(an_accept_on_a_reused_number_does_not_block_the_loop)
{
	run_threadlet(accept_on_a_reused_number, NULL);
}

/* --- closed by the object that lent its descriptor ---------------------- */

/* An object with its own descriptor, before or after its first use on a loop. */
struct lender {
	weft_stream *stream, *peer;
	weft_dgram *dgram;
	weft_listener *listener;
	bool used;
};

static int
lend_stream(struct lender *l)
{
	OK(open_stream_pair(&l->stream, &l->peer));
	if (l->used) {
		static char bytes[65536]; /* too large for a threadlet's stack */
		weft_span span = { bytes, sizeof(bytes) };

		while (weft_stream_write_some(l->stream, &span, 1) > 0)
			continue;
	}
	return weft_stream_fd(l->stream);
}

static int
lend_dgram(struct lender *l)
{
	char c;
	weft_message in = { .data = &c, .size = 1 };

	OK(weft_dgram_open("udp://127.0.0.1:0", NULL, &l->dgram));
	if (l->used)
		CHECK_EQ(weft_dgram_recv(l->dgram, &in, 1, weft_after(WEFT_US)), WEFT_ETIMEDOUT);
	return weft_dgram_fd(l->dgram);
}

static void
close_lender(struct lender *l)
{
	weft_stream_close(l->stream);
	weft_stream_close(l->peer);
	weft_dgram_close(l->dgram);
}

static int (*const lenders[])(struct lender *l) = { lend_stream, lend_dgram };

struct loan {
	int (*lend)(struct lender *l);
	bool used, watched;
};

/* Wait in a direction that the lender does not use and that is not ready.  A datagram socket is
 * always writable. */
static int
close_lent(void *arg)
{
	const struct loan *loan = arg;
	struct lender l = { .used = loan->used };
	struct victim v = { .fd = loan->lend(&l) };

	if (l.stream && loan->used) {
		init_op(&v);
		OK(weft_op_poll(&v.op, v.fd, WEFT_WRITABLE, WEFT_NEVER));
	} else if (loan->watched) {
		begin_watch(&v);
	} else {
		begin_threadlet(&v);
	}
	OK(weft_sleep_until(weft_after(WEFT_US)));
	close_lender(&l);
	while (v.ends == 0)
		OK(weft_sleep_until(weft_after(WEFT_US)));
	CHECK_EQ(v.result, WEFT_ESHUTDOWN);
	CHECK_EQ(v.calls, 0);
	CHECK_EQ(weft_watch_stop(&v.watch), 0);
	return 0;
}

TEST(closing_a_stream_or_socket_ends_waits_on_its_descriptor)
{
	for (size_t i = 0; i < COUNT(lenders); i++)
		for (int way = 0; way < 4; way++) {
			struct loan loan = { lenders[i], way & 1, way & 2 };

			run_threadlet(close_lent, &loan);
		}
}

/* --- descriptors in use ------------------------------------------------- */

static int
take_busy(void *arg)
{
	const struct meeting *m = arg;
	struct pair pair = make_pair();
	struct victim v = { .fd = pair.fd, .peer = pair.peer };
	weft_watch fresh = WEFT_INIT;
	weft_stream *stream;
	char c;

	victims[m->victim].begin(&v);
	OK(weft_sleep_until(weft_after(WEFT_US)));
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(weft_watch_start(NULL, &fresh, v.fd, BOTH, on_victim_ready, &v),
		         WEFT_EBUSY);
		CHECK_EQ(weft_wait_fd(v.fd, BOTH, SOON), WEFT_EBUSY);
	}
	if (weft_stream_open_fd(v.fd, true, &stream) == 0) { /* fails for a regular file */
		CHECK_EQ(weft_stream_read(stream, &c, 1, SOON), WEFT_EBUSY);
		weft_stream_close(stream);
	}
	CHECK_EQ(v.ends, 0);
	if (v.waiter > 0)
		OK(weft_cancel(v.waiter));
	weft_op_cancel(&v.op);
	(void)weft_watch_stop(&v.watch);
	while (v.op.pending || (v.waiter > 0 && v.ends == 0))
		OK(weft_sleep_until(weft_after(WEFT_US)));
	close_pair(pair);
	return 0;
}

TEST(a_descriptor_that_is_still_open_and_in_use_is_refused)
{
	for (size_t i = 0; i < COUNT(victims); i++) {
		struct meeting m = { i, 0 };

		(void)printf("%s\n", victims[i].name);
		(void)fflush(stdout);
		run_threadlet(take_busy, &m);
	}
}

/* --- a number that is closed as a watch on it changes -------------------- */

static const struct weft__sys *knowing;
static int closed = -1;

/* As if another thread had closed the number meanwhile. */
static int64_t
lose_identity(int fd)
{
	return fd == closed ? -EBADF : knowing->identity(fd);
}

static int
change_a_lost_watch(void *arg)
{
	struct weft__sys losing = *weft__sys;
	struct pair lost = make_pair(), other = make_pair();
	struct victim first = { .fd = lost.fd }, second = { .fd = other.fd };

	(void)arg;
	watch_victim(&first, WEFT_READABLE);
	watch_victim(&second, WEFT_READABLE);
	knowing = weft__sys;
	losing.identity = lose_identity;
	closed = lost.fd;
	weft__sys = &losing;
	(void)weft_watch_start(NULL, &first.watch, lost.fd, WEFT_READABLE | WEFT_WRITABLE,
	                       on_victim_ready, &first);
	(void)weft_watch_stop(&first.watch);
	weft__sys = knowing;
	put(other.peer, "x");
	for (uint64_t until_ns = SOON; second.calls == 0 && weft_now() < until_ns;)
		OK(weft_sleep_until(weft_after(WEFT_MS)));
	CHECK(second.calls > 0);
	CHECK_EQ(weft_watch_stop(&second.watch), 1);
	close_pair(lost);
	close_pair(other);
	return 0;
}

TEST(a_watch_that_cannot_be_changed_leaves_other_descriptors_alone)
{
	run_threadlet(change_a_lost_watch, NULL);
}
