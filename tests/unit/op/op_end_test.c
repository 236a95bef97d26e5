/* op_end_test.c - how ops on descriptors end: early, late, together, in large numbers.
 *
 * All traffic is between sockets of this process, so the tests choose when a descriptor is
 * ready.  An iteration with WEFT_NOWAIT polls the descriptors once.  Where iterations are counted,
 * they represent time.
 */
#include <fcntl.h>
#include <unistd.h>
#include "base/sys.h"
#include "unit/probe.h"

/* --- sockets ------------------------------------------------------------ */

/* A listener that never accepts, and the clients that have filled its queue. */
struct mute {
	int fd, clients[3];
	struct sockaddr_in addr;
};

static void
make_mute(struct mute *mute)
{
	mute->fd = make_listener(0, &mute->addr);
	for (int i = 0; i < 3; i++)
		mute->clients[i] = make_client(&mute->addr);
}

static void
close_mute(struct mute *mute)
{
	for (int i = 0; i < 3; i++)
		OK(close(mute->clients[i]));
	OK(close(mute->fd));
}

/* --- one batch ---------------------------------------------------------- */

static struct pair fresh;
static struct probe closer, heir;
static bool unannounced;

/* End the other op, whose descriptor is ready too, and let a new socket get its descriptor
 * number. */
static void
replace_other(struct probe *p)
{
	struct probe *other = p->other;

	p->act = other->act = NULL;
	if (unannounced) {
		weft_op_cancel(&other->op);
		OK(close(other->fd));
	} else {
		OK(weft_op_init(&closer.op, NULL, on_done, &closer));
		OK(weft_op_close(&closer.op, other->fd));
	}
	fresh = make_pair();
	start(NULL, &heir, POLL_READ, fresh.fd);
}

TEST(a_reused_descriptor_number_gets_no_events_of_its_previous_file)
{
	for (int round = 0; round < 3; round++) {
		weft_loop *loop = make();
		struct pair a = make_pair(), b = make_pair();
		struct probe p = { 0 }, q = { 0 };

		unannounced = round == 2;
		p.other = &q;
		q.other = &p;
		p.act = q.act = replace_other;
		closer = heir = (struct probe){ 0 };
		start(loop, &p, round > 0 ? POLL_READ : RECV, a.fd);
		start(loop, &q, round > 0 ? POLL_READ : RECV, b.fd);
		turn(loop);
		put(a.peer, "x");
		put(b.peer, "x");
		for (int i = 0; i < 4; i++)
			turn(loop);
		CHECK_EQ(p.ends, 1);
		CHECK_EQ(q.ends, 1);
		CHECK_EQ(heir.results, 0);
		put(fresh.peer, "y");
		OK(weft_loop_run(loop));
		CHECK_ENDED(&heir, WEFT_READABLE);
		close_pair(fresh);
		OK(close(a.peer));
		OK(close(b.peer));
		OK(close(fcntl(a.fd, F_GETFD) < 0 ? b.fd : a.fd));
		OK(weft_loop_free(loop));
	}
}

static void
cancel_other(struct probe *p)
{
	weft_op_cancel(&p->other->op);
}

TEST(a_receive_canceled_while_ready_returns_its_bytes_or_leaves_them)
{
	weft_loop *loop = make();
	struct pair a = make_pair(), b = make_pair();
	struct probe p = { .act = cancel_other }, q = { .act = cancel_other };

	p.other = &q;
	q.other = &p;
	start(loop, &p, RECV, a.fd);
	start(loop, &q, RECV, b.fd);
	turn(loop);
	put(a.peer, "x");
	put(b.peer, "x");
	OK(weft_loop_run(loop));
	CHECK_EQ(p.ends + q.ends, 2);
	CHECK(p.result == 1 || q.result == 1);
	CHECK_EQ(drain(a.fd), p.result == 1 ? 0 : 1);
	CHECK_EQ(drain(b.fd), q.result == 1 ? 0 : 1);
	close_pair(a);
	close_pair(b);
	OK(weft_loop_free(loop));
}

/* --- deadlines ---------------------------------------------------------- */

TEST(an_op_that_can_complete_at_once_does_so_whatever_its_deadline)
{
	static const int kinds[] = { POLL_READ, POLL_WRITE, RECV, SEND, SENDMSG };
	weft_loop *loop = make();

	for (int i = 0; i < 10; i++) {
		struct pair pair = make_pair();
		struct probe p = { 0 };
		uint64_t deadline = i < 5 ? WEFT_NOWAIT : weft_after(50 * WEFT_US);

		put(pair.peer, "abc");
		OK(weft_op_init(&p.op, loop, on_done, &p));
		OK(try_start(&p, kinds[i % 5], pair.fd, deadline));
		while (weft_now() < deadline)
			;
		OK(weft_loop_run(loop));
		CHECK_EQ(p.ends, 1);
		CHECK(p.result > 0);
		close_pair(pair);
	}
	OK(weft_loop_free(loop));
}

