/* dag.h - graphs of steps, as the files of this layer share them.  Private.
 *
 * Needs: runtime, work, promise, threadlet, loop, base.
 *
 * The files: dag_build.c (building a template), dag_check.c (checking it), dag_run.c (one run from
 * start to end), dag_worker.c (the end of a step, and what follows), dag_run_queue.c (run queues
 * and the threads that empty them), dag_step.c (one attempt), dag_group.c (steps that consist of
 * other steps), dag_loop.c (what is done on the loop), dag_limit.c, dag_write.c (graphs as text),
 * dag_list.c (all templates of the process), dag_trace.c.
 *
 * A template has an array of nodes, its inputs among them.  A run has a frame with one step for
 * each node.  A step that consists of several steps (a list's items, another graph, nodes added
 * by a step) gets a frame of its own below it, and ends when all steps in that frame have
 * ended.  So there is one way to count, to stop and to end.
 *
 *   1. step->missing counts the sources of a step that have not ended.  The worker that lowers
 *      it to 0 is the only one to make the step ready (M: acquire and release, so that worker
 *      sees what all of the sources have written).
 *   2. A step that is ready is in exactly one place: with a worker, in a run queue, or in the
 *      list of steps that wait for a limit or a time.  It is removed under the lock of that
 *      place.  Only the worker that holds it, or the holder of that lock, writes its memory.
 *   3. frame->left counts the steps of a frame that have not ended, plus one while the frame is
 *      being started; in the run's own frame, also attempts that are late.  The worker that
 *      lowers it to 0 (L: acquire and release) ends the frame; if it is the run's own, the run.
 *   4. frame->stopped is set once, from 0 to an error.  A step in or below a stopped frame
 *      is no longer begun but ended as dropped, wherever it is found.  The worker that
 *      stops a frame removes the steps that wait for a limit or a time, and the loop
 *      cancels the steps that run on the loop.
 *   5. An attempt with a timeout on a pool is ended either by its worker or by the loop's
 *      timer: the first to clear worker->timed, under the run's lock.  While an attempt is late,
 *      no value is moved: the attempt may still read a value that another step would take.
 *   6. The caller, and the run itself while it runs, hold its resources: values, template, loop
 *      (run->holders).  Its memory lasts longer (run->users): a work item in a pool or a
 *      notification to the loop may still arrive, and will find nothing to do.  So a template,
 *      loop or pool can be freed once its runs are freed.
 *   7. While run->alone, one thread has begun the run and no other was called: there is no loop,
 *      no limit for which another run could free a slot, and no work item was sent.  Then counts
 *      need no locked instruction.  That thread clears `alone` before it sends the first work
 *      item, and the pool's lock publishes that.  It also clears `alone` when a step adds a
 *      graph with limits.
 */
#ifndef WEFT_DAG_DAG_H
#define WEFT_DAG_DAG_H

#include <weft/dag.h>
#include <weft/timer.h>
#include "base/lock.h"
#include "threadlet/threadlet.h"
#include "work/pool.h"

#define WEFT__DAG_LEVELS        16u /* different priorities of a template */
#define WEFT__DAG_NESTING       64u /* of graphs in graphs */
#define WEFT__DAG_SOURCE_FAILED (UINT32_C(1) << 31) /* in step->missing */

/* --- templates ----------------------------------------------------------- */

struct weft__dag_limit {
	char    *name;
	uint32_t max, used;                        /* under the template's lock */
	struct weft__dag_step *first, *last;       /* waiting steps, oldest first */
	struct weft__dag_limit *next;
};

enum {
	WEFT__DAG_INPUT   = 1 << 0,
	WEFT__DAG_SPECIAL = 1 << 1, /* more than a function: see dag_step.c */
	WEFT__DAG_GROUP   = 1 << 2, /* `map` or `subgraph`: its steps are in a frame below */
	WEFT__DAG_TIMED   = 1 << 3, /* has a timeout */
};

