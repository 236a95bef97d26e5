/* switch_weft.c - two threadlets of one loop and weft_yield(). */
#include "bench.h"
#include "root.h"
#include <weft/scope.h>

static inline void
switch_yield(void)
{
	BENCH_CHECK(weft_yield() == 0);
}

static void
pair_run(int (*fn)(void *arg))
{
	weft_scope scope;

	BENCH_CHECK(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	BENCH_CHECK(weft_scope_go(&scope, fn, NULL) > 0);
	BENCH_CHECK(weft_scope_go(&scope, fn, NULL) > 0);
	BENCH_CHECK(weft_scope_close(&scope) == 0);
}

#include "switch_bench.h"
