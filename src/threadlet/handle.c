/* handle.c - threadlets by number.
 *
 * A number is the index of a handle below how often that was used: it is never used
 * again.  Handles come in chunks that a directory lists, and stay while any crew
 * exists; so whoever has a number can look at the handle without a lock, and sees by the
 * number there whether it is still the same.
 *
 *   1. `id` and `crew` are written by whoever owns the handle, read by anybody: of use
 *      is only the answer "it is a threadlet of my own crew", which nobody else changes.
 *   2. What comes from other threads goes through requests, under the lock, and by the
 *      node to the crew, which compares the number once more.  While the lock is held,
 *      and the number is there, the crew is, too: it ends its part here under the lock.
 *   3. With the last crew the chunks are freed.  Numbers go on where they were.
 */
#include "base/lock.h"
#include "threadlet/threadlet.h"

#define INDEX_BITS 24
#define CHUNK_BITS 8
#define CHUNK      (1u << CHUNK_BITS)
#define CHUNKS_MAX (1u << (INDEX_BITS - CHUNK_BITS))
#define STEP       (INT64_C(1) << INDEX_BITS) /* between two numbers of a handle */

static struct {
	struct weft__lock lock;
	uint32_t crews;
	uint32_t chunks;
	int64_t first_id; /* above the index: of handles that are made now */
	struct weft__handle *free;
	weft__aptr directory[CHUNKS_MAX]; /* chunks; published by C, acquired */
} all = { .first_id = STEP };

static struct weft__handle *
at(int64_t id)
{
	uint32_t index = (uint32_t)(id & (STEP - 1));
	struct weft__handle *chunk =
		id < STEP ? NULL
			  : (struct weft__handle *)weft__load(
				  &all.directory[index >> CHUNK_BITS],
				  WEFT__ACQUIRE);

	return chunk ? &chunk[index & (CHUNK - 1)] : NULL;
}

/* The caller has the lock. */
static bool
make_chunk(void)
{
	struct weft__handle *chunk;

	if (all.chunks == CHUNKS_MAX)
		return false;
	chunk = weft__alloc_zero(CHUNK * sizeof(*chunk));
	if (!chunk)
		return false;
	for (uint32_t i = CHUNK; i-- > 0;) {
		chunk[i].next_id = all.first_id
		                   | (all.chunks << CHUNK_BITS | i);
		chunk[i].next = all.free;
		all.free = &chunk[i];
	}
	weft__store(&all.directory[all.chunks++], (uintptr_t)chunk,
	            WEFT__RELEASE); /* C */
	return true;
}

void
weft__handles_init(void)
{
	weft__lock_take(&all.lock);
	all.crews++;
	weft__lock_give(&all.lock);
}

/* Invariant 3; the caller has the lock. */
static void
free_chunks(void)
{
	for (uint32_t i = 0; i < all.chunks; i++) {
		struct weft__handle *chunk = (struct weft__handle *)weft__load(
			&all.directory[i], WEFT__RELAXED);

		for (uint32_t k = 0; k < CHUNK; k++)
			if ((chunk[k].next_id & -STEP) > all.first_id)
				all.first_id = chunk[k].next_id & -STEP;
		weft__store(&all.directory[i], 0, WEFT__RELAXED);
		weft__sys->release(chunk);
	}
	all.chunks = 0;
	all.free = NULL;
}

void
weft__handles_fini(struct weft__handles *cache)
{
	weft__lock_take(&all.lock);
	while (cache->free) {
		struct weft__handle *handle = cache->free;

		cache->free = handle->next;
		handle->asked = false; /* its node came too late for the loop */
		handle->next = all.free;
		all.free = handle;
	}
	if (--all.crews == 0)
		free_chunks();
	weft__lock_give(&all.lock);
}

static struct weft__handle *
fetch(struct weft__handles *cache)
{
	struct weft__handle *handle;

	weft__lock_take(&all.lock);
	if (!all.free && !make_chunk()) {
		weft__lock_give(&all.lock);
		return NULL;
	}
	handle = all.free;
	all.free = handle->next;
	for (uint32_t i = 1; cache && all.free && i < CHUNK; i++) {
		struct weft__handle *more = all.free;

		all.free = more->next;
		more->next = cache->free;
		cache->free = more;
	}
	weft__lock_give(&all.lock);
	return handle;
}

struct weft__handle *
weft__handle_take(struct weft__handles *cache)
{
	struct weft__handle *handle = cache ? cache->free : NULL;

	if (!handle)
		return fetch(cache);
	cache->free = handle->next;
	return handle;
}

int64_t
weft__handle_show(struct weft__handle *handle, struct weft__crew *crew)
{
	int64_t id = handle->next_id;

	weft__store(&handle->crew, (uintptr_t)crew, WEFT__RELAXED);
	weft__store(&handle->id, (uint64_t)id, WEFT__RELEASE);
	return id;
}

void
weft__handle_give(struct weft__handles *cache, struct weft__handle *handle)
{
	weft__store(&handle->id, 0, WEFT__RELAXED);
	if (handle->next_id > INT64_MAX - STEP)
		return; /* its numbers are used up */
	handle->next_id += STEP;
	weft__store(&handle->home, 0, WEFT__RELAXED);
	handle->threadlet = NULL;
	handle->scope = NULL;
	if (cache) {
		handle->next = cache->free;
		cache->free = handle;
		return;
	}
	weft__lock_take(&all.lock);
	handle->next = all.free;
	all.free = handle;
	weft__lock_give(&all.lock);
}

struct weft__handle *
weft__handle_find_any(int64_t id)
{
	struct weft__handle *handle = at(id);

	return handle && (int64_t)weft__load(&handle->id, WEFT__ACQUIRE) == id
	               ? handle
	               : NULL;
}

struct weft__handle *
weft__handle_find(const struct weft__crew *crew, int64_t id)
{
	struct weft__handle *handle = weft__handle_find_any(id);

	return handle
	                       && weft__load(&handle->crew, WEFT__RELAXED)
	                                  == (uintptr_t)crew
	               ? handle
	               : NULL;
}

/* --- requests ----------------------------------------------------------- */

/* Invariant 2.  What an older threadlet was asked is of no use any more. */
int
weft__handle_ask(int64_t id, unsigned requests)
{
	struct weft__handle *handle;
	int rc = WEFT_ESRCH;

	weft__lock_take(&all.lock);
	handle = weft__handle_find_any(id);
	if (handle) {
		struct weft__crew *crew = (struct weft__crew *)weft__load(
			&handle->crew, WEFT__RELAXED);

		handle->requests = (uint8_t)(requests
		                             | (handle->wanted == id
		                                        ? handle->requests
		                                        : 0));
		handle->wanted = id;
		if (!handle->asked) {
			handle->asked = true;
			weft__crew_tell(crew, &handle->node, handle);
		}
		rc = 0;
	}
	weft__lock_give(&all.lock);
	return rc == 0 ? 0 : weft__fail(rc, "no such threadlet any more");
}

unsigned
weft__handle_take_requests(struct weft__handle *handle, int64_t *wanted)
{
	unsigned requests;

	weft__lock_take(&all.lock);
	requests = handle->requests;
	*wanted = handle->wanted;
	handle->requests = 0;
	handle->wanted = 0;
	handle->asked = false;
	weft__lock_give(&all.lock);
	return requests;
}
