/* http_memory.c - per-loop slabs, and arenas, which are freed all at once.
 *
 * Slabs have one size, and each loop has its own spare slabs: taking a spare one needs a few
 * instructions and no lock.  An allocation that does not fit in the rest of an arena's slab
 * comes from the allocator and is freed with the arena.
 */
#include "http/message/exchange.h"
#include <weft/embed.h>
#include <weft/loop.h>

static int key; /* atomic, written once */

static void
http_memory_drop(void *arg)
{
	struct weft__http_local *local = arg;

	while (local->spare) {
		struct weft__http_slab *slab = local->spare;

		local->spare = slab->next;
		weft_release(slab);
	}
	weft_release(local);
}

/* Two loops that create the key at the same time waste one key.  But neither has to wait, which
 * a canceled caller could not do. */
static int
find_key(void)
{
	int found = __atomic_load_n(&key, __ATOMIC_ACQUIRE), made;

	if (found)
		return found;
	made = weft_key_new(http_memory_drop);
	if (made < 0)
		return made;
	return __atomic_compare_exchange_n(&key, &found, made, false, __ATOMIC_ACQ_REL,
	                                   __ATOMIC_ACQUIRE)
	               ? made
	               : found;
}

struct weft__http_local *
weft__http_local(void)
{
	struct weft__http_local *local;
	int at = find_key();

	if (at < 0)
		return NULL;
	local = weft_loop_local_get(NULL, at);
	if (local)
		return local;
	local = weft_alloc(sizeof(*local));
	if (!local)
		return NULL;
	memset(local, 0, sizeof(*local));
	if (weft_loop_local_set(NULL, at, local) < 0) {
		weft_release(local);
		return NULL;
	}
	return local;
}

void *
weft__http_slab_take(struct weft__http_local *local)
{
	struct weft__http_slab *slab = local->spare;

	if (!slab)
		return weft_alloc(WEFT__HTTP_SLAB);
	local->spare = slab->next;
	local->spare_count--;
	return slab;
}

void
weft__http_slab_give(struct weft__http_local *local, void *mem)
{
	struct weft__http_slab *slab = mem;

	if (!slab)
		return;
	if (local->spare_count == WEFT__HTTP_SPARE) {
		weft_release(slab);
		return;
	}
	slab->next = local->spare;
	local->spare = slab;
	local->spare_count++;
}

/* --- arenas ---------------------------------------------------------------- */

void *
weft__http_arena_take(struct weft__http_arena *arena, size_t size)
{
	struct weft__http_block *block;
	char *at = arena->at;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + 7) & ~(size_t)7;
	if (size <= (size_t)(arena->end - at)) {
		arena->at += size;
		return at;
	}
	block = weft_alloc(sizeof(*block) + size);
	if (!block)
		return NULL;
	block->next = arena->blocks;
	arena->blocks = block;
	return block + 1;
}

void
weft__http_arena_clear(struct weft__http_arena *arena)
{
	while (arena->blocks) {
		struct weft__http_block *block = arena->blocks;

		arena->blocks = block->next;
		weft_release(block);
	}
}

char *
weft__http_arena_copy(struct weft__http_arena *arena, const char *text, size_t size)
{
	char *copy = weft__http_arena_take(arena, size + 1);

	if (copy) {
		memcpy(copy, text, size);
		copy[size] = '\0';
	}
	return copy;
}

/* --- exchanges ------------------------------------------------------------- */

/* fields and params are not zeroed: only entries that were written are read. */
weft_http *
weft__http_new(struct weft__http_io *io, void *owner)
{
	weft_http *http = weft__http_slab_take(io->local);

	if (!http)
		return NULL;
	memset(&http->in, 0, sizeof(http->in));
	memset(&http->out, 0, sizeof(http->out));
	http->io = io;
	http->arena = (struct weft__http_arena){ http->first, (char *)http + WEFT__HTTP_SLAB,
		                                 NULL };
	http->owner = owner;
	http->abort = NULL;
	http->is_server = false;
	http->param_count = 0;
	http->in.pace.left_ns = io->grace_ns;
	http->out.length = WEFT__HTTP_UNKNOWN;
	return http;
}

void
weft__http_end(weft_http *http)
{
	if (http->abort)
		(void)weft_abort_unref(http->abort);
	weft__http_arena_clear(&http->arena);
	weft__http_slab_give(http->io->local, http);
}
