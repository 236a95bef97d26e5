/* post_load_test.c - posts by many threads, to a loop that changes how it sleeps.
 *
 * With a watch the loop waits in its backend, without one it sleeps on its inbox.  The posts
 * themselves start and stop the watch, so the loop switches between the two all the time.
 * Every accepted post must run exactly once, in the order of the thread that posted it.  The
 * build sets the number of posts (LOAD_POSTS): fewer under sanitizers.
 */
#include <sched.h>
#include "unit/probe.h"

#define PRODUCERS 4
#define ROUNDS    (LOAD_POSTS / 2500)

struct producer {
	int64_t accepted; /* written by the producer */
	int64_t ran;      /* written by the loop, as all below */
};

static struct feed {
	weft_loop *loop; /* NULL: no more rounds */
	pthread_barrier_t barrier;
	struct producer by[PRODUCERS];
	int64_t disorder;            /* posts that ran out of order */
	int64_t kept, kept_accepted; /* posts by callbacks: run, and accepted */
	int64_t toggle_every;        /* toggle after so many posts of a producer */
	int64_t stop_at;             /* the post that stops the loop; or -1 */
	struct watcher watcher;
	struct pair pair;
} feed;

static void *
number(int64_t producer, int64_t count)
{
	return MARK(producer << 40 | count);
}

static void
run_kept(void *arg)
{
	(void)arg;
	feed.kept++;
}

/* Switch between waiting in the backend and sleeping on the inbox. */
static void
toggle(void)
{
	struct watcher *w = &feed.watcher;
	int rc;

	if (weft_watch_stop(&w->watch))
		return;
	rc = weft_watch_start(NULL, &w->watch, w->fd, WEFT_READABLE, on_ready, w);
	CHECK(rc == 0 || rc == WEFT_ESHUTDOWN);
}

static void
run_post(void *arg)
{
	struct producer *producer = &feed.by[(intptr_t)arg >> 40];
	int64_t count = (intptr_t)arg & ((INT64_C(1) << 40) - 1);

	feed.disorder += count != producer->ran++;
	if (count % 64 == 0)
		feed.kept_accepted += weft_loop_post(NULL, run_kept, NULL) == 0;
	if (count % feed.toggle_every == 0)
		toggle();
	if (count == feed.stop_at)
		weft_loop_shutdown(NULL);
}

static void
begin(int64_t toggle_every, int64_t stop_at)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_NO_SPIN };

	memset(feed.by, 0, sizeof(feed.by));
	feed.disorder = feed.kept = feed.kept_accepted = 0;
	feed.toggle_every = toggle_every;
	feed.stop_at = stop_at;
	feed.watcher = (struct watcher){ .fd = feed.pair.fd };
	feed.loop = make_with(&opts);
}

/* Call this after the loop has stopped. */
static void
check_all_ran(void)
{
	for (int i = 0; i < PRODUCERS; i++)
		CHECK_EQ(feed.by[i].ran, feed.by[i].accepted);
	CHECK_EQ(feed.kept, feed.kept_accepted);
	CHECK_EQ(feed.disorder, 0);
}

/* --- a fixed number of posts -------------------------------------------- */

/* Give the loop a chance to sleep, unless the other producers keep it awake. */
static void
let_sleep(void)
{
	for (int i = 0; i < 200; i++) {
		if (weft_loop_state(feed.loop) == WEFT_SLEEPING)
			return;
		sched_yield();
	}
}

static void *
produce(void *arg)
{
	intptr_t self = (intptr_t)arg;
	struct producer *producer = &feed.by[self];

	while (producer->accepted < LOAD_POSTS) {
		void *post = number(self, producer->accepted);
		int rc = weft_loop_post(feed.loop, run_post, post);

		CHECK(rc == 0 || rc == WEFT_EAGAIN);
		producer->accepted += rc == 0;
		if (rc != 0)
			sched_yield();
		else if (producer->accepted % 256 == 0)
			let_sleep();
	}
	return NULL;
}

static void
run_toggle(void *arg)
{
	(void)arg;
	toggle();
}

