/* js_value.c - conversion of values between JavaScript and C. */
#include "engine.h"

#define DEPTH_MAX    64
#define LOOK         1024
#define HANDLE_BYTES 64                 /* approximate cost of holding a value */
#define BLOCK_BYTES  32                 /* approximate overhead of each block */
#define WHOLE_MAX    ((int64_t)1 << 53) /* doubles are exact up to here */

/* --- to JavaScript ---------------------------------------------------------------- */

static JSValue
from_integer(JSContext *ctx, int64_t integer)
{
	if (integer > WHOLE_MAX || integer < -WHOLE_MAX)
		return JS_NewBigInt64(ctx, integer);
	return JS_NewInt64(ctx, integer);
}

static JSValue
from_list(weft_js *js, const weft_list *list)
{
	JSContext *ctx = js->ctx;
	JSValue array = JS_NewArray(ctx);

	for (size_t i = 0; !JS_IsException(array) && i < list->count; i++) {
		JSValue item = weft__js_from(js, &list->items[i]);

		if (JS_IsException(item)
		    || JS_DefinePropertyValueUint32(ctx, array, (uint32_t)i, item, JS_PROP_C_W_E)
		               < 0) {
			JS_FreeValue(ctx, array);
			return JS_EXCEPTION;
		}
	}
	return array;
}

/* Makes an object that contains a C value.  Takes ownership of the value. */
static JSValue
wrap(weft_js *js, weft_value *value)
{
	JSValue object = JS_NewObjectClass(js->ctx, (int)js->value_class);
	weft_value *content = JS_IsException(object) ? NULL : weft_alloc(sizeof(*content));

	if (!content) {
		weft_value_drop(value);
		JS_FreeValue(js->ctx, object);
		return JS_ThrowOutOfMemory(js->ctx);
	}
	*content = *value;
	*value = (weft_value){ 0 };
	JS_SetOpaque(object, content);
	return object;
}

static void
finalize_value(JSRuntime *rt, JSValue object)
{
	weft_js *js = JS_GetRuntimeOpaque(rt);
	weft_value *content = JS_GetOpaque(object, js->value_class);

	weft_value_drop(content);
	weft_release(content);
}

static JSValue
from_shared(weft_js *js, const weft_value *value)
{
	weft_value shared = { 0 };
	int rc = weft_value_share(value, &shared);

	return rc < 0 ? weft__js_throw(js, rc) : wrap(js, &shared);
}

/* With `take`, a value of an unknown type becomes the script's; otherwise it is shared. */
static JSValue
from(weft_js *js, weft_value *value, bool take)
{
	JSContext *ctx = js->ctx;
	const weft_type *type = value->type;
	const weft_span *bytes = value->as.ptr;

	if (!type)
		return JS_UNDEFINED;
	if (type == &weft_type_integer)
		return from_integer(ctx, value->as.integer);
	if (type == &weft_type_number)
		return JS_NewNumber(ctx, value->as.number);
	if (type == &weft_type_text)
		return JS_NewString(ctx, value->as.ptr);
	if (type == &weft_type_bytes)
		return JS_NewUint8ArrayCopy(ctx, bytes->data, bytes->size);
	if (type == &weft_type_list)
		return from_list(js, value->as.ptr);
	if (type == &weft_type_error)
		return weft__js_make_error(js, (int)value->as.integer);
	if (type == &weft_type_promise)
		return weft__js_from_promise(js, weft_promise_ref(value->as.ptr));
	if (type == &weft_type_js)
		return weft__js_handle_value(js, value);
	return take ? wrap(js, value) : from_shared(js, value);
}

JSValue
weft__js_from(weft_js *js, const weft_value *value)
{
	weft_value copy = *value;

	return from(js, &copy, false);
}

JSValue
weft__js_take(weft_js *js, weft_value *value)
{
	JSValue made = from(js, value, true);

	weft_value_drop(value);
	return made;
}

/* --- to C ---------------------------------------------------------------------------- */

/* The budget of one conversion.  A value that is referenced twice is copied twice, so a small
 * array may expand to more than the available memory. */
struct walk {
	weft_js *js;
	int depth;
	size_t left; /* bytes */
	unsigned items;
};

