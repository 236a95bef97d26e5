/* post_bench.h - items from producer threads; each is a call that the consumer runs.
 *
 * Each implementation defines the following and includes this file last:
 *
 *   inbox_open(producers, each)    make the consumer's loop
 *   inbox_post(fn, arg)            called by a producer; false: full, try again
 *   inbox_run()                    run the consumer until inbox_leave()
 *   inbox_leave()                  called on the consumer, by an item
 *
 * The first producer runs on the other core, the second shares the consumer's core.  The time
 * is wall time, from all threads being ready to the last item.
 */
#define POST_ITEMS         4000000
#define POST_PRODUCERS_MAX 2

static pthread_barrier_t post_ready;
static uint64_t post_each; /* items of one producer */
static uint64_t post_all;
static uint64_t post_done; /* run by the consumer */

static void
on_item(void *arg)
{
	uint64_t *done = arg;

	if (++*done == post_all)
		inbox_leave();
}

static void *
produce(void *arg)
{
	bench_pin(*(int *)arg);
	(void)pthread_barrier_wait(&post_ready);
	for (uint64_t i = 0; i < post_each; i++)
		while (!inbox_post(on_item, &post_done))
			(void)sched_yield();
	return NULL;
}

static double
post_measure(unsigned producers)
{
	int cores[POST_PRODUCERS_MAX] = { BENCH_OTHER_CORE, BENCH_CORE };
	pthread_t threads[POST_PRODUCERS_MAX];
	uint64_t begin, end;

	post_each = POST_ITEMS / producers;
	post_all = post_each * producers;
	inbox_open(producers, post_each);
	BENCH_CHECK(!pthread_barrier_init(&post_ready, NULL, producers + 1));
	for (unsigned i = 0; i < producers; i++)
		BENCH_CHECK(
			!pthread_create(&threads[i], NULL, produce, &cores[i]));
	(void)pthread_barrier_wait(&post_ready);
	begin = bench_wall_ns();
	inbox_run();
	end = bench_wall_ns();
	for (unsigned i = 0; i < producers; i++)
		(void)pthread_join(threads[i], NULL);
	BENCH_CHECK(post_done == post_all);
	return (double)(end - begin) / (double)post_all;
}

static double
post_1p(void)
{
	return post_measure(1);
}

static double
post_2p(void)
{
	return post_measure(2);
}

static const struct bench_row post_rows[] = {
	{ "post.1p", post_1p },
	{ "post.2p", post_2p },
};

BENCH_MAIN(post_rows)
