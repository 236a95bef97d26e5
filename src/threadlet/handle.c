/* handle.c - threadlet IDs and the handles behind them.
 *
 * The low bits of an ID are the index of a handle, the high bits count the uses of that handle;
 * so an ID is never reused.  Handles come in chunks that a directory lists, and stay as long as
 * any scheduler exists.  So a thread that has an ID can read the handle without a lock, and
 * compares the ID stored there with its own.
 *
 *   1. The owner of a handle writes `id` and `sched`; any thread may read them.  The only answer
 *      a reader can rely on is "it is a threadlet of my own scheduler", which no other thread
 *      changes.  `sched` is the scheduler that runs the threadlet; once the threadlet has ended,
 *      the one that joins it, if another (M: release, acquired by the lookup).
 *   2. Other threads send requests, under the lock: the handle's letter goes to the mailbox of
 *      a scheduler.  The scheduler compares the ID again, and passes on requests for threadlets
 *      that are no longer its own.  While the lock is held and the ID is valid, the scheduler
 *      exists: it closes its mailbox here, under the lock.
 *   3. The end of the last scheduler frees the chunks.  Later IDs continue where these stopped.
 */
#include "base/lock.h"
#include "threadlet/threadlet.h"

#define CHUNK_BITS 8
#define CHUNK      (1u << CHUNK_BITS)
#define CHUNKS_MAX (1u << (WEFT__HANDLE_BITS - CHUNK_BITS))
#define STEP       WEFT__HANDLE_STEP

static struct {
	struct weft__lock lock;
	uint32_t scheds;
	uint32_t chunks;
	int64_t first_id; /* ID of new handles, above the index bits */
	struct weft__handle *free;
	weft__aptr directory[CHUNKS_MAX]; /* chunks; published by C, acquired by at() */
} all = { .first_id = STEP };

static struct weft__handle *
at(int64_t id)
{
	uint32_t index = (uint32_t)(id & (STEP - 1));
	struct weft__handle *chunk = id < STEP ? NULL
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
		chunk[i].next_id = all.first_id | (all.chunks << CHUNK_BITS | i);
		chunk[i].next = all.free;
		all.free = &chunk[i];
	}
	weft__store(&all.directory[all.chunks++], (uintptr_t)chunk, WEFT__RELEASE); /* C */
	return true;
}

/* For callers that may be the first to take the lock. */
static void
handles_lock_first(void)
{
	static weft__a32 registered;

	/* If this fails, only forked children are at risk, and the next call tries again. */
	(void)weft__fork_handler(&registered, weft__threadlets_forked);
	weft__lock_take(&all.lock);
}

void
weft__handles_init(void)
{
	handles_lock_first();
	all.scheds++;
	weft__lock_give(&all.lock);
}

/* IDs of handles that are made later come after those of this chunk. */
static void
pass_over(const struct weft__handle *chunk)
{
	for (uint32_t k = 0; k < CHUNK; k++)
		if ((chunk[k].next_id & -STEP) >= all.first_id)
			all.first_id = (chunk[k].next_id & -STEP) + STEP;
}

static struct weft__handle *
take_chunk(uint32_t i)
{
	uintptr_t chunk = weft__load(&all.directory[i], WEFT__RELAXED);

	weft__store(&all.directory[i], 0, WEFT__RELAXED);
	if (chunk)
		pass_over((struct weft__handle *)chunk);
	return (struct weft__handle *)chunk;
}

/* Invariant 3; the caller has the lock. */
static void
free_chunks(void)
{
	for (uint32_t i = 0; i < all.chunks; i++)
		weft__sys->release(take_chunk(i));
	all.chunks = 0;
	all.free = NULL;
}

/* The chunks are in use by the parent's loops: they are leaked.  Another thread of the parent may
 * have been adding a chunk or freeing them: the count and the directory may disagree. */
void
weft__handles_forked(void)
{
	weft__store(&all.lock.word, 0, WEFT__RELAXED);
	for (uint32_t i = 0;
	     i < CHUNKS_MAX && (i < all.chunks || weft__load(&all.directory[i], WEFT__RELAXED));
	     i++)
		(void)take_chunk(i);
	all.chunks = all.scheds = 0;
	all.free = NULL;
}

/* The caller has the lock. */
static void
unload(struct weft__handles *cache, uint32_t keep)
{
	for (; cache->count > keep; cache->count--) {
		struct weft__handle *handle = cache->free;

		cache->free = handle->next;
		handle->next = all.free;
		all.free = handle;
	}
}

static void pass_on(struct weft__sched *sched);

