/* chan_weft.c - a local channel between two threadlets of one loop. */
#include "bench.h"
#include "root.h"
#include <weft/chan.h>
#include <weft/scope.h>

static weft_chan *chan;
static weft_scope scope;

static void
chan_open(size_t capacity)
{
	chan = weft_chan_new(sizeof(uint64_t), capacity, 0);
	BENCH_CHECK(chan);
}

static void
chan_close(void)
{
	chan = weft_chan_unref(chan);
}

static void
sender_start(int (*fn)(void *arg))
{
	BENCH_CHECK(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	BENCH_CHECK(weft_scope_go(&scope, fn, NULL) > 0);
}

static void
sender_join(void)
{
	BENCH_CHECK(weft_scope_close(&scope) == 0);
}

static inline void
chan_send(uint64_t x)
{
	BENCH_CHECK(weft_chan_send(chan, &x, WEFT_NEVER) == 0);
}

static inline uint64_t
chan_recv(void)
{
	uint64_t x;

	BENCH_CHECK(weft_chan_recv(chan, &x, WEFT_NEVER) == 0);
	return x;
}

#include "chan_bench.h"
