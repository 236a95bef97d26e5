/* threadlet_plants.c - tests the oracle for threadlets.
 *
 * Each plant is the function of a threadlet that does what the library must not do: it cancels
 * without recording it, records a cancellation that it does not make, or reports a false result
 * to the oracle.
 */
#include <string.h>
#include <weft/sync.h>
#include "sim/scenarios/scenarios.h"
#include "sim/scenarios/threadlet_oracle.h"

static struct actor self, other;

static void
sleep_judged(void)
{
	struct call_check call;
	int rc;

	call_begin(&call, &self);
	rc = weft_sleep_until(weft_after(WEFT_US));
	call_end(&call, rc, rc == 0);
}

/* Report to the oracle that a call has returned `rc`. */
static void
tell(int64_t rc)
{
	struct call_check call;

	call_begin(&call, &self);
	call_end(&call, rc, rc == 0);
}

static struct level *
open_judged(uint32_t flags, uint64_t deadline_ns)
{
	while (weft_scope_open(&self.levels[self.depth].scope, flags, deadline_ns) < 0)
		continue;
	return level_open(&self, flags, deadline_ns);
}

/* --- results that were not requested ------------------------------------ */

static int
cancel_in_secret(void *arg)
{
	(void)arg;
	(void)weft_cancel(self.id);
	sleep_judged();
	return 0;
}

static int
interrupt_in_secret(void *arg)
{
	(void)arg;
	(void)weft_interrupt(self.id);
	sleep_judged();
	return 0;
}

static int
be_early(void *arg)
{
	(void)arg;
	(void)open_judged(0, weft_after(WEFT_S));
	tell(WEFT_ETIMEDOUT);
	return 0;
}

/* A cancellation from outside of a shield. */
static int
pass_a_shield(void *arg)
{
	(void)arg;
	actor_ask(&self, false);
	(void)open_judged(WEFT_SHIELD, WEFT_NEVER);
	tell(WEFT_ECANCELED);
	return 0;
}

static int
return_nonsense(void *arg)
{
	(void)arg;
	tell(WEFT_EPROTO);
	return 0;
}

/* --- results that are not reported -------------------------------------- */

static int
forget_to_cancel(void *arg)
{
	(void)arg;
	level_cancel(open_judged(0, WEFT_NEVER));
	sleep_judged();
	return 0;
}

static int
tell_once(void *arg)
{
	(void)arg;
	actor_ask(&self, false);
	tell(WEFT_ECANCELED);
	tell(0);
	return 0;
}

static int
change_the_reason(void *arg)
{
	(void)arg;
	actor_ask(&self, false);
	(void)open_judged(0, WEFT_NOWAIT);
	tell(WEFT_ECANCELED);
	tell(WEFT_ETIMEDOUT);
	return 0;
}

static int
move_what_has_ended(void *arg)
{
	struct level *level = open_judged(0, WEFT_NEVER);

	(void)arg;
	level_cancel(level);
	level_move(level, WEFT_NEVER, 0);
	return 0;
}

static int
end_a_scope_in_secret(void *arg)
{
	struct level *level = open_judged(0, WEFT_NEVER);

	(void)arg;
	weft_scope_cancel(&level->scope);
	level_move(level, WEFT_NEVER, weft_scope_set_deadline(&level->scope, WEFT_NEVER));
	return 0;
}

/* --- starts, ends, results ---------------------------------------------- */

static int
be_other(void *arg)
{
	actor_begin(&other);
	(void)weft_yield();
	return actor_return(&other, (int)(intptr_t)arg);
}

/* Start the other actor, in a new scope of this one. */
static struct level *
start_other(int result)
{
	struct level *level = open_judged(0, WEFT_NEVER);
	weft_threadlet id;

	actor_init(&other, 0, level);
	while ((id = weft_scope_go(&level->scope, be_other, (void *)(intptr_t)result)) < 0)
		continue;
	actor_started(&other, id, false);
	return level;
}

static int
close_too_soon(void *arg)
{
	struct level *level = start_other(0);

	(void)arg;
	level_close(level, 0, &other, 1);
	return 0;
}

static int
run_too_long(void *arg)
{
	struct level *level = start_other(0);

	(void)arg;
	other.ended = true;
	level_close(level, 0, &other, 1);
	other.ended = false;
	(void)weft_yield();
	return 0;
}

static int
end_too_soon(void *arg)
{
	(void)start_other(0);
	other.ended = true;
	(void)weft_yield();
	return arg != NULL;
}

/* Let the other actor end, and close the scope with that result. */
static void
close_with(int result, int rc)
{
	struct level *level = start_other(result);

	(void)weft_join(other.id, NULL, WEFT_NEVER);
	other.ended = true;
	(void)weft_scope_close(&level->scope);
	level->scope.error = rc;
	level_close(level, rc, &other, 1);
}

