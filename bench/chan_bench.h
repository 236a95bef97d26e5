/* chan_bench.h - values of 8 bytes from one threadlet to another, on one thread.
 *
 * Each implementation defines the following and includes this file last:
 *
 *   sched_run(measure)             call measure() where it can suspend
 *   chan_open(capacity)            called by measure(): make the channel
 *   chan_close()                   free it, after everything is received
 *   sender_start(fn)               run fn(NULL) in a new threadlet
 *   sender_join()                  wait for it
 *   chan_send(x), chan_recv()      may suspend
 *
 * The rows are CPU time of the process per value, for sending and receiving it.
 * chan.unbuffered suspends for each value; chan.buffered (64 values) usually does not.
 * Both call send and receive directly from the threadlet's function.  chan.unbuffered.deep
 * is chan.unbuffered with three more frames on either end, where the processor mispredicts
 * returns after a switch, for every implementation.
 */
#include "depth.h"

#define CHAN_VALUES   3000000
#define CHAN_BUFFERED 64

static uint64_t chan_count;

static inline uint64_t
send_leaf(uint64_t x)
{
	chan_send(x);
	return x + 1;
}

static inline uint64_t
recv_leaf(uint64_t sum)
{
	return sum + chan_recv();
}

DEPTH(send_down, send_leaf)
DEPTH(recv_down, recv_leaf)

static int
send_deep(void *arg)
{
	uint64_t x = 0;

	(void)arg;
	while (x < chan_count)
		x = send_down(x);
	return 0;
}

static uint64_t
recv_deep(void)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < chan_count; i++)
		sum = recv_down(sum);
	return sum;
}

static int
send_plain(void *arg)
{
	(void)arg;
	for (uint64_t x = 0; x < chan_count; x++)
		chan_send(x);
	return 0;
}

static uint64_t
recv_plain(void)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < chan_count; i++)
		sum += chan_recv();
	return sum;
}

/* CPU time for `count` values from `send` to `recv`. */
static uint64_t
chan_pass(uint64_t count, int (*send)(void *arg), uint64_t (*recv)(void))
{
	uint64_t begin = bench_process_ns(), sum;

	chan_count = count;
	sender_start(send);
	sum = recv();
	sender_join();
	BENCH_CHECK(sum == count * (count - 1) / 2);
	return bench_process_ns() - begin;
}

static double
chan_measure(size_t capacity, int (*send)(void *arg), uint64_t (*recv)(void))
{
	uint64_t ns;

	chan_open(capacity);
	(void)chan_pass(CHAN_VALUES / 10, send, recv);
	ns = chan_pass(CHAN_VALUES, send, recv);
	chan_close();
	return (double)ns / CHAN_VALUES;
}

static double
unbuffered_measure(void)
{
	return chan_measure(0, send_plain, recv_plain);
}

static double
chan_unbuffered(void)
{
	return sched_run(unbuffered_measure);
}

static double
deep_measure(void)
{
	return chan_measure(0, send_deep, recv_deep);
}

static double
chan_unbuffered_deep(void)
{
	return sched_run(deep_measure);
}

static double
buffered_measure(void)
{
	return chan_measure(CHAN_BUFFERED, send_plain, recv_plain);
}

static double
chan_buffered(void)
{
	return sched_run(buffered_measure);
}

static const struct bench_row chan_rows[] = {
	{ "chan.unbuffered", chan_unbuffered },
	{ "chan.unbuffered.deep", chan_unbuffered_deep },
	{ "chan.buffered", chan_buffered },
};

BENCH_MAIN(chan_rows)