static int to(struct walk *walk, JSValueConst value, weft_value *out);

static int
spend(struct walk *walk, size_t size)
{
	size += BLOCK_BYTES;
	if (size > walk->left)
		return weft_fail(WEFT_EMSGSIZE, "a value for the host is larger than memory_bytes");
	walk->left -= size;
	return 0;
}

/* Handles the result of a weft_value constructor: an error from it is a failure, not a value of
 * the script. */
static int
made(weft_value value, weft_value *out)
{
	if (value.type == &weft_type_error)
		return weft_fail((int)value.as.integer, "%s", weft_strerror((int)value.as.integer));
	*out = value;
	return 0;
}

static int
to_number(JSContext *ctx, JSValueConst value, weft_value *out)
{
	double number;

	if (JS_VALUE_GET_TAG(value) == JS_TAG_INT) {
		*out = weft_value_integer(JS_VALUE_GET_INT(value));
		return 0;
	}
	(void)JS_ToFloat64(ctx, &number, value);
	if (fabs(number) <= (double)WHOLE_MAX && trunc(number) == number
	    && !(number == 0 && signbit(number)))
		*out = weft_value_integer((int64_t)number);
	else
		*out = (weft_value){ &weft_type_number, { .number = number } };
	return 0;
}

static int
to_bytes(struct walk *walk, weft_span bytes, weft_value *out)
{
	int rc = spend(walk, bytes.size);

	return rc < 0 ? rc : made(weft_value_bytes(bytes), out);
}

static int
to_text(struct walk *walk, JSValueConst value, weft_value *out)
{
	weft_js *js = walk->js;
	size_t size;
	const char *text = JS_ToCStringLen(js->ctx, &size, value);
	int rc;

	if (!text)
		return weft__js_failure(js);
	rc = spend(walk, size);
	if (rc == 0)
		rc = made(memchr(text, '\0', size) ? weft_value_bytes((weft_span){ text, size })
		                                   : weft_value_text(text),
		          out);
	JS_FreeCString(js->ctx, text);
	return rc;
}

void
weft__js_drop(weft_value *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		weft_value_drop(&values[i]);
}

/* Polls for limits once in LOOK items. */
static int
js_value_check(struct walk *walk)
{
	if (++walk->items % LOOK != 0 || !weft__js_poll(walk->js))
		return 0;
	(void)weft__js_interrupted(walk->js);
	return weft__js_failure(walk->js);
}

static int
to_item(struct walk *walk, JSValueConst array, uint32_t at, weft_value *out)
{
	weft_js *js = walk->js;
	int rc = js_value_check(walk);
	JSValue item;

	if (rc < 0)
		return rc;
	item = JS_GetPropertyUint32(js->ctx, array, at);
	if (JS_IsException(item))
		return weft__js_failure(js);
	rc = to(walk, item, out);
	JS_FreeValue(js->ctx, item);
	return rc;
}

static int
to_items(struct walk *walk, JSValueConst array, uint32_t count, weft_value *items)
{
	int rc = 0;

	memset(items, 0, ((size_t)count + 1) * sizeof(*items));
	walk->depth++;
	for (uint32_t i = 0; rc == 0 && i < count; i++)
		rc = to_item(walk, array, i, &items[i]);
	walk->depth--;
	return rc;
}

static int
to_list(struct walk *walk, JSValueConst array, weft_value *out)
{
	weft_value *items;
	int64_t count;
	int rc;

	if (JS_GetLength(walk->js->ctx, array, &count) < 0)
		return weft__js_failure(walk->js);
	if (walk->depth >= DEPTH_MAX)
		return weft_fail(WEFT_EINVAL, "arrays are nested more than 64 levels deep");
	rc = spend(walk, ((size_t)count + 1) * sizeof(*items));
	if (rc < 0)
		return rc;
	items = weft_alloc(((size_t)count + 1) * sizeof(*items));
	if (!items)
		return weft_fail(WEFT_ENOMEM, "out of memory");
	rc = to_items(walk, array, (uint32_t)count, items);
	if (rc < 0)
		weft__js_drop(items, (size_t)count);
	else
		rc = made(weft_value_list(items, (size_t)count), out);
	weft_release(items);
	return rc;
}

