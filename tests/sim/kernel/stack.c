/* stack.c - the simulated mappings for stacks.
 *
 * The pages are real, so guards work, too.  The simulation injects failed mappings, and checks
 * that each mapping is unmapped once and completely.
 *
 *   1. maps[] holds the mappings that the library has now, unordered.
 *   2. Guards and discards are within one mapping.
 *
 * A guard or a discard is not a scheduling point: it touches memory that no other thread uses.
 */
#include <errno.h>
#include "sim/kernel/stack.h"
#include "sim/run/fault.h"
#include "sim/run/schedule.h"
#include "sim/run/sim.h"
#include "sim/run/trace.h"

enum { MAPS_MAX = 256 };

static struct {
	char *mem;
	size_t size;
} maps[MAPS_MAX];

static size_t count;

static size_t
find(const char *mem, size_t size, const char *verb)
{
	for (size_t i = 0; i < count; i++)
		if (mem >= maps[i].mem && mem + size <= maps[i].mem + maps[i].size)
			return i;
	sim_fail("%s memory that is not mapped for stacks", verb);
}

/* Defined in a build with ASan.  ASan still has pages poisoned that a failed run has left. */
extern void
__asan_unpoison_memory_region(const volatile void *mem, size_t size) __attribute__((weak));

void *
sim_stack_map(size_t size)
{
	char *mem = NULL;

	sim_point(SIM_CALL_WEIGHT);
	if (count < MAPS_MAX && sim_fault_errno(SIM_CALL_stack_map) == 0)
		mem = weft__sys_real.stack_map(size);
	if (mem && __asan_unpoison_memory_region)
		__asan_unpoison_memory_region(mem, size);
	if (mem) {
		maps[count].mem = mem;
		maps[count++].size = size;
	}
	sim_trace(SIM_CALL_stack_map, (int64_t)size, 0, mem != NULL);
	return mem;
}

void
sim_stack_unmap(void *mem, size_t size)
{
	size_t at;

	sim_point(SIM_CALL_WEIGHT);
	at = find(mem, size, "unmaps");
	if (maps[at].size != size)
		sim_fail("unmaps %zu of %zu bytes", size, maps[at].size);
	maps[at] = maps[--count];
	weft__sys_real.stack_unmap(mem, size);
	sim_trace(SIM_CALL_stack_unmap, (int64_t)size, 0, 0);
}

int
sim_stack_guard(void *mem, size_t size)
{
	int rc = sim_fault_errno(SIM_CALL_stack_guard);

	(void)find(mem, size, "guards");
	if (rc == 0)
		rc = weft__sys_real.stack_guard(mem, size);
	sim_trace(SIM_CALL_stack_guard, (int64_t)size, 0, rc);
	return rc;
}

void
sim_stack_discard(void *mem, size_t size)
{
	(void)find(mem, size, "discards");
	weft__sys_real.stack_discard(mem, size);
	sim_trace(SIM_CALL_stack_discard, (int64_t)size, 0, 0);
}

size_t
sim_stack_touched(void *mem, size_t size)
{
	(void)find(mem, size, "looks at");
	return weft__sys_real.stack_touched(mem, size);
}

size_t
sim_stack_count(void)
{
	return count;
}

void
sim_stack_reset(void)
{
	while (count > 0) {
		count--;
		weft__sys_real.stack_unmap(maps[count].mem, maps[count].size);
	}
}
