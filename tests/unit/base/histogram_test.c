/* histogram_test.c - quantiles from buckets, compared with the sorted values themselves.
 *
 * The error check itself is tested, too, with histograms that are wrong on purpose.
 */
#include <pthread.h>
#include <weft/histogram.h>
#include "base/histogram.h"
#include "base/sys.h"
#include "unit/probe.h"

#define VALUES  20000
#define PERCENT 5 /* allowed error */

typedef uint64_t (*draw_fn)(uint64_t *state);

static uint64_t
draw_small(uint64_t *state)
{
	return test_random(state) % 40;
}

static uint64_t
draw_evenly(uint64_t *state)
{
	return test_random(state) % 1000000;
}

/* Every order of magnitude is equally likely. */
static uint64_t
draw_widely(uint64_t *state)
{
	return test_random(state) >> (test_random(state) % 64);
}

static uint64_t
draw_two_humps(uint64_t *state)
{
	uint64_t noise = test_random(state) % 100;

	return test_random(state) % 10 ? 500 + noise : 70000000 + 1000 * noise;
}

/* The low edges of buckets, and the values right below them. */
static uint64_t
draw_edges(uint64_t *state)
{
	uint64_t edge = (16 + test_random(state) % 16) << (test_random(state) % 59);

	return edge - test_random(state) % 2;
}

static uint64_t
draw_extremes(uint64_t *state)
{
	static const uint64_t values[] = { 0, 1, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2 };

	return values[test_random(state) % 5];
}

static const draw_fn draws[] = { draw_small,     draw_evenly, draw_widely,
	                         draw_two_humps, draw_edges,  draw_extremes };

#define DRAWS (sizeof(draws) / sizeof(draws[0]))

static int
by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static bool
is_near(uint64_t got, uint64_t want)
{
	double off = (double)got - (double)want;

	return (off < 0 ? -off : off) * 100 <= (double)want * PERCENT;
}

/* --- checking the error ------------------------------------------------- */

/* Returns the value that represents `value`, by the library's buckets or by wrong ones. */
typedef uint64_t (*stand_fn)(uint64_t value);

static uint64_t
stand_middle(uint64_t value)
{
	return weft__bucket_middle(weft__bucket_of(value, WEFT__SUB_BITS), WEFT__SUB_BITS);
}

static uint64_t
stand_low_edge(uint64_t value)
{
	uint64_t width;

	return weft__bucket_low(weft__bucket_of(value, WEFT__SUB_BITS), WEFT__SUB_BITS, &width);
}

static uint64_t
stand_coarse(uint64_t value)
{
	return weft__bucket_middle(weft__bucket_of(value, 3), 3);
}

static uint64_t
stand_next(uint64_t value)
{
	return weft__bucket_middle(weft__bucket_of(value, WEFT__SUB_BITS) + 1, WEFT__SUB_BITS);
}

/* How many of many values are represented by a value outside the allowed error. */
static int
count_wrong(stand_fn stand)
{
	uint64_t state = test_seed();
	int wrong = 0;

	for (size_t d = 0; d < DRAWS; d++)
		for (int i = 0; i < VALUES; i++) {
			uint64_t value = draws[d](&state);

			if (value < UINT64_MAX - 1) /* the last bucket has no next one */
				wrong += !is_near(stand(value), value);
		}
	return wrong;
}

TEST(the_middle_of_a_bucket_is_within_5_percent_of_each_of_its_values)
{
	CHECK_EQ(count_wrong(stand_middle), 0);
}

TEST(the_check_detects_low_edges_wide_buckets_and_shifted_buckets)
{
	CHECK(count_wrong(stand_low_edge) > 0);
	CHECK(count_wrong(stand_coarse) > 0);
	CHECK(count_wrong(stand_next) > 0);
}

/* --- buckets ------------------------------------------------------------ */

TEST(every_bucket_begins_where_the_one_before_ends)
{
	uint64_t low, width, next = 0;

	for (unsigned i = 0; i < WEFT__BUCKETS; i++) {
		low = weft__bucket_low(i, WEFT__SUB_BITS, &width);
		CHECK_EQ(low, next);
		CHECK_EQ(weft__bucket_of(low, WEFT__SUB_BITS), i);
		CHECK_EQ(weft__bucket_of(low + width - 1, WEFT__SUB_BITS), i);
		next = low + width;
	}
	CHECK_EQ(next, 0); /* the last bucket ends with the largest number */
}

/* --- quantiles ---------------------------------------------------------- */

static void
check_quantiles(const uint64_t *values, int count)
{
	static const unsigned percents[] = { 1, 50, 90, 95, 99, 100 };
	static weft_histogram h;
	static struct weft__histogram_sum sum;

	weft__histogram_clear(&h);
	memset(&sum, 0, sizeof(sum));
	for (int i = 0; i < count; i++)
		weft__histogram_add(&h, values[i], 1);
	weft__histogram_sum(&h, &sum);
	CHECK_EQ(sum.count, count);
	CHECK_EQ(sum.max, values[count - 1]);
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		int rank = (count * (int)percents[i] + 99) / 100;
		uint64_t got = weft__histogram_quantile(&sum, percents[i]);

		if (!is_near(got, values[rank - 1]))
			test_fail(__FILE__, __LINE__, "P%u: %llu, not %llu", percents[i],
			          (unsigned long long)got, (unsigned long long)values[rank - 1]);
	}
}

