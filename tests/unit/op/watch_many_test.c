/* watch_many_test.c - as many descriptors on one loop as a busy server has.
 *
 * Both ends of each pair are watched.  To make one end ready, the test writes a byte to the
 * other end.  The callback reads the byte, so the end is ready once and must be reported once.
 */
#include <sys/resource.h>
#include "unit/probe.h"

#define WANTED 20000 /* descriptors */
#define LEAST  10000
#define OTHERS 64 /* for the test, the loop and the runner */
#define ROUNDS 10

static struct watcher watchers[WANTED];
static bool chosen[WANTED];

/* How many descriptors can be watched here; an even number. */
static int
raise_limit(void)
{
	struct rlimit limit;
	int count = WANTED;

	OK(getrlimit(RLIMIT_NOFILE, &limit));
	if (limit.rlim_cur < WANTED + OTHERS) {
		struct rlimit more = { WANTED + OTHERS, WANTED + OTHERS };

		if (setrlimit(RLIMIT_NOFILE, &more) < 0) {
			limit.rlim_cur = limit.rlim_max;
			OK(setrlimit(RLIMIT_NOFILE, &limit));
			count = (int)limit.rlim_max - OTHERS;
		}
	}
	if (count < LEAST)
		test_skip("the hard limit of descriptors is below 10,064");
	printf("%d descriptors of %d\n", count & ~1, WANTED);
	return count & ~1;
}

static void
take_byte(struct watcher *w)
{
	CHECK_EQ(w->what, WEFT_READABLE);
	take(w->fd);
}

/* Make some descriptors ready, in most rounds fewer than half.  Returns how many. */
static int
choose(int count, uint64_t *seed)
{
	uint64_t one_in = 1 + test_random(seed) % 10;
	int all = 0;

	for (int i = 0; i < count; i++) {
		watchers[i].calls = 0;
		chosen[i] = test_random(seed) % one_in == 0;
		all += chosen[i];
		if (chosen[i])
			put(watchers[i ^ 1].fd, "x");
	}
	return all;
}

/* Run iterations until `want` reports have arrived or no more arrive, and then a few more. */
static void
turn_for(weft_loop *loop, int count, int want)
{
	int called = 0, before = -1;

	while (called < want && called != before) {
		before = called;
		turns(loop, 2);
		called = 0;
		for (int i = 0; i < count; i++)
			called += watchers[i].calls;
	}
	turns(loop, 3);
}

TEST(each_ready_descriptor_of_twenty_thousand_is_reported_once)
{
	int count = raise_limit();
	uint64_t seed = test_seed();
	weft_loop *loop = make();

	for (int i = 0; i < count; i += 2) {
		struct pair pair = make_pair();

		watchers[i].act = watchers[i + 1].act = take_byte;
		watch(loop, &watchers[i], pair.fd, WEFT_READABLE);
		watch(loop, &watchers[i + 1], pair.peer, WEFT_READABLE);
	}
	for (int round = 0; round < ROUNDS; round++) {
		turn_for(loop, count, choose(count, &seed));
		for (int i = 0; i < count; i++)
			CHECK_EQ(watchers[i].calls, chosen[i]);
	}
	for (int i = 0; i < count; i++)
		CHECK_EQ(weft_watch_stop(&watchers[i].watch), 1);
	for (int i = 0; i < count; i += 2)
		close_pair((struct pair){ watchers[i].fd, watchers[i + 1].fd });
	OK(weft_loop_free(loop));
}
