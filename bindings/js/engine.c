/* engine.c - creating and freeing an engine, and calling its scripts. */
#include <weft/embed.h>
#include <weft/scope.h>
#include "engine.h"

#define MEMORY_BYTES ((size_t)64 << 20)
#define STACK_BYTES  ((size_t)256 << 10)
#define RUN_NS       (5 * WEFT_S)

/* --- references ----------------------------------------------------------- */

weft_js *
weft__js_ref(weft_js *js)
{
	weft__refs_add(&js->refs);
	return js;
}

void
weft__js_unref(weft_js *js)
{
	if (!weft__refs_drop(&js->refs))
		return;
	(void)pthread_mutex_destroy(&js->lock);
	weft_release(js->failed_text);
	weft_release(js);
}

/* --- enter and leave ------------------------------------------------------- */

/* Whether the memory limit is still exceeded after a garbage collection. */
static bool
is_full(weft_js *js)
{
	if (!js->over)
		return false;
	JS_RunGC(js->rt);
	js->over = js->memory_used > js->opts.memory_bytes;
	return js->over;
}

/* The deadline is computed at the first poll, some microseconds after the callback began.  So a
 * short callback never reads the clock. */
static bool
is_late(weft_js *js)
{
	if (js->until_ns == 0)
		js->until_ns = weft_after(js->opts.run_ns);
	return js->until_ns != WEFT_NEVER && weft_now() >= js->until_ns;
}

bool
weft__js_poll(weft_js *js)
{
	if (weft__js_is_over(js))
		return true;
	if (__atomic_load_n(&js->interrupted, __ATOMIC_RELAXED))
		js->stopped = WEFT_EINTR;
	else if (is_late(js))
		js->stopped = WEFT_ETIMEDOUT;
	else if (is_full(js))
		js->stopped = WEFT_ENOMEM;
	return js->stopped != 0;
}

static int
on_poll(JSRuntime *rt UNUSED, void *arg)
{
	return weft__js_poll(arg);
}

/* Its address identifies the thread. */
static _Thread_local char this_thread;

/* A thread sets `inside` to its own address only, and resets it as it leaves.  So relaxed order is
 * enough. */
bool
weft__js_is_inside(const weft_js *js)
{
	return __atomic_load_n(&js->inside, __ATOMIC_RELAXED) == &this_thread;
}

void
weft__js_enter(weft_js *js)
{
	if (js->depth++ > 0)
		return;
	__atomic_store_n(&js->inside, &this_thread, __ATOMIC_RELAXED);
	JS_UpdateStackTop(js->rt);
	__atomic_store_n(&js->interrupted, 0, __ATOMIC_RELAXED);
	js->until_ns = 0;
	js->stopped = 0;
	js->refused = js->over = js->reported = false;
	weft__js_handles_end_dropped(js);
}

/* A callback that reached a limit has failed, even if a promise was rejected with the error, or
 * a script caught an error that resulted from it. */
static void
report_stop(weft_js *js)
{
	JSValue error;

	if (!js->stopped || js->reported || js->ended || !js->ground_closed)
		return;
	(void)weft__js_interrupted(js);
	error = JS_GetException(js->ctx);
	weft__js_unhandled(js, error);
	JS_FreeValue(js->ctx, error);
}

/* A script that runs while the loop does not may leave jobs behind.  The wake notifies a host
 * that waits on the loop's descriptor. */
void
weft__js_leave(weft_js *js)
{
	if (js->depth == 1)
		report_stop(js);
	if (--js->depth > 0)
		return;
	__atomic_store_n(&js->inside, NULL, __ATOMIC_RELAXED);
	js->stopped = 0;
	if (js->ended)
		weft__js_tasks_clear(js);
	else if (weft_loop_current() != js->loop && weft__js_has_jobs(js))
		weft_loop_wake(js->loop);
}

void
weft__js_run(weft_js *js, JSValueConst fn, int count, JSValue *args)
{
	JSValue result;

	if (js->ended)
		return;
	weft__js_enter(js);
	result = JS_Call(js->ctx, fn, JS_UNDEFINED, count, args);
	if (JS_IsException(result))
		weft__js_uncaught(js);
	JS_FreeValue(js->ctx, result);
	weft__js_leave(js);
}

void
weft__js_end(weft_js *js)
{
	js->ended = true;
	if (js->depth == 0)
		weft__js_tasks_clear(js);
}

