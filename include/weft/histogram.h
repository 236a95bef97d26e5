/* weft/histogram.h - histograms of the program's own numbers, such as latencies.
 *
 * A histogram counts values in 8 KiB of memory, however many there are, and returns their
 * quantiles with at most 5 % error; values below 32 are exact.
 *
 *   1. Any number of threads may record in a histogram, merge it and read it at the same time.
 *      Recording takes no lock: it costs a few atomic instructions.  If several threads each
 *      record millions of values per second, give each its own histogram, and merge these to
 *      read them.
 *   2. A reading has each value completely or not at all in its count and its buckets.  Its sum
 *      and its maximum include all counted values, and possibly values recorded meanwhile.
 *   3. Counts only grow.  To measure a time span, use a new histogram.
 */
#ifndef WEFT_HISTOGRAM_H
#define WEFT_HISTOGRAM_H

#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_histogram weft_histogram;

typedef struct weft_quantiles { /* in the unit of the values */
	uint64_t count, mean, p50, p90, p95, p99, max;
} weft_quantiles;

/* The bounds are 1, 2, 5, 10, 20, 50 and so on, up to 10^19. */
#define WEFT_HISTOGRAM_BOUNDS 58

struct weft_histogram_stats {
	weft_quantiles values;
	uint64_t       sum; /* of all values; at most UINT64_MAX */
	/* For each bound, how many values are not greater.  A value that is within 3 % of a bound
	 * may be counted as if it were on the other side of that bound. */
	struct { uint64_t bound, count; } buckets[WEFT_HISTOGRAM_BOUNDS];
	uint64_t       spare[4]; /* room for later versions */
};

/* Make an empty histogram.
 * Returns the histogram, NULL if memory is exhausted.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_histogram *weft_histogram_new(void);

/* Free a histogram, once no other thread uses it and no admin endpoint shows it.  Takes the
 * histogram; accepts NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_histogram_free(weft_histogram *histogram);

/* Count a value, for example a latency in nanoseconds.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_histogram_record(weft_histogram *histogram, uint64_t value);

/* Add everything that `from` has counted to `into`, another histogram.
 * Returns 0.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_histogram_merge(weft_histogram *into, const weft_histogram *from);

/* Read the quantiles, counts and sum of a histogram.  Needs 8 KiB of stack.
 * Returns 0.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_histogram_stats(const weft_histogram *histogram,
                                  struct weft_histogram_stats *out);

WEFT_END
#endif
