/* mutex_bench.h - an uncontended lock.
 *
 * Each implementation defines the following and includes this file last:
 *
 *   sched_run(measure)             call measure() where it can suspend
 *   mutex_lock(), mutex_unlock()   of one mutex
 *
 * mutex.uncontended is CPU time of the thread per lock and unlock.
 */
#define MUTEX_TIMES 20000000

static double
mutex_measure(void)
{
	uint64_t begin;

	for (int i = 0; i < MUTEX_TIMES / 10; i++) {
		mutex_lock();
		mutex_unlock();
	}
	begin = bench_cpu_ns();
	for (int i = 0; i < MUTEX_TIMES; i++) {
		mutex_lock();
		mutex_unlock();
	}
	return (double)(bench_cpu_ns() - begin) / MUTEX_TIMES;
}

static double
mutex_uncontended(void)
{
	return sched_run(mutex_measure);
}

static const struct bench_row mutex_rows[] = {
	{ "mutex.uncontended", mutex_uncontended },
};

BENCH_MAIN(mutex_rows)
