/* heap.h - an allocator that counts memory, so that it can be limited; and random numbers.
 *
 * The caller passes the size when it frees memory, so only a total is kept.  After everything is
 * freed the total is 0; the tests and the fuzzer check that.
 */
#ifndef STORE_HEAP_H
#define STORE_HEAP_H

#include <stddef.h>
#include <stdint.h>
#include <weft/base.h>

struct heap {
	size_t   used, peak; /* bytes */
	uint64_t seed;       /* of hashes: makes collisions unpredictable for a peer */
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

/* Accepts NULL with size 0. */
static inline void
heap_give(struct heap *heap, void *mem, size_t size)
{
	heap->used -= size;
	weft_release(mem);
}

/* Allocates zeroed memory. */
void *heap_new(struct heap *heap, size_t size);

/* Changes the size and keeps as much of the content as fits; may move the block. */
void *heap_resize(struct heap *heap, void *mem, size_t from, size_t to);

/* A random number. */
uint64_t heap_draw(struct heap *heap);

/* A random number below `bound`, which must not be 0. */
static inline size_t
heap_below(struct heap *heap, size_t bound)
{
	return (size_t)(((unsigned __int128)heap_draw(heap) * bound) >> 64);
}

#endif
