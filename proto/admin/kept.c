/* kept.c - the first of many threadlets in some order (top-k), in bounded memory.
 *
 * The kept ones are a heap whose root is the last of them.  A new one that comes before the
 * root replaces it.  Finally the heap is sorted step by step, so that sorting many does not
 * block the loop.
 */
#include "look.h"
#include <string.h>

/* Whether `a` comes before `b`; equal ones are ordered by age. */
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
item_before(const struct weft__admin_kept *kept, size_t a, size_t b)
{
	return before(kept->order, &kept->items[a].info, &kept->items[b].info);
}

static void
swap(struct weft__admin_kept *kept, size_t a, size_t b)
{
	struct weft__admin_found item = kept->items[a];

	kept->items[a] = kept->items[b];
	kept->items[b] = item;
}

static void
sift_up(struct weft__admin_kept *kept, size_t at)
{
	while (at > 0 && item_before(kept, (at - 1) / 2, at)) {
		swap(kept, (at - 1) / 2, at);
		at = (at - 1) / 2;
	}
}

static void
sift_down(struct weft__admin_kept *kept, size_t count)
{
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < count && item_before(kept, child, child + 1))
			child++;
		if (child >= count || !item_before(kept, at, child))
			return;
		swap(kept, at, child);
		at = child;
	}
}

void
weft__admin_keep(struct weft__admin_kept *kept, const struct weft__admin_found *found)
{
	if (kept->count < kept->max) {
		kept->items[kept->count] = *found;
		sift_up(kept, kept->count++);
	} else if (before(kept->order, &found->info, &kept->items[0].info)) {
		kept->items[0] = *found;
		sift_down(kept, kept->count);
	}
}

bool
weft__admin_sort_step(struct weft__admin_kept *kept, size_t *left)
{
	if (*left < 2)
		return false;
	swap(kept, 0, --*left);
	sift_down(kept, *left);
	return true;
}
