/* observe.c - a meter for a loop while somebody looks, and none else.
 *
 * Who looks makes the meter and says until when it is to be kept.  The runner keeps it
 * from its next wake on, and lets it rest at the first timed turn that is later.
 *
 *   1. `meter` is set once (M, release), before anybody asks by `observed_ns`, and is given
 *      back with the loop.
 *   2. `metering` is 0 or the meter, and is written by the runner, or by who holds a loop
 *      that does not run (K, release): whoever finds the meter there may read it, and
 *      write `posted`, also when the runner has switched it off meanwhile.
 *   3. Who makes `observed_ns` other than 0 wakes the loop; who makes it later need not.
 *      The runner makes it 0 by an exchange that fails if it has become later, and lets
 *      the meter rest only then.  So while it is not 0 the meter is kept, or the loop has
 *      been woken to keep it.
 *   4. A loop with WEFT_LOOP_METRICS has WEFT_NEVER there: nothing is later.
 */
#include "loop/loop.h"

void
weft__meter_on(weft_loop *loop)
{
	uintptr_t meter = weft__load(&loop->meter, WEFT__ACQUIRE); /* M */

	if (weft__loop_meter(loop) || !meter)
		return;
	weft__meter_reset(loop, (struct weft__meter *)meter);
	loop->timed_turn = weft__count_get(&loop->counts.turns) + 1;
	weft__store(&loop->metering, meter, WEFT__RELEASE); /* K */
}

bool
weft__meter_off(weft_loop *loop, uint64_t now_ns)
{
	uint64_t until_ns = weft__load(&loop->observed_ns, WEFT__RELAXED);

	if (now_ns <= until_ns || !weft__cas(&loop->observed_ns, &until_ns, 0, WEFT__RELAXED))
		return false; /* invariant 3 */
	weft__store(&loop->metering, 0, WEFT__RELAXED);
	loop->timed_turn = 0;
	return true;
}

/* See that there is a meter; invariant 1. */
static int
make_meter(weft_loop *loop)
{
	struct weft__meter *meter;
	uintptr_t other = 0;

	if (weft__load(&loop->meter, WEFT__ACQUIRE)) /* M */
		return 0;
	meter = weft__meter_new();
	if (!meter)
		return weft__fail(WEFT_ENOMEM, "weft_loop_observe: out of memory");
	if (!weft__cas(&loop->meter, &other, (uintptr_t)meter, WEFT__RELEASE)) /* M */
		weft__sys->release(meter);
	return 0;
}

/* Its own thread is the runner; else it is told, or held as nobody runs it. */
static void
begin(weft_loop *loop)
{
	if (weft__thread_self()->loop == loop) {
		weft__meter_on(loop);
	} else if (weft__loop_hold(loop)) {
		weft__meter_on(loop);
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
	rc = make_meter(loop);
	if (rc < 0)
		return rc;
	do {
		if (before_ns >= until_ns)
			return 0;
	} while (!weft__cas(&loop->observed_ns, &before_ns, until_ns, WEFT__RELEASE));
	if (before_ns == 0)
		begin(loop);
	return 0;
}

int
weft_loop_observe(uint64_t number, uint64_t until_ns)
{
	uint64_t after = 0;
	weft_loop *loop;
	int rc = 0, one;

	if (number == 0) {
		while ((loop = weft__registry_next(&after))) {
			one = observe(loop, until_ns);
			weft__loop_exit(loop);
			rc = one < 0 ? one : rc;
		}
		return rc;
	}
	loop = weft__registry_find(number);
	if (!loop)
		return weft__fail(WEFT_ENOENT, "weft_loop_observe: there is no such loop");
	rc = observe(loop, until_ns);
	weft__loop_exit(loop);
	return rc;
}