void
weft__handles_fini(struct weft__sched *sched)
{
	weft__lock_take(&all.lock);
	pass_on(sched);
	unload(&sched->handles, 0);
	if (--all.scheds == 0)
		free_chunks();
	weft__lock_give(&all.lock);
}

struct weft__handle *
weft__handle_fetch(struct weft__handles *cache)
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
		cache->count++;
	}
	weft__lock_give(&all.lock);
	return handle;
}

void
weft__handle_unload(struct weft__handles *cache)
{
	weft__lock_take(&all.lock);
	unload(cache, WEFT__HANDLE_KEEP / 2);
	weft__lock_give(&all.lock);
}

void
weft__handle_give_to_all(struct weft__handle *handle)
{
	weft__lock_take(&all.lock);
	handle->next = all.free;
	all.free = handle;
	weft__lock_give(&all.lock);
}

void
weft__handle_move(struct weft__handle *handle, struct weft__sched *sched)
{
	weft__lock_take(&all.lock);
	weft__store(&handle->sched, (uintptr_t)sched, WEFT__RELEASE); /* M */
	weft__lock_give(&all.lock);
}

struct weft__handle *
weft__handle_find_any(int64_t id)
{
	struct weft__handle *handle = at(id);

	return handle && (int64_t)weft__load(&handle->id, WEFT__ACQUIRE) == id ? handle : NULL;
}

struct weft__handle *
weft__handle_find(const struct weft__sched *sched, int64_t id)
{
	struct weft__handle *handle = weft__handle_find_any(id);

	return handle && weft__load(&handle->sched, WEFT__ACQUIRE) == (uintptr_t)sched /* M */
	               ? handle
	               : NULL;
}

/* --- requests ----------------------------------------------------------- */

/* The caller has the lock: send the letter to the scheduler of the handle. */
static void
post_request(struct weft__handle *handle)
{
	struct weft__sched *sched = (struct weft__sched *)weft__load(&handle->sched, WEFT__RELAXED);

	handle->posted = weft__mailbox_post(&sched->requests, &handle->letter);
}

/* Requests for an earlier threadlet with this handle are dropped. */
int
weft__handle_request(int64_t id, unsigned requests)
{
	struct weft__handle *handle;

	handles_lock_first();
	handle = weft__handle_find_any(id);
	if (handle) {
		if (handle->wanted == id)
			requests |= weft__load(&handle->requests, WEFT__RELAXED);
		weft__store(&handle->requests, requests, WEFT__RELAXED);
		handle->wanted = id;
		if (!handle->posted)
			post_request(handle);
	}
	weft__lock_give(&all.lock);
	return handle ? 0
	              : weft__fail(WEFT_ESRCH, requests & WEFT__REQUEST_INTERRUPT
	                                               ? "weft_interrupt: there is no such "
	                                                 "threadlet, or it has ended"
	                                               : "weft_cancel: there is no such "
	                                                 "threadlet, or it has ended");
}

static bool
threadlet_handle_is_wanted(const struct weft__handle *handle)
{
	return handle->wanted != 0
	       && (int64_t)weft__load(&handle->id, WEFT__RELAXED) == handle->wanted;
}

/* The caller has the lock. */
static struct weft__handle *
open_letter(struct weft__letter *letter)
{
	struct weft__handle *handle =
		(struct weft__handle *)(void *)((char *)letter
	                                        - offsetof(struct weft__handle, letter));

	handle->posted = false;
	return handle;
}

/* The scheduler ends: its pending requests go to the schedulers that now own the threadlets. */
static void
pass_on(struct weft__sched *sched)
{
	struct weft__letter *letter = weft__mailbox_close(&sched->requests), *next;

	for (; letter; letter = next) {
		struct weft__handle *handle;

		next = letter->next;
		handle = open_letter(letter);
		if (threadlet_handle_is_wanted(handle))
			post_request(handle);
	}
}

unsigned
weft__handle_receive(struct weft__sched *sched, struct weft__letter *letter,
                     struct weft__handle **out)
{
	unsigned requests = 0;

	weft__lock_take(&all.lock);
	*out = open_letter(letter);
	if (threadlet_handle_is_wanted(*out)) {
		if (weft__load(&(*out)->sched, WEFT__RELAXED) == (uintptr_t)sched) {
			requests = weft__load(&(*out)->requests, WEFT__RELAXED);
			weft__store(&(*out)->requests, 0, WEFT__RELAXED);
			(*out)->wanted = 0;
		} else {
			post_request(*out);
		}
	}
	weft__lock_give(&all.lock);
	return requests;
}
