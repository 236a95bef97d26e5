/* redis_subscription.c - subscriptions: open, receive, close.
 *
 *   1. All subscriptions share one connection slot, which exists while there are subscriptions.  If
 *      an attempt to connect fails, another follows while at least one subscription has been open.
 *   2. A subscription is freed when it was closed and the last call on it has returned.
 */
#include "redis_subscription.h"
#include <weft/threadlet.h>

static void
subscription_leave(weft_redis_subscription *subscription)
{
	if (--subscription->users > 0)
		return;
	weft__redis_unref(subscription->redis);
	weft_release(subscription->text);
	weft_release(subscription);
}

/* --- the connection slot ------------------------------------------------------- */

/* The slot counts in connections_max: there can be one dedicated connection less. */
static int
open_slot(weft_redis *redis)
{
	struct weft__redis_conn_slot *slot;

	if (redis->subscription_slot)
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
	weft__redis_conn_slot_init(redis, slot, WEFT__REDIS_SUBSCRIPTIONS);
	redis->subscription_slot = slot;
	return 0;
}

static void
close_slot(weft_redis *redis)
{
	struct weft__redis_conn_slot *slot = redis->subscription_slot;

	redis->subscription_slot = NULL;
	if (slot)
		weft__redis_conn_slot_close(slot, WEFT_ESHUTDOWN);
}

static void
end_subscription(weft_redis_subscription *subscription, int error, const char *text)
{
	if (subscription->error)
		return;
	subscription->error = error;
	subscription->text = weft__redis_copy(text, strlen(text));
	(void)weft_event_set(&subscription->changed);
}

#define SUBSCRIPTION(link) \
	((weft_redis_subscription *)WEFT__LINK_OF(weft_redis_subscription, of_redis, link))

/* Subscriptions that were open wait for the next attempt; the others end.  If the loop stops or
 * memory is exhausted, there is no other attempt, and all of them end. */
void
weft__redis_subscription_failed(weft_redis *redis, int error, const char *text)
{
	struct weft__link *at = redis->subscriptions.next;
	bool go_on = false, over = error == WEFT_ESHUTDOWN || error == WEFT_ENOMEM;

	for (; at != &redis->subscriptions; at = at->next) {
		if (!SUBSCRIPTION(at)->is_open || over)
			end_subscription(SUBSCRIPTION(at), error, text);
		else
			go_on = true;
	}
	if (go_on && redis->subscription_slot
	    && redis->subscription_slot->state == WEFT__REDIS_DISCONNECTED)
		weft__redis_conn_slot_start(redis->subscription_slot);
}

void
weft__redis_subscription_end(weft_redis *redis)
{
	struct weft__link *at = redis->subscriptions.next;

	for (; at != &redis->subscriptions; at = at->next)
		end_subscription(SUBSCRIPTION(at), WEFT_ESHUTDOWN, "the endpoint was closed");
	close_slot(redis);
}

/* --- the calls ----------------------------------------------------------------- */

static int
subscription_check(const weft_redis *redis, const char *const *channels)
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
make_subscription(weft_redis *redis, const char *const *channels, weft_redis_subscription **out)
{
	size_t count = 0;
	weft_redis_subscription *subscription;
	int rc = open_slot(redis);

	if (rc < 0)
		return rc;
	while (channels[count])
		count++;
	subscription = weft_alloc(sizeof(*subscription) + count * sizeof(subscription->members[0]));
	if (!subscription) {
		if (weft__list_is_empty(&redis->subscriptions))
			close_slot(redis);
		return weft_fail(WEFT_ENOMEM, "weft_redis_subscribe: no memory");
	}
	*subscription = (weft_redis_subscription){ .redis = weft__redis_ref(redis), .users = 1 };
	weft__link_before(&redis->subscriptions, &subscription->of_redis);
	*out = subscription;
	return 0;
}

