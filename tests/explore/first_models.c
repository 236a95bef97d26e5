/* first_models.c - two threads need an object of a loop that is created at its first use.
 *
 * Each thread makes one.  One of them publishes its own; the other frees its own and continues
 * with the published one, of which it knows only the pointer that its compare-exchange
 * returned.  Each model ends by stopping and freeing the loop.
 */
#include "base/os.h"
#include "models.h"
#include "promise/promise.h"
#include "threadlet/threadlet.h"

struct world {
	weft_loop *loop;
	weft_promise *promise[2];
	struct weft__sched *sched[2];
};

static void
ignore_report(void *arg, const weft_report *report)
{
	(void)arg;
	(void)report;
}

static void
setup(void *state)
{
	struct world *w = state;
	weft_loop_opts opts = { .flags = WEFT_LOOP_NO_SPIN | WEFT_LOOP_KEEP };

	weft__hooks.on_report = ignore_report;
	w->loop = weft_loop_new(&opts);
	EXPLORE_CHECK(w->loop != NULL);
}

/* --- threads -------------------------------------------------------------- */

static void
make_promise(void *state)
{
	struct world *w = state;
	weft_promise *promise = weft_promise_new(w->loop);

	EXPLORE_CHECK(promise != NULL);
	w->promise[explore_thread()] = promise;
}

static void
make_sched(void *state)
{
	struct world *w = state;
	struct weft__sched *sched = weft__sched_of(w->loop);

	EXPLORE_CHECK(sched != NULL);
	EXPLORE_CHECK(weft__get(sched->loop) == w->loop);
	w->sched[explore_thread()] = sched;
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
check_promises(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->promise[0]->owner == w->promise[1]->owner);
	end_loop(w);
	for (int i = 0; i < 2; i++) {
		EXPLORE_CHECK(weft_promise_state(w->promise[i], NULL) == WEFT_REJECTED);
		(void)weft_promise_unref(w->promise[i]);
	}
}

static void
check_sched(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->sched[0] == w->sched[1]);
	end_loop(w);
}

/* --- the models ------------------------------------------------------------- */

#define BOTH(name_, thread_, check_)                                                             \
	{                                                                                        \
		.name = name_, .state_size = sizeof(struct world), .threads = 2, .setup = setup, \
		.check = check_, .thread = { thread_, thread_ }, .steps_max = 4000,              \
	}

static const struct explore_model models[] = {
	BOTH("two threads make a loop's first promise", make_promise, check_promises),
	BOTH("two threads start a loop's first threadlet", make_sched, check_sched),
};

const struct model_set first_models = {
	.models = models,
	.model_count = COUNT(models),
	.as_it_is = true,
};
