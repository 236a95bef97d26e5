/* js_process.c - the part of Node's `process` that command-line scripts need. */
#include "engine.h"

/* Ends the script: the exception cannot be caught, and no part of the script runs afterwards. */
static JSValue
exit_now(JSContext *ctx, JSValueConst this_value UNUSED, int count, JSValueConst *args)
{
	weft_js *js = weft__js_of(ctx);
	int32_t status = 0;
	JSValue error;

	if (count > 0 && !JS_IsUndefined(args[0])) {
		if (JS_ToInt32(ctx, &status, args[0]) < 0)
			return JS_EXCEPTION;
	} else {
		status = weft__js_exit_code(js);
	}
	if (!js->ended) {
		js->exited = true;
		js->status = status;
		weft__js_end(js);
		if (js->opts.on_exit)
			js->opts.on_exit(js, status, js->opts.arg);
	}
	(void)JS_ThrowInternalError(ctx, "the script has ended");
	error = JS_GetException(ctx);
	JS_SetUncatchableError(ctx, error);
	return JS_Throw(ctx, error);
}

/* The host may call this at any time, even after the script has ended.  So it runs no script
 * code: no getter, and no conversion of an object. */
int
weft__js_exit_code(weft_js *js)
{
	JSContext *ctx = js->ctx;
	JSPropertyDescriptor found;
	int32_t code = 0;
	JSAtom name;
	int has;

	if (!ctx || !JS_IsObject(js->process))
		return 0;
	name = JS_NewAtom(ctx, "exitCode");
	has = JS_GetOwnProperty(ctx, &found, js->process, name);
	JS_FreeAtom(ctx, name);
	if (has > 0) {
		if (!JS_IsObject(found.value) && JS_ToInt32(ctx, &code, found.value) < 0)
			JS_FreeValue(ctx, JS_GetException(ctx));
		JS_FreeValue(ctx, found.value);
		JS_FreeValue(ctx, found.getter);
		JS_FreeValue(ctx, found.setter);
	}
	return code;
}

static JSValue
make_argv(weft_js *js)
{
	JSContext *ctx = js->ctx;
	JSValue array = JS_NewArray(ctx);

	for (uint32_t i = 0; js->opts.argv && js->opts.argv[i]; i++)
		(void)JS_DefinePropertyValueUint32(
			ctx, array, i, JS_NewString(ctx, js->opts.argv[i]), JS_PROP_C_W_E);
	return array;
}

static JSValue
make_env(weft_js *js)
{
	JSContext *ctx = js->ctx;
	JSValue object = JS_NewObject(ctx);
	char **all = weft__js_environment();

	if (!(js->opts.grants & WEFT_JS_FILES))
		return object;
	for (; all && *all; all++) {
		size_t size = strcspn(*all, "=");
		JSAtom name = JS_NewAtomLen(ctx, *all, size);

		if ((*all)[size] == '=')
			(void)JS_DefinePropertyValue(ctx, object, name,
			                             JS_NewString(ctx, *all + size + 1),
			                             JS_PROP_C_W_E);
		JS_FreeAtom(ctx, name);
	}
	return object;
}

/* Created on first use: the environment is large and rarely needed. */
static JSValue
get_env(JSContext *ctx, JSValueConst this_value UNUSED)
{
	weft_js *js = weft__js_of(ctx);
	JSValue env = make_env(js);

	if (!JS_IsException(env)
	    && JS_DefinePropertyValueStr(ctx, js->process, "env", JS_DupValue(ctx, env),
	                                 JS_PROP_C_W_E)
	               < 0) {
		JS_FreeValue(ctx, env);
		return JS_EXCEPTION;
	}
	return env;
}

static const JSCFunctionListEntry functions[] = {
	JS_CFUNC_DEF("nextTick", 1, weft__js_next_tick),
	JS_CFUNC_DEF("exit", 1, exit_now),
	JS_CGETSET_DEF("env", get_env, NULL),
	JS_PROP_UNDEFINED_DEF("exitCode", JS_PROP_C_W_E),
	JS_PROP_STRING_DEF("version", "weft", JS_PROP_C_W_E),
};

int
weft__js_process_init(weft_js *js, JSValueConst global)
{
	JSContext *ctx = js->ctx;
	JSValue process = JS_NewObject(ctx);

	if (JS_IsException(process))
		return -1;
	js->process = process;
	JS_SetPropertyFunctionList(ctx, process, functions, sizeof(functions) / sizeof(*functions));
	if (JS_DefinePropertyValueStr(ctx, process, "argv", make_argv(js), JS_PROP_C_W_E) < 0)
		return -1;
	return JS_DefinePropertyValueStr(ctx, global, "process", JS_DupValue(ctx, process),
	                                 JS_PROP_CONFIGURABLE | JS_PROP_WRITABLE);
}
