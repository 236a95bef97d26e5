/* stack.c - the simulated mappings for stacks.
 *
 * The pages are real, so that guards are, too; what is simulated is that there are
 * none, and what is checked is that each is given back, once and whole.
 *
 *   1. maps[] holds what the library has now, in no order.
 *   2. Guards and discards lie within one mapping.
 *
 * A guard is not a scheduling point, and a discard neither: they touch what nobody
 * else has yet, or any more.
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

/* There if this is built with ASan, which remembers of the pages what a run that failed has
 * left there. */
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
