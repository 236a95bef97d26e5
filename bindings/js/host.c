/* host.c - the host functions for the scripts in lib/, in one frozen object. */
#include "engine.h"

static JSValue
now(JSContext *ctx, JSValueConst this_value UNUSED, int count UNUSED, JSValueConst *args UNUSED)
{
	return JS_NewNumber(ctx, (double)(weft_now() - weft__js_of(ctx)->began_ns) / 1e6);
}

static JSValue
timeout(JSContext *ctx, JSValueConst this_value UNUSED, int count UNUSED, JSValueConst *args)
{
	double ms = 0;

	if (JS_ToFloat64(ctx, &ms, args[1]) < 0)
		return JS_EXCEPTION;
	return weft__js_timeout(weft__js_of(ctx), args[0], ms, JS_ToBool(ctx, args[2]) > 0);
}

static void
write_out(weft_js *js, int fd, const char *text, size_t size)
{
	if (js->ended)
		return;
	if (js->opts.write)
		js->opts.write(js, fd, (weft_span){ text, size }, js->opts.arg);
	else
		weft__js_write(fd, text, size);
}

static JSValue
write_text(JSContext *ctx, JSValueConst this_value UNUSED, int count UNUSED, JSValueConst *args)
{
	int32_t fd = 1;
	size_t size;
	const char *text;

	if (JS_ToInt32(ctx, &fd, args[0]) < 0)
		return JS_EXCEPTION;
	text = JS_ToCStringLen(ctx, &size, args[1]);
	if (!text)
		return JS_EXCEPTION;
	weft__js_repair((char *)(uintptr_t)text, size);
	write_out(weft__js_of(ctx), fd == 2 ? 2 : 1, text, size);
	JS_FreeCString(ctx, text);
	return JS_UNDEFINED;
}

static JSValue
promise_state(JSContext *ctx, JSValueConst this_value UNUSED, int count UNUSED, JSValueConst *args)
{
	static const char *const names[] = { "pending", "fulfilled", "rejected" };
	int state = (int)JS_PromiseState(ctx, args[0]);
	JSValue parts[2];

	if (state < 0 || state > 2)
		state = 0;
	parts[0] = JS_NewString(ctx, names[state]);
	parts[1] = state > 0 ? JS_PromiseResult(ctx, args[0]) : JS_UNDEFINED;
	return JS_NewArrayFrom(ctx, 2, parts);
}

static const JSCFunctionListEntry functions[] = {
	JS_CFUNC_DEF("now", 0, now),
	JS_CFUNC_DEF("timeout", 3, timeout),
	JS_CFUNC_DEF("clear", 1, weft__js_clear),
	JS_CFUNC_DEF("microtask", 1, weft__js_microtask),
	JS_CFUNC_DEF("report", 1, weft__js_report_error),
	JS_CFUNC_DEF("write", 2, write_text),
	JS_CFUNC_DEF("utf8Encode", 1, weft__js_utf8_encode),
	JS_CFUNC_DEF("utf8EncodeInto", 2, weft__js_utf8_encode_into),
	JS_CFUNC_DEF("utf8Decode", 2, weft__js_utf8_decode),
	JS_CFUNC_DEF("utf8Open", 1, weft__js_utf8_open),
	JS_CFUNC_DEF("promiseState", 1, promise_state),
};

JSValue
weft__js_make_host(weft_js *js)
{
	JSContext *ctx = js->ctx;
	JSValue host = JS_NewObject(ctx);

	if (JS_IsException(host))
		return host;
	JS_SetPropertyFunctionList(ctx, host, functions, sizeof(functions) / sizeof(*functions));
	if (JS_DefinePropertyValueStr(
		    ctx, host, "timeOrigin",
		    JS_NewNumber(ctx,
	                         weft__js_date_ms() - (double)(weft_now() - js->began_ns) / 1e6),
		    JS_PROP_C_W_E)
	            < 0
	    || weft__js_net_init(js, host) < 0 || JS_FreezeObject(ctx, host) < 0) {
		JS_FreeValue(ctx, host);
		return JS_EXCEPTION;
	}
	return host;
}