int
weft__js_check(weft_js *js, const char *what)
{
	weft_state state;

	if (!js)
		return weft_fail(WEFT_EINVAL, "%s: js is NULL", what);
	if (!js->ctx || js->ended)
		return weft_fail(WEFT_ESHUTDOWN, "%s: the engine has ended", what);
	state = weft_loop_state(js->loop);
	if (weft_loop_current() != js->loop && state != WEFT_IDLE && state != WEFT_STOPPED)
		return weft_fail(
			WEFT_EWRONGLOOP,
			"%s: the engine belongs to another loop; call it from that loop's thread",
			what);
	return 0;
}

/* --- creation and destruction ---------------------------------------------- */

static void
set_options(weft_js *js, const weft_js_opts *opts)
{
	if (opts)
		js->opts = *opts;
	if (js->opts.memory_bytes == 0)
		js->opts.memory_bytes = MEMORY_BYTES;
	if (js->opts.stack_bytes == 0)
		js->opts.stack_bytes = STACK_BYTES;
	if (js->opts.run_ns == 0)
		js->opts.run_ns = RUN_NS;
}

/* A zeroed JSValue is the number 0, so these are set to undefined explicitly. */
static void
set_places(weft_js *js)
{
	js->then = js->error = js->process = js->host = JS_UNDEFINED;
	js->rejections.add_reported = js->rejections.remove_reported = JS_UNDEFINED;
	js->broken = JS_UNDEFINED;
	for (int i = 0; i < WEFT__JS_FAMILIES; i++)
		js->families[i] = JS_UNDEFINED;
	js->tasks.ticks_end = &js->tasks.ticks;
}

static void
set_runtime(weft_js *js)
{
	JS_SetRuntimeOpaque(js->rt, js);
	JS_SetMaxStackSize(js->rt, js->opts.stack_bytes);
	JS_SetInterruptHandler(js->rt, on_poll, js);
	JS_SetHostPromiseRejectionTracker(js->rt, weft__js_track, js);
	JS_SetModuleLoaderFunc(js->rt, weft__js_module_name, weft__js_module_load, js);
}

/* Only the language itself.  Host globals, such as `performance` and DOMException, come from
 * global.c and not from QuickJS. */
static JSContext *
new_context(JSRuntime *rt)
{
	static int (*const intrinsics[])(JSContext * ctx) = {
		JS_AddIntrinsicBaseObjects, JS_AddIntrinsicDate,        JS_AddIntrinsicEval,
		JS_AddIntrinsicRegExp,      JS_AddIntrinsicJSON,        JS_AddIntrinsicProxy,
		JS_AddIntrinsicMapSet,      JS_AddIntrinsicTypedArrays, JS_AddIntrinsicPromise,
		JS_AddIntrinsicWeakRef,
	};
	JSContext *ctx = JS_NewContextRaw(rt);

	for (size_t i = 0; ctx && i < sizeof(intrinsics) / sizeof(*intrinsics); i++)
		if (intrinsics[i](ctx) != 0) {
			JS_FreeContext(ctx);
			return NULL;
		}
	return ctx;
}

static bool
make_context(weft_js *js)
{
	bool ok;

	if (!weft__js_ground_open(js))
		return false;
	js->rt = JS_NewRuntime2(&weft__js_memory, js);
	if (!js->rt)
		return false;
	set_runtime(js);
	js->ctx = new_context(js->rt);
	if (!js->ctx)
		return false;
	JS_SetContextOpaque(js->ctx, js);
	weft__js_enter(js);
	ok = weft__js_learn_parser(js) == 0 && weft__js_link_init(js) == 0
	     && weft__js_expose_init(js) == 0 && weft__js_value_init(js) == 0
	     && weft__js_globals_init(js) == 0;
	weft__js_leave(js);
	weft__js_ground_close(js);
	return ok && !js->refused;
}

static void
set_hook(weft_js *js)
{
	js->hook.checkpoint = weft__js_checkpoint;
	js->hook.ready = weft__js_ready;
	js->hook.arg = js;
}

weft_js *
weft_js_new(weft_loop *loop, const weft_js_opts *opts)
{
	weft_js *js;

	if (!loop)
		loop = weft_loop_current();
	if (!loop) {
		(void)weft_fail(WEFT_EINVAL,
		                "weft_js_new: loop is NULL, and the caller is not on a loop");
		return NULL;
	}
	js = weft_alloc(sizeof(*js));
	if (!js)
		return NULL;
	memset(js, 0, sizeof(*js));
	js->refs = WEFT__REFS_ONE;
	weft__link_init(&js->links);
	weft__link_init(&js->handles);
	js->loop = weft_loop_ref(loop);
	(void)pthread_mutex_init(&js->lock, NULL);
	set_options(js, opts);
	set_places(js);
	set_hook(js);
	js->began_ns = weft_now();
	if (make_context(js) && weft_loop_push_hook(loop, &js->hook) == 0)
		return js;
	(void)weft_js_free(js);
	(void)weft_fail(WEFT_ENOMEM, "weft_js_new: out of memory");
	return NULL;
}

