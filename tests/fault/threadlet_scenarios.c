/* threadlet_scenarios.c - threadlets under faults: a failed start leaves nothing behind.
 *
 *   1. A start returns a handle, or an error that a fault explains.  Each started threadlet
 *      runs to its end, once.
 *   2. A join returns what the threadlet returned.
 *   3. Stacks and handles are freed with the last loop, whatever failed.
 */
#include "fault.h"
#include "scenarios.h"

enum { CHILDREN = 5, RESULT = 70 };

struct sched {
	struct world world;
	weft_loop *loop; /* where children are started */
	int started, ended;
};

/* Whether the fault explains this error. */
static bool
is_excused(int64_t rc)
{
	return rc == WEFT_ENOMEM && fault_hits() > 0;
}

static int
child(void *arg)
{
	struct sched *sched = arg;
	int rc = weft_yield();

	EXPECT(rc == 0);
	rc = weft_sleep_until(weft_after(WEFT_US));
	EXPECT(rc == 0 || is_excused(rc));
	(void)weft_fail(WEFT_EPROTO, "a text of its own");
	sched->ended++;
	return RESULT;
}

static weft_threadlet
start_child(struct sched *sched, weft_scope *scope, int number)
{
	/* Small stacks share a slab, and each has its own guard page. */
	static const size_t sizes[CHILDREN] = { 0, 1 << 20, 0, 64 << 20, 4 << 20 };
	weft_go_opts opts = {
		.name = "child", .loop = sched->loop, .scope = scope, .stack_bytes = sizes[number]
	};
	weft_threadlet id = weft_go_with(&opts, child, sched);

	EXPECT(id > 0 || is_excused(id));
	sched->started += id > 0;
	return id;
}

/* Start some threadlets in a scope, and join all of them. */
static int
start_and_join(void *arg)
{
	struct sched *sched = arg;
	weft_threadlet ids[CHILDREN];
	weft_scope scope;
	int rc = weft_scope_open(&scope, 0, weft_after(3600 * WEFT_S)), out;

	EXPECT(rc == 0 || is_excused(rc));
	sched->ended++;
	if (rc < 0)
		return 0;
	for (int i = 0; i < CHILDREN; i++)
		ids[i] = start_child(sched, &scope, i);
	rc = weft_scope_set_deadline(&scope, weft_after(7200 * WEFT_S));
	EXPECT(rc == 0 || is_excused(rc));
	for (int i = 0; i < CHILDREN; i++) {
		out = 0;
		rc = weft_join(ids[i], &out, WEFT_NEVER);
		EXPECT(rc == (ids[i] > 0 ? 0 : WEFT_ESRCH));
		EXPECT(out == (ids[i] > 0 ? RESULT : 0));
	}
	EXPECT(weft_scope_close(&scope) == 0);
	return 0;
}

static void
start_root(struct sched *sched)
{
	weft_go_opts opts = { .loop = sched->world.loop };
	weft_threadlet id = weft_go_with(&opts, start_and_join, sched);

	EXPECT(id > 0 || (fault_hits() > 0 && id < 0));
	sched->started += id > 0;
}

/* Run both loops until all started threadlets have ended. */
static void
run_sched(struct sched *sched)
{
	uint64_t deadline_ns = weft_after(50 * WAIT_NS);
	int steps = 0;

	while (sched->ended < sched->started && (steps++ < STEPS_MIN || weft_now() < deadline_ns)) {
		EXPECT(weft_loop_run_once(sched->world.loop, WEFT_NOWAIT) >= 0);
		if (sched->loop != sched->world.loop)
			EXPECT(weft_loop_run_once(sched->loop, WEFT_NOWAIT) >= 0);
	}
	turn(sched->world.loop);
	EXPECT(sched->ended == sched->started);
}

/* Once with the fault, and once after it was healed. */
static void
start_twice(struct sched *sched)
{
	start_root(sched);
	(void)start_child(sched, NULL, 0);
	run_sched(sched);
	if (fault_hits() > 0) {
		int before = sched->ended;

		fault_heal();
		start_root(sched);
		run_sched(sched);
		EXPECT(sched->ended == before + 1 + CHILDREN);
	}
}

void
run_spawn(const char *backend)
{
	struct sched sched = { .loop = NULL };

	if (!make_world(&sched.world, backend, 0))
		return;
	sched.loop = sched.world.loop;
	start_twice(&sched);
	check_works(&sched.world);
	end_world(&sched.world);
}

/* The children run on a second loop.  `first`: the scope's loop is freed before that one. */
static void
run_spawn_to(const char *backend, bool first)
{
	struct sched sched = { .loop = NULL };
	struct world other;

	if (!make_world(&sched.world, backend, 0))
		return;
	if (make_world(&other, backend, 0)) {
		sched.loop = other.loop;
		start_twice(&sched);
		check_works(&sched.world);
		if (first)
			end_world(&sched.world);
		end_world(&other);
	}
	if (!first || !sched.loop)
		end_world(&sched.world);
}

void
run_spawn_there(const char *backend)
{
	run_spawn_to(backend, false);
	run_spawn_to(backend, true);
}
