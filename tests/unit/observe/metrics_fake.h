/* metrics_fake.h - loops on a fake clock, for the tests of metrics.
 *
 * Only a callback or a wait advances the clock.  An event that wakes a loop happens inside its
 * wait: a post made there finds the sleep mark, as a post by another thread would.
 */
#ifndef WEFT_METRICS_FAKE_H
#define WEFT_METRICS_FAKE_H

#include <weft/metrics.h>
#include "base/sys.h"
#include "test.h"

#define OK(call) CHECK_EQ(call, 0)

/* --- a sys table with its own clock ------------------------------------- */

static const struct weft__sys *plain;
static struct weft__sys faked;
static uint64_t clock_ns;
static void (*on_park)(void);

static inline uint64_t
now(void)
{
	return clock_ns;
}

static inline int
park(weft__a32 *word, uint32_t value, uint64_t deadline_ns)
{
	void (*then)(void) = on_park;

	(void)word;
	(void)value;
	on_park = NULL;
	if (then) {
		then();
		return 0;
	}
	CHECK(deadline_ns != WEFT_NEVER); /* else the wait would never end */
	if (clock_ns < deadline_ns)
		clock_ns = deadline_ns;
	return -ETIMEDOUT;
}

static inline void
fake(void)
{
	plain = weft__sys;
	faked = *plain;
	weft__sys = &faked;
}

static inline void
fake_clock(void)
{
	fake();
	clock_ns = 1000 * WEFT_S;
	on_park = NULL;
	faked.now = now;
	faked.park = park;
}

static inline void
unfake(void)
{
	weft__sys = plain;
}

/* --- what loops do here ------------------------------------------------- */

static inline weft_loop *
make(uint32_t flags)
{
	weft_loop_opts opts = { .flags = flags | WEFT_LOOP_NO_SPIN };
	weft_loop *loop = weft_loop_new(&opts);

	CHECK(loop != NULL);
	return loop;
}

static inline struct weft_loop_stats
stats_of(weft_loop *loop)
{
	struct weft_loop_stats stats;

	OK(weft_loop_stats(loop, &stats));
	return stats;
}

static inline void
end(weft_loop *loop)
{
	weft_loop_shutdown(loop);
	OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
	OK(weft_loop_free(loop));
}

static inline void
nothing(void *arg)
{
	(void)arg;
}

static inline void
take_time(void *arg)
{
	clock_ns += (uint64_t)(uintptr_t)arg;
}

static inline void
take_time_by_timer(weft_timer *timer, void *arg)
{
	(void)timer;
	take_time(arg);
}

#define TIME(ns) ((void *)(uintptr_t)(ns))

static inline bool
is_near(double got, double want)
{
	return got >= want * 0.95 && got <= want * 1.05;
}

#define CHECK_NEAR(got, want)                                              \
	(is_near((double)(got), (double)(want))                            \
	         ? (void)0                                                 \
	         : test_fail(__FILE__, __LINE__, "%s is %g, not %g", #got, \
	                     (double)(got), (double)(want)))

/* The loop that post_from_outside() wakes. */
static weft_loop *woken;

static inline void
post_from_outside(void)
{
	clock_ns += 100 * WEFT_US;
	OK(weft_loop_post(woken, nothing, NULL));
	clock_ns += 300 * WEFT_US; /* until the loop gets a CPU */
}

#endif