/* The part of a node that running it touches. */
struct weft__dag_node {
	weft_dag_fn fn;
	void       *arg;
	uint32_t    in_at, in_count;   /* its sources, in dag->in */
	uint32_t    out_at, out_count; /* its dependents, in dag->out */
	uint32_t    missing;           /* sources that are nodes */
	weft__a32   cost;              /* expected time of an attempt in ns; 0: not known */
	uint8_t     flags, place, level;
	struct weft__dag_more *more;
};

/* What was measured of a node while runs were observed; dag_list.c. */
struct weft__dag_measured {
	weft__a64 count, failed; /* attempts; a group counts once, as a whole */
	weft__a64 sum_ns, max_ns, last_ns;
};

/* The rest of a node. */
struct weft__dag_more {
	char              *name;
	weft_dag_node      set;    /* as given; names and lists are copies */
	const weft_type   *type;   /* of the value that dependents find; NULL: none or any */
	struct weft__dag_limit *limit;
	uint32_t           position; /* in order of adding */
	struct weft__dag_measured measured;
};

struct weft_dag {
	char       *name;
	struct weft__lock lock;    /* of its limits */
	weft__a32   users;         /* runs, and nodes of other templates and of runs */
	weft__a32   parents;       /* how many of them are nodes of templates */
	uint64_t    id;            /* from 1, once it is checked */
	weft_dag   *next_listed;   /* used by dag_list.c, under its lock */
	weft__a64   started;       /* runs */
	weft__a64   failed, retries, late;
	bool        checked;
	bool        needs_loop;    /* it has nodes that cannot run without one */
	bool        has_limits;    /* its own, or those of graphs in it */
	uint32_t    nesting;       /* depth of graphs in it */
	uint32_t    count, room;   /* of nodes, with inputs */
	uint32_t    inputs;
	uint32_t    work[3];       /* nodes by place; groups count more */
	uint32_t    levels;
	int         level[WEFT__DAG_LEVELS]; /* priorities, highest first */
	struct weft__dag_node *nodes;
	uint32_t   *in, *out;      /* indices of nodes */
	uint32_t   *roots;         /* nodes without sources that are nodes */
	uint32_t    root_count;
	uint32_t    sink;          /* the only node without dependents; count: not exactly one */
	uint32_t   *names;         /* a hash table of indices plus 1 */
	uint32_t    names_room;    /* a power of 2 */
	struct weft__dag_limit *limits;
};

/* --- runs ---------------------------------------------------------------- */

struct weft__dag_frame;
struct weft__dag_added;
struct weft__dag_event;

struct weft__dag_step {
	weft__a32   missing;  /* M */
	uint16_t    attempt;  /* the current one, from 0 */
	uint8_t     state;    /* weft_dag_state */
	bool        limited;  /* counts against its node's limit */
	weft_value  out;
	struct weft__dag_step  *next;  /* in the list that holds it */
	struct weft__dag_frame *frame;
	struct weft__dag_node  *node;
	int         error;
	uint32_t    item;     /* index in a list, plus 1; 0: not an item */
	union {
		uint64_t due_ns;  /* while it waits for its next attempt */
		struct weft__dag_frame *below; /* the frame of its group, once opened */
	};
};

struct weft__dag_times { /* of a step, if the run keeps them */
	uint64_t begin_ns, end_ns; /* of its last attempt */
	uintptr_t thread;          /* identifies the thread */
	/* Used by dag_trace.c.  A group has those of its last step. */
	uint64_t mark;             /* trace key of the thread or threadlet that ran it, or 0 */
	uint64_t edges_ns;         /* where in its span edges begin; 0: it has none */
};

