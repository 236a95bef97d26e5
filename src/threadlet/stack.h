/* stack.h - memory for threadlets: slabs of guarded stacks, kept for reuse.
 *
 * Needs: base.  Thread: a cache belongs to one thread; all threads share the depot behind it.
 */
#ifndef WEFT_THREADLET_STACK_H
#define WEFT_THREADLET_STACK_H

#include "base/thread.h"

#define WEFT__STACK_MIN     ((size_t)16384)
#define WEFT__STACK_CLASSES 17 /* powers of two: 16 KiB to 1 GiB */

/* Guards are whole pages, which on arm64 may be this large. */
#if defined(__x86_64__)
#define WEFT__STACK_PAGE ((size_t)4096)
#else
#define WEFT__STACK_PAGE ((size_t)65536)
#endif

/* A function compiled without -fstack-clash-protection may move the stack pointer by its
 * whole frame before it touches any of it.  It steps over a guard smaller than the frame.
 * The guard is one page more than 64 KiB: see the stride in stack.c. */
#define WEFT__STACK_GUARD ((size_t)65536 + WEFT__STACK_PAGE)

struct weft__stack_slab;

struct weft__stack {
	struct weft__stack      *next; /* in a free list */
	struct weft__stack_slab *slab;
	char                    *base; /* the lowest address; below it is the guard */
	char                    *top;  /* where the usable part ends */
	int                      size_class;
	uint32_t                 keep; /* the most of its class that a cache keeps */
	bool                     prepared; /* it holds a threadlet; else it has no pages */
};

/* Free stacks of a loop, by class. */
struct weft__stacks {
	struct weft__stack *free[WEFT__STACK_CLASSES];
	uint32_t            count[WEFT__STACK_CLASSES];
};

/* The class for that many bytes; -1: too many. */
int weft__stack_class(size_t bytes);

static inline size_t
weft__stack_bytes(int size_class)
{
	return WEFT__STACK_MIN << size_class;
}

/* The slow paths: the cache is empty, or NULL; the cache is too full; the cache is NULL. */
WEFT__COLD struct weft__stack *weft__stack_fetch(struct weft__stacks *cache, int size_class);
WEFT__COLD void weft__stack_unload(struct weft__stacks *cache, int size_class);
WEFT__COLD void weft__stack_give_to_depot(struct weft__stack *stack);

/* Take a free stack of a class, or NULL without memory; give it back.  A cache of NULL means
 * the depot, which any thread may use.  For pop, the cache must have a stack of the class. */
static inline struct weft__stack *
weft__stack_pop(struct weft__stacks *cache, int size_class)
{
	struct weft__stack *stack = cache->free[size_class];

	cache->free[size_class] = stack->next;
	cache->count[size_class]--;
	return stack;
}

static inline struct weft__stack *
weft__stack_take(struct weft__stacks *cache, int size_class)
{
	return cache && cache->free[size_class] ? weft__stack_pop(cache, size_class)
	                                   : weft__stack_fetch(cache, size_class);
}

static inline void
weft__stack_give(struct weft__stacks *cache, struct weft__stack *stack)
{
	int size_class = stack->size_class;

	if (!cache) {
		weft__stack_give_to_depot(stack);
		return;
	}
	stack->next = cache->free[size_class];
	cache->free[size_class] = stack;
	if (++cache->count[size_class] > stack->keep)
		weft__stack_unload(cache, size_class);
}

/* The stack's pages are about to be released: finish the threadlet in it.  In go.c. */
void weft__threadlet_unprepare(struct weft__stack *stack);

/* Empty a cache, and unmap the slabs of which no stack is in use or in another cache. */
void weft__stacks_fini(struct weft__stacks *cache);

/* In a forked child: start over. */
void weft__stacks_forked(void);

#endif