/* Wait for a change; the subscription may be closed meanwhile. */
static int
wait_for_change(weft_redis_subscription *subscription, uint64_t deadline_ns)
{
	int rc;

	(void)weft_event_reset(&subscription->changed);
	rc = weft_event_wait(&subscription->changed, deadline_ns);
	if (subscription->error)
		return weft_fail(subscription->error, "%s",
		                 subscription->text ? subscription->text
		                                    : weft_strerror(subscription->error));
	return rc;
}

static bool
is_confirmed(const weft_redis_subscription *subscription)
{
	if (subscription->redis->subscription_slot->state != WEFT__REDIS_READY)
		return false;
	for (size_t i = 0; i < subscription->member_count; i++)
		if (!subscription->members[i].channel->confirmed)
			return false;
	return true;
}

int
weft_redis_subscribe(weft_redis *redis, const char *const *channels, weft_redis_subscription **out,
                     uint64_t deadline_ns)
{
	weft_redis_subscription *subscription = NULL;
	int rc = subscription_check(redis, channels);

	if (rc == 0)
		rc = make_subscription(redis, channels, &subscription);
	if (rc < 0)
		return rc;
	rc = weft__redis_channels_join(subscription, channels);
	if (rc == 0 && redis->subscription_slot->state == WEFT__REDIS_DISCONNECTED)
		weft__redis_conn_slot_start(redis->subscription_slot);
	if (rc == 0 && is_confirmed(subscription))
		subscription->is_open = true;
	subscription->users++;
	while (rc == 0 && !subscription->is_open)
		rc = subscription->error ? subscription->error
		                         : wait_for_change(subscription, deadline_ns);
	subscription->users--;
	if (rc < 0) {
		(void)weft_fail(rc, "weft_redis_subscribe %s: %s", channels[0],
		                subscription->text ? subscription->text : weft_strerror(rc));
		weft_redis_subscription_close(subscription);
		return rc;
	}
	*out = subscription;
	return 0;
}

static weft_redis_reply *
subscription_take(weft_redis_subscription *subscription)
{
	subscription->count--;
	return subscription->ring[subscription->head++ & (WEFT__REDIS_BACKLOG - 1)];
}

static int
receive(weft_redis_subscription *subscription, weft_redis_reply **out, uint64_t deadline_ns)
{
	int rc = subscription->error;

	while (rc == 0 && subscription->count == 0 && !subscription->fell_behind)
		rc = wait_for_change(subscription, deadline_ns);
	if (subscription->fell_behind) {
		subscription->fell_behind = false;
		return weft_fail(
			WEFT_ENOBUFS,
			"weft_redis_subscription_recv: more than %u messages were pending; the "
			"oldest are lost",
			WEFT__REDIS_BACKLOG);
	}
	if (subscription->count == 0)
		return rc;
	*out = subscription_take(subscription);
	return 0;
}

int
weft_redis_subscription_recv(weft_redis_subscription *subscription, weft_redis_reply **out,
                             uint64_t deadline_ns)
{
	int rc;

	if (!subscription || !out)
		return weft_fail(WEFT_EINVAL, "weft_redis_subscription_recv: an argument is NULL");
	if (weft_loop_current() != subscription->redis->loop)
		return weft_fail(
			WEFT_EWRONGLOOP,
			"weft_redis_subscription_recv: the subscription belongs to another loop");
	subscription->users++;
	rc = receive(subscription, out, deadline_ns);
	subscription_leave(subscription);
	return rc;
}

void
weft_redis_subscription_close(weft_redis_subscription *subscription)
{
	weft_redis *redis = subscription ? subscription->redis : NULL;

	if (!subscription)
		return;
	end_subscription(subscription, WEFT_ESHUTDOWN, "the subscription was closed");
	while (subscription->count > 0)
		weft_redis_reply_free(subscription_take(subscription));
	subscription->fell_behind = false;
	weft__link_remove(&subscription->of_redis);
	weft__redis_channels_leave(subscription);
	if (weft__list_is_empty(&redis->subscriptions))
		close_slot(redis);
	subscription_leave(subscription);
}
