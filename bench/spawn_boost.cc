/* spawn_boost.cc - a Boost fiber on a pooled stack, and fiber::join().
 *
 * launch::dispatch, which enters the fiber immediately, is the cheaper of its two launch
 * policies.
 */
#include "bench.h"
#include <boost/fiber/all.hpp>

static uint64_t spawn_ran;
static boost::fibers::pooled_fixedsize_stack stacks;

static inline void
spawn_join()
{
	boost::fibers::fiber fiber(boost::fibers::launch::dispatch, std::allocator_arg, stacks,
	                           [] { spawn_ran++; });

	fiber.join();
}

static double
sched_run(double (*measure)(void))
{
	return measure();
}

#include "spawn_bench.h"
