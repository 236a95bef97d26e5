/* stack.h - memory for stacks: real pages, every mapping tracked.
 *
 * Needs: fault.h, trace.h, schedule.h.
 */
#ifndef WEFT_SIM_STACK_H
#define WEFT_SIM_STACK_H

#include <stddef.h>

/* Members of the sys table. */
void *sim_stack_map(size_t size);
void  sim_stack_unmap(void *mem, size_t size);
int   sim_stack_guard(void *mem, size_t size);
void  sim_stack_discard(void *mem, size_t size);
size_t sim_stack_touched(void *mem, size_t size);

/* The number of mappings; and unmap all of them. */
size_t sim_stack_count(void);
void   sim_stack_reset(void);

#endif
