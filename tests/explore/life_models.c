/* life_models.c - running, stopping and freeing a loop, over all schedules.
 *
 * All of src/loop runs here, on model threads.  The loops do not spin, and posts are nodes,
 * which keeps the models small.
 */
#include "base/thread.h"
#include "loop/core/loop.h"
#include "models.h"

struct world {
	weft_loop *loop;
	weft_node node;
	weft__a32 accepted, freed;
	uint32_t ran;
	struct weft__stop_wait wait;
	uint32_t waits, called; /* 1: the wait was added and not dropped; number of callbacks */
};

#define WORLD(wait_) ((struct world *)(void *)((char *)(wait_)-offsetof(struct world, wait)))

static void
count(void *arg)
{
	struct world *w = arg;

	weft__put(w->ran, weft__get(w->ran) + 1);
}

static void
setup(void *state)
{
	struct world *w = state;
	weft_loop_opts opts = { .flags = WEFT_LOOP_NO_SPIN | WEFT_LOOP_KEEP };

	w->loop = weft_loop_new(&opts);
	w->node.fn = count;
	w->node.arg = w;
}

/* --- threads ------------------------------------------------------------ */

static void
run(void *state)
{
	struct world *w = state;
	int rc = weft_loop_run(w->loop);

	EXPLORE_CHECK(rc == 0 || rc == WEFT_EALREADY);
}

static void
post(struct world *w)
{
	int rc = weft_loop_post_node(w->loop, &w->node);

	EXPLORE_CHECK(rc == 0 || rc == WEFT_ESHUTDOWN);
	if (rc == 0)
		(void)weft__add(&w->accepted, 1, WEFT__RELAXED);
}

static void
post_only(void *state)
{
	post(state);
}

static void
stop(void *state)
{
	struct world *w = state;

	weft_loop_shutdown(w->loop);
}

static void
stop_and_wait(void *state)
{
	struct world *w = state;

	weft_loop_shutdown(w->loop);
	EXPLORE_CHECK(weft_loop_wait_stopped(w->loop, WEFT_NEVER) == 0);
	EXPLORE_CHECK(weft_loop_state(w->loop) == WEFT_STOPPED);
	/* Nothing runs after that: what has run is visible and final. */
	EXPLORE_CHECK(weft__get(w->ran) <= 1);
}

/* For every call the loop has stopped, although its thread may still be leaving it. */
static void
stop_wait_and_use(void *state)
{
	struct world *w = state;

	stop_and_wait(w);
	EXPLORE_CHECK(weft_loop_run(w->loop) == WEFT_EALREADY);
	EXPLORE_CHECK(weft_loop_start(w->loop) == WEFT_EALREADY);
	EXPLORE_CHECK(weft__loop_check(w->loop, "model") == WEFT_ESHUTDOWN);
}

static void
post_stop_wait_free(void *state)
{
	struct world *w = state;

	post(w);
	stop_and_wait(w);
	EXPLORE_CHECK(weft__get(w->ran) == weft__load(&w->accepted, WEFT__RELAXED));
	EXPLORE_CHECK(weft_loop_free(w->loop) == 0);
	w->loop = NULL;
}

static void
wait_only(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_loop_wait_stopped(w->loop, WEFT_NEVER) == 0);
}

static bool
claim_wait(struct weft__stop_wait *wait)
{
	(void)wait;
	return true;
}

static void
end_wait(struct weft__stop_wait *wait)
{
	struct world *w = WORLD(wait);

	weft__put(w->called, weft__get(w->called) + 1);
}

static void
wait_for_stop(void *state)
{
	struct world *w = state;

	w->wait.claim = claim_wait;
	w->wait.wake = end_wait;
	weft__put(w->waits, weft__stop_wait_add(w->loop, &w->wait));
}

static void
wait_then_stop(void *state)
{
	wait_for_stop(state);
	stop(state);
}

static void
wait_and_take_back(void *state)
{
	struct world *w = state;

	wait_for_stop(w);
	if (!weft__get(w->waits) || !weft__stop_wait_drop(&w->wait))
		return;
	weft__loop_exit(w->loop);
	weft__put(w->waits, 0);
}

static void
leave_then_stop(void *state)
{
	struct world *w = state;

	weft_loop_break(w->loop);
	weft_loop_shutdown(w->loop);
}

/* Run until the loop has stopped, however often a run is ended before that. */
static void
run_until_stopped(void *state)
{
	struct world *w = state;

	while (weft_loop_run(w->loop) == 0 && weft_loop_state(w->loop) != WEFT_STOPPED)
		;
}

static void
free_loop(void *state)
{
	struct world *w = state;

	if (w->loop)
		EXPLORE_CHECK(weft_loop_free(w->loop) == 0);
}

static void
setup_with_visitor(void *state)
{
	struct world *w = state;

	setup(w);
	weft__loop_enter(w->loop);
}

/* By a thread that is already inside the call when the others begin. */
static void
stop_from_inside(void *state)
{
	struct world *w = state;

	weft_loop_shutdown(w->loop);
	weft__loop_exit(w->loop);
}

