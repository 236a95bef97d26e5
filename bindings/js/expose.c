/* expose.c - C functions that scripts can call. */
#include "engine.h"

struct exposed {
	weft_js_fn fn;
	void *arg;
	bool suspends;
};

/* One call that runs on a threadlet. */
struct call {
	weft_js *js;
	weft_js_fn fn;
	void *arg;
	size_t count;
	weft_value args[];
};

static int
make_args(weft_js *js, int count, JSValueConst *args, weft_value *out)
{
	int rc = weft__js_to_all(js, count, args, out);

	if (rc < 0 || !weft__js_is_over(js))
		return rc;
	weft__js_drop(out, (size_t)count);
	return WEFT_EINTR; /* never visible: the script is being ended */
}

/* --- immediate calls ------------------------------------------------------------- */

#define FEW 8

/* Converts the result of a C function for the script. */
static JSValue
answer(weft_js *js, int rc, weft_value *out)
{
	JSValue thrown;

	if (rc >= 0)
		return weft__js_take(js, out);
	if (!out->type)
		return weft__js_throw(js, rc);
	thrown = weft__js_take(js, out);
	return JS_IsException(thrown) ? thrown : JS_Throw(js->ctx, thrown);
}

static JSValue
call_now(weft_js *js, const struct exposed *exposed, int count, JSValueConst *args)
{
	weft_value few[FEW], out = { 0 };
	weft_value *given = count <= FEW ? few : weft_alloc((size_t)count * sizeof(*given));
	int rc = given ? make_args(js, count, args, given) : WEFT_ENOMEM;

	if (rc == 0) {
		(void)weft_fail(0, "%s", ""); /* clear the error text of an earlier call */
		rc = exposed->fn(js, given, (size_t)count, &out, exposed->arg);
		weft__js_drop(given, (size_t)count);
	}
	if (given != few)
		weft_release(given);
	return answer(js, rc, &out);
}

/* --- calls on a threadlet ---------------------------------------------------------- */

static void
end_call(struct call *call)
{
	weft_js *js = call->js;

	weft__js_drop(call->args, call->count);
	weft_release(call);
	weft__js_unref(js);
}

static int
run_call(const weft_value *in UNUSED, weft_value *out, void *arg)
{
	struct call *call = arg;
	int rc = call->fn(call->js, call->args, call->count, out, call->arg);

	end_call(call);
	return rc;
}

static JSValue
call_later(weft_js *js, const struct exposed *exposed, int count, JSValueConst *args)
{
	struct call *call = weft_alloc(sizeof(*call) + (size_t)count * sizeof(*call->args));
	weft_promise *promise;
	int rc;

	if (!call)
		return JS_ThrowOutOfMemory(js->ctx);
	rc = make_args(js, count, args, call->args);
	if (rc < 0) {
		weft_release(call);
		return weft__js_throw(js, rc);
	}
	call->js = weft__js_ref(js);
	call->fn = exposed->fn;
	call->arg = exposed->arg;
	call->count = (size_t)count;
	promise = weft_promise_go(js->loop, run_call, call);
	if (promise)
		return weft__js_from_promise(js, promise);
	end_call(call);
	return weft__js_throw(js, WEFT_EAGAIN);
}

static JSValue
call_exposed(JSContext *ctx, JSValueConst this_value UNUSED, int count, JSValueConst *args,
             int magic UNUSED, JSValue *data)
{
	weft_js *js = weft__js_of(ctx);
	const struct exposed *exposed = JS_GetOpaque(data[0], js->call_class);
	JSValue result;

	if (weft__js_is_over(js))
		return weft__js_interrupted(js);
	result = exposed->suspends ? call_later(js, exposed, count, args)
	                           : call_now(js, exposed, count, args);
	if (!weft__js_is_over(js))
		return result;
	JS_FreeValue(ctx, result);
	return weft__js_interrupted(js);
}

/* --- exposing ------------------------------------------------------------------------ */

static void
finalize_exposed(JSRuntime *rt, JSValue object)
{
	weft_js *js = JS_GetRuntimeOpaque(rt);

	weft_release(JS_GetOpaque(object, js->call_class));
}

