/* engine.h - the definitions that the files of the JavaScript adapter share.
 *
 *   1. Everything in an engine belongs to the loop's thread, except `refs`, `interrupted`,
 *      `inside` and the members that `lock` protects.
 *   2. The struct outlives the engine while references to it exist: `ctx` is NULL after
 *      weft_js_free().
 *   3. JavaScript runs only between enter and leave.  Pairs may nest; the outermost pair is one
 *      callback in the sense of run_ns.  The engine is not freed inside a pair.
 *   4. Once `ended` is set, no part of the script runs again, and nothing it does reaches the
 *      host.
 */
#ifndef WEFT_JS_ENGINE_H
#define WEFT_JS_ENGINE_H

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <quickjs.h>
#include <weft/embed.h>
#include <weft/js.h>
#include <weft/loop.h>
#include <weft/promise.h>
#include <weft/schedule.h>
#include <weft/timer.h>
#include "base/proto_list.h"
#include "base/proto_refs.h"

#define WEFT__JS_FAMILIES 32
#define UNUSED            __attribute__((unused)) /* a parameter that a signature requires */

/* A call to make later: a timer, an immediate or a tick. */
struct weft__js_task {
	weft_timer timer;
	weft_js *js;
	JSValue fn; /* function to call, or text to evaluate */
	JSValue *args;
	int count;
	uint8_t kind;     /* 0: unused */
	bool running;     /* an interval that is in its callback */
	bool background;
	uint16_t nesting; /* depth of timers set by timers */
	uint32_t index;   /* slot number; `uses` counts how often the slot was used before */
	uint32_t uses;
	int64_t number; /* of an immediate: the ID from weft_schedule_immediate() */
	uint64_t every_ns;
	struct weft__js_task *next; /* next unused task, or next tick */
};

struct weft__js_tasks {
	struct weft__js_task **blocks;
	uint32_t block_count;
	struct weft__js_task *unused;
	struct weft__js_task *ticks, **ticks_end;
	unsigned nesting; /* of the timer that is running */
};

struct weft__js_rejection {
	JSValue promise, reason;
	bool later;     /* was reported as unhandled, and has a handler now */
	unsigned round; /* the judging round in which it was added */
};

struct weft__js_rejections {
	struct weft__js_rejection *items;
	size_t first, count, room;
	unsigned round;
	JSValue add_reported;    /* function: add to a WeakSet of reported promises; or undefined */
	JSValue remove_reported; /* function: remove from it; or undefined */
};

/* A module that is being loaded because another one imports it. */
struct weft__js_load {
	struct weft__js_load *outer;
	JSValue error; /* why it cannot be loaded, or undefined */
	bool resolves; /* its text is parsed, and its imports are being resolved */
};

struct weft__js_handle;
struct weft__js_link;
struct weft__js_net;

struct weft_js {
	struct weft__refs refs;
	uint32_t interrupted; /* atomic: any thread sets it */
	const void *inside;   /* atomic: identifies the thread between enter and leave, or NULL */
	weft_loop *loop;
	JSRuntime *rt;
	JSContext *ctx;
	weft_js_opts opts;
	uint64_t began_ns; /* when performance.now() was 0, by weft_now() */
	weft_loop_hook hook;
	char *ground; /* memory.c: one block for what every engine needs */
	size_t ground_used;
	bool ground_closed;
	size_t memory_used;
	size_t record_bytes; /* size of a function record of the parser */
	size_t records;      /* function records in use; if not 0, a parser is running */
	bool learning;       /* record_bytes is being determined */
	bool over; /* the memory limit was exceeded during this callback */

	unsigned depth;      /* nesting depth of enter */
	uint64_t until_ns;   /* deadline of the callback; 0: not computed yet */
	uint64_t drain_until_ns;
	int stopped;         /* the error that ended the callback, or 0 */
	bool reported;       /* that error was reported to the host */
	bool refused;        /* an allocation failed during this callback */
	bool ended;          /* invariant 4 */
	bool yielded;        /* jobs are left for the next loop iteration */
	bool jobs_first;     /* a module was loaded: its jobs run before ticks */
	bool reporting;      /* an error is being dispatched; further ones are not */
	bool freeing;
	bool exited;
	int status;          /* argument of process.exit() */
	int failed;          /* the first unhandled error; its text is in failed_text */
	char *failed_text;

	struct weft__js_tasks tasks;
	struct weft__js_rejections rejections;
	struct weft__link links;     /* C promises that scripts wait for */
	struct weft__link handles;   /* values that C holds */
	struct weft__js_net *net; /* state of fetch, or NULL */
	struct weft__js_load *loading; /* the innermost load; js_module.c explains these three */
	JSValue broken; /* object that maps names to errors; or undefined */
	bool lost;
	JSValue then;   /* Promise.prototype.then */
	JSValue error;  /* the Error constructor */
	JSValue process, host;
	JSValue families[WEFT__JS_FAMILIES];
	JSClassID link_class, call_class, value_class;

