/* threadlet_scenarios.c - threadlets on two loops, and how they end.
 *
 * A thread outside of the loops cancels, interrupts and starts threadlets, too; another moves
 * bytes.  Then the loops stop, in the middle of that or when all threadlets have ended by
 * themselves.  One loop may be freed while the other continues.
 */
#include <string.h>
#include "sim/scenarios/scenarios.h"
#include "sim/scenarios/threadlet_play.h"

/* --- they are stopped at any time --------------------------------------- */

static void
run_scheds(void *arg)
{
	uint64_t threads[2];

	(void)arg;
	play_begin(false);
	threads[0] = thread_start("meddler", play_meddle, NULL);
	threads[1] = thread_start("mover", play_move_bytes, NULL);
	pause_ns(sim_random_below(UINT64_C(1) << sim_random_below(23)));
	play_stop_all();
	weft__store(&play.over, 1, WEFT__RELEASE);
	thread_join(threads[0]);
	thread_join(threads[1]);
	for (int i = 0; i < LOOPS; i++)
		host_free(&play.hosts[i]);
	play_end();
}

const struct sim_scenario sim_scenario_scheds = { .name = "threadlet_scheds", .run = run_scheds };

/* --- they end by themselves --------------------------------------------- */

static void
await_all(void)
{
	uint64_t since_ns = sim_time();

	while (count_of(&play.ended) < count_of(&play.started)
	       || play.starting[0] + play.starting[1] > 0) {
		if (sim_time() - since_ns > LIVE_NS)
			sim_fail("not live: %u of %u have ended", count_of(&play.ended),
			         count_of(&play.started));
		pause_ns(WEFT_MS);
	}
}

static void
run_bounded(void *arg)
{
	uint64_t mover;

	(void)arg;
	play_begin(true);
	mover = thread_start("mover", play_move_bytes, NULL);
	pause_ns(sim_random_below(4 * WEFT_MS));
	sim_heal();
	await_all();
	weft__store(&play.over, 1, WEFT__RELEASE);
	thread_join(mover);
	play_stop_all();
	for (int i = 0; i < LOOPS; i++)
		host_free(&play.hosts[i]);
	play_end();
}

const struct sim_scenario sim_scenario_bounded = { .name = "threadlet_bounded",
	                                           .run = run_bounded };

/* --- one loop is freed while the other continues ------------------------ */

static void
run_orphans(void *arg)
{
	uint64_t meddler;

	(void)arg;
	play_begin(false);
	meddler = thread_start("meddler", play_meddle, NULL);
	pause_ns(sim_random_below(2 * WEFT_MS));
	play_stop(1);
	host_stop(&play.hosts[1]);
	play_avoid(1);
	host_free(&play.hosts[1]);
	play.hosts[1].loop = NULL;
	pause_ns(sim_random_below(2 * WEFT_MS));
	play_stop_all();
	weft__store(&play.over, 1, WEFT__RELEASE);
	thread_join(meddler);
	host_free(&play.hosts[0]);
	play_end();
}

const struct sim_scenario sim_scenario_orphans = { .name = "threadlet_orphans",
	                                           .run = run_orphans };

/* --- each is canceled once, by another thread --------------------------- */

enum { ROUNDS = 12, ASKED = LOOPS * ROUNDS * 3 };

/* Threadlets that only a cancel ends, or that end before it comes.  Their handles are reused
 * many times, on both loops. */
static struct {
	struct host hosts[LOOPS];
	weft_threadlet ids[ASKED];
	uint32_t used;
	weft__a32 count; /* number of ids, for waiters */
	weft__a32 told, ended;
	uint32_t sleepers;
} asks;

static int
be_asked(void *arg)
{
	int rc = 0;

	asks.sleepers += arg != NULL;
	while (arg && (rc = weft_sleep_until(WEFT_NEVER)) == WEFT_ENOMEM)
		continue;
	if (arg) {
		sim_check(rc == WEFT_ECANCELED);
		count_up(&asks.told);
	}
	return 0;
}

static void
start_asked(weft_scope *scope, weft_loop *loop)
{
	weft_go_opts opts = { .scope = scope, .loop = loop };
	void *sleeps = sim_random_below(2) ? scope : NULL;
	weft_threadlet id;

	while ((id = weft_go_with(&opts, be_asked, sleeps)) < 0)
		sim_check(id == WEFT_ENOMEM || id == WEFT_EAGAIN);
	asks.ids[asks.used++] = id; /* no other thread runs in between */
	count_up(&asks.count);
}

static int
ask_rounds(void *arg)
{
	weft_loop *far = arg;

	for (int i = 0; i < ROUNDS; i++) {
		weft_scope scope;

		while (weft_scope_open(&scope, 0, WEFT_NEVER) < 0)
			continue;
		start_asked(&scope, far);
		start_asked(&scope, NULL);
		if (sim_random_below(2))
			(void)weft_yield();
		start_asked(&scope, far);
		sim_check(weft_scope_close(&scope) == 0);
	}
	count_up(&asks.ended);
	return 0;
}

static void
await_id(uint32_t number)
{
	uint32_t seen;

	while ((seen = count_of(&asks.count)) <= number)
		(void)weft__sys->park(&asks.count, seen, WEFT_NEVER);
}

static void
ask_each(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < ASKED; i++) {
		int rc;

		await_id(i);
		if (sim_random_below(2))
			pause_ns(sim_random_below(20 * WEFT_US));
		rc = weft_cancel(asks.ids[i]);
		sim_check(rc == 0 || rc == WEFT_ESRCH);
	}
}

static void
run_asks(void *arg)
{
	uint64_t asker;

	(void)arg;
	memset(&asks, 0, sizeof(asks));
	for (int i = 0; i < LOOPS; i++) {
		host_make(&asks.hosts[i]);
		host_run(&asks.hosts[i]);
	}
	for (int i = 0; i < LOOPS; i++) {
		weft_go_opts opts = { .loop = asks.hosts[i].loop };

		while (weft_go_with(&opts, ask_rounds, asks.hosts[1 - i].loop) < 0)
			continue;
	}
	asker = thread_start("asker", ask_each, NULL);
	pause_ns(sim_random_below(WEFT_MS));
	sim_heal();
	await_count(&asks.ended, LOOPS);
	thread_join(asker);
	for (int i = 0; i < LOOPS; i++)
		host_stop(&asks.hosts[i]);
	for (int i = 0; i < LOOPS; i++)
		host_free(&asks.hosts[i]);
	sim_check(count_of(&asks.told) == asks.sleepers);
}

const struct sim_scenario sim_scenario_asks = { .name = "threadlet_asks", .run = run_asks };
