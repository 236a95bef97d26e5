/* echo_weft.c - the echo server with ops: multishot receive, send, close. */
#include "bench.h"
#include <errno.h>
#include <weft/loop.h>
#include <weft/op.h>

struct peer {
	weft_op recv, send;
	int fd;
	size_t size;
	char buf[4096]; /* bytes to send */
};

static weft_loop *loop;
static weft_op accepting;
static int open_peers, seen_peers;

static void
on_closed(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	BENCH_CHECK(result == 0);
	free(arg);
	if (--open_peers == 0 && seen_peers > 0)
		weft_op_cancel(&accepting);
}

static void
send_on(struct peer *peer)
{
	BENCH_CHECK(weft_op_send(&peer->send, peer->fd, peer->buf, peer->size, 0, WEFT_NEVER) == 0);
}

static void
on_sent(weft_op *op, int64_t result, void *arg)
{
	struct peer *peer = arg;

	(void)op;
	if (result < 0)
		return;
	peer->size -= (size_t)result;
	memmove(peer->buf, peer->buf + result, peer->size);
	if (peer->size > 0)
		send_on(peer);
}

static void
on_received(weft_op *op, int64_t result, void *arg)
{
	struct peer *peer = arg;

	if (result > 0) {
		BENCH_CHECK(peer->size + (size_t)result <= sizeof(peer->buf));
		memcpy(peer->buf + peer->size, weft_op_data(op), (size_t)result);
		peer->size += (size_t)result;
		if (!peer->send.pending)
			send_on(peer);
	}
	if (!op->more) {
		weft_op_init(&peer->recv, loop, on_closed, peer);
		BENCH_CHECK(weft_op_close(&peer->recv, peer->fd) == 0);
	}
}

static void
on_accepted(weft_op *op, int64_t result, void *arg)
{
	struct peer *peer;

	(void)op, (void)arg;
	if (result < 0)
		return;
	peer = calloc(1, sizeof(*peer));
	BENCH_CHECK(peer);
	peer->fd = (int)result;
	open_peers++;
	seen_peers++;
	weft_op_init(&peer->recv, loop, on_received, peer);
	weft_op_init(&peer->send, loop, on_sent, peer);
	BENCH_CHECK(weft_op_recv_multi(&peer->recv, peer->fd, WEFT_NEVER) == 0);
}

static void
echo_open(int listener, const char *backend)
{
	weft_loop_opts opts = { .backend = backend };

	loop = weft_loop_new(&opts);
	BENCH_CHECK(loop);
	weft_op_init(&accepting, loop, on_accepted, NULL);
	BENCH_CHECK(weft_op_accept(&accepting, listener, WEFT_MULTI, WEFT_NEVER) == 0);
}

static void
echo_run(void)
{
	BENCH_CHECK(weft_loop_run(loop) == 0);
}

#include "echo_bench.h"
