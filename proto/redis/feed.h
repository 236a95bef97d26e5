/* feed.h - feeds and the channels that they share.  Private. */
#ifndef WEFT_REDIS_FEED_H
#define WEFT_REDIS_FEED_H

#include "client.h"

#define WEFT__REDIS_BACKLOG 1024u /* messages that a feed keeps, a power of 2 */

/* Something that the server was asked for. */
struct weft__redis_channel {
	struct weft__redis_link of_redis;
	struct weft__redis_link members;
	bool   is_pattern, confirmed;
	size_t size;
	char   name[]; /* with a NUL */
};

/* That a feed wants a channel. */
struct weft__redis_member {
	struct weft__redis_link     of_channel;
	struct weft__redis_channel *channel;
	weft_redis_feed            *feed;
};

struct weft_redis_feed {
	weft_redis *redis;                /* held */
	struct weft__redis_link of_redis;
	uint32_t    users;    /* calls inside, and the one who closes */
	bool        is_open;  /* all its channels were confirmed once */
	bool        fell_behind;
	int         error;    /* why it ended, or 0 */
	char       *text;
	weft_event  news;     /* a message, its opening, its end */
	uint32_t    head, count;          /* of the ring */
	weft_redis_reply *ring[WEFT__REDIS_BACKLOG];
	size_t      member_count;
	struct weft__redis_member members[];
};

/* The feed becomes a member of its channels, which are asked for; or leaves them. */
int  weft__redis_channels_join(weft_redis_feed *feed, const char *const *names);
void weft__redis_channels_leave(weft_redis_feed *feed);

#endif
