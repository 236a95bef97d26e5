/* js_link.c - connects promises of scripts and of C.
 *
 * A script's promise that is passed to C: two reaction functions on the script's promise settle
 * the C promise.  Both refer to one object.  When that object is collected nothing can settle
 * the C promise, so its finalizer rejects it.
 *
 * A C promise that is passed to a script: a handler on the C promise settles the script's.  The
 * engine keeps a list of these links, and releases the script's side when it is freed.  The
 * handler runs in any case, and frees the link.
 */
#include <stdio.h>
#include "engine.h"

#define TEXT_BYTES 1024 /* enough for weft_detail() */

struct weft__js_link {
	weft_js *js; /* NULL: the engine was freed */
	JSValue settle[2];
	struct weft__link of_engine;
};

bool
weft__js_is_promise(weft_js *js, JSValueConst value)
{
	return JS_IsObject(value) && (int)JS_PromiseState(js->ctx, value) >= 0;
}

/* --- to C ------------------------------------------------------------------------- */

/* Saves weft_detail(): the collection may run inside a call that has its own error to report. */
static void
finalize_link(JSRuntime *rt, JSValue object)
{
	weft_js *js = JS_GetRuntimeOpaque(rt);
	weft_promise *promise = JS_GetOpaque(object, js->link_class);
	int error = js->freeing ? WEFT_ESHUTDOWN : WEFT_ECLOSED;
	char detail[TEXT_BYTES];

	if (!promise)
		return;
	(void)snprintf(detail, sizeof(detail), "%s", weft_detail());
	(void)weft_fail(error, js->freeing ? "the engine of the script was freed"
	                                   : "the script dropped its promise without settling it");
	(void)weft_promise_reject(promise, weft_value_error(error));
	(void)weft_promise_unref(promise);
	(void)weft_fail(error, "%s", detail);
}

static void
settle_with(weft_js *js, weft_promise *promise, JSValueConst value, bool reject)
{
	weft_value out = { 0 };
	int rc = weft__js_to(js, value, &out);

	if (rc < 0)
		(void)weft_promise_reject(promise, weft_value_error(rc));
	else if (reject)
		(void)weft_promise_reject(promise, out);
	else
		(void)weft_promise_resolve(promise, out);
}

static JSValue
js_link_settle(JSContext *ctx, JSValueConst this_value UNUSED, int count, JSValueConst *args,
               int reject, JSValue *data)
{
	weft_js *js = weft__js_of(ctx);
	weft_promise *promise = JS_GetOpaque(data[0], js->link_class);

	if (!promise)
		return JS_UNDEFINED;
	JS_SetOpaque(data[0], NULL);
	settle_with(js, promise, count > 0 ? args[0] : JS_UNDEFINED, reject);
	(void)weft_promise_unref(promise);
	return JS_UNDEFINED;
}

/* Adds two functions to `promise` that settle the promise which `object` points to. */
static int
hang_on(weft_js *js, JSValueConst promise, JSValueConst object)
{
	JSContext *ctx = js->ctx;
	JSValue fns[2] = {
		JS_NewCFunctionData(ctx, js_link_settle, 1, 0, 1, &object),
		JS_NewCFunctionData(ctx, js_link_settle, 1, 1, 1, &object),
	};
	JSValue chained = JS_EXCEPTION;

	if (!JS_IsException(fns[0]) && !JS_IsException(fns[1]))
		chained = JS_Call(ctx, js->then, promise, 2, fns);
	JS_FreeValue(ctx, fns[0]);
	JS_FreeValue(ctx, fns[1]);
	if (JS_IsException(chained))
		return weft__js_failure(js);
	JS_FreeValue(ctx, chained);
	return 0;
}

int
weft__js_to_promise(weft_js *js, JSValueConst promise, weft_promise **out)
{
	JSValue object = JS_NewObjectClass(js->ctx, (int)js->link_class);
	weft_promise *made;
	int rc;

	if (JS_IsException(object))
		return weft__js_failure(js);
	made = weft_promise_new(js->loop);
	if (!made) {
		JS_FreeValue(js->ctx, object);
		return weft_fail(WEFT_ENOMEM, "promise: out of memory");
	}
	JS_SetOpaque(object, weft_promise_ref(made));
	rc = hang_on(js, promise, object);
	JS_FreeValue(js->ctx, object);
	if (rc < 0)
		(void)weft_promise_unref(made);
	else
		*out = made;
	return rc;
}

static JSValue
do_nothing(JSContext *ctx UNUSED, JSValueConst this_value UNUSED, int count UNUSED,
           JSValueConst *args UNUSED)
{
	return JS_UNDEFINED;
}

void
weft__js_ignore(weft_js *js, JSValueConst promise)
{
	JSContext *ctx = js->ctx;
	JSValue fns[2] = { JS_UNDEFINED, JS_NewCFunction(ctx, do_nothing, "", 1) };
	JSValue chained = JS_Call(ctx, js->then, promise, 2, fns);

	if (JS_IsException(chained))
		JS_FreeValue(ctx, JS_GetException(ctx));
	JS_FreeValue(ctx, chained);
	JS_FreeValue(ctx, fns[1]);
}

