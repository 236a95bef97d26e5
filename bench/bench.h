/* bench.h - what all benchmark programs share: clocks, cores, random numbers, main().
 *
 * `PROGRAM ROW` measures that row once and prints one number.  run.py repeats programs, pairs
 * them and computes medians.  Include this file first.
 */
#ifndef WEFT_BENCH_BENCH_H
#define WEFT_BENCH_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_MS UINT64_C(1000000)
#define BENCH_S  UINT64_C(1000000000)

#define BENCH_SKIPPED 77 /* exit status */

/* The measured thread runs on the first core, the threads that feed it on the second.
 * bench_pin_both() allows both cores. */
#define BENCH_CORE       0
#define BENCH_OTHER_CORE 1

/* Array elements start on a cache line, for weft and for its peers. */
#define BENCH_LINE 64

struct bench_row {
	const char *name;
	double (*measure)(void);
};

__attribute__((format(printf, 1, 2), noreturn)) static inline void
bench_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputc('\n', stderr);
	exit(1);
}

/* Print why this row cannot be measured here.  This is not a failure: see run.py. */
#define bench_skip(...) \
	((void)fprintf(stderr, __VA_ARGS__), exit(BENCH_SKIPPED))

#define BENCH_CHECK(cond) \
	((cond) ? (void)0 \
	        : bench_die("%s:%d: check failed: %s", __FILE__, __LINE__, #cond))

static inline uint64_t
bench_clock(clockid_t clock)
{
	struct timespec t;

	BENCH_CHECK(clock_gettime(clock, &t) == 0);
	return (uint64_t)t.tv_sec * BENCH_S + (uint64_t)t.tv_nsec;
}

/* CPU time of the calling thread, without that of other threads. */
static inline uint64_t
bench_cpu_ns(void)
{
	return bench_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* CPU time of all threads: for a peer that moves its work between threads or starts its own
 * threads, and for weft in the same comparison. */
static inline uint64_t
bench_process_ns(void)
{
	return bench_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static inline uint64_t
bench_wall_ns(void)
{
	return bench_clock(CLOCK_MONOTONIC);
}

static inline void
bench_pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		bench_die("cannot run on core %d: two cores are needed", core);
}

/* Threads that this thread starts later inherit this. */
static inline void
bench_pin_both(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(BENCH_CORE, &set);
	CPU_SET(BENCH_OTHER_CORE, &set);
	BENCH_CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
}

static inline void
bench_sleep(uint64_t delay_ns)
{
	struct timespec t = { (time_t)(delay_ns / BENCH_S),
		              (long)(delay_ns % BENCH_S) };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) != 0)
		;
}

/* xorshift64 from a fixed seed: every program draws the same numbers. */
static inline uint64_t
bench_random(void)
{
	static uint64_t x = UINT64_C(88172645463325252);

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static inline uint64_t
bench_between(uint64_t low, uint64_t high)
{
	return low + bench_random() % (high - low + 1);
}

/* Zeroed memory, aligned to a cache line; every page has been touched. */
static inline void *
bench_array(size_t count, size_t size)
{
	size_t bytes = (count * size + BENCH_LINE - 1)
	               & ~(size_t)(BENCH_LINE - 1);
	void *mem = aligned_alloc(BENCH_LINE, bytes);

	BENCH_CHECK(mem);
	return memset(mem, 0, bytes);
}

static inline int
bench_main(int argc, char **argv, const struct bench_row *rows, size_t count)
{
	if (argc != 2)
		bench_die("usage: %s ROW", argv[0]);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(rows[i].name, argv[1]) != 0)
			continue;
		bench_pin(BENCH_CORE);
		(void)printf("%.3f\n", rows[i].measure());
		return fflush(stdout) == 0 ? 0 : 1;
	}
	bench_die("%s: no row %s", argv[0], argv[1]);
}

#define BENCH_MAIN(rows)                                             \
	int main(int argc, char **argv)                              \
	{                                                            \
		return bench_main(argc, argv, rows,                  \
		                  sizeof(rows) / sizeof((rows)[0])); \
	}

#endif
