/* dag.h - graphs of steps, as the files of this layer share them.  Private.
 *
 * Needs: runtime, work, promise, threadlet, loop, base.
 *
 * The files: build.c (a template is put together), check.c (and made sure of), run.c (one
 * run from start to end), hand.c (who ends a step, and what follows), lane.c (queues and
 * the threads that empty them), step.c (one attempt), group.c (steps that are made of
 * others), home.c (what is done on the loop), limit.c, write.c (graphs as text), list.c
 * (all templates, for whoever looks), trace.c.
 *
 * A template has an array of nodes, its inputs among them.  A run has a frame, which has a
 * step for each node; a node that stands for several (a list's items, another graph, nodes
 * added by a step) gets a frame of its own below its step, and has ended when all in that
 * frame have.  So there is one way to count, to stop and to end.
 *
 *   1. step->missing counts the nodes before it that have not ended.  Whoever takes it to
 *      0 (M, acquire and release: it sees what all of them have written) is the only one
 *      to make it ready.
 *   2. A step that is ready belongs to whoever has it: a hand, a lane's queue, the list of
 *      those that wait for a limit or a time.  It is in one of these, and taken out under
 *      the lock of that.  Its memory is written by whoever has it.
 *   3. frame->left counts its steps that have not ended, and in the run's own frame also
 *      attempts that are late, and whoever starts it.  Who takes it to 0 (L, acquire and
 *      release) ends the frame, and with the run's own frame the run.
 *   4. frame->stopped is set once, from 0 to an error.  A step of a frame that is stopped,
 *      or stands below one, is not begun any more but ended as dropped, wherever it is
 *      found; who stops it takes out those that wait for a limit or a time, and the loop
 *      tells those that run there.
 *   5. Attempts with a timeout on a pool have one who ends them: the hand, or the loop's
 *      timer, as the run's lock decides (hand->timed is taken away).  While one is late, no
 *      value is moved: it may look at what others would take.
 *   6. The caller and the run itself, while it goes on, hold what it has: values, template,
 *      loop.  Its memory is there longer, as long as something is on its way to it that
 *      will find nothing to do: a ticket with a pool, a poke with the loop (run->users).
 *      So a template, loop or pool can be freed when the runs of it are.
 *   7. While run->alone, one thread has begun the run and nobody else was called: there is
 *      no loop and no limit that another run could give a place of, and no ticket was
 *      sent.  Then counts need no locked instruction.  That thread itself ends it, before
 *      it sends the first ticket, and the pool's lock shows it to whoever comes.
 */
#ifndef WEFT_DAG_DAG_H
#define WEFT_DAG_DAG_H

#include <weft/dag.h>
#include <weft/timer.h>
#include "base/lock.h"
#include "threadlet/threadlet.h"
#include "work/pool.h"

#define WEFT__DAG_LEVELS  16u /* different priorities of a template */
#define WEFT__DAG_NESTING 64u /* of graphs in graphs */
#define WEFT__DAG_DOOMED  (UINT32_C(1) << 31) /* in step->missing: one before has failed */

/* --- templates ----------------------------------------------------------- */

struct weft__dag_limit {
	char    *name;
	uint32_t max, used;                        /* under the template's lock */
	struct weft__dag_step *first, *last;       /* that wait, oldest first */
	struct weft__dag_limit *next;
};

enum {
	WEFT__DAG_INPUT   = 1 << 0,
	WEFT__DAG_SPECIAL = 1 << 1, /* has more than a function: see step.c */
	WEFT__DAG_GROUP   = 1 << 2, /* each, or a sub: its steps are in a frame below */
	WEFT__DAG_TIMED   = 1 << 3, /* has a timeout */
};

/* What running touches. */
struct weft__dag_node {
	weft_dag_fn fn;
	void       *arg;
	uint32_t    in_at, in_count;   /* its sources, in dag->in */
	uint32_t    out_at, out_count; /* its followers, in dag->out */
	uint32_t    missing;           /* sources that are nodes */
	weft__a32   cost;              /* of an attempt in ns, as last seen; 0: not known */
	uint8_t     flags, place, level;
	struct weft__dag_more *more;
};

