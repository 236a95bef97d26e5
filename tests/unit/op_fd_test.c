/* op_fd_test.c - ops on descriptors: what each kind does, and who may wait where.
 *
 * All of it is between sockets of this process, so what is ready when is chosen by
 * the tests.  A turn with WEFT_NOW looks at descriptors once.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>
#include "base/sys.h"
#include "test.h"

#define OK(call) CHECK_EQ(call, 0)

static char trace[64];

enum kind {
	POLL_IN,
	POLL_OUT,
	POLL_MULTI,
	RECV,
	RECV_MULTI,
	RECVMSG,
	ACCEPT,
	ACCEPT_MULTI,
	SEND,
	SENDMSG,
	CONNECT
};

/* An op that counts, notes its name and then does what it is told. */
struct probe {
	weft_op op;
	char name;
	int fd, results, ends;
	int64_t result;
	void (*act)(struct probe *probe);
	char buf[16];
	struct iovec iov;
	struct msghdr msg;
	struct sockaddr_in addr;
};

static void
on_done(weft_op *op, int64_t result, void *arg)
{
	struct probe *p = arg;
	size_t used = strlen(trace);

	CHECK(op == &p->op);
	CHECK_EQ(op->result, result);
	CHECK_EQ(op->pending, op->more);
	p->results++;
	p->ends += !op->more;
	p->result = result;
	if (p->name) {
		CHECK(used + 1 < sizeof(trace));
		trace[used] = p->name;
		trace[used + 1] = '\0';
	}
	if (p->act)
		p->act(p);
}

static int
start_msg(struct probe *p, enum kind kind, int fd, uint64_t deadline_ns)
{
	p->iov = (struct iovec){ p->buf, sizeof(p->buf) };
	p->msg = (struct msghdr){ .msg_iov = &p->iov, .msg_iovlen = 1 };
	if (kind == RECVMSG)
		return weft_op_recvmsg(&p->op, fd, &p->msg, 0, deadline_ns);
	return weft_op_sendmsg(&p->op, fd, &p->msg, 0, deadline_ns);
}

