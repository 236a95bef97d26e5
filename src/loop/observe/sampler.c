/* sampler.c - the sampler: where a loop's time goes, as the loop's thread records it.
 *
 * A timed iteration reads the clock when it begins and at the end of each phase in which something
 * was called.  An iteration that follows a blocking wait is always timed, which costs little
 * compared to the wait.  While a loop runs without blocking, it times so many iterations that
 * timing takes about 1 % of its time; each stands for those since the timed one before.
 *
 * Values with a window are kept in slices, one more than the window is long: times in slices of
 * one second, as they take much memory; counts and depths in slices of 100 ms, so that rates
 * follow the load.  A slice is cleared and reused for a later period.  A reader detects that by
 * the mark of the slice, which is the number of the period plus 1:
 *
 *   1. Only the runner writes, except for `posted`.  Everything that other threads read is atomic.
 *   2. The mark of a slice is 0 while the slice is cleared (from X, acquire, to Y, release), and
 *      no other mark occurs twice.
 *   3. A reader loads the mark (S, acquire).  If it sees Y, it sees nothing from before the
 *      clearing.  It sums up, and then rechecks the mark by adding 0 (A, release).  If A finds
 *      the same mark, A comes before X in the modification order of that word, and X reads what
 *      A wrote (or the addition of another reader, which continues A's release sequence).  So
 *      everything that the reader has read comes before the clearing.
 *   4. Otherwise the reader starts again.  That happens only to a reader that was delayed for
 *      the length of a slice, because a slice leaves the window that long before it is reused.
 *
 * The lag of a post is measured where a thread has to wake the loop: the thread stores the
 * time in `posted` before it wakes the loop.  Posts that the loop finds while it is awake are
 * no older than its last check of the inbox, and that age is counted.
 */
#include "loop/core/loop.h"

#define STRIDE_FIRST 64u
#define STRIDE_MAX   1024u
#define STRIDE_NS    16384u /* between two timed iterations of a busy loop */
#define SAMPLES      32     /* samples in a moving average */
#define MANY         16u    /* iterations, of which one may have stalled */

struct weft__sampler *
weft__sampler_new(void)
{
	struct weft__sampler *sampler = weft__alloc_zero(sizeof(*sampler));

	if (sampler)
		sampler->stride = STRIDE_FIRST;
	return sampler;
}

/* --- slices ------------------------------------------------------------- */

/* Begin to clear a slice. */
static void
slice_clear(weft__slice_mark *mark)
{
	(void)weft__exchange(mark, 0, WEFT__ACQUIRE); /* X */
}

/* A slice has been cleared: use it for period `number`. */
static void
slice_open(weft__slice_mark *mark, uint64_t number)
{
	weft__store(mark, number + 1, WEFT__RELEASE); /* Y */
}

static void
times_clear(struct weft__times *times)
{
	slice_clear(&times->mark);
	weft__histogram_clear(&times->turn);
	weft__histogram_clear(&times->lag);
}

static void
rates_clear(struct weft__rates *rates)
{
	slice_clear(&rates->mark);
	weft__count_set(&rates->turns, 0);
	weft__count_set(&rates->calls, 0);
	weft__count_set(&rates->inbox_max, 0);
	weft__count_set(&rates->internal_max, 0);
	weft__count_set(&rates->tasks_max, 0);
}

/* The slices of the last clock reading. */
static struct weft__times *
times_now(struct weft__sampler *sampler)
{
	uint64_t number = sampler->at_ns / WEFT__TIMES_NS;

	if (sampler->times && sampler->at_ns < sampler->times_end_ns)
		return sampler->times;
	sampler->times = &sampler->all_times[number % (WEFT__TIMES + 1)];
	sampler->times_end_ns = (number + 1) * WEFT__TIMES_NS;
	times_clear(sampler->times);
	slice_open(&sampler->times->mark, number);
	return sampler->times;
}

static struct weft__rates *
rates_now(struct weft__sampler *sampler)
{
	uint64_t number = sampler->at_ns / WEFT__RATES_NS;

	if (sampler->rates && sampler->at_ns < sampler->rates_end_ns)
		return sampler->rates;
	sampler->rates = &sampler->all_rates[number % (WEFT__RATES + 1)];
	sampler->rates_end_ns = (number + 1) * WEFT__RATES_NS;
	rates_clear(sampler->rates);
	slice_open(&sampler->rates->mark, number);
	return sampler->rates;
}

static uint64_t
calls_of(const struct weft__counts *counts)
{
	uint64_t calls = 0;

	for (int i = 0; i < WEFT_PHASES; i++)
		calls += weft__count_get(&counts->calls[i]);
	return calls;
}

/* Add what was counted since the last flush to the slice of the last clock reading. */
static void
flush(weft_loop *loop)
{
	struct weft__sampler *sampler = weft__loop_sampler(loop);
	struct weft__rates *rates = rates_now(sampler);
	uint64_t turns = weft__count_get(&loop->counts.turns);
	uint64_t calls = calls_of(&loop->counts);

	(void)weft__count(&rates->turns, turns - sampler->turns);
	(void)weft__count(&rates->calls, calls - sampler->calls);
	sampler->turns = turns;
	sampler->calls = calls;
}

