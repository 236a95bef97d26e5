/* memory.h - counting the memory that weft holds.
 *
 * This is the memory that the library has allocated and not freed, without kernel memory and
 * mapped rings.
 */
#ifndef WEFT_BENCH_MEMORY_H
#define WEFT_BENCH_MEMORY_H

#include <stddef.h>
#include <weft/base.h>
#include "bench.h"

/* In front of each block; aligned like malloc's blocks. */
struct head {
	_Alignas(max_align_t) size_t size;
};

static size_t held_bytes; /* requested sizes, without heads */

static inline void *
counted_resize(void *arg, void *mem, size_t size)
{
	struct head *old = mem ? (struct head *)mem - 1 : NULL;
	size_t before = old ? old->size : 0;
	struct head *head = realloc(old, sizeof(*head) + size);

	(void)arg;
	if (!head)
		return NULL;
	head->size = size;
	held_bytes += size - before;
	return head + 1;
}

static inline void *
counted_alloc(void *arg, size_t size)
{
	return counted_resize(arg, NULL, size);
}

static inline void
counted_release(void *arg, void *mem)
{
	struct head *head = (struct head *)mem - 1;

	(void)arg;
	if (!mem)
		return;
	held_bytes -= head->size;
	free(head);
}

static inline void
count_memory(void)
{
	weft_hooks hooks = { .alloc = counted_alloc,
		             .resize = counted_resize,
		             .release = counted_release };

	BENCH_CHECK(weft_set_hooks(&hooks) == 0);
}

#endif
