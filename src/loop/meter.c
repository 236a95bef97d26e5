/* meter.c - the sampler: where a loop's time goes, as the loop's thread records it.
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
 *      the length of a slice: so long after it has left the window a slice is reused.
 *
 * The lag of a post is measured where a thread has to wake the loop: the thread stores the
 * time in `posted` before it wakes the loop.  Posts that the loop finds while it is awake are
 * no older than its last check of the inbox, and that age is counted.
 */
#include "loop/loop.h"

#define STRIDE_FIRST 64u
#define STRIDE_MAX   1024u
#define STRIDE_NS    16384u /* between two timed iterations of a busy loop */
#define LOOKS        32     /* samples in a moving average */
#define MANY         16u    /* iterations, of which one may have stalled */

struct weft__meter *
weft__meter_new(void)
{
	struct weft__meter *meter = weft__alloc_zero(sizeof(*meter));

	if (meter)
		meter->stride = STRIDE_FIRST;
	return meter;
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
	weft__count_set(&rates->tasks_max, 0);
}

/* The slices of the last clock reading. */
static struct weft__times *
times_now(struct weft__meter *meter)
{
	uint64_t number = meter->at_ns / WEFT__TIMES_NS;

	if (meter->times && meter->at_ns < meter->times_end_ns)
		return meter->times;
	meter->times = &meter->all_times[number % (WEFT__TIMES + 1)];
	meter->times_end_ns = (number + 1) * WEFT__TIMES_NS;
	times_clear(meter->times);
	slice_open(&meter->times->mark, number);
	return meter->times;
}

static struct weft__rates *
rates_now(struct weft__meter *meter)
{
	uint64_t number = meter->at_ns / WEFT__RATES_NS;

	if (meter->rates && meter->at_ns < meter->rates_end_ns)
		return meter->rates;
	meter->rates = &meter->all_rates[number % (WEFT__RATES + 1)];
	meter->rates_end_ns = (number + 1) * WEFT__RATES_NS;
	rates_clear(meter->rates);
	slice_open(&meter->rates->mark, number);
	return meter->rates;
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
	struct weft__meter *meter = weft__loop_meter(loop);
	struct weft__rates *rates = rates_now(meter);
	uint64_t turns = weft__count_get(&loop->counts.turns);
	uint64_t calls = calls_of(&loop->counts);

	(void)weft__count(&rates->turns, turns - meter->turns);
	(void)weft__count(&rates->calls, calls - meter->calls);
	meter->turns = turns;
	meter->calls = calls;
}

/* The window begins again: what was called while the sampler was off is in no slice. */
void
weft__meter_reset(weft_loop *loop, struct weft__meter *meter)
{
	uint64_t now_ns = weft__sys->now();

	meter->at_ns = meter->woke_ns = meter->posted_ns = 0;
	meter->turns_timed = weft__count_get(&loop->counts.turns);
	meter->times = NULL;
	meter->rates = NULL;
	for (unsigned i = 0; i <= WEFT__TIMES; i++)
		times_clear(&meter->all_times[i]);
	for (unsigned i = 0; i <= WEFT__RATES; i++)
		rates_clear(&meter->all_rates[i]);
	meter->turns = meter->turns_timed;
	meter->calls = calls_of(&loop->counts);
	weft__count_set(&meter->born_ns, now_ns);
}

static void
loop_meter_check(struct weft__gauge *gauge, weft__a64 *max, uint64_t depth)
{
	int64_t step = ((int64_t)(depth << 16) - (int64_t)weft__count_get(&gauge->average)) / LOOKS;

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
	uint64_t since = turns - weft__loop_meter(loop)->turns_timed;

	weft__loop_meter(loop)->turns_timed = turns;
	return since < UINT32_MAX ? (uint32_t)since : UINT32_MAX;
}

/* The loop has not blocked since the last timed iteration. */
static void
pace(struct weft__meter *meter, uint64_t now_ns)
{
	meter->gap_ns = now_ns - meter->at_ns;
	meter->period_ns = (now_ns - meter->begin_ns) / meter->weight;
	if (meter->period_ns * STRIDE_MAX <= STRIDE_NS)
		meter->stride = STRIDE_MAX;
	else
		meter->stride = meter->period_ns < STRIDE_NS
		                        ? STRIDE_NS / (uint32_t)meter->period_ns
		                        : 1;
}

void
weft__meter_begin(weft_loop *loop)
{
	struct weft__meter *meter = weft__loop_meter(loop);
	uint64_t now_ns = meter->at_ns;

	meter->weight = meter->scale = turns_since(loop);
	meter->gap_ns = meter->period_ns = 0;
	/* Right after a timed iteration, its last reading is the first of this one. */
	if (!now_ns || meter->weight > 1)
		loop->now_ns = now_ns = weft__sys->now();
	if (weft__meter_off(loop, now_ns))
		return;
	if (meter->at_ns && !meter->woke_ns)
		pace(meter, now_ns);
	meter->at_ns = meter->begin_ns = now_ns;
	meter->busy_ns = meter->tasks_ns = 0;
	meter->drains = 0;
	meter->whole = true;
	flush(loop);
	loop->timed = meter;
	loop->timed_turn = weft__count_get(&loop->counts.turns) + meter->stride;
}

void
weft__meter_mark(weft_loop *loop, int phase)
{
	struct weft__meter *meter = loop->timed;
	uint64_t now_ns = weft__sys->now(), ns = now_ns - meter->at_ns;
	uint64_t tasks_ns = meter->tasks_ns < ns ? meter->tasks_ns : ns;

	(void)weft__count(&meter->phase_ns[phase], (ns - tasks_ns) * meter->scale);
	(void)weft__count(&meter->phase_ns[WEFT_PHASE_MICROTASKS], tasks_ns * meter->scale);
	meter->busy_ns += phase == WEFT_PHASE_WAIT ? 0 : ns;
	meter->tasks_ns = 0;
	meter->at_ns = now_ns;
}

