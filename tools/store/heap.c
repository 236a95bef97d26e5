/* heap.c - an allocator that counts memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "heap.h"

_Noreturn void
heap_failed(size_t size)
{
	fprintf(stderr, "store: out of memory: cannot allocate %zu bytes\n", size);
	abort();
}

void *
heap_new(struct heap *heap, size_t size)
{
	return memset(heap_take(heap, size), 0, size);
}

void *
heap_resize(struct heap *heap, void *mem, size_t from, size_t to)
{
	void *other = heap_take(heap, to);

	if (mem)
		memcpy(other, mem, from < to ? from : to);
	heap_give(heap, mem, from);
	return other;
}

/* A counter with an odd increment, mixed by two multiplications. */
uint64_t
heap_draw(struct heap *heap)
{
	uint64_t bits = heap->drawn += UINT64_C(0x9e3779b97f4a7c15);

	bits = (bits ^ (bits >> 32)) * UINT64_C(0xd6e8feb86659fd93);
	bits = (bits ^ (bits >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
	return bits ^ (bits >> 32);
}
