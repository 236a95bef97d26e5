/* addon.c - weft's promises for Node, in the form that the conformance suite needs.
 *
 * adapter.js does the JavaScript part: it puts each value into an object, its box, which
 * describes the value: { value }, { promise: handle }, or { then: fn(handle) } for a foreign
 * thenable.  This file converts a box to a weft value, and back.  A handle is a JavaScript
 * object that wraps a weft promise.
 *
 *   1. All of this runs on Node's single thread.  The loop runs only in run(), which the adapter
 *      calls with no code of the suite on the stack.  So handlers are called like that, too.
 *   2. A value holds its box by a reference, and drops the reference with itself.
 *   3. In JavaScript a promise that can no longer be settled stays pending; weft rejects it.
 *      So the handle of a pending promise never drops its reference.
 *   4. Only one of two handlers is called, and there is no notification for the other: both
 *      stay allocated until the process ends.
 */
#include <node_api.h>
#include <stdlib.h>
#include <weft/embed.h>
#include <weft/loop.h>
#include <weft/promise.h>

#define CHECK(call)        \
	((call) == napi_ok \
	         ? (void)0 \
	         : napi_fatal_error(__FILE__, NAPI_AUTO_LENGTH, #call, NAPI_AUTO_LENGTH))
#define MUST(cond) CHECK((cond) ? napi_ok : napi_generic_failure)

static napi_env node; /* the only environment */
static weft_loop *loop;

/* --- boxes and values --------------------------------------------------- */

static void
drop_box(void *ptr)
{
	CHECK(napi_delete_reference(node, ptr));
}

static napi_value
get_box(void *ptr)
{
	napi_value box;

	CHECK(napi_get_reference_value(node, ptr, &box));
	return box;
}

static napi_value
get_member(napi_value object, const char *name)
{
	napi_value member;

	CHECK(napi_get_named_property(node, object, name, &member));
	return member;
}

static bool
has_member(napi_value object, const char *name)
{
	bool has;

	CHECK(napi_has_named_property(node, object, name, &has));
	return has;
}

static weft_promise *
promise_of(napi_value handle)
{
	void *promise;

	CHECK(napi_unwrap(node, handle, &promise));
	return promise;
}

/* Invariant 3. */
static void
on_handle_gone(napi_env env, void *promise, void *hint)
{
	(void)env;
	(void)hint;
	if (weft_promise_state(promise, NULL) != WEFT_PENDING)
		(void)weft_promise_unref(promise);
}

/* Takes over the reference to the promise. */
static napi_value
make_handle(weft_promise *promise)
{
	napi_value handle;

	MUST(promise);
	CHECK(napi_create_object(node, &handle));
	CHECK(napi_wrap(node, handle, promise, on_handle_gone, NULL, NULL));
	return handle;
}

/* A foreign thenable: the function in its box settles the promise of the handle, and does
 * not throw. */
static int
call_then(void *ptr, weft_promise *into)
{
	napi_value box = get_box(ptr);
	napi_value handle = make_handle(weft_promise_ref(into));

	CHECK(napi_call_function(node, box, get_member(box, "then"), 1, &handle, NULL));
	return 0;
}

static const weft_type type_box = { .name = "JavaScript value", .drop = drop_box };
static const weft_type type_thenable = { .name = "JavaScript thenable",
	                                 .drop = drop_box,
	                                 .then = call_then };

static weft_value
value_of(napi_value box)
{
	napi_ref ref;

	if (has_member(box, "promise"))
		return weft_value_promise(weft_promise_ref(promise_of(get_member(box, "promise"))));
	CHECK(napi_create_reference(node, box, 1, &ref));
	return weft_value_ptr(has_member(box, "then") ? &type_thenable : &type_box, ref);
}

static napi_value
box_of(napi_value value)
{
	napi_value box;

	CHECK(napi_create_object(node, &box));
	CHECK(napi_set_named_property(node, box, "value", value));
	return box;
}

/* The only error that weft creates here is that of a promise resolved with itself. */
static napi_value
box_of_error(int error)
{
	napi_value text, thrown;

	MUST(error == WEFT_EDEADLK);
	CHECK(napi_create_string_utf8(node, weft_detail(), NAPI_AUTO_LENGTH, &text));
	CHECK(napi_create_type_error(node, NULL, text, &thrown));
	return box_of(thrown);
}

/* --- handlers ----------------------------------------------------------- */

struct handlers {
	napi_ref fulfilled, rejected; /* functions that take a box; or NULL */
};

static int
call_handler(napi_ref handler, const weft_value *in, weft_value *out)
{
	napi_value box, thrown, made, fn = get_box(handler);
	napi_status status;

	if (in->type == &weft_type_error)
		box = box_of_error((int)in->as.integer);
	else
		box = get_box(in->as.ptr);
	status = napi_call_function(node, box, fn, 1, &box, &made);
	if (status == napi_ok) {
		*out = value_of(made);
		return 0;
	}
	MUST(status == napi_pending_exception);
	CHECK(napi_get_and_clear_last_exception(node, &thrown));
	*out = value_of(box_of(thrown));
	return WEFT_EREJECTED;
}

static int
on_fulfilled(const weft_value *in, weft_value *out, void *arg)
{
	return call_handler(((struct handlers *)arg)->fulfilled, in, out);
}

static int
on_rejected(const weft_value *in, weft_value *out, void *arg)
{
	return call_handler(((struct handlers *)arg)->rejected, in, out);
}

/* Returns a reference to a function, or NULL if `fn` is not a function. */
static napi_ref
keep_function(napi_value fn)
{
	napi_valuetype type;
	napi_ref ref = NULL;

	CHECK(napi_typeof(node, fn, &type));
	if (type == napi_function)
		CHECK(napi_create_reference(node, fn, 1, &ref));
	return ref;
}

/* --- functions for the adapter ------------------------------------------- */

struct call {
	napi_value args[3];
};

static struct call
arguments(napi_callback_info info)
{
	struct call call;
	size_t count = 3;

	CHECK(napi_get_cb_info(node, info, &count, call.args, NULL, NULL));
	return call;
}

/* make(): returns a handle. */
static napi_value
make(napi_env env, napi_callback_info info)
{
	(void)env;
	(void)info;
	return make_handle(weft_promise_new(loop));
}

/* resolve(handle, box), reject(handle, box); no effect if already settled. */
static napi_value
resolve(napi_env env, napi_callback_info info)
{
	struct call call = arguments(info);

	(void)env;
	(void)weft_promise_resolve(promise_of(call.args[0]), value_of(call.args[1]));
	return NULL;
}

static napi_value
reject(napi_env env, napi_callback_info info)
{
	struct call call = arguments(info);

	(void)env;
	(void)weft_promise_reject(promise_of(call.args[0]), value_of(call.args[1]));
	return NULL;
}

/* then(handle, fulfilled, rejected): returns a handle. */
static napi_value
then(napi_env env, napi_callback_info info)
{
	struct call call = arguments(info);
	struct handlers *handlers = malloc(sizeof(*handlers));

	(void)env;
	MUST(handlers);
	handlers->fulfilled = keep_function(call.args[1]);
	handlers->rejected = keep_function(call.args[2]);
	return make_handle(weft_promise_then(weft_promise_ref(promise_of(call.args[0])),
	                                     handlers->fulfilled ? on_fulfilled : NULL,
	                                     handlers->rejected ? on_rejected : NULL, handlers));
}

static void
call_first(void *arg)
{
	napi_value self;

	CHECK(napi_get_undefined(node, &self));
	CHECK(napi_call_function(node, self, *(napi_value *)arg, 0, NULL, NULL));
}

/* run(first): runs one loop iteration, in which the loop calls `first`.  Returns whether
 * another iteration is due. */
static napi_value
run(napi_env env, napi_callback_info info)
{
	struct call call = arguments(info);
	napi_value more;

	(void)env;
	MUST(weft_loop_post(loop, call_first, &call.args[0]) == 0);
	MUST(weft_loop_run_once(loop, WEFT_NOWAIT) >= 0);
	CHECK(napi_get_boolean(node, weft_loop_next(loop) == WEFT_NOWAIT, &more));
	return more;
}

NAPI_MODULE_INIT()
{
	const napi_property_descriptor calls[] = {
		{ .utf8name = "make", .method = make },
		{ .utf8name = "resolve", .method = resolve },
		{ .utf8name = "reject", .method = reject },
		{ .utf8name = "then", .method = then },
		{ .utf8name = "run", .method = run },
	};

	node = env;
	loop = weft_loop_new(NULL);
	MUST(loop);
	CHECK(napi_define_properties(env, exports, sizeof(calls) / sizeof(calls[0]), calls));
	return exports;
}