static int
try_start(struct probe *p, enum kind kind, int fd, uint64_t deadline_ns)
{
	weft_op *op = &p->op;

	switch (kind) {
	case POLL_IN:
		return weft_op_poll(op, fd, WEFT_READABLE, deadline_ns);
	case POLL_OUT:
		return weft_op_poll(op, fd, WEFT_WRITABLE, deadline_ns);
	case POLL_MULTI:
		return weft_op_poll(op, fd, WEFT_READABLE | WEFT_MULTI,
		                    deadline_ns);
	case RECV:
		return weft_op_recv(op, fd, p->buf, sizeof(p->buf), 0,
		                    deadline_ns);
	case RECV_MULTI:
		return weft_op_recv_multi(op, fd, deadline_ns);
	case ACCEPT:
	case ACCEPT_MULTI:
		return weft_op_accept(op, fd, kind == ACCEPT ? 0 : WEFT_MULTI,
		                      deadline_ns);
	case SEND:
		return weft_op_send(op, fd, p->buf, sizeof(p->buf), 0,
		                    deadline_ns);
	case CONNECT:
		return weft_op_connect(op, fd, (struct sockaddr *)&p->addr,
		                       sizeof(p->addr), deadline_ns);
	default:
		return start_msg(p, kind, fd, deadline_ns);
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
	trace[0] = '\0';
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

static int64_t
drain(int fd)
{
	char buf[4096];
	ssize_t size;
	int64_t all = 0;

	while ((size = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		all += size;
	return all;
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

/* --- receiving and sending ---------------------------------------------- */

TEST(a_receive_finishes_with_what_is_there_and_with_0_at_the_end)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe p = { 0 };

	start(loop, &p, RECV, pair.fd);
	turn(loop);
	CHECK_EQ(p.results, 0);
	put(pair.peer, "hello");
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, 5);
	CHECK(memcmp(p.buf, "hello", 5) == 0);
	put(pair.peer, "abc"); /* flags go to the call: */
	OK(weft_op_recv(&p.op, pair.fd, p.buf, 2, MSG_PEEK, WEFT_NEVER));
	OK(weft_loop_run(loop));
	CHECK_EQ(p.result, 2);
	CHECK_EQ(drain(pair.fd), 3);
	OK(shutdown(pair.peer, SHUT_WR));
	OK(weft_op_recv(&p.op, pair.fd, p.buf, 1, 0, WEFT_NEVER));
	OK(weft_loop_run(loop));
	CHECK_EQ(p.result, 0);
	put(pair.fd, "the other half still works");
	close_pair(pair);
	OK(weft_loop_free(loop));
}

TEST(a_send_waits_for_room_and_tells_how_much_has_gone)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe p = { 0 };
	char *big = calloc(1, 4 << 20);

	OK(weft_op_init(&p.op, loop, on_done, &p));
	OK(weft_op_send(&p.op, pair.fd, big, 4 << 20, 0, WEFT_NEVER));
	OK(weft_loop_run(loop));
	CHECK(p.result > 0 && p.result < 4 << 20);
	CHECK_EQ(drain(pair.peer), p.result);
	fill(pair.fd);
	OK(try_start(&p, SEND, pair.fd, WEFT_NEVER));
	turn(loop);
	CHECK_EQ(p.results, 1);
	(void)drain(pair.peer);
	OK(weft_loop_run(loop));
	CHECK_EQ(p.result, sizeof(p.buf));
	free(big);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

TEST(a_send_to_a_peer_that_is_gone_fails_without_a_signal)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe p = { 0 }, q = { 0 };

	OK(close(pair.peer));
	start(loop, &p, SEND, pair.fd);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, WEFT_EPIPE);
	start(loop, &q, SENDMSG, pair.fd);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&q, WEFT_EPIPE);
	OK(close(pair.fd));
	OK(weft_loop_free(loop));
}

TEST(messages_are_gathered_from_and_scattered_over_several_buffers)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	char there[] = "there", hello[] = "hello ", a[4], b[16];
	struct iovec from[2] = { { hello, 6 }, { there, 5 } };
	struct iovec to[2] = { { a, sizeof(a) }, { b, sizeof(b) } };
	struct msghdr out = { .msg_iov = from, .msg_iovlen = 2 };
	struct msghdr in = { .msg_iov = to, .msg_iovlen = 2 };
	struct probe p = { 0 }, q = { 0 };

	OK(weft_op_init(&p.op, loop, on_done, &p));
	OK(weft_op_init(&q.op, loop, on_done, &q));
	OK(weft_op_recvmsg(&q.op, pair.peer, &in, 0, WEFT_NEVER));
	turn(loop);
	OK(weft_op_sendmsg(&p.op, pair.fd, &out, 0, WEFT_NEVER));
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, 11);
	CHECK_ENDED(&q, 11);
	CHECK(memcmp(a, "hell", 4) == 0 && memcmp(b, "o there", 7) == 0);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

static char gathered[64];
static size_t gathered_size;

static void
gather(struct probe *p)
{
	if (p->result <= 0)
		return;
	CHECK(gathered_size + (size_t)p->result <= sizeof(gathered));
	memcpy(gathered + gathered_size, weft_op_data(&p->op),
	       (size_t)p->result);
	gathered_size += (size_t)p->result;
}

TEST(receiving_again_and_again_gives_all_bytes_in_order_and_then_the_end)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe p = { .act = gather };

	gathered_size = 0;
	start(loop, &p, RECV_MULTI, pair.fd);
	for (const char *c = "abcdefgh"; *c; c++) {
		put(pair.peer, (char[]){ *c, '\0' });
		if (*c % 2)
			turn(loop);
	}
	while (gathered_size < 8)
		turn(loop);
	CHECK(memcmp(gathered, "abcdefgh", 8) == 0);
	CHECK_EQ(p.ends, 0);
	CHECK(p.op.pending);
	put(pair.peer, "z");
	OK(close(pair.peer)); /* bytes and the end at once */
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, 0);
	CHECK_EQ(gathered_size, 9);
	OK(close(pair.fd));
	OK(weft_loop_free(loop));
}

