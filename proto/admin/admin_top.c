/* admin_top.c - the first of many threadlets in some order (top-k), in bounded memory.
 *
 * The entries are a heap whose root is the last of them.  A new entry that comes before the
 * root replaces the root.  Finally the heap is sorted step by step, so that sorting many does not
 * block the loop.
 */
#include "admin_listing.h"
#include <string.h>
#include <weft/debug.h>

/* Whether `a` comes before `b`; equal ones are ordered by ID. */
static bool
before(enum weft__admin_order order, const weft_threadlet_info *a, const weft_threadlet_info *b)
{
	int differ = 0;

	if (order == WEFT__ADMIN_BY_NAME)
		differ = strncmp(a->name, b->name, sizeof(a->name));
	else if (order == WEFT__ADMIN_BY_SINCE)
		differ = (a->since_ns > b->since_ns) - (a->since_ns < b->since_ns);
	else
		differ = (a->stack_used < b->stack_used) - (a->stack_used > b->stack_used);
	return differ < 0 || (differ == 0 && a->id < b->id);
}

static bool
item_before(const struct weft__admin_top *top, size_t a, size_t b)
{
	return before(top->order, &top->items[a].info, &top->items[b].info);
}

static void
swap(struct weft__admin_top *top, size_t a, size_t b)
{
	struct weft__admin_entry item = top->items[a];

	top->items[a] = top->items[b];
	top->items[b] = item;
}

static void
sift_up(struct weft__admin_top *top, size_t at)
{
	while (at > 0 && item_before(top, (at - 1) / 2, at)) {
		swap(top, (at - 1) / 2, at);
		at = (at - 1) / 2;
	}
}

static void
sift_down(struct weft__admin_top *top, size_t count)
{
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < count && item_before(top, child, child + 1))
			child++;
		if (child >= count || !item_before(top, at, child))
			return;
		swap(top, at, child);
		at = child;
	}
}

void
weft__admin_top_add(struct weft__admin_top *top, const struct weft__admin_entry *entry)
{
	if (top->count < top->max) {
		top->items[top->count] = *entry;
		sift_up(top, top->count++);
	} else if (before(top->order, &entry->info, &top->items[0].info)) {
		top->items[0] = *entry;
		sift_down(top, top->count);
	}
}

bool
weft__admin_top_sort_step(struct weft__admin_top *top, size_t *left)
{
	if (*left < 2)
		return false;
	swap(top, 0, --*left);
	sift_down(top, *left);
	return true;
}
