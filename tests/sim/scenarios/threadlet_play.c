/* threadlet_play.c - random programs of threadlets on two loops.
 *
 * Each actor takes a few random steps: it waits for something, opens scopes, starts other
 * actors in them or alone, here or on the other loop, joins, cancels and interrupts actors that
 * it knows.
 *
 *   1. An actor that waits without a deadline can be ended: in a bounded play by the deadline
 *      of a scope, otherwise by the stop.
 *   2. A request is recorded before it is made.
 */
#include <errno.h>
#include <string.h>
#include "sim/scenarios/threadlet_play.h"

enum { STEPS = 16 };

struct play play;

static int run_actor(void *arg);

/* --- starting ----------------------------------------------------------- */

struct actor *
play_start(struct level *home, uint32_t where)
{
	struct actor *actor = &play.actors[play.used];
	weft_go_opts opts = { .name = "actor" };
	bool must = home && level_must(home);
	weft_threadlet id;

	if (play.used == ACTORS || play.gone[where])
		return NULL;
	play.used++;
	play.starting[where]++;
	actor_init(actor, where, home);
	if (home)
		opts.scope = &home->scope;
	if (weft_loop_current() != play.hosts[where].loop)
		opts.loop = play.hosts[where].loop;
	id = weft_go_with(&opts, run_actor, actor);
	actor_started(actor, id, must);
	if (id > 0)
		count_up(&play.started);
	play.starting[where]--;
	return actor;
}

/* --- waiting ------------------------------------------------------------ */

static uint64_t
draw_deadline(void)
{
	return weft_after(sim_random_below(UINT64_C(1) << sim_random_below(21)));
}

/* Deadlines of scopes: long enough for most of what is done inside. */
static uint64_t
draw_late(void)
{
	return weft_after(sim_random_below(UINT64_C(1) << (10 + sim_random_below(15))));
}

/* Is there a deadline that ends a wait at this level? */
static bool
is_bounded(const struct level *level)
{
	for (; level; level = level->below) {
		if (level->deadline_ns != WEFT_NEVER)
			return true;
		if (level->shield)
			return false;
	}
	return !play.bounded;
}

static uint64_t
draw_wait(const struct actor *actor)
{
	if (sim_random_below(4) == 0 && is_bounded(actor->top))
		return WEFT_NEVER;
	return draw_deadline();
}

/* Did the call's own deadline end it? */
static bool
is_late(int64_t rc, uint64_t deadline_ns)
{
	if (rc != WEFT_ETIMEDOUT || weft_check_canceled() == rc)
		return false;
	time_check(deadline_ns);
	return true;
}

static void
act_sleep(struct actor *actor)
{
	struct call_check call;
	uint64_t until_ns = draw_wait(actor);
	int rc;

	call_begin(&call, actor);
	rc = weft_sleep_until(until_ns);
	call_end(&call, rc, rc == 0);
	if (rc == 0)
		time_check(until_ns);
}

static void
act_yield(struct actor *actor)
{
	struct call_check call;
	int rc;

	call_begin(&call, actor);
	rc = weft_yield();
	call_end(&call, rc, rc == 0);
}

static bool
is_refusal(int64_t rc)
{
	return rc == WEFT_EBUSY || rc == -ENOSPC || rc == -EMFILE || rc == -ENFILE || rc == -ENODEV;
}

static void
act_fd(struct actor *actor)
{
	struct call_check call;
	uint64_t deadline_ns = draw_wait(actor);
	int fd = play.pairs[actor->where][sim_random_below(PAIRS)][0], rc;

	call_begin(&call, actor);
	rc = weft_wait_fd(fd, sim_random_below(2) ? WEFT_READABLE : WEFT_WRITABLE, deadline_ns);
	call_end(&call, rc, rc > 0 || is_refusal(rc) || is_late(rc, deadline_ns));
}

/* An op on the stack: nothing may touch it after the wait.  Bytes that have arrived are
 * reported in any case. */
static void
act_op(struct actor *actor)
{
	struct call_check call;
	uint64_t deadline_ns = draw_wait(actor);
	int fd = play.pairs[actor->where][sim_random_below(PAIRS)][0];
	unsigned char bytes[64];
	int64_t rc;
	weft_op op;

	sim_check(weft_op_init(&op, NULL, NULL, NULL) == 0);
	rc = weft_op_recv(&op, fd, bytes, sizeof(bytes), 0, WEFT_NEVER);
	if (rc < 0)
		return;
	call_begin(&call, actor);
	call.must = false;
	rc = weft_op_wait(&op, deadline_ns);
	sim_check(!op.pending);
	if (rc != WEFT_EINTR && rc != WEFT_ESHUTDOWN
	    && (rc != WEFT_ETIMEDOUT || is_late(rc, deadline_ns)))
		result_check(OP_RECV, rc, sizeof(bytes));
	call_end(&call, rc,
	         (rc != WEFT_EINTR && rc != WEFT_ECANCELED && rc != WEFT_ETIMEDOUT)
	                 || is_late(rc, deadline_ns));
}

