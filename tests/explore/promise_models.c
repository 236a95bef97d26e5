/* promise_models.c - promises between threads and a loop, over all schedules.
 *
 * All of src/promise runs here, with the loop that the promises belong to.  Each model ends by
 * stopping and freeing the loop.  So a remainder of a promise is found as a leak, and a late
 * access as a use of freed memory.
 */
#include <weft/abort.h>
#include "base/os.h"
#include "base/thread.h"
#include "models.h"
#include "promise/promise.h"

struct world {
	weft_loop *loop;
	weft_promise *promise, *next;
	int rc[2];
	uint32_t drops;                    /* values dropped */
	uint32_t handled;                  /* calls of the handler */
	uint32_t number;                   /* plain data that is written before the rejection */
	uint32_t unhandled, handled_later; /* reports */
	struct weft__reaction reaction;
	weft_node node;
	weft_promise *near;
	const weft_abort *signal;
};

#define PAST 1            /* a deadline that has passed */
#define SOON (2 * WEFT_S) /* a deadline: passes when nothing else can run, or at once */

static struct world *reporting; /* the world whose reports are counted, or NULL */

/* --- setups --------------------------------------------------------------- */

static void
drop_value(void *ptr)
{
	struct world *w = ptr;

	weft__put(w->drops, weft__get(w->drops) + 1);
}

static const weft_type type_counted = { .name = "counted", .drop = drop_value };

static int
handle(const weft_value *in, weft_value *out, void *arg)
{
	struct world *w = arg;

	(void)in;
	(void)out;
	weft__put(w->handled, weft__get(w->handled) + 1);
	return 0;
}

/* The hook can read what was written before the rejection that it reports. */
static void
on_report(void *arg, const weft_report *report)
{
	struct world *w = reporting;

	(void)arg;
	if (!w)
		return;
	if (report->kind == WEFT_REPORT_UNHANDLED) {
		weft__put(w->unhandled, weft__get(w->unhandled) + 1);
	} else if (report->kind == WEFT_REPORT_HANDLED) {
		EXPLORE_CHECK(weft__get(w->number) == 7);
		weft__put(w->handled_later, weft__get(w->handled_later) + 1);
	}
}

/* Count reports of rejections in `w`; NULL: do not count them. */
static void
count_reports(struct world *w)
{
	reporting = w;
	weft__hooks.on_report = on_report;
}

static void
setup(void *state)
{
	struct world *w = state;
	weft_loop_opts opts = { .flags = WEFT_LOOP_NO_SPIN | WEFT_LOOP_KEEP };

	count_reports(NULL);
	w->loop = weft_loop_new(&opts);
	w->promise = weft_promise_new(w->loop);
	EXPLORE_CHECK(w->promise != NULL);
}

static void
setup_two(void *state)
{
	struct world *w = state;

	setup(w);
	(void)weft_promise_ref(w->promise);
}

static void
setup_none(void *state)
{
	struct world *w = state;
	weft_loop_opts opts = { .flags = WEFT_LOOP_NO_SPIN | WEFT_LOOP_KEEP };

	count_reports(NULL);
	w->loop = weft_loop_new(&opts);
}

/* The loop stops as soon as it runs, and then walks its promises. */
static void
setup_stopping(void *state)
{
	struct world *w = state;

	setup(w);
	weft_loop_shutdown(w->loop);
	EXPLORE_CHECK(weft_loop_state(w->loop) == WEFT_STOPPING);
}

static void
chain_near(void *arg)
{
	struct world *w = arg;

	w->near = weft_promise_then(weft_promise_ref(w->promise), handle, NULL, w);
	EXPLORE_CHECK(w->near != NULL);
}

/* The same with a settled promise, to which the loop chains. */
static void
setup_chaining(void *state)
{
	struct world *w = state;

	setup(w);
	w->node = (weft_node){ .fn = chain_near, .arg = w };
	EXPLORE_CHECK(weft_promise_resolve(w->promise, weft_value_integer(7)) == 0);
	EXPLORE_CHECK(weft_loop_post_node(w->loop, &w->node) == 0);
	weft_loop_shutdown(w->loop);
}

static void
setup_reports(void *state)
{
	setup_stopping(state);
	(void)weft_promise_ref(((struct world *)state)->promise);
	count_reports(state);
}

