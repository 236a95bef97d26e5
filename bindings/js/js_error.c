/* js_error.c - converts exceptions of scripts to C errors, and C errors to exceptions. */
#include <stdio.h>
#include <stdlib.h>
#include "engine.h"

/* --- texts -------------------------------------------------------------------- */

/* Reads an own data property.  Unlike JS_GetPropertyStr(), this never runs a getter. */
static JSValue
get_own(JSContext *ctx, JSValueConst object, const char *name)
{
	JSPropertyDescriptor found = { .value = JS_UNDEFINED,
		                       .getter = JS_UNDEFINED,
		                       .setter = JS_UNDEFINED };
	JSAtom atom = JS_NewAtom(ctx, name);
	int rc = atom == JS_ATOM_NULL ? -1 : JS_GetOwnProperty(ctx, &found, object, atom);

	JS_FreeAtom(ctx, atom);
	if (rc <= 0)
		return rc < 0 ? JS_EXCEPTION : JS_UNDEFINED;
	JS_FreeValue(ctx, found.getter);
	JS_FreeValue(ctx, found.setter);
	return found.value;
}

/* Whether script code may run to produce a text.  If the script was stopped, running more of it
 * could repeat forever. */
static bool
may_run_script(const weft_js *js)
{
	return !js->stopped && !js->ended;
}

/* A value as text; NULL if it cannot be converted.  Free it with JS_FreeCString(). */
static const char *
to_text(weft_js *js, JSValueConst value)
{
	const char *text = NULL;

	if (JS_IsString(value) || may_run_script(js))
		text = JS_ToCString(js->ctx, value);
	if (!text)
		JS_FreeValue(js->ctx, JS_GetException(js->ctx));
	return text;
}

/* A property of an Error as text; NULL if there is none, or it cannot be converted.  Free it
 * with JS_FreeCString(). */
static const char *
get_text(weft_js *js, JSValueConst error, const char *name)
{
	JSContext *ctx = js->ctx;
	JSValue value = may_run_script(js) ? JS_GetPropertyStr(ctx, error, name)
	                                   : get_own(ctx, error, name);
	const char *text = NULL;

	if (JS_IsException(value))
		JS_FreeValue(ctx, JS_GetException(ctx));
	else if (!JS_IsUndefined(value))
		text = to_text(js, value);
	JS_FreeValue(ctx, value);
	return text;
}

static char *
join(const char *limit, const char *name, const char *message, const char *stack)
{
	size_t size = strlen(limit) + strlen(name) + strlen(message) + strlen(stack) + 4;
	char *text = weft_alloc(size);

	if (!text)
		return NULL;
	(void)snprintf(text, size, "%s%s%s%s\n%s", limit, name, *message ? ": " : "", message,
	               stack);
	for (size = strlen(text); size > 0 && text[size - 1] == '\n'; size--)
		text[size - 1] = '\0';
	return text;
}

/* A prefix that names the limit which was reached. */
static const char *
limit_of(const weft_js *js, int number)
{
	if (number == WEFT_ENOMEM && js->over)
		return "out of memory: ";
	return number == WEFT_ETIMEDOUT && js->stopped ? "time limit exceeded: " : "";
}

/* "TypeError: message", followed by the stack on the next lines.  For a value that is not an
 * Error, its string conversion.  NULL if out of memory. */
static char *
js_error_describe(weft_js *js, JSValueConst error, int number)
{
	JSContext *ctx = js->ctx;
	const char *parts[3] = { NULL, NULL, NULL };
	static const char *const names[3] = { "name", "message", "stack" };
	char *text;

	if (JS_IsError(error))
		for (int i = 0; i < 3; i++)
			parts[i] = get_text(js, error, names[i]);
	else
		parts[0] = to_text(js, error);
	text = join(limit_of(js, number),
	            parts[0]   ? parts[0]
	            : parts[1] ? "InternalError"
	                       : "an error without a message",
	            parts[1] ? parts[1] : "", parts[2] ? parts[2] : "");
	for (int i = 0; i < 3; i++)
		if (parts[i])
			JS_FreeCString(ctx, parts[i]);
	return text;
}