/* --- other actors ------------------------------------------------------- */

static struct actor *
any_actor(void)
{
	return play.used == 0 ? NULL : &play.actors[sim_random_below(play.used)];
}

/* An actor of the same scope, or one in this actor's innermost scope. */
static struct actor *
any_near(const struct actor *actor)
{
	struct actor *other = any_actor();

	for (uint32_t i = 0; i < play.used; i++) {
		if (!other->refused && other->id > 0
		    && (actor_is_in(other, actor->top)
		        || (actor->home && other->home == actor->home)))
			return other;
		if (++other == &play.actors[play.used])
			other = play.actors;
	}
	return NULL;
}

static void
act_join(struct actor *actor)
{
	struct actor *other = any_near(actor);
	uint64_t deadline_ns = draw_wait(actor);
	struct call_check call;
	int out = 0, rc;

	if (!other)
		return;
	call_begin(&call, actor);
	call.must = false; /* the result may already be there */
	rc = weft_join(other->id, &out, deadline_ns);
	if (other->base.below->owner->where != actor->where) {
		sim_check(rc == WEFT_EWRONGLOOP);
		return;
	}
	if (other == actor) {
		sim_check(rc == WEFT_EDEADLK);
		return;
	}
	call_end(&call, rc, rc == 0 || is_late(rc, deadline_ns));
	if (rc == 0)
		join_check(other, out);
	else
		sim_check(out == 0);
}

static void
ask_other(uint32_t where)
{
	struct actor *other = any_actor();
	bool interrupt = sim_random_below(2);
	int rc;

	if (!other || other->id <= 0)
		return;
	actor_ask(other, interrupt);
	rc = interrupt ? weft_interrupt(other->id) : weft_cancel(other->id);
	actor_asked(other, other->where == where, interrupt, rc);
}

/* --- scopes ------------------------------------------------------------- */

static void take_steps(struct actor *actor);

static void
act_in_scope(struct actor *actor)
{
	uint32_t flags = (uint32_t)sim_random_below(4);
	uint64_t deadline_ns = sim_random_below(3) ? WEFT_NEVER : draw_late();
	struct level *level = &actor->levels[actor->depth];
	int rc;

	if (actor->depth == LEVELS)
		return;
	if (flags & WEFT_SHIELD)
		deadline_ns = draw_late();
	rc = weft_scope_open(&level->scope, flags, deadline_ns);
	sim_check(rc == 0 || rc == WEFT_ENOMEM);
	if (rc < 0)
		return;
	level = level_open(actor, flags, deadline_ns);
	take_steps(actor);
	if (sim_random_below(8) == 0)
		return; /* the end of the threadlet closes it */
	while (actor->top != level) {
		struct level *inner = actor->top;

		level_close(inner, weft_scope_close(&inner->scope), play.actors, play.used);
	}
	rc = weft_scope_close(&level->scope);
	level_close(level, rc, play.actors, play.used);
}

static void
act_on_scope(struct actor *actor)
{
	struct level *level = actor->depth
	                              ? &actor->levels[sim_random_below((uint64_t)actor->depth)]
	                              : NULL;
	uint64_t deadline_ns = draw_late();
	uint64_t what = sim_random_below(3);

	if (!level)
		return;
	if (what == 0) {
		level_cancel(level);
		weft_scope_cancel(&level->scope);
		return;
	}
	/* Actors that wait inside may rely on a deadline. */
	if (what == 1 && (!play.bounded || level->deadline_ns == WEFT_NEVER) && !level->shield)
		deadline_ns = WEFT_NEVER;
	level_move(level, deadline_ns, weft_scope_set_deadline(&level->scope, deadline_ns));
}

static void
act_start(struct actor *actor)
{
	uint32_t where = sim_random_below(2) ? actor->where : (uint32_t)sim_random_below(LOOPS);

	if (actor->depth == 0 || sim_random_below(8) == 0)
		(void)play_start(NULL, where);
	else
		(void)play_start(actor->top, where);
}

/* --- actors ------------------------------------------------------------- */

