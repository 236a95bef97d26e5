/* redis.c - the endpoint: open, close, statistics. */
#include "redis_client.h"
#include <weft/threadlet.h>

#define INFLIGHT_MAX    4096u
#define QUEUE_MAX       65536u
#define CONNECTIONS_MAX 8u
#define REPLY_MAX       ((size_t)64 << 20)
#define NODES_MAX       (16u << 20)
#define CONNECT_NS      (5 * WEFT_S)
#define BACKOFF_NS      (2 * WEFT_S)

weft_redis *
weft__redis_ref(weft_redis *redis)
{
	weft__refs_add(&redis->refs);
	return redis;
}

static void
drop_secret(char *text)
{
	if (text)
		memset(text, 0, strlen(text));
	weft_release(text);
}

/* Invariant 8: this may have been the last reference. */
void
weft__redis_unref(weft_redis *redis)
{
	weft_loop *loop = redis->loop;

	if (!weft__refs_drop(&redis->refs))
		return;
	weft__redis_cache_close(redis);
	weft_release(redis->address);
	weft_release(redis->user);
	drop_secret(redis->password);
	weft_release(redis);
	(void)weft_loop_unref(loop);
}

/* --- opening ----------------------------------------------------------------- */

static int
copy_option(const char *text, char **out)
{
	char *copy;

	if (!text)
		return 0;
	copy = weft__redis_copy(text, strlen(text));
	if (!copy)
		return weft_fail(WEFT_ENOMEM, "weft_redis_open: out of memory");
	weft_release(*out);
	*out = copy;
	return 0;
}

static void
set_limits(weft_redis *redis, const weft_redis_opts *opts)
{
	redis->session = opts->session;
	redis->connect.tls = opts->tls;
	redis->inflight_max = opts->inflight_max ? opts->inflight_max : INFLIGHT_MAX;
	redis->queue_max = opts->queue_max ? opts->queue_max : QUEUE_MAX;
	redis->connections_max = opts->connections_max ? opts->connections_max : CONNECTIONS_MAX;
	redis->connect_ns = opts->connect_ns ? opts->connect_ns : CONNECT_NS;
	redis->backoff_max_ns = opts->backoff_max_ns ? opts->backoff_max_ns : BACKOFF_NS;
	redis->cache_bytes = opts->session ? 0 : opts->cache_bytes;
	redis->limits = (struct weft__resp_limits){
		.bytes_max = opts->reply_max ? opts->reply_max : REPLY_MAX,
		.depth_max = WEFT__RESP_DEPTH,
		.nodes_max = NODES_MAX,
	};
}

static int
redis_fill(weft_redis *redis, const char *address, const weft_redis_opts *opts)
{
	int rc = weft__redis_address(redis, address);

	if (rc == 0)
		rc = copy_option(opts->user, &redis->user);
	if (rc == 0)
		rc = copy_option(opts->password, &redis->password);
	if (rc == 0 && redis->user && !redis->password)
		rc = weft_fail(WEFT_EINVAL, "weft_redis_open: a user is given without a password");
	if (rc == 0 && redis->cache_bytes > 0)
		rc = weft__redis_cache_open(redis);
	return rc;
}

int
weft_redis_open(const char *address, const weft_redis_opts *opts, weft_redis **out)
{
	static const weft_redis_opts none = { 0 };
	const weft_redis_opts *x = opts ? opts : &none;
	weft_loop *loop = x->loop ? x->loop : weft_loop_current();
	weft_redis *redis;
	int rc;

	if (!address || !out || !loop)
		return weft_fail(
			WEFT_EINVAL,
			"weft_redis_open: address or out is NULL, or no loop was given and none "
			"runs here");
	redis = weft_alloc(sizeof(*redis));
	if (!redis)
		return weft_fail(WEFT_ENOMEM, "weft_redis_open: out of memory");
	*redis = (weft_redis){ .loop = weft_loop_ref(loop), .refs = WEFT__REFS_ONE };
	redis->random = weft_now() | 1;
	weft__redis_conn_slot_init(redis, &redis->shared, WEFT__REDIS_SHARED);
	weft__link_init(&redis->dedicated);
	weft__link_init(&redis->blocked);
	weft__link_init(&redis->subscriptions);
	weft__link_init(&redis->channels);
	weft__redis_table_make(redis->table);
	set_limits(redis, x);
	rc = redis_fill(redis, address, x);
	if (rc < 0) {
		weft__redis_unref(redis);
		return rc;
	}
	*out = redis;
	return 0;
}

/* --- closing ----------------------------------------------------------------- */

static void
end_blocked(weft_redis *redis)
{
	while (redis->blocked_count > 0) {
		struct weft__redis_command *command = WEFT__LINK_OF(weft__redis_command, link,
		                                                    redis->blocked.next);

		weft__link_remove(&command->link);
		redis->blocked_count--;
		command->state = WEFT__REDIS_NOWHERE;
		weft__redis_end(redis, command, WEFT_ESHUTDOWN, NULL);
	}
}

void
weft_redis_close(weft_redis *redis)
{
	if (!redis)
		return;
	redis->closed = true;
	end_blocked(redis);
	while (!weft__list_is_empty(&redis->dedicated))
		weft__redis_conn_slot_close(
			WEFT__LINK_OF(weft__redis_conn_slot, of_redis, redis->dedicated.next),
			WEFT_ESHUTDOWN);
	weft__redis_subscription_end(redis);
	weft__redis_conn_slot_close(&redis->shared, WEFT_ESHUTDOWN);
	weft__redis_unref(redis);
}

/* --- statistics -------------------------------------------------------------- */

int
weft_redis_stats(weft_redis *redis, struct weft_redis_stats *out)
{
	const struct weft__redis_conn *conn;

	if (!redis || !out)
		return weft_fail(WEFT_EINVAL, "weft_redis_stats: an argument is NULL");
	conn = redis->shared.conn;
	*out = redis->stats;
	out->inflight = conn ? (uint32_t)weft__redis_inflight(conn) : 0;
	out->waiting = redis->shared.queued + redis->blocked_count;
	out->connections = redis->connections;
	out->cached_bytes = weft__redis_cache_bytes(redis);
	return 0;
}