TEST(many_results_come_also_if_the_first_is_there_at_the_start)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe p = { 0 }, q = { .act = gather };

	gathered_size = 0;
	start(loop, &p, POLL_IN, pair.fd);
	put(pair.peer, "a");
	OK(weft_loop_run(loop)); /* the loop knows that there is something */
	start(loop, &q, RECV_MULTI, pair.fd);
	for (int i = 0; i < 3; i++)
		turn(loop);
	CHECK_EQ(gathered_size, 1);
	CHECK_EQ(q.ends, 0);
	put(pair.peer, "b");
	OK(close(pair.peer));
	OK(weft_loop_run(loop));
	CHECK_ENDED(&q, 0);
	CHECK_EQ(gathered_size, 2);
	OK(close(pair.fd));
	OK(weft_loop_free(loop));
}

/* --- accepting and connecting ------------------------------------------- */

static int
flags_of(int fd)
{
	return (fcntl(fd, F_GETFL) & O_NONBLOCK ? 1 : 0)
	       | (fcntl(fd, F_GETFD) & FD_CLOEXEC ? 2 : 0);
}

TEST(a_connect_meets_an_accept_which_makes_a_good_descriptor)
{
	weft_loop *loop = make();
	struct probe a = { 0 }, c = { 0 };
	int listener = make_listener(8, &c.addr), client;

	client = weft__sys->socket(AF_INET, SOCK_STREAM, 0);
	start(loop, &a, ACCEPT, listener);
	turn(loop);
	CHECK_EQ(a.results, 0);
	start(loop, &c, CONNECT, client);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&c, 0);
	CHECK(a.result >= 0);
	CHECK_EQ(flags_of((int)a.result), 3);
	put(client, "x");
	CHECK_EQ(recv((int)a.result, c.buf, 1, 0), 1);
	close_pair((struct pair){ client, (int)a.result });
	OK(close(listener));
	OK(weft_loop_free(loop));
}

TEST(a_connect_that_is_refused_starts_well_and_ends_so)
{
	weft_loop *loop = make();
	struct probe c = { 0 };
	int fd = weft__sys->socket(AF_INET, SOCK_STREAM, 0);

	OK(close(make_listener(1, &c.addr))); /* nobody is there now */
	start(loop, &c, CONNECT, fd);
	CHECK_EQ(c.results, 0);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&c, WEFT_ECONNREFUSED);
	OK(close(fd));
	OK(weft_loop_free(loop));
}

static void
close_accepted(struct probe *p)
{
	if (p->result >= 0)
		OK(close((int)p->result));
}

TEST(one_accept_takes_all_that_come_until_it_is_cancelled)
{
	weft_loop *loop = make();
	struct sockaddr_in addr;
	struct probe a = { .act = close_accepted };
	int listener = make_listener(64, &addr), clients[40];

	start(loop, &a, ACCEPT_MULTI, listener);
	for (int i = 0; i < 40; i++) {
		clients[i] = make_client(&addr);
		if (i % 3 == 0)
			turn(loop);
	}
	while (a.results < 40)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	turn(loop);
	CHECK_EQ(a.results, 40);
	CHECK_EQ(a.ends, 0);
	weft_op_cancel(&a.op);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&a, WEFT_ECANCELED);
	for (int i = 0; i < 40; i++)
		OK(close(clients[i]));
	OK(close(listener));
	OK(weft_loop_free(loop));
}

/* --- polling ------------------------------------------------------------ */

