/* unwind_test.c - unwinding a suspended threadlet through code without frame pointers.
 *
 * In a build that does not read unwind tables some callers are missing; the tests are skipped.
 */
#include <weft/debug.h>
#include "threadlet/threadlet.h"
#include "unit/threadlet/sched.h"
#include "unit/threadlet/lean.h"

enum { DEPTH = 3 };

static int
sleep_for_ever(void)
{
	return weft_sleep_until(WEFT_NEVER);
}

static int
wait_for_value(void)
{
	weft_chan *chan = weft_chan_new(sizeof(uint64_t), 0, 0);
	uint64_t value;
	int rc;

	CHECK(chan != NULL);
	/* This call binds the channel to the loop. */
	CHECK_EQ(weft_chan_recv(chan, &value, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	rc = weft_chan_recv(chan, &value, WEFT_NEVER);
	weft_chan_unref(chan);
	return rc;
}

static int (*park)(void);

static __attribute__((noinline)) int
park_in_lean_code(void *arg)
{
	int rc = lean_outer(DEPTH, park);

	note(arg);
	return rc - DEPTH - 2;
}

static bool
is_in(const void *pc, uintptr_t fn)
{
	return (uintptr_t)pc > fn && (uintptr_t)pc < fn + 256;
}

/* Counts the frames that are in the function. */
static int
count_in(const weft_threadlet_info *info, uintptr_t fn)
{
	int count = 0;

	for (int i = 0; i < 16 && info->frames[i]; i++)
		count += is_in(info->frames[i], fn);
	return count;
}

static void
find_callers_of(int (*fn)(void))
{
	weft_loop *loop = make();
	weft_threadlet_info info;
	uint64_t cursor = 0;

	park = fn;
	(void)go_on(loop, park_in_lean_code, MARK('p'));
	turns(loop, 2);
	CHECK_EQ(weft__threadlet_list(loop, &cursor, &info, 1, WEFT_NEVER), 1);
	stop_idle(loop);
	CHECK_STR(trace, "p");
	if (!HAS_UNWIND)
		test_skip("unwind tables are not read in this build");
	CHECK(count_in(&info, (uintptr_t)lean_inner) >= DEPTH + 1);
	CHECK(count_in(&info, (uintptr_t)lean_outer) >= 1);
	CHECK(count_in(&info, (uintptr_t)park_in_lean_code) >= 1);
}

TEST(callers_without_frame_pointers_are_found_by_unwind_tables)
{
	find_callers_of(sleep_for_ever);
}

TEST(callers_of_a_threadlet_that_waits_for_a_channel_are_found_too)
{
	find_callers_of(wait_for_value);
}
