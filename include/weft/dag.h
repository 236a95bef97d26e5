/* weft/dag.h - work as a graph of steps, run on loops and pools.
 *
 * A weft_dag is a template: built once, checked, then shared by any number of runs.  A
 * weft_dag_run is one execution: it takes inputs, runs every node at most once per attempt,
 * passes values along the edges, and yields results.  A loop never runs CPU steps.  A plain
 * thread that waits for a run takes part in it.
 *
 *   1. A node begins when all nodes that it names as inputs have ended.  A node whose condition
 *      is false is skipped, and its successors get "no value" as that input.  If a node fails,
 *      its successors never begin.
 *   2. Fail fast: after the first error no step begins.  The run cancels its running steps:
 *      weft_check_canceled() and suspending calls in them return an error.  Then it waits until
 *      they have returned.  So a run that has ended uses no memory of its caller.  With
 *      collect_errors, all nodes that do not depend on a failed node still run.
 *   3. The deadline of a step is the run's deadline or the end of the step's own timeout,
 *      whichever is earlier.  If a step on a pool has a timeout and has not returned at its
 *      deadline, it counts as failed, although it still runs.  Its later result is dropped and
 *      counted (`late`), and the run does not end before the step returns.  When a subgraph
 *      reaches its timeout, the run cancels the steps of the subgraph and waits for them.
 *   4. Steps that have always been quick wake no other thread: one thread runs a graph of them.
 */
#ifndef WEFT_DAG_H
#define WEFT_DAG_H

#include <weft/abort.h>
#include <weft/base.h>
#include <weft/op.h>
#include <weft/value.h>
#include <weft/work.h>

WEFT_BEGIN

typedef struct weft_dag      weft_dag;
typedef struct weft_dag_run  weft_dag_run;
typedef struct weft_dag_step weft_dag_step; /* one attempt at a node in a run */

typedef enum weft_dag_place {
	WEFT_DAG_CPU,       /* the CPU pool */
	WEFT_DAG_LOOP,      /* a threadlet on the run's loop: may suspend */
	WEFT_DAG_BLOCKING,  /* the blocking pool */
} weft_dag_place;

/* The work of a node.  It reads the inputs, sets the output, and returns >= 0 or an error. */
typedef int (*weft_dag_fn)(weft_dag_step *step, void *arg);

typedef struct weft_dag_node {
	const char        *name;
	weft_dag_fn        fn;           /* set this or `subgraph` */
	void              *arg;          /* caller's; the same for all runs */
	/* A subgraph that runs as this node; borrowed until this template is freed.  Its inputs
	 * are the node's, in order; its value is that of its only node without successors. */
	weft_dag          *subgraph;
	const char *const *inputs;       /* names of nodes and inputs, NULL-terminated */
	/* Types of the inputs, in order; NULL, or an entry that is NULL: any type. */
	const weft_type *const *input_types;
	const weft_type   *type;         /* type of the output; NULL: no value */
	weft_dag_place     place;
	bool             (*condition)(weft_dag_step *step, void *arg); /* false: skip */
	/* Run once for each item of the first input, a list.  `type` is the type of one
	 * result; the output is the list of results in the order of the items. */
	bool               map;
	bool               optional;     /* if the node fails, its output is `fallback` */
	weft_value         fallback;     /* taken; with `map` a list; each run that needs it shares
	                                  * it */
	int                priority;     /* higher runs first; a template and its subgraphs can have
	                                  * at most 16 different priorities */
	uint32_t           retries;      /* attempts after the first one */
	uint64_t           backoff_ns;   /* delay before the first retry; doubles, with jitter */
	uint64_t           timeout_ns;   /* of one attempt; default: the run's deadline */
	const char        *limit;        /* name of the limit that applies to this node */
	uint64_t           spare[4];     /* must be zero: room for later versions */
} weft_dag_node;

