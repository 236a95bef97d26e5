/* histogram.h - a histogram in constant memory, with an error of at most 3 %.
 *
 * Values below 32 have one bucket each.  Above that, every octave has 16 buckets of equal
 * width.  The middle of a bucket represents all its values, and differs from each by at most half
 * the width, 1/32 of the value.
 *
 *   1. Either one thread adds with weft__histogram_add(), by plain loads and stores, as a loop
 *      does to its own; or any threads add with weft_histogram_record() and
 *      weft_histogram_merge(), by atomic instructions.
 *   2. Both add to the sum and the maximum before they count the value (release), and a reader
 *      reads the counts first (acquire): its sum and maximum include every value counted.
 *
 * Needs: base.  Thread: see 1.  Any thread may sum up a histogram at the same time, and reads the
 * current value of each bucket.
 */
#ifndef WEFT_BASE_HISTOGRAM_H
#define WEFT_BASE_HISTOGRAM_H

#include <weft/histogram.h>
#include "base/atomic.h"

#define WEFT__SUB_BITS 4 /* 16 buckets per octave */
#define WEFT__BUCKETS  ((65 - WEFT__SUB_BITS) << WEFT__SUB_BITS)

struct weft_histogram {
	weft__a64 counts[WEFT__BUCKETS];
	weft__a64 sum; /* of all values; saturates */
	weft__a64 max;
};

/* The sum of several histograms. */
struct weft__histogram_sum {
	uint64_t counts[WEFT__BUCKETS];
	uint64_t count, sum, max;
};

/* The bucket of a value, with 2^bits buckets per octave. */
static inline unsigned
weft__bucket_of(uint64_t value, unsigned bits)
{
	unsigned shift;

	if (value >> bits == 0)
		return (unsigned)value;
	shift = 63u - (unsigned)__builtin_clzll(value) - bits;
	return (shift << bits) + (unsigned)(value >> shift);
}

/* The lowest value of a bucket; *width is the number of values in it. */
static inline uint64_t
weft__bucket_low(unsigned bucket, unsigned bits, uint64_t *width)
{
	unsigned shift = bucket >> bits ? (bucket >> bits) - 1 : 0;

	*width = (uint64_t)1 << shift;
	return (uint64_t)(bucket - (shift << bits)) << shift;
}

static inline uint64_t
weft__bucket_middle(unsigned bucket, unsigned bits)
{
	uint64_t width, low = weft__bucket_low(bucket, bits, &width);

	return low + width / 2;
}

/* Count a value `weight` times, on the only thread that adds. */
void weft__histogram_add(weft_histogram *h, uint64_t value, uint32_t weight);

void weft__histogram_clear(weft_histogram *h);

/* Add the counts of `h` to `sum`. */
void weft__histogram_sum(const weft_histogram *h, struct weft__histogram_sum *sum);

/* The value that `percent` of all values do not exceed; 0 if there are none. */
uint64_t weft__histogram_quantile(const struct weft__histogram_sum *sum, unsigned percent);

weft_quantiles weft__histogram_quantiles(const struct weft__histogram_sum *sum);

#endif