static void
try_to_free(void *state)
{
	struct world *w = state;
	int rc = weft_loop_free(w->loop);

	EXPLORE_CHECK(rc == 0 || rc == WEFT_EBUSY);
	weft__store(&w->freed, rc == 0, WEFT__RELAXED);
}

static void
free_if_left(void *state)
{
	struct world *w = state;

	if (!weft__load(&w->freed, WEFT__RELAXED))
		free_loop(w);
}

static void
setup_bound(void *state)
{
	struct world *w = state;

	setup(w);
	w->loop->bound = (uintptr_t)w; /* to a thread that does not exist */
}

static void
run_in_vain(void *state)
{
	struct world *w = state;

	int rc = weft_loop_run(w->loop);

	EXPLORE_CHECK(rc == WEFT_EWRONGLOOP || rc == WEFT_EALREADY);
}

static void
start_in_vain(void *state)
{
	struct world *w = state;

	int rc = weft_loop_start(w->loop);

	EXPLORE_CHECK(rc == WEFT_EWRONGLOOP || rc == WEFT_EALREADY);
}

static void
check_stopped(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_loop_state(w->loop) == WEFT_STOPPED);
	free_loop(w);
}

/* weft_loop_free() also checks that no reference is left. */
static void
check_called(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->called == w->waits);
	free_loop(w);
}

static void
run_and_free(void *state)
{
	struct world *w = state;

	if (weft_loop_state(w->loop) != WEFT_STOPPED)
		(void)weft_loop_run(w->loop);
	EXPLORE_CHECK(w->ran == weft__load(&w->accepted, WEFT__RELAXED));
	free_loop(w);
}

/* Planted: a stop that does not wake the loop. */
static void
stop_without_wake(void *state)
{
	struct world *w = state;

	weft__store(&w->loop->state, WEFT_STOPPING, WEFT__RELAXED);
	weft__inbox_close(&w->loop->inbox);
}

#define MODEL_OF(name_, setup_, ...)                                                \
	{                                                                           \
		.name = name_, .state_size = sizeof(struct world), .setup = setup_, \
		.steps_max = 4000, __VA_ARGS__                                      \
	}
#define MODEL(name_, ...) MODEL_OF(name_, setup, __VA_ARGS__)

static const struct explore_model models[] = {
	MODEL("a loop is posted to, stopped, awaited and freed", .threads = 2,
	      .thread = { run, post_stop_wait_free }, .check = free_loop, .preemptions = 2),
	MODEL("stopping an idle loop meets a post", .threads = 2, .thread = { stop, post_only },
	      .check = run_and_free),
	MODEL("stopping an idle loop meets a run", .threads = 2, .thread = { run, stop },
	      .check = free_loop, .preemptions = 3),
	MODEL("a run that is left and stopped comes to its end", .threads = 2,
	      .thread = { run_until_stopped, leave_then_stop }, .check = free_loop,
	      .preemptions = 2),
	MODEL("every waiter of stopped returns", .threads = 3,
	      .thread = { run, stop_and_wait, wait_only }, .check = free_loop, .preemptions = 1),
	MODEL("a stopped loop is stopped for every call", .threads = 2,
	      .thread = { run, stop_wait_and_use }, .check = free_loop, .preemptions = 1),
	MODEL_OF("stopping an idle loop meets its freeing", setup_with_visitor, .threads = 2,
	         .thread = { try_to_free, stop_from_inside }, .check = free_if_left),
	MODEL_OF("stopping an idle loop meets a run that is refused", setup_bound, .threads = 2,
	         .thread = { run_in_vain, stop }, .check = check_stopped),
	MODEL_OF("stopping an idle loop meets a start that is refused", setup_bound, .threads = 2,
	         .thread = { start_in_vain, stop }, .check = check_stopped),
	MODEL("a waiter that comes as a loop stops is notified, or finds it stopped", .threads = 2,
	      .thread = { stop, wait_for_stop }, .check = check_called),
	MODEL("a wait that begins before a loop stops ends", .threads = 2,
	      .thread = { run, wait_then_stop }, .check = check_called, .preemptions = 2),
	MODEL("a waiter for the end of a run is notified, or withdraws", .threads = 3,
	      .thread = { run, stop, wait_and_take_back }, .check = check_called, .preemptions = 1),
};

static const struct explore_model mistaken = MODEL("a loop is stopped", .threads = 2,
                                                   .thread = { run, stop_without_wake },
                                                   .check = free_loop);

static const struct plant plants[] = {
	{ 0, &mistaken, 0, "a stop that forgets to wake" },
};

static const struct model_set life_models = {
	.models = models,
	.plants = plants,
	.model_count = COUNT(models),
	.plant_count = COUNT(plants),
	.as_it_is = true,
};

int
main(int argc, char **argv)
{
	static const struct model_set *const sets[] = { &life_models };

	(void)argv;
	return models_run(sets, COUNT(sets), argc);
}