/* What was seen of a node while somebody looked; list.c. */
struct weft__dag_seen {
	weft__a64 count, failed; /* attempts; of a group the whole, once */
	weft__a64 sum_ns, max_ns, last_ns;
};

/* All else. */
struct weft__dag_more {
	char              *name;
	weft_dag_node      set;    /* as given; names and lists are copies */
	const weft_type   *type;   /* of the value that followers find; NULL: none or any */
	struct weft__dag_limit *limit;
	uint32_t           position; /* in the text of the program: order of adding */
	struct weft__dag_seen seen;
};

struct weft_dag {
	char       *name;
	struct weft__lock lock;    /* of its limits */
	weft__a32   users;         /* runs, and nodes of templates it is part of, */
	weft__a32   parents;       /* which are so many */
	uint64_t    number;        /* from 1, once it is checked */
	weft_dag   *next_listed;   /* of list.c, under its lock */
	weft__a64   started;       /* runs */
	weft__a64   failed, retries, late;
	bool        checked;
	bool        needs_loop;    /* what it has cannot be done without */
	bool        has_limits;    /* of its own, or in graphs in it */
	uint32_t    nesting;       /* graphs in it, and in these, ... */
	uint32_t    count, room;   /* of nodes, with inputs */
	uint32_t    inputs;
	uint32_t    work[3];       /* nodes by place; some stand for many */
	uint32_t    levels;
	int         level[WEFT__DAG_LEVELS]; /* priorities, highest first */
	struct weft__dag_node *nodes;
	uint32_t   *in, *out;      /* indices of nodes */
	uint32_t   *roots;         /* nodes without missing sources */
	uint32_t    root_count;
	uint32_t    sink;          /* the one without followers; count: several, or none */
	uint32_t   *names;         /* a hash table of indices plus 1 */
	uint32_t    names_room;    /* a power of 2 */
	struct weft__dag_limit *limits;
};

/* --- runs ---------------------------------------------------------------- */

struct weft__dag_frame;
struct weft__dag_added;
struct weft__dag_news;

struct weft__dag_step {
	weft__a32   missing;  /* M */
	uint16_t    attempt;  /* that it is at, from 0 */
	uint8_t     state;    /* weft_dag_state */
	bool        limited;  /* counts against its node's limit */
	weft_value  out;
	struct weft__dag_step  *next;  /* in whatever list it stands */
	struct weft__dag_frame *frame;
	struct weft__dag_node  *node;
	int         error;
	uint32_t    item;     /* of a list, plus 1; 0: it is none */
	union {
		uint64_t due_ns;  /* while it waits for its next attempt */
		struct weft__dag_frame *below; /* its group, which goes on */
	};
};

struct weft__dag_times { /* of a step, if the run keeps them */
	uint64_t begin_ns, end_ns; /* of its last attempt */
	uintptr_t thread;          /* something that is another for each */
	/* Of trace.c; a group has that of its last step. */
	uint64_t mark;             /* of who ran it, in a recording; or 0 */
	uint64_t edges_ns;         /* where in its span edges begin; 0: it has none there */
};

struct weft__dag_frame {
	weft_dag_run   *run;
	const weft_dag *dag;   /* whose names and limits hold here */
	struct weft__dag_step  *owner; /* NULL: the run's own frame */
	struct weft__dag_frame *next;  /* of the run */
	weft__a32       left;     /* L */
	weft__a32       stopped;  /* an error, or 0 */
	weft__a32       error;    /* the first one in it, or 0 */
	char           *text;     /* and what it says to a person, or NULL */
	uint32_t        count;    /* of steps */
	uint64_t        begin_ns; /* of a group, if the run is observed */
	const uint32_t *out;      /* followers, as in a template */
	struct weft__dag_step  *steps;
	struct weft__dag_times *times; /* or NULL */
	struct weft__dag_added *added; /* nodes of its own, or NULL; group.c */
	weft_value      given;         /* what their owner has put out, */
	bool            given_on;      /* which is the owner's by now */
	uint64_t        deadline_ns;   /* or WEFT_NEVER; under the run's lock: */
	struct weft__dag_frame *bounded, **bounded_link; /* in the list of those */
};

