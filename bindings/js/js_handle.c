/* js_handle.c - handles: JavaScript values that C holds, and may drop on any thread.
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

struct weft__js_handle {
	struct weft__refs refs;
	weft_js *js;
	JSValue value;               /* loop's thread only */
	struct weft__link of_engine; /* loop's thread only */
	weft_node node;              /* posts it, once dropped */
	bool refused;                /* by the loop; under the lock */
};

static void
handle_end(struct weft__js_handle *handle)
{
	weft_js *js = handle->js;

	weft_release(handle);
	weft__js_unref(js);
}

/* Runs on the loop's thread. */
static void
end_here(void *arg)
{
	struct weft__js_handle *handle = arg;
	JSRuntime *rt = handle->js->rt;

	if (!weft__list_is_empty(&handle->of_engine)) {
		weft__link_remove(&handle->of_engine);
		JS_FreeValueRT(rt, handle->value);
	}
	handle_end(handle);
}

/* Returns whether the loop's thread will free it. */
static bool
send_to_loop(weft_js *js, struct weft__js_handle *handle)
{
	bool open;

	(void)pthread_mutex_lock(&js->lock);
	open = !js->handles_closed;
	if (open) {
		handle->node = (weft_node){ .fn = end_here, .arg = handle };
		if (weft_loop_post_node(js->loop, &handle->node) < 0)
			handle->refused = true;
	}
	(void)pthread_mutex_unlock(&js->lock);
	return open;
}

static void
handle_drop(void *ptr)
{
	struct weft__js_handle *handle = ptr;
	weft_js *js = handle->js;
	weft_loop *current;

	if (!weft__refs_drop(&handle->refs))
		return;
	current = weft_loop_current();
	if (current && current == __atomic_load_n(&js->loop, __ATOMIC_RELAXED))
		end_here(handle);
	else if (!send_to_loop(js, handle))
		handle_end(handle);
}

static void
share(void *ptr)
{
	struct weft__js_handle *handle = ptr;

	weft__refs_add(&handle->refs);
}

const weft_type weft_type_js = { .name = "js", .drop = handle_drop, .share = share };

int
weft__js_handle_make(weft_js *js, JSValueConst value, weft_value *out)
{
	struct weft__js_handle *handle = weft_alloc(sizeof(*handle));

	if (!handle)
		return weft_fail(WEFT_ENOMEM, "out of memory");
	*handle = (struct weft__js_handle){ .refs = WEFT__REFS_ONE,
		                            .js = weft__js_ref(js),
		                            .value = JS_DupValue(js->ctx, value) };
	weft__link_after(&js->handles, &handle->of_engine);
	*out = weft_value_ptr(&weft_type_js, handle);
	return 0;
}

JSValue
weft__js_handle_value(weft_js *js, const weft_value *value)
{
	const struct weft__js_handle *handle = value->as.ptr;

	if (handle->js != js)
		return JS_ThrowTypeError(js->ctx, "the value belongs to another engine");
	return JS_DupValue(js->ctx, handle->value);
}

/* Ends the first value.  If there is none, closes the list and returns false. */
static bool
end_first(weft_js *js)
{
	struct weft__js_handle *handle = NULL;
	JSValue value = JS_UNDEFINED;
	bool refused = false;

	(void)pthread_mutex_lock(&js->lock);
	if (!weft__list_is_empty(&js->handles)) {
		handle = WEFT__LINK_OF(weft__js_handle, of_engine, js->handles.next);
		value = handle->value;
		refused = handle->refused;
		weft__link_remove(&handle->of_engine);
	} else {
		js->handles_closed = true;
	}
	(void)pthread_mutex_unlock(&js->lock);
	JS_FreeValueRT(js->rt, value);
	if (refused)
		handle_end(handle);
	return handle != NULL;
}

/* Freeing a value may drop others. */
void
weft__js_handles_fini(weft_js *js)
{
	while (end_first(js))
		continue;
}
