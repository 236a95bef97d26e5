/* counted.c - clocks for a program that callgrind runs, to be preloaded into it.
 *
 *   1. A reading of a CPU clock begins a count of instructions, the next one ends it and writes it
 *      to a file.  The two are COUNTED_NS apart, so that the program prints COUNTED_NS divided by
 *      its number of operations.  instructions.py divides the last count by that number.
 *   2. All other clocks advance by STEP_NS with each reading and by the length of each sleep, and
 *      not otherwise.  So the program takes the same decisions in each run, at any speed.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#define NS_PER_S   1000000000
#define COUNTED_NS (UINT64_C(1000000) * NS_PER_S) /* instructions.py knows it, too */
#define STEP_NS    25

static uint64_t now_ns = UINT64_C(1000) * NS_PER_S;

static uint64_t
pass(uint64_t ns)
{
	return __atomic_add_fetch(&now_ns, ns, __ATOMIC_RELAXED);
}

static uint64_t
read_cpu_clock(void)
{
	static bool counting;

	counting = !counting;
	if (counting) {
		CALLGRIND_START_INSTRUMENTATION;
		CALLGRIND_ZERO_STATS;
		return 0;
	}
	CALLGRIND_DUMP_STATS;
	CALLGRIND_STOP_INSTRUMENTATION;
	return COUNTED_NS;
}

int
clock_gettime(clockid_t clock, struct timespec *out)
{
	uint64_t ns = clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID
	                      ? read_cpu_clock()
	                      : pass(STEP_NS);

	*out = (struct timespec){ (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };
	return 0;
}

int
clock_nanosleep(clockid_t clock, int flags, const struct timespec *delay, struct timespec *left)
{
	uint64_t ns = (uint64_t)delay->tv_sec * NS_PER_S + (uint64_t)delay->tv_nsec;
	uint64_t now = pass(0);

	(void)clock;
	(void)left;
	if (!(flags & TIMER_ABSTIME))
		(void)pass(ns);
	else if (ns > now)
		(void)pass(ns - now);
	return 0;
}

int
gettimeofday(struct timeval *restrict out, void *restrict zone)
{
	uint64_t ns = pass(STEP_NS);

	(void)zone;
	*out = (struct timeval){ (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S / 1000) };
	return 0;
}
