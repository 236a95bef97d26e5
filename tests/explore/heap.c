/* heap.c - tracked memory: every block is known, live or freed.
 *
 * Blocks are cut from one arena; a map gives for each 16 bytes of it the block they belong to.
 * Between two blocks, 16 bytes belong to none.  A hooked access to the arena must be within a
 * live block.  A freed block keeps its addresses, so that a late access is recognized.  Only a
 * model that sets `reuse` gets an address again, the newest block first: that exposes ABA
 * errors.
 *
 *   1. Block 1 is the state of the model.
 *   2. All accesses to a block must happen before its release.  So a use that could come too
 *      late in another schedule already fails in this one.
 *   3. New memory is filled with 0xa5, except the state.
 *
 * The explorer does not see accesses that are not hooked.  alloc and release have no source
 * line; the report names the thread's last hooked access before the call.
 */
#include <stdio.h>
#include <string.h>
#include "internal.h"

enum { GRAIN = 16, ARENA_BYTES = 1024 * 1024, BLOCKS_MAX = 1024 };

struct block {
	uintptr_t addr;
	size_t size;
	bool living;
	uint8_t maker;
	uint8_t releaser;
	struct explore__place made;     /* last hooked access before alloc */
	struct explore__place released; /* last hooked access before release */
	struct explore__view *view;     /* of the releaser, for `reuse` */
};

static struct {
	_Alignas(GRAIN) unsigned char arena[ARENA_BYTES];
	uint16_t map[ARENA_BYTES / GRAIN];
	struct block blocks[BLOCKS_MAX];
	size_t used; /* bytes of the arena */
	int count;   /* block 0 is not used */
} heap;

void
explore__heap_begin(void)
{
	memset(heap.map, 0, heap.used / GRAIN * sizeof heap.map[0]);
	heap.used = 0;
	heap.count = 1;
}

bool
explore__heap_owns(uintptr_t addr)
{
	return addr - (uintptr_t)heap.arena < ARENA_BYTES;
}

static size_t
rounded(size_t size)
{
	return (size + (size == 0) + GRAIN - 1) / GRAIN * GRAIN;
}

static struct block *
block_reused(size_t size)
{
	for (int i = heap.count; i-- > 1;) {
		struct block *block = &heap.blocks[i];

		if (!block->living && rounded(block->size) == rounded(size)) {
			/* The release happens before the next alloc of the same memory. */
			explore__view_join(&explore__self()->view, block->view);
			return block;
		}
	}
	return NULL;
}

static struct block *
block_new(size_t size)
{
	size_t bytes = rounded(size);
	struct block *block;

	if (heap.count == BLOCKS_MAX || bytes + GRAIN > ARENA_BYTES - heap.used)
		explore_fail("the model allocates too much");
	block = &heap.blocks[heap.count];
	block->addr = (uintptr_t)heap.arena + heap.used;
	for (size_t i = 0; i < bytes / GRAIN; i++)
		heap.map[heap.used / GRAIN + i] = (uint16_t)heap.count;
	heap.count++;
	heap.used += bytes + GRAIN;
	return block;
}

static void
heap_point(void)
{
	struct explore__op op = { .kind = EXPLORE__HEAP, .addr = (uintptr_t)&heap };

	if (explore__run.model->reuse)
		explore__point(&op);
}

void *
explore__heap_alloc(size_t size)
{
	const struct explore__slot *self = explore__self();
	struct block *block = NULL;

	explore__enter();
	heap_point();
	if (explore__run.model->reuse)
		block = block_reused(size);
	if (!block)
		block = block_new(size);
	block->size = size;
	block->living = true;
	block->maker = (uint8_t)explore__run.current;
	block->made = self->last;
	memset((void *)block->addr, 0xa5, size);
	if (explore__run.tracing)
		explore__trace(EXPLORE__NOTE, self->last, "alloc of %zu bytes: block %d", size,
		               (int)(block - heap.blocks));
	return (void *)block->addr;
}

