/* queue_weft.c - CPU time of a write that waits in the queue of a stream.
 *
 * Writes of 64 bytes are queued while the peer does not read; then all are sent.  queue_few.c
 * includes this file and makes the same number of writes with a short queue.
 */
#include "bench.h"
#include <errno.h>
#include <sys/socket.h>
#include <weft/loop.h>
#include <weft/op.h>
#include <weft/stream.h>

#ifndef QUEUED
#define QUEUED 1000000
#endif

#define WRITES 1000000
#define SIZE   64

struct one {
	weft_op op;
	weft_span span;
};

static weft_loop *loop;
static weft_stream *stream;
static int peer;
static uint64_t sent, received;

static void
on_sent(weft_op *op, int64_t result, void *arg)
{
	(void)op, (void)arg;
	BENCH_CHECK(result == SIZE);
	sent++;
}

static void
open_stream(void)
{
	int fds[2];

	BENCH_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	loop = weft_loop_new(NULL);
	BENCH_CHECK(loop);
	peer = fds[1];
	BENCH_CHECK(weft_stream_open_fd(fds[0], false, &stream) == 0);
	BENCH_CHECK(weft_stream_set(stream, "write_max", INT64_MAX) == 0);
}

/* Fill the socket, so that the first write also waits.  Returns the number of bytes. */
static uint64_t
fill(int fd)
{
	static const char block[4096];
	uint64_t size = 0;
	ssize_t n;

	while ((n = send(fd, block, sizeof(block), MSG_DONTWAIT)) > 0)
		size += (uint64_t)n;
	while (send(fd, block, 1, MSG_DONTWAIT) == 1)
		size++;
	return size;
}

static void
receive_all(uint64_t size)
{
	static char block[1 << 18];

	while (received < size) {
		ssize_t n = recv(peer, block, sizeof(block), MSG_DONTWAIT);

		BENCH_CHECK(n > 0 || errno == EAGAIN);
		received += n > 0 ? (uint64_t)n : 0;
		(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	}
}

static void
queue_and_send(struct one *ops, uint64_t count)
{
	static const char block[SIZE];
	uint64_t filled = fill(weft_stream_fd(stream));

	sent = received = 0;
	for (uint64_t i = 0; i < count; i++) {
		ops[i].span = (weft_span){ block, SIZE };
		weft_op_init(&ops[i].op, loop, on_sent, NULL);
		BENCH_CHECK(weft_stream_write_op(stream, &ops[i].span, 1, &ops[i].op, WEFT_NEVER)
		            >= 0);
	}
	receive_all(filled + count * SIZE);
	while (sent < count)
		(void)weft_loop_run_once(loop, WEFT_NOWAIT);
}

static double
queue_1e6(void)
{
	struct one *ops = bench_array(WRITES, sizeof(*ops));
	uint64_t start_ns;

	open_stream();
	start_ns = bench_cpu_ns();
	for (uint64_t i = 0; i < WRITES; i += QUEUED)
		queue_and_send(ops + i, QUEUED);
	return (double)(bench_cpu_ns() - start_ns) / WRITES;
}

static const struct bench_row queue_rows[] = {
	{ "stream.queue.1e6", queue_1e6 },
};

BENCH_MAIN(queue_rows)
