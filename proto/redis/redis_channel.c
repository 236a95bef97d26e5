/* redis_channel.c - the channels of all subscriptions, and the delivery of messages.
 *
 * Channels have a connection of their own.  SUBSCRIBE is sent when a channel gets its first member,
 * and again each time that connection is made.  Its reply is not paired with a pending entry: it
 * arrives as a message, which confirms the channel.
 */
#include "redis_subscription.h"

/* Subscribe to the channel or unsubscribe, without a pending entry. */
static void
send_subscribe(weft_redis *redis, const struct weft__redis_channel *channel, bool wanted)
{
	struct weft__redis_conn_slot *slot = redis->subscription_slot;
	const char *verb = channel->is_pattern ? wanted ? "PSUBSCRIBE" : "PUNSUBSCRIBE"
	                   : wanted            ? "SUBSCRIBE"
	                                       : "UNSUBSCRIBE";
	const weft_span args[2] = { weft_text(verb), { channel->name, channel->size } };
	struct weft__redis_command command = { .args = args, .count = 2, .replies = 1 };

	if (!slot || slot->state != WEFT__REDIS_READY)
		return;
	if (weft__redis_conn_put(slot->conn, &command))
		slot->conn->tail--;
	else
		weft__redis_conn_slot_lost(
			slot, weft_fail(WEFT_ENOMEM, "weft_redis_subscribe: out of memory"));
}

static struct weft__redis_channel *
channel_find(weft_redis *redis, const void *name, size_t size, bool is_pattern)
{
	struct weft__link *at = redis->channels.next;

	for (; at != &redis->channels; at = at->next) {
		struct weft__redis_channel *channel = WEFT__LINK_OF(weft__redis_channel, of_redis,
		                                                    at);

		if (channel->size == size && channel->is_pattern == is_pattern
		    && memcmp(channel->name, name, size) == 0)
			return channel;
	}
	return NULL;
}

static struct weft__redis_channel *
channel_make(weft_redis *redis, const char *name, bool is_pattern)
{
	size_t size = strlen(name);
	struct weft__redis_channel *channel = weft_alloc(sizeof(*channel) + size + 1);

	if (!channel)
		return NULL;
	*channel = (struct weft__redis_channel){ .is_pattern = is_pattern, .size = size };
	memcpy(channel->name, name, size + 1);
	weft__link_init(&channel->members);
	weft__link_before(&redis->channels, &channel->of_redis);
	return channel;
}

int
weft__redis_channels_join(weft_redis_subscription *subscription, const char *const *names)
{
	weft_redis *redis = subscription->redis;

	for (; *names; names++) {
		bool is_pattern = strpbrk(*names, "*?[") != NULL;
		struct weft__redis_channel *channel = channel_find(redis, *names, strlen(*names),
		                                                   is_pattern);
		struct weft__redis_member *member;
		bool is_new = !channel;

		if (is_new)
			channel = channel_make(redis, *names, is_pattern);
		if (!channel)
			return weft_fail(WEFT_ENOMEM, "weft_redis_subscribe: no memory");
		member = &subscription->members[subscription->member_count++];
		*member = (struct weft__redis_member){ .channel = channel,
			                               .subscription = subscription };
		weft__link_before(&channel->members, &member->of_channel);
		if (is_new)
			send_subscribe(redis, channel, true);
	}
	return 0;
}

void
weft__redis_channels_leave(weft_redis_subscription *subscription)
{
	while (subscription->member_count > 0) {
		struct weft__redis_member *member =
			&subscription->members[--subscription->member_count];
		struct weft__redis_channel *channel = member->channel;

		weft__link_remove(&member->of_channel);
		if (!weft__list_is_empty(&channel->members))
			continue;
		weft__link_remove(&channel->of_redis);
		send_subscribe(subscription->redis, channel, false);
		weft_release(channel);
	}
}

void
weft__redis_subscription_ready(weft_redis *redis)
{
	struct weft__link *at = redis->channels.next;

	for (; at != &redis->channels && redis->subscription_slot->conn; at = at->next) {
		struct weft__redis_channel *channel = WEFT__LINK_OF(weft__redis_channel, of_redis,
		                                                    at);

		channel->confirmed = false;
		send_subscribe(redis, channel, true);
	}
}

