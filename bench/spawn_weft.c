/* spawn_weft.c - a threadlet in a scope of its own, opened and closed around it.
 *
 * Closing a scope is how a threadlet of weft is waited for.  weft_join() inside of
 * an open scope would be less work than the peers do: the scope is part of the price.
 */
#include "bench.h"
#include "root.h"
#include <weft/scope.h>

static uint64_t spawn_ran;

static int
spawn_body(void *arg)
{
	(void)arg;
	spawn_ran++;
	return 0;
}

static inline void
spawn_join(void)
{
	weft_scope scope;

	BENCH_CHECK(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	BENCH_CHECK(weft_scope_go(&scope, spawn_body, NULL) > 0);
	BENCH_CHECK(weft_scope_close(&scope) == 0);
}

#include "spawn_bench.h"
