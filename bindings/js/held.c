/* held.c - JavaScript values that C holds, and may drop on any thread.
 *
 *   1. Each is in the list of its engine, which belongs to the loop's thread.  The loop's thread
 *      unlinks it when it is dropped or the engine is freed.
 *   2. A thread other than the loop's that drops the last owner posts the value to the loop,
 *      under the lock: until the list is closed the engine holds the loop.  From then on the list
 *      stays empty, and only the memory is freed.
 *   3. If the loop refuses the post because it stops, the value is freed with the engine.
 *   4. Each holds a reference to the struct of its engine.
 */
#include "engine.h"

struct weft__js_held {
	struct weft__refs refs;
	weft_js *js;
	JSValue value;               /* loop's thread only */
	struct weft__link of_engine; /* loop's thread only */
	weft_node node;              /* posts it, once dropped */
	bool refused;                /* by the loop; under the lock */
};

static void
held_end(struct weft__js_held *held)
{
	weft_js *js = held->js;

	weft_release(held);
	weft__js_unref(js);
}

/* Runs on the loop's thread. */
static void
end_here(void *arg)
{
	struct weft__js_held *held = arg;
	JSRuntime *rt = held->js->rt;

	if (!weft__list_is_empty(&held->of_engine)) {
		weft__link_remove(&held->of_engine);
		JS_FreeValueRT(rt, held->value);
	}
	held_end(held);
}

/* Returns whether the loop's thread will free it. */
static bool
send_to_loop(weft_js *js, struct weft__js_held *held)
{
	bool open;

	(void)pthread_mutex_lock(&js->lock);
	open = !js->held_closed;
	if (open) {
		held->node = (weft_node){ .fn = end_here, .arg = held };
		if (weft_loop_post_node(js->loop, &held->node) < 0)
			held->refused = true;
	}
	(void)pthread_mutex_unlock(&js->lock);
	return open;
}

static void
held_drop(void *ptr)
{
	struct weft__js_held *held = ptr;
	weft_js *js = held->js;
	weft_loop *current;

	if (!weft__refs_drop(&held->refs))
		return;
	current = weft_loop_current();
	if (current && current == __atomic_load_n(&js->loop, __ATOMIC_RELAXED))
		end_here(held);
	else if (!send_to_loop(js, held))
		held_end(held);
}

static void
share(void *ptr)
{
	struct weft__js_held *held = ptr;

	weft__refs_add(&held->refs);
}

const weft_type weft_type_js = { .name = "js", .drop = held_drop, .share = share };

int
weft__js_hold(weft_js *js, JSValueConst value, weft_value *out)
{
	struct weft__js_held *held = weft_alloc(sizeof(*held));

	if (!held)
		return weft_fail(WEFT_ENOMEM, "out of memory");
	*held = (struct weft__js_held){ .refs = WEFT__REFS_ONE,
		                        .js = weft__js_ref(js),
		                        .value = JS_DupValue(js->ctx, value) };
	weft__link_after(&js->held, &held->of_engine);
	*out = weft_value_ptr(&weft_type_js, held);
	return 0;
}

JSValue
weft__js_held_value(weft_js *js, const weft_value *value)
{
	const struct weft__js_held *held = value->as.ptr;

	if (held->js != js)
		return JS_ThrowTypeError(js->ctx, "the value belongs to another engine");
	return JS_DupValue(js->ctx, held->value);
}

/* Ends the first value.  If there is none, closes the list and returns false. */
static bool
end_first(weft_js *js)
{
	struct weft__js_held *held = NULL;
	JSValue value = JS_UNDEFINED;
	bool refused = false;

	(void)pthread_mutex_lock(&js->lock);
	if (!weft__list_is_empty(&js->held)) {
		held = WEFT__LINK_OF(weft__js_held, of_engine, js->held.next);
		value = held->value;
		refused = held->refused;
		weft__link_remove(&held->of_engine);
	} else {
		js->held_closed = true;
	}
	(void)pthread_mutex_unlock(&js->lock);
	JS_FreeValueRT(js->rt, value);
	if (refused)
		held_end(held);
	return held != NULL;
}

/* Freeing a value may drop others. */
void
weft__js_held_fini(weft_js *js)
{
	while (end_first(js))
		continue;
}