struct weft__dag_frame {
	weft_dag_run   *run;
	const weft_dag *dag;   /* whose names and limits apply here */
	struct weft__dag_step  *owner; /* NULL: the run's own frame */
	struct weft__dag_frame *next;  /* in the run's list */
	weft__a32       left;     /* L */
	weft__a32       stopped;  /* an error, or 0 */
	weft__a32       error;    /* the first one in it, or 0 */
	char           *text;     /* its description, or NULL */
	uint32_t        count;    /* of steps */
	uint64_t        begin_ns; /* of a group, if the run is observed */
	const uint32_t *out;      /* dependents, as in a template */
	struct weft__dag_step  *steps;
	struct weft__dag_times *times; /* or NULL */
	struct weft__dag_added *added; /* nodes added to this run, or NULL; dag_group.c */
	weft_value      given;         /* the output of the step that added them, */
	bool            given_on;      /* and whether it has moved to that step */
	uint64_t        deadline_ns;   /* or WEFT_NEVER; under the run's lock: */
	struct weft__dag_frame *bounded, **bounded_link; /* in the list of frames with a deadline */
};

struct weft__dag_list {
	struct weft__dag_step *first, *last;
};

/* A work item for a pool: it brings one of the pool's threads. */
struct weft__dag_work_item {
	struct weft__op op; /* must be first; without a loop */
	struct weft__dag_run_queue *run_queue;
	struct weft__dag_work_item *next; /* in the free list */
	bool again;         /* to be sent again; its slot in the pool is reserved */
};

/* The run queue of one place.  Under the run's lock. */
struct weft__dag_run_queue {
	weft_dag_run *run;
	weft_pool    *pool;   /* NULL: none */
	uint32_t      queued;         /* steps */
	uint32_t      active, busy;   /* workers here or called; those at a long step */
	uint64_t      queued_ns;      /* expected time of its steps */
	uint32_t      work_items_made, work_items_max;
	struct weft__dag_work_item *work_items, *free_work_items;
	struct weft__dag_list   *levels;
};

/* A worker: the thread, threadlet or callback that runs or ends steps.  On its stack. */
struct weft__dag_worker {
	weft_dag_run *run;
	int           place;  /* of steps that it runs by itself; -1: none */
	struct weft__dag_step *next; /* such a step, to be run at once */
	struct weft__dag_list  taken;   /* more: from the run queue, or short ones kept */
	uint64_t      kept_ns;          /* expected time of the kept ones */
	struct weft__dag_list  ready;   /* to be queued */
	struct weft__dag_list  own;     /* to be dropped, or opened as groups */
	struct weft__dag_frame *frame;  /* of the steps that it has ended, */
	uint32_t      ended;            /* and their number; not subtracted from `left` yet */
	uint64_t      clock_ns;  /* last clock reading, or 0; if the run is timed */
	struct weft__dag_work_item *work_item; /* the work item of a pool's thread, */
	uint32_t      rounds;            /* and how often it has taken steps */
	bool          is_waiter;
	weft_dag_step *attempt;  /* the attempt that it runs, or NULL */
	/* Under the run's lock, for an attempt with a timeout (invariant 5). */
	struct weft__dag_worker *other, **link;
	struct weft__dag_step *timed;
	uint64_t      deadline_ns;
	bool          late_limited; /* the late attempt still counts against the limit */
	weft__a32     why;       /* the error of an attempt that is late, or 0 */
	int         (*outer)(void *arg); /* of a thread that waits inside a step or pool work: */
	void         *outer_arg;         /* checks whether that has to end; NULL: none */
};

/* A step that runs on the loop, where it may suspend.  On the stack of its threadlet. */
struct weft__dag_loop_step {
	weft_scope scope;
	struct weft__dag_step *step;
	struct weft__dag_loop_step *other, **link;
};

struct weft_dag_run {
	weft_dag  *dag;
	weft_loop *loop;   /* a reference; or NULL */
	weft__a32  users, holders; /* invariant 6 */
	weft__a32  state;  /* WEFT__DAG_* */
	bool       collect, timed;
	bool       traced; /* made while a trace was recorded: it keeps times */
	bool       observed; /* nodes record their times; then the run is `timed`, too */
	bool       has_pools; /* it has entered its pools */
	bool       alone;  /* one thread runs all steps: invariant 7 */
	uint64_t   deadline_ns;
	weft_dag_run_opts opts;
	weft_op   *op;     /* the caller's, to be finished; or NULL */
	struct weft__dag_frame frame; /* its own frame */
	weft__a32  futex;  /* a waiting plain thread parks here while it is 0 */