static void
take_step(struct actor *actor)
{
	int rc = weft_check_canceled();

	actor_step(actor);
	if (rc == 0)
		sim_check(!level_must(actor->top));
	switch (sim_random_below(16)) {
	case 0:
	case 1:
		act_yield(actor);
		break;
	case 2:
	case 3:
		act_sleep(actor);
		break;
	case 4:
	case 5:
		act_fd(actor);
		break;
	case 6:
		act_op(actor);
		break;
	case 7:
	case 8:
	case 9:
		act_in_scope(actor);
		break;
	case 10:
	case 11:
	case 12:
		act_start(actor);
		break;
	case 13:
		act_join(actor);
		break;
	case 14:
		ask_other(actor->where);
		break;
	default:
		act_on_scope(actor);
		break;
	}
}

static void
take_steps(struct actor *actor)
{
	for (uint64_t i = 1 + sim_random_below(STEPS); i > 0; i--)
		take_step(actor);
}

/* The last cleanup to run. */
static void
on_end(void *arg)
{
	struct actor *actor = arg;

	actor_clean_up(actor);
	if (sim_random_below(2)) {
		struct call_check call;
		int rc;

		call_begin(&call, actor);
		rc = weft_sleep_until(draw_deadline());
		call_end(&call, rc, rc == 0);
	}
	actor_end(actor);
	count_up(&play.ended);
}

static int
run_actor(void *arg)
{
	struct actor *actor = arg;

	actor_begin(actor);
	actor->node = (struct weft__node){ .fn = on_end, .arg = actor };
	weft__cleanup_push(&actor->node);
	take_steps(actor);
	return actor_return(actor,
	                    sim_random_below(4) == 0 ? WEFT_EPROTO : (int)sim_random_below(1000));
}

/* --- threads, begin and end --------------------------------------------- */

void
play_meddle(void *arg)
{
	(void)arg;
	while (!weft__load(&play.over, WEFT__ACQUIRE)) {
		if (sim_random_below(8) == 0)
			(void)play_start(NULL, (uint32_t)sim_random_below(LOOPS));
		else
			ask_other(LOOPS);
		pause_ns(sim_random_below(200 * WEFT_US));
	}
}

void
play_move_bytes(void *arg)
{
	unsigned char bytes[32] = { 0 };

	(void)arg;
	while (!weft__load(&play.over, WEFT__ACQUIRE)) {
		int fd = play.pairs[sim_random_below(LOOPS)][sim_random_below(PAIRS)][1];

		if (sim_random_below(2))
			(void)weft__sys->send(fd, bytes, sizeof(bytes), 0);
		else
			(void)weft__sys->recv(fd, bytes, sizeof(bytes), 0);
		pause_ns(sim_random_below(60 * WEFT_US));
	}
}

void
play_begin(bool bounded)
{
	memset(&play, 0, sizeof(play));
	memset(sched_stopping, 0, sizeof(sched_stopping));
	oracle_listen();
	play.bounded = bounded;
	for (int i = 0; i < LOOPS * PAIRS; i++)
		peer_pair(play.pairs[i / PAIRS][i % PAIRS]);
	for (int i = 0; i < LOOPS; i++) {
		host_make(&play.hosts[i]);
		host_run(&play.hosts[i]);
	}
	for (uint32_t i = 0; i < 4; i++)
		(void)play_start(NULL, i % LOOPS);
}

/* All that was started has ended, and nothing else. */
void
play_end(void)
{
	sim_check(count_of(&play.started) == count_of(&play.ended));
	for (uint32_t i = 0; i < play.used; i++)
		if (!play.actors[i].refused && !play.actors[i].ended)
			sim_fail("a threadlet has not ended");
	for (int i = 0; i < 2 * LOOPS * PAIRS; i++)
		(void)weft__sys->close(play.pairs[i / 2 / PAIRS][i / 2 % PAIRS][i % 2]);
}

void
play_stop(uint32_t where)
{
	sched_stopping[where] = true;
	weft_loop_shutdown(play.hosts[where].loop);
}

void
play_avoid(uint32_t where)
{
	play.gone[where] = true;
	while (play.starting[where] > 0)
		pause_briefly();
}

void
play_stop_all(void)
{
	uint64_t since_ns;

	for (uint32_t i = 0; i < LOOPS; i++) {
		if (play.hosts[i].loop)
			play_stop(i);
		if (sim_random_below(2))
			pause_ns(sim_random_below(WEFT_MS));
	}
	sim_heal();
	since_ns = sim_time();
	for (int i = 0; i < LOOPS; i++)
		if (play.hosts[i].loop)
			host_stop(&play.hosts[i]);
	if (sim_time() - since_ns > LIVE_NS)
		sim_fail("not live: stopping took more than 60 s");
}
