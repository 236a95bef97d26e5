/* global.c - the properties of globalThis, most of which are created on first use.
 *
 * Families of globals are written in JavaScript (lib/) and compiled into the library.  Each
 * global of a family is an accessor at first.  The first read of one evaluates the family and
 * turns all of its globals into plain properties.  A global that the script assigns first keeps
 * the assigned value.
 */
#include "engine.h"

static const struct {
	const char *name, *family;
} globals[] = {
	{ "DOMException", "events" },
	{ "Event", "events" },
	{ "CustomEvent", "events" },
	{ "ErrorEvent", "events" },
	{ "PromiseRejectionEvent", "events" },
	{ "EventTarget", "events" },
	{ "addEventListener", "events" },
	{ "removeEventListener", "events" },
	{ "dispatchEvent", "events" },
	{ "AbortController", "abort" },
	{ "AbortSignal", "abort" },
	{ "performance", "performance" },
	{ "PerformanceEntry", "performance" },
	{ "PerformanceMark", "performance" },
	{ "PerformanceMeasure", "performance" },
	{ "PerformanceObserver", "performance" },
	{ "PerformanceObserverEntryList", "performance" },
	{ "TextEncoder", "text" },
	{ "TextDecoder", "text" },
	{ "console", "console" },
	{ "Headers", "headers" },
	{ "ReadableStream", "stream" },
	{ "fetch", "fetch" },
	{ "Request", "fetch" },
	{ "Response", "fetch" },
};

#define GLOBALS (int)(sizeof(globals) / sizeof(*globals))
#define PLAIN   (JS_PROP_CONFIGURABLE | JS_PROP_WRITABLE)

/* --- families -------------------------------------------------------------------------- */

static int
find_family(const char *name)
{
	for (int i = 0; weft__js_library[i].name; i++)
		if (strcmp(weft__js_library[i].name, name) == 0)
			return i;
	return -1;
}

static JSValue
need(JSContext *ctx, JSValueConst this_value UNUSED, int count UNUSED, JSValueConst *args)
{
	const char *name = JS_ToCString(ctx, args[0]);
	JSValue exports;

	if (!name)
		return JS_EXCEPTION;
	exports = weft__js_need(weft__js_of(ctx), name);
	JS_FreeCString(ctx, name);
	return JS_DupValue(ctx, exports);
}

static JSValue
call_family(weft_js *js, JSValueConst maker)
{
	JSContext *ctx = js->ctx;
	JSValue args[2], exports = JS_EXCEPTION;

	if (JS_IsUndefined(js->host))
		js->host = weft__js_make_host(js);
	if (JS_IsException(js->host)) {
		js->host = JS_UNDEFINED;
		return JS_EXCEPTION;
	}
	args[0] = js->host;
	args[1] = JS_NewCFunction(ctx, need, "need", 1);
	if (!JS_IsException(args[1]))
		exports = JS_Call(ctx, maker, JS_UNDEFINED, 2, args);
	JS_FreeValue(ctx, args[1]);
	return exports;
}

static JSValue
evaluate(weft_js *js, const struct weft__js_family *family)
{
	char name[64] = "weft:";
	JSValue maker, exports;

	strncat(name, family->name, sizeof(name) - strlen(name) - 1);
	maker = JS_Eval(js->ctx, (const char *)family->text, family->size, name,
	                JS_EVAL_TYPE_GLOBAL);
	if (JS_IsException(maker))
		return maker;
	exports = call_family(js, maker);
	JS_FreeValue(js->ctx, maker);
	return exports;
}

JSValue
weft__js_need(weft_js *js, const char *name)
{
	int at = find_family(name);
	JSValue exports;

	if (at < 0 || at >= WEFT__JS_FAMILIES)
		return JS_ThrowTypeError(js->ctx, "no family %s", name);
	if (JS_IsUndefined(js->families[at])) {
		exports = evaluate(js, &weft__js_library[at]);
		if (JS_IsException(exports))
			return exports;
		js->families[at] = exports;
	}
	return js->families[at];
}

JSValue
weft__js_loaded(weft_js *js, const char *name)
{
	int at = find_family(name);

	return at < 0 || at >= WEFT__JS_FAMILIES ? JS_UNDEFINED : js->families[at];
}

JSValue
weft__js_listened(weft_js *js, const char *handler)
{
	JSValue events = weft__js_loaded(js, "events"), global, value;
	bool is_set;

	if (JS_IsObject(events) || find_family("events") < 0)
		return events;
	global = JS_GetGlobalObject(js->ctx);
	value = JS_GetPropertyStr(js->ctx, global, handler);
	if (JS_IsException(value))
		JS_FreeValue(js->ctx, JS_GetException(js->ctx));
	is_set = JS_IsFunction(js->ctx, value);
	JS_FreeValue(js->ctx, value);
	JS_FreeValue(js->ctx, global);
	events = is_set ? weft__js_need(js, "events") : JS_UNDEFINED;
	if (JS_IsException(events))
		JS_FreeValue(js->ctx, JS_GetException(js->ctx));
	return events;
}

