/* threadlet_oracle.h - the oracle for threadlets and scopes.
 *
 * An actor records what the oracle knows about a threadlet: where it was started, which
 * cancellations and interrupts were requested, what its calls have reported, and what it has
 * returned.  A level is a scope, or the base of an actor.  The cancellation of the level
 * `below` also reaches the level; below the base of an actor is the scope that the actor was
 * started in.
 *
 *   1. A call has its normal result, or one that was requested before: a cancellation or a
 *      passed deadline of its level or of one below, down to a shield; or an interrupt.
 *   2. Once a call at a level has reported a cancellation, every later call there reports the
 *      same.
 *   3. A cancellation by the threadlet's own loop is reported by the threadlet's next call.
 *   4. No actor runs after its scope is closed, and all its actors have ended by then.
 *   5. A join returns what the actor returned.
 *
 * Needs: oracle.h.  Thread: any, because simulated threads run one at a time.
 */
#ifndef WEFT_SIM_THREADLET_ORACLE_H
#define WEFT_SIM_THREADLET_ORACLE_H

#include <weft/scope.h>
#include <weft/threadlet.h>
#include "sim/scenarios/oracle.h"
#include "threadlet/threadlet.h"

enum { LEVELS = 4, LOOPS = 2 };

struct level {
	struct level *below;
	struct actor *owner;
	weft_scope    scope;       /* unless it is a base */
	uint64_t      number;      /* unique: the memory of a scope is reused */
	bool          shield, fast;
	bool          open;
	uint64_t      deadline_ns;
	uint32_t      asked;       /* 1 << CANCEL, 1 << LATE: a call may report these */
	bool          certain;     /* a call must report one of them */
	int           seen;        /* what calls have reported, or 0 */
};

enum { CANCEL, LATE };

struct actor {
	struct level   base;
	struct level   levels[LEVELS];
	struct level  *top;
	int            depth;      /* open levels */
	uint32_t       where;      /* index of its loop */
	uint64_t       home;       /* number of the scope it was started in */
	weft_threadlet id;
	uint32_t       interrupts; /* sent and not yet reported */
	int            result;
	bool           refused;    /* its start failed */
	bool           runs, returned, ended;
	bool           told;       /* it may have been canceled before it returned */
	struct weft__node node;
};

/* The loops that are being stopped: their actors may be canceled. */
extern bool sched_stopping[LOOPS];

/* Fail on deadlock reports: a threadlet that can be canceled is not deadlocked. */
void oracle_listen(void);

/* Initialize an actor that is to be started on loop `where`, in a scope or with NULL in none. */
void actor_init(struct actor *actor, uint32_t where, struct level *home);

/* The start returned `id`; `must` is the result of level_must() for its scope before the start. */
void actor_started(struct actor *actor, weft_threadlet id, bool must);

/* The actor begins to run; continues; its function returns; its cleanups run, shielded; nothing
 * of it runs after this. */
void actor_begin(struct actor *actor);
void actor_step(const struct actor *actor);
int  actor_return(struct actor *actor, int result);
void actor_clean_up(struct actor *actor);
void actor_end(struct actor *actor);

/* Was the actor started in that scope? */
bool actor_is_in(const struct actor *actor, const struct level *level);

/* Call before a cancel or interrupt of the actor; and after it, with the result. */
void actor_ask(struct actor *actor, bool interrupt);
void actor_asked(struct actor *actor, bool here, bool interrupt, int rc);

/* A scope is opened, canceled, its deadline changed, or closed with that result. */
struct level *level_open(struct actor *actor, uint32_t flags, uint64_t deadline_ns);
void level_cancel(struct level *level);
void level_move(struct level *level, uint64_t deadline_ns, int rc);
void level_close(struct level *level, int rc, const struct actor *actors,
                 size_t count);

/* May a call at this level report `what`?  Must it report a cancellation? */
bool level_may(const struct level *level, int what);
bool level_must(const struct level *level);

/* Call before a suspending call, and after it, with the result.  `ok`: it is a normal result. */
struct call_check {
	struct actor *actor;
	struct level *level;
	bool must;
};
void call_begin(struct call_check *call, struct actor *actor);
void call_end(const struct call_check *call, int64_t rc, bool ok);

/* A join of `actor` returned `result`. */
void join_check(const struct actor *actor, int result);

#endif