/* --- error numbers -------------------------------------------------------------- */

/* The C error that an Error was made from, or 0. */
static int
number_of(weft_js *js, JSValueConst error)
{
	JSContext *ctx = js->ctx;
	JSValue number = may_run_script(js) ? JS_GetPropertyStr(ctx, error, "errno")
	                                    : get_own(ctx, error, "errno");
	const char *code = get_text(js, error, "code");
	int32_t value = 0;

	if (JS_VALUE_GET_TAG(number) == JS_TAG_INT)
		value = JS_VALUE_GET_INT(number);
	else if (JS_IsException(number))
		JS_FreeValue(ctx, JS_GetException(ctx));
	if (value >= 0 || !code || strcmp(code, weft_errname(value)) != 0)
		value = 0;
	if (code)
		JS_FreeCString(ctx, code);
	JS_FreeValue(ctx, number);
	return value;
}

static bool
is_text(weft_js *js, JSValueConst error, const char *name, const char *want)
{
	const char *text = get_text(js, error, name);
	bool is = text && strcmp(text, want) == 0;

	if (text)
		JS_FreeCString(js->ctx, text);
	return is;
}

/* If there is no memory even for the error object, QuickJS throws null. */
static bool
is_memory(weft_js *js, JSValueConst error)
{
	if (!JS_IsError(error))
		return js->refused && (JS_IsNull(error) || JS_IsUninitialized(error));
	return is_text(js, error, "name", "InternalError")
	       && is_text(js, error, "message", "out of memory");
}

static int
number_or_script(weft_js *js, JSValueConst error)
{
	int number = JS_IsError(error) ? number_of(js, error) : 0;

	return number ? number : WEFT_ESCRIPT;
}

/* If the callback has reached a limit, that limit is the error, regardless of what was thrown. */
static int
classify(weft_js *js, JSValueConst error)
{
	if (js->stopped)
		return js->stopped;
	return is_memory(js, error) ? WEFT_ENOMEM : number_or_script(js, error);
}

/* Takes ownership of `text`. */
static int
fail_with(int number, char *text)
{
	(void)weft_fail(number, "%s", text ? text : weft_strerror(number));
	weft_release(text);
	return number;
}

int
weft__js_error_of(weft_js *js, JSValueConst error)
{
	int number = number_or_script(js, error);

	return fail_with(number, js_error_describe(js, error, number));
}

int
weft__js_failure(weft_js *js)
{
	JSValue error = JS_GetException(js->ctx);
	int number;

	number = classify(js, error);
	if (js->ended)
		number = weft_fail(WEFT_ESHUTDOWN, "the script has ended");
	else
		(void)fail_with(number, js_error_describe(js, error, number));
	JS_FreeValue(js->ctx, error);
	return number;
}

/* --- C errors --------------------------------------------------------------------- */

JSValue
weft__js_make_error(weft_js *js, int error)
{
	JSContext *ctx = js->ctx;
	const char *text = weft_detail();
	JSValue message = JS_NewString(ctx, *text ? text : weft_strerror(error));
	JSValue made = JS_IsException(message) ? JS_EXCEPTION
	                                       : JS_CallConstructor(ctx, js->error, 1, &message);
	int flags = JS_PROP_CONFIGURABLE | JS_PROP_WRITABLE;

	JS_FreeValue(ctx, message);
	if (JS_IsException(made))
		return made;
	if (JS_DefinePropertyValueStr(ctx, made, "code", JS_NewString(ctx, weft_errname(error)),
	                              flags | JS_PROP_ENUMERABLE)
	            < 0
	    || JS_DefinePropertyValueStr(ctx, made, "errno", JS_NewInt32(ctx, error),
	                                 flags | JS_PROP_ENUMERABLE)
	               < 0) {
		JS_FreeValue(ctx, made);
		return JS_EXCEPTION;
	}
	return made;
}

JSValue
weft__js_throw(weft_js *js, int error)
{
	JSValue made = error == WEFT_ENOMEM ? JS_ThrowOutOfMemory(js->ctx)
	                                    : weft__js_make_error(js, error);

	return JS_IsException(made) ? made : JS_Throw(js->ctx, made);
}

