/* threadlet_oracle.c - the oracle for threadlets and scopes. */
#include <string.h>
#include "base/os.h"
#include "sim/scenarios/threadlet_oracle.h"

bool sched_stopping[LOOPS];

static void
on_report(void *arg, const weft_report *report)
{
	(void)arg;
	if (report->kind == WEFT_REPORT_DEADLOCK)
		sim_fail("reported a deadlock: %s", report->text);
}

void
oracle_listen(void)
{
	weft__hooks.on_report = on_report;
}

static uint64_t scopes; /* opened so far */

/* --- levels ------------------------------------------------------------- */

static bool
is_base(const struct level *level)
{
	return level == &level->owner->base;
}

bool
level_may(const struct level *level, int what)
{
	for (; level; level = level->below) {
		if (level->asked & (1u << what))
			return true;
		if (what == LATE && level->deadline_ns <= sim_time())
			return true;
		if (level->shield)
			return false;
		if (what == CANCEL && is_base(level) && sched_stopping[level->owner->where])
			return true;
	}
	return false;
}

bool
level_must(const struct level *level)
{
	for (; level; level = level->below) {
		if (level->certain)
			return true;
		if (level->shield)
			return false;
		/* A cancellation takes time to reach another loop. */
		if (is_base(level) && level->below
		    && level->below->owner->where != level->owner->where)
			return false;
	}
	return false;
}

struct level *
level_open(struct actor *actor, uint32_t flags, uint64_t deadline_ns)
{
	struct level *level = &actor->levels[actor->depth++];

	*level = (struct level){
		.below = actor->top,
		.owner = actor,
		.scope = level->scope,
		.number = ++scopes,
		.shield = flags & WEFT_SHIELD,
		.fast = flags & WEFT_FAIL_FAST,
		.open = true,
		.deadline_ns = deadline_ns,
		.certain = deadline_ns == WEFT_NOWAIT,
	};
	actor->top = level;
	return level;
}

void
level_cancel(struct level *level)
{
	level->asked |= 1u << CANCEL;
	level->certain = true;
}

void
level_move(struct level *level, uint64_t deadline_ns, int rc)
{
	if (level->deadline_ns <= sim_time())
		level->asked |= 1u << LATE;
	if (rc == WEFT_EALREADY) {
		if (!level_may(level, CANCEL) && !level_may(level, LATE))
			sim_fail("a scope has ended that nobody has ended");
		level->certain = true;
		return;
	}
	if (rc == 0 && (level->certain || level->seen))
		sim_fail("the deadline of a scope that has ended is moved");
	sim_check(rc == 0 || rc == WEFT_ENOMEM);
	if (rc == 0)
		level->deadline_ns = deadline_ns;
}

void
level_close(struct level *level, int rc, const struct actor *actors, size_t count)
{
	struct actor *owner = level->owner;
	bool failed = false, told = rc == 0;

	for (size_t i = 0; i < count; i++) {
		if (!actor_is_in(&actors[i], level) || actors[i].refused)
			continue;
		if (!actors[i].ended)
			sim_fail("a threadlet outlives its scope");
		failed |= actors[i].result < 0 && !actors[i].told;
		told |= actors[i].result == rc;
	}
	if (!told)
		sim_fail("closing tells %d, which nobody returned", rc);
	if (failed && rc == 0)
		sim_fail("closing does not tell of a failure");
	sim_check(rc == level->scope.error);
	level->open = false;
	owner->top = level->below;
	owner->depth--;
}

/* --- actors ------------------------------------------------------------- */

void
actor_init(struct actor *actor, uint32_t where, struct level *home)
{
	memset(actor, 0, sizeof(*actor));
	actor->where = where;
	actor->home = home ? home->number : 0;
	actor->base = (struct level){
		.below = home, .owner = actor, .open = true, .deadline_ns = WEFT_NEVER
	};
	actor->top = &actor->base;
}

bool
actor_is_in(const struct actor *actor, const struct level *level)
{
	return actor->base.below == level && actor->home == level->number;
}

