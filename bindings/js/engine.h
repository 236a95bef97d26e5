/* engine.h - what the files of the JavaScript adapter share.
 *
 *   1. All of an engine but `refs`, `interrupted` and what `lock` guards belongs to the
 *      loop's thread.
 *   2. The struct outlives the engine as long as somebody holds a reference: `ctx` is
 *      NULL from weft_js_free() on.
 *   3. JavaScript runs between enter and leave only, which nest; what is outermost is
 *      one callback in the sense of run_ns.  Inside, the engine is not freed.
 *   4. Once `ended`, nothing of the script runs any more, and nothing it does reaches
 *      the host.
 */
#ifndef WEFT_JS_ENGINE_H
#define WEFT_JS_ENGINE_H

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <quickjs.h>
#include <weft/js.h>
#include <weft/loop.h>
#include <weft/promise.h>
#include <weft/schedule.h>
#include <weft/timer.h>

#define WEFT__JS_FAMILIES 32

/* Something to call later: a timer, an immediate, a tick. */
struct weft__js_task {
	weft_timer timer;
	weft_js *js;
	JSValue fn; /* what to call, or text to evaluate */
	JSValue *args;
	int count;
	uint8_t kind;     /* 0: unused */
	bool running;     /* an interval in its callback */
	bool background;
	uint16_t nesting; /* timers that set timers */
	uint32_t index;   /* of its place, and how often that was used before */
	uint32_t uses;
	int64_t number; /* weft's, of an immediate */
	uint64_t every_ns;
	struct weft__js_task *next; /* unused, or the next tick */
};

struct weft__js_tasks {
	struct weft__js_task **blocks;
	uint32_t block_count;
	struct weft__js_task *unused;
	struct weft__js_task *ticks, **ticks_end;
	unsigned nesting; /* of the timer that runs */
};

struct weft__js_rejection {
	JSValue promise, reason;
	bool later;     /* it was told of, and has a handler now */
	unsigned round; /* of judging, in which it came */
};

struct weft__js_rejections {
	struct weft__js_rejection *items;
	size_t first, count, room;
	unsigned round;
	JSValue told; /* functions on a WeakSet: add, remove; or undefined */
	JSValue untold;
};

/* A module that is being loaded, because another one imports it. */
struct weft__js_load {
	struct weft__js_load *outer;
	JSValue error; /* why it cannot be, or undefined */
	bool resolves; /* its text is read, now what it imports is looked for */
};

struct weft__js_held;
struct weft__js_link;
struct weft__js_net;

struct weft_js {
	uint32_t refs;        /* atomic */
	uint32_t interrupted; /* atomic: any thread sets it */
	weft_loop *loop;
	JSRuntime *rt;
	JSContext *ctx;
	weft_js_opts opts;
	weft_perf *perf;
	weft_loop_hook hook;
	char *ground; /* see memory.c */
	size_t ground_used;
	bool ground_closed;
	size_t memory_used;
	size_t record_bytes; /* of a function record of the parser */
	size_t records;      /* in use: a parser runs */
	bool learning;       /* record_bytes */
	bool over; /* the limit, at some time in this callback */

	unsigned depth;      /* of enter */
	uint64_t until_ns;   /* of the callback; 0: not asked for yet */
	uint64_t drain_until_ns;
	int stopped;         /* the error that ended the callback, or 0 */
	bool told;           /* the host knows of that */
	bool refused;        /* memory, in this callback */
	bool ended;          /* invariant 4 */
	bool yielded;        /* jobs are left for the next turn */
	bool jobs_first;     /* a module was loaded: its jobs come before ticks */
	bool reporting;      /* an error; another one meanwhile is not dispatched */
	bool freeing;
	bool exited;
	int status;          /* of process.exit() */
	int failed;          /* the first error that nobody handled, and its text */
	char *failed_text;

	struct weft__js_tasks tasks;
	struct weft__js_rejections rejections;
	struct weft__js_link *links; /* promises of C that scripts wait for */
	struct weft__js_held *held;
	struct weft__js_net *net; /* of fetch, or NULL */
	struct weft__js_load *loading; /* the innermost; see module.c for these three */
	JSValue broken; /* an object, or undefined */
	bool lost;
	JSValue then;   /* of promises */
	JSValue error;  /* the constructor */
	JSValue process, host;
	JSValue families[WEFT__JS_FAMILIES];
	JSClassID link_class, call_class, value_class;

