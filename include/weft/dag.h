/* weft/dag.h - work as a graph of steps, run on loops and pools.
 *
 * A weft_dag is a template: built once, checked, then shared by any number of runs.  A
 * weft_dag_run is one execution: it takes inputs, runs every node at most once per attempt,
 * passes values along the edges, and yields results.  A loop never runs CPU steps.  A plain
 * thread that waits for a run takes part in it.
 *
 *   1. A node begins when all nodes that it names as inputs have ended.  A node whose condition
 *      is false is skipped, and its successors find "no value".  If a node fails, its
 *      successors never begin.
 *   2. Fail fast: after the first error no step begins.  Running steps are asked to end
 *      (weft_check_canceled() returns an error, or their suspending calls do), and the run waits
 *      for them.  So a run that has ended uses nothing of its caller's.  With collect_errors all
 *      nodes still run that do not depend on a failed one.
 *   3. The deadline of a step is the run's deadline or its own timeout, whichever is earlier.
 *      When it passes, a step on a pool counts as failed although it still runs: its later
 *      result is dropped and counted, and the run does not end before it returns.  The timeout
 *      of a subgraph cancels its steps and waits for them.
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

/* The work of a node: reads inputs, sets the output, returns >= 0 or an error. */
typedef int (*weft_dag_fn)(weft_dag_step *step, void *arg);

typedef struct weft_dag_node {
	const char        *name;
	weft_dag_fn        fn;           /* set this or `sub` */
	void              *arg;          /* caller's; the same for all runs */
	/* A subgraph that runs as this node; borrowed until this template is freed.  Its inputs
	 * are the node's, in order; its value is that of its only node without successors. */
	weft_dag          *sub;
	const char *const *inputs;       /* names of nodes and inputs, NULL-terminated */
	/* Types of the inputs, in order; NULL, or an entry that is NULL: any type. */
	const weft_type *const *input_types;
	const weft_type   *type;         /* type of the output; NULL: no value */
	weft_dag_place     place;
	bool             (*when)(weft_dag_step *step, void *arg); /* condition; false: skip */
	/* Map: run once for each item of the first input, a list.  `type` is the type of one
	 * result; the output is the list of results in the order of the items. */
	bool               each;
	bool               optional;     /* a failure yields `fallback`; with `each`, a list */
	weft_value         fallback;     /* shared with each run that needs it; taken */
	int                priority;     /* higher runs first; at most 16 different ones, with those
	                                  * of `sub`s */
	uint32_t           retries;      /* attempts after the first one */
	uint64_t           backoff_ns;   /* delay before the first retry; doubles, with jitter */
	uint64_t           timeout_ns;   /* of one attempt; default: the run's deadline */
	const char        *limit;        /* name of the limit that applies to this node */
	uint64_t           spare[4];
} weft_dag_node;

/* Make an empty template.
 * Returns the template, or NULL without memory.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_dag *weft_dag_new(const char *name);

/* Free a template.  Takes it on success; accepts NULL.
 * Returns 0, WEFT_EBUSY while a run or another template uses it.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_free(weft_dag *dag);

/* Declare an input of each run (type NULL: any); a node, whose inputs may be declared later;
 * and how many nodes with that `limit` may run at once, over all runs.  Names are copied.
 * Return the index (set_limit: 0), WEFT_EEXIST, WEFT_EINVAL, WEFT_ENOMEM, WEFT_EBUSY once
 * checked.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_add_input(weft_dag *dag, const char *name,
                                const weft_type *type);
WEFT_API int weft_dag_add(weft_dag *dag, const weft_dag_node *node);
WEFT_API int weft_dag_set_limit(weft_dag *dag, const char *limit, uint32_t max);

/* Check a template and freeze it: no cycles, no missing inputs, types agree, limits are
 * declared.
 * Returns 0, also if it was already checked; WEFT_EINVAL with the cycle or the names concerned
 * in weft_detail(); WEFT_ENOMEM.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_check(weft_dag *dag);

struct weft_dag_stats {
	uint64_t runs;     /* runs made */
	uint64_t failed;   /* runs that have ended with an error */
	uint64_t retries;  /* attempts after the first */
	uint64_t late;     /* results dropped because they came after their deadline */
	uint32_t users;    /* runs not freed, and templates that contain this one, now */
	uint64_t spare[4];
};

/* Read the counters of a template.
 * Returns 0 and fills `out`, WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_stats(const weft_dag *dag, struct weft_dag_stats *out);

/* --- a step, inside its function ----------------------------------------- */

/* Get input `index`, borrowed until the step returns; "no value" if that node was skipped, or
 * past the last input.  With `each`, input 0 is the item.
 * Returns the value.
 * Thread: the step's.  Blocks: no.  Since: 0.1. */