	struct weft__lock lock;
	struct weft__dag_run_queue  run_queues[3]; /* by place; that of the loop has no pool */
	struct weft__dag_frame *frames;  /* all but its own */
	struct weft__dag_worker *timers;  /* workers with a timed attempt */
	struct weft__dag_list   sleepers; /* steps that wait for their next attempt */
	struct weft__dag_event *events, **events_end; /* of progress, to be reported */
	bool       waiter_parked;
	uint32_t   ended;   /* nodes; for on_progress */
	uint32_t   total;
	struct weft__dag_frame *bounded; /* frames with a deadline of their own */
	weft__a32  late;    /* late attempts that still run */
	weft__a32  waiting; /* steps that wait for a limit */

	/* Used with the loop; see dag_loop.c. */
	weft__a32  notified; /* WEFT__DAG_NOTIFY_* */
	struct weft__node_head node;
	weft_node  start;   /* starts it from another thread */
	weft_op    keep_alive; /* of the loop, if there is no caller's op */
	weft_timer timer;
	struct weft__dag_loop_step *loop_steps;
	weft_abort *abort;  /* follows that of the options */
	weft_node  abort_node; /* its callback */
};

enum { WEFT__DAG_NEW, WEFT__DAG_GOING, WEFT__DAG_OVER }; /* state of a run */

/* --- dag_build.c, dag_check.c -------------------------------------------- */

/* The index of a node or input by its name, or -1. */
int64_t weft__dag_find(const weft_dag *dag, const char *name);

/* Check what can be seen of a node by itself, and copy it.  Returns 0, or an error with its
 * text. */
int weft__dag_copy_node(struct weft__dag_node *to, struct weft__dag_more *more,
                        const weft_dag_node *from);
void weft__dag_drop_node(struct weft__dag_more *more);

/* The type of the value that dependents find: the node's own, or a list. */
const weft_type *weft__dag_type_of(const weft_dag_node *node);

/* The level of a priority. */
uint8_t weft__dag_level(const weft_dag *dag, int priority);

struct weft__dag_limit *weft__dag_find_limit(const weft_dag *dag, const char *name);

void weft__dag_unref(weft_dag *dag);

/* --- dag_list.c, dag_write.c --------------------------------------------- */

/* Add a checked template to the list. */
void weft__dag_enlist(weft_dag *dag);

/* A fork handler: no thread of the parent holds the list's lock in the child. */
void weft__dags_forked(void);

/* Remove a template from the list. */
void weft__dag_delist(weft_dag *dag);

/* Should a run that is made now record the times of its nodes?  Record one time. */
bool weft__dag_is_observed(void);
void weft__dag_measure(struct weft__dag_node *node, uint64_t took_ns, bool failed);

/* Write a template as JSON, with its measurements.  Returns 0, or WEFT_ENOMEM. */
int weft__dag_write_measured(const weft_dag *dag, weft_value *out);

/* --- dag_trace.c --------------------------------------------------------- */

/* In a traced run: the caller has run a step; a group has ended. */
void weft__dag_trace_step(const struct weft__dag_step *step, bool failed);
void weft__dag_trace_group(const struct weft__dag_frame *group);

/* --- dag_run.c ----------------------------------------------------------- */

void weft__dag_run_ref(weft_dag_run *run);
void weft__dag_run_unref(weft_dag_run *run);

/* The last step has ended.  Called by the worker that lowered frame->left to 0. */
void weft__dag_run_over(struct weft__dag_worker *worker);

/* Notify the caller of the end of a run.  `worker` has ended it; or NULL. */
void weft__dag_run_notify(weft_dag_run *run, const struct weft__dag_worker *worker);

/* Keep the pools of a run from being freed until the run ends. */
void weft__dag_enter_pools(weft_dag_run *run);

/* Fill the steps of a frame. */
void weft__dag_frame_init(struct weft__dag_frame *frame, weft_dag_run *run,
                          const weft_dag *dag);

/* Make the first steps of a run ready.  The worker runs or queues them later. */
void weft__dag_start(struct weft__dag_worker *worker);

