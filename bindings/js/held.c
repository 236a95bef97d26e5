/* held.c - JavaScript values that C holds, and may drop on any thread.
 *
 *   1. Each is in the list of its engine, which belongs to the loop's thread.  The loop's thread
 *      unlinks it when it is dropped or the engine is freed.
 *   2. A thread other than the loop's that drops the last owner queues the value under the lock
 *      and wakes the loop, until the list is closed.  From then on the list stays empty, and
 *      only the memory is freed.
 *   3. Each holds a reference to the struct of its engine.
 */
#include "engine.h"

struct weft__js_held {
	struct weft__refs refs;
	weft_js *js;
	JSValue value;                      /* loop's thread only */
	struct weft__js_held *next, **link; /* loop's thread only; NULL: not in the list */
	struct weft__js_held *next_dropped;
};

static void
take_off(struct weft__js_held *held)
{
	if (!held->link)
		return;
	*held->link = held->next;
	if (held->next)
		held->next->link = held->link;
	held->link = NULL;
}

static void
held_end(struct weft__js_held *held)
{
	weft_js *js = held->js;

	weft_release(held);
	weft__js_unref(js);
}

/* Runs on the loop's thread. */
static void
end_here(struct weft__js_held *held)
{
	JSRuntime *rt = held->js->rt;

	if (held->link) {
		take_off(held);
		JS_FreeValueRT(rt, held->value);
	}
	held_end(held);
}

void
weft__js_drop_queued(weft_js *js)
{
	struct weft__js_held *held, *next;

	(void)pthread_mutex_lock(&js->lock);
	held = js->dropped;
	js->dropped = NULL;
	(void)pthread_mutex_unlock(&js->lock);
	for (; held; held = next) {
		next = held->next_dropped;
		end_here(held);
	}
}

static void
on_dropped(void *arg)
{
	weft_js *js = arg;

	(void)pthread_mutex_lock(&js->lock);
	js->drop_posted = false;
	(void)pthread_mutex_unlock(&js->lock);
	weft__js_drop_queued(js);
	weft__js_unref(js);
}

/* Returns whether the loop will free it. */
static bool
queue(weft_js *js, struct weft__js_held *held)
{
	bool open;

	(void)pthread_mutex_lock(&js->lock);
	open = !js->held_closed;
	if (open) {
		held->next_dropped = js->dropped;
		js->dropped = held;
	}
	if (open && !js->drop_posted) {
		js->drop_node = (weft_node){ .fn = on_dropped, .arg = js };
		(void)weft__js_ref(js);
		js->drop_posted = true;
		if (weft_loop_post_node(js->loop, &js->drop_node) < 0) {
			js->drop_posted = false; /* freed when the engine is */
			weft__js_unref(js);
		}
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
	else if (!queue(js, held))
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
		                        .value = JS_DupValue(js->ctx, value),
		                        .next = js->held,
		                        .link = &js->held };
	if (js->held)
		js->held->link = &held->next;
	js->held = held;
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

/* Unlinks the first value.  If there is none, closes the list and returns false. */
static bool
take_first(weft_js *js, JSValue *value)
{
	struct weft__js_held *held;

	(void)pthread_mutex_lock(&js->lock);
	held = js->held;
	if (held) {
		*value = held->value;
		held->value = JS_UNDEFINED;
		take_off(held);
	} else {
		js->held_closed = true;
	}
	(void)pthread_mutex_unlock(&js->lock);
	return held != NULL;
}

/* Freeing a value may drop others. */
void
weft__js_held_fini(weft_js *js)
{
	JSValue value;

	while (take_first(js, &value))
		JS_FreeValueRT(js->rt, value);
	weft__js_drop_queued(js);
}
