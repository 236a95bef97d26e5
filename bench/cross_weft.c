/* cross_weft.c - values of 8 bytes from one loop to another, on two cores.
 *
 * The consumer's loop runs on the first core and the producer's on the other, with a shared
 * channel between them.  The rows are wall time per value, measured by the consumer, waiting
 * included.
 */
#include "bench.h"
#include "span.h"
#include <stdatomic.h>
#include <weft/chan.h>
#include <weft/loop.h>
#include <weft/threadlet.h>

static weft_chan *chan;
static struct span span;   /* of the consumer */
static atomic_bool enough; /* ends the producer */

static int
produce(void *arg)
{
	(void)arg;
	for (uint64_t x = 1; !atomic_load_explicit(&enough, memory_order_relaxed); x++)
		BENCH_CHECK(weft_chan_send(chan, &x, WEFT_NEVER) == 0);
	weft_chan_close(chan);
	return 0;
}

static int
consume(void *arg)
{
	uint64_t x, last = 0;
	bool measuring = true;
	int rc;

	(void)arg;
	span_start(&span);
	while ((rc = weft_chan_recv(chan, &x, WEFT_NEVER)) == 0) {
		BENCH_CHECK(x == ++last);
		if (!measuring || !span_count(&span))
			continue;
		measuring = false;
		atomic_store(&enough, true);
	}
	BENCH_CHECK(rc == WEFT_ECLOSED && !measuring);
	return 0;
}

/* A new loop with one threadlet on it. */
static weft_loop *
loop_with(weft_threadlet_fn fn)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_go_opts opts = { .loop = loop };

	BENCH_CHECK(loop);
	BENCH_CHECK(weft_go_with(&opts, fn, NULL) > 0);
	return loop;
}

static void *
run_far(void *arg)
{
	bench_pin(BENCH_OTHER_CORE);
	BENCH_CHECK(weft_loop_run(arg) == 0);
	return NULL;
}

static double
cross_measure(size_t capacity)
{
	weft_loop *near, *far;
	pthread_t thread;

	chan = weft_chan_new(sizeof(uint64_t), capacity, WEFT_SHARED);
	BENCH_CHECK(chan);
	near = loop_with(consume);
	far = loop_with(produce);
	BENCH_CHECK(!pthread_create(&thread, NULL, run_far, far));
	BENCH_CHECK(weft_loop_run(near) == 0);
	(void)pthread_join(thread, NULL);
	BENCH_CHECK(weft_loop_free(near) == 0);
	BENCH_CHECK(weft_loop_free(far) == 0);
	chan = weft_chan_unref(chan);
	return span_each_ns(&span);
}

static double
cross_64(void)
{
	return cross_measure(64);
}

static double
cross_0(void)
{
	return cross_measure(0);
}

static const struct bench_row cross_rows[] = {
	{ "chan.cross_loop.64", cross_64 },
	{ "chan.cross_loop.0", cross_0 },
};

BENCH_MAIN(cross_rows)
