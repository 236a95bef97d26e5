/* sort.c - sorts due wheel entries in place; never fails and is never slow.
 *
 * Quicksort splits down to short pieces, which insertion sort finishes.  A piece that does not
 * shrink fast enough goes to heapsort, so no order of starting timers costs more than n log n.
 * Items that are already in order, as timers with one deadline usually are, take a single pass.
 */
#include "timer/sort.h"

#define SHORT 16

typedef struct weft__wheel_item item;

static inline bool
before(const item *a, const item *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->seq < b->seq;
}

static inline void
swap(item *a, item *b)
{
	item t = *a;

	*a = *b;
	*b = t;
}

static void
insertion_sort(item *e, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		item x = e[i];
		size_t j = i;

		for (; j > 0 && before(&x, &e[j - 1]); j--)
			e[j] = e[j - 1];
		e[j] = x;
	}
}

static void
sift_down(item *e, size_t at, size_t count)
{
	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && before(&e[child], &e[child + 1]))
			child++;
		if (!before(&e[at], &e[child]))
			return;
		swap(&e[at], &e[child]);
	}
}

static void
heap_sort(item *e, size_t count)
{
	for (size_t i = count / 2; i-- > 0;)
		sift_down(e, i, count);
	for (size_t end = count; end-- > 1;) {
		swap(&e[0], &e[end]);
		sift_down(e, 0, end);
	}
}

/* Split around the median of three: no item before the returned index sorts after any item from
 * the index on.  No two items are equal. */
static size_t
split(item *e, size_t count)
{
	item *mid = &e[count / 2], *last = &e[count - 1];
	item pivot;
	size_t i = 0, j = count - 1;

	if (before(mid, &e[0]))
		swap(mid, &e[0]);
	if (before(last, &e[0]))
		swap(last, &e[0]);
	if (before(last, mid))
		swap(last, mid);
	pivot = *mid;
	for (;;) {
		while (before(&e[i], &pivot))
			i++;
		while (before(&pivot, &e[j]))
			j--;
		if (i >= j)
			return i;
		swap(&e[i++], &e[j--]);
	}
}

static void
quick_sort(item *e, size_t count, int depth)
{
	while (count > SHORT) {
		size_t left;

		if (depth-- == 0) {
			heap_sort(e, count);
			return;
		}
		left = split(e, count);
		/* Recurse into the shorter part, so that the stack depth stays within log n. */
		if (left < count - left) {
			quick_sort(e, left, depth);
			e += left;
			count -= left;
		} else {
			quick_sort(e + left, count - left, depth);
			count = left;
		}
	}
	insertion_sort(e, count);
}

void
weft__wheel_sort(item *e, size_t count)
{
	size_t i = 1;

	while (i < count && before(&e[i - 1], &e[i]))
		i++;
	if (i < count)
		quick_sort(e, count, 2 * (63 - __builtin_clzll(count)));
}