/* --- to JavaScript ------------------------------------------------------------------- */

static void
let_go(weft_js *js, struct weft__js_link *link)
{
	weft__link_remove(&link->of_engine);
	link->js = NULL;
	JS_FreeValueRT(js->rt, link->settle[0]);
	JS_FreeValueRT(js->rt, link->settle[1]);
}

static void
js_link_notify(weft_js *js, struct weft__js_link *link, const weft_value *in, int which)
{
	JSValue value, result;

	weft__js_enter(js);
	value = weft__js_from(js, in);
	if (JS_IsException(value)) {
		value = JS_GetException(js->ctx);
		which = 1;
	}
	result = JS_Call(js->ctx, link->settle[which], JS_UNDEFINED, 1, &value);
	if (JS_IsException(result))
		weft__js_uncaught(js);
	JS_FreeValue(js->ctx, result);
	JS_FreeValue(js->ctx, value);
	let_go(js, link);
	weft__js_leave(js);
}

static int
on_settled(const weft_value *in, void *arg, int which)
{
	struct weft__js_link *link = arg;
	weft_js *js = link->js;

	if (js && !js->ended)
		js_link_notify(js, link, in, which);
	else if (js)
		let_go(js, link);
	weft_release(link);
	return 0;
}

static int
on_fulfilled(const weft_value *in, weft_value *out UNUSED, void *arg)
{
	return on_settled(in, arg, 0);
}

static int
on_rejected(const weft_value *in, weft_value *out UNUSED, void *arg)
{
	return on_settled(in, arg, 1);
}

/* A promise on the engine's loop that settles as `promise` does, which may be on any loop.
 * Takes ownership of `promise`. */
static weft_promise *
bring_home(weft_js *js, weft_promise *promise)
{
	weft_promise *home = weft_promise_new(js->loop);

	if (!home) {
		(void)weft_promise_unref(promise);
		return NULL;
	}
	(void)weft_promise_resolve(home, weft_value_promise(promise));
	return home;
}

static struct weft__js_link *
make_link(weft_js *js, const JSValue *settle_fns)
{
	struct weft__js_link *link = weft_alloc(sizeof(*link));

	if (!link)
		return NULL;
	*link = (struct weft__js_link){ .js = js };
	link->settle[0] = settle_fns[0];
	link->settle[1] = settle_fns[1];
	weft__link_after(&js->links, &link->of_engine);
	return link;
}

/* Adds the link's handlers to `promise` and takes ownership of it.  Returns false if out of
 * memory. */
static bool
chain(weft_js *js, struct weft__js_link *link, weft_promise *promise)
{
	weft_promise *chained;

	promise = bring_home(js, promise);
	chained = weft_promise_then(promise, on_fulfilled, on_rejected, link);
	if (!chained)
		return false;
	(void)weft_promise_unref(chained);
	return true;
}

JSValue
weft__js_from_promise(weft_js *js, weft_promise *promise)
{
	JSValue fns[2], made = JS_NewPromiseCapability(js->ctx, fns);
	struct weft__js_link *link;

	if (JS_IsException(made)) {
		(void)weft_promise_unref(promise);
		return made;
	}
	link = make_link(js, fns);
	if (!link) {
		JS_FreeValue(js->ctx, fns[0]);
		JS_FreeValue(js->ctx, fns[1]);
		(void)weft_promise_unref(promise);
	} else if (chain(js, link, promise)) {
		return made;
	} else {
		let_go(js, link);
		weft_release(link);
	}
	JS_FreeValue(js->ctx, made);
	return JS_ThrowOutOfMemory(js->ctx);
}

void
weft__js_links_fini(weft_js *js)
{
	while (!weft__list_is_empty(&js->links))
		let_go(js, WEFT__LINK_OF(weft__js_link, of_engine, js->links.next));
}

/* --- initialization ---------------------------------------------------------------------- */

static JSValue
get_then(JSContext *ctx, JSValueConst global)
{
	JSValue promise = JS_GetPropertyStr(ctx, global, "Promise");
	JSValue prototype = JS_GetPropertyStr(ctx, promise, "prototype");
	JSValue then = JS_GetPropertyStr(ctx, prototype, "then");

	JS_FreeValue(ctx, promise);
	JS_FreeValue(ctx, prototype);
	return then;
}

/* Keeps the originals: scripts may replace Promise and Error later. */
int
weft__js_link_init(weft_js *js)
{
	static const JSClassDef definition = { .class_name = "HostLink",
		                               .finalizer = finalize_link };
	JSValue global = JS_GetGlobalObject(js->ctx);

	js->then = get_then(js->ctx, global);
	js->error = JS_GetPropertyStr(js->ctx, global, "Error");
	JS_FreeValue(js->ctx, global);
	(void)JS_NewClassID(js->rt, &js->link_class);
	return JS_NewClass(js->rt, js->link_class, &definition);
}
