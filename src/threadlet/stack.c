/* stack.c - memory for threadlets.
 *
 * Stacks come in slabs, each allocated as one mapping.  Every stack has a guard below it, so that
 * an overflow ends the process instead of writing into the neighbor.  A guard takes no memory.
 * If the kernel can mark its pages (MADV_GUARD_INSTALL), it takes no mapping of its own either:
 * then a million stacks of the default size need at most 15,625 mappings on x86-64.  Otherwise
 * each guard splits the mapping of its slab (mprotect).
 *
 * A loop keeps free stacks in a cache, last in, first out, so that the next threadlet finds warm
 * memory.  Surplus stacks go to the depot, which all loops share.
 *
 *   1. A stack is in use, in one cache, or in the depot.
 *   2. Stacks in the depot are cold: their pages have been released.
 *   3. A slab whose stacks are all in the depot may be unmapped.  The end of a cache does that,
 *      under the lock.
 *
 * On x86-64 the stride is an odd number of pages.  Everywhere the tops of neighboring stacks have
 * different offsets.  So the data that threadlets keep there, and use at every switch, does not
 * compete for the same few cache sets.
 */
#include "base/lock.h"
#include "threadlet/stack.h"

#define SLAB_MAX   64u
#define SLAB_BYTES ((size_t)9 << 20)  /* fits SLAB_MAX of the default size, on x86-64 */
#define KEEP_BYTES ((size_t)64 << 20) /* of a class, in a cache, */
#define KEEP_MAX   1024u              /* but at most so many stacks, */
#define KEEP_MIN   4u                 /* and at least so many */
#define COLOR      ((size_t)128)      /* tops differ by multiples of this, */
#define COLORS     12u                /* and there are so many different ones */
#define REFILL     32u                /* stacks that a cache takes from the depot at once */

struct weft__stack_slab {
	struct weft__stack_slab *next;
	char *memory;
	int size_class;
	uint32_t count;
	uint32_t idle; /* how many of them are in the depot */
	struct weft__stack stacks[];
};

static struct {
	struct weft__lock lock;
	struct weft__stack *free[WEFT__STACK_CLASSES];
	struct weft__stack_slab *slabs;
} depot;

int
weft__stack_class(size_t bytes)
{
	int size_class = 0;

	while (size_class < WEFT__STACK_CLASSES && weft__stack_bytes(size_class) < bytes)
		size_class++;
	return size_class < WEFT__STACK_CLASSES ? size_class : -1;
}

static size_t
stride(int size_class)
{
	return weft__stack_bytes(size_class) + WEFT__STACK_GUARD;
}

static uint32_t
keep_max(int size_class)
{
	size_t count = KEEP_BYTES / WEFT__STACK_MIN >> size_class;

	return count > KEEP_MAX ? KEEP_MAX : count < KEEP_MIN ? KEEP_MIN : (uint32_t)count;
}

/* --- slabs -------------------------------------------------------------- */

/* Set up all stacks with their guards.  Returns false if the kernel refuses a guard. */
static bool
init_stacks(struct weft__stack_slab *slab)
{
	for (uint32_t i = 0; i < slab->count; i++) {
		char *guard = slab->memory + i * stride(slab->size_class);
		char *end = guard + stride(slab->size_class);

		if (weft__sys->stack_guard(guard, WEFT__STACK_GUARD) < 0)
			return false;
		slab->stacks[i] = (struct weft__stack){
			.slab = slab,
			.base = guard + WEFT__STACK_GUARD,
			.top = end - i % COLORS * COLOR,
			.size_class = slab->size_class,
			.keep = keep_max(slab->size_class),
		};
	}
	return true;
}

static struct weft__stack_slab *
make_slab(int size_class)
{
	size_t count = SLAB_BYTES / stride(size_class);
	struct weft__stack_slab *slab;

	count = count < 1 ? 1 : count > SLAB_MAX ? SLAB_MAX : count;
	slab = weft__alloc_zero(sizeof(*slab) + count * sizeof(slab->stacks[0]));
	if (!slab)
		return NULL;
	slab->size_class = size_class;
	slab->count = (uint32_t)count;
	slab->memory = weft__sys->stack_map(count * stride(size_class));
	if (slab->memory && init_stacks(slab))
		return slab;
	if (slab->memory)
		weft__sys->stack_unmap(slab->memory, count * stride(size_class));
	weft__sys->release(slab);
	return NULL;
}

/* --- the depot ---------------------------------------------------------- */

