/* turn_bench.h - turns of a loop that has one callback to make and no events.
 *
 * Included last by one file per implementation, which supplies before:
 *
 *   turns_open()                   make the loop
 *   turns_run()                    run; the callback is made once a turn, until
 *                                  turns_more() returns false in it
 *   turns_watch(on)                call turn_seen() once a turn, or no more
 *
 * Before the measured run, without a watch, a short one with it makes sure that
 * every callback had a turn of its own.
 */
#define TURNS         1000000
#define TURNS_WATCHED 1000

static uint64_t turns_left, turns_seen;

static bool
turns_more(void)
{
	return --turns_left != 0;
}

static void
turn_seen(void)
{
	turns_seen++;
}

static double
turn_empty(void)
{
	uint64_t begin;

	turns_open();
	turns_watch(true);
	turns_left = TURNS_WATCHED;
	turns_run();
	BENCH_CHECK(turns_seen >= TURNS_WATCHED);
	turns_watch(false);
	turns_left = TURNS;
	begin = bench_cpu_ns();
	turns_run();
	return (double)(bench_cpu_ns() - begin) / TURNS;
}

static const struct bench_row turn_rows[] = {
	{ "turn.empty", turn_empty },
	{ "turn.metrics", turn_empty }, /* weft with metrics, and without */
};

BENCH_MAIN(turn_rows)
