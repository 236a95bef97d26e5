/* http_pool.h - connections of a client, by origin.  Private.
 *
 * A caller that needs a connection to an origin takes one of the origin's slots.  A slot comes
 * with a kept connection if there is one.  The caller gives the slot back, with its connection
 * if that can be used for another exchange.
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
#include "base/proto_list.h"

struct weft__http_host;
struct weft__http_pool;

struct weft__http_conn {
	weft_stream            *stream;
	/* while it is idle */
	struct weft__http_pool *pool;
	struct weft__http_host *host;
	struct weft__link  of_host, of_pool; /* newest first */
	weft_timer              timer;
	/* while it closes */
	weft_node               node;
};

/* The right to one connection of an origin. */
struct weft__http_conn_slot {
	struct weft__http_pool *pool;
	struct weft__http_host *host; /* NULL: no slot is taken */
	struct weft__http_conn *conn; /* NULL: not connected */
};

#define WEFT__HTTP_BUCKETS 64

struct weft__http_pool {
	weft_loop *loop;
	weft_stream_connect_opts connect;
	uint32_t per_host_max;
	uint32_t queue_max; /* waiters for a slot, per origin */
	uint32_t idle_max;  /* for all origins together */
	uint64_t idle_ns;
	/* private from here on */
	uint32_t idle_count;
	uint32_t host_count;
	struct weft__link idle; /* of all origins, newest first */
	struct weft__http_host *buckets[WEFT__HTTP_BUCKETS];
};

/* Initialize a pool, whose options the caller has filled in; close it once no slot is taken. */
void weft__http_pool_init(struct weft__http_pool *pool);
void weft__http_pool_fini(struct weft__http_pool *pool);

/* Take a slot of the origin `address`; first come, first served.
 * Returns 0 and fills `out`; its connection is a kept one that was checked, or NULL.
 * WEFT_EAGAIN if too many wait, WEFT_ENOMEM, or as any call that suspends. */
int weft__http_pool_take(struct weft__http_pool *pool, const char *address,
                         struct weft__http_conn_slot *out, uint64_t deadline_ns);

/* Connect a slot that has no connection.  Returns 0, or as weft_stream_connect(). */
int weft__http_conn_slot_connect(struct weft__http_conn_slot *slot, uint64_t deadline_ns);

/* Close the slot's connection, if it has one: with `at_once` by a reset; else gracefully, without
 * waiting for the end of that. */
void weft__http_conn_slot_close(struct weft__http_conn_slot *slot, bool at_once);

/* Give a slot back and clear it.  Its connection, if it still has one, is kept. */
void weft__http_conn_slot_give(struct weft__http_conn_slot *slot);

#endif