/* The window begins again: what was called while the sampler was off is in no slice. */
void
weft__sampler_reset(weft_loop *loop, struct weft__sampler *sampler)
{
	uint64_t now_ns = weft__sys->now();

	sampler->at_ns = sampler->woke_ns = sampler->posted_ns = 0;
	sampler->turns_timed = weft__count_get(&loop->counts.turns);
	sampler->times = NULL;
	sampler->rates = NULL;
	for (unsigned i = 0; i <= WEFT__TIMES; i++)
		times_clear(&sampler->all_times[i]);
	for (unsigned i = 0; i <= WEFT__RATES; i++)
		rates_clear(&sampler->all_rates[i]);
	sampler->turns = sampler->turns_timed;
	sampler->calls = calls_of(&loop->counts);
	weft__count_set(&sampler->born_ns, now_ns);
}

static void
loop_sampler_check(struct weft__gauge *gauge, weft__a64 *max, uint64_t depth)
{
	int64_t step = ((int64_t)(depth << 16) - (int64_t)weft__count_get(&gauge->average))
	               / SAMPLES;

	weft__count_set(&gauge->now, depth);
	(void)weft__count(&gauge->average, step);
	if (depth > weft__count_get(max))
		weft__count_set(max, depth);
}

/* --- a timed iteration -------------------------------------------------- */

/* Iterations since the last one in the histogram, which the caller adds to it now. */
static uint32_t
turns_since(weft_loop *loop)
{
	uint64_t turns = weft__count_get(&loop->counts.turns);
	uint64_t since = turns - weft__loop_sampler(loop)->turns_timed;

	weft__loop_sampler(loop)->turns_timed = turns;
	return since < UINT32_MAX ? (uint32_t)since : UINT32_MAX;
}

/* The loop has not blocked since the last timed iteration. */
static void
pace(struct weft__sampler *sampler, uint64_t now_ns)
{
	sampler->gap_ns = now_ns - sampler->at_ns;
	sampler->period_ns = (now_ns - sampler->begin_ns) / sampler->weight;
	if (sampler->period_ns * STRIDE_MAX <= STRIDE_NS)
		sampler->stride = STRIDE_MAX;
	else
		sampler->stride = sampler->period_ns < STRIDE_NS
		                          ? STRIDE_NS / (uint32_t)sampler->period_ns
		                          : 1;
}

void
weft__sampler_begin(weft_loop *loop)
{
	struct weft__sampler *sampler = weft__loop_sampler(loop);
	uint64_t now_ns = sampler->at_ns;

	sampler->weight = sampler->scale = turns_since(loop);
	sampler->gap_ns = sampler->period_ns = 0;
	/* Right after a timed iteration, its last reading is the first of this one. */
	if (!now_ns || sampler->weight > 1)
		loop->now_ns = now_ns = weft__sys->now();
	if (weft__sampler_off(loop, now_ns))
		return;
	if (sampler->at_ns && !sampler->woke_ns)
		pace(sampler, now_ns);
	sampler->at_ns = sampler->begin_ns = now_ns;
	sampler->busy_ns = sampler->tasks_ns = 0;
	sampler->drains = 0;
	sampler->whole = true;
	flush(loop);
	loop->timed = sampler;
	loop->timed_turn = weft__count_get(&loop->counts.turns) + sampler->stride;
}

void
weft__sampler_mark(weft_loop *loop, int phase)
{
	struct weft__sampler *sampler = loop->timed;
	uint64_t now_ns = weft__sys->now(), ns = now_ns - sampler->at_ns;
	uint64_t tasks_ns = sampler->tasks_ns < ns ? sampler->tasks_ns : ns;

	(void)weft__count(&sampler->phase_ns[phase], (ns - tasks_ns) * sampler->scale);
	(void)weft__count(&sampler->phase_ns[WEFT_PHASE_MICROTASKS], tasks_ns * sampler->scale);
	sampler->busy_ns += phase == WEFT_PHASE_WAIT ? 0 : ns;
	sampler->tasks_ns = 0;
	sampler->at_ns = now_ns;
}

void
weft__sampler_took(weft_loop *loop, bool some)
{
	struct weft__sampler *sampler = loop->timed;
	const struct weft__counts *counts = &loop->counts;
	uint64_t run = weft__count_get(&counts->calls[WEFT_PHASE_INBOX]);
	uint64_t begin_ns = sampler->posted_ns ? sampler->posted_ns : sampler->woke_ns;
	uint64_t lag_ns = sampler->period_ns; /* the inbox is checked once per iteration */

	loop_sampler_check(&sampler->inbox, &rates_now(sampler)->inbox_max,
	                   weft__count_get(&counts->taken) - run
	                           + weft__producers_depth(&loop->inbox));
	loop_sampler_check(&sampler->internal, &rates_now(sampler)->internal_max,
	                   weft__count_get(&counts->internal));
	if (sampler->woke_ns)
		lag_ns = sampler->at_ns > begin_ns ? sampler->at_ns - begin_ns : 0;
	if (some && (lag_ns > 0 || sampler->woke_ns))
		weft__histogram_add(&times_now(sampler)->lag, lag_ns, sampler->weight);
	sampler->woke_ns = sampler->posted_ns = 0;
}