/* The loop takes the timer in one iteration, and fires the signal in the next. */
static void
setup_signal(void *state)
{
	struct world *w = state;

	setup_none(w);
	w->signal = weft_abort_new_timeout(w->loop, PAST);
	EXPLORE_CHECK(w->signal != NULL);
}

/* The next iteration finishes the op of the promise. */
static void
setup_op(void *state)
{
	struct world *w = state;
	weft_op *op;

	setup_none(w);
	w->promise = weft_promise_new_op(w->loop, &op);
	EXPLORE_CHECK(w->promise && weft_op_sleep(op, PAST) == 0);
}

/* --- threads -------------------------------------------------------------- */

static void
resolve(struct world *w, int who)
{
	w->rc[who] = weft_promise_resolve(w->promise, weft_value_ptr(&type_counted, w));
	EXPLORE_CHECK(w->rc[who] == 0 || w->rc[who] == WEFT_EALREADY);
}

static void
resolve_first(void *state)
{
	resolve(state, 0);
}

static void
resolve_second(void *state)
{
	resolve(state, 1);
}

static void
await_soon(void *state)
{
	struct world *w = state;
	weft_value value = { 0 };

	w->rc[0] = weft_await(w->promise, &value, SOON);
	EXPLORE_CHECK(w->rc[0] == WEFT_ETIMEDOUT || (w->rc[0] == 0 && value.as.ptr == w));
}

static void
await_for_ever(void *state)
{
	struct world *w = state;

	w->rc[0] = weft_await(w->promise, NULL, WEFT_NEVER);
	EXPLORE_CHECK(w->rc[0] == 0);
}

static void
let_go(void *state)
{
	struct world *w = state;

	(void)weft_promise_unref(w->promise);
}

static void
resolve_and_let_go(void *state)
{
	resolve(state, 1);
	let_go(state);
}

static void
chain(void *state)
{
	struct world *w = state;

	w->next = weft_promise_then(weft_promise_ref(w->promise), handle, handle, w);
	EXPLORE_CHECK(w->next != NULL);
}

static void
stop(void *state)
{
	struct world *w = state;

	weft_loop_shutdown(w->loop);
}

static void
run_to_end(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_loop_run(w->loop) == 0);
}

static void
run_iteration(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_loop_run_once(w->loop, WEFT_NOWAIT) >= 0);
}

static void
run_two_iterations(void *state)
{
	run_iteration(state);
	run_iteration(state);
}

static void
drop_signal(void *state)
{
	struct world *w = state;

	(void)weft_abort_unref(w->signal);
}

/* Reject the promise, and run its loop, which lands and reports it. */
static void
reject_and_run(void *state)
{
	struct world *w = state;

	weft__put(w->number, 7);
	EXPLORE_CHECK(weft_promise_reject(w->promise, weft_value_integer(7)) == 0);
	run_to_end(w);
	let_go(w);
}

static void
run_reaction(struct weft__reaction *reaction, weft_promise *of)
{
	(void)reaction;
	(void)weft_promise_unref(of);
}

/* As every call that chains, awaits or combines does. */
static void
handle_rejection(void *state)
{
	struct world *w = state;

	w->reaction.run = run_reaction;
	(void)weft__promise_react(w->promise, &w->reaction);
	let_go(w);
}

/* A call that comes too late is not an error. */
static void
chain_if_served(void *state)
{
	struct world *w = state;

	w->next = weft_promise_then(weft_promise_ref(w->promise), handle, NULL, w);
}

static void
make_first(void *state)
{
	struct world *w = state;

	w->promise = weft_promise_new(w->loop);
	EXPLORE_CHECK(w->promise != NULL);
}

/* --- checks --------------------------------------------------------------- */

static void
end_loop(struct world *w)
{
	weft_loop_shutdown(w->loop);
	if (weft_loop_state(w->loop) != WEFT_STOPPED)
		EXPLORE_CHECK(weft_loop_run(w->loop) == 0);
	EXPLORE_CHECK(weft_loop_free(w->loop) == 0);
}

static void
check_one_won(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->rc[0] + w->rc[1] == WEFT_EALREADY);
	EXPLORE_CHECK(w->drops == 1);
	end_loop(w);
	let_go(w);
	EXPLORE_CHECK(w->drops == 2);
}

static void
check_resolved(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->rc[1] == 0 && w->drops == 0);
	end_loop(w);
	let_go(w);
	EXPLORE_CHECK(w->drops == 1);
}

