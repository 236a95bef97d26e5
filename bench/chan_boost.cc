/* chan_boost.cc - an unbuffered Boost channel between two fibers. */
#include "bench.h"
#include <boost/fiber/all.hpp>

using boost::fibers::channel_op_status;

static boost::fibers::unbuffered_channel<uint64_t> chan;
static boost::fibers::fiber sender;

static void
chan_open(size_t capacity)
{
	BENCH_CHECK(capacity == 0);
}

static void
chan_close()
{
	chan.close();
}

static void
sender_start(int (*fn)(void *arg))
{
	sender = boost::fibers::fiber(fn, nullptr);
}

static void
sender_join()
{
	sender.join();
}

static inline void
chan_send(uint64_t x)
{
	BENCH_CHECK(chan.push(x) == channel_op_status::success);
}

static inline uint64_t
chan_recv()
{
	uint64_t x;

	BENCH_CHECK(chan.pop(x) == channel_op_status::success);
	return x;
}

static double
sched_run(double (*measure)(void))
{
	return measure();
}

#include "chan_bench.h"
