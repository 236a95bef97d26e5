/* heap.h - memory that is counted, so that it can be bounded; and what draws at random.
 *
 * Who gives memory back says its size: then a count is all that is kept of it.  After all was
 * given back the count is 0, which the tests and the fuzzer look at.
 */
#ifndef STORE_HEAP_H
#define STORE_HEAP_H

#include <stddef.h>
#include <stdint.h>
#include <weft/base.h>

struct heap {
	size_t   used, peak; /* bytes */
	uint64_t seed;       /* of hashes: a peer cannot know which names collide */
	uint64_t drawn;      /* state of heap_draw() */
};

_Noreturn void heap_failed(size_t size);

static inline void *
heap_take(struct heap *heap, size_t size)
{
	void *mem = weft_alloc(size);

	if (!mem)
		heap_failed(size);
	heap->used += size;
	if (heap->used > heap->peak)
		heap->peak = heap->used;
	return mem;
}

/* Accepts NULL with 0. */
static inline void
heap_give(struct heap *heap, void *mem, size_t size)
{
	heap->used -= size;
	weft_release(mem);
}

/* Zeroed. */
void *heap_new(struct heap *heap, size_t size);

/* Of another size, with as much of the content as fits; may move. */
void *heap_resize(struct heap *heap, void *mem, size_t from, size_t to);

/* A number at random. */
uint64_t heap_draw(struct heap *heap);

/* A number at random below `bound`, which is not 0. */
static inline size_t
heap_below(struct heap *heap, size_t bound)
{
	return (size_t)(((unsigned __int128)heap_draw(heap) * bound) >> 64);
}

#endif
