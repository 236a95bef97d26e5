/* registry.c - the list of the loops of the process, for inspection by any thread.
 *
 *   1. A loop is in the list while it is `listed`: from its creation until it is destroyed, or
 *      hidden (runtime/main.c).  It is removed under the lock, so a thread that holds the lock
 *      finds valid memory.
 *   2. A thread that takes a loop from the list becomes its visitor, and then checks whether
 *      the loop is being freed (F).  weft_loop_free() first sets that flag, and then checks
 *      for visitors (E).  Both are sequentially consistent, so one of them sees the other.
 *   3. A forked child begins with an empty list: its parent's loops are memory only.
 */
#include "loop/core/loop.h"

/* Read by scripts/gdb/weft-gdb.py, too. */
struct weft__registry weft__registry;

void
weft__registry_add(weft_loop *loop)
{
	weft__lock_take(&weft__registry.lock);
	if (!loop->listed) {
		loop->listed = true;
		loop->next_listed = weft__registry.first;
		weft__registry.first = loop;
	}
	weft__lock_give(&weft__registry.lock);
}

void
weft__registry_remove(weft_loop *loop)
{
	weft_loop **link = &weft__registry.first;

	if (!loop->listed)
		return;
	weft__lock_take(&weft__registry.lock);
	while (*link && *link != loop)
		link = &(*link)->next_listed;
	weft__assert(*link || weft__loop_is_forked(loop)); /* invariants 1 and 3 */
	if (*link)
		*link = loop->next_listed;
	loop->listed = false;
	weft__lock_give(&weft__registry.lock);
}

/* The caller holds the lock. */
static weft_loop *
find_after(uint64_t id)
{
	weft_loop *next = NULL;

	for (weft_loop *l = weft__registry.first; l; l = l->next_listed)
		if (l->inbox.id > id && (!next || l->inbox.id < next->inbox.id))
			next = l;
	return next;
}

weft_loop *
weft__registry_next(uint64_t *after)
{
	weft_loop *next;

	/* Perhaps no loop exists yet.  If this fails, only forked children are at risk. */
	(void)weft__watch_forks();
	weft__lock_take(&weft__registry.lock);
	while ((next = find_after(*after))) {
		*after = next->inbox.id;
		weft__loop_enter(next);
		if (!weft__loop_is_going(next))
			break;
		weft__loop_exit(next); /* it is being freed */
	}
	weft__lock_give(&weft__registry.lock);
	return next;
}

weft_loop *
weft__registry_find(uint64_t id)
{
	uint64_t after = id - 1;
	weft_loop *loop = id > 0 ? weft__registry_next(&after) : NULL;

	if (!loop || after == id)
		return loop;
	weft__loop_exit(loop);
	return NULL;
}

void
weft__registry_forget(void)
{
	weft__registry = (struct weft__registry){ 0 };
}
