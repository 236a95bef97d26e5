/* heap.h - the allocator of the table: tracks, checks and counts every block.
 *
 * Needs: fault.h, trace.h.
 */
#ifndef WEFT_SIM_HEAP_H
#define WEFT_SIM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ASan detects writes past a block, or to a freed block, better than this allocator does. */
#if defined(__SANITIZE_ADDRESS__)
#define SIM_MEMORY_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_MEMORY_WATCHED 1
#endif
#endif
#ifndef SIM_MEMORY_WATCHED
#define SIM_MEMORY_WATCHED 0
#endif

void *sim_alloc(size_t size);
void *sim_resize(void *mem, size_t size);
void  sim_release(void *mem);

/* Describe the live blocks in `text`; returns their number. */
size_t sim_memory_leaks(char *text, size_t size);

/* Was freed memory written to?  The check consumes its data: a second call returns false. */
bool sim_memory_spoiled(void);

#define SIM_SPOILED_TEXT "writes to memory after freeing it"

void sim_memory_reset(void);

#endif
