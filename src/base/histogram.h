/* histogram.h - how often which values came, to 3 % and in constant memory.
 *
 * Values below 32 have a bucket each; from there on every octave has 16 of equal
 * width, and the middle of a bucket stands for what is in it: it is off by at most
 * half a width, 1/32 of the value.
 *
 * Needs: base.  Thread: one adds; any may sum it up meanwhile, and finds each bucket as
 * it is at that moment.
 */
#ifndef WEFT_BASE_HISTOGRAM_H
#define WEFT_BASE_HISTOGRAM_H

#include "base/atomic.h"

#define WEFT__SUB_BITS 4 /* 16 buckets an octave */
#define WEFT__BUCKETS  ((65 - WEFT__SUB_BITS) << WEFT__SUB_BITS)

struct weft__histogram {
	weft__a32 counts[WEFT__BUCKETS];
	weft__a64 sum; /* of the values; stays at its maximum */
	weft__a64 max;
};

/* Several of them taken together. */
struct weft__histogram_sum {
	uint64_t counts[WEFT__BUCKETS];
	uint64_t count, sum, max;
};

/* The bucket of a value, with 2^bits of them an octave. */
static inline unsigned
weft__bucket_of(uint64_t value, unsigned bits)
{
	unsigned shift;

	if (value >> bits == 0)
		return (unsigned)value;
	shift = 63u - (unsigned)__builtin_clzll(value) - bits;
	return (shift << bits) + (unsigned)(value >> shift);
}

/* The least value of a bucket, and how many it has. */
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

/* Count a value `weight` times. */
void weft__histogram_add(struct weft__histogram *h, uint64_t value, uint32_t weight);

void weft__histogram_clear(struct weft__histogram *h);

/* Add what `h` has to `sum`. */
void weft__histogram_sum(const struct weft__histogram *h,
                         struct weft__histogram_sum *sum);

/* The value that `percent` of all do not exceed; 0 if there are none. */
uint64_t weft__histogram_quantile(const struct weft__histogram_sum *sum,
                                  unsigned percent);

#endif