/* Make sure that the loop has slept in both ways, however busy the machine was. */
static void
let_sleep_in_both_ways(void)
{
	while (counted(&calls.parks) == 0 || counted(&calls.waits) == counted(&calls.parks)) {
		watch_for(feed.loop, WEFT_SLEEPING);
		OK(weft_loop_post(feed.loop, run_toggle, NULL));
	}
}

TEST(each_post_of_four_threads_runs_once_in_the_order_of_its_thread)
{
	pthread_t threads[PRODUCERS];
	int64_t parks, others;

	count_calls();
	feed.pair = make_pair();
	begin(100, -1);
	OK(weft_loop_start(feed.loop));
	for (int i = 0; i < PRODUCERS; i++)
		threads[i] = thread(produce, MARK(i));
	for (int i = 0; i < PRODUCERS; i++)
		OK(pthread_join(threads[i], NULL));
	let_sleep_in_both_ways();
	stop_and_free(feed.loop);
	count_no_more();
	check_all_ran();
	for (int i = 0; i < PRODUCERS; i++)
		CHECK_EQ(feed.by[i].ran, LOAD_POSTS);
	close_pair(feed.pair);
	parks = counted(&calls.parks);
	others = counted(&calls.waits) - parks;
	printf("%d x %d posts, %lld by callbacks; %lld parks, %lld waits\n", PRODUCERS, LOAD_POSTS,
	       (long long)feed.kept, (long long)parks, (long long)others);
	CHECK(parks > 0 && others > 0);
}

/* --- while the loop is stopped ------------------------------------------ */

static void *
produce_until_refused(void *arg)
{
	intptr_t self = (intptr_t)arg;
	struct producer *producer = &feed.by[self];

	for (;;) {
		int rc = 0;

		(void)pthread_barrier_wait(&feed.barrier);
		if (!feed.loop)
			return NULL;
		while (rc == 0 || rc == WEFT_EAGAIN) {
			void *post = number(self, producer->accepted);

			rc = weft_loop_post(feed.loop, run_post, post);
			producer->accepted += rc == 0;
			if (rc != 0 || producer->accepted % 16 == 0)
				sched_yield();
		}
		CHECK_EQ(rc, WEFT_ESHUTDOWN);
		(void)pthread_barrier_wait(&feed.barrier);
	}
}

/* One round: this thread or one of the posts stops the loop, whichever comes first. */
static void
race(uint64_t *seed)
{
	uint64_t pause = test_random(seed) % 8192;
	int64_t stop_at = (int64_t)(test_random(seed) % 512);

	begin(1 + (int64_t)(test_random(seed) % 8), stop_at < 256 ? stop_at : -1);
	OK(weft_loop_start(feed.loop));
	(void)pthread_barrier_wait(&feed.barrier);
	for (uint64_t i = 0; i < pause; i++)
		weft__pause();
	weft_loop_shutdown(feed.loop);
	OK(weft_loop_wait_stopped(feed.loop, WEFT_NEVER));
	(void)pthread_barrier_wait(&feed.barrier);
	check_all_ran();
	OK(weft_loop_free(feed.loop));
}

TEST(posts_accepted_while_threads_and_callbacks_stop_the_loop_run_once)
{
	pthread_t threads[PRODUCERS];
	uint64_t seed = test_seed();
	int64_t all = 0;

	feed.pair = make_pair();
	OK(pthread_barrier_init(&feed.barrier, NULL, PRODUCERS + 1));
	for (int i = 0; i < PRODUCERS; i++)
		threads[i] = thread(produce_until_refused, MARK(i));
	for (int round = 0; round < ROUNDS; round++) {
		race(&seed);
		for (int i = 0; i < PRODUCERS; i++)
			all += feed.by[i].accepted;
	}
	feed.loop = NULL;
	(void)pthread_barrier_wait(&feed.barrier);
	for (int i = 0; i < PRODUCERS; i++)
		OK(pthread_join(threads[i], NULL));
	OK(pthread_barrier_destroy(&feed.barrier));
	close_pair(feed.pair);
	printf("%d stops, %lld posts accepted\n", ROUNDS, (long long)all);
}