struct weft__dag_list {
	struct weft__dag_step *first, *last;
};

/* A thread of a pool that is asked to come. */
struct weft__dag_ticket {
	struct weft__op op; /* first, and without a loop */
	struct weft__dag_lane *lane;
	struct weft__dag_ticket *next; /* free */
	bool again;         /* it is to be sent again, and has a place for that */
};

/* Steps that wait for threads of one kind.  Under the run's lock. */
struct weft__dag_lane {
	weft_dag_run *run;
	weft_pool    *pool;   /* NULL: none */
	uint32_t      queued;         /* steps */
	uint32_t      active, busy;   /* who empties it, or is called; is at a long step */
	uint64_t      queued_ns;      /* that its steps will take */
	uint32_t      tickets_made, tickets_max;
	struct weft__dag_ticket *tickets, *free_tickets;
	struct weft__dag_list   *levels;
};

/* Whoever ends steps.  On its stack. */
struct weft__dag_hand {
	weft_dag_run *run;
	int           place;  /* of steps that it runs by itself; -1: none */
	struct weft__dag_step *next; /* one of these, to be run at once */
	struct weft__dag_list  taken;   /* others, from its lane or quick ones of its own */
	uint64_t      kept_ns;          /* that these take, at most */
	struct weft__dag_list  ready;   /* to be queued */
	struct weft__dag_list  own;     /* to be dropped, or opened as groups */
	struct weft__dag_frame *frame;  /* of which it has ended, */
	uint32_t      ended;            /* so many steps that are not told yet */
	uint64_t      clock_ns;  /* of the last look, or 0; if the run is timed */
	struct weft__dag_ticket *ticket; /* of a pool's thread, */
	uint32_t      rounds;            /* which has been at it for so many */
	bool          is_waiter;
	weft_dag_step *attempt;  /* that it runs, or NULL */
	/* Under the run's lock, of an attempt with a timeout (invariant 5). */
	struct weft__dag_hand *other, **link;
	struct weft__dag_step *timed;
	uint64_t      deadline_ns;
	bool          late_limited; /* it is late, and still counts against the limit */
	weft__a32     why;
	int         (*outer)(void *arg); /* of a thread that waits inside of a step: */
	void         *outer_arg;         /* what asks whether that is to end */
};

/* A step that runs on the loop, on the stack of its threadlet. */
struct weft__dag_sitter {
	weft_scope scope;
	struct weft__dag_step *step;
	struct weft__dag_sitter *other, **link;
};

struct weft_dag_run {
	weft_dag  *dag;
	weft_loop *loop;   /* held; or NULL */
	weft__a32  users, holders; /* invariant 6 */
	weft__a32  state;  /* WEFT__DAG_* */
	bool       collect, timed;
	bool       traced; /* made while something was recorded: it keeps times */
	bool       observed; /* and what it takes is told to its nodes; then it is timed */
	bool       has_pools; /* has entered them */
	bool       alone;  /* one thread does it all: invariant 7 */
	uint64_t   deadline_ns;
	weft_dag_run_opts opts;
	weft_op   *op;     /* the caller's, to be finished; or NULL */
	struct weft__dag_frame frame; /* its own */
	weft__a32  bell;   /* a plain thread that waits parks here, while it is 0 */

	struct weft__lock lock;
	struct weft__dag_lane  lanes[3]; /* by place; those of the loop have no pool */
	struct weft__dag_frame *frames;  /* all but its own */
	struct weft__dag_hand  *timers;  /* with attempts that have a timeout */
	struct weft__dag_list   sleepers; /* steps that wait for their next attempt */
	struct weft__dag_news  *news, **news_end;
	bool       waiter_parked;
	uint32_t   ended;   /* nodes; for the progress */
	uint32_t   total;
	struct weft__dag_frame *bounded; /* that have a deadline of their own */
	weft__a32  late;    /* attempts that still run, */
	weft__a32  waiting; /* and steps that wait for a limit */

