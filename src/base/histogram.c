/* histogram.c - a histogram in constant memory, with an error of at most 3 %. */
#include "base/histogram.h"

static uint64_t
add_up_to_max(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void
weft__histogram_add(struct weft__histogram *h, uint64_t value, uint32_t weight)
{
	uint64_t all;

	if (__builtin_mul_overflow(value, (uint64_t)weight, &all))
		all = UINT64_MAX;
	(void)weft__count(&h->counts[weft__bucket_of(value, WEFT__SUB_BITS)], weight);
	weft__count_set(&h->sum, add_up_to_max(weft__count_get(&h->sum), all));
	if (value > weft__count_get(&h->max))
		weft__count_set(&h->max, value);
}

void
weft__histogram_clear(struct weft__histogram *h)
{
	for (unsigned i = 0; i < WEFT__BUCKETS; i++)
		weft__count_set(&h->counts[i], 0);
	weft__count_set(&h->sum, 0);
	weft__count_set(&h->max, 0);
}

void
weft__histogram_sum(const struct weft__histogram *h, struct weft__histogram_sum *sum)
{
	uint64_t max = weft__count_get(&h->max);

	for (unsigned i = 0; i < WEFT__BUCKETS; i++) {
		uint32_t count = weft__count_get(&h->counts[i]);

		sum->counts[i] += count;
		sum->count += count;
	}
	sum->sum = add_up_to_max(sum->sum, weft__count_get(&h->sum));
	if (max > sum->max)
		sum->max = max;
}

/* The maximum is known exactly, and no quantile exceeds it. */
uint64_t
weft__histogram_quantile(const struct weft__histogram_sum *sum, unsigned percent)
{
	uint64_t whole = sum->count / 100 * percent, seen = 0;
	uint64_t rank = whole + (sum->count % 100 * percent + 99) / 100;
	uint64_t value = 0;

	for (unsigned i = 0; i < WEFT__BUCKETS && seen < rank; i++) {
		seen += sum->counts[i];
		value = weft__bucket_middle(i, WEFT__SUB_BITS);
	}
	return value < sum->max ? value : sum->max;
}