/* Make an empty template.
 * Returns the template; NULL if memory is exhausted.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_dag *weft_dag_new(const char *name);

/* Free a template.  Takes it on success; accepts NULL.
 * Returns 0, WEFT_EBUSY while a run or another template uses it.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_free(weft_dag *dag);

/* add_input: declare an input of each run (type NULL: any).  add: declare a node, whose inputs
 * may be declared later.  set_limit: declare how many nodes with that `limit` may run at once,
 * over all runs.  Names are copied.
 * Return the index (set_limit: 0), WEFT_EEXIST, WEFT_EINVAL, WEFT_ENOMEM, WEFT_EBUSY once the
 * template is checked.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_add_input(weft_dag *dag, const char *name,
                                const weft_type *type);
WEFT_API int weft_dag_add(weft_dag *dag, const weft_dag_node *node);
WEFT_API int weft_dag_set_limit(weft_dag *dag, const char *limit, uint32_t max);

/* Check that a template has no cycles, no missing inputs, matching types and declared limits, and
 * freeze it: it cannot change after that.
 * Returns 0, also if it was already checked; WEFT_EINVAL with the cycle or the names concerned
 * in weft_detail(); WEFT_ENOMEM.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_check(weft_dag *dag);

struct weft_dag_stats {
	uint64_t runs;     /* runs made */
	uint64_t failed;   /* runs that have ended with an error */
	uint64_t retries;  /* attempts after the first */
	uint64_t late;     /* results dropped because they came after their deadline */
	uint32_t users;    /* now: runs that are not freed, and templates that contain this one */
	uint64_t spare[4]; /* room for later versions */
};

/* Read the counters of a template.
 * Returns 0 and fills `out`, WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_stats(const weft_dag *dag, struct weft_dag_stats *out);

/* --- a step, inside its function ----------------------------------------- */

/* Get input `index`, borrowed until the step returns.  With `map`, input 0 is the item.
 * Returns the value; "no value" if the input's node was skipped or has no value, or if there is
 * no such input.
 * Thread: the step's.  Blocks: no.  Since: 0.1. */
WEFT_API const weft_value *weft_dag_step_in(weft_dag_step *step, size_t index);

/* Take ownership of input `index`.  The value is shared if something else may still need it
 * (another node, or another attempt at this node, even one that is late); else it is moved.
 * Returns 0 and fills `out`, WEFT_EPERM if it cannot be shared, WEFT_EINVAL.
 * Thread: the step's.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_step_take(weft_dag_step *step, size_t index, weft_value *out);

/* Set the output.  If called again, the new value replaces the previous one.  Takes `value`.
 * Returns 0, WEFT_EINVAL if the type of `value` is not that of the node; if `value` is an error
 * value, such as of weft_value_text() without memory, the error that it holds.
 * Thread: the step's.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_step_out(weft_dag_step *step, weft_value value);

/* Add a node to this run only; it begins when this step has returned.  Its inputs may be this
 * node, the inputs of this node, and nodes that this step has added before.  The successors of
 * this node wait for it.
 * Returns 0, WEFT_EINVAL, WEFT_EEXIST, WEFT_ENOMEM.
 * Thread: the step's.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_step_add(weft_dag_step *step, const weft_dag_node *node);

/* Get the run of the step, the number of the attempt (from 0), and the step's deadline.
 * Thread: the step's.  Blocks: no.  Since: 0.1. */
WEFT_API weft_dag_run *weft_dag_step_run(weft_dag_step *step);
WEFT_API uint32_t weft_dag_step_attempt(weft_dag_step *step);
WEFT_API uint64_t weft_dag_step_deadline(weft_dag_step *step);

/* --- a run ---------------------------------------------------------------- */

typedef enum weft_dag_state {
	WEFT_DAG_WAITING, WEFT_DAG_STARTED, WEFT_DAG_RETRYING, WEFT_DAG_DONE,
	WEFT_DAG_FAILED, WEFT_DAG_SKIPPED, /* SKIPPED: the node's condition was false */
	WEFT_DAG_DROPPED,                  /* the node never began, because another one failed */
} weft_dag_state;

typedef struct weft_dag_progress {
	const char    *node;
	weft_dag_state state;
	int            error;       /* of an ended node; for RETRYING, why the attempt failed */
	uint32_t       done, total; /* nodes that have ended; nodes known so far */
} weft_dag_progress;