	/* With the loop; see home.c. */
	weft__a32  poke;    /* WEFT__DAG_POKE_* */
	struct weft__node_head node;
	weft_node  start;   /* by which it is begun from elsewhere */
	weft_op    home;    /* keeps the loop, if nobody's op does */
	weft_timer timer;
	struct weft__dag_sitter *sitters;
	weft_abort *abort;  /* follows that of the options, */
	weft_node  abort_node; /* and is listened to */
};

enum { WEFT__DAG_NEW, WEFT__DAG_GOING, WEFT__DAG_OVER }; /* of a run */

/* --- build.c, check.c ---------------------------------------------------- */

/* The index of a node or input by its name, or -1. */
int64_t weft__dag_find(const weft_dag *dag, const char *name);

/* Check what can be seen of a node by itself, and copy it; 0 or an error with its text. */
int weft__dag_copy_node(struct weft__dag_node *to, struct weft__dag_more *more,
                        const weft_dag_node *from);
void weft__dag_drop_node(struct weft__dag_more *more);

/* What a node's followers find of it: its type, or the list of items. */
const weft_type *weft__dag_type_of(const weft_dag_node *node);

/* The level of a priority. */
uint8_t weft__dag_level(const weft_dag *dag, int priority);

struct weft__dag_limit *weft__dag_find_limit(const weft_dag *dag, const char *name);

void weft__dag_unref(weft_dag *dag);

/* --- list.c, write.c ----------------------------------------------------- */

/* A template has been checked; it is freed. */
void weft__dag_enlist(weft_dag *dag);
void weft__dag_delist(weft_dag *dag);

/* Whether a run that is made now is to tell its nodes what they take; and tell one. */
bool weft__dag_is_observed(void);
void weft__dag_see(struct weft__dag_node *node, uint64_t took_ns, bool failed);

/* Write a template as JSON, with what was seen.  0, or WEFT_ENOMEM. */
int weft__dag_write_seen(const weft_dag *dag, weft_value *out);

/* --- trace.c ------------------------------------------------------------- */

/* Of a run that is traced: a step has been run by the caller; a group has ended. */
void weft__dag_trace_step(const struct weft__dag_step *step, bool failed);
void weft__dag_trace_group(const struct weft__dag_frame *group);

/* --- run.c --------------------------------------------------------------- */

void weft__dag_run_ref(weft_dag_run *run);
void weft__dag_run_unref(weft_dag_run *run);

/* The last step has ended; by whoever saw that. */
void weft__dag_run_over(struct weft__dag_hand *hand);

/* Its end is told to whoever waits; by that one itself, if it is `hand`, or NULL. */
void weft__dag_run_tell(weft_dag_run *run, const struct weft__dag_hand *hand);

/* Its pools are not freed while it goes on. */
void weft__dag_enter_pools(weft_dag_run *run);

/* Fill the steps of a frame. */
void weft__dag_frame_init(struct weft__dag_frame *frame, weft_dag_run *run,
                          const weft_dag *dag);

/* Make the first steps of a run ready, by a hand that lets go of them later. */
void weft__dag_start(struct weft__dag_hand *hand);

/* Told to end early, by an op or a thread. */
void weft__dag_run_end(weft_dag_run *run, int why);

/* Make the first steps of a frame ready. */
void weft__dag_frame_start(struct weft__dag_hand *hand, struct weft__dag_frame *frame);

/* --- hand.c -------------------------------------------------------------- */

static inline bool
weft__dag_is_stopped(const struct weft__dag_frame *frame)
{
	while (!weft__load(&frame->stopped, WEFT__RELAXED)) {
		if (!frame->owner)
			return false;
		frame = frame->owner->frame;
	}
	return true;
}

/* Lower a count and return what it was: as an atomic step, with what came before it
 * seen by who sees it; or plainly, by invariant 7. */
