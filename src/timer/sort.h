/* sort.h - sorts due wheel entries by (deadline, start). */
#ifndef WEFT_TIMER_SORT_H
#define WEFT_TIMER_SORT_H

#include "timer/wheel.h"

/* In place, O(n log n) in the worst case, without allocating. */
void weft__wheel_sort(struct weft__wheel_item *item, size_t count);

#endif