	pthread_mutex_t lock;
	bool handles_closed;             /* under `lock` */
	struct weft__js_handle *dropped; /* written under `lock`; any thread adds to it */
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

/* Whether the calling thread is between enter and leave.  Any thread may call it. */
bool weft__js_is_inside(const weft_js *js);

/* Call a script's function from the loop; report an exception. */
void weft__js_run(weft_js *js, JSValueConst fn, int count, JSValue *args);

/* End the script. */
void weft__js_end(weft_js *js);

/* Whether the callback has reached a limit, or reaches one now.  C code that runs for long
 * inside a callback calls this. */
bool weft__js_poll(weft_js *js);

/* Whether the engine can be called.  Returns 0 or an error. */
int weft__js_check(weft_js *js, const char *what);

/* Call `fn(js, arg)` between enter and leave, on the loop's own stack.  A calling threadlet
 * suspends until then.  Returns the result of `fn`, or the error of weft__js_check(). */
int weft__js_do(weft_js *js, const char *what, int (*fn)(weft_js *js, void *arg),
                void *arg);

/* --- memory.c ------------------------------------------------------------ */

extern const JSMallocFunctions weft__js_memory;

/* Open the ground, a block that serves all allocations until it is closed.  Free it when nothing
 * in it is in use. weft__js_ground_open() returns false if out of memory. */
bool weft__js_ground_open(weft_js *js);
void weft__js_ground_close(weft_js *js);
void weft__js_ground_free(weft_js *js);

/* Determine record_bytes.  Returns 0, or -1 with an exception. */
int weft__js_learn_parser(weft_js *js);

/* --- js_error.c ---------------------------------------------------------- */

/* Convert the pending exception to an error of C, as weft_fail() does.  Returns the error. */
int weft__js_failure(weft_js *js);

/* Report the pending exception, or the given one, as uncaught. */
void weft__js_uncaught(weft_js *js);
void weft__js_report(weft_js *js, JSValueConst error);

/* Record an error that no event handler accepted, and notify the host. */
void weft__js_unhandled(weft_js *js, JSValueConst error);

/* Make an Error from a C error, with weft_detail() as its message; or make and throw it. */
JSValue weft__js_make_error(weft_js *js, int error);
JSValue weft__js_throw(weft_js *js, int error);

/* Throw an error that no script can catch.  C code that called a script, and may have swallowed
 * the error that stopped it, returns this. */
JSValue weft__js_interrupted(weft_js *js);

static inline bool
weft__js_is_over(const weft_js *js)
{
	return js->stopped || js->ended;
}

/* The C error that an Error object represents.  Sets weft_detail() to its text. */
int weft__js_error_of(weft_js *js, JSValueConst error);

/* --- job.c --------------------------------------------------------------- */

int  weft__js_checkpoint(weft_loop *loop, void *arg);
int  weft__js_ready(weft_loop *loop, void *arg);
bool weft__js_has_jobs(weft_js *js);
int  weft__js_queue(weft_js *js, JSValueConst fn); /* as queueMicrotask() */

/* --- rejection.c --------------------------------------------------------- */

void weft__js_track(JSContext *ctx, JSValueConst promise, JSValueConst reason,
                    bool is_handled, void *opaque);
int  weft__js_judge(weft_js *js); /* returns how many were reported */
void weft__js_rejections_fini(weft_js *js);

/* --- task.c -------------------------------------------------------------- */

void weft__js_tasks_init(weft_js *js, JSValueConst global);

/* Call `fn` once, after `ms`.  Returns the timer's ID, or an exception. */
JSValue weft__js_timeout(weft_js *js, JSValueConst fn, double ms, bool background);
JSValue weft__js_clear(JSContext *ctx, JSValueConst this_value, int count,
                       JSValueConst *args); /* as clearTimeout() */
JSValue weft__js_microtask(JSContext *ctx, JSValueConst this_value, int count,
                           JSValueConst *args); /* as queueMicrotask() */
JSValue weft__js_next_tick(JSContext *ctx, JSValueConst this_value, int count,
                           JSValueConst *args);
bool weft__js_run_tick(weft_js *js); /* false: there is none */
void weft__js_tasks_clear(weft_js *js);
void weft__js_tasks_fini(weft_js *js);

/* --- js_value.c ---------------------------------------------------------- */

/* Convert a C value. weft__js_from() borrows it, weft__js_take() takes ownership.  Returns an
 * exception on failure. */
JSValue weft__js_from(weft_js *js, const weft_value *value);
JSValue weft__js_take(weft_js *js, weft_value *value);

/* Convert JavaScript values, borrowed.  Fills `out`, which the caller owns.  Returns 0; or an
 * error, and `out` has no values. */
int weft__js_to(weft_js *js, JSValueConst value, weft_value *out);
int weft__js_to_all(weft_js *js, int count, JSValueConst *values,
                    weft_value *out);

void weft__js_drop(weft_value *values, size_t count);

int weft__js_value_init(weft_js *js);

/* --- js_handle.c: values that C holds ------------------------------------- */

int     weft__js_handle_make(weft_js *js, JSValueConst value, weft_value *out);
JSValue weft__js_handle_value(weft_js *js, const weft_value *value);
void    weft__js_handles_end_dropped(weft_js *js);
void    weft__js_handles_fini(weft_js *js);

/* --- js_link.c ----------------------------------------------------------- */

int     weft__js_link_init(weft_js *js);
JSValue weft__js_from_promise(weft_js *js, weft_promise *promise); /* takes ownership */
int     weft__js_to_promise(weft_js *js, JSValueConst promise, weft_promise **out);
bool    weft__js_is_promise(weft_js *js, JSValueConst value);
void    weft__js_links_fini(weft_js *js);

/* Mark a promise as handled. */
void weft__js_ignore(weft_js *js, JSValueConst promise);

/* --- expose.c ------------------------------------------------------------ */

int weft__js_expose_init(weft_js *js);

/* Make a script function from a C function; with `suspends` it returns a promise. */
JSValue weft__js_function(weft_js *js, const char *name, bool suspends,
                          weft_js_fn fn, void *arg);

/* --- net.c --------------------------------------------------------------- */

/* Add the functions that fetch needs to the host object; returns 0, or -1 with an exception.
 * End all exchanges. */
int  weft__js_net_init(weft_js *js, JSValueConst host);
void weft__js_net_fini(weft_js *js);

/* --- js_module.c --------------------------------------------------------- */

char        *weft__js_module_name(JSContext *ctx, const char *base,
                                  const char *name, void *opaque);
JSModuleDef *weft__js_module_load(JSContext *ctx, const char *name, void *opaque);
int          weft__js_module_run(weft_js *js, const char *file, weft_value *out);

/* --- global.c, js_process.c, host.c -------------------------------------- */

struct weft__js_family {
	const char *name;
	const unsigned char *text; /* with a NUL after it */
	size_t size;
};

/* Generated from lib/ by the build; ends with a NULL name. */
extern const struct weft__js_family weft__js_library[];

int     weft__js_globals_init(weft_js *js);
int     weft__js_process_init(weft_js *js, JSValueConst global);
int     weft__js_exit_code(weft_js *js);
JSValue weft__js_make_host(weft_js *js);
JSValue weft__js_report_error(JSContext *ctx, JSValueConst this_value, int count,
                              JSValueConst *args); /* as reportError() */

/* The exports of a family of globals, borrowed. weft__js_need() evaluates it if needed, and
 * returns an exception on failure; weft__js_loaded() returns undefined if it was not evaluated
 * yet. */
JSValue weft__js_need(weft_js *js, const char *name);
JSValue weft__js_loaded(weft_js *js, const char *name);

/* The events family, borrowed, if a script may be listening: the family is loaded, or the global
 * handler of that name is set.  Otherwise undefined. */
JSValue weft__js_listened(weft_js *js, const char *handler);

/* --- utf8.c -------------------------------------------------------------- */

JSValue weft__js_utf8_encode(JSContext *ctx, JSValueConst this_value, int count,
                             JSValueConst *args);
JSValue weft__js_utf8_encode_into(JSContext *ctx, JSValueConst this_value,
                                  int count, JSValueConst *args);
JSValue weft__js_utf8_decode(JSContext *ctx, JSValueConst this_value, int count,
                             JSValueConst *args);

JSValue weft__js_utf8_open(JSContext *ctx, JSValueConst this_value, int count,
                           JSValueConst *args);

/* The bytes of a Uint8Array, borrowed.  Returns false and throws if it is not one. */
bool weft__js_bytes(JSContext *ctx, JSValueConst value, weft_span *out);

/* Replace lone surrogates, which are encoded in three bytes, by U+FFFD. */
void weft__js_repair(char *text, size_t size);

/* --- os_js.c ------------------------------------------------------------- */

/* Read a whole file into memory of the engine, with a NUL after it.  The caller frees it with
 * js_free().  Returns the size, or an error with a text. */
int64_t weft__js_read_file(JSContext *ctx, const char *path, char **out);

/* The absolute path without links and dots.  Returns false if it does not exist. */
bool weft__js_real_path(const char *path, char *out, size_t room);

void weft__js_write(int fd, const char *text, size_t size);

/* The wall clock, in milliseconds since 1970. */
double weft__js_date_ms(void);

/* The environment: NAME=VALUE strings, terminated by NULL. */
char **weft__js_environment(void);

#endif