TEST(bytes_received_before_the_deadline_are_delivered_to_their_op)
{
	weft_loop *loop = make();
	struct pair a = make_pair(), b = make_pair();
	struct probe p = { .act = gather }, q = { .act = gather };
	uint64_t deadline;

	gathered_size = 0;
	OK(weft_op_init(&p.op, loop, on_done, &p));
	OK(weft_op_init(&q.op, loop, on_done, &q));
	do { /* until the deadline is after the puts */
		OK(weft_loop_run(loop));
		p.ends = q.ends = 0;
		deadline = weft_after(50 * WEFT_MS);
		OK(try_start(&p, RECV_MULTI, a.fd, deadline));
		OK(try_start(&q, RECV_MULTI, b.fd, deadline));
		turn(loop);
	} while (p.ends + q.ends > 0);
	put(a.peer, "a");
	put(b.peer, "b");
	while (weft_now() < deadline)
		;
	OK(weft_loop_run(loop));
	CHECK_EQ(p.ends + q.ends, 2);
	CHECK_EQ(gathered_size, 2);
	CHECK_EQ(gathered[0] + gathered[1], 'a' + 'b');
	close_pair(a);
	close_pair(b);
	OK(weft_loop_free(loop));
}

TEST(an_op_that_cannot_complete_times_out_and_not_early)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct mute mute;

	make_mute(&mute);
	fill(pair.fd);
	for (int kind = POLL_READ; kind < KINDS; kind++) {
		int fd = kind == CONNECT ? weft__sys->socket(AF_INET, SOCK_STREAM, 0) : pair.fd;
		bool accepts = kind == ACCEPT || kind == ACCEPT_MULTI;
		uint64_t deadline = kind % 2 ? WEFT_NOWAIT : weft_after(WEFT_MS);
		struct probe p = { .addr = mute.addr };
		struct sockaddr_in addr;

		if (accepts)
			fd = make_listener(1, &addr);
		OK(weft_op_init(&p.op, loop, on_done, &p));
		OK(try_start(&p, kind, fd, deadline));
		OK(weft_loop_run(loop));
		CHECK_ENDED(&p, WEFT_ETIMEDOUT);
		CHECK(weft_now() >= deadline);
		if (fd != pair.fd)
			OK(close(fd));
	}
	close_mute(&mute);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

/* --- stopping, and ops in the background -------------------------------- */

static void
stop_loop(void *arg)
{
	weft_loop_shutdown(arg);
}

TEST(every_kind_of_op_ends_once_when_canceled_or_when_its_loop_stops)
{
	for (int stops = 0; stops < 2; stops++) {
		weft_loop *loop = make();
		static struct probe probes[KINDS];
		struct pair pairs[KINDS];
		struct mute mute;

		make_mute(&mute);
		memset(probes, 0, sizeof(probes));
		for (int i = 0; i < KINDS; i++) {
			pairs[i] = make_pair();
			probes[i].addr = mute.addr;
			fill(pairs[i].fd);
			if (i >= ACCEPT && i != SEND && i != SENDMSG) {
				OK(close(pairs[i].fd));
				pairs[i].fd = i == CONNECT
				                      ? weft__sys->socket(AF_INET, SOCK_STREAM, 0)
				                      : make_listener(1, &probes[i].addr);
			}
			start(loop, &probes[i], i, pairs[i].fd);
			weft_op_set_background(&probes[i].op, i % 2);
		}
		turn(loop);
		if (stops)
			OK(weft_loop_post(loop, stop_loop, loop));
		for (int i = 0; !stops && i < KINDS; i++)
			weft_op_cancel(&probes[i].op);
		while (weft_loop_run_once(loop, WEFT_NOWAIT) == 1)
			;
		for (int i = 0; i < KINDS; i++) {
			CHECK_ENDED(&probes[i], stops ? WEFT_ESHUTDOWN : WEFT_ECANCELED);
			close_pair(pairs[i]);
		}
		close_mute(&mute);
		OK(weft_loop_free(loop));
	}
}

TEST(background_ops_on_descriptors_do_not_keep_the_loop_alive)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe p = { 0 };

	start(loop, &p, RECV, pair.fd);
	weft_op_set_background(&p.op, true);
	OK(weft_loop_run(loop));
	CHECK_EQ(p.results, 0);
	put(pair.peer, "x");
	turn(loop);
	CHECK_ENDED(&p, 1);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

static bool
is_uring(void)
{
	const char *backend = getenv("WEFT_BACKEND");

	return backend && strcmp(backend, "uring") == 0;
}

static void *
run_elsewhere(void *arg)
{
	return (void *)(intptr_t)weft_loop_run(arg);
}

TEST(a_loop_runs_on_another_thread_or_reports_that_it_is_bound)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct probe p = { 0 };
	pthread_t thread;
	void *rc;

	if (test_misuse_aborts) { /* it would abort because the loop is bound to its thread */
		close_pair(pair);
		OK(weft_loop_free(loop));
		return;
	}
	start(loop, &p, RECV, pair.fd);
	put(pair.peer, "x");
	OK(weft_loop_run(loop));
	OK(pthread_create(&thread, NULL, run_elsewhere, loop));
	OK(pthread_join(thread, &rc));
	CHECK_EQ((intptr_t)rc, is_uring() ? WEFT_EWRONGLOOP : 0);
	OK(weft_loop_run(loop));
	close_pair(pair);
	OK(weft_loop_free(loop));
}