TEST(a_poll_finishes_with_what_it_asked_for_and_with_a_hangup)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe p = { 0 };

	start(loop, &p, POLL_OUT, pair.fd);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, WEFT_WRITABLE);
	OK(try_start(&p, POLL_IN, pair.fd, WEFT_NEVER));
	turn(loop);
	CHECK_EQ(p.results, 1);
	put(pair.peer, "x");
	OK(weft_loop_run(loop));
	CHECK_EQ(p.result, WEFT_READABLE);
	OK(weft_op_poll(&p.op, pair.fd, WEFT_READABLE | WEFT_WRITABLE,
	                WEFT_NEVER));
	OK(weft_loop_run(loop));
	CHECK_EQ(p.result, WEFT_READABLE | WEFT_WRITABLE);
	CHECK_EQ(drain(pair.fd), 1);
	OK(close(pair.peer));
	OK(try_start(&p, POLL_IN, pair.fd, WEFT_NEVER));
	OK(weft_loop_run(loop));
	CHECK(p.result & WEFT_HUP);
	OK(close(pair.fd));
	OK(weft_loop_free(loop));
}

TEST(a_poll_for_many_tells_each_change_until_it_is_cancelled)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe p = { 0 };

	start(loop, &p, POLL_MULTI, pair.fd);
	turn(loop);
	CHECK_EQ(p.results, 0);
	for (int i = 0; i < 5; i++) {
		int before = p.results;

		put(pair.peer, "x");
		while (p.results == before)
			(void)weft_loop_run_once(loop, WEFT_NEVER);
		CHECK_EQ(p.result, WEFT_READABLE);
		CHECK_EQ(drain(pair.fd), 1);
	}
	CHECK_EQ(p.ends, 0);
	weft_op_cancel(&p.op);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, WEFT_ECANCELED);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

/* --- who may wait, and closing ------------------------------------------ */

TEST(one_may_wait_to_read_and_one_to_write_and_another_is_refused)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe r = { 0 }, w = { 0 }, x = { 0 }, c = { 0 };

	fill(pair.fd);
	start(loop, &r, RECV, pair.fd);
	start(loop, &w, SEND, pair.fd);
	OK(weft_op_init(&x.op, loop, on_done, &x));
	for (int kind = POLL_IN; kind < CONNECT; kind++)
		CHECK_EQ(try_start(&x, kind, pair.fd, WEFT_NOW), WEFT_EBUSY);
	OK(weft_op_init(&c.op, loop, on_done, &c));
	OK(weft_op_close(&c.op, pair.fd)); /* is nobody's second */
	OK(weft_loop_run(loop));
	CHECK_EQ(x.results, 0);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(a_close_ends_who_waits_there_and_then_itself)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe r = { .name = 'w' }, w = { .name = 'w' },
		     c = { .name = 'c' };

	fill(pair.fd);
	start(loop, &r, RECV_MULTI, pair.fd);
	start(loop, &w, POLL_OUT, pair.fd);
	turn(loop);
	OK(weft_op_init(&c.op, loop, on_done, &c));
	OK(weft_op_close(&c.op, pair.fd));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "wwc");
	CHECK_ENDED(&r, WEFT_ESHUTDOWN);
	CHECK_ENDED(&w, WEFT_ESHUTDOWN);
	CHECK_ENDED(&c, 0);
	CHECK_EQ(fcntl(pair.fd, F_GETFD), -1);
	OK(weft_op_close(&c.op, pair.fd)); /* takes it: nobody else's */
	OK(weft_loop_run(loop));
	CHECK_EQ(c.result, WEFT_EBADF);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(what_waits_for_a_bad_descriptor_starts_well_and_ends_so)
{
	weft_loop *loop = make();
	int kinds[] = { POLL_IN, RECV, RECV_MULTI, ACCEPT, SEND };
	int fd = fcntl(0, F_DUPFD, 200);

	OK(close(fd));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct probe p = { 0 };

		start(loop, &p, kinds[i], fd);
		OK(weft_loop_run(loop));
		CHECK_ENDED(&p, WEFT_EBADF);
	}
	OK(weft_loop_free(loop));
}