static void
free_values(weft_js *js)
{
	JSValue *const places[] = { &js->then,
		                    &js->error,
		                    &js->host,
		                    &js->process,
		                    &js->broken,
		                    &js->rejections.add_reported,
		                    &js->rejections.remove_reported };

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		JS_FreeValueRT(js->rt, *places[i]);
	for (int i = 0; i < WEFT__JS_FAMILIES; i++)
		JS_FreeValueRT(js->rt, js->families[i]);
}

static void
free_runtime(weft_js *js)
{
	weft__js_net_fini(js);
	weft__js_tasks_fini(js);
	weft__js_rejections_fini(js);
	weft__js_links_fini(js);
	weft__js_handles_fini(js);
	free_values(js);
	if (js->ctx)
		JS_FreeContext(js->ctx);
	js->ctx = NULL;
	JS_FreeRuntime(js->rt);
	js->rt = NULL;
}

int
weft_js_free(weft_js *js)
{
	if (!js)
		return 0;
	if (js->depth > 0)
		return weft_fail(
			WEFT_EBUSY,
			"weft_js_free: the engine cannot be freed while one of its scripts runs");
	js->ended = true;
	weft_loop_drop_hook(js->loop, &js->hook);
	js->freeing = true;
	if (js->rt)
		free_runtime(js);
	weft__js_ground_free(js);
	(void)weft_loop_unref(js->loop);
	__atomic_store_n(&js->loop, NULL, __ATOMIC_RELAXED);
	weft__js_unref(js);
	return 0;
}

void
weft_js_interrupt(weft_js *js)
{
	if (js)
		__atomic_store_n(&js->interrupted, 1, __ATOMIC_RELAXED);
}

/* --- on the loop's own stack ------------------------------------------------ */

struct request {
	weft_js *js;
	const char *what;
	int (*fn)(weft_js *js, void *arg);
	void *arg;
	weft_promise *done;
};

static int
engine_run(const struct request *request)
{
	weft_js *js = request->js;
	int rc = weft__js_check(js, request->what);

	if (rc < 0)
		return rc;
	weft__js_enter(js);
	rc = request->fn(js, request->arg);
	js->reported = js->reported || (rc < 0 && js->depth == 1);
	weft__js_leave(js);
	return rc;
}

static void
run_request(void *arg)
{
	struct request *request = arg;
	int rc = engine_run(request);

	if (rc < 0)
		(void)weft_promise_reject(request->done, weft_value_error(rc));
	else
		(void)weft_promise_resolve(request->done, (weft_value){ 0 });
}

/* A threadlet's stack is too small for scripts, so a microtask on the loop's stack runs them. */
static int
run_elsewhere(struct request *request)
{
	weft_scope scope = WEFT_INIT;
	int rc = weft_scope_open(&scope, WEFT_SHIELD, WEFT_NEVER);

	if (rc < 0)
		return rc;
	request->done = weft_promise_new(request->js->loop);
	rc = request->done ? weft_schedule_microtask(request->js->loop, run_request, request)
	                   : WEFT_ENOMEM;
	if (rc == 0)
		do
			rc = weft_await(request->done, NULL, WEFT_NEVER);
		while (weft_promise_state(request->done, NULL) == WEFT_PENDING);
	(void)weft_promise_unref(request->done);
	(void)weft_scope_close(&scope);
	return rc;
}

int
weft__js_do(weft_js *js, const char *what, int (*fn)(weft_js *js, void *arg), void *arg)
{
	struct request request = { js, what, fn, arg, NULL };
	int rc = weft__js_check(js, what);

	if (rc < 0)
		return rc;
	if (weft_self() == 0)
		return engine_run(&request);
	(void)weft__js_ref(js);
	rc = run_elsewhere(&request);
	weft__js_unref(js);
	return rc;
}

/* Passes the result of a script to the caller.  Takes ownership of `result`, which may be an
 * exception. */
static int
engine_finish(weft_js *js, JSValue result, weft_value *out)
{
	weft_value value = { 0 };
	int rc = 0;

	if (JS_IsException(result))
		return weft__js_failure(js);
	if (out)
		rc = weft__js_to(js, result, &value);
	JS_FreeValue(js->ctx, result);
	if (rc == 0 && js->stopped) {
		weft_value_drop(&value);
		(void)weft__js_interrupted(js);
		return weft__js_failure(js);
	}
	if (rc == 0 && out)
		*out = value;
	return rc;
}