TEST(quantiles_are_within_5_percent_of_the_sorted_values)
{
	static uint64_t values[VALUES];
	uint64_t state = test_seed();

	for (size_t d = 0; d < DRAWS; d++)
		for (int count = 1; count <= VALUES; count = 3 * count + 1) {
			for (int i = 0; i < count; i++)
				values[i] = draws[d](&state);
			qsort(values, (size_t)count, sizeof(values[0]), by_value);
			check_quantiles(values, count);
		}
}

TEST(an_empty_histogram_has_quantiles_of_0)
{
	static const struct weft__histogram_sum none;

	CHECK_EQ(weft__histogram_quantile(&none, 50), 0);
	CHECK_EQ(weft__histogram_quantile(&none, 100), 0);
}

TEST(a_weight_counts_as_that_many_values_and_sums_saturate)
{
	static weft_histogram h;
	static struct weft__histogram_sum sum;

	weft__histogram_add(&h, 10, 99);
	weft__histogram_add(&h, 20, 1);
	weft__histogram_sum(&h, &sum);
	CHECK_EQ(sum.count, 100);
	CHECK_EQ(sum.sum, 1010);
	CHECK_EQ(weft__histogram_quantile(&sum, 99), 10);
	CHECK_EQ(weft__histogram_quantile(&sum, 100), 20);
	weft__histogram_add(&h, UINT64_MAX, 2);
	weft__histogram_sum(&h, &sum); /* adds to the sums that are already there */
	CHECK_EQ(sum.count, 202);
	CHECK(sum.sum == UINT64_MAX && sum.max == UINT64_MAX);
}

/* --- histograms of programs ---------------------------------------------- */

static struct weft_histogram_stats
stats_of(const weft_histogram *h)
{
	struct weft_histogram_stats stats;

	OK(weft_histogram_stats(h, &stats));
	return stats;
}

/* How many values are in the bucket of `bound`. */
static uint64_t
up_to(const weft_histogram *h, uint64_t bound)
{
	struct weft_histogram_stats stats = stats_of(h);

	for (int i = 0; i < WEFT_HISTOGRAM_BOUNDS; i++)
		if (stats.buckets[i].bound == bound)
			return stats.buckets[i].count;
	test_fail(__FILE__, __LINE__, "no bound %llu", (unsigned long long)bound);
}

TEST(a_new_histogram_is_empty)
{
	weft_histogram *h = weft_histogram_new();
	struct weft_histogram_stats stats;

	CHECK(h != NULL);
	stats = stats_of(h);
	CHECK(stats.values.count == 0 && stats.values.mean == 0 && stats.values.p99 == 0);
	CHECK(stats.values.max == 0 && stats.sum == 0);
	CHECK_EQ(stats.buckets[WEFT_HISTOGRAM_BOUNDS - 1].count, 0);
	weft_histogram_free(h);
	weft_histogram_free(NULL);
}

TEST(recorded_values_are_in_the_count_the_sum_and_the_quantiles)
{
	weft_histogram *h = weft_histogram_new();
	struct weft_histogram_stats stats;

	for (uint64_t value = 1; value <= 1000; value++)
		weft_histogram_record(h, value);
	stats = stats_of(h);
	CHECK_EQ(stats.values.count, 1000);
	CHECK_EQ(stats.sum, 500500);
	CHECK_EQ(stats.values.mean, 500);
	CHECK_EQ(stats.values.max, 1000);
	CHECK(is_near(stats.values.p50, 500) && is_near(stats.values.p90, 900));
	CHECK(is_near(stats.values.p95, 950) && is_near(stats.values.p99, 990));
	weft_histogram_record(h, UINT64_MAX);
	stats = stats_of(h);
	CHECK(stats.sum == UINT64_MAX && stats.values.max == UINT64_MAX);
	weft_histogram_free(h);
}

TEST(buckets_count_the_values_up_to_each_bound)
{
	weft_histogram *h = weft_histogram_new();
	struct weft_histogram_stats stats = stats_of(h);
	uint64_t power = 1, most = 0;

	for (int i = 0; i + 2 < WEFT_HISTOGRAM_BOUNDS; i += 3, power *= 10) {
		CHECK_EQ(stats.buckets[i].bound, power);
		CHECK_EQ(stats.buckets[i + 1].bound, 2 * power);
		CHECK_EQ(stats.buckets[i + 2].bound, 5 * power);
	}
	CHECK_EQ(stats.buckets[WEFT_HISTOGRAM_BOUNDS - 1].bound, UINT64_C(10000000000000000000));
	for (uint64_t value = 0; value < 3000; value++)
		weft_histogram_record(h, value);
	CHECK_EQ(up_to(h, 1), 2);
	CHECK_EQ(up_to(h, 20), 21); /* small values are exact */
	CHECK(is_near(up_to(h, 100), 101) && is_near(up_to(h, 2000), 2001));
	CHECK_EQ(up_to(h, 5000), 3000);
	weft_histogram_record(h, UINT64_MAX);
	stats = stats_of(h);
	for (int i = 0; i < WEFT_HISTOGRAM_BOUNDS; i++) {
		CHECK(stats.buckets[i].count >= most && stats.buckets[i].count <= 3000);
		most = stats.buckets[i].count;
	}
	weft_histogram_free(h);
}