/* End a run early, for an op or a thread. */
void weft__dag_run_end(weft_dag_run *run, int why);

/* Make the first steps of a frame ready. */
void weft__dag_frame_start(struct weft__dag_worker *worker, struct weft__dag_frame *frame);

/* --- dag_worker.c -------------------------------------------------------- */

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

/* Lower a count and return the old value: atomically, with acquire and release; or plainly,
 * by invariant 7. */
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

/* The inputs of a step are complete, or its next attempt is due. */
void weft__dag_ready(struct weft__dag_worker *worker, struct weft__dag_step *step);

/* An attempt has ended with `rc`.  Takes `out`, its value if `rc` is no error. */
void weft__dag_finish(struct weft__dag_worker *worker, struct weft__dag_step *step, int rc,
                      weft_value out);

/* A step has ended in that state. */
void weft__dag_end_step(struct weft__dag_worker *worker, struct weft__dag_step *step,
                        weft_dag_state state, int error);

/* Do what ended steps have left to do: queue ready steps, drop others, open groups. */
void weft__dag_settle(struct weft__dag_worker *worker);

/* The same, and subtract all ended steps from frame->left.  Afterwards the worker holds nothing
 * of the run but worker->next and worker->taken. */
void weft__dag_flush(struct weft__dag_worker *worker);

/* Subtract the ended steps from their frame's `left`, unless they are of `frame`.  That may end
 * groups, and so steps of other frames. */
void weft__dag_switch_frame(struct weft__dag_worker *worker, const struct weft__dag_frame *frame);

/* One more step of a frame has ended. */
static inline void
weft__dag_count(struct weft__dag_worker *worker, struct weft__dag_frame *frame)
{
	weft__dag_switch_frame(worker, frame);
	worker->frame = frame;
	worker->ended++;
}

/* Stop a frame with an error. */
void weft__dag_stop(struct weft__dag_worker *worker, struct weft__dag_frame *frame, int error);

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

/* --- dag_run_queue.c ----------------------------------------------------- */

#define WEFT__DAG_UNKNOWN_NS 100000u /* for a step that has never run */
#define WEFT__DAG_BATCH_NS   2000u   /* of steps that a worker holds at once */

/* The expected time of a step. */
static inline uint64_t
weft__dag_cost(const struct weft__dag_step *step)
{
	uint32_t cost = weft__load(&step->node->cost, WEFT__RELAXED);

	return cost ? cost : WEFT__DAG_UNKNOWN_NS;
}

/* Prepare the run queues, in memory that comes with the run. */
size_t weft__dag_run_queues_size(const weft_dag *dag);
void   weft__dag_run_queues_init(weft_dag_run *run, void *memory);

/* Queue steps of any place, and call workers for them. */
void weft__dag_queue(struct weft__dag_worker *worker, struct weft__dag_list *steps);

/* The priority level of a step in the run queues.  Graphs inside of others have
 * priorities of their own. */
static inline uint32_t
weft__dag_level_of(const struct weft__dag_step *step)
{
	const weft_dag *dag = step->frame->run->dag;

	return step->frame->dag == dag
	               ? step->node->level
	               : weft__dag_level(dag, step->node->more->set.priority);
}

/* Take all steps out of the loop's run queue; under the run's lock. */
struct weft__dag_list weft__dag_take_all(struct weft__dag_run_queue *run_queue);

/* Run steps of a run queue until it is empty.  The worker is counted in its `active`. */
void weft__dag_work(struct weft__dag_worker *worker);

/* --- dag_step.c ---------------------------------------------------------- */

/* What a step does when it runs. */
enum { WEFT__DAG_CALLS, WEFT__DAG_ITEMS, WEFT__DAG_SUB };

static inline int
weft__dag_kind(const struct weft__dag_step *step)
{
	if (!(step->node->flags & WEFT__DAG_GROUP))
		return WEFT__DAG_CALLS;
	if (step->node->more->set.map && !step->item)
		return WEFT__DAG_ITEMS;
	return step->node->more->set.subgraph ? WEFT__DAG_SUB : WEFT__DAG_CALLS;
}

