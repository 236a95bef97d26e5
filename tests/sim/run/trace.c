/* trace.c - the trace's hash, and its lines.
 *
 * Each line is (time, thread, call, two arguments, result), and each number is mixed into the
 * hash.  Pointers are never arguments: a buffer is represented by its size, an event by its
 * descriptor, a word of memory by its value.
 *
 *   1. Printing does not change the run.
 */
#include <stdio.h>
#include "sim/kernel/clock.h"
#include "sim/run/rng.h"
#include "sim/run/schedule.h"
#include "sim/run/trace.h"

#define NAME(name) #name,
const char *const sim_call_names[SIM_CALL_COUNT] = { SIM_CALLS(NAME) };
#undef NAME

static struct {
	uint64_t hash;
	uint64_t calls;
	bool print;
} trace;

void
sim_trace_reset(bool print)
{
	trace.hash = 0;
	trace.calls = 0;
	trace.print = print;
}

uint64_t
sim_trace_hash(void)
{
	return trace.hash;
}

uint64_t
sim_trace_calls(void)
{
	return trace.calls;
}

static void
print_line(enum sim_call call, int64_t a, int64_t b, int64_t rc)
{
	(void)printf("%16llu  t%u %-8s %s(%lld, %lld) = %lld\n",
	             (unsigned long long)sim_clock.now_ns, sim_thread_id(), sim_thread_name(),
	             sim_call_names[call], (long long)a, (long long)b, (long long)rc);
}

void
sim_trace(enum sim_call call, int64_t a, int64_t b, int64_t rc)
{
	uint64_t hash = trace.hash;

	hash = sim_mix(hash ^ sim_clock.now_ns, ((uint64_t)sim_thread_id() << 8) | (uint64_t)call);
	hash = sim_mix(hash ^ (uint64_t)a, (uint64_t)b);
	trace.hash = sim_mix(hash, (uint64_t)rc);
	if (call < SIM_CALL_packet)
		trace.calls++;
	if (trace.print)
		print_line(call, a, b, rc);
}