TEST(a_larger_maximum_does_not_take_values_out_of_a_bucket)
{
	weft_histogram *h = weft_histogram_new();

	for (uint64_t value = 900; value < 1100; value++) {
		uint64_t before = up_to(h, 1000);

		weft_histogram_record(h, value);
		CHECK(up_to(h, 1000) >= before);
	}
	weft_histogram_free(h);
}

TEST(merging_adds_what_the_other_histogram_has_counted)
{
	weft_histogram *all = weft_histogram_new(), *one = weft_histogram_new();
	struct weft_histogram_stats stats;

	weft_histogram_record(all, 3);
	weft_histogram_record(one, 3);
	weft_histogram_record(one, 700);
	OK(weft_histogram_merge(all, one));
	stats = stats_of(all);
	CHECK_EQ(stats.values.count, 3);
	CHECK_EQ(stats.sum, 706);
	CHECK_EQ(stats.values.max, 700);
	CHECK_EQ(up_to(all, 5), 2);
	CHECK_EQ(stats_of(one).values.count, 2);
	weft_histogram_free(all);
	weft_histogram_free(one);
}

/* --- threads ------------------------------------------------------------- */

#define THREADS  4
#define RECORDED 200000
#define MERGES   100

static pthread_barrier_t begin;

/* All record the same value: they compete for one bucket, and the sum equals the count. */
static void *
record_ones(void *h)
{
	(void)pthread_barrier_wait(&begin);
	for (int i = 0; i < RECORDED; i++)
		weft_histogram_record(h, 1);
	return NULL;
}

/* A value that is counted is in the sum and the maximum: invariant 2. */
static void
check_reading(const struct weft_histogram_stats *now, const struct weft_histogram_stats *before)
{
	uint64_t count = now->values.count;

	CHECK(count >= before->values.count && now->sum >= before->sum);
	CHECK(now->sum >= count);
	CHECK(now->values.max > 0 || count == 0);
	CHECK(now->buckets[0].count == count);
}

TEST(no_value_is_lost_when_threads_record_merge_and_read_at_once)
{
	weft_histogram *h = weft_histogram_new(), *other = weft_histogram_new();
	struct weft_histogram_stats stats, before = { .sum = 0 };
	pthread_t threads[THREADS];
	int merged = 0;

	weft_histogram_record(other, 1);
	OK(pthread_barrier_init(&begin, NULL, THREADS + 1));
	for (int i = 0; i < THREADS; i++)
		threads[i] = thread(record_ones, h);
	(void)pthread_barrier_wait(&begin);
	while (before.values.count < THREADS * RECORDED / 2 || merged < MERGES) {
		stats = stats_of(h);
		check_reading(&stats, &before);
		before = stats;
		if (merged < MERGES && ++merged)
			OK(weft_histogram_merge(h, other));
	}
	for (int i = 0; i < THREADS; i++)
		OK(pthread_join(threads[i], NULL));
	stats = stats_of(h);
	CHECK_EQ(stats.values.count, THREADS * RECORDED + MERGES);
	CHECK_EQ(stats.sum, THREADS * RECORDED + MERGES);
	CHECK_EQ(stats.values.max, 1);
	OK(pthread_barrier_destroy(&begin));
	weft_histogram_free(h);
	weft_histogram_free(other);
}

/* --- no memory, and misuse ------------------------------------------------ */

static void *
no_memory(size_t size)
{
	(void)size;
	return NULL;
}

TEST(a_histogram_without_memory_is_null)
{
	const struct weft__sys *real = weft__sys;
	struct weft__sys sys = *real;

	sys.alloc = no_memory;
	weft__sys = &sys;
	CHECK(!weft_histogram_new());
	weft__sys = real;
	CHECK_STR(weft_detail(), "weft_histogram_new: no memory");
}

TEST(invalid_arguments_for_histograms_are_misuse)
{
	weft_histogram *h = weft_histogram_new();
	struct weft_histogram_stats stats;

	CHECK_MISUSE(weft_histogram_stats(NULL, &stats), WEFT_EINVAL);
	CHECK_MISUSE(weft_histogram_stats(h, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_histogram_merge(h, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_histogram_merge(NULL, h), WEFT_EINVAL);
	CHECK_MISUSE(weft_histogram_merge(h, h), WEFT_EINVAL);
	if (!test_misuse_aborts)
		weft_histogram_record(NULL, 1);
	weft_histogram_free(h);
}
