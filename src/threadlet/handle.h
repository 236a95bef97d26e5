/* handle.h - threadlets by number.
 *
 * Needs: base.  Thread: members and functions say which.
 */
#ifndef WEFT_THREADLET_HANDLE_H
#define WEFT_THREADLET_HANDLE_H

#include <weft/base.h>
#include "base/node.h"
#include "base/thread.h"

struct weft__crew;
struct weft__scope;
struct weft__threadlet;
struct weft__wait;

/* Those who wait for the same; doubly linked. */
struct weft__waits {
	struct weft__wait *first, *last;
};

/* What is left of a threadlet when its stack is gone, and what others find by its
 * number. */
struct weft__handle {
	weft__a64  id;   /* its number now; 0: free */
	weft__aptr crew; /* where its threadlet runs; set before the id */

	/* The crew's. */
	struct weft__threadlet *threadlet; /* NULL: ended */

	/* Of the loop of `scope`. */
	weft__aptr           home;  /* its crew, or 0 */
	struct weft__scope  *scope; /* that joins it, or NULL */
	struct weft__handle *next, *prev; /* in the scope; next: while free */
	struct weft__waits   joiners;
	int                  result;
	bool                 ended;
	char                *text;  /* of the result, a failure; NULL: none.  Set as the */
	                            /* threadlet ends, on its loop, if a scope joins it */

	int64_t              next_id; /* its owner's */

	/* Under the lock of handle.c, but that whether there are any is read by all. */
	weft__a32            requests; /* for the threadlet `wanted` */
	bool                 asked;    /* it stands in the list of a crew */
	int64_t              wanted;
	struct weft__handle *next_asked;
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

/* What others ask of a crew's threadlets; under the lock of handle.c. */
struct weft__requests {
	struct weft__handle   *first;
	struct weft__node_head node;   /* by which the loop is told, */
	bool                   queued; /* and which is on its way */
};

/* A crew begins and ends; with the last one all handles are given back. */
void weft__handles_init(void);
void weft__handles_fini(struct weft__crew *crew);

#define WEFT__HANDLE_BITS 24 /* of a number are the index of its handle */
#define WEFT__HANDLE_STEP (INT64_C(1) << WEFT__HANDLE_BITS) /* between two of its numbers */
#define WEFT__HANDLE_KEEP 1024u                       /* free ones in a cache */

/* When a cache has none, or too many; without a cache. */
WEFT__SELDOM struct weft__handle *weft__handle_fetch(struct weft__handles *cache);
WEFT__SELDOM void weft__handle_unload(struct weft__handles *cache);
WEFT__SELDOM void weft__handle_give_to_all(struct weft__handle *handle);

/* Take a handle, with its number in next_id still to be shown; NULL: no memory, or no
 * numbers.  A cache of NULL stands for any thread. */
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

/* Give it back: its number is nobody's from now on. */
static inline void
weft__handle_give(struct weft__handles *cache, struct weft__handle *handle)
{
	weft__store(&handle->id, 0, WEFT__RELAXED);
	if (handle->next_id > INT64_MAX - WEFT__HANDLE_STEP)
		return; /* its numbers are used up */
	handle->next_id += WEFT__HANDLE_STEP;
	weft__store(&handle->home, 0, WEFT__RELAXED);
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

/* From now on it can be found. */
static inline int64_t
weft__handle_show(struct weft__handle *handle, struct weft__crew *crew)
{
	int64_t id = handle->next_id;

	weft__store(&handle->crew, (uintptr_t)crew, WEFT__RELAXED);
	weft__store(&handle->id, (uint64_t)id, WEFT__RELEASE);
	return id;
}

/* Its threadlet has ended: what is left is of the crew that joins it. */
WEFT__SELDOM void weft__handle_move(struct weft__handle *handle, struct weft__crew *home);

/* The handle of a threadlet that runs in `crew`, by whose thread this is called, or has
 * ended there; NULL: there is none. */
struct weft__handle *weft__handle_find(const struct weft__crew *crew, int64_t id);

/* Whatever crew it is in, if one can be found. */
struct weft__handle *weft__handle_find_any(int64_t id);

/* Ask a threadlet in another crew.  0, or WEFT_ESRCH. */
int weft__handle_ask(int64_t id, unsigned requests);

/* The crew's side of that: its node has come; take what is asked of one of its
 * threadlets.  NULL: nothing more. */
void weft__handle_begin_asked(struct weft__crew *crew);
struct weft__handle *weft__handle_next_asked(struct weft__crew *crew,
                                             unsigned *requests);

/* Something has been asked of the threadlet, perhaps of one before it. */
static inline bool
weft__handle_is_asked(const struct weft__handle *handle)
{
	return weft__load(&handle->requests, WEFT__RELAXED) != 0;
}

/* In a forked child: begin anew. */
void weft__handles_forked(void);

#endif