/* The handler was called, no matter what settled the promise. */
static void
check_handled(void *state)
{
	struct world *w = state;

	end_loop(w);
	EXPLORE_CHECK(w->handled == 1);
	EXPLORE_CHECK(weft_promise_state(w->next, NULL) != WEFT_PENDING);
	(void)weft_promise_unref(w->next);
}

static void
check_chained(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->rc[1] == 0);
	check_handled(w);
	let_go(w);
	EXPLORE_CHECK(w->drops == 1);
}

static void
check_gone(void *state)
{
	end_loop(state);
}

/* A rejection that was reported as unhandled was later reported as handled. */
static void
check_reports(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->unhandled <= 1);
	EXPLORE_CHECK(w->handled_later == w->unhandled);
	end_loop(w);
}

/* Every handler that was added was called. */
static void
check_both(void *state)
{
	struct world *w = state;

	end_loop(w);
	EXPLORE_CHECK(w->handled == (w->next ? 2 : 1));
	(void)weft_promise_unref(w->near);
	(void)weft_promise_unref(w->next);
	let_go(w);
}

static void
check_rejected(void *state)
{
	struct world *w = state;

	end_loop(w);
	EXPLORE_CHECK(weft_promise_state(w->promise, NULL) == WEFT_REJECTED);
	let_go(w);
}

/* --- mistakes --------------------------------------------------------------- */

/* Planted: checks whether it is pending, and settles it afterwards. */
static void
resolve_badly(struct world *w, int who)
{
	weft_promise *promise = w->promise;
	weft_value value = weft_value_ptr(&type_counted, w);
	bool pending = weft__promise_outcome(promise) == WEFT_PENDING;

	w->rc[who] = pending ? 0 : WEFT_EALREADY;
	if (!pending) {
		weft_value_drop(&value);
		return;
	}
	promise->value = value;
	weft__store(&promise->outcome, WEFT_FULFILLED, WEFT__RELEASE);
	weft__promise_send(weft_promise_ref(promise));
}

static void
resolve_badly_first(void *state)
{
	resolve_badly(state, 0);
}

static void
resolve_badly_second(void *state)
{
	resolve_badly(state, 1);
}

/* Planted: checks, and waits afterwards, without taking the lock. */
static void
await_badly(void *state)
{
	struct world *w = state;
	struct weft__awaiter awaiter = { .reaction = { 0 } };

	if (weft__promise_outcome(w->promise) != WEFT_PENDING)
		return;
	weft__shared_waiter_init(&awaiter.w, "model", w->promise);
	w->promise->awaited = true;
	weft__reaction_add(&w->promise->last, &awaiter.reaction);
	(void)weft__shared_wait(&awaiter.w, WEFT_NEVER);
}

/* Planted: decrements the count in two steps. */
static void
let_go_badly(void *state)
{
	struct world *w = state;
	uint32_t refs = weft__load(&w->promise->refs, WEFT__ACQUIRE);

	if (refs == 1)
		(void)weft_promise_unref(w->promise);
	else
		weft__store(&w->promise->refs, refs - 1, WEFT__RELEASE);
}

/* Planted: treats a count of one as the last reference, even while another thread walks the
 * list. */
static void
let_go_alone(void *state)
{
	struct world *w = state;
	weft_promise *promise = w->promise;

	if (weft__load(&promise->refs, WEFT__ACQUIRE) != 1) {
		(void)weft_promise_unref(promise);
		return;
	}
	weft__store(&promise->refs, 0, WEFT__RELAXED);
	weft__promise_unlist(promise);
	weft__promise_release(promise);
}

/* Planted: the loop settles the promise without a reference. */
static void
fail_badly(void *arg)
{
	struct world *w = arg;

	(void)weft__promise_fail(w->promise, WEFT_ETIMEDOUT);
}

static void
setup_timer_badly(void *state)
{
	struct world *w = state;

	setup(w);
	w->node = (weft_node){ .fn = fail_badly, .arg = w };
	EXPLORE_CHECK(weft_loop_post_node(w->loop, &w->node) == 0);
}

/* Planted: marks the rejection as handled before it knows that the promise has settled. */
static void
handle_badly(void *state)
{
	struct world *w = state;
	uint32_t before = weft__exchange(&w->promise->handled, WEFT__HANDLED, WEFT__RELAXED);

	if (before == WEFT__REPORTED)
		on_report(NULL, &(weft_report){ .kind = WEFT_REPORT_HANDLED });
	let_go(w);
}

