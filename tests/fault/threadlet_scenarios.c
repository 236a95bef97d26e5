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

struct crew {
	struct world world;
	weft_loop *loop; /* where children are started */
	int started, ended;
	int dropped; /* values that were dropped, of those that were set */
	int set;
};

static int key;

static void
on_drop(void *arg)
{
	((struct crew *)arg)->dropped++;
}

/* Whether the fault explains this error. */
static bool
is_excused(int64_t rc)
{
	return rc == WEFT_ENOMEM && fault_hits() > 0;
}

static int
child(void *arg)
{
	struct crew *crew = arg;
	int rc = weft_yield();

	EXPECT(rc == 0);
	rc = weft_sleep_until(weft_after(WEFT_US));
	EXPECT(rc == 0 || is_excused(rc));
	rc = weft_local_set(key, crew);
	EXPECT(rc == 0 || is_excused(rc));
	crew->set += rc == 0;
	(void)weft_fail(WEFT_EPROTO, "a text of its own");
	crew->ended++;
	return RESULT;
}

static weft_threadlet
start_child(struct crew *crew, weft_scope *scope, int number)
{
	/* Small stacks share a slab, and each has its own guard page. */
	static const size_t sizes[CHILDREN] = { 0, 1 << 20, 0, 64 << 20, 4 << 20 };
	weft_go_opts opts = {
		.name = "child", .loop = crew->loop, .scope = scope, .stack_bytes = sizes[number]
	};
	weft_threadlet id = weft_go_with(&opts, child, crew);

	EXPECT(id > 0 || is_excused(id));
	crew->started += id > 0;
	return id;
}

/* Start some threadlets in a scope, and join all of them. */
static int
start_and_join(void *arg)
{
	struct crew *crew = arg;
	weft_threadlet ids[CHILDREN];
	weft_scope scope;
	int rc = weft_scope_open(&scope, 0, weft_after(3600 * WEFT_S)), out;

	EXPECT(rc == 0 || is_excused(rc));
	crew->ended++;
	if (rc < 0)
		return 0;
	for (int i = 0; i < CHILDREN; i++)
		ids[i] = start_child(crew, &scope, i);
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
start_root(struct crew *crew)
{
	weft_go_opts opts = { .loop = crew->world.loop };
	weft_threadlet id = weft_go_with(&opts, start_and_join, crew);

	EXPECT(id > 0 || (fault_hits() > 0 && id < 0));
	crew->started += id > 0;
}

/* Run both loops until all started threadlets have ended. */
static void
run_crew(struct crew *crew)
{
	uint64_t deadline_ns = weft_after(50 * WAIT_NS);
	int steps = 0;

	while (crew->ended < crew->started && (steps++ < STEPS_MIN || weft_now() < deadline_ns)) {
		EXPECT(weft_loop_run_once(crew->world.loop, WEFT_NOWAIT) >= 0);
		if (crew->loop != crew->world.loop)
			EXPECT(weft_loop_run_once(crew->loop, WEFT_NOWAIT) >= 0);
	}
	turn(crew->world.loop);
	EXPECT(crew->ended == crew->started);
	EXPECT(crew->dropped == crew->set);
}

/* Once with the fault, and once after it was healed. */
static void
start_twice(struct crew *crew)
{
	start_root(crew);
	(void)start_child(crew, NULL, 0);
	run_crew(crew);
	if (fault_hits() > 0) {
		int before = crew->ended;

		fault_heal();
		start_root(crew);
		run_crew(crew);
		EXPECT(crew->ended == before + 1 + CHILDREN);
	}
}

void
run_spawn(const char *backend)
{
	struct crew crew = { .loop = NULL };

	if (key <= 0)
		key = weft_key_new(on_drop);
	if (!make_world(&crew.world, backend, 0))
		return;
	crew.loop = crew.world.loop;
	start_twice(&crew);
	check_works(&crew.world);
	end_world(&crew.world);
}

/* The children run on a second loop.  `first`: the scope's loop is freed before that one. */
static void
run_spawn_to(const char *backend, bool first)
{
	struct crew crew = { .loop = NULL };
	struct world other;

	if (key <= 0)
		key = weft_key_new(on_drop);
	if (!make_world(&crew.world, backend, 0))
		return;
	if (make_world(&other, backend, 0)) {
		crew.loop = other.loop;
		start_twice(&crew);
		check_works(&crew.world);
		if (first)
			end_world(&crew.world);
		end_world(&other);
	}
	if (!first || !crew.loop)
		end_world(&crew.world);
}

void
run_spawn_there(const char *backend)
{
	run_spawn_to(backend, false);
	run_spawn_to(backend, true);
}
