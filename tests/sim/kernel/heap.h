/* heap.h - the allocator of the table: every block known, watched and
 * counted.
 *
 * Needs: fault.h, trace.h.
 */
#ifndef WEFT_SIM_HEAP_H
#define WEFT_SIM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ASan sees a write behind a block, or into a freed one, better than we do. */
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

/* What is live, into `text`; returns the number of blocks. */
size_t sim_memory_leaks(char *text, size_t size);

/* Whether somebody wrote to freed memory; looks only once. */
bool sim_memory_spoiled(void);

#define SIM_SPOILED_TEXT "writes to memory after freeing it"

void sim_memory_reset(void);

#endif
