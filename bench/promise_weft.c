/* promise_weft.c - promises, microtasks and timers with IDs, on one loop's thread.
 *
 *   promise.then_chain      chain a handler to the previous one and call it; a chain of
 *                           1,000,000 on a promise that is settled afterwards
 *   promise.then_chain.1000 the same with chains of 1,000, repeated
 *   promise.create_resolve  create, settle and release a promise
 *   promise.all.1000        create and settle one of 1,000 promises, and pass it to `all`
 *   promise.all.1000.late   the same, but settle it after the call of `all`
 *   microtask               call a microtask that queues the next one
 *   timeout.set_clear       set and clear a timer; each has a different delay
 *
 * Each row is CPU time of the process per operation.  node/rows.js measures the same.
 */
#include "bench.h"
#include <weft/loop.h>
#include <weft/promise.h>
#include <weft/schedule.h>

/* A measurement.  `round` does `size` operations, and next() is called when they are done. */
struct plan {
	void (*round)(int64_t i);
	int64_t rounds, size;
};

static const struct plan *plan;
static weft_loop *loop;
static int64_t at; /* the current round; negative: warm-up */
static uint64_t begin_ns, end_ns;

static void
next(void)
{
	if (++at == 0)
		begin_ns = bench_process_ns();
	if (at == plan->rounds)
		end_ns = bench_process_ns();
	else
		plan->round(at);
}

static void
begin(void *arg)
{
	(void)arg;
	next();
}

static double
run(const struct plan *what)
{
	plan = what;
	at = -what->rounds / 10 - 2;
	loop = weft_loop_new(NULL);
	BENCH_CHECK(loop && weft_loop_post(loop, begin, NULL) == 0);
	BENCH_CHECK(weft_loop_run(loop) == 0);
	BENCH_CHECK(at == what->rounds);
	return (double)(end_ns - begin_ns) / (double)(what->rounds * what->size);
}

/* A round that ends synchronously starts the next by a microtask, to avoid recursion. */
static void
again(void *arg)
{
	(void)arg;
	next();
}

static void
end_round(void)
{
	BENCH_CHECK(weft_schedule_microtask(loop, again, NULL) == 0);
}

/* --- promises ----------------------------------------------------------- */

enum { LINKS = 1000000, LINKS_FEW = 1000, MADE = 1000, MANY = 1000 };

static int
add_one(const weft_value *in, weft_value *out, void *arg)
{
	(void)arg;
	*out = weft_value_integer(in->as.integer + 1);
	return 0;
}

static int
end_chain(const weft_value *in, weft_value *out, void *arg)
{
	(void)out;
	(void)arg;
	BENCH_CHECK(in->as.integer == at + plan->size);
	next();
	return 0;
}

static void
then_chain_round(int64_t i)
{
	weft_promise *first = weft_promise_new(loop);
	weft_promise *promise = weft_promise_ref(first);

	for (int64_t k = 0; k < plan->size; k++)
		promise = weft_promise_then(promise, add_one, NULL, NULL);
	(void)weft_promise_resolve(first, weft_value_integer(i));
	(void)weft_promise_unref(first);
	promise = weft_promise_then(promise, end_chain, NULL, NULL);
	BENCH_CHECK(promise);
	(void)weft_promise_unref(promise);
}

static double
then_chain(void)
{
	return run(&(struct plan){ then_chain_round, 3, LINKS });
}

static double
then_chain_few(void)
{
	return run(&(struct plan){ then_chain_round, 2000, LINKS_FEW });
}

static void
create_resolve_round(int64_t i)
{
	for (int k = 0; k < MADE; k++) {
		weft_promise *promise = weft_promise_new(loop);

		BENCH_CHECK(weft_promise_resolve(promise, weft_value_integer(i + k)) == 0);
		(void)weft_promise_unref(promise);
	}
	end_round();
}

static double
create_resolve(void)
{
	return run(&(struct plan){ create_resolve_round, 5000, MADE });
}

static int
end_all(const weft_value *in, weft_value *out, void *arg)
{
	const weft_list *list = in->as.ptr;

	(void)out;
	(void)arg;
	BENCH_CHECK(list->count == MANY && list->items[MANY - 1].as.integer == at + MANY - 1);
	next();
	return 0;
}

static weft_promise *promises[MANY];

static void
watch_all(weft_promise *all)
{
	all = weft_promise_then(all, end_all, NULL, NULL);
	BENCH_CHECK(all);
	(void)weft_promise_unref(all);
}

static void
all_round(int64_t i)
{
	for (int k = 0; k < MANY; k++) {
		promises[k] = weft_promise_new(loop);
		(void)weft_promise_resolve(promises[k], weft_value_integer(i + k));
	}
	watch_all(weft_promise_all(promises, MANY));
}

static double
all_1000(void)
{
	return run(&(struct plan){ all_round, 2000, MANY });
}

static void
all_late_round(int64_t i)
{
	weft_promise *all;

	for (int k = 0; k < MANY; k++)
		promises[k] = weft_promise_ref(weft_promise_new(loop));
	all = weft_promise_all(promises, MANY);
	for (int k = 0; k < MANY; k++) {
		(void)weft_promise_resolve(promises[k], weft_value_integer(i + k));
		(void)weft_promise_unref(promises[k]);
	}
	watch_all(all);
}

static double
all_1000_late(void)
{
	return run(&(struct plan){ all_late_round, 2000, MANY });
}

/* --- microtasks --------------------------------------------------------- */

enum { NESTED = 50000 }; /* below the limit of WEFT_REPORT_MICROTASK_FLOOD */

static int nested_left;

static void
step(void *arg)
{
	if (--nested_left > 0)
		BENCH_CHECK(weft_schedule_microtask(loop, step, arg) == 0);
	else
		BENCH_CHECK(weft_schedule_immediate(loop, again, NULL) > 0);
}

static void
microtask_round(int64_t i)
{
	(void)i;
	nested_left = NESTED;
	BENCH_CHECK(weft_schedule_microtask(loop, step, NULL) == 0);
}

static double
microtask(void)
{
	return run(&(struct plan){ microtask_round, 40, NESTED });
}

/* --- timers ------------------------------------------------------------- */

enum { SETS = 1000 };

static void
never(void *arg)
{
	(void)arg;
	bench_die("a timer that was cleared has fired");
}

static void
set_clear_round(int64_t i)
{
	(void)i;
	for (uint64_t k = 0; k < SETS; k++) {
		int64_t id = weft_schedule_timeout(loop, (10000 + k) * BENCH_MS, never, NULL);

		BENCH_CHECK(weft_schedule_clear(loop, id, NULL) == 0);
	}
	end_round();
}

static double
set_clear(void)
{
	return run(&(struct plan){ set_clear_round, 1000, SETS });
}

static const struct bench_row promise_rows[] = {
	{ "promise.then_chain", then_chain },         { "promise.then_chain.1000", then_chain_few },
	{ "promise.create_resolve", create_resolve }, { "promise.all.1000", all_1000 },
	{ "promise.all.1000.late", all_1000_late },   { "microtask", microtask },
	{ "timeout.set_clear", set_clear },
};

BENCH_MAIN(promise_rows)