	pthread_mutex_t lock;
	struct weft__js_held *dropped; /* by other threads; by the lock */
	bool held_closed;              /* by the lock */
	bool drop_posted;              /* by the lock */
	weft_node drop_node;
};

/* --- engine.c ------------------------------------------------------------ */

weft_js *weft__js_ref(weft_js *js);
void     weft__js_unref(weft_js *js);

static inline weft_js *
weft__js_of(JSContext *ctx)
{
	return JS_GetContextOpaque(ctx);
}

void weft__js_enter(weft_js *js);
void weft__js_leave(weft_js *js);

/* Call a script's function from the loop; what it throws is reported. */
void weft__js_run(weft_js *js, JSValueConst fn, int count, JSValue *args);

/* The script is over. */
void weft__js_end(weft_js *js);

/* Whether the callback has come to a limit, or does now; for work of C in it. */
bool weft__js_poll(weft_js *js);

/* Whether a call to the engine may go on: 0, or an error. */
int weft__js_check(weft_js *js, const char *what);

/* Do `fn(js, arg)` between enter and leave, on the loop's own stack: a threadlet that
 * calls this waits.  Returns what it does, or weft__js_check(). */
int weft__js_do(weft_js *js, const char *what, int (*fn)(weft_js *js, void *arg),
                void *arg);

/* --- memory.c ------------------------------------------------------------ */

extern const JSMallocFunctions weft__js_memory;

/* Open the ground, which what is allocated comes from until it is closed; free it when
 * nothing is in use any more.  open returns false without memory. */
bool weft__js_ground_open(weft_js *js);
void weft__js_ground_close(weft_js *js);
void weft__js_ground_free(weft_js *js);

/* Find out record_bytes.  Returns 0, or -1 with an exception. */
int weft__js_learn_parser(weft_js *js);

/* --- error.c ------------------------------------------------------------- */

/* The exception that is pending becomes the result of a call: weft_fail(). */
int weft__js_failure(weft_js *js);

/* The exception that is pending is nobody's: report it.  The same of one in hand. */
void weft__js_uncaught(weft_js *js);
void weft__js_report(weft_js *js, JSValueConst error);

/* It was not handled by events: keep it, tell the host. */
void weft__js_unhandled(weft_js *js, JSValueConst error);

/* Make an Error of an error of C, with the text of weft_detail(); throw it. */
JSValue weft__js_make_error(weft_js *js, int error);
JSValue weft__js_throw(weft_js *js, int error);

/* Throw what no script catches.  Who has asked a script for something, and may have
 * swallowed that it was stopped meanwhile, returns this. */
JSValue weft__js_interrupted(weft_js *js);

static inline bool
weft__js_is_over(const weft_js *js)
{
	return js->stopped || js->ended;
}

/* The error that an Error stands for; sets weft_detail() with its text. */
int weft__js_error_of(weft_js *js, JSValueConst error);

/* --- job.c --------------------------------------------------------------- */

int  weft__js_checkpoint(weft_loop *loop, void *arg);
int  weft__js_ready(weft_loop *loop, void *arg);
bool weft__js_has_jobs(weft_js *js);
int  weft__js_queue(weft_js *js, JSValueConst fn); /* as queueMicrotask */

/* --- rejection.c --------------------------------------------------------- */

void weft__js_track(JSContext *ctx, JSValueConst promise, JSValueConst reason,
                    bool is_handled, void *opaque);
int  weft__js_judge(weft_js *js); /* returns how many were told of */
void weft__js_rejections_fini(weft_js *js);

/* --- task.c -------------------------------------------------------------- */

void weft__js_tasks_init(weft_js *js, JSValueConst global);

/* Call `fn` once, later; returns its number, or an exception. */
JSValue weft__js_timeout(weft_js *js, JSValueConst fn, double ms, bool background);
void    weft__js_clear(weft_js *js, JSValueConst number);
JSValue weft__js_next_tick(JSContext *ctx, JSValueConst this_value, int count,
                           JSValueConst *args);
bool weft__js_run_tick(weft_js *js); /* false: there was none */
void weft__js_tasks_clear(weft_js *js);
void weft__js_tasks_fini(weft_js *js);

/* --- value.c ------------------------------------------------------------- */

/* Of C's, borrowed, and taken; an exception if it cannot be. */
JSValue weft__js_from(weft_js *js, const weft_value *value);
JSValue weft__js_take(weft_js *js, weft_value *value);

