/* run.h - running a DAG file: the definitions that the files of the tool share.
 *
 * The files: graph.c (builds a weft_dag from the file), node.c (one attempt at a node),
 * shell_node.c and redis_node.c (the two kinds of node), jobs.c (limits the number of commands),
 * dag_values.c (values as texts), show.c (output), state.c (saved results for --resume), dag_run.c
 * (startup and main loop).  The verb and its command line are in ../dag.c.
 *
 * Everything runs on one loop and so on one thread; only the commands run in parallel.
 */
#ifndef WEFT_DAG_RUN_H
#define WEFT_DAG_RUN_H

#include <base/base_bytes.h>
#include <stdio.h>
#include <weft/weft.h>
#include <weft/dag.h>
#include <weft/redis.h>
#include "file.h"
#include "hash.h"

#define OUTPUT_MAX ((size_t)16 << 20) /* bytes of one value */
#define WINDOW_MAX 1024u              /* nodes in progress, or waiting for a job */

struct dagrun;

/* --- jobs.c ---------------------------------------------------------------- */

struct waiter {
	struct waiter *next;
	int priority;
	bool granted;
	weft_event event;
};

/* Limits how many commands run at once.  The waiter with the highest priority goes first; among
 * equals, the oldest. */
struct jobs {
	uint32_t free;
	struct waiter *waiters;
};

/* Wait for a free job.  Returns 0, or the error that ended the wait. */
int  jobs_enter(struct jobs *jobs, int priority);
void jobs_leave(struct jobs *jobs);

/* --- show.c ---------------------------------------------------------------- */

enum show_mode { SHOW_QUIET, SHOW_LINES, SHOW_BAR };

/* The label of an attempt that is running. */
struct label {
	struct label *next, **link;
	char text[96];
	uint64_t begin_ns;
};

struct show {
	enum show_mode mode;
	uint32_t done, total;
	uint32_t taken;  /* nodes and items restored from the last run */
	bool drawn;      /* the current line of the terminal shows the bar */
	uint64_t begin_ns, drawn_ns;
	struct label *running, **running_end;
	weft_timer timer;
};

void show_begin(struct show *show, weft_loop *loop, enum show_mode mode);
void show_end(struct show *show);

void show_start(struct show *show, struct label *label);
void show_stop(struct show *show, struct label *label);

/* Print one line.  A note is also printed in quiet mode. */
void show_line(struct show *show, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void show_note(struct show *show, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Print one line of a command's output to `to`, with the label before it. */
void show_output(struct show *show, FILE *to, const char *label, weft_span line);

void show_progress(struct show *show, uint32_t done, uint32_t total);

/* --- state.c ---------------------------------------------------------------- */

struct state {
	int fd;              /* -1: no state is kept */
	char *path, *temporary;
	struct record *records;
	uint32_t count, *slots, mask; /* hash index of the records of the last run */
	struct bytes last;            /* the file of the last run */
};

/* Open the state file of the DAG file at `path`.  With `resume`, records of the last run can be
 * taken.  Returns 0, or an error with a text. */
int  state_open(struct state *state, const char *path, bool resume);

/* Save the result of a node under `key`. */
void state_put(struct state *state, const unsigned char *key, const weft_value *value);

/* Take the saved result of `key`; each record can be taken once.  Returns false if there is
 * none. */
bool state_take(struct state *state, const unsigned char *key, weft_value *out);

/* Close the state file, and remove it if `done`. */
void state_close(struct state *state, bool done);

/* --- dag_values.c ------------------------------------------------------------- */

/* A value as text, one line per item; "" if there is no value.  The text is borrowed from the
 * value, or allocated and stored in `made`, which the caller frees.  Returns NULL if out of
 * memory. */
const char *values_text(const weft_value *value, char **made);

/* The lines of a text, as a list. */
weft_value values_lines(const char *text);

/* --- graph.c ---------------------------------------------------------------- */

struct dagnode {
	struct dagrun *run;
	const struct dagfile_node *node;
	char *script;                  /* or NULL */
	unsigned char key[HASH_BYTES]; /* hash of its definition and its dependencies' keys */
};

/* Build run->dag from run->file.  Returns 0, or an error with a text. */
int  graph_make(struct dagrun *run);
void graph_free(struct dagrun *run);

/* --- node.c ----------------------------------------------------------------- */

/* One attempt at running a node. */
struct attempt {
	struct dagrun *run;
	struct dagnode *self;
	const struct dagfile_node *node;
	weft_dag_step *step;
	struct label label;
	weft_value out;
};

int  node_run(weft_dag_step *step, void *arg);
bool node_when(weft_dag_step *step, void *arg);

/* The value of one of the node's dependencies; NULL if it has none. */
const weft_value *attempt_value(struct attempt *attempt, const struct dagfile_ref *ref);

/* Expand the variables of a word.  Returns 0 or an error. */
int attempt_word(struct attempt *attempt, const struct dagfile_word *word,
                 struct bytes *out);

/* Convert a text to the type of output that the node specifies, and store it in attempt->out. */
int attempt_output(struct attempt *attempt, struct bytes *text);

int shell_run(struct attempt *attempt);

/* Send SIGKILL to all running commands. */
void shell_kill_all(struct dagrun *run);

int redis_run(struct attempt *attempt);

/* Close the connections to Redis.  Call it when no node is running. */
void redis_end(struct dagrun *run);

/* --- dag_run.c -------------------------------------------------------------- */

struct dagrun_opts {
	uint32_t jobs;
	uint64_t deadline_ns; /* measured from the start; 0: none */
	uint64_t grace_ns;    /* from SIGTERM to SIGKILL */
	bool keep_going, quiet, resume;
	const char *trace;    /* file to write, or NULL */
	const char *server;   /* overrides the file's; or NULL */
};

struct dagrun {
	const char *path;       /* of the file */
	char *folder;           /* directory of the file */
	struct dagfile *file;
	const char **values;    /* of its inputs */
	struct dagrun_opts opts;
	weft_loop *loop;
	weft_dag *dag;
	weft_dag_run *dag_run;
	struct dagnode *nodes;
	struct jobs jobs;
	struct show show;
	struct state state;
	struct shell *shells;   /* running commands */
	weft_redis *redis;      /* opened on first use */
	weft_watch watches[3];
	int signal;             /* the signal that ended the run, or 0 */
	uint32_t failures;      /* failures reported, without those that are retried or optional */
	int rc;
};

/* Run the file.  Returns an exit status. */
int dagrun_run(struct dagrun *run);

#endif
