/* rejection.c - rejected promises without a handler.
 *
 * QuickJS reports when a promise is rejected without a handler, and when such a promise gets a
 * handler later.  Promises that still have none at the end of the checkpoint are reported, first
 * to the script, then to the host.  If one gets a handler after that, the script is notified of
 * that as well.  A WeakSet records which promises were reported, so that recording them keeps
 * nothing alive.
 */
#include "engine.h"

static void
rejection_end(weft_js *js, struct weft__js_rejection *item)
{
	JS_FreeValueRT(js->rt, item->promise);
	JS_FreeValueRT(js->rt, item->reason);
	item->promise = item->reason = JS_UNDEFINED;
}

static bool
is_same(JSValueConst a, JSValueConst b)
{
	return JS_IsObject(a) && JS_IsObject(b) && JS_VALUE_GET_PTR(a) == JS_VALUE_GET_PTR(b);
}

static bool
rejection_grow(struct weft__js_rejections *all)
{
	size_t room = all->room ? 2 * all->room : 16;
	struct weft__js_rejection *items;

	if (all->first > 0 && all->first >= all->room / 2) {
		memmove(all->items, all->items + all->first,
		        (all->count - all->first) * sizeof(*items));
		all->count -= all->first;
		all->first = 0;
		return true;
	}
	items = weft_alloc(room * sizeof(*items));
	if (!items)
		return false;
	if (all->count > 0)
		memcpy(items, all->items, all->count * sizeof(*items));
	weft_release(all->items);
	all->items = items;
	all->room = room;
	return true;
}

/* If out of memory, the rejection is not reported. */
static void
rejection_add(weft_js *js, JSValueConst promise, JSValueConst reason, bool later)
{
	struct weft__js_rejections *all = &js->rejections;

	if (all->count == all->room && !rejection_grow(all))
		return;
	all->items[all->count++] = (struct weft__js_rejection){ JS_DupValue(js->ctx, promise),
		                                                JS_DupValue(js->ctx, reason), later,
		                                                all->round };
}

/* Removes a waiting promise; usually it is the last, or the first that is left. */
static bool
forget(weft_js *js, JSValueConst promise)
{
	struct weft__js_rejections *all = &js->rejections;
	size_t at = all->count;

	if (at > all->first && is_same(all->items[at - 1].promise, promise)) {
		rejection_end(js, &all->items[--all->count]);
		return true;
	}
	for (at = all->first; at < all->count; at++)
		if (is_same(all->items[at].promise, promise) && !all->items[at].later)
			break;
	if (at == all->count)
		return false;
	rejection_end(js, &all->items[at]);
	while (all->first < all->count && JS_IsUndefined(all->items[all->first].promise))
		all->first++;
	return true;
}

/* --- reported promises ------------------------------------------------------------ */

static const char remember_text[] = "(() => { const reported = new WeakSet();"
				    " return [p => reported.add(p), p => reported.delete(p)]; })()";

static void
make_reported(weft_js *js)
{
	struct weft__js_rejections *all = &js->rejections;
	JSValue made = JS_Eval(js->ctx, remember_text, sizeof(remember_text) - 1, "weft:rejection",
	                       JS_EVAL_TYPE_GLOBAL);

	if (JS_IsException(made)) {
		JS_FreeValue(js->ctx, JS_GetException(js->ctx));
		return;
	}
	all->add_reported = JS_GetPropertyUint32(js->ctx, made, 0);
	all->remove_reported = JS_GetPropertyUint32(js->ctx, made, 1);
	JS_FreeValue(js->ctx, made);
}

static bool
rejection_request(weft_js *js, JSValueConst fn, JSValueConst promise)
{
	JSValue result = JS_Call(js->ctx, fn, JS_UNDEFINED, 1, &promise);
	bool yes = JS_IsBool(result) && JS_VALUE_GET_BOOL(result);

	if (JS_IsException(result))
		JS_FreeValue(js->ctx, JS_GetException(js->ctx));
	JS_FreeValue(js->ctx, result);
	return yes;
}

void
weft__js_track(JSContext *ctx, JSValueConst promise, JSValueConst reason, bool is_handled,
               void *opaque)
{
	weft_js *js = opaque;

	(void)ctx;
	if (js->ended || (js->stopped && !is_handled))
		return; /* only the stop itself is reported */
	if (!is_handled)
		rejection_add(js, promise, reason, false);
	else if (!forget(js, promise) && JS_IsFunction(js->ctx, js->rejections.remove_reported)
	         && rejection_request(js, js->rejections.remove_reported, promise))
		rejection_add(js, promise, reason, true);
}

/* --- at the end of the checkpoint ---------------------------------------------------- */

static bool
dispatch(weft_js *js, const struct weft__js_rejection *item)
{
	const char *type = item->later ? "rejectionhandled" : "unhandledrejection";
	JSValue events = weft__js_listened(js, item->later ? "onrejectionhandled"
	                                                   : "onunhandledrejection");
	JSContext *ctx = js->ctx;
	JSValue fn, result, args[3];
	bool handled;

	if (!JS_IsObject(events))
		return false;
	fn = JS_GetPropertyStr(ctx, events, "dispatchRejection");
	args[0] = JS_NewString(ctx, type);
	args[1] = item->promise;
	args[2] = item->reason;
	result = JS_Call(ctx, fn, JS_UNDEFINED, 3, args);
	if (JS_IsException(result))
		weft__js_uncaught(js);
	handled = JS_IsBool(result) && JS_VALUE_GET_BOOL(result);
	JS_FreeValue(ctx, result);
	JS_FreeValue(ctx, args[0]);
	JS_FreeValue(ctx, fn);
	return handled;
}

static void
judge(weft_js *js, const struct weft__js_rejection *item)
{
	bool handled;

	weft__js_enter(js);
	if (!item->later) {
		if (!JS_IsFunction(js->ctx, js->rejections.add_reported))
			make_reported(js);
		(void)rejection_request(js, js->rejections.add_reported, item->promise);
	}
	handled = dispatch(js, item);
	if (!item->later && !handled)
		weft__js_unhandled(js, item->reason);
	weft__js_leave(js);
}

/* Rejections added during this round are judged after the next drain.  Those that get a handler
 * during this round are not reported. */
int
weft__js_judge(weft_js *js)
{
	struct weft__js_rejections *all = &js->rejections;
	unsigned round = ++all->round;
	int count = 0;

	while (all->first < all->count && all->items[all->first].round != round) {
		struct weft__js_rejection item = all->items[all->first++];

		if (JS_IsUndefined(item.promise))
			continue;
		if (!js->ended)
			judge(js, &item);
		rejection_end(js, &item);
		count++;
	}
	if (all->first == all->count)
		all->first = all->count = 0;
	return count;
}

void
weft__js_rejections_fini(weft_js *js)
{
	struct weft__js_rejections *all = &js->rejections;

	for (size_t i = all->first; i < all->count; i++)
		rejection_end(js, &all->items[i]);
	weft_release(all->items);
	all->items = NULL;
	all->first = all->count = 0;
}
