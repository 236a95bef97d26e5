/* timer_bench.h - starting, moving and firing timers, with many pending.
 *
 * Each implementation defines the following and includes this file last:
 *
 *   timer, delay                   its timer struct, its type of delay
 *   delay_of(delay_ns)             convert nanoseconds, at its resolution
 *   timers_open()                  make the loop or wheel
 *   timer_init(timer)              called before the first start
 *   timer_arm(timer, delay)        start an idle timer
 *   timer_move(timer, delay)       restart a pending timer, in the cheapest way
 *   timer_disarm(timer)            stop a pending timer
 *   timers_pass(ns)                let time pass without firing timers
 *   timers_fire()                  fire due timers, counting in `fired`
 *
 * Delays are drawn and converted before the measurement starts.
 */
#define TIMER_MIN (10 * BENCH_S)
#define TIMER_MAX (600 * BENCH_S)

struct slot {
	timer t;
} __attribute__((aligned(BENCH_LINE)));

struct move {
	struct slot *slot;
	delay delay;
};

static struct slot *
timers_new(size_t count)
{
	struct slot *slots = bench_array(count, sizeof(*slots));

	timers_open();
	for (size_t i = 0; i < count; i++)
		timer_init(&slots[i].t);
	return slots;
}

static void
arm_all(struct slot *slots, size_t count, uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < count; i++)
		timer_arm(&slots[i].t, delay_of(bench_between(low, high)));
}

/* Start and stop one more timer than those pending. */
static double
start_stop_1e5(void)
{
	enum { PENDING = 100000, TIMES = 2000000 };
	struct slot *slots = timers_new(PENDING + 1);
	delay *delays = bench_array(TIMES, sizeof(*delays));
	timer *extra = &slots[PENDING].t;
	uint64_t begin;

	arm_all(slots, PENDING, TIMER_MIN, TIMER_MAX);
	for (size_t i = 0; i < TIMES; i++)
		delays[i] = delay_of(bench_between(TIMER_MIN, TIMER_MAX));
	begin = bench_cpu_ns();
	for (size_t i = 0; i < TIMES; i++) {
		timer_arm(extra, delays[i]);
		timer_disarm(extra);
	}
	return (double)(bench_cpu_ns() - begin) / TIMES;
}

/* Restart a random one of the pending timers. */
static double
rearm_1e6(void)
{
	enum { PENDING = 1000000, TIMES = 1000000 };
	struct slot *slots = timers_new(PENDING);
	struct move *moves = bench_array(TIMES, sizeof(*moves));
	uint64_t begin;

	arm_all(slots, PENDING, TIMER_MIN, TIMER_MAX);
	for (size_t i = 0; i < TIMES; i++) {
		moves[i].slot = &slots[bench_random() % PENDING];
		moves[i].delay = delay_of(bench_between(TIMER_MIN, TIMER_MAX));
	}
	begin = bench_cpu_ns();
	for (size_t i = 0; i < TIMES; i++)
		timer_move(&moves[i].slot->t, moves[i].delay);
	return (double)(bench_cpu_ns() - begin) / TIMES;
}

/* Fire timers that are all due. */
static double
expire_1e6(void)
{
	enum { PENDING = 1000000 };
	struct slot *slots = timers_new(PENDING);
	uint64_t begin, end;

	arm_all(slots, PENDING, BENCH_MS, BENCH_S);
	timers_pass(BENCH_S + 10 * BENCH_MS);
	BENCH_CHECK(fired == 0);
	begin = bench_cpu_ns();
	while (fired < PENDING)
		timers_fire();
	end = bench_cpu_ns();
	BENCH_CHECK(fired == PENDING);
	return (double)(end - begin) / PENDING;
}

static const struct bench_row timer_rows[] = {
	{ "timer.start_stop.1e5", start_stop_1e5 },
	{ "timer.rearm.1e6", rearm_1e6 },
	{ "timer.expire.1e6", expire_1e6 },
};

BENCH_MAIN(timer_rows)
