/* heap.c - the simulated allocator.
 *
 * Each block has a header that links it to all other live blocks, and a few bytes after its end
 * that must not change (the fence).  New memory is filled with 0xa5.  A freed block is filled
 * with 0xdb and kept for a while in a quarantine (`pen`), to detect late writes.  resize always
 * moves.  A build with ASan leaves the fence and the quarantine to ASan.
 *
 *   1. `blocks` is the list of all live blocks, newest first.
 *   2. `bytes` is the sum of their sizes.
 *   3. A block in the quarantine contains only FREED until it leaves.
 *
 * An allocation is not a scheduling point: it touches nothing shared.
 */
#include <assert.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim/run/fault.h"
#include "sim/kernel/heap.h"
#include "sim/run/schedule.h"
#include "sim/run/sim.h"
#include "sim/run/trace.h"

enum { FRESH = 0xa5, FREED = 0xdb, FENCE = 0x7c, FENCE_BYTES = 16, PEN = 128 };

#define MAGIC UINT64_C(0x77656674626c6f63)

struct block {
	alignas(16) struct block *next;
	struct block *prev;
	size_t size;
	uint64_t number; /* number of the allocation, from 1 */
	uint64_t magic;  /* MAGIC ^ number while live */
	uint32_t thread;
};

static struct {
	struct block *blocks;
	size_t bytes;
	uint64_t number;
	struct block *pen[PEN];
	uint32_t pen_at;
} memory;

static unsigned char *
inside(struct block *block)
{
	return (unsigned char *)(block + 1);
}

static size_t
fence_bytes(void)
{
	return SIM_MEMORY_WATCHED ? 0 : FENCE_BYTES;
}

static int
is_full_of(const unsigned char *at, int byte, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (at[i] != byte)
			return 0;
	return 1;
}

static struct block *
block_new(size_t size)
{
	struct block *block = malloc(sizeof(*block) + size + fence_bytes());

	if (!block)
		abort(); /* the simulator's own memory is not tested */
	memory.number++;
	*block = (struct block){
		.next = memory.blocks,
		.size = size,
		.number = memory.number,
		.magic = MAGIC ^ memory.number,
		.thread = sim_thread_id(),
	};
	memset(inside(block), FRESH, size);
	memset(inside(block) + size, FENCE, fence_bytes());
	if (memory.blocks)
		memory.blocks->prev = block;
	memory.blocks = block;
	memory.bytes += size;
	return block;
}

static void
unlink_block(struct block *block)
{
	if (block->next)
		block->next->prev = block->prev;
	if (block->prev)
		block->prev->next = block->next;
	else
		memory.blocks = block->next;
	memory.bytes -= block->size;
}

/* Remove a block from the quarantine and free it.  True: it was written to after it was freed. */
static bool
leave_pen(uint32_t at)
{
	struct block *block = memory.pen[at];
	bool spoiled = block && !is_full_of(inside(block), FREED, block->size);

	memory.pen[at] = NULL;
	free(block);
	return spoiled;
}

static void
block_free(struct block *block)
{
	uint32_t at = memory.pen_at++ % PEN;
	bool spoiled = leave_pen(at);

	block->magic = ~MAGIC;
	if (SIM_MEMORY_WATCHED) {
		free(block);
		return;
	}
	memset(inside(block), FREED, block->size);
	memory.pen[at] = block;
	if (spoiled)
		sim_fail(SIM_SPOILED_TEXT);
}

static struct block *
block_of(void *mem, const char *verb)
{
	struct block *block = (struct block *)mem - 1;

	if (block->magic != (MAGIC ^ block->number))
		sim_fail("%s memory that is not live", verb);
	if (!is_full_of(inside(block) + block->size, FENCE, fence_bytes()))
		sim_fail("writes past the end of allocation %llu, %zu bytes",
		         (unsigned long long)block->number, block->size);
	return block;
}

void *
sim_alloc(size_t size)
{
	struct block *block = NULL;

	if (!sim_fault(SIM_ALLOC, SIM_CALL_alloc))
		block = block_new(size);
	sim_trace(SIM_CALL_alloc, (int64_t)size, 0, block ? (int64_t)block->number : 0);
	return block ? inside(block) : NULL;
}

void *
sim_resize(void *mem, size_t size)
{
	struct block *old, *block;

	if (!mem)
		return sim_alloc(size);
	old = block_of(mem, "resizes");
	if (sim_fault(SIM_ALLOC, SIM_CALL_resize)) {
		sim_trace(SIM_CALL_resize, (int64_t)old->number, (int64_t)size, 0);
		return NULL;
	}
	block = block_new(size);
	memcpy(inside(block), mem, size < old->size ? size : old->size);
	sim_trace(SIM_CALL_resize, (int64_t)old->number, (int64_t)size, (int64_t)block->number);
	unlink_block(old);
	block_free(old);
	return inside(block);
}

void
sim_release(void *mem)
{
	struct block *block;

	if (!mem)
		return;
	block = block_of(mem, "frees");
	sim_trace(SIM_CALL_release, (int64_t)block->number, 0, 0);
	unlink_block(block);
	block_free(block);
}

size_t
sim_count_bytes(void)
{
	return memory.bytes;
}

size_t
sim_memory_leaks(char *text, size_t size)
{
	size_t count = 0, at = 0;

	text[0] = '\0';
	for (struct block *b = memory.blocks; b; b = b->next) {
		int n;

		count++;
		if (at >= size)
			continue;
		n = snprintf(text + at, size - at, "  allocation %llu: %zu bytes, by thread %u\n",
		             (unsigned long long)b->number, b->size, b->thread);
		at += n > 0 ? (size_t)n : 0;
	}
	return count;
}

bool
sim_memory_spoiled(void)
{
	bool spoiled = false;

	for (uint32_t i = 0; i < PEN; i++)
		spoiled |= leave_pen(i);
	return spoiled;
}

void
sim_memory_reset(void)
{
	while (memory.blocks) {
		struct block *block = memory.blocks;

		unlink_block(block);
		free(block);
	}
	(void)sim_memory_spoiled();
	memory.number = 0;
	memory.pen_at = 0;
	assert(memory.bytes == 0);
}
