/* loop_bench.h - making a loop and ending it.
 *
 * Included last by one file per implementation, which supplies before:
 *
 *   loop_once()                    make a loop, end it
 *   loop_once_used()               the same, with one turn in between
 *   LOOP_MORE                      rows of its own, or nothing
 *
 * Of a loop that opens its descriptors when they are first needed, the first
 * row shows none of that cost, the second all of it.
 */
#define LOOP_TIMES 10000

static double
loop_measure(void (*once)(void))
{
	uint64_t begin;

	for (int i = 0; i < LOOP_TIMES / 10; i++)
		once();
	begin = bench_cpu_ns();
	for (int i = 0; i < LOOP_TIMES; i++)
		once();
	return (double)(bench_cpu_ns() - begin) / LOOP_TIMES;
}

static double
loop_new_free(void)
{
	return loop_measure(loop_once);
}

static double
loop_new_turn_free(void)
{
	return loop_measure(loop_once_used);
}

static const struct bench_row loop_rows[] = {
	{ "loop.new_free", loop_new_free },
	{ "loop.new_turn_free", loop_new_turn_free },
	LOOP_MORE
};

BENCH_MAIN(loop_rows)