/* --- messages ------------------------------------------------------------------ */

static void
open_if_complete(weft_redis_subscription *subscription)
{
	for (size_t i = 0; i < subscription->member_count; i++)
		if (!subscription->members[i].channel->confirmed)
			return;
	subscription->is_open = true;
	(void)weft_event_set(&subscription->changed);
}

static void
confirm(weft_redis *redis, struct weft__redis_channel *channel)
{
	struct weft__link *at = channel->members.next;

	channel->confirmed = true;
	redis->failures = 0;
	for (; at != &channel->members; at = at->next) {
		weft_redis_subscription *subscription =
			WEFT__LINK_OF(weft__redis_member, of_channel, at)->subscription;

		if (!subscription->is_open)
			open_if_complete(subscription);
	}
}

/* The list of channel and text that readers get. */
static weft_redis_reply *
make_message(weft_span channel, weft_span text)
{
	const struct weft__resp_limits limits = { SIZE_MAX, 1, 3 };
	const weft_span args[2] = { channel, text };
	size_t size = weft__resp_size(args, 2);
	char *bytes = weft_alloc(size);
	struct weft__resp_scan scan = { 0 };
	weft_redis_reply *reply = NULL;

	if (!bytes)
		return NULL;
	(void)weft__resp_put(bytes, args, 2);
	if (weft__resp_scan(&scan, &limits, bytes, size) != (ssize_t)size
	    || weft__resp_build_taking(&scan, bytes, size, &reply) < 0) {
		weft_release(bytes);
		return NULL;
	}
	return reply;
}

/* A subscription that falls behind loses the oldest message.  Without memory the new message is
 * lost. */
static void
subscription_push(weft_redis_subscription *subscription, weft_redis_reply *message)
{
	uint32_t mask = WEFT__REDIS_BACKLOG - 1;

	if (!message || subscription->count == WEFT__REDIS_BACKLOG)
		subscription->fell_behind = true;
	if (message && subscription->count == WEFT__REDIS_BACKLOG) {
		weft_redis_reply_free(subscription->ring[subscription->head & mask]);
		subscription->head++;
		subscription->count--;
	}
	if (message)
		subscription->ring[(subscription->head + subscription->count++) & mask] =
			weft__resp_ref(message);
	(void)weft_event_set(&subscription->changed);
}

static void
publish(struct weft__redis_channel *channel, weft_span name, weft_span text)
{
	weft_redis_reply *message = make_message(name, text);
	struct weft__link *at = channel->members.next;

	for (; at != &channel->members; at = at->next)
		subscription_push(WEFT__LINK_OF(weft__redis_member, of_channel, at)->subscription,
		                  message);
	weft_redis_reply_free(message);
}

static bool
is(weft_span text, const char *word)
{
	return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

static weft_span
text_at(const weft_redis_reply *reply, size_t index)
{
	weft_span text = { "", 0 };

	(void)weft_redis_text(weft_redis_item(reply, index), &text);
	return text;
}

void
weft__redis_subscription_message(weft_redis *redis, const weft_redis_reply *message)
{
	weft_span kind = text_at(message, 0), name = text_at(message, 1);
	bool is_pattern = kind.size > 0 && *(const char *)kind.data == 'p';
	struct weft__redis_channel *channel = channel_find(redis, name.data, name.size, is_pattern);
	weft_span text = { "", 0 };

	if (weft_redis_reply_type(message) == WEFT_REDIS_ERROR) {
		(void)weft_redis_text(message, &text);
		(void)weft_fail(WEFT_EREPLY, "%.*s", (int)text.size, (const char *)text.data);
		weft__redis_subscription_failed(redis, WEFT_EREPLY, weft_detail());
		return;
	}
	if (!channel)
		return; /* the last member has left the channel */
	if (is(kind, "subscribe") || is(kind, "psubscribe"))
		confirm(redis, channel);
	else if (is(kind, "message"))
		publish(channel, name, text_at(message, 2));
	else if (is(kind, "pmessage"))
		publish(channel, text_at(message, 2), text_at(message, 3));
}