static inline uint32_t
weft__dag_lower(const weft_dag_run *run, weft__a32 *count, uint32_t by)
{
	uint32_t was;

	if (!run->alone)
		return weft__add(count, -by, WEFT__ACQ_REL);
	was = weft__load(count, WEFT__RELAXED);
	weft__store(count, was - by, WEFT__RELAXED);
	return was;
}

/* A step's inputs are there, or its next attempt is due. */
void weft__dag_ready(struct weft__dag_hand *hand, struct weft__dag_step *step);

/* An attempt has come to `rc`, with the value `out` (taken) if that is no error. */
void weft__dag_finish(struct weft__dag_hand *hand, struct weft__dag_step *step, int rc,
                      weft_value out);

/* A step has ended in that state. */
void weft__dag_end_step(struct weft__dag_hand *hand, struct weft__dag_step *step,
                        weft_dag_state state, int error);

/* Do what ending steps has left to do: queue what is ready, drop what is to be dropped. */
void weft__dag_settle(struct weft__dag_hand *hand);

/* The same, and tell what was counted: afterwards the hand has nothing of the run's but
 * hand->next. */
void weft__dag_let_go(struct weft__dag_hand *hand);

/* Tell what was counted, unless it is of that frame.  To tell may count others. */
void weft__dag_turn_to(struct weft__dag_hand *hand, const struct weft__dag_frame *frame);

/* One more step of a frame has ended. */
static inline void
weft__dag_count(struct weft__dag_hand *hand, struct weft__dag_frame *frame)
{
	weft__dag_turn_to(hand, frame);
	hand->frame = frame;
	hand->ended++;
}

/* Stop a frame with an error. */
void weft__dag_stop(struct weft__dag_hand *hand, struct weft__dag_frame *frame, int error);

static inline void
weft__dag_append(struct weft__dag_list *list, struct weft__dag_step *step)
{
	step->next = NULL;
	if (list->first)
		list->last->next = step;
	else
		list->first = step;
	list->last = step;
}

static inline struct weft__dag_step *
weft__dag_pop(struct weft__dag_list *list)
{
	struct weft__dag_step *step = list->first;

	if (step)
		list->first = step->next;
	return step;
}

/* --- lane.c -------------------------------------------------------------- */

#define WEFT__DAG_UNKNOWN_NS 100000u /* of a step that has never run */
#define WEFT__DAG_BATCH_NS   2000u   /* of steps that one hand has at once */

/* What a step will take. */
static inline uint64_t
weft__dag_cost(const struct weft__dag_step *step)
{
	uint32_t cost = weft__load(&step->node->cost, WEFT__RELAXED);

	return cost ? cost : WEFT__DAG_UNKNOWN_NS;
}

/* Prepare the lanes, in memory that comes with the run. */
size_t weft__dag_lanes_size(const weft_dag *dag);
void   weft__dag_lanes_init(weft_dag_run *run, void *memory);

/* Queue steps of any place, and call whoever is to come for them. */
void weft__dag_queue(struct weft__dag_hand *hand, struct weft__dag_list *steps);

/* The level of a step in the lanes of its run: graphs inside of others have priorities of
 * their own. */
static inline uint32_t
weft__dag_level_of(const struct weft__dag_step *step)
{
	const weft_dag *dag = step->frame->run->dag;

	return step->frame->dag == dag
	               ? step->node->level
	               : weft__dag_level(dag, step->node->more->set.priority);
}

/* Take all steps out of the loop's lane; under the run's lock. */
struct weft__dag_list weft__dag_take_all(struct weft__dag_lane *lane);

/* Run steps of a lane until there is none.  The hand is one of its active. */
void weft__dag_work(struct weft__dag_hand *hand);

/* --- step.c -------------------------------------------------------------- */

/* What a node does when it is its turn. */
enum { WEFT__DAG_CALLS, WEFT__DAG_ITEMS, WEFT__DAG_SUB };

static inline int
weft__dag_kind(const struct weft__dag_step *step)
{
	if (!(step->node->flags & WEFT__DAG_GROUP))
		return WEFT__DAG_CALLS;
	if (step->node->more->set.each && !step->item)
		return WEFT__DAG_ITEMS;
	return step->node->more->set.sub ? WEFT__DAG_SUB : WEFT__DAG_CALLS;
}

