/* op_fd_test.c - ops on descriptors: what each kind does, and which ops may wait together.
 *
 * All traffic is between sockets of this process, so the tests choose when a descriptor is
 * ready.  An iteration with WEFT_NOWAIT polls the descriptors once.
 */
#include <fcntl.h>
#include <unistd.h>
#include "base/sys.h"
#include "loop/core/loop.h"
#include "unit/probe.h"

/* --- receiving and sending ---------------------------------------------- */

TEST(a_receive_returns_the_available_bytes_and_0_at_the_end)
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
	put(pair.peer, "abc"); /* flags are passed to recv(2): */
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

TEST(a_send_waits_for_room_and_returns_the_bytes_sent)
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

TEST(a_message_is_gathered_from_several_buffers)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	char there[] = "there", hello[] = "hello ", got[16];
	struct iovec from[2] = { { hello, 6 }, { there, 5 } };
	struct msghdr out = { .msg_iov = from, .msg_iovlen = 2 };
	struct probe p = { 0 };

	OK(weft_op_init(&p.op, loop, on_done, &p));
	OK(weft__op_sendmsg(&p.op, pair.fd, &out, 0, WEFT_NEVER));
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, 11);
	CHECK_EQ(recv(pair.peer, got, sizeof(got), 0), 11);
	CHECK(memcmp(got, "hello there", 11) == 0);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

TEST(a_multi_receive_delivers_all_bytes_in_order_and_then_the_end)
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

TEST(a_multi_receive_continues_after_a_result_that_was_ready_at_its_start)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe p = { 0 }, q = { .act = gather };

	gathered_size = 0;
	start(loop, &p, POLL_READ, pair.fd);
	put(pair.peer, "a");
	OK(weft_loop_run(loop)); /* so the loop knows that the descriptor is readable */
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

TEST(an_accepted_descriptor_is_nonblocking_and_close_on_exec)
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

TEST(a_refused_connect_starts_without_error_and_ends_with_it)
{
	weft_loop *loop = make();
	struct probe c = { 0 };
	int fd = weft__sys->socket(AF_INET, SOCK_STREAM, 0);

	OK(close(make_listener(1, &c.addr))); /* nothing listens there now */
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

TEST(a_multi_accept_takes_all_connections_until_it_is_canceled)
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

TEST(a_multi_accept_takes_all_connections_that_waited_before_it)
{
	weft_loop *loop = make();
	struct sockaddr_in addr;
	struct probe a = { .act = close_accepted };
	int listener = make_listener(64, &addr), clients[40];

	for (int i = 0; i < 40; i++)
		clients[i] = make_client(&addr);
	start(loop, &a, ACCEPT_MULTI, listener);
	turns(loop, 20);
	CHECK_EQ(a.results, 40);
	weft_op_cancel(&a.op);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&a, WEFT_ECANCELED);
	for (int i = 0; i < 40; i++)
		OK(close(clients[i]));
	OK(close(listener));
	OK(weft_loop_free(loop));
}

/* --- polling ------------------------------------------------------------ */

TEST(a_poll_finishes_with_the_requested_events_and_with_a_hangup)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe p = { 0 };

	start(loop, &p, POLL_WRITE, pair.fd);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, WEFT_WRITABLE);
	OK(try_start(&p, POLL_READ, pair.fd, WEFT_NEVER));
	turn(loop);
	CHECK_EQ(p.results, 1);
	put(pair.peer, "x");
	OK(weft_loop_run(loop));
	CHECK_EQ(p.result, WEFT_READABLE);
	OK(weft_op_poll(&p.op, pair.fd, WEFT_READABLE | WEFT_WRITABLE, WEFT_NEVER));
	OK(weft_loop_run(loop));
	CHECK_EQ(p.result, WEFT_READABLE | WEFT_WRITABLE);
	CHECK_EQ(drain(pair.fd), 1);
	OK(close(pair.peer));
	OK(try_start(&p, POLL_READ, pair.fd, WEFT_NEVER));
	OK(weft_loop_run(loop));
	CHECK(p.result & WEFT_EV_HUP);
	OK(close(pair.fd));
	OK(weft_loop_free(loop));
}

TEST(a_multi_poll_reports_each_change_until_it_is_canceled)
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

/* --- which ops may wait, and closing ------------------------------------ */

TEST(one_op_may_wait_per_direction_and_another_is_refused)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe r = { 0 }, w = { 0 }, x = { 0 }, c = { 0 };

	fill(pair.fd);
	start(loop, &r, RECV, pair.fd);
	start(loop, &w, SEND, pair.fd);
	OK(weft_op_init(&x.op, loop, on_done, &x));
	for (int kind = POLL_READ; kind < CONNECT; kind++)
		CHECK_EQ(try_start(&x, kind, pair.fd, WEFT_NOWAIT), WEFT_EBUSY);
	OK(weft_op_init(&c.op, loop, on_done, &c));
	OK(weft_op_close(&c.op, pair.fd)); /* a close does not compete with either */
	OK(weft_loop_run(loop));
	CHECK_EQ(x.results, 0);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(a_close_ends_the_ops_on_its_descriptor_before_itself)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe r = { .name = 'w' }, w = { .name = 'w' }, c = { .name = 'c' };

	fill(pair.fd);
	start(loop, &r, RECV_MULTI, pair.fd);
	start(loop, &w, POLL_WRITE, pair.fd);
	turn(loop);
	OK(weft_op_init(&c.op, loop, on_done, &c));
	OK(weft_op_close(&c.op, pair.fd));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "wwc");
	CHECK_ENDED(&r, WEFT_ESHUTDOWN);
	CHECK_ENDED(&w, WEFT_ESHUTDOWN);
	CHECK_ENDED(&c, 0);
	CHECK_EQ(fcntl(pair.fd, F_GETFD), -1);
	/* The close starts, although the number is closed now; nothing else uses it. */
	OK(weft_op_close(&c.op, pair.fd));
	OK(weft_loop_run(loop));
	CHECK_EQ(c.result, WEFT_EBADF);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(an_op_on_a_bad_descriptor_starts_without_error_and_ends_with_it)
{
	weft_loop *loop = make();
	int kinds[] = { POLL_READ, RECV, RECV_MULTI, ACCEPT, SEND };
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
