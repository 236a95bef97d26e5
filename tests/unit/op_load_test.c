/* op_load_test.c - ops under load: many, hot ones, a full process.
 *
 * All of it is between sockets of this process, so what is ready when is chosen by
 * the tests.  A turn with WEFT_NOW looks at descriptors once; where turns are counted
 * they stand for time.
 */
#include <poll.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/sys.h"
#include "test.h"

#define OK(call) CHECK_EQ(call, 0)

enum kind { RECV, RECV_MULTI, SEND, ACCEPT_MULTI };

/* An op that counts, notes its name and then does what it is told. */
struct probe {
	weft_op op;
	int fd, results, ends;
	int64_t result;
	void (*act)(struct probe *probe);
	struct probe *other;
	char buf[16];
};

static void
on_done(weft_op *op, int64_t result, void *arg)
{
	struct probe *p = arg;

	CHECK(op == &p->op);
	CHECK_EQ(op->result, result);
	CHECK_EQ(op->pending, op->more);
	p->results++;
	p->ends += !op->more;
	p->result = result;
	if (p->act)
		p->act(p);
}

static int
try_start(struct probe *p, enum kind kind, int fd, uint64_t deadline_ns)
{
	weft_op *op = &p->op;

	switch (kind) {
	case RECV:
		return weft_op_recv(op, fd, p->buf, sizeof(p->buf), 0,
		                    deadline_ns);
	case RECV_MULTI:
		return weft_op_recv_multi(op, fd, deadline_ns);
	case SEND:
		return weft_op_send(op, fd, p->buf, sizeof(p->buf), 0,
		                    deadline_ns);
	default:
		return weft_op_accept(op, fd, WEFT_MULTI, deadline_ns);
	}
}

static void
start(weft_loop *loop, struct probe *p, enum kind kind, int fd)
{
	OK(weft_op_init(&p->op, loop, on_done, p));
	p->fd = fd;
	OK(try_start(p, kind, fd, WEFT_NEVER));
}

static weft_loop *
make(void)
{
	weft_loop *loop = weft_loop_new(NULL);

	CHECK(loop != NULL);
	return loop;
}

static void
turn(weft_loop *loop)
{
	(void)weft_loop_run_once(loop, WEFT_NOW);
}

/* It has had its last result, and that was `result`. */
#define CHECK_ENDED(p, want)                 \
	do {                                 \
		CHECK(!(p)->op.pending);     \
		CHECK_EQ((p)->ends, 1);      \
		CHECK_EQ((p)->result, want); \
	} while (0)

/* --- sockets ------------------------------------------------------------ */

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
put(int fd, const char *text)
{
	size_t size = strlen(text);

	CHECK_EQ(send(fd, text, size, MSG_DONTWAIT), size);
}

/* Send until no more fits. */
static void
fill(int fd)
{
	static const char zeros[4096];

	while (send(fd, zeros, sizeof(zeros), MSG_DONTWAIT) > 0)
		;
}

static int
make_listener(int backlog, struct sockaddr_in *addr)
{
	int fd = weft__sys->socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(*addr);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET };
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	OK(bind(fd, (struct sockaddr *)addr, size));
	OK(listen(fd, backlog));
	OK(getsockname(fd, (struct sockaddr *)addr, &size));
	return fd;
}

static int
make_client(const struct sockaddr_in *addr)
{
	int fd = weft__sys->socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	(void)connect(fd, (const struct sockaddr *)addr, sizeof(*addr));
	return fd;
}

/* --- many, often and without end ---------------------------------------- */

TEST(two_thousand_pairs_on_one_loop_all_get_their_bytes)
{
	enum { COUNT = 2000 };
	static struct probe in[COUNT], out[COUNT];
	static struct pair pairs[COUNT];
	weft_loop *loop = make();

	for (int i = 0; i < COUNT; i++) {
		in[i] = out[i] = (struct probe){ 0 };
		pairs[i] = make_pair();
		start(loop, &in[i], RECV, pairs[i].fd);
	}
	for (int i = 0; i < COUNT; i++) {
		out[i].buf[0] = (char)i;
		start(loop, &out[i], SEND, pairs[i].peer);
	}
	OK(weft_loop_run(loop));
	for (int i = 0; i < COUNT; i++) {
		CHECK_ENDED(&in[i], sizeof(in[i].buf));
		CHECK_ENDED(&out[i], sizeof(out[i].buf));
		CHECK_EQ(in[i].buf[0], out[i].buf[0]);
		close_pair(pairs[i]);
	}
	OK(weft_loop_free(loop));
}

