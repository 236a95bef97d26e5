/* pool.h - connections of a client, by origin: kept, lent, waited for.  Private.
 *
 * Who wants to speak to an origin takes a slot there, of which each origin has so many;
 * a kept connection comes along with it if there is one.  What has been taken is given back,
 * with its connection if that can serve another exchange.
 *
 * Thread: that of the pool's loop.
 */
#ifndef WEFT_HTTP_POOL_H
#define WEFT_HTTP_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/base.h>
#include <weft/loop.h>
#include <weft/stream.h>
#include <weft/timer.h>

struct weft__http_host;
struct weft__http_pool;

/* A list through its members; alone, or as the list's head, a link is a ring. */
struct weft__http_link {
	struct weft__http_link *next, *prev;
};

struct weft__http_conn {
	weft_stream            *stream;
	bool                    kept;   /* it has served an exchange before */
	/* while it is idle */
	struct weft__http_pool *pool;
	struct weft__http_host *host;
	struct weft__http_link  of_host, of_pool; /* newest first */
	weft_timer              timer;
	/* while it closes */
	weft_node               node;
};

/* The right to one connection of an origin. */
struct weft__http_slot {
	struct weft__http_pool *pool;
	struct weft__http_host *host; /* NULL: none is taken */
	struct weft__http_conn *conn; /* NULL: not connected */
};

#define WEFT__HTTP_BUCKETS 64

struct weft__http_pool {
	weft_loop *loop;
	weft_connect_opts connect;
	uint32_t per_host_max;
	uint32_t queue_max; /* who wait for a slot, of each origin */
	uint32_t idle_max;  /* of all origins */
	uint64_t idle_ns;
	/* private from here on */
	uint32_t idle_count;
	uint32_t host_count;
	struct weft__http_link idle; /* all of them, newest first */
	struct weft__http_host *buckets[WEFT__HTTP_BUCKETS];
};

/* Begin with what the caller has filled in; and end: nothing may be taken. */
void weft__http_pool_init(struct weft__http_pool *pool);
void weft__http_pool_fini(struct weft__http_pool *pool);

/* Take a slot of the origin `address`; first come, first served.
 * Returns 0 and fills `out`, its connection being a kept one that nothing is known
 * against, or NULL; WEFT_EAGAIN if too many wait, WEFT_ENOMEM, or as all that suspend. */
int weft__http_pool_take(struct weft__http_pool *pool, const char *address,
                         struct weft__http_slot *out, uint64_t deadline_ns);

/* Connect a slot that has no connection.  Returns 0, or as weft_connect(). */
int weft__http_slot_connect(struct weft__http_slot *slot, uint64_t deadline_ns);

/* Close the slot's connection, if it has one: properly, which goes on by itself, or at
 * once. */
void weft__http_slot_close(struct weft__http_slot *slot, bool at_once);

/* Give a slot back, and empty it; its connection, if it still has one, is kept. */
void weft__http_slot_give(struct weft__http_slot *slot);

#endif
