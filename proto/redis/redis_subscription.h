/* redis_subscription.h - subscriptions and the channels that they share.  Private. */
#ifndef WEFT_REDIS_SUBSCRIPTION_H
#define WEFT_REDIS_SUBSCRIPTION_H

#include "redis_client.h"

#define WEFT__REDIS_BACKLOG 1024u /* messages that a subscription queues, a power of 2 */

/* A channel or pattern that at least one subscription has joined. */
struct weft__redis_channel {
	struct weft__link of_redis;
	struct weft__link members;       /* struct weft__redis_member */
	bool   is_pattern, confirmed;    /* confirmed: the server has answered its SUBSCRIBE */
	size_t size;
	char   name[]; /* ended by NUL */
};

/* One channel of one subscription. */
struct weft__redis_member {
	struct weft__link     of_channel;
	struct weft__redis_channel *channel;
	weft_redis_subscription    *subscription;
};

struct weft_redis_subscription {
	weft_redis *redis;                /* referenced */
	struct weft__link of_redis;
	uint32_t    users;    /* calls in progress, plus 1 until it is closed */
	bool        is_open;  /* all its channels were confirmed once */
	bool        fell_behind; /* messages were lost, which the next receive reports */
	int         error;    /* why it ended, or 0 */
	char       *text;     /* the error text of `error`, or NULL */
	weft_event  changed;  /* set when a message arrives, the subscription opens, or it ends */
	uint32_t    head, count;          /* of the ring */
	weft_redis_reply *ring[WEFT__REDIS_BACKLOG];
	size_t      member_count;
	struct weft__redis_member members[];
};

/* join: make the subscription a member of the channels `names`, and send SUBSCRIBE for those that
 * are new.  leave: end its membership in all its channels, and send UNSUBSCRIBE for those that have
 * no other member. */
int  weft__redis_channels_join(weft_redis_subscription *subscription, const char *const *names);
void weft__redis_channels_leave(weft_redis_subscription *subscription);

#endif
