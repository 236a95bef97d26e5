/* histogram_test.c - quantiles from buckets, compared with the sorted values themselves.
 *
 * The error check itself is tested, too, with histograms that are wrong on purpose.
 */
#include "base/histogram.h"
#include "test.h"

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
	static struct weft__histogram h;
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
	static struct weft__histogram h;
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