JSValue
weft__js_function(weft_js *js, const char *name, bool suspends, weft_js_fn fn, void *arg)
{
	JSContext *ctx = js->ctx;
	JSValue object = JS_NewObjectClass(ctx, (int)js->call_class), made;
	struct exposed *exposed = JS_IsException(object) ? NULL : weft_alloc(sizeof(*exposed));

	if (!exposed) {
		JS_FreeValue(ctx, object);
		return JS_ThrowOutOfMemory(ctx);
	}
	*exposed = (struct exposed){ fn, arg, suspends };
	JS_SetOpaque(object, exposed);
	made = JS_NewCFunctionData(ctx, call_exposed, 0, 0, 1, &object);
	JS_FreeValue(ctx, object);
	if (!JS_IsException(made))
		(void)JS_DefinePropertyValueStr(ctx, made, "name", JS_NewString(ctx, name),
		                                JS_PROP_CONFIGURABLE);
	return made;
}

/* The object `name` in `within`; it is created if there is none.  Takes ownership of `within`. */
static JSValue
step_into(JSContext *ctx, JSValue within, JSAtom name)
{
	JSValue inner = JS_GetProperty(ctx, within, name);

	if (JS_IsUndefined(inner)) {
		inner = JS_NewObject(ctx);
		if (!JS_IsException(inner)
		    && JS_DefinePropertyValue(ctx, within, name, JS_DupValue(ctx, inner),
		                              JS_PROP_C_W_E)
		               < 0) {
			JS_FreeValue(ctx, inner);
			inner = JS_EXCEPTION;
		}
	} else if (!JS_IsException(inner) && !JS_IsObject(inner)) {
		JS_FreeValue(ctx, inner);
		inner = JS_ThrowTypeError(ctx,
		                          "weft_js_expose: a part of the path is not an object");
	}
	JS_FreeValue(ctx, within);
	return inner;
}

struct put {
	const char *path;
	struct exposed exposed;
};

static int
expose_put(weft_js *js, void *arg)
{
	const struct put *put = arg;
	JSContext *ctx = js->ctx;
	JSValue within = JS_GetGlobalObject(ctx), fn;
	const char *path = put->path, *dot;
	int rc;

	while (!JS_IsException(within) && (dot = strchr(path, '.'))) {
		JSAtom name = JS_NewAtomLen(ctx, path, (size_t)(dot - path));

		within = step_into(ctx, within, name);
		JS_FreeAtom(ctx, name);
		path = dot + 1;
	}
	if (JS_IsException(within))
		return weft__js_failure(js);
	fn = weft__js_function(js, path, put->exposed.suspends, put->exposed.fn, put->exposed.arg);
	rc = JS_IsException(fn)
	             ? -1
	             : JS_DefinePropertyValueStr(ctx, within, path, fn,
	                                         JS_PROP_CONFIGURABLE | JS_PROP_WRITABLE);
	JS_FreeValue(ctx, within);
	return rc < 0 ? weft__js_failure(js) : 0;
}

static bool
is_path(const char *path)
{
	size_t size = path ? strlen(path) : 0;

	return size > 0 && path[0] != '.' && path[size - 1] != '.' && !strstr(path, "..");
}

int
weft_js_expose(weft_js *js, const char *path, bool suspends, weft_js_fn fn, void *arg)
{
	struct put what = { path, { fn, arg, suspends } };
	int rc;

	if (!is_path(path) || !fn)
		return weft_fail(WEFT_EINVAL,
		                 "weft_js_expose: path is not a valid path, or fn is NULL");
	rc = weft__js_do(js, "weft_js_expose", expose_put, &what);
	return rc == WEFT_ESCRIPT ? WEFT_EINVAL : rc;
}

int
weft__js_expose_init(weft_js *js)
{
	static const JSClassDef definition = { .class_name = "HostFunction",
		                               .finalizer = finalize_exposed };

	(void)JS_NewClassID(js->rt, &js->call_class);
	return JS_NewClass(js->rt, js->call_class, &definition);
}
