/* turn_bench.h - iterations of a loop with one callback and no events.
 *
 * Each implementation defines the following and includes this file last:
 *
 *   turns_open()                   make the loop
 *   turns_run()                    run; the callback runs once per iteration, until
 *                                  turns_more() returns false in it
 *   turns_watch(on)                start or stop calling turn_seen() once per iteration
 *
 * A short run with turns_watch() checks that every callback has its own iteration.  The
 * measured run does not use it.
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
	{ "turn.metrics", turn_empty }, /* weft with metrics, against weft without */
};

BENCH_MAIN(turn_rows)
