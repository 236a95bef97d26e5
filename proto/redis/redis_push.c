/* redis_push.c - messages that are not replies: invalidations, and messages of channels. */
#include "redis_client.h"

static bool
is(const weft_redis_reply *reply, const char *text)
{
	weft_span given;

	return weft_redis_text(reply, &given) == 0 && given.size == strlen(text)
	       && memcmp(given.data, text, given.size) == 0;
}

void
weft__redis_pushed(struct weft__redis_conn *conn, weft_redis_reply *push)
{
	weft_redis *redis = conn->redis;

	if (is(weft_redis_item(push, 0), "invalidate"))
		weft__redis_cache_invalidate(redis, weft_redis_item(push, 1));
	else if (conn->slot->kind == WEFT__REDIS_SUBSCRIPTIONS)
		weft__redis_subscription_message(redis, push);
	weft_redis_reply_free(push);
}
