/* crowd_test.c - very many threadlets: one after the other, and at the same time.
 *
 * The build sets CROWD and STARTS; a release uses a million.  The kernel's default settings
 * suffice.
 */
#include <sched.h>
#include <unistd.h>
#include "unit/threadlet/sched.h"

/* TSan has room for 8,128 threads and threadlets. */
enum { PARKED = TEST_TSAN ? 2000 : CROWD };

/* Reads a number from the first line of a /proc file that matches `format`. */
static int64_t
read_number(const char *path, const char *format)
{
	char text[256];
	long long value = -1;
	FILE *file = fopen(path, "r");

	while (file && value < 0 && fgets(text, sizeof(text), file))
		(void)sscanf(text, format, &value);
	if (file)
		(void)fclose(file);
	return value;
}

static int64_t
resident_bytes(void)
{
	return read_number("/proc/self/statm", "%*d %lld") * sysconf(_SC_PAGESIZE);
}

/* --- one after the other ---------------------------------------------------- */

static weft__a64 ended;

static int
count_end(void *arg)
{
	(void)weft__add(&ended, 1, WEFT__RELAXED);
	return (int)(intptr_t)arg;
}

static void
start_from_outside(weft_loop *loop, int64_t first, int64_t end)
{
	for (int64_t i = first; i < end; i++) {
		(void)go_on(loop, count_end, NULL);
		while (i - (int64_t)weft__load(&ended, WEFT__RELAXED) > 800)
			(void)sched_yield();
	}
	while ((int64_t)weft__load(&ended, WEFT__RELAXED) < end)
		(void)sched_yield();
}

TEST(memory_does_not_grow_with_threadlets_started_from_another_thread)
{
	weft_loop *loop = make_started();
	int64_t held, bytes;

	weft__store(&ended, 0, WEFT__RELAXED);
	start_from_outside(loop, 0, 20000);
	held = test_live_allocations();
	bytes = resident_bytes();
	start_from_outside(loop, 20000, STARTS);
	printf("%d starts: %lld allocations more, %lld kB\n", STARTS,
	       (long long)(test_live_allocations() - held),
	       (long long)(resident_bytes() - bytes) / 1024);
	CHECK(test_live_allocations() - held <= 64);
	if (RSS_COUNTS)
		CHECK(resident_bytes() - bytes < (16 << 20));
	stop_and_free(loop);
}

/* --- at the same time --------------------------------------------------------- */

static struct {
	weft_event go_on;
	int64_t parked, came_back;
	int64_t start_bytes, peak_bytes, end_bytes;
	uint64_t start_ns, parked_ns, end_ns;
} crowd;

static int
park(void *arg)
{
	(void)arg;
	crowd.parked++;
	OK(weft_event_wait(&crowd.go_on, WEFT_NEVER));
	crowd.came_back++;
	return 0;
}

static int
gather_crowd(void *arg)
{
	weft_scope scope;

	(void)arg;
	crowd.start_bytes = resident_bytes();
	crowd.start_ns = weft_now();
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < PARKED; i++)
		CHECK(weft_scope_go(&scope, park, NULL) > 0);
	while (crowd.parked < PARKED)
		OK(weft_yield());
	crowd.peak_bytes = resident_bytes();
	crowd.parked_ns = weft_now();
	OK(weft_event_set(&crowd.go_on));
	OK(weft_scope_close(&scope));
	crowd.end_ns = weft_now();
	crowd.end_bytes = resident_bytes();
	return 0;
}

TEST(crowd_of_threadlets_waits_at_once_and_its_memory_is_freed_when_it_ends)
{
	int64_t kept;

	if (read_number("/proc/meminfo", "MemAvailable: %lld") / 12 < PARKED) {
		printf("not tried: it takes up to 12 kB for each\n");
		return;
	}
	memset(&crowd, 0, sizeof(crowd));
	run_threadlet(gather_crowd, NULL);
	kept = crowd.end_bytes - crowd.start_bytes;
	printf("%d parked: %lld MB at first, %lld MB (%lld bytes each), %lld MB "
	       "at the end; %.2f s to park, %.2f s to join\n",
	       PARKED, (long long)crowd.start_bytes >> 20, (long long)crowd.peak_bytes >> 20,
	       (long long)(crowd.peak_bytes - crowd.start_bytes) / PARKED,
	       (long long)crowd.end_bytes >> 20, (double)(crowd.parked_ns - crowd.start_ns) / 1e9,
	       (double)(crowd.end_ns - crowd.parked_ns) / 1e9);
	CHECK_EQ(crowd.came_back, PARKED);
	if (RSS_COUNTS)
		CHECK(kept * 20 <= crowd.peak_bytes);
}
