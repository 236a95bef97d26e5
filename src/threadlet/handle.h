/* handle.h - threadlet IDs and the handles behind them.
 *
 * Needs: loop, base.  Thread: members and functions say which.
 */
#ifndef WEFT_THREADLET_HANDLE_H
#define WEFT_THREADLET_HANDLE_H

#include <weft/base.h>
#include "base/thread.h"
#include "loop/post/mailbox.h"

struct weft__sched;
struct weft__scope;
struct weft__threadlet;
struct weft__wait;

/* A queue of waiters; doubly linked. */
struct weft__waits {
	struct weft__wait *first, *last;
};

/* What remains of a threadlet when its stack is gone.  Other threads find a threadlet through
 * the handle of its ID. */
struct weft__handle {
	weft__a64  id;   /* the current ID; 0: free */
	weft__aptr sched; /* runs its threadlet, or joins it after the end; set before the id */

	/* Used by the thread of `sched`. */
	struct weft__threadlet *threadlet; /* NULL: ended */

	/* Used by the thread of the loop of `scope`. */
	weft__aptr           scope_sched; /* the scheduler of `scope`, or 0; read by any thread */
	struct weft__scope  *scope; /* that joins it, or NULL */
	struct weft__handle *next, *prev; /* in the scope; next: also in a free list */
	struct weft__waits   joiners;
	int                  result;
	bool                 ended;
	char                *text;  /* of the result, a failure; NULL: none.  Set on the */
	                            /* threadlet's loop as it ends, if a scope joins it */

	int64_t              next_id; /* the ID of its next use; used by the handle's owner */

	/* Under the lock of handle.c. */
	weft__a32            requests; /* WEFT__REQUEST_*, for the threadlet with the ID `wanted` */
	bool                 posted;   /* `letter` is in the mailbox of a scheduler */
	int64_t              wanted;
	struct weft__letter  letter;
};

enum {
	WEFT__REQUEST_CANCEL = 1,
	WEFT__REQUEST_TIMEOUT = 2, /* a cancellation by the deadline of a scope */
	WEFT__REQUEST_INTERRUPT = 4,
};

/* Free handles of a loop. */
struct weft__handles {
	struct weft__handle *free;
	uint32_t             count;
};

/* A scheduler begins and ends.  The end of the last one frees all handles. */
void weft__handles_init(void);
void weft__handles_fini(struct weft__sched *sched);

#define WEFT__HANDLE_BITS 24 /* low bits of an ID: the index of its handle */
#define WEFT__HANDLE_STEP (INT64_C(1) << WEFT__HANDLE_BITS) /* between two IDs of one handle */
#define WEFT__HANDLE_KEEP 1024u                       /* free handles in a cache */

/* The slow paths: the cache is empty, or NULL; the cache is too full; the cache is NULL. */
WEFT__COLD struct weft__handle *weft__handle_fetch(struct weft__handles *cache);
WEFT__COLD void weft__handle_unload(struct weft__handles *cache);
WEFT__COLD void weft__handle_give_to_all(struct weft__handle *handle);

/* Take a handle. next_id is its new ID, which is not published yet.  NULL: no memory, or no
 * more handles.  With a cache of NULL, any thread may call it.  For pop, the cache must not be
 * empty. */
static inline struct weft__handle *
weft__handle_pop(struct weft__handles *cache)
{
	struct weft__handle *handle = cache->free;

	cache->free = handle->next;
	cache->count--;
	return handle;
}

static inline struct weft__handle *
weft__handle_take(struct weft__handles *cache)
{
	return cache && cache->free ? weft__handle_pop(cache) : weft__handle_fetch(cache);
}

/* Give a handle back.  Its ID is invalid from now on. */
static inline void
weft__handle_give(struct weft__handles *cache, struct weft__handle *handle)
{
	weft__store(&handle->id, 0, WEFT__RELAXED);
	if (handle->next_id > INT64_MAX - WEFT__HANDLE_STEP)
		return; /* its IDs are used up */
	handle->next_id += WEFT__HANDLE_STEP;
	weft__store(&handle->scope_sched, 0, WEFT__RELAXED);
	handle->threadlet = NULL;
	handle->scope = NULL;
	if (!cache) {
		weft__handle_give_to_all(handle);
		return;
	}
	handle->next = cache->free;
	cache->free = handle;
	if (++cache->count > WEFT__HANDLE_KEEP)
		weft__handle_unload(cache);
}

/* Publish the ID: from now on the threadlet can be found. */
static inline int64_t
weft__handle_show(struct weft__handle *handle, struct weft__sched *sched)
{
	int64_t id = handle->next_id;

	weft__store(&handle->sched, (uintptr_t)sched, WEFT__RELAXED);
	weft__store(&handle->id, (uint64_t)id, WEFT__RELEASE);
	return id;
}

/* The threadlet has ended: its handle now belongs to the scheduler that joins it. */
WEFT__COLD void weft__handle_move(struct weft__handle *handle, struct weft__sched *sched);

/* The handle of a threadlet that runs in `sched`, or has ended and is joined there; NULL: none.
 * Thread: that of `sched`. */
struct weft__handle *weft__handle_find(const struct weft__sched *sched, int64_t id);

/* The same in any scheduler.  The caller makes sure that at least one scheduler exists, or has the
 * lock of handle.c. */
struct weft__handle *weft__handle_find_any(int64_t id);

/* Send requests to a threadlet of another scheduler.  Returns 0, or WEFT_ESRCH. */
int weft__handle_request(int64_t id, unsigned requests);

/* The receiving end: the requests that a letter brings to `sched`, for the threadlet of `*out`.
 * 0: none, or the threadlet now belongs to another scheduler, which gets the letter. */
unsigned weft__handle_receive(struct weft__sched *sched, struct weft__letter *letter,
                              struct weft__handle **out);

/* In a forked child: start over. */
void weft__handles_forked(void);

#endif