/* The caller has the lock. */
static void
depot_put(struct weft__stack *stack)
{
	int size_class = stack->size_class;

	stack->next = depot.free[size_class];
	depot.free[size_class] = stack;
	stack->slab->idle++;
}

static struct weft__stack *
depot_get(int size_class)
{
	struct weft__stack *stack = depot.free[size_class];

	if (!stack)
		return NULL;
	depot.free[size_class] = stack->next;
	stack->slab->idle--;
	return stack;
}

/* Invariant 2. */
static void
discard_pages(struct weft__stack *stack)
{
	if (!stack->prepared)
		return;
	weft__threadlet_unprepare(stack);
	weft__sys->stack_discard(stack->base, weft__stack_bytes(stack->size_class));
}

/* Map a slab.  Returns one of its stacks; the others go to the depot. */
static struct weft__stack *
map_slab(int size_class)
{
	struct weft__stack_slab *slab = make_slab(size_class);

	if (!slab)
		return NULL;
	weft__lock_take(&depot.lock);
	slab->next = depot.slabs;
	depot.slabs = slab;
	for (uint32_t i = slab->count - 1; i > 0; i--)
		depot_put(&slab->stacks[i]);
	weft__lock_give(&depot.lock);
	return &slab->stacks[0];
}

/* --- caches ------------------------------------------------------------- */

static void
cache_put(struct weft__stacks *cache, struct weft__stack *stack)
{
	int size_class = stack->size_class;

	stack->next = cache->free[size_class];
	cache->free[size_class] = stack;
	cache->count[size_class]++;
}

/* Return one stack, and refill the cache if there is one. */
struct weft__stack *
weft__stack_fetch(struct weft__stacks *cache, int size_class)
{
	struct weft__stack *stack, *more;

	weft__lock_take(&depot.lock);
	stack = depot_get(size_class);
	for (uint32_t i = 1; cache && i < REFILL; i++) {
		more = depot_get(size_class);
		if (!more)
			break;
		cache_put(cache, more);
	}
	weft__lock_give(&depot.lock);
	return stack ? stack : map_slab(size_class);
}

/* Move `count` stacks from a cache to the depot. */
static void
unload(struct weft__stacks *cache, int size_class, uint32_t count)
{
	struct weft__stack *list = NULL, *stack;

	for (; count > 0; count--) {
		stack = weft__stack_pop(cache, size_class);
		discard_pages(stack);
		stack->next = list;
		list = stack;
	}
	weft__lock_take(&depot.lock);
	while ((stack = list)) {
		list = stack->next;
		depot_put(stack);
	}
	weft__lock_give(&depot.lock);
}

void
weft__stack_give_to_depot(struct weft__stack *stack)
{
	discard_pages(stack);
	weft__lock_take(&depot.lock);
	depot_put(stack);
	weft__lock_give(&depot.lock);
}

void
weft__stack_unload(struct weft__stacks *cache, int size_class)
{
	unload(cache, size_class, cache->count[size_class] / 2);
}

/* --- the end of a cache ------------------------------------------------- */

/* Remove the stacks of idle slabs from a list. */
static void
drop_idle_slabs(struct weft__stack **list)
{
	while (*list) {
		struct weft__stack_slab *slab = (*list)->slab;

		if (slab->idle == slab->count)
			*list = (*list)->next;
		else
			list = &(*list)->next;
	}
}

/* Invariant 3; the caller has the lock. */
static void
unmap_idle(void)
{
	struct weft__stack_slab **link = &depot.slabs, *slab;

	for (int size_class = 0; size_class < WEFT__STACK_CLASSES; size_class++)
		drop_idle_slabs(&depot.free[size_class]);
	while ((slab = *link)) {
		if (slab->idle < slab->count) {
			link = &slab->next;
			continue;
		}
		*link = slab->next;
		weft__sys->stack_unmap(slab->memory, slab->count * stride(slab->size_class));
		weft__sys->release(slab);
	}
}

void
weft__stacks_fini(struct weft__stacks *cache)
{
	for (int size_class = 0; size_class < WEFT__STACK_CLASSES; size_class++)
		unload(cache, size_class, cache->count[size_class]);
	weft__lock_take(&depot.lock);
	unmap_idle();
	weft__lock_give(&depot.lock);
}

/* The child may run on one of the parent's stacks, so it leaks them all. */
void
weft__stacks_forked(void)
{
	weft__store(&depot.lock.word, 0, WEFT__RELAXED);
	for (int size_class = 0; size_class < WEFT__STACK_CLASSES; size_class++)
		depot.free[size_class] = NULL;
	depot.slabs = NULL;
}
