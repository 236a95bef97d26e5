/* handle.h - threadlets by number.
 *
 * Needs: base.  Thread: members and functions say which.
 */
#ifndef WEFT_THREADLET_HANDLE_H
#define WEFT_THREADLET_HANDLE_H

#include <weft/base.h>
#include "base/node.h"

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

	/* Under the lock of handle.c. */
	uint8_t    requests; /* for the threadlet `wanted` */
	bool       asked;    /* the node is on its way to the crew */
	int64_t    wanted;
	int64_t    next_id;
	struct weft__node_head node;
};

enum {
	WEFT__REQUEST_CANCEL = 1,
	WEFT__REQUEST_TIMEOUT = 2, /* a cancellation by the deadline of a scope */
	WEFT__REQUEST_INTERRUPT = 4,
};

/* Free handles of a loop. */
struct weft__handles {
	struct weft__handle *free;
};

/* A crew begins and ends; with the last one all handles are given back. */
void weft__handles_init(void);
void weft__handles_fini(struct weft__handles *cache);

/* Take a handle, with its number in next_id still to be shown; NULL: no memory, or no
 * numbers.  A cache of NULL stands for any thread. */
struct weft__handle *weft__handle_take(struct weft__handles *cache);
void weft__handle_give(struct weft__handles *cache, struct weft__handle *handle);

/* From now on it can be found. */
int64_t weft__handle_show(struct weft__handle *handle, struct weft__crew *crew);

/* The handle of a threadlet that runs in `crew`, by whose thread this is called, or has
 * ended there; NULL: there is none. */
struct weft__handle *weft__handle_find(const struct weft__crew *crew, int64_t id);

/* Whatever crew it is in, if one can be found. */
struct weft__handle *weft__handle_find_any(int64_t id);

/* Ask a threadlet in another crew.  0, or WEFT_ESRCH. */
int weft__handle_ask(int64_t id, unsigned requests);

/* The loop's side of that: what is asked of `wanted`. */
unsigned weft__handle_take_requests(struct weft__handle *handle, int64_t *wanted);

#endif