/* One attempt: inside of its function, this is the weft_dag_step. */
struct weft_dag_step {
	struct weft__dag_step *step;
	struct weft__dag_hand *hand;
	weft_value out;
	struct weft__dag_added *added; /* nodes to follow, or NULL */
	uint64_t deadline_ns;
	uint64_t moved; /* inputs that were, by bits */
	uint64_t begin_ns, end_ns; /* of its function, if the run is timed */
	uint32_t number;
};

/* Run one attempt at a step and finish it. */
void weft__dag_run_step(struct weft__dag_hand *hand, struct weft__dag_step *step);

/* What the functions of steps on this thread see by weft_canceled(). */
int weft__dag_canceled(void *hand);

/* When an attempt that begins now has to be done. */
uint64_t weft__dag_deadline_of(const struct weft__dag_step *step);

/* The value of an input. */
weft_value *weft__dag_source(const struct weft__dag_step *step, size_t index);

/* --- group.c ------------------------------------------------------------- */

/* Open the group that a step stands for: its followers wait for that. */
void weft__dag_open_group(struct weft__dag_hand *hand, struct weft__dag_step *step);

/* The same with what an attempt has put out and added, which is taken. */
void weft__dag_open_added(weft_dag_step *attempt);
void weft__dag_drop_added(struct weft__dag_added *added);

/* It has no deadline of its own any more; under the run's lock. */
void weft__dag_unbound(struct weft__dag_frame *frame);

/* All steps of a group have ended. */
void weft__dag_close_group(struct weft__dag_hand *hand, struct weft__dag_frame *frame);

/* Source `index` of a step in a frame of added nodes, or of a list's items. */
weft_value *weft__dag_group_source(const struct weft__dag_step *step, size_t index);

void weft__dag_free_frame(struct weft__dag_frame *frame);

/* A node by name among those that were added to a run, or NULL. */
struct weft__dag_step *weft__dag_find_added(const weft_dag_run *run, const char *name);

/* --- home.c -------------------------------------------------------------- */

enum {
	WEFT__DAG_POKE_LOOK  = 1 << 0, /* steps to start, times to keep, something to tell */
	WEFT__DAG_POKE_OVER  = 1 << 1, /* the run has ended */
};

/* Have the loop do something for the run, if it has one; under the run's lock. */
void weft__dag_poke(weft_dag_run *run, uint32_t what);

/* Begin it: on the loop's thread, where an op holds it; or on another one: 0, or
 * WEFT_ESHUTDOWN, and it was not begun. */
void weft__dag_begin_here(weft_dag_run *run);
int  weft__dag_begin_there(weft_dag_run *run);

/* A lane has steps for the loop, or a step waits for its time. */
void weft__dag_sleep(struct weft__dag_hand *hand, struct weft__dag_step *step);

/* A step has come to its present state: note it for on_progress, if there is one.  Tell
 * what was noted. */
void weft__dag_note_slow(const struct weft__dag_step *step);
void weft__dag_tell_news(weft_dag_run *run);

static inline void
weft__dag_note(const struct weft__dag_step *step)
{
	if (step->frame->run->opts.on_progress)
		weft__dag_note_slow(step);
}

/* --- limit.c ------------------------------------------------------------- */

/* Have a place for a step, whose node has a limit: false if it is in the queue for one. */
bool weft__dag_enter_limit(struct weft__dag_step *step);

/* Give it back; the next one gets it, and is ready.  And the same for an attempt that was
 * late, whose step may have another by now. */
void weft__dag_leave_limit(struct weft__dag_hand *hand, struct weft__dag_step *step);
void weft__dag_leave_late(struct weft__dag_hand *hand, const struct weft__dag_step *step);

/* Take out those of the hand's run that wait for one and are stopped. */
void weft__dag_sweep_limits(struct weft__dag_hand *hand, const weft_dag *dag);

#endif