/* More bytes are there whenever some were read. */
static void
flood(struct probe *p)
{
	fill(p->other->fd);
	if (!p->op.pending && p->result > 0)
		OK(try_start(p, RECV, p->fd, WEFT_NEVER));
}

TEST(a_peer_that_floods_does_not_starve_a_hundred_quiet_ones)
{
	weft_loop *loop = make();
	struct pair floods[2] = { make_pair(), make_pair() }, quiets[100];
	struct probe hot[2] = { { .act = flood }, { .act = flood } };
	struct probe peers[2] = { { .fd = floods[0].peer },
		                  { .fd = floods[1].peer } };
	static struct probe quiet[100];
	int ended = 0;

	for (int i = 0; i < 2; i++) {
		fill(floods[i].peer);
		hot[i].other = &peers[i];
		start(loop, &hot[i], i ? RECV : RECV_MULTI, floods[i].fd);
	}
	for (int i = 0; i < 5; i++)
		turn(loop);
	CHECK(hot[0].results > 0 && hot[1].results > 0);
	for (int i = 0; i < 100; i++) {
		quiets[i] = make_pair();
		start(loop, &quiet[i], RECV, quiets[i].fd);
		put(quiets[i].peer, "x");
	}
	for (int i = 0; i < 10; i++)
		turn(loop);
	for (int i = 0; i < 100; i++) {
		ended += quiet[i].ends;
		close_pair(quiets[i]);
	}
	CHECK_EQ(ended, 100);
	for (int i = 0; i < 2; i++) {
		hot[i].act = NULL;
		weft_op_cancel(&hot[i].op);
	}
	OK(weft_loop_run(loop));
	close_pair(floods[0]);
	close_pair(floods[1]);
	OK(weft_loop_free(loop));
}

static int64_t calls; /* that were counted */

static int
count_accept(int fd)
{
	calls++;
	return weft__sys_real.accept(fd);
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

static int held[8], held_count;

static void
hold_accepted(struct probe *p)
{
	if (p->result >= 0)
		held[held_count++ % 8] = (int)p->result;
}

TEST(an_accept_without_free_descriptors_neither_spins_nor_gives_up)
{
	const struct weft__sys *before = weft__sys;
	static struct weft__sys counting;
	struct rlimit limit, low;
	struct sockaddr_in addr;
	struct probe a = { .act = hold_accepted }, s = { 0 };
	int listener = make_listener(8, &addr), clients[8], closed = 0;
	weft_loop *loop;

	counting = *before;
	counting.accept = count_accept;
	counting.poll = count_poll;
	counting.epoll_wait = count_epoll_wait;
	weft__sys = &counting;
	loop = make();
	held_count = 0;
	OK(weft_op_init(&s.op, loop, on_done, &s));
	OK(weft_op_poll(&s.op, listener, WEFT_READABLE, WEFT_NOW));
	OK(weft_loop_run(loop)); /* so the loop has opened what it needs */
	for (int i = 0; i < 8; i++)
		clients[i] = make_client(&addr);
	OK(getrlimit(RLIMIT_NOFILE, &limit));
	low = limit;
	low.rlim_cur = (rlim_t)clients[7] + 3; /* two more */
	OK(setrlimit(RLIMIT_NOFILE, &low));
	start(loop, &a, ACCEPT_MULTI, listener);
	while (held_count < 2)
		turn(loop);
	calls = s.ends = 0;
	OK(weft_op_sleep(&s.op, weft_in(50 * WEFT_MS)));
	while (s.ends == 0)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	CHECK_EQ(held_count, 2);
	CHECK_EQ(a.ends, 0);
	CHECK(calls < 100);
	while (held_count < 8) {
		for (; closed < held_count; closed++)
			OK(close(held[closed]));
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	}
	OK(setrlimit(RLIMIT_NOFILE, &limit));
	for (; closed < held_count; closed++)
		OK(close(held[closed]));
	weft_op_cancel(&a.op);
	OK(weft_loop_run(loop));
	for (int i = 0; i < 8; i++)
		OK(close(clients[i]));
	OK(close(listener));
	OK(weft_loop_free(loop));
	weft__sys = before;
}