/* --- accessors --------------------------------------------------------------------------- */

static JSValue
find_export(JSContext *ctx, JSValueConst exports, const char *name)
{
	JSValue target, value = JS_GetPropertyStr(ctx, exports, name);

	if (!JS_IsUndefined(value))
		return value;
	target = JS_GetPropertyStr(ctx, exports, "globalTarget");
	if (!JS_IsObject(target))
		return target;
	value = JS_GetPropertyStr(ctx, target, name);
	JS_FreeValue(ctx, target);
	return value;
}

/* Whether the global is still its initial accessor. */
static bool
is_waiting(JSContext *ctx, JSValueConst global, JSAtom name)
{
	JSPropertyDescriptor found;
	bool waiting;

	if (JS_GetOwnProperty(ctx, &found, global, name) <= 0)
		return false;
	waiting = (found.flags & JS_PROP_GETSET) != 0;
	JS_FreeValue(ctx, found.value);
	JS_FreeValue(ctx, found.getter);
	JS_FreeValue(ctx, found.setter);
	return waiting;
}

static int
put_plain(JSContext *ctx, JSValueConst global, const char *name, JSValue value)
{
	if (JS_IsException(value))
		return -1;
	return JS_DefinePropertyValueStr(ctx, global, name, value, PLAIN | JS_PROP_THROW);
}

/* Turns all globals of a family into plain properties. */
static int
put_family(JSContext *ctx, JSValueConst global, const char *family, JSValueConst exports)
{
	int rc = 0;

	for (int i = 0; i < GLOBALS && rc >= 0; i++) {
		JSAtom name;

		if (strcmp(globals[i].family, family) != 0)
			continue;
		name = JS_NewAtom(ctx, globals[i].name);
		if (is_waiting(ctx, global, name))
			rc = put_plain(ctx, global, globals[i].name,
			               find_export(ctx, exports, globals[i].name));
		JS_FreeAtom(ctx, name);
	}
	return rc;
}

static JSValue
get_global(JSContext *ctx, JSValueConst this_value UNUSED, int which)
{
	weft_js *js = weft__js_of(ctx);
	JSValue exports = weft__js_need(js, globals[which].family), global;
	int rc;

	if (JS_IsException(exports))
		return exports;
	global = JS_GetGlobalObject(ctx);
	rc = put_family(ctx, global, globals[which].family, exports);
	JS_FreeValue(ctx, global);
	return rc < 0 ? JS_EXCEPTION : find_export(ctx, exports, globals[which].name);
}

static JSValue
set_global(JSContext *ctx, JSValueConst this_value UNUSED, JSValueConst value, int which)
{
	JSValue global = JS_GetGlobalObject(ctx);
	int rc = put_plain(ctx, global, globals[which].name, JS_DupValue(ctx, value));

	JS_FreeValue(ctx, global);
	return rc < 0 ? JS_EXCEPTION : JS_UNDEFINED;
}

static void
add_waiting(JSContext *ctx, JSValueConst global)
{
	for (int i = 0; i < GLOBALS; i++) {
		JSCFunctionListEntry entry = JS_CGETSET_MAGIC_DEF(globals[i].name, get_global,
		                                                  set_global, (int16_t)i);

		if (find_family(globals[i].family) >= 0)
			JS_SetPropertyFunctionList(ctx, global, &entry, 1);
	}
}

/* --- globals created at startup ------------------------------------------------------------- */

JSValue
weft__js_report_error(JSContext *ctx, JSValueConst this_value UNUSED, int count, JSValueConst *args)
{
	weft_js *js = weft__js_of(ctx);

	if (count < 1)
		return JS_ThrowTypeError(ctx, "reportError: an argument is required");
	weft__js_report(js, args[0]);
	return weft__js_is_over(js) ? weft__js_interrupted(js) : JS_UNDEFINED;
}

int
weft__js_globals_init(weft_js *js)
{
	static const JSCFunctionListEntry more[] = {
		JS_CFUNC_DEF("reportError", 1, weft__js_report_error),
	};
	JSContext *ctx = js->ctx;
	JSValue global = JS_GetGlobalObject(ctx);
	int rc;

	weft__js_tasks_init(js, global);
	JS_SetPropertyFunctionList(ctx, global, more, 1);
	rc = JS_DefinePropertyValueStr(ctx, global, "self", JS_DupValue(ctx, global), PLAIN);
	if (rc >= 0)
		rc = weft__js_process_init(js, global);
	add_waiting(ctx, global);
	JS_FreeValue(ctx, global);
	return rc < 0 ? -1 : 0;
}
