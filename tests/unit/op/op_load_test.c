/* op_load_test.c - ops under load: many ops, flooded ops, no free descriptors.
 *
 * All traffic is between sockets of this process, so the tests choose when a descriptor is
 * ready.  An iteration with WEFT_NOWAIT polls the descriptors once.  Where iterations are counted,
 * they represent time.
 */
#include <sys/resource.h>
#include <unistd.h>
#include "unit/probe.h"

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

/* Refill the socket after every read, so that it is always readable. */
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
	struct probe peers[2] = { { .fd = floods[0].peer }, { .fd = floods[1].peer } };
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

static int held[8], held_count;

static void
hold_accepted(struct probe *p)
{
	if (p->result >= 0)
		held[held_count++ % 8] = (int)p->result;
}

TEST(an_accept_without_free_descriptors_neither_spins_nor_gives_up)
{
	struct rlimit limit, low;
	struct sockaddr_in addr;
	struct probe a = { .act = hold_accepted }, s = { 0 };
	int listener = make_listener(8, &addr), clients[8], closed = 0;
	weft_loop *loop;
	int64_t before;

	count_calls();
	loop = make();
	held_count = 0;
	OK(weft_op_init(&s.op, loop, on_done, &s));
	OK(weft_op_poll(&s.op, listener, WEFT_READABLE, WEFT_NOWAIT));
	OK(weft_loop_run(loop)); /* so that the loop has opened all that it needs */
	for (int i = 0; i < 8; i++)
		clients[i] = make_client(&addr);
	OK(getrlimit(RLIMIT_NOFILE, &limit));
	low = limit;
	low.rlim_cur = (rlim_t)clients[7] + 3; /* room for two more */
	OK(setrlimit(RLIMIT_NOFILE, &low));
	start(loop, &a, ACCEPT_MULTI, listener);
	while (held_count < 2)
		turn(loop);
	s.ends = 0;
	before = counted(&calls.waits) + counted(&calls.accepts);
	OK(weft_op_sleep(&s.op, weft_after(50 * WEFT_MS)));
	while (s.ends == 0)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	CHECK_EQ(held_count, 2);
	CHECK_EQ(a.ends, 0);
	CHECK(counted(&calls.waits) + counted(&calls.accepts) - before < 100);
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
	count_no_more();
}