/* --- scripts ------------------------------------------------------------------ */

struct script {
	const char *source, *file;
	weft_value *out;
};

static int
eval(weft_js *js, void *arg)
{
	const struct script *script = arg;
	JSValue result = JS_Eval(js->ctx, script->source, strlen(script->source), script->file,
	                         JS_EVAL_TYPE_GLOBAL);

	return engine_finish(js, result, script->out);
}

int
weft_js_eval(weft_js *js, const char *source, const char *file, weft_value *out)
{
	struct script script = { source, file ? file : "<eval>", out };

	if (!source)
		return weft_fail(WEFT_EINVAL, "weft_js_eval: source is NULL");
	return weft__js_do(js, "weft_js_eval", eval, &script);
}

static int
engine_load(weft_js *js, void *arg)
{
	const struct script *script = arg;

	return weft__js_module_run(js, script->file, script->out);
}

int
weft_js_load(weft_js *js, const char *file, weft_value *out)
{
	struct script script = { NULL, file, out };

	if (!file)
		return weft_fail(WEFT_EINVAL, "weft_js_load: file is NULL");
	return weft__js_do(js, "weft_js_load", engine_load, &script);
}

/* --- calls -------------------------------------------------------------------- */

/* Looks up `path`.  Returns the value, or undefined; stores the object that contains it in
 * `within`.  The caller frees both. */
static JSValue
engine_find(weft_js *js, const char *path, JSValue *within)
{
	JSContext *ctx = js->ctx;
	JSValue found = JS_GetGlobalObject(ctx);

	*within = JS_UNDEFINED;
	while (*path && JS_IsObject(found)) {
		size_t size = strcspn(path, ".");
		JSAtom name = JS_NewAtomLen(ctx, path, size);

		JS_FreeValue(ctx, *within);
		*within = found;
		found = name == JS_ATOM_NULL ? JS_EXCEPTION : JS_GetProperty(ctx, *within, name);
		JS_FreeAtom(ctx, name);
		path += size + (path[size] == '.');
	}
	return found;
}

static void
free_all(JSContext *ctx, JSValue *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		JS_FreeValue(ctx, values[i]);
	weft_release(values);
}

/* Converts the arguments.  Returns NULL, with an exception, if one cannot be converted. */
static JSValue *
make_args(weft_js *js, const weft_value *args, size_t count)
{
	JSValue *made = weft_alloc((count + 1) * sizeof(*made));

	if (!made)
		(void)JS_ThrowOutOfMemory(js->ctx);
	for (size_t i = 0; made && i < count; i++) {
		made[i] = weft__js_from(js, &args[i]);
		if (JS_IsException(made[i])) {
			free_all(js->ctx, made, i);
			return NULL;
		}
	}
	return made;
}

struct call {
	const char *path;
	const weft_value *args;
	size_t count;
	weft_value *out;
};

static int
engine_call(weft_js *js, void *arg)
{
	const struct call *call = arg;
	JSContext *ctx = js->ctx;
	JSValue within, fn = engine_find(js, call->path, &within), *args = NULL;
	JSValue result = JS_EXCEPTION;
	int rc;

	if (JS_IsException(fn)) {
		rc = weft__js_failure(js);
	} else if (!JS_IsFunction(ctx, fn)) {
		rc = weft_fail(WEFT_ENOENT, "weft_js_call: the script has no function %s",
		               call->path);
	} else {
		args = make_args(js, call->args, call->count);
		if (args)
			result = JS_Call(ctx, fn, within, (int)call->count, args);
		rc = engine_finish(js, result, call->out);
	}
	if (args)
		free_all(ctx, args, call->count);
	JS_FreeValue(ctx, within);
	JS_FreeValue(ctx, fn);
	return rc;
}

int
weft_js_call(weft_js *js, const char *path, const weft_value *args, size_t count, weft_value *out)
{
	struct call arg = { path, args, count, out };

	if (!path || (!args && count > 0) || count > 65535)
		return weft_fail(WEFT_EINVAL,
		                 "weft_js_call: path or args is NULL, or count is above 65535");
	return weft__js_do(js, "weft_js_call", engine_call, &arg);
}

/* --- results -------------------------------------------------------------------- */

int
weft_js_failed(weft_js *js)
{
	if (!js || js->failed == 0)
		return 0;
	return weft_fail(js->failed, "%s",
	                 js->failed_text ? js->failed_text : weft_strerror(js->failed));
}

int
weft_js_status(weft_js *js)
{
	if (!js)
		return 1;
	if (js->exited)
		return js->status;
	return js->failed ? 1 : weft__js_exit_code(js);
}
