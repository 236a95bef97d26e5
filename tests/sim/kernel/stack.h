/* stack.h - memory for stacks: real pages, every mapping known.
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

/* How many mappings there are; and give them back. */
size_t sim_stack_count(void);
void   sim_stack_reset(void);

#endif
