/* redis_reply.c - access to replies: types, items, texts, numbers. */
#include "resp.h"

static const char *const names[] = {
	[WEFT_REDIS_NIL] = "nil",
	[WEFT_REDIS_TEXT] = "a text",
	[WEFT_REDIS_INTEGER] = "an integer",
	[WEFT_REDIS_NUMBER] = "a number",
	[WEFT_REDIS_BOOL] = "a bool",
	[WEFT_REDIS_ERROR] = "an error",
	[WEFT_REDIS_LIST] = "a list",
	[WEFT_REDIS_MAP] = "a map",
	[WEFT_REDIS_SET] = "a set",
	[WEFT_REDIS_PUSH] = "a push",
};

weft_redis_type
weft_redis_reply_type(const weft_redis_reply *reply)
{
	return reply ? (weft_redis_type)reply->kind : WEFT_REDIS_NIL;
}

size_t
weft_redis_count(const weft_redis_reply *reply)
{
	return weft_redis_reply_type(reply) >= WEFT_REDIS_LIST ? reply->size : 0;
}

const weft_redis_reply *
weft_redis_item(const weft_redis_reply *reply, size_t index)
{
	return index < weft_redis_count(reply) ? &reply->as.items[index] : NULL;
}

/* Whether there are bytes, including those of a number. */
static bool
has_bytes(const weft_redis_reply *reply)
{
	weft_redis_type kind = weft_redis_reply_type(reply);

	return kind == WEFT_REDIS_TEXT || kind == WEFT_REDIS_ERROR || kind == WEFT_REDIS_NUMBER;
}

/* The reply has the wrong type; the error text shows its text, if it has one. */
static int
redis_reply_refuse(const weft_redis_reply *reply, const char *call, const char *wanted)
{
	weft_redis_type kind = weft_redis_reply_type(reply);
	bool has_text = has_bytes(reply);

	return weft_fail(kind == WEFT_REDIS_NIL ? WEFT_ENOENT : WEFT_EINVAL,
	                 "%s: %s%s%.100s%s, not %s", call, names[kind], has_text ? " \"" : "",
	                 has_text ? reply->as.data : "", has_text ? "\"" : "", wanted);
}

static int
refuse_out(const char *call)
{
	return weft_fail(WEFT_EINVAL, "%s: out is NULL", call);
}

int
weft_redis_text(const weft_redis_reply *reply, weft_span *out)
{
	if (!out)
		return refuse_out("weft_redis_text");
	if (!has_bytes(reply) || reply->kind == WEFT_REDIS_NUMBER)
		return redis_reply_refuse(reply, "weft_redis_text", "a text");
	*out = (weft_span){ reply->as.data, reply->size };
	return 0;
}

int
weft_redis_integer(const weft_redis_reply *reply, int64_t *out)
{
	weft_redis_type kind = weft_redis_reply_type(reply);

	if (!out)
		return refuse_out("weft_redis_integer");
	if (kind == WEFT_REDIS_INTEGER || kind == WEFT_REDIS_BOOL) {
		*out = reply->as.integer;
		return 0;
	}
	if (kind == WEFT_REDIS_TEXT && weft__resp_integer(reply->as.data, reply->size, out))
		return 0;
	return redis_reply_refuse(reply, "weft_redis_integer", "an integer");
}

int
weft_redis_number(const weft_redis_reply *reply, double *out)
{
	weft_redis_type kind = weft_redis_reply_type(reply);

	if (!out)
		return refuse_out("weft_redis_number");
	if (kind == WEFT_REDIS_INTEGER) {
		*out = (double)reply->as.integer;
		return 0;
	}
	if ((kind == WEFT_REDIS_NUMBER || kind == WEFT_REDIS_TEXT)
	    && weft__resp_number(reply->as.data, reply->size, out))
		return 0;
	return redis_reply_refuse(reply, "weft_redis_number", "a number");
}

const weft_redis_reply *
weft_redis_field(const weft_redis_reply *reply, const char *key)
{
	weft_redis_type kind = weft_redis_reply_type(reply);
	size_t size = key ? strlen(key) : 0;

	if (!key || (kind != WEFT_REDIS_MAP && kind != WEFT_REDIS_LIST))
		return NULL;
	for (size_t i = 0; i + 1 < reply->size; i += 2) {
		const weft_redis_reply *at = &reply->as.items[i];

		if (at->kind == WEFT_REDIS_TEXT && at->size == size
		    && memcmp(at->as.data, key, size) == 0)
			return at + 1;
	}
	return NULL;
}

/* --- as a value ------------------------------------------------------------ */

static void
redis_reply_drop(void *ptr)
{
	weft_redis_reply_free(ptr);
}

static void
share(void *ptr)
{
	(void)weft__resp_ref(ptr);
}

const weft_type weft_type_redis = { .name = "redis reply",
	                            .drop = redis_reply_drop,
	                            .share = share };