JSValue
weft__js_interrupted(weft_js *js)
{
	JSContext *ctx = js->ctx;
	JSValue error;

	(void)JS_ThrowInternalError(ctx, "interrupted");
	error = JS_GetException(ctx);
	JS_SetUncatchableError(ctx, error);
	return JS_Throw(ctx, error);
}

/* --- unhandled errors -------------------------------------------------------------- */

void
weft__js_unhandled(weft_js *js, JSValueConst error)
{
	char *text;
	int number;

	if (js->ended)
		return;
	number = classify(js, error);
	js->reported = js->reported || number == js->stopped;
	text = js_error_describe(js, error, number);
	(void)weft_fail(number, "%s", text ? text : weft_strerror(number));
	if (js->opts.on_error
	    && !js->opts.on_error(js, number, text ? text : weft_strerror(number), js->opts.arg))
		weft__js_end(js);
	if (js->failed == 0) {
		js->failed = number;
		js->failed_text = text;
	} else {
		weft_release(text);
	}
}

/* Finds the position in the topmost frame of a stack: " at name (file:line:column)". */
static void
find_place(char *stack, const char **file, int *line, int *column)
{
	char *end = stack + strcspn(stack, "\n"), *begin;

	*end = '\0';
	if (end > stack && end[-1] == ')')
		end[-1] = '\0';
	begin = strrchr(stack, '(');
	begin = begin ? begin + 1 : strstr(stack, "at ");
	if (!begin)
		return;
	if (strncmp(begin, "at ", 3) == 0)
		begin += 3;
	*file = begin;
	for (int *number = column; number; number = number == column ? line : NULL) {
		char *colon = strrchr(begin, ':');

		if (!colon)
			return;
		*colon = '\0';
		*number = (int)strtol(colon + 1, NULL, 10);
	}
}

/* Calls the listeners for "error".  Returns whether one of them has handled the error. */
static bool
dispatch(weft_js *js, JSValueConst error, JSValueConst events)
{
	JSContext *ctx = js->ctx;
	JSValue fn = JS_GetPropertyStr(ctx, events, "dispatchError"), result;
	const char *stack = JS_IsError(error) ? get_text(js, error, "stack") : NULL;
	char *copy = stack ? js_strdup(ctx, stack) : NULL;
	char *text = js_error_describe(js, error, 0);
	const char *file = "";
	int line = 0, column = 0;
	JSValue args[5];

	if (text)
		text[strcspn(text, "\n")] = '\0';
	if (copy)
		find_place(copy, &file, &line, &column);
	args[0] = JS_NewString(ctx, text ? text : "");
	args[1] = JS_NewString(ctx, file);
	args[2] = JS_NewInt32(ctx, line);
	args[3] = JS_NewInt32(ctx, column);
	args[4] = error;
	result = JS_Call(ctx, fn, JS_UNDEFINED, 5, args);
	if (JS_IsException(result))
		JS_FreeValue(ctx, JS_GetException(ctx));
	JS_FreeValue(ctx, args[0]);
	JS_FreeValue(ctx, args[1]);
	JS_FreeValue(ctx, fn);
	js_free(ctx, copy);
	if (stack)
		JS_FreeCString(ctx, stack);
	weft_release(text);
	return JS_IsBool(result) && JS_VALUE_GET_BOOL(result);
}

void
weft__js_report(weft_js *js, JSValueConst error)
{
	bool handled = false;
	JSValue events;

	if (js->ended)
		return;
	events = weft__js_listened(js, "onerror");
	if (!js->reporting && !js->stopped && JS_IsObject(events)) {
		js->reporting = true;
		handled = dispatch(js, error, events);
		js->reporting = false;
	}
	if (!handled)
		weft__js_unhandled(js, error);
}

void
weft__js_uncaught(weft_js *js)
{
	JSValue error = JS_GetException(js->ctx);

	weft__js_report(js, error);
	JS_FreeValue(js->ctx, error);
}
