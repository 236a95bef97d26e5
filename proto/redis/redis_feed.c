/* redis_feed.c - subscriptions (feeds): open, receive, close.
 *
 *   1. All subscriptions share one connection slot, which exists while there are subscriptions.  It
 *      reconnects as long as one of them has been open.
 *   2. A subscription is freed when it was closed and the last call on it has returned.
 */
#include "redis_feed.h"
#include <weft/threadlet.h>

static void
redis_feed_leave(weft_redis_subscription *feed)
{
	if (--feed->users > 0)
		return;
	weft__redis_unref(feed->redis);
	weft_release(feed->text);
	weft_release(feed);
}

/* --- the connection slot ------------------------------------------------------- */

/* It uses one of the connections that could be dedicated. */
static int
open_slot(weft_redis *redis)
{
	struct weft__redis_conn_slot *slot;

	if (redis->feed_slot)
		return 0;
	if (redis->dedicated_count + 2 > redis->connections_max
	    && !weft__redis_dedicated_drop(redis))
		return weft_fail(
			WEFT_EAGAIN,
			"weft_redis_subscribe: all %u connections are in use (connections_max)",
			(unsigned)redis->connections_max);
	slot = weft_alloc(sizeof(*slot));
	if (!slot)
		return weft_fail(WEFT_ENOMEM, "weft_redis_subscribe: no memory");
	weft__redis_conn_slot_init(redis, slot, WEFT__REDIS_FEEDS);
	redis->feed_slot = slot;
	return 0;
}

static void
close_slot(weft_redis *redis)
{
	struct weft__redis_conn_slot *slot = redis->feed_slot;

	redis->feed_slot = NULL;
	if (slot)
		weft__redis_conn_slot_close(slot, WEFT_ESHUTDOWN);
}

static void
end_feed(weft_redis_subscription *feed, int error, const char *text)
{
	if (feed->error)
		return;
	feed->error = error;
	feed->text = weft__redis_copy(text, strlen(text));
	(void)weft_event_set(&feed->changed);
}

#define FEED(link) \
	((weft_redis_subscription *)WEFT__LINK_OF(weft_redis_subscription, of_redis, link))

/* Subscriptions that were open wait for the next attempt.  There is none if the loop stops or
 * memory is exhausted. */
void
weft__redis_feed_failed(weft_redis *redis, int error, const char *text)
{
	struct weft__link *at = redis->feeds.next;
	bool go_on = false, over = error == WEFT_ESHUTDOWN || error == WEFT_ENOMEM;

	for (; at != &redis->feeds; at = at->next) {
		if (!FEED(at)->is_open || over)
			end_feed(FEED(at), error, text);
		else
			go_on = true;
	}
	if (go_on && redis->feed_slot && redis->feed_slot->state == WEFT__REDIS_DISCONNECTED)
		weft__redis_conn_slot_start(redis->feed_slot);
}

void
weft__redis_feed_end(weft_redis *redis)
{
	struct weft__link *at = redis->feeds.next;

	for (; at != &redis->feeds; at = at->next)
		end_feed(FEED(at), WEFT_ESHUTDOWN, "the endpoint was closed");
	close_slot(redis);
}

/* --- the calls ----------------------------------------------------------------- */

static int
redis_feed_check(const weft_redis *redis, const char *const *channels)
{
	if (!redis || !channels || !*channels)
		return weft_fail(
			WEFT_EINVAL,
			"weft_redis_subscribe: an argument is NULL, or there is no channel");
	if (redis->session)
		return weft_fail(WEFT_EINVAL,
		                 "weft_redis_subscribe: not available with the option session");
	if (weft_loop_current() != redis->loop)
		return weft_fail(WEFT_EWRONGLOOP,
		                 "weft_redis_subscribe: the endpoint belongs to another loop");
	if (redis->closed)
		return weft_fail(WEFT_ESHUTDOWN, "weft_redis_subscribe: the endpoint is closed");
	return weft__redis_may_wait();
}

