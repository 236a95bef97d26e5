/* weft/dag.h - work as a graph of steps, over loops and pools.
 *
 * A weft_dag is a template: built once, checked, then shared by any number of runs.
 * A weft_dag_run is one request: inputs in, every node at most once per attempt, values
 * along the edges, results out.  A loop never runs CPU steps; a plain thread that waits
 * for a run takes part in it.
 *
 *   1. A node begins when all nodes that it names as inputs have ended.  One whose
 *      condition says no is skipped, and those behind it find "no value"; one that has
 *      failed takes along all behind it, which never begin.
 *   2. Fail fast: after the first error nothing begins, what runs is asked to end
 *      (weft_check_canceled(), or its suspending calls return) and waited for; so a run that
 *      has ended uses nothing of its caller's any more.  With collect_errors all that
 *      does not stand behind an error still runs.
 *   3. The deadline of a step is the sooner one of the run's and its own timeout.  When it
 *      comes, a step on a pool is taken as failed although it still runs: what it gives
 *      later is dropped and counted, and the run's end waits for it.  The timeout of a
 *      graph as a node ends what runs in it as cancelling does, and waits for that.
 *   4. Steps that were always quick wake no other thread: a graph of them is run by one.
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
typedef struct weft_dag_step weft_dag_step; /* one attempt at one node in one run */

typedef enum weft_dag_place {
	WEFT_DAG_CPU,       /* the CPU pool */
	WEFT_DAG_LOOP,      /* a threadlet on the run's loop: may suspend */
	WEFT_DAG_BLOCKING,  /* the blocking pool */
} weft_dag_place;

/* A node's work: read inputs, set the output, return >= 0 or an error. */
typedef int (*weft_dag_fn)(weft_dag_step *step, void *arg);

typedef struct weft_dag_node {
	const char        *name;
	weft_dag_fn        fn;           /* this, or `sub` */
	void              *arg;          /* caller's, for all runs */
	/* A whole graph as this node; borrowed until this template is freed.  Its inputs
	 * are the node's, in order; its value that of its one node without followers. */
	weft_dag          *sub;
	const char *const *inputs;       /* names of nodes and inputs, NULL-terminated */
	/* Of the inputs, in order; NULL, or one that is NULL: any. */
	const weft_type *const *input_types;
	const weft_type   *type;         /* of the output; NULL: no value */
	weft_dag_place     place;
	bool             (*when)(weft_dag_step *step, void *arg); /* false: skipped */
	/* Run for each item of the first input, a list; `type` is of one, the output a list
	 * of them in their order. */
	bool               each;
	bool               optional;     /* failure yields `fallback`; of `each`, a list */
	weft_value         fallback;     /* shared with each run that needs it; taken */
	int                priority;     /* higher first; at most 16, with those of `sub`s */
	uint32_t           retries;      /* after the first attempt */
	uint64_t           backoff_ns;   /* before the first retry; doubles, with jitter */
	uint64_t           timeout_ns;   /* of one attempt; default: the run's deadline */
	const char        *limit;        /* counts against this named limit */
	uint64_t           spare[4];
} weft_dag_node;

/* Make an empty template; NULL without memory.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_dag *weft_dag_new(const char *name);

/* Free it.  Takes it on success; accepts NULL.
 * Returns 0, WEFT_EBUSY while a run or another template uses it.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_free(weft_dag *dag);

/* Declare an input of each run (type NULL: any); a node, whose inputs may be declared
 * later; how many nodes with that `limit` run at once, over all runs.  Copy their names.
 * Return the index (limit: 0), WEFT_EEXIST, WEFT_EINVAL, WEFT_ENOMEM, WEFT_EBUSY once
 * checked.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_add_input(weft_dag *dag, const char *name,
                                const weft_type *type);
WEFT_API int weft_dag_add(weft_dag *dag, const weft_dag_node *node);
WEFT_API int weft_dag_set_limit(weft_dag *dag, const char *limit, uint32_t max);

/* Check and freeze: no cycles, no missing inputs, types agree, limits are known.
 * Returns 0, also when it was checked before; WEFT_EINVAL with the path of the cycle or
 * the names concerned; WEFT_ENOMEM.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_check(weft_dag *dag);

struct weft_dag_stats {
	uint64_t runs;     /* that were made */
	uint64_t failed;   /* that have ended with an error */
	uint64_t retries;  /* attempts after the first */
	uint64_t late;     /* results that came after their deadline, and were dropped */
	uint32_t users;    /* runs not freed, and templates that it is part of, now */
	uint64_t spare[4];
};

/* What has happened with a template.
 * Returns 0 and fills `out`, WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_stats(const weft_dag *dag, struct weft_dag_stats *out);

/* --- a step, inside its function ----------------------------------------- */

/* Input `index`, borrowed until return; of a skipped node, and past the last, "no
 * value".  For `each`, the item is input 0.
 * Thread: the step's.  Blocks: no.  Since: 0.1. */
WEFT_API const weft_value *weft_dag_step_in(weft_dag_step *step, size_t index);