/* The bytes of a Uint8Array or an ArrayBuffer.  Returns false if it is neither. */
static bool
find_bytes(JSContext *ctx, JSValueConst value, weft_span *out)
{
	uint8_t *data = JS_GetArrayBuffer(ctx, &out->size, value);

	out->data = data;
	if (data)
		return true;
	JS_FreeValue(ctx, JS_GetException(ctx));
	if (weft__js_bytes(ctx, value, out))
		return true;
	JS_FreeValue(ctx, JS_GetException(ctx));
	return false;
}

static int
to_promise(weft_js *js, JSValueConst value, weft_value *out)
{
	weft_promise *promise = NULL;
	int rc = weft__js_to_promise(js, value, &promise);

	if (rc == 0)
		*out = weft_value_promise(promise);
	return rc;
}

static int
to_handle(struct walk *walk, JSValueConst value, weft_value *out)
{
	int rc = spend(walk, HANDLE_BYTES);

	return rc < 0 ? rc : weft__js_handle_make(walk->js, value, out);
}

/* Whether it is an array, or a proxy of one at any depth, as Array.isArray() defines it. */
static bool
is_array(JSContext *ctx, JSValueConst value)
{
	JSValue at = JS_DupValue(ctx, value);
	bool found;

	for (int depth = 0; depth < DEPTH_MAX && JS_IsProxy(at); depth++) {
		JSValue target = JS_GetProxyTarget(ctx, at);

		JS_FreeValue(ctx, at);
		at = target;
	}
	if (JS_IsException(at)) /* revoked */
		JS_FreeValue(ctx, JS_GetException(ctx));
	found = JS_IsArray(at);
	JS_FreeValue(ctx, at);
	return found;
}

static int
to_object(struct walk *walk, JSValueConst value, weft_value *out)
{
	weft_js *js = walk->js;
	JSContext *ctx = js->ctx;
	const weft_value *content = JS_GetOpaque(value, js->value_class);
	weft_span bytes;

	if (content)
		return weft_value_share(content, out);
	if (is_array(ctx, value))
		return to_list(walk, value, out);
	if (weft__js_is_promise(js, value))
		return to_promise(js, value, out);
	if (JS_IsError(value)) {
		*out = weft_value_error(weft__js_error_of(js, value));
		return 0;
	}
	if (!JS_IsFunction(ctx, value) && find_bytes(ctx, value, &bytes))
		return to_bytes(walk, bytes, out);
	return to_handle(walk, value, out);
}

static int
to(struct walk *walk, JSValueConst value, weft_value *out)
{
	if (JS_IsUndefined(value) || JS_IsNull(value)) {
		*out = (weft_value){ 0 };
		return 0;
	}
	if (JS_IsBool(value)) {
		*out = weft_value_integer(JS_VALUE_GET_BOOL(value));
		return 0;
	}
	if (JS_IsNumber(value))
		return to_number(walk->js->ctx, value, out);
	if (JS_IsString(value))
		return to_text(walk, value, out);
	if (JS_IsObject(value))
		return to_object(walk, value, out);
	return to_handle(walk, value, out);
}

int
weft__js_to(weft_js *js, JSValueConst value, weft_value *out)
{
	return weft__js_to_all(js, 1, &value, out);
}

int
weft__js_to_all(weft_js *js, int count, JSValueConst *values, weft_value *out)
{
	struct walk walk = { .js = js, .left = js->opts.memory_bytes };
	int rc = 0;

	memset(out, 0, (size_t)count * sizeof(*out));
	for (int i = 0; rc == 0 && i < count; i++)
		rc = to(&walk, values[i], &out[i]);
	if (rc < 0)
		weft__js_drop(out, (size_t)count);
	return rc;
}

int
weft__js_value_init(weft_js *js)
{
	static const JSClassDef definition = { .class_name = "HostValue",
		                               .finalizer = finalize_value };

	(void)JS_NewClassID(js->rt, &js->value_class);
	return JS_NewClass(js->rt, js->value_class, &definition);
}