WEFT_API const weft_value *weft_dag_step_in(weft_dag_step *step, size_t index);

/* Take ownership of input `index`.  The value is moved if nothing else can need it (another
 * node, another attempt, one that is late), else shared.
 * Returns 0 and fills `out`, WEFT_EPERM if it cannot be shared, WEFT_EINVAL.
 * Thread: the step's.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_step_take(weft_dag_step *step, size_t index, weft_value *out);

/* Set the output; the last call counts.  Takes `value`.
 * Returns 0, WEFT_EINVAL if its type is not the node's.
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
	WEFT_DAG_FAILED, WEFT_DAG_SKIPPED, /* its condition was false */
	WEFT_DAG_DROPPED,                  /* never began, because another node failed */
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
	weft_pool        *blocking;       /* the same */
	bool              collect_errors; /* continue after a failure; default: fail fast */
	bool              trace;          /* keep times for weft_dag_run_write() */
	const weft_abort *abort;          /* cancels the run; borrowed until the run ends */
	void             *context;        /* caller's: weft_dag_run_context() */
	/* Called for each change, on the loop, or without a loop on the thread that waits.
	 * Changes in quick succession may be reported by the last one alone. */
	void            (*on_progress)(const weft_dag_progress *progress, void *arg);
	void             *arg;            /* of on_progress */
	uint64_t          spare[4];
} weft_dag_run_opts;

/* Make a run of a checked template.  Without a loop there can be no LOOP nodes, no BLOCKING
 * nodes (unless `blocking` is a pool), no timeouts, no backoffs and no abort signal.  Without a
 * pool the thread that waits runs the CPU nodes.
 * Returns the run, or NULL without memory, or if the options do not fit (weft_detail()).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_dag_run *weft_dag_run_new(weft_dag *dag,
                                        const weft_dag_run_opts *opts);

/* Set an input; takes `value`.
 * Returns 0, WEFT_ENOENT, WEFT_EINVAL (type), WEFT_EBUSY once started.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_run_set(weft_dag_run *run, const char *input,
                              weft_value value);

/* Start the run, and wait for its end or finish `op` with its outcome.  The deadline applies to
 * every step.  An input that was not set is "no value".
 * Return 0, the first error with the node's name in weft_detail(), WEFT_EALREADY if it was
 * already started; the op: as every start (weft/op.h).
 * Thread: any; loop of `op`.  Blocks: waits; no.  Since: 0.1. */
WEFT_API int weft_dag_run_wait(weft_dag_run *run, uint64_t deadline_ns);
WEFT_API int weft_dag_run_op(weft_dag_run *run, weft_op *op, uint64_t deadline_ns);

/* Cancel a run: no step begins; running steps are asked to end, and the run waits for them.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_dag_run_cancel(weft_dag_run *run);

/* Get the output of `node`, borrowed until the run is freed; "no value" if it has none, or if a
 * successor has taken it.
 * Returns 0, the node's error, WEFT_ENOENT if there is no such node or it was skipped,
 * WEFT_ECANCELED if it never began, WEFT_EBUSY before the end.
 * Thread: any, after the end.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_run_get(weft_dag_run *run, const char *node,
                              weft_value *out);

/* Get the `context` of the run's options.
 * Returns the pointer.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void *weft_dag_run_context(weft_dag_run *run);

enum { WEFT_DAG_DOT, WEFT_DAG_JSON, WEFT_DAG_TRACE };

/* Describe a template or a run as text for Graphviz or as JSON; a run that has ended and was
 * made with `trace` also as a Chrome trace, which Perfetto reads.
 * Return 0 and fill `out`, which the caller drops (weft_type_text); WEFT_EINVAL, WEFT_EBUSY
 * while it runs, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_write(const weft_dag *dag, int format, weft_value *out);
WEFT_API int weft_dag_run_write(weft_dag_run *run, int format, weft_value *out);

/* Describe the checked template with the next number after `*cursor` (begin with 0), and set
 * `*cursor` to that number.  The text is the JSON of weft_dag_write() with "number"; the
 * counters "started", "failed", "retries" and "late" of struct weft_dag_stats; "running", the runs
 * that are not freed; and for each node, as measured while observed, "count", "failed",
 * "mean_ns", "max_ns" and "last_ns" of its attempts (of a map or subgraph as a whole).
 * Returns 1 and fills `out`, which the caller drops (weft_type_text); 0 at the end,
 * WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_list(uint64_t *cursor, weft_value *out);

/* Make all runs that are made before `until_ns`, of any template, time their nodes.  Another
 * call can extend the time.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_dag_observe(uint64_t until_ns);

/* Free a run.  If it still runs, it is canceled, and its memory is freed after its last step.
 * Accepts NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_dag_run_free(weft_dag_run *run);

WEFT_END
#endif