/* Have input `index` as one's own: moved, if nobody else can want it (another node, another
 * attempt, one that is late), else shared.
 * Returns 0 and fills `out`, WEFT_EPERM if it cannot be shared, WEFT_EINVAL.
 * Thread: the step's.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_step_take(weft_dag_step *step, size_t index, weft_value *out);

/* Set the output, the last one counts; takes `value`.
 * Returns 0, WEFT_EINVAL if its type is not the node's.
 * Thread: the step's.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_step_out(weft_dag_step *step, weft_value value);

/* Add a node to this run only, which begins when this step has returned; its inputs
 * are this node, its inputs, and nodes that it has added before.  The step's followers
 * wait for it.
 * Returns 0, WEFT_EINVAL, WEFT_EEXIST, WEFT_ENOMEM.
 * Thread: the step's.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_step_add(weft_dag_step *step, const weft_dag_node *node);

/* The run that it is of, the number of the attempt from 0, and when it has to be done.
 * Thread: the step's.  Blocks: no.  Since: 0.1. */
WEFT_API weft_dag_run *weft_dag_step_run(weft_dag_step *step);
WEFT_API uint32_t weft_dag_step_attempt(weft_dag_step *step);
WEFT_API uint64_t weft_dag_step_deadline(weft_dag_step *step);

/* --- a run ---------------------------------------------------------------- */

typedef enum weft_dag_state {
	WEFT_DAG_WAITING, WEFT_DAG_STARTED, WEFT_DAG_RETRYING, WEFT_DAG_DONE,
	WEFT_DAG_FAILED, WEFT_DAG_SKIPPED, /* by its condition */
	WEFT_DAG_DROPPED,                  /* never begun, since something failed */
} weft_dag_state;

typedef struct weft_dag_progress {
	const char    *node;
	weft_dag_state state;
	int            error;       /* of what ended; of RETRYING, why the attempt failed */
	uint32_t       done, total; /* nodes that have ended; that are known by now */
} weft_dag_progress;

typedef struct weft_dag_run_opts {
	weft_loop        *loop;           /* default: the caller's, else none */
	weft_pool        *cpu;            /* default: the loop's; without a loop none */
	weft_pool        *blocking;       /* the same */
	bool              collect_errors; /* go on after a failure; default: fail fast */
	bool              trace;          /* keep times for weft_dag_run_write() */
	const weft_abort *abort;          /* cancels the run; borrowed until its end */
	void             *context;        /* caller's: weft_dag_run_context() */
	/* Tells of each change, on the loop, without one on the thread that waits; of what
	 * follows each other closely maybe the last alone. */
	void            (*on_progress)(const weft_dag_progress *progress, void *arg);
	void             *arg;            /* of on_progress */
	uint64_t          spare[4];
} weft_dag_run_opts;

/* Make a run of a checked template; NULL without memory, or with options that do not
 * fit it (weft_detail()).  Without a loop there can be no LOOP or BLOCKING nodes (but
 * for a pool), timeouts and backoffs; without a pool CPU nodes are run by the thread
 * that waits.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_dag_run *weft_dag_run_new(weft_dag *dag,
                                        const weft_dag_run_opts *opts);

/* Set an input; takes `value`.
 * Returns 0, WEFT_ENOENT, WEFT_EINVAL (type), WEFT_EBUSY once started.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_run_set(weft_dag_run *run, const char *input,
                              weft_value value);

/* Run to the end: wait for it; or as an op, which finishes with the outcome.  The
 * deadline bounds every step.  An input that was not set is "no value".
 * Return 0, the first error with the node's name in weft_detail(), WEFT_EALREADY if it
 * was started before; the op: as every start.
 * Thread: any; loop of `op`.  Blocks: waits; no.  Since: 0.1. */
WEFT_API int weft_dag_run_wait(weft_dag_run *run, uint64_t deadline_ns);
WEFT_API int weft_dag_run_op(weft_dag_run *run, weft_op *op, uint64_t deadline_ns);

/* Cancel: no new steps; those in flight are asked to end and waited for.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_dag_run_cancel(weft_dag_run *run);

/* The output of `node`, borrowed until the run is freed; "no value" if it has none, or
 * if a follower has taken it.
 * Returns 0, the node's error, WEFT_ENOENT if there is none of that name or it was
 * skipped, WEFT_ECANCELED if it was never begun, WEFT_EBUSY before the end.
 * Thread: any, after the end.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_run_get(weft_dag_run *run, const char *node,
                              weft_value *out);

/* The caller's, of the options.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void *weft_dag_run_context(weft_dag_run *run);

enum { WEFT_DAG_DOT, WEFT_DAG_JSON, WEFT_DAG_TRACE };

/* Describe a template, or a run, as text for Graphviz or as JSON; of a run that has
 * ended and was made with `trace` also as a Chrome trace, which Perfetto reads.
 * Return 0 and fill `out`, which the caller drops (weft_type_text); WEFT_EINVAL,
 * WEFT_EBUSY while it runs, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_write(const weft_dag *dag, int format, weft_value *out);
WEFT_API int weft_dag_run_write(weft_dag_run *run, int format, weft_value *out);

/* Write the template that was checked next after number `*cursor` (begin with 0), which
 * becomes its number: the JSON of weft_dag_write(), with "number", the counts of
 * struct weft_dag_stats "started", "failed", "retries" and "late", and "running", the runs that
 * are not freed; and for each node, as seen while observed, "count", "failed", "mean_ns",
 * "max_ns" and "last_ns" of its attempts, of lists and graphs as a whole.
 * Returns 1 and fills `out`, which the caller drops (weft_type_text); 0 at the end,
 * WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dag_list(uint64_t *cursor, weft_value *out);

/* Have runs of all templates that are made before `until_ns` time their nodes; asked
 * again, that is prolonged.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_dag_observe(uint64_t until_ns);

/* Free it.  One that still runs is cancelled, and its memory goes with its last
 * step.  Accepts NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_dag_run_free(weft_dag_run *run);

WEFT_END
#endif
