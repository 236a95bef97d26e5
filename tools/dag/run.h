/* run.h - running a DAG file: what the files of the tool share.
 *
 * The files: graph.c (a file as a weft_dag), node.c (one attempt at a node), shell_node.c
 * and redis_node.c (what it does), jobs.c (who may), gathered.c (values as texts), show.c (what
 * is seen of it), state.c (what is kept for --resume), run.c (all of it together).  The
 * verb and its words are in ../dag.c.
 *
 * All of it is on one loop and so on one thread; what runs in parallel are the commands.
 */
#ifndef WEFT_DAG_RUN_H
#define WEFT_DAG_RUN_H

#include <stdio.h>
#include <weft/weft.h>
#include <weft/dag.h>
#include <weft/redis.h>
#include "file.h"
#include "hash.h"

#define OUTPUT_MAX ((size_t)16 << 20) /* bytes of one value */
#define WINDOW_MAX 1024u              /* nodes that are begun, and wait for a job */

struct dagrun;

/* --- jobs.c ---------------------------------------------------------------- */

struct waiter {
	struct waiter *next;
	int priority;
	bool granted;
	weft_event event;
};

/* How many commands run at once: of those that wait the one with the highest priority
 * goes first, and of these the oldest. */
struct jobs {
	uint32_t free;
	struct waiter *waiters;
};

/* 0, or why the wait has ended. */
int  jobs_enter(struct jobs *jobs, int priority);
void jobs_leave(struct jobs *jobs);

/* --- show.c ---------------------------------------------------------------- */

enum show_mode { SHOW_QUIET, SHOW_LINES, SHOW_BAR };

/* Something that runs now, and is named so. */
struct label {
	struct label *next, **link;
	char text[96];
	uint64_t begin_ns;
};

struct show {
	enum show_mode mode;
	uint32_t done, total;
	uint32_t taken;  /* nodes and items that are from the last run */
	bool drawn;      /* there is a bar in this line */
	uint64_t begin_ns, drawn_ns;
	struct label *running, **running_end;
	weft_timer timer;
};

void show_begin(struct show *show, weft_loop *loop, enum show_mode mode);
void show_end(struct show *show);

void show_start(struct show *show, struct label *label);
void show_stop(struct show *show, struct label *label);

/* One line about something; a note also if all is to be quiet. */
void show_line(struct show *show, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void show_note(struct show *show, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* What a command has said, to that file: whole lines, with the name before. */
void show_said(struct show *show, FILE *to, const char *label, weft_span line);

void show_progress(struct show *show, uint32_t done, uint32_t total);

/* --- state.c ---------------------------------------------------------------- */

struct state {
	int fd;              /* -1: none is kept */
	char *path, *temporary;
	struct record *records;
	uint32_t count, *slots, mask; /* those of the last run */
	char *bytes;
};

/* Open the state at `path`.  With `resume` what is in it can be taken.  Returns 0, or an
 * error with its text. */
int  state_open(struct state *state, const char *path, bool resume);

/* Keep what a node has come to, under that key. */
void state_put(struct state *state, const unsigned char *key, const weft_value *value);

/* Take it, once; false if there is none. */
bool state_take(struct state *state, const unsigned char *key, weft_value *out);

/* The end: it is removed, if `done`. */
void state_close(struct state *state, bool done);

/* --- gathered.c ----------------------------------------------------------------- */

/* A value as a text, its items in lines of their own; "" if there is none.  Borrowed from
 * the value, or made, and then in `made`, which is the caller's to free.  NULL: no memory. */
const char *gathered_of(const weft_value *value, char **made);

/* A text by its lines, as a list. */
weft_value gathered_lines(const char *text);

/* A text that grows. */
struct gathered {
	char *data; /* NUL-terminated, or NULL */
	size_t size, room;
};
int  gathered_add(struct gathered *text, const void *data, size_t size);
void gathered_free(struct gathered *text);

/* --- graph.c ---------------------------------------------------------------- */

struct dagnode {
	struct dagrun *run;
	const struct dagfile_node *node;
	char *script;                  /* or NULL */
	unsigned char key[HASH_BYTES]; /* of its definition, and all before it */
};

/* Make run->dag of run->file; 0, or an error with its text. */
int  graph_make(struct dagrun *run);
void graph_free(struct dagrun *run);

/* --- node.c ----------------------------------------------------------------- */

/* One attempt. */
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

/* The value of a node among those before it, by its reference; NULL if it has none. */
const weft_value *attempt_value(struct attempt *attempt, const struct dagfile_ref *ref);

/* A word with its values put in; 0, or an error. */
int attempt_word(struct attempt *attempt, const struct dagfile_word *word,
                 struct gathered *out);

/* Set the output to a text as the node wants it. */
int attempt_output(struct attempt *attempt, struct gathered *text);

int shell_run(struct attempt *attempt);

/* SIGKILL for all that runs. */
void shell_kill_all(struct dagrun *run);

int redis_run(struct attempt *attempt);

/* Its connections, when nothing runs any more. */
void redis_end(struct dagrun *run);

/* --- run.c ------------------------------------------------------------------ */

struct dagrun_opts {
	uint32_t jobs;
	uint64_t deadline_ns; /* from its begin; 0: none */
	uint64_t grace_ns;    /* of commands, from SIGTERM to SIGKILL */
	bool keep_going, quiet, resume;
	const char *trace;    /* file to write, or NULL */
	const char *server;   /* instead of the file's, or NULL */
};

struct dagrun {
	const char *path;       /* of the file */
	char *folder;           /* that it is in */
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
	struct shell *shells;   /* that run */
	weft_redis *redis;      /* opened when first used */
	weft_watch watches[3];
	int signal;             /* that has ended it, or 0 */
	uint32_t failures;      /* that were told */
	int rc;
};

/* Run it; an exit status. */
int dagrun_run(struct dagrun *run);

#endif
