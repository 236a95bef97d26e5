/* observe.c - a sampler for a loop while it is observed.
 *
 * An observer makes the sampler and sets the time until which it is wanted.  The runner activates
 * it at its next wake, and deactivates it at the first timed iteration after that time.
 *
 *   1. `sampler` is set once (M, release), before any thread requests sampling by `observed_ns`,
 *      and is freed with the loop.
 *   2. `sampling` is 0 or the sampler.  The runner writes it, or the thread that holds a loop
 *      that does not run (K, release).  A thread that finds the sampler there may read it, and
 *      write `posted`, even if the runner has deactivated it meanwhile.
 *   3. An observer that changes `observed_ns` from 0 wakes the loop; one that only extends it
 *      need not.  The runner sets it to 0 by a compare-exchange that fails if it was extended,
 *      and deactivates the sampler only then.  So while `observed_ns` is not 0 the sampler is
 *      active, or the loop has been woken to activate it.
 *   4. A loop with WEFT_LOOP_METRICS has WEFT_NEVER there: no time is later.
 */
#include "loop/core/loop.h"

void
weft__sampler_on(weft_loop *loop)
{
	uintptr_t sampler = weft__load(&loop->sampler, WEFT__ACQUIRE); /* M */

	if (weft__loop_sampler(loop) || !sampler)
		return;
	weft__sampler_reset(loop, (struct weft__sampler *)sampler);
	loop->timed_turn = weft__count_get(&loop->counts.turns) + 1;
	weft__store(&loop->sampling, sampler, WEFT__RELEASE); /* K */
}

bool
weft__sampler_off(weft_loop *loop, uint64_t now_ns)
{
	uint64_t until_ns = weft__load(&loop->observed_ns, WEFT__RELAXED);

	if (now_ns <= until_ns || !weft__cas(&loop->observed_ns, &until_ns, 0, WEFT__RELAXED))
		return false; /* invariant 3 */
	weft__store(&loop->sampling, 0, WEFT__RELAXED);
	loop->timed_turn = 0;
	return true;
}

/* Make the sampler, unless there is one; invariant 1. */
static int
make_sampler(weft_loop *loop)
{
	struct weft__sampler *sampler;
	uintptr_t other = 0;

	if (weft__load(&loop->sampler, WEFT__ACQUIRE)) /* M */
		return 0;
	sampler = weft__sampler_new();
	if (!sampler)
		return weft__fail(WEFT_ENOMEM, "weft_loop_observe: out of memory");
	if (!weft__cas(&loop->sampler, &other, (uintptr_t)sampler, WEFT__RELEASE)) /* M */
		weft__sys->release(sampler);
	return 0;
}

/* Activate it here, on the loop's own thread, or hold a loop that no thread runs; else wake
 * the loop. */
static void
observe_begin(weft_loop *loop)
{
	if (weft__thread_self()->loop == loop) {
		weft__sampler_on(loop);
	} else if (weft__loop_hold(loop)) {
		weft__sampler_on(loop);
		weft__loop_give_back(loop);
	} else {
		weft__loop_wake(loop);
	}
}

static int
observe(weft_loop *loop, uint64_t until_ns)
{
	uint64_t before_ns = weft__load(&loop->observed_ns, WEFT__RELAXED);
	int rc;

	if (before_ns >= until_ns)
		return 0;
	rc = make_sampler(loop);
	if (rc < 0)
		return rc;
	do {
		if (before_ns >= until_ns)
			return 0;
	} while (!weft__cas(&loop->observed_ns, &before_ns, until_ns, WEFT__RELEASE));
	if (before_ns == 0)
		observe_begin(loop);
	return 0;
}

int
weft_loop_observe(uint64_t id, uint64_t until_ns)
{
	uint64_t after = 0;
	weft_loop *loop;
	int rc = 0, one;

	if (id == 0) {
		while ((loop = weft__registry_next(&after))) {
			one = observe(loop, until_ns);
			weft__loop_exit(loop);
			rc = one < 0 ? one : rc;
		}
		return rc;
	}
	loop = weft__registry_find(id);
	if (!loop)
		return weft__fail(WEFT_ENOENT, "weft_loop_observe: no loop has this ID");
	rc = observe(loop, until_ns);
	weft__loop_exit(loop);
	return rc;
}
