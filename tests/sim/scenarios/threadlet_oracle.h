/* threadlet_oracle.h - the judge of threadlets and scopes.
 *
 * An actor is what the judge knows of a threadlet: who has started it where, what it was
 * asked, what it has been told and what it has returned.  A level is a scope, or the
 * base of an actor; below each level lies the one whose end reaches it, and below the
 * base of an actor the scope that it was started in.
 *
 *   1. A call has the outcome that it is for, or one that somebody has asked for before:
 *      a cancellation or a deadline below its level, up to a shield; an interrupt.
 *   2. What has been told to a level is told by every later call there.
 *   3. Whoever was told by its own loop is told at its next call.
 *   4. No actor runs once its scope is closed, and none has not ended then.
 *   5. What is joined is what was returned.
 *
 * Needs: oracle.h.  Thread: any, since simulated ones take turns.
 */
#ifndef WEFT_SIM_THREADLET_ORACLE_H
#define WEFT_SIM_THREADLET_ORACLE_H

#include <weft/scope.h>
#include <weft/threadlet.h>
#include "sim/scenarios/oracle.h"

enum { LEVELS = 4, LOOPS = 2 };

struct level {
	struct level *below;
	struct actor *owner;
	weft_scope    scope;       /* unless it is a base */
	uint64_t      number;      /* of all scopes: its memory is used again */
	bool          shield, fast;
	bool          open;
	uint64_t      deadline_ns;
	uint32_t      asked;       /* 1 << CANCEL, 1 << LATE: so it may be told */
	bool          certain;     /* it must be told one of them */
	int           seen;        /* what it has been told, or 0 */
};

enum { CANCEL, LATE };

struct actor {
	struct level   base;
	struct level   levels[LEVELS];
	struct level  *top;
	int            depth;      /* open levels */
	uint32_t       where;      /* which loop */
	uint64_t       home;       /* number of the scope that it is in */
	weft_threadlet id;
	uint32_t       interrupts; /* sent, and not told */
	int            result;
	bool           refused;    /* its start failed */
	bool           runs, returned, ended;
	bool           told;       /* may have been, before it returned */
	weft_node      node;
};

/* Which loops are being stopped: their actors may be told to end. */
extern bool crew_stopping[LOOPS];

/* Listen to reports: threadlets that can be told to end are in no deadlock. */
void oracle_listen(void);

/* A new actor, to be started on `where` in a scope, or NULL. */
void actor_init(struct actor *actor, uint32_t where, struct level *home);

/* Its start returned that; `must` is what level_must() of its scope was before. */
void actor_started(struct actor *actor, weft_threadlet id, bool must);

/* It begins to run; it goes on; its function returns; its cleanups run, shielded; nothing
 * of it runs any more. */
void actor_begin(struct actor *actor);
void actor_step(const struct actor *actor);
int  actor_return(struct actor *actor, int result);
void actor_clean_up(struct actor *actor);
void actor_end(struct actor *actor);

/* Was it started in that scope? */
bool actor_is_in(const struct actor *actor, const struct level *level);

/* Before a cancel or interrupt of it, and what that returned. */
void actor_ask(struct actor *actor, bool interrupt);
void actor_asked(struct actor *actor, bool here, bool interrupt, int rc);

/* A scope is opened, cancelled, its deadline moved, closed with that result. */
struct level *level_open(struct actor *actor, uint32_t flags, uint64_t deadline_ns);
void level_cancel(struct level *level);
void level_move(struct level *level, uint64_t deadline_ns, int rc);
void level_close(struct level *level, int rc, const struct actor *actors,
                 size_t count);

/* It may be told that; it must be told something. */
bool level_may(const struct level *level, int what);
bool level_must(const struct level *level);

/* A suspending call: before it, and what it returned; `ok`: what it is for. */
struct call_check {
	struct actor *actor;
	struct level *level;
	bool must;
};
void call_begin(struct call_check *call, struct actor *actor);
void call_end(const struct call_check *call, int64_t rc, bool ok);

/* A join gave that of `actor`. */
void join_check(const struct actor *actor, int result);

#endif