/* Of JavaScript's, borrowed; fills `out`, the caller's.  Returns 0 or an error, without
 * values then. */
int weft__js_to(weft_js *js, JSValueConst value, weft_value *out);
int weft__js_to_all(weft_js *js, int count, JSValueConst *values,
                    weft_value *out);

int weft__js_value_init(weft_js *js);

/* --- held.c -------------------------------------------------------------- */

int     weft__js_hold(weft_js *js, JSValueConst value, weft_value *out);
JSValue weft__js_held_value(weft_js *js, const weft_value *value);
void    weft__js_held_fini(weft_js *js);
void    weft__js_drop_queued(weft_js *js);

/* --- link.c -------------------------------------------------------------- */

int     weft__js_link_init(weft_js *js);
JSValue weft__js_from_promise(weft_js *js, weft_promise *promise); /* taken */
int     weft__js_to_promise(weft_js *js, JSValueConst promise, weft_promise **out);
bool    weft__js_is_promise(weft_js *js, JSValueConst value);
void    weft__js_links_fini(weft_js *js);

/* Mark a promise as handled. */
void weft__js_ignore(weft_js *js, JSValueConst promise);

/* --- expose.c ------------------------------------------------------------ */

int weft__js_expose_init(weft_js *js);

/* A function of C as a script's; with `suspends` it gives a promise. */
JSValue weft__js_function(weft_js *js, const char *name, bool suspends,
                          weft_js_fn fn, void *arg);

/* --- net.c --------------------------------------------------------------- */

/* Add what fetch needs to the host; 0, or an exception: -1.  End all exchanges. */
int  weft__js_net_init(weft_js *js, JSValueConst host);
void weft__js_net_fini(weft_js *js);

/* --- module.c ------------------------------------------------------------ */

char        *weft__js_module_name(JSContext *ctx, const char *base,
                                  const char *name, void *opaque);
JSModuleDef *weft__js_module_load(JSContext *ctx, const char *name, void *opaque);
int          weft__js_module_run(weft_js *js, const char *file, weft_value *out);

/* --- global.c, process.c, host.c ----------------------------------------- */

struct weft__js_family {
	const char *name;
	const unsigned char *text; /* with a NUL behind it */
	size_t size;
};

/* Made by the build from lib/; a NULL name ends it. */
extern const struct weft__js_family weft__js_library[];

int     weft__js_globals_init(weft_js *js);
int     weft__js_process_init(weft_js *js, JSValueConst global);
int     weft__js_exit_code(weft_js *js);
JSValue weft__js_make_host(weft_js *js);

/* The exports of a family, borrowed, or an exception.  loaded: undefined if nothing
 * has needed it yet. */
JSValue weft__js_need(weft_js *js, const char *name);
JSValue weft__js_loaded(weft_js *js, const char *name);

/* The family of events, borrowed, if a script can be listening: it is loaded, or the
 * global handler of that name is set.  Else undefined. */
JSValue weft__js_listened(weft_js *js, const char *handler);

/* --- utf8.c -------------------------------------------------------------- */

JSValue weft__js_utf8_encode(JSContext *ctx, JSValueConst this_value, int count,
                             JSValueConst *args);
JSValue weft__js_utf8_encode_into(JSContext *ctx, JSValueConst this_value,
                                  int count, JSValueConst *args);
JSValue weft__js_utf8_decode(JSContext *ctx, JSValueConst this_value, int count,
                             JSValueConst *args);

/* A Uint8Array of a copy. */
JSValue weft__js_new_bytes(JSContext *ctx, const void *data, size_t size);

/* The bytes of a Uint8Array, borrowed; false: it is none, and that was thrown. */
bool weft__js_bytes(JSContext *ctx, JSValueConst value, weft_span *out);

/* Surrogates that are alone, which three bytes stand for, become U+FFFD. */
void weft__js_repair(char *text, size_t size);

/* --- os_js.c ------------------------------------------------------------- */

/* Read all of a file into memory of the engine, with a NUL behind; the caller gives it
 * to js_free().  Returns the size, or an error with its text. */
int64_t weft__js_read_file(JSContext *ctx, const char *path, char **out);

/* The path with no link and no dots in it; false if there is none. */
bool weft__js_real_path(const char *path, char *out, size_t room);

void weft__js_write(int fd, const char *text, size_t size);

/* The environment: NAME=VALUE, NULL at the end. */
char **weft__js_environment(void);

#endif