static struct block *
block_find(uintptr_t addr)
{
	size_t at = (addr - (uintptr_t)heap.arena) / GRAIN;

	return explore__heap_owns(addr) && heap.map[at] != 0 ? &heap.blocks[heap.map[at]] : NULL;
}

void
explore__heap_release(void *mem)
{
	const struct explore__slot *self = explore__self();
	uintptr_t addr = (uintptr_t)mem;
	struct block *block;

	if (!mem)
		return;
	explore__enter();
	heap_point();
	block = block_find(addr);
	if (!block || block->addr != addr)
		explore_fail("release of what alloc has not returned");
	if (!block->living)
		explore_fail("block %d is released twice: by %s after %s:%d",
		             (int)(block - heap.blocks), explore__slot_name(block->releaser),
		             explore__base_name(block->released.file), block->released.line);
	if (explore__run.tracing)
		explore__trace(EXPLORE__NOTE, self->last, "release of block %d",
		               (int)(block - heap.blocks));
	explore__atoms_released(addr, block->size); /* rule 2 */
	explore__plain_released(addr, block->size);
	block->living = false;
	block->releaser = (uint8_t)explore__run.current;
	block->released = self->last;
	if (explore__run.model->reuse)
		block->view = explore__view_publish();
}

void *
explore__heap_resize(void *mem, size_t size)
{
	struct block *old = mem ? block_find((uintptr_t)mem) : NULL;
	void *out = explore__heap_alloc(size);

	if (old)
		memcpy(out, mem, old->size < size ? old->size : size);
	explore__heap_release(mem);
	return out;
}

/* On another thread's stack: addresses below that thread's frames are no longer in use. */
static void
check_stack(uintptr_t addr, struct explore__place place)
{
	int slot;

	if (explore__on_stack(addr, &slot) && slot != explore__run.current
	    && addr < explore__run.slots[slot].edge)
		explore_fail("%s at %s:%d uses a stack frame that %s has left",
		             explore__slot_name(explore__run.current),
		             explore__base_name(place.file), place.line, explore__slot_name(slot));
}

void
explore__heap_check(uintptr_t addr, size_t size, struct explore__place place)
{
	const struct block *block;
	const char *who = explore__slot_name(explore__run.current);

	if (!explore__heap_owns(addr)) {
		check_stack(addr, place);
		return;
	}
	block = block_find(addr);
	if (!block)
		explore_fail("%s at %s:%d uses memory outside of any block", who,
		             explore__base_name(place.file), place.line);
	if (!block->living)
		explore_fail("use after free: %s at %s:%d uses block %d, freed by %s after %s:%d",
		             who, explore__base_name(place.file), place.line,
		             (int)(block - heap.blocks), explore__slot_name(block->releaser),
		             explore__base_name(block->released.file), block->released.line);
	if (addr + size > block->addr + block->size)
		explore_fail("%s at %s:%d uses memory past the end of block %d", who,
		             explore__base_name(place.file), place.line,
		             (int)(block - heap.blocks));
}

/* At the end, only the state may still be allocated. */
void
explore__heap_end(void)
{
	for (int i = 2; i < heap.count; i++) {
		const struct block *block = &heap.blocks[i];

		if (block->living)
			explore_fail("leak: block %d of %zu bytes, allocated by %s "
			             "after %s:%d, is not released",
			             i, block->size, explore__slot_name(block->maker),
			             explore__base_name(block->made.file), block->made.line);
	}
}

/* Name an address of the arena, for the schedule. */
void
explore__heap_label(uintptr_t addr, char *text, size_t size)
{
	const struct block *block = block_find(addr);

	if (!block)
		snprintf(text, size, "arena+%zu", (size_t)(addr - (uintptr_t)heap.arena));
	else if (block == &heap.blocks[1])
		snprintf(text, size, "state+%zu", (size_t)(addr - block->addr));
	else
		snprintf(text, size, "block %d+%zu", (int)(block - heap.blocks),
		         (size_t)(addr - block->addr));
}