static int
invent_a_failure(void *arg)
{
	(void)arg;
	close_with(0, WEFT_ECLOSED);
	return 0;
}

static int
hide_a_failure(void *arg)
{
	(void)arg;
	close_with(WEFT_ECLOSED, 0);
	return 0;
}

static int
join_too_soon(void *arg)
{
	(void)arg;
	(void)start_other(0);
	join_check(&other, 0);
	return 0;
}

static int
join_another(void *arg)
{
	(void)arg;
	(void)start_other(5);
	(void)weft_join(other.id, NULL, WEFT_NEVER);
	other.ended = true;
	join_check(&other, 6);
	return 0;
}

static int
start_too_late(void *arg)
{
	struct level *level = open_judged(0, WEFT_NEVER);

	(void)arg;
	level_cancel(level);
	actor_init(&other, 0, level);
	actor_started(&other, 1, level_must(level));
	return 0;
}

static int
run_twice(void *arg)
{
	(void)arg;
	actor_begin(&self);
	actor_begin(&self);
	return 0;
}

static int
run_refused(void *arg)
{
	(void)arg;
	actor_started(&self, WEFT_ENOMEM, false);
	actor_begin(&self);
	return 0;
}

static int
lose_a_threadlet(void *arg)
{
	(void)arg;
	actor_asked(&self, true, false, WEFT_ESRCH);
	return 0;
}

static int
clean_up_too_soon(void *arg)
{
	(void)arg;
	actor_clean_up(&self);
	return 0;
}

static int
wait_for_nobody(void *arg)
{
	weft_event event = WEFT_INIT;

	(void)arg;
	return weft_event_wait(&event, WEFT_NEVER);
}

/* --- the list ----------------------------------------------------------- */

static const struct plant {
	const char *name;
	weft_threadlet_fn fn;
	const char *found_as;
} plants[] = {
	{ "cancel_in_secret", cancel_in_secret, "told -125 to end, which" },
	{ "interrupt_in_secret", interrupt_in_secret, "an interrupt that" },
	{ "be_early", be_early, "told -110 to end, which nobody" },
	{ "pass_a_shield", pass_a_shield, "told -125 to end, which nobody" },
	{ "return_nonsense", return_nonsense, "the outcome -71" },
	{ "forget_to_cancel", forget_to_cancel, "was to end, and a call" },
	{ "tell_once", tell_once, "was to end, and a call returns 0" },
	{ "change_the_reason", change_the_reason, "and later -110" },
	{ "move_what_has_ended", move_what_has_ended, "has ended is moved" },
	{ "end_a_scope_in_secret", end_a_scope_in_secret, "nobody has ended" },
	{ "close_too_soon", close_too_soon, "outlives its scope" },
	{ "run_too_long", run_too_long, "after its scope was closed" },
	{ "end_too_soon", end_too_soon, "runs after its end" },
	{ "invent_a_failure", invent_a_failure, "which nobody returned" },
	{ "hide_a_failure", hide_a_failure, "does not tell of a failure" },
	{ "join_too_soon", join_too_soon, "joined before its end" },
	{ "join_another", join_another, "joined as 6, which returned 5" },
	{ "start_too_late", start_too_late, "starts in a scope that has" },
	{ "run_twice", run_twice, "runs that was not started" },
	{ "run_refused", run_refused, "runs that was not started" },
	{ "lose_a_threadlet", lose_a_threadlet, "that runs is not found" },
	{ "wait_for_nobody", wait_for_nobody, "reported a deadlock" },
	{ "clean_up_too_soon", clean_up_too_soon, "cleanups run before" },
};

static void
run_plant(void *arg)
{
	const struct plant *plant = arg;
	weft_loop_opts opts = WEFT_INIT;
	weft_loop *loop = loop_make(&opts);
	weft_go_opts go = { .loop = loop };
	weft_threadlet id;

	memset(sched_stopping, 0, sizeof(sched_stopping));
	oracle_listen();
	actor_init(&self, 0, NULL);
	while ((id = weft_go_with(&go, plant->fn, NULL)) < 0)
		continue;
	actor_started(&self, id, false);
	sim_check(weft_loop_run(loop) == 0);
	sim_check(weft_loop_free(loop) == 0);
}

int
threadlet_plants(void)
{
	int missed = 0;

	for (size_t i = 0; i < sizeof(plants) / sizeof(plants[0]); i++) {
		struct sim_scenario scenario = {
			.name = plants[i].name,
			.run = run_plant,
			.arg = (void *)(uintptr_t)&plants[i],
			.masked_faults = SIM_MASK(SIM_CLOCK),
		};

		missed += !scenario_plant(&scenario, plants[i].found_as);
	}
	return missed;
}