/* A timer that was already due when the wheel was last checked was started too late; that is
 * not the loop's lag. */
void
weft__sampler_late(weft_loop *loop, uint64_t due_ns, uint64_t before_ns)
{
	struct weft__sampler *sampler = loop->timed;

	if (due_ns > before_ns)
		weft__histogram_add(&times_now(sampler)->lag, loop->now_ns - due_ns,
		                    sampler->weight);
}

/* In an iteration of many small callbacks, two readings for each drain would be too many.  So the
 * first, second, fourth, eighth, ... drain is timed, each standing for those in between. */
uint64_t
weft__sampler_drain(weft_loop *loop, size_t depth)
{
	struct weft__sampler *sampler = loop->timed;

	sampler->drains++;
	if (sampler->drains & (sampler->drains - 1))
		return 0;
	loop_sampler_check(&sampler->tasks, &rates_now(sampler)->tasks_max, depth);
	return weft__sys->now();
}

void
weft__sampler_drained(weft_loop *loop, uint64_t begin_ns)
{
	struct weft__sampler *sampler = loop->timed;
	uint32_t times = sampler->drains > 1 ? sampler->drains / 2 : 1;

	weft__count_set(&sampler->tasks.now, 0);
	sampler->tasks_ns += (weft__sys->now() - begin_ns) * times;
}

/* Add iterations of which one, which took each_ns, stands for all.  Together they took all_ns:
 * if that is far more, the rest is counted as one iteration that stalled. */
static void
add_turns(struct weft__sampler *sampler, uint32_t turns, uint64_t each_ns, uint64_t all_ns)
{
	weft_histogram *h = &times_now(sampler)->turn;

	if (turns > 1 && all_ns > 2 * turns * each_ns) {
		weft__histogram_add(h, all_ns - turns * each_ns, 1);
		turns--;
	}
	weft__histogram_add(h, each_ns, turns);
}

void
weft__sampler_end(weft_loop *loop)
{
	struct weft__sampler *sampler = loop->timed;

	loop->timed = NULL;
	if (sampler->whole)
		add_turns(sampler, sampler->weight, sampler->busy_ns, sampler->gap_ns);
}

/* --- between iterations ------------------------------------------------- */

/* A series of iterations ends without a timed one.  If they were few, each counts as their
 * mean; if many, as the last timed one. */
static void
end_stretch(weft_loop *loop)
{
	struct weft__sampler *sampler = weft__loop_sampler(loop);
	uint64_t before_ns = sampler->at_ns, each_ns;
	uint32_t turns = turns_since(loop);

	sampler->at_ns = weft__sys->now();
	if (!before_ns || turns == 0)
		return;
	each_ns = (sampler->at_ns - before_ns) / turns;
	if (turns >= MANY && sampler->busy_ns < each_ns)
		each_ns = sampler->busy_ns;
	add_turns(sampler, turns, each_ns, sampler->at_ns - before_ns);
}

void
weft__sampler_sleep(weft_loop *loop)
{
	struct weft__sampler *sampler = weft__loop_sampler(loop);

	if (!loop->timed) {
		end_stretch(loop);
		sampler->whole = false;
		sampler->busy_ns = sampler->tasks_ns = 0;
		sampler->drains = 0;
	}
	flush(loop);
	sampler->slept_ns = sampler->at_ns;
	/* A thread that woke the loop for the last wait may store it late; see
	 * weft__sampler_woke(). */
	weft__store(&sampler->posted, 0, WEFT__RELAXED);
}

void
weft__sampler_woke(weft_loop *loop)
{
	struct weft__sampler *sampler = weft__loop_sampler(loop);
	uint64_t posted_ns = weft__load(&sampler->posted, WEFT__RELAXED);

	sampler->woke_ns = weft__sys->now();
	(void)weft__count(&sampler->phase_ns[WEFT_PHASE_WAIT], sampler->woke_ns - sampler->at_ns);
	/* A time before this wait belongs to an earlier wait. */
	sampler->posted_ns = posted_ns >= sampler->slept_ns ? posted_ns : 0;
	sampler->at_ns = sampler->woke_ns;
	sampler->scale = 1;
	loop->timed = sampler;
	loop->timed_turn = weft__count_get(&loop->counts.turns) + 1;
}

void
weft__sampler_pause(weft_loop *loop)
{
	struct weft__sampler *sampler = weft__loop_sampler(loop);

	end_stretch(loop);
	flush(loop);
	/* Each iteration of weft_loop_run_once() is timed. */
	loop->timed_turn = weft__count_get(&loop->counts.turns) + 1;
	/* Time until the next run is not the loop's delay. */
	sampler->at_ns = sampler->woke_ns = sampler->posted_ns = 0;
}