/* --- the models ------------------------------------------------------------- */

#define MODEL(name_, setup_, check_, bound_, ...)                                               \
	{                                                                                       \
		.name = name_, .state_size = sizeof(struct world), .setup = setup_,             \
		.check = check_, .preemptions = bound_, .steps_max = 4000, .late_unpark = true, \
		__VA_ARGS__                                                                     \
	}
#define TWO(name_, setup_, one_, other_, check_, bound_, ...) \
	MODEL(name_, setup_, check_, bound_, .threads = 2, .thread = { one_, other_ }, __VA_ARGS__)
static const struct explore_model models[] = {
	TWO("of two who settle one wins", setup, resolve_first, resolve_second, check_one_won, -1,
	    .spurious = 0),
	TWO("who awaits with a deadline has the value or has not", setup, await_soon,
	    resolve_second, check_resolved, 3, .timeouts = true),
	TWO("who awaits is woken", setup, await_for_ever, resolve_second, check_resolved, 3,
	    .spurious = 1),
	TWO("who is chained as it settles is called", setup, chain, resolve_second, check_chained,
	    3, .spurious = 0),
	TWO("the last of two who let go ends it", setup_two, let_go, let_go, check_gone, -1,
	    .spurious = 0),
	TWO("one lets go as another settles", setup_two, let_go, resolve_and_let_go, check_gone, 3,
	    .spurious = 0),
	TWO("an idle loop is stopped as the last lets go", setup, stop, let_go, check_gone, 2,
	    .spurious = 0),
	TWO("a running loop ends as the last lets go", setup_stopping, run_to_end, let_go,
	    check_gone, 2, .spurious = 0),
	TWO("a loop chains and ends as another chains", setup_chaining, run_to_end, chain_if_served,
	    check_both, 2, .spurious = 0),
	TWO("a loop is stopped as its first promise is made", setup_none, stop, make_first,
	    check_rejected, 2, .spurious = 0),
	TWO("a rejection is reported as another thread handles it", setup_reports, reject_and_run,
	    handle_rejection, check_reports, 1, .spurious = 0),
	TWO("a signal fires as its last reference is dropped", setup_signal, run_two_iterations,
	    drop_signal, check_gone, 2, .spurious = 0),
	TWO("an op finishes as the last reference to its promise is dropped", setup_op,
	    run_iteration, let_go, check_gone, 2, .spurious = 0),
};

static const struct explore_model mistaken[] = {
	TWO("of two who settle one wins", setup, resolve_badly_first, resolve_badly_second,
	    check_one_won, -1, .spurious = 0),
	TWO("who awaits is woken", setup, await_badly, resolve_second, check_resolved, 3,
	    .spurious = 0),
	TWO("the last of two who let go ends it", setup_two, let_go_badly, let_go_badly, check_gone,
	    -1, .spurious = 0),
	TWO("a running loop ends as the last lets go", setup_stopping, run_to_end, let_go_alone,
	    check_gone, 2, .spurious = 0),
	TWO("a rejection is reported as another thread handles it", setup_reports, reject_and_run,
	    handle_badly, check_reports, 1, .spurious = 0),
	TWO("a signal fires as its last reference is dropped", setup_timer_badly, run_iteration,
	    let_go, check_gone, 2, .spurious = 0),
};

static const struct plant plants[] = {
	{ 0, &mistaken[0], 0, "looks, and settles then" },
	{ 0, &mistaken[1], 0, "looks, and goes in to wait then" },
	{ 0, &mistaken[2], 0, "counts references by two steps" },
	{ 0, &mistaken[3], 0, "ends what a walk has taken a reference of" },
	{ 0, &mistaken[4], 0, "cares before it knows the outcome" },
	{ 0, &mistaken[5], 0, "settles without a reference" },
};

static const struct model_set promise_models = {
	.models = models,
	.plants = plants,
	.model_count = COUNT(models),
	.plant_count = COUNT(plants),
	.as_it_is = true,
};

int
main(int argc, char **argv)
{
	static const struct model_set *const sets[] = { &first_models, &quota_models,
		                                        &promise_models };

	(void)argv;
	return models_run(sets, COUNT(sets), argc);
}