static int
make_feed(weft_redis *redis, const char *const *channels, weft_redis_subscription **out)
{
	size_t count = 0;
	weft_redis_subscription *feed;
	int rc = open_slot(redis);

	if (rc < 0)
		return rc;
	while (channels[count])
		count++;
	feed = weft_alloc(sizeof(*feed) + count * sizeof(feed->members[0]));
	if (!feed) {
		if (weft__list_is_empty(&redis->feeds))
			close_slot(redis);
		return weft_fail(WEFT_ENOMEM, "weft_redis_subscribe: no memory");
	}
	*feed = (weft_redis_subscription){ .redis = weft__redis_ref(redis), .users = 1 };
	weft__link_before(&redis->feeds, &feed->of_redis);
	*out = feed;
	return 0;
}

/* Wait for a change; the subscription may be closed meanwhile. */
static int
wait_for_news(weft_redis_subscription *feed, uint64_t deadline_ns)
{
	int rc;

	(void)weft_event_reset(&feed->changed);
	rc = weft_event_wait(&feed->changed, deadline_ns);
	if (feed->error)
		return weft_fail(feed->error, "%s",
		                 feed->text ? feed->text : weft_strerror(feed->error));
	return rc;
}

static bool
is_confirmed(const weft_redis_subscription *feed)
{
	if (feed->redis->feed_slot->state != WEFT__REDIS_READY)
		return false;
	for (size_t i = 0; i < feed->member_count; i++)
		if (!feed->members[i].channel->confirmed)
			return false;
	return true;
}

int
weft_redis_subscribe(weft_redis *redis, const char *const *channels, weft_redis_subscription **out,
                     uint64_t deadline_ns)
{
	weft_redis_subscription *feed = NULL;
	int rc = redis_feed_check(redis, channels);

	if (rc == 0)
		rc = make_feed(redis, channels, &feed);
	if (rc < 0)
		return rc;
	rc = weft__redis_channels_join(feed, channels);
	if (rc == 0 && redis->feed_slot->state == WEFT__REDIS_DISCONNECTED)
		weft__redis_conn_slot_start(redis->feed_slot);
	if (rc == 0 && is_confirmed(feed))
		feed->is_open = true;
	feed->users++;
	while (rc == 0 && !feed->is_open)
		rc = feed->error ? feed->error : wait_for_news(feed, deadline_ns);
	feed->users--;
	if (rc < 0) {
		(void)weft_fail(rc, "weft_redis_subscribe %s: %s", channels[0],
		                feed->text ? feed->text : weft_strerror(rc));
		weft_redis_subscription_close(feed);
		return rc;
	}
	*out = feed;
	return 0;
}

static weft_redis_reply *
redis_feed_take(weft_redis_subscription *feed)
{
	feed->count--;
	return feed->ring[feed->head++ & (WEFT__REDIS_BACKLOG - 1)];
}

static int
receive(weft_redis_subscription *feed, weft_redis_reply **out, uint64_t deadline_ns)
{
	int rc = feed->error;

	while (rc == 0 && feed->count == 0 && !feed->fell_behind)
		rc = wait_for_news(feed, deadline_ns);
	if (feed->fell_behind) {
		feed->fell_behind = false;
		return weft_fail(
			WEFT_ENOBUFS,
			"weft_redis_subscription_recv: more than %u messages were pending; the "
			"oldest are lost",
			WEFT__REDIS_BACKLOG);
	}
	if (feed->count == 0)
		return rc;
	*out = redis_feed_take(feed);
	return 0;
}

int
weft_redis_subscription_recv(weft_redis_subscription *feed, weft_redis_reply **out,
                             uint64_t deadline_ns)
{
	int rc;

	if (!feed || !out)
		return weft_fail(WEFT_EINVAL, "weft_redis_subscription_recv: an argument is NULL");
	if (weft_loop_current() != feed->redis->loop)
		return weft_fail(
			WEFT_EWRONGLOOP,
			"weft_redis_subscription_recv: the subscription belongs to another loop");
	feed->users++;
	rc = receive(feed, out, deadline_ns);
	redis_feed_leave(feed);
	return rc;
}

void
weft_redis_subscription_close(weft_redis_subscription *feed)
{
	weft_redis *redis = feed ? feed->redis : NULL;

	if (!feed)
		return;
	end_feed(feed, WEFT_ESHUTDOWN, "the subscription was closed");
	while (feed->count > 0)
		weft_redis_reply_free(redis_feed_take(feed));
	feed->fell_behind = false;
	weft__link_remove(&feed->of_redis);
	weft__redis_channels_leave(feed);
	if (weft__list_is_empty(&redis->feeds))
		close_slot(redis);
	redis_feed_leave(feed);
}
