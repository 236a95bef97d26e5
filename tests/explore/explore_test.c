/* explore_test.c - mistakes that the explorer must find, and correct code that must pass.
 *
 * Blocking, spinning, time, and the search itself.  Each protocol exists in two variants: a
 * correct one, in which no execution may fail, and one with a mistake, in which an execution
 * must fail.  Memory is in tracked_test.c, the memory model in litmus_test.c and axioms_test.c.
 */
#include <errno.h>
#include "must.h"

/* --- parking ------------------------------------------------------------ */

/* The sleeper announces that it will sleep and rechecks; the waker sets the value and then
 * checks whether the sleeper sleeps. */
static void
sleeper(void *arg)
{
	struct world *w = arg;

	while (!weft__load(&w->x, WEFT__SEQ_CST)) {
		weft__store(&w->word, 1, WEFT__SEQ_CST);
		if (!planted && weft__load(&w->x, WEFT__SEQ_CST))
			break;
		(void)weft__sys->park(&w->word, 1, WEFT_NEVER);
	}
}

static void
waker(void *arg)
{
	struct world *w = arg;

	weft__store(&w->x, 1, WEFT__SEQ_CST);
	if (weft__exchange(&w->word, 0, WEFT__SEQ_CST))
		weft__sys->unpark(&w->word);
}

static const struct explore_model sleeping = {
	.name = "sleep flag",
	.state_size = sizeof(struct world),
	.threads = 2,
	.thread = { sleeper, waker },
};

TEST(explore_sleep_without_a_recheck_is_found_as_a_deadlock)
{
	must_pass(sleeping);
	must_fail(sleeping, "deadlock: T0 waits after explore_test.c:");
}

TEST(explore_weakening_finds_each_order_that_a_protocol_needs)
{
	planted = false;
	/* Four of the five orders are needed.  The first load's is not, because the load is
	 * repeated. */
	CHECK_EQ(explore_weaken(&sleeping), 1);
}

TEST(explore_weakening_is_found_if_one_of_several_models_finds_it)
{
	struct explore_model models[2] = { sleeping, sleeping };

	planted = false;
	models[0].name = "waker alone";
	models[0].threads = 1;
	models[0].thread[0] = waker;
	CHECK_EQ(explore_weaken(&models[0]), 2); /* a single thread needs no order */
	CHECK_EQ(explore_weaken_all(models, 2), 1);
}

/* A lock of one word: 0 free, 1 taken, 2 taken and a thread may be asleep. */
static void
lock(weft__a32 *word)
{
	uint32_t seen = 0;

	if (weft__cas(word, &seen, 1, WEFT__ACQUIRE))
		return;
	while (weft__exchange(word, 2, WEFT__ACQUIRE) != 0)
		(void)weft__sys->park(word, 2, WEFT_NEVER);
}

static void
unlock(weft__a32 *word)
{
	if (weft__exchange(word, 0, WEFT__RELEASE) == (planted ? 3 : 2))
		weft__sys->unpark(word);
}

static void
add_locked(void *arg)
{
	struct world *w = arg;

	lock(&w->word);
	weft__put(w->data, weft__get(w->data) + 1);
	unlock(&w->word);
}

static void
check_data_is_threads(void *arg)
{
	EXPLORE_CHECK(((struct world *)arg)->data == 2);
}

static const struct explore_model locking = {
	.name = "lock",
	.state_size = sizeof(struct world),
	.threads = 2,
	.thread = { add_locked, add_locked },
	.check = check_data_is_threads,
	.spurious = 1,
};

TEST(explore_lock_that_parks_excludes_and_wakes)
{
	must_pass(locking);
	must_fail(locking, "deadlock");
	planted = false;
	/* All three orders are needed: those of the two acquires, cas and exchange, and of the
	 * release. */
	CHECK_EQ(explore_weaken(&locking), 0);
}

TEST(explore_lock_of_three_threads_excludes)
{
	struct explore_model model = locking;

	model.threads = 3;
	model.thread[2] = add_locked;
	model.check = NULL;
	model.spurious = 0;
	must_pass(model);
}

static void
park_once(void *arg)
{
	struct world *w = arg;

	(void)weft__sys->park(&w->word, 0, WEFT_NEVER);
	if (!planted)
		while (!weft__load(&w->word, WEFT__ACQUIRE))
			(void)weft__sys->park(&w->word, 0, WEFT_NEVER);
	w->r[0] = weft__get(w->data);
}

static void
unpark_once(void *arg)
{
	struct world *w = arg;

	weft__put(w->data, 5);
	weft__store(&w->word, 1, WEFT__RELEASE);
	weft__sys->unpark(&w->word);
}

TEST(explore_park_may_return_spuriously)
{
	struct explore_model model = { .name = "spurious return",
		                       .threads = 2,
		                       .thread = { park_once, unpark_once },
		                       .spurious = 1 };

	must_pass(model);
	must_fail(model, "data race");
}

