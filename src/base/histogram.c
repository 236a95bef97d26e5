/* histogram.c - a histogram in constant memory, with an error of at most 3 %. */
#include "base/histogram.h"
#include "base/thread.h"

static uint64_t
add_up_to_max(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* --- one thread adds ---------------------------------------------------- */

void
weft__histogram_add(weft_histogram *h, uint64_t value, uint32_t weight)
{
	weft__a64 *count = &h->counts[weft__bucket_of(value, WEFT__SUB_BITS)];
	uint64_t all;

	if (__builtin_mul_overflow(value, (uint64_t)weight, &all))
		all = UINT64_MAX;
	weft__count_set(&h->sum, add_up_to_max(weft__count_get(&h->sum), all));
	if (value > weft__count_get(&h->max))
		weft__count_set(&h->max, value);
	weft__store(count, weft__count_get(count) + weight, WEFT__RELEASE); /* invariant 2 */
}

void
weft__histogram_clear(weft_histogram *h)
{
	for (unsigned i = 0; i < WEFT__BUCKETS; i++)
		weft__count_set(&h->counts[i], 0);
	weft__count_set(&h->sum, 0);
	weft__count_set(&h->max, 0);
}

/* --- any thread adds ---------------------------------------------------- */

weft_histogram *
weft_histogram_new(void)
{
	weft_histogram *h = weft__alloc_zero(sizeof(*h));

	if (!h)
		(void)weft__fail(WEFT_ENOMEM, "weft_histogram_new: no memory");
	return h;
}

void
weft_histogram_free(weft_histogram *h)
{
	weft__sys->release(h);
}

static void
histogram_add_shared(weft_histogram *h, uint64_t sum, uint64_t max)
{
	uint64_t before = weft__load(&h->sum, WEFT__RELAXED);

	while (!weft__cas(&h->sum, &before, add_up_to_max(before, sum), WEFT__RELAXED))
		;
	before = weft__load(&h->max, WEFT__RELAXED);
	while (max > before && !weft__cas(&h->max, &before, max, WEFT__RELAXED))
		;
}

void
weft_histogram_record(weft_histogram *h, uint64_t value)
{
	if (!h) {
		(void)weft__misuse(WEFT_EINVAL, "weft_histogram_record: the histogram is NULL");
		return;
	}
	histogram_add_shared(h, value, value);
	(void)weft__add(&h->counts[weft__bucket_of(value, WEFT__SUB_BITS)], 1,
	                WEFT__RELEASE); /* invariant 2 */
}

int
weft_histogram_merge(weft_histogram *into, const weft_histogram *from)
{
	struct weft__histogram_sum sum = { .count = 0 };

	if (!into || !from || into == from)
		return weft__misuse(WEFT_EINVAL, "weft_histogram_merge: a histogram is NULL, or "
		                                 "both are the same");
	weft__histogram_sum(from, &sum);
	histogram_add_shared(into, sum.sum, sum.max);
	for (unsigned i = 0; i < WEFT__BUCKETS; i++)
		if (sum.counts[i] > 0)
			(void)weft__add(&into->counts[i], sum.counts[i],
			                WEFT__RELEASE); /* invariant 2 */
	return 0;
}

/* --- reading ------------------------------------------------------------ */

void
weft__histogram_sum(const weft_histogram *h, struct weft__histogram_sum *sum)
{
	uint64_t max;

	for (unsigned i = 0; i < WEFT__BUCKETS; i++) {
		uint64_t count = weft__load(&h->counts[i], WEFT__ACQUIRE); /* invariant 2 */

		sum->counts[i] += count;
		sum->count += count;
	}
	sum->sum = add_up_to_max(sum->sum, weft__count_get(&h->sum));
	max = weft__count_get(&h->max);
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

weft_quantiles
weft__histogram_quantiles(const struct weft__histogram_sum *sum)
{
	return (weft_quantiles){
		.count = sum->count,
		.mean = sum->count ? sum->sum / sum->count : 0,
		.p50 = weft__histogram_quantile(sum, 50),
		.p90 = weft__histogram_quantile(sum, 90),
		.p95 = weft__histogram_quantile(sum, 95),
		.p99 = weft__histogram_quantile(sum, 99),
		.max = sum->max,
	};
}

/* Does not use the maximum: a later reading must not find a smaller count for any bound. */
static void
histogram_fill_buckets(const struct weft__histogram_sum *sum, struct weft_histogram_stats *out)
{
	static const uint64_t digits[] = { 1, 2, 5 };
	uint64_t power = 1, count = 0;
	unsigned bucket = 0;

	for (unsigned i = 0; i < WEFT_HISTOGRAM_BOUNDS; i++) {
		uint64_t bound = digits[i % 3] * power;

		while (bucket < WEFT__BUCKETS
		       && weft__bucket_middle(bucket, WEFT__SUB_BITS) <= bound)
			count += sum->counts[bucket++];
		out->buckets[i].bound = bound;
		out->buckets[i].count = count;
		if (i % 3 == 2)
			power *= 10;
	}
}

int
weft_histogram_stats(const weft_histogram *h, struct weft_histogram_stats *out)
{
	struct weft__histogram_sum sum = { .count = 0 };

	if (!h || !out)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_histogram_stats: the histogram or out is NULL");
	weft__histogram_sum(h, &sum);
	*out = (struct weft_histogram_stats){
		.values = weft__histogram_quantiles(&sum),
		.sum = sum.sum,
	};
	histogram_fill_buckets(&sum, out);
	return 0;
}
