/* watch_weft.c - the memory of watches on descriptors. */
#include "bench.h"
#include "memory.h"
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <weft/loop.h>
#include <weft/watch.h>

#define WATCHES 10000

static void
on_watch(weft_watch *watch, int what, void *arg)
{
	(void)watch;
	(void)what;
	(void)arg;
}

static void
allow_descriptors(rlim_t count)
{
	struct rlimit limit;

	BENCH_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	if (limit.rlim_max < count)
		bench_die("needs a limit of %ju descriptors", (uintmax_t)count);
	limit.rlim_cur = limit.rlim_max;
	BENCH_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* All memory beyond that of a new loop, its backend included. */
static double
watch_memory(void)
{
	weft_watch *watches = bench_array(WATCHES, sizeof(*watches));
	weft_loop *loop;
	size_t fresh;

	allow_descriptors(WATCHES + 100);
	count_memory();
	loop = weft_loop_new(NULL);
	BENCH_CHECK(loop);
	fresh = held_bytes;
	for (int i = 0; i < WATCHES; i++) {
		int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

		BENCH_CHECK(fd >= 0);
		BENCH_CHECK(weft_watch_start(loop, &watches[i], fd, WEFT_READABLE, on_watch, NULL)
		            == 0);
	}
	BENCH_CHECK(weft_loop_run_once(loop, WEFT_NOWAIT) == 1);
	return (double)(held_bytes - fresh) / WATCHES + sizeof(*watches);
}

static const struct bench_row watch_rows[] = {
	{ "watch.memory", watch_memory },
};

BENCH_MAIN(watch_rows)
