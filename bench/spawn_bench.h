/* spawn_bench.h - starting a threadlet and waiting for its end, one at a time.
 *
 * Each implementation defines the following and includes this file last:
 *
 *   sched_run(measure)             call measure() where it can suspend
 *   spawn_join()                   called by measure(): start a threadlet that does
 *                                  spawn_ran++, and wait until it has ended
 *
 * threadlet.spawn_join is CPU time of the process per threadlet.  All implementations have a
 * pool of stacks, so no stack is allocated after the warm-up.
 */
#define SPAWN_TIMES 1000000

static double
spawn_measure(void)
{
	uint64_t begin, end;

	for (int i = 0; i < SPAWN_TIMES / 10; i++)
		spawn_join();
	spawn_ran = 0;
	begin = bench_process_ns();
	for (int i = 0; i < SPAWN_TIMES; i++)
		spawn_join();
	end = bench_process_ns();
	BENCH_CHECK(spawn_ran == SPAWN_TIMES);
	return (double)(end - begin) / SPAWN_TIMES;
}

static double
threadlet_spawn_join(void)
{
	return sched_run(spawn_measure);
}

static const struct bench_row spawn_rows[] = {
	{ "threadlet.spawn_join", threadlet_spawn_join },
};

BENCH_MAIN(spawn_rows)