/* One attempt at a step: the weft_dag_step that its function gets. */
struct weft_dag_step {
	struct weft__dag_step *step;
	struct weft__dag_worker *worker;
	weft_value out;
	struct weft__dag_added *added; /* by its function, or NULL */
	uint64_t deadline_ns;
	uint64_t moved; /* inputs that were moved out, as bits */
	uint64_t begin_ns, end_ns; /* of its function, if the run is timed */
	uint32_t number;
};

/* Run one attempt at a step and finish it. */
void weft__dag_run_step(struct weft__dag_worker *worker, struct weft__dag_step *step);

/* What weft_check_canceled() returns to the functions of steps on this thread. */
int weft__dag_canceled(void *worker);

/* The deadline of an attempt that begins now. */
uint64_t weft__dag_deadline_of(const struct weft__dag_step *step);

/* The value of an input. */
weft_value *weft__dag_source(const struct weft__dag_step *step, size_t index);

/* --- dag_group.c --------------------------------------------------------- */

/* Open the group of a step.  Its dependents wait for the end of the group. */
void weft__dag_open_group(struct weft__dag_worker *worker, struct weft__dag_step *step);

/* The same for the nodes that an attempt has added; takes them and its output. */
void weft__dag_open_added(weft_dag_step *attempt);
void weft__dag_drop_added(struct weft__dag_added *added);

/* Remove the deadline of a frame; under the run's lock. */
void weft__dag_unbound(struct weft__dag_frame *frame);

/* All steps of a group have ended. */
void weft__dag_close_group(struct weft__dag_worker *worker, struct weft__dag_frame *frame);

/* Source `index` of a step in a frame of added nodes, or of a list's items. */
weft_value *weft__dag_group_source(const struct weft__dag_step *step, size_t index);

void weft__dag_free_frame(struct weft__dag_frame *frame);

/* A node by name among those that were added to a run, or NULL. */
struct weft__dag_step *weft__dag_find_added(const weft_dag_run *run, const char *name);

/* --- dag_loop.c ---------------------------------------------------------- */

enum {
	WEFT__DAG_NOTIFY_CHECK = 1 << 0, /* steps to start, timers to update, progress to report */
	WEFT__DAG_NOTIFY_OVER  = 1 << 1, /* the run has ended */
};

/* Notify the loop of a run, if it has one, that there is work; under the run's lock. */
void weft__dag_notify_loop(weft_dag_run *run, uint32_t what);

/* Begin a run: on the loop's thread, where a pending op keeps the loop alive; or from another
 * thread.  begin_there() returns 0, or WEFT_ESHUTDOWN if the run was not begun. */
void weft__dag_begin_here(weft_dag_run *run);
int  weft__dag_begin_there(weft_dag_run *run);

/* Let a step wait for its next attempt. */
void weft__dag_sleep(struct weft__dag_worker *worker, struct weft__dag_step *step);

/* Record the new state of a step for on_progress, if there is one.  Report what was recorded. */
void weft__dag_record_event_slow(const struct weft__dag_step *step);
void weft__dag_report_events(weft_dag_run *run);

static inline void
weft__dag_record_event(const struct weft__dag_step *step)
{
	if (step->frame->run->opts.on_progress)
		weft__dag_record_event_slow(step);
}

/* --- dag_limit.c --------------------------------------------------------- */

/* Take a slot for a step whose node has a limit; false if the step was queued for a slot. */
bool weft__dag_enter_limit(struct weft__dag_step *step);

/* Free the slot of a step; the next waiting step gets it, and is ready.  leave_late() does so for
 * a late attempt, whose step may have another attempt by now. */
void weft__dag_leave_limit(struct weft__dag_worker *worker, struct weft__dag_step *step);
void weft__dag_leave_late(struct weft__dag_worker *worker, const struct weft__dag_step *step);

/* Remove the stopped steps of the worker's run from the queues of a template's limits. */
void weft__dag_sweep_limits(struct weft__dag_worker *worker, const weft_dag *dag);

#endif
