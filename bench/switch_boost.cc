/* switch_boost.cc - two Boost fibers and this_fiber::yield().
 *
 * The scheduler is the default, round_robin, which is Boost's cheapest for one thread.
 */
#include "bench.h"
#include <boost/fiber/all.hpp>

static inline void
switch_yield()
{
	boost::this_fiber::yield();
}

static void
pair_run(int (*fn)(void *arg))
{
	boost::fibers::fiber one(fn, nullptr), two(fn, nullptr);

	one.join();
	two.join();
}

static double
sched_run(double (*measure)(void))
{
	return measure();
}

#include "switch_bench.h"
