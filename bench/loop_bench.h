/* loop_bench.h - creating and freeing a loop.
 *
 * Each implementation defines the following and includes this file last:
 *
 *   loop_once()                    create a loop, free it
 *   loop_once_used()               the same, with one iteration in between
 *   LOOP_MORE                      additional rows, or nothing
 *
 * For a loop that opens its descriptors on first use, the first row contains none of that
 * cost.
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