void
weft__meter_took(weft_loop *loop, bool some)
{
	struct weft__meter *meter = loop->timed;
	const struct weft__counts *counts = &loop->counts;
	uint64_t run = weft__count_get(&counts->calls[WEFT_PHASE_INBOX]);
	uint64_t begin_ns = meter->posted_ns ? meter->posted_ns : meter->woke_ns;
	uint64_t lag_ns = meter->period_ns; /* the inbox is checked once per iteration */

	loop_meter_check(&meter->inbox, &rates_now(meter)->inbox_max,
	                 weft__count_get(&counts->taken) - run
	                         + weft__producers_depth(&loop->inbox));
	if (meter->woke_ns)
		lag_ns = meter->at_ns > begin_ns ? meter->at_ns - begin_ns : 0;
	if (some && (lag_ns > 0 || meter->woke_ns))
		weft__histogram_add(&times_now(meter)->lag, lag_ns, meter->weight);
	meter->woke_ns = meter->posted_ns = 0;
}

/* A timer that was already due when the wheel was last checked was started too late; that is
 * not the loop's lag. */
void
weft__meter_late(weft_loop *loop, uint64_t due_ns, uint64_t before_ns)
{
	struct weft__meter *meter = loop->timed;

	if (due_ns > before_ns)
		weft__histogram_add(&times_now(meter)->lag, loop->now_ns - due_ns, meter->weight);
}

/* In an iteration of many small callbacks, two readings for each drain would be too many.  So the
 * first, second, fourth, eighth, ... drain is timed, each standing for those in between. */
uint64_t
weft__meter_drain(weft_loop *loop, size_t depth)
{
	struct weft__meter *meter = loop->timed;

	meter->drains++;
	if (meter->drains & (meter->drains - 1))
		return 0;
	loop_meter_check(&meter->tasks, &rates_now(meter)->tasks_max, depth);
	return weft__sys->now();
}

void
weft__meter_drained(weft_loop *loop, uint64_t begin_ns)
{
	struct weft__meter *meter = loop->timed;
	uint32_t times = meter->drains > 1 ? meter->drains / 2 : 1;

	weft__count_set(&meter->tasks.now, 0);
	meter->tasks_ns += (weft__sys->now() - begin_ns) * times;
}

/* Add iterations of which one, which took each_ns, stands for all.  Together they took all_ns:
 * if that is far more, the rest is counted as one iteration that stalled. */
static void
add_turns(struct weft__meter *meter, uint32_t turns, uint64_t each_ns, uint64_t all_ns)
{
	weft_histogram *h = &times_now(meter)->turn;

	if (turns > 1 && all_ns > 2 * turns * each_ns) {
		weft__histogram_add(h, all_ns - turns * each_ns, 1);
		turns--;
	}
	weft__histogram_add(h, each_ns, turns);
}

void
weft__meter_end(weft_loop *loop)
{
	struct weft__meter *meter = loop->timed;

	loop->timed = NULL;
	if (meter->whole)
		add_turns(meter, meter->weight, meter->busy_ns, meter->gap_ns);
}

/* --- between iterations ------------------------------------------------- */

/* A series of iterations ends without a timed one.  If they were few, each counts as their
 * mean; if many, as the last timed one. */
static void
end_stretch(weft_loop *loop)
{
	struct weft__meter *meter = weft__loop_meter(loop);
	uint64_t before_ns = meter->at_ns, each_ns;
	uint32_t turns = turns_since(loop);

	meter->at_ns = weft__sys->now();
	if (!before_ns || turns == 0)
		return;
	each_ns = (meter->at_ns - before_ns) / turns;
	if (turns >= MANY && meter->busy_ns < each_ns)
		each_ns = meter->busy_ns;
	add_turns(meter, turns, each_ns, meter->at_ns - before_ns);
}

void
weft__meter_sleep(weft_loop *loop)
{
	struct weft__meter *meter = weft__loop_meter(loop);

	if (!loop->timed) {
		end_stretch(loop);
		meter->whole = false;
		meter->busy_ns = meter->tasks_ns = 0;
		meter->drains = 0;
	}
	flush(loop);
	meter->slept_ns = meter->at_ns;
	/* A thread that woke the loop for the last wait may store it late; see woke(). */
	weft__store(&meter->posted, 0, WEFT__RELAXED);
}

void
weft__meter_woke(weft_loop *loop)
{
	struct weft__meter *meter = weft__loop_meter(loop);
	uint64_t posted_ns = weft__load(&meter->posted, WEFT__RELAXED);

	meter->woke_ns = weft__sys->now();
	(void)weft__count(&meter->phase_ns[WEFT_PHASE_WAIT], meter->woke_ns - meter->at_ns);
	/* A time before this wait belongs to an earlier wait. */
	meter->posted_ns = posted_ns >= meter->slept_ns ? posted_ns : 0;
	meter->at_ns = meter->woke_ns;
	meter->scale = 1;
	loop->timed = meter;
	loop->timed_turn = weft__count_get(&loop->counts.turns) + 1;
}

void
weft__meter_pause(weft_loop *loop)
{
	struct weft__meter *meter = weft__loop_meter(loop);

	end_stretch(loop);
	flush(loop);
	/* Each iteration of weft_loop_run_once() is timed. */
	loop->timed_turn = weft__count_get(&loop->counts.turns) + 1;
	/* Time until the next run is not the loop's delay. */
	meter->at_ns = meter->woke_ns = meter->posted_ns = 0;
}