void
actor_started(struct actor *actor, weft_threadlet id, bool must)
{
	const struct level *home = actor->base.below;

	if (id > 0) {
		if (must)
			sim_fail("a threadlet starts in a scope that has ended");
		sim_check(!actor->id || actor->id == id);
		actor->id = id;
		return;
	}
	actor->refused = true;
	if (actor->runs)
		sim_fail("a threadlet runs that was not started");
	sim_check(id == WEFT_ENOMEM || id == WEFT_EAGAIN
	          || (id == WEFT_ESHUTDOWN && sched_stopping[actor->where])
	          || (id == WEFT_ECANCELED && home && level_may(home, CANCEL))
	          || (id == WEFT_ETIMEDOUT && home && level_may(home, LATE)));
}

void
actor_begin(struct actor *actor)
{
	if (actor->runs || actor->refused)
		sim_fail("a threadlet runs that was not started");
	actor->runs = true;
	sim_check(!actor->id || actor->id == weft_self());
	actor->id = weft_self();
	actor_step(actor);
}

void
actor_step(const struct actor *actor)
{
	const struct level *home = actor->base.below;

	if (actor->ended)
		sim_fail("a threadlet runs after its end");
	if (home && (!home->open || !actor_is_in(actor, home)))
		sim_fail("a threadlet runs after its scope was closed");
	sim_check(weft_self() == actor->id);
}

int
actor_return(struct actor *actor, int result)
{
	struct level *home = actor->base.below;

	actor_step(actor);
	if (result < 0 && home && home->fast)
		home->asked |= 1u << CANCEL;
	actor->returned = true;
	actor->result = result;
	return result;
}

void
actor_clean_up(struct actor *actor)
{
	actor_step(actor);
	if (!actor->returned)
		sim_fail("cleanups run before the function has returned");
	actor->told = level_may(&actor->base, CANCEL) || level_may(&actor->base, LATE);
	actor->base.shield = true;
	actor->base.certain = false;
	actor->base.seen = 0;
	actor->base.asked = 0;
	actor->top = &actor->base;
}

void
actor_end(struct actor *actor)
{
	actor_step(actor);
	actor->ended = true;
}

void
actor_ask(struct actor *actor, bool interrupt)
{
	if (interrupt)
		actor->interrupts++;
	else
		actor->base.asked |= 1u << CANCEL;
}

void
actor_asked(struct actor *actor, bool here, bool interrupt, int rc)
{
	if (rc == WEFT_ESRCH && !actor->returned)
		sim_fail("a threadlet that runs is not found");
	sim_check(rc == 0 || rc == WEFT_ESRCH);
	if (rc == 0 && here && !interrupt && !actor->returned)
		actor->base.certain = true;
}

/* --- calls -------------------------------------------------------------- */

void
call_begin(struct call_check *call, struct actor *actor)
{
	actor_step(actor);
	*call = (struct call_check){ .actor = actor,
		                     .level = actor->top,
		                     .must = level_must(actor->top) };
}

static void
told(const struct call_check *call, int rc)
{
	struct level *level = call->level;

	if (!level_may(level, rc == WEFT_ETIMEDOUT ? LATE : CANCEL))
		sim_fail("told %d to end, which nobody has asked for", rc);
	if (level->seen && level->seen != rc)
		sim_fail("told %d to end, and later %d", level->seen, rc);
	level->seen = rc;
	level->certain = true;
}

void
call_end(const struct call_check *call, int64_t rc, bool ok)
{
	actor_step(call->actor);
	if (!ok && (rc == WEFT_ECANCELED || rc == WEFT_ETIMEDOUT)) {
		told(call, (int)rc);
		return;
	}
	if (!ok && rc == WEFT_ESHUTDOWN && sched_stopping[call->actor->where])
		return;
	if (call->must)
		sim_fail("was to end, and a call returns %lld", (long long)rc);
	if (ok || rc == WEFT_ENOMEM)
		return;
	if (rc != WEFT_EINTR)
		sim_fail("the outcome %lld of a call", (long long)rc);
	if (call->actor->interrupts == 0)
		sim_fail("an interrupt that nobody has sent");
	call->actor->interrupts--;
}

void
join_check(const struct actor *actor, int result)
{
	if (!actor->ended)
		sim_fail("joined before its end");
	if (actor->result != result)
		sim_fail("joined as %d, which returned %d", result, actor->result);
}