typedef struct weft_dag_run_opts {
	weft_loop        *loop;           /* default: the caller's, else none */
	weft_pool        *cpu;            /* default: the loop's; without a loop none */
	weft_pool        *blocking;       /* default: as for `cpu` */
	bool              collect_errors; /* continue after a failure; default: fail fast */
	bool              trace;          /* keep times for weft_dag_run_write() */
	const weft_abort *abort;          /* cancels the run; borrowed until the run ends */
	void             *context;        /* caller's: weft_dag_run_context() */
	/* Called for each change of state: on the loop, or without a loop on the thread that
	 * waits for the run.  Of several changes in quick succession it may get only the last. */
	void            (*on_progress)(const weft_dag_progress *progress, void *arg);
	void             *arg;            /* of on_progress */
	uint64_t          spare[4];       /* must be zero: room for later versions */
} weft_dag_run_opts;

/* Make a run of a checked template.  Without a loop there can be no LOOP nodes, no BLOCKING
 * nodes (unless `blocking` is a pool), no timeouts, no backoffs and no abort signal.  Without a
 * CPU pool the thread that waits for the run executes the CPU nodes.
 * Returns the run; NULL if memory is exhausted, or if the options do not fit the template (see
 * weft_detail()).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_dag_run *weft_dag_run_new(weft_dag *dag,
                                        const weft_dag_run_opts *opts);

/* Set an input; takes `value`.
 * Returns 0, WEFT_ENOENT, WEFT_EINVAL (type), WEFT_EBUSY once started.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_run_set(weft_dag_run *run, const char *input,
                              weft_value value);

/* Start the run.  wait returns when the run has ended; in a callback it returns WEFT_ENOSUSPEND,
 * also with WEFT_NOWAIT.  op finishes `op` with the outcome; a run without a loop gets that of
 * `op`.  The deadline applies to every step.  An input that was not set is "no value".
 * wait returns 0, the first error with the node's name in weft_detail(), WEFT_EALREADY if the
 * run was already started; op returns as every start (weft/op.h).
 * Thread: any; loop of `op`.  Blocks: waits; no.  Since: 0.1. */
WEFT_API int weft_dag_run_wait(weft_dag_run *run, uint64_t deadline_ns);
WEFT_API int weft_dag_run_op(weft_dag_run *run, weft_op *op, uint64_t deadline_ns);

/* Cancel a run: no further step begins, running steps are canceled as in invariant 2, and the
 * run ends when they have returned.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_dag_run_cancel(weft_dag_run *run);

/* Get the output of `node`, borrowed until the run is freed; "no value" if the node has no
 * output, or if a successor has taken it.
 * Returns 0 and fills `out`; the node's error; WEFT_ENOENT if there is no such node or it was
 * skipped, WEFT_ECANCELED if it never began, WEFT_EBUSY before the run has ended.
 * Thread: any, after the end.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_run_get(weft_dag_run *run, const char *node,
                              weft_value *out);

/* Get the `context` of the run's options.
 * Returns the pointer.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void *weft_dag_run_context(weft_dag_run *run);

enum { WEFT_DAG_DOT, WEFT_DAG_JSON, WEFT_DAG_TRACE };

/* Describe a template or a run as text for Graphviz (WEFT_DAG_DOT) or as JSON.  A run that has
 * ended and was made with `trace` can also be written as a Chrome trace, which Perfetto reads.
 * Return 0 and fill `out`, which the caller drops (weft_type_text); WEFT_EINVAL, WEFT_EBUSY
 * while the run has not ended, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_write(const weft_dag *dag, int format, weft_value *out);
WEFT_API int weft_dag_run_write(weft_dag_run *run, int format, weft_value *out);

/* Describe the next checked template of the process, in the order of their IDs: the one after
 * `*cursor` (begin with 0).  Sets `*cursor` to its ID.  The text is the JSON of weft_dag_write()
 * with these members more: "id"; the counters "started", "failed", "retries" and "late" of
 * struct weft_dag_stats; "running", the number of runs that are not freed; and for each node
 * "count", "failed", "mean_ns", "max_ns" and "last_ns" of its attempts, measured while runs are
 * observed (a map or subgraph is measured as a whole).
 * Returns 1 and fills `out`, which the caller drops (weft_type_text); 0 at the end,
 * WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_list(uint64_t *cursor, weft_value *out);

/* Measure the times of nodes in all runs, of any template, that are made before `until_ns`.
 * Another call can extend the time.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_dag_observe(uint64_t until_ns);

/* Free a run.  If it still runs, it is canceled, and its memory is freed after its last step.
 * Accepts NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_dag_run_free(weft_dag_run *run);

WEFT_END
#endif