static void
park_until(void *arg)
{
	struct world *w = arg;
	uint64_t deadline_ns = weft__sys->now() + 1000;

	if (weft__sys->park(&w->word, 0, deadline_ns) == -ETIMEDOUT) {
		w->r[0] = 1;
		EXPLORE_CHECK(weft__sys->now() >= deadline_ns);
		EXPLORE_CHECK(!planted);
	}
}

TEST(explore_deadline_passes_when_nothing_else_can_run)
{
	struct explore_model model = { .name = "deadline",
		                       .threads = 2,
		                       .thread = { park_until, park_until } };

	must_pass(model);
	must_fail(model, "!planted is false");
}

TEST(explore_deadline_passes_before_a_wake_only_with_timeouts)
{
	struct explore_model model = { .name = "early deadline",
		                       .threads = 2,
		                       .thread = { park_until, unpark_once } };

	CHECK(explored(model, true).failure == NULL);
	model.timeouts = true;
	must_fail(model, "!planted is false");
}

/* --- event descriptors -------------------------------------------------- */

static void
loop_waits(void *arg)
{
	struct world *w = arg;

	while (!weft__exchange(&w->x, 0, WEFT__ACQUIRE)) {
		weft__store(&w->y, 1, WEFT__SEQ_CST);
		if (!planted && weft__load(&w->x, WEFT__SEQ_CST))
			continue;
		EXPLORE_CHECK(explore_fd_wait(EXPLORE_FD, WEFT_NEVER));
	}
	w->r[0] = weft__get(w->data);
}

static void
post(void *arg)
{
	struct world *w = arg;
	uint64_t one = 1;

	weft__put(w->data, 4);
	weft__store(&w->x, 1, WEFT__SEQ_CST);
	if (weft__exchange(&w->y, 0, WEFT__SEQ_CST))
		(void)weft__sys->write(EXPLORE_FD, &one, sizeof one);
}

TEST(explore_missed_wake_by_descriptor_is_found_as_a_deadlock)
{
	struct explore_model model = { .name = "wake by descriptor",
		                       .threads = 2,
		                       .thread = { loop_waits, post } };

	must_pass(model);
	must_fail(model, "deadlock");
}

static void
close_event(void *arg)
{
	struct world *w = arg;

	if (!planted)
		while (!weft__load(&w->y, WEFT__ACQUIRE))
			weft__sys->yield();
	(void)weft__sys->close(EXPLORE_FD);
}

static void
write_event(void *arg)
{
	struct world *w = arg;
	uint64_t one = 1;

	(void)weft__sys->write(EXPLORE_FD, &one, sizeof one);
	weft__store(&w->y, 1, WEFT__RELEASE);
}

TEST(explore_write_to_a_closed_descriptor_is_a_failure)
{
	struct explore_model model = { .name = "wake against close",
		                       .threads = 2,
		                       .thread = { write_event, close_event } };

	must_pass(model);
	must_fail(model, "closed descriptor");
}

/* --- spinning ----------------------------------------------------------- */

static void
spin_lock(weft__a32 *word, bool yields)
{
	while (weft__exchange(word, 1, WEFT__ACQUIRE))
		if (yields)
			weft__sys->yield();
		else
			weft__pause();
}

static void
add_spinning(void *arg)
{
	struct world *w = arg;

	spin_lock(&w->word, true);
	weft__put(w->data, weft__get(w->data) + 1);
	weft__store(&w->word, 0, planted ? WEFT__RELAXED : WEFT__RELEASE);
}

static void
add_pausing(void *arg)
{
	struct world *w = arg;

	spin_lock(&w->word, false);
	weft__put(w->data, weft__get(w->data) + 1);
	weft__store(&w->word, 0, planted ? WEFT__RELAXED : WEFT__RELEASE);
}

TEST(explore_spin_lock_ends_with_yield_and_with_pause)
{
	struct explore_model model = { .name = "spin lock",
		                       .threads = 2,
		                       .thread = { add_spinning, add_spinning },
		                       .check = check_data_is_threads };

	must_pass(model);
	must_fail(model, "data race");
	model.name = "spin lock with pause";
	model.thread[0] = model.thread[1] = add_pausing;
	must_pass(model);
	must_fail(model, "data race");
	model.name = "spin lock of three";
	model.threads = 3;
	model.thread[2] = add_pausing;
	model.check = NULL;
	must_pass(model);
}

static void
spin_for_flag(void *arg)
{
	struct world *w = arg;

	while (!weft__load(&w->x, WEFT__ACQUIRE))
		weft__pause();
	w->r[0] = weft__get(w->data);
}

static void
set_flag(void *arg)
{
	struct world *w = arg;

	weft__put(w->data, 1);
	if (!planted)
		weft__store(&w->x, 1, WEFT__RELEASE);
}

TEST(explore_spin_that_never_ends_is_a_failure)
{
	struct explore_model model = { .name = "spin for a flag",
		                       .threads = 2,
		                       .thread = { spin_for_flag, set_flag } };

	must_pass(model);
	must_fail(model, "T0 spins forever");
}

