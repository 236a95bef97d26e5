/* js_handle.c - handles: JavaScript values that C holds, and may drop on any thread.
 *
 *   1. Each is in the list `handles` of its engine until its value is freed.  The list and the
 *      values belong to the loop's thread.
 *   2. The thread that drops the last owner ends the handle at once if it runs the engine or its
 *      loop.  Otherwise it adds the handle to the list `dropped`, under the lock, and wakes the
 *      loop.  The engine ends such handles when the loop runs, before it runs JavaScript, and
 *      when it is freed.
 *   3. No thread owns an idle loop: while the thread that used the engine last drops a value,
 *      another thread may start the loop.  So this drop, too, uses the list.
 *   4. weft_js_free() ends all values, then closes the list `dropped`.  Until then the engine
 *      holds the loop.  From then on the last owner only frees the memory.
 *   5. Each holds a reference to the struct of its engine.
 */
#include "engine.h"

struct weft__js_handle {
	struct weft__refs refs;
	weft_js *js;
	JSValue value;                /* loop's thread only */
	struct weft__link of_engine;  /* loop's thread only */
	struct weft__js_handle *next; /* in `dropped`; under the lock */
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
end_here(struct weft__js_handle *handle)
{
	JSRuntime *rt = handle->js->rt;

	if (!weft__list_is_empty(&handle->of_engine)) {
		weft__link_remove(&handle->of_engine);
		JS_FreeValueRT(rt, handle->value);
	}
	handle_end(handle);
}

/* Returns false if the list is closed. */
static bool
send_to_engine(weft_js *js, struct weft__js_handle *handle)
{
	bool open;

	(void)pthread_mutex_lock(&js->lock);
	open = !js->handles_closed;
	if (open) {
		handle->next = js->dropped;
		__atomic_store_n(&js->dropped, handle, __ATOMIC_RELAXED);
		if (!handle->next)
			weft_loop_wake(js->loop);
	}
	(void)pthread_mutex_unlock(&js->lock);
	return open;
}

static bool
is_on_loop(weft_js *js)
{
	weft_loop *current = weft_loop_current();

	return current && current == __atomic_load_n(&js->loop, __ATOMIC_RELAXED);
}

static void
handle_drop(void *ptr)
{
	struct weft__js_handle *handle = ptr;
	weft_js *js = handle->js;

	if (!weft__refs_drop(&handle->refs))
		return;
	if (weft__js_is_inside(js) || is_on_loop(js))
		end_here(handle);
	else if (!send_to_engine(js, handle))
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

/* With `close`, also closes the list. */
static void
end_dropped(weft_js *js, bool close)
{
	struct weft__js_handle *handle, *next;

	(void)pthread_mutex_lock(&js->lock);
	next = js->dropped;
	__atomic_store_n(&js->dropped, NULL, __ATOMIC_RELAXED);
	js->handles_closed |= close;
	(void)pthread_mutex_unlock(&js->lock);
	while ((handle = next)) {
		next = handle->next;
		end_here(handle);
	}
}

/* A thread that adds a handle after this check wakes the loop, so the next iteration finds it. */
void
weft__js_handles_end_dropped(weft_js *js)
{
	if (__atomic_load_n(&js->dropped, __ATOMIC_RELAXED))
		end_dropped(js, false);
}

/* Freeing a value may drop others. */
void
weft__js_handles_fini(weft_js *js)
{
	while (!weft__list_is_empty(&js->handles)) {
		struct weft__js_handle *handle = WEFT__LINK_OF(weft__js_handle, of_engine,
		                                               js->handles.next);
		JSValue value = handle->value;

		weft__link_remove(&handle->of_engine);
		JS_FreeValueRT(js->rt, value);
	}
	end_dropped(js, true);
}
