/* spawn_weft.c - a threadlet in its own scope, which is opened and closed around it.
 *
 * The usual way to wait for a threadlet is to close its scope.  weft_join() inside an open scope
 * would be less work than the peers do, so opening and closing the scope is part of the cost.
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