static void
spin_until(void *arg)
{
	struct world *w = arg;

	while (weft__load(&w->x, WEFT__RELAXED) == 0)
		(void)weft__add(&w->y, 1, WEFT__RELAXED);
}

TEST(explore_step_limit_is_reported)
{
	struct explore_result result = explored(
		(struct explore_model){ .name = "step limit",
	                                .threads = 2,
	                                .thread = { spin_until, set_flag },
	                                .steps_max = 12 },
		false);

	CHECK(result.failure == NULL);
	CHECK(result.pruned > 0);
	CHECK(!result.complete);
}

/* --- the explorer itself ------------------------------------------------ */

static weft__a32 global;
static uint32_t global_plain;

static void
count_global(void *arg)
{
	(void)arg;
	(void)weft__add(&global, 1, WEFT__ACQ_REL);
}

static void
check_global(void *arg)
{
	(void)arg;
	weft__put(global_plain, weft__get(global_plain) + 1);
	EXPLORE_CHECK(weft__load(&global, WEFT__RELAXED) == 12);
	EXPLORE_CHECK(weft__get(global_plain) == 1);
}

TEST(explore_globals_are_restored_after_each_execution)
{
	global.raw = 10;
	must_pass((struct explore_model){ .name = "globals",
	                                  .threads = 2,
	                                  .thread = { count_global, count_global },
	                                  .check = check_global });
	CHECK_EQ(global.raw, 10);
	CHECK_EQ(global_plain, 0);
}

static int executions;

static void
flips(void *arg)
{
	struct world *w = arg;

	w->r[0] = (uint32_t)explore_choose(planted && executions++ > 0 ? 3 : 2);
	weft__store(&w->y, 1, WEFT__RELAXED);
}

TEST(explore_model_that_is_not_deterministic_is_a_failure)
{
	struct explore_model model = { .name = "not deterministic",
		                       .threads = 2,
		                       .thread = { flips, waker } };

	must_pass(model);
	must_fail(model, "not deterministic");
}

static void
choose_one(void *arg)
{
	((struct world *)arg)->r[explore_thread()] = (uint32_t)explore_choose(3);
}

static bool chosen[9];

static void
check_chosen(void *arg)
{
	const struct world *w = arg;

	chosen[w->r[0] * 3 + w->r[1]] = true;
}

TEST(explore_choices_of_a_model_are_all_taken)
{
	must_pass((struct explore_model){ .name = "choices",
	                                  .threads = 2,
	                                  .thread = { choose_one, choose_one },
	                                  .check = check_chosen });
	for (int i = 0; i < 9; i++)
		CHECK(chosen[i]);
}

static void
asserts(void *arg)
{
	struct world *w = arg;

	weft__assert(weft__add(&w->x, 1, WEFT__RELAXED) == 0 || !planted);
}

TEST(explore_failed_assertion_of_the_library_is_a_failure)
{
	struct explore_model model = { .name = "assertion",
		                       .threads = 2,
		                       .thread = { asserts, asserts } };

	must_pass(model);
	must_fail(model, "abort");
}

static void
calls_poll(void *arg)
{
	(void)weft__load(&((struct world *)arg)->x, WEFT__RELAXED);
	if (planted)
		(void)weft__sys->poll(NULL, 0, 0);
	weft__store(&((struct world *)arg)->x, 1, WEFT__RELAXED);
}

TEST(explore_system_function_without_a_model_is_a_failure)
{
	struct explore_model model = { .name = "missing function",
		                       .threads = 2,
		                       .thread = { calls_poll, calls_poll } };

	must_pass(model);
	must_fail(model, "has no model");
}

/* The failure needs two preemptions. */
static void
preempted_0(void *arg)
{
	struct world *w = arg;

	(void)weft__cas(&w->x, &(uint32_t){ 0 }, 1, WEFT__SEQ_CST);
	(void)weft__cas(&w->x, &(uint32_t){ 2 }, 3, WEFT__SEQ_CST);
}

static void
preempted_1(void *arg)
{
	struct world *w = arg;

	(void)weft__cas(&w->x, &(uint32_t){ 1 }, 2, WEFT__SEQ_CST);
	(void)weft__cas(&w->x, &(uint32_t){ 3 }, 4, WEFT__SEQ_CST);
}

static void
check_preempted(void *arg)
{
	EXPLORE_CHECK(((struct world *)arg)->x.raw != 4);
}

TEST(explore_bound_on_preemptions_is_kept)
{
	struct explore_model model = { .name = "preemptions",
		                       .threads = 2,
		                       .thread = { preempted_0, preempted_1 },
		                       .check = check_preempted };

	model.preemptions = 1;
	must_pass(model);
	model.preemptions = 2;
	must_fail(model, "x.raw != 4");
	model.preemptions = -1;
	must_fail(model, "x.raw != 4");
}

TEST(explore_limit_on_executions_is_reported)
{
	struct explore_model model = locking;
	struct explore_result result;

	model.executions_max = 5;
	result = explored(model, false);
	CHECK(result.failure == NULL);
	CHECK(!result.complete);
	CHECK(result.executions <= 5);
}
