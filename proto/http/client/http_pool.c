/* http_pool.c - connections of a client, by origin.
 *
 * An origin (struct weft__http_host) exists while it has a slot in use or an idle connection.
 * So the number of origins needs no limit of its own: it is at most the number of idle
 * connections plus that of exchanges in progress.
 *
 *   1. used + idle <= per_host_max, for each origin.
 *   2. A caller waits only while all slots are in use and no connection is idle.  So a slot
 *      that is given back goes to the first waiter, never to a newcomer.
 *   3. A waiter is on the stack of its threadlet.  It is in the queue until it gets a slot, or
 *      until it resumes because its wait has failed.  If it gets a slot after its wait has
 *      failed but before it resumes, it passes the slot on.
 *   4. An idle connection expects no data: data, the end of the connection or the idle timeout
 *      closes it.  Idle connections do not keep the loop alive.
 *   5. Closing needs no memory.  In a threadlet weft_stream_close() would suspend, so there it is
 *      posted to a later point of the loop iteration, where it does not.  Until then the
 *      connection's memory stays allocated.
 */
#include "http/client/http_pool.h"
#include <string.h>
#include <weft/embed.h>
#include <weft/sync.h>
#include <weft/threadlet.h>

struct weft__http_host {
	struct weft__http_host *next; /* in its bucket */
	struct weft__link idle;       /* newest first */
	struct weft__link queue;      /* waiters, the first one first */
	uint32_t used, idle_count, waiting;
	char address[];
};

struct waiter {
	struct weft__link link; /* must be first; a ring of its own once it has a slot */
	weft_event given;
	struct weft__http_conn *conn;
	bool has_slot;
};

/* --- origins ------------------------------------------------------------------ */

static struct weft__http_host **
bucket_of(struct weft__http_pool *pool, const char *address)
{
	uint32_t hash = 2166136261u;

	for (; *address; address++)
		hash = (hash ^ (unsigned char)*address) * 16777619u;
	return &pool->buckets[hash % WEFT__HTTP_BUCKETS];
}

static struct weft__http_host *
host_of(struct weft__http_pool *pool, const char *address)
{
	struct weft__http_host **bucket = bucket_of(pool, address), *host;
	size_t size = strlen(address) + 1;

	for (host = *bucket; host; host = host->next)
		if (strcmp(host->address, address) == 0)
			return host;
	host = weft_alloc(sizeof(*host) + size);
	if (!host)
		return NULL;
	*host = (struct weft__http_host){ .next = *bucket };
	memcpy(host->address, address, size);
	weft__link_init(&host->idle);
	weft__link_init(&host->queue);
	*bucket = host;
	pool->host_count++;
	return host;
}

static void
forget_if_unused(struct weft__http_pool *pool, struct weft__http_host *host)
{
	struct weft__http_host **at = bucket_of(pool, host->address);

	if (host->used > 0 || host->idle_count > 0)
		return;
	while (*at != host)
		at = &(*at)->next;
	*at = host->next;
	pool->host_count--;
	weft_release(host);
}

/* --- closing ------------------------------------------------------------------ */

static void
close_now(void *arg)
{
	struct weft__http_conn *conn = arg;

	weft_stream_close(conn->stream);
	weft_release(conn);
}

static void
close_conn(struct weft__http_pool *pool, struct weft__http_conn *conn)
{
	conn->node = (weft_node){ .fn = close_now, .arg = conn };
	if (!weft_can_suspend() || weft_loop_post_before_wait(pool->loop, &conn->node) < 0)
		close_now(conn);
}

void
weft__http_conn_slot_close(struct weft__http_conn_slot *slot, bool at_once)
{
	struct weft__http_conn *conn = slot->conn;

	slot->conn = NULL;
	if (conn && at_once) {
		weft_stream_reset(conn->stream);
		weft_release(conn);
	} else if (conn) {
		close_conn(slot->pool, conn);
	}
}

/* --- idle connections --------------------------------------------------------- */

static void
leave_idle(struct weft__http_conn *conn)
{
	(void)weft_timer_stop(&conn->timer);
	weft__link_remove(&conn->of_host);
	weft__link_remove(&conn->of_pool);
	conn->host->idle_count--;
	conn->pool->idle_count--;
}

static void
drop_idle(struct weft__http_conn *conn)
{
	struct weft__http_pool *pool = conn->pool;
	struct weft__http_host *host = conn->host;

	leave_idle(conn);
	close_conn(pool, conn);
	forget_if_unused(pool, host);
}

static void
on_idle_data(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	(void)stream;
	(void)data;
	(void)size;
	drop_idle(arg);
}

static void
on_idle_time(weft_timer *timer, void *arg)
{
	(void)timer;
	drop_idle(arg);
}

/* Watch an idle connection, and start its timeout. */
static bool
watch_idle(struct weft__http_pool *pool, struct weft__http_conn *conn)
{
	static const weft_stream_events events = { .on_data = on_idle_data };
	uint64_t due_ns = weft_loop_now(pool->loop) + pool->idle_ns;

	weft_timer_set_background(&conn->timer, true);
	weft_stream_set_background(conn->stream, true);
	if (weft_timer_start(pool->loop, &conn->timer, due_ns, 0, on_idle_time, conn) < 0)
		return false;
	if (weft_stream_start(conn->stream, pool->loop, &events, conn) == 0)
		return true;
	(void)weft_timer_stop(&conn->timer);
	return false;
}

static void
make_idle(struct weft__http_pool *pool, struct weft__http_host *host, struct weft__http_conn *conn)
{
	if (pool->idle_max == 0 || !watch_idle(pool, conn)) {
		close_conn(pool, conn);
		return;
	}
	conn->pool = pool;
	conn->host = host;
	weft__link_after(&host->idle, &conn->of_host);
	weft__link_after(&pool->idle, &conn->of_pool);
	host->idle_count++;
	if (++pool->idle_count > pool->idle_max)
		drop_idle(WEFT__LINK_OF(weft__http_conn, of_pool, pool->idle.prev));
}

/* Whether a kept connection can still be used: it has not ended, and has no unexpected data. */
static bool
is_alive(struct weft__http_conn *conn)
{
	const void *data;

	return weft_stream_peek(conn->stream, 1, &data, WEFT_NOWAIT) == WEFT_ETIMEDOUT;
}

static struct weft__http_conn *
take_idle(struct weft__http_host *host)
{
	struct weft__http_conn *conn;

	if (host->idle_count == 0)
		return NULL;
	conn = WEFT__LINK_OF(weft__http_conn, of_host, host->idle.next);
	leave_idle(conn);
	(void)weft_stream_stop(conn->stream);
	return conn;
}

/* --- slots -------------------------------------------------------------------- */

/* Pass the slot, with a connection or NULL, to the first waiter. */
static void
http_pool_hand_over(struct weft__http_host *host, struct weft__http_conn *conn)
{
	struct waiter *waiter = (struct waiter *)host->queue.next;

	weft__link_remove(&waiter->link);
	host->waiting--;
	waiter->conn = conn;
	waiter->has_slot = true;
	(void)weft_event_set(&waiter->given);
}

void
weft__http_conn_slot_give(struct weft__http_conn_slot *slot)
{
	struct weft__http_pool *pool = slot->pool;
	struct weft__http_host *host = slot->host;
	struct weft__http_conn *conn = slot->conn;

	slot->host = NULL;
	slot->conn = NULL;
	if (host->waiting > 0) {
		http_pool_hand_over(host, conn);
		return;
	}
	host->used--;
	if (conn)
		make_idle(pool, host, conn);
	forget_if_unused(pool, host);
}

static int
wait_for_slot(struct weft__http_conn_slot *slot, uint64_t deadline_ns)
{
	struct weft__http_host *host = slot->host;
	struct waiter waiter = { .given = WEFT_INIT };
	int rc;

	weft__link_after(host->queue.prev, &waiter.link);
	host->waiting++;
	rc = weft_event_wait(&waiter.given, deadline_ns);
	slot->conn = waiter.conn;
	if (rc == 0)
		return 0;
	if (waiter.has_slot) {
		weft__http_conn_slot_give(slot);
		return rc;
	}
	weft__link_remove(&waiter.link);
	host->waiting--;
	return weft_fail(rc, "waiting for one of %u connections to %s: %s",
	                 (unsigned)slot->pool->per_host_max, host->address, weft_strerror(rc));
}

static int
get_slot(struct weft__http_conn_slot *slot, uint64_t deadline_ns)
{
	struct weft__http_pool *pool = slot->pool;
	struct weft__http_host *host = slot->host;

	if (host->idle_count > 0 || host->used < pool->per_host_max) {
		slot->conn = take_idle(host);
		host->used++;
		return 0;
	}
	if (host->waiting >= pool->queue_max)
		return weft_fail(WEFT_EAGAIN, "%u requests already wait for a connection to %s",
		                 (unsigned)host->waiting, host->address);
	return wait_for_slot(slot, deadline_ns);
}

int
weft__http_pool_take(struct weft__http_pool *pool, const char *address,
                     struct weft__http_conn_slot *out, uint64_t deadline_ns)
{
	struct weft__http_conn_slot slot = { .pool = pool };
	int rc;

	slot.host = host_of(pool, address);
	if (!slot.host)
		return weft_fail(WEFT_ENOMEM, "weft_http_fetch: out of memory");
	rc = get_slot(&slot, deadline_ns);
	if (rc < 0)
		return rc;
	if (slot.conn && !is_alive(slot.conn))
		weft__http_conn_slot_close(&slot, false);
	*out = slot;
	return 0;
}

int
weft__http_conn_slot_connect(struct weft__http_conn_slot *slot, uint64_t deadline_ns)
{
	struct weft__http_conn *conn = weft_alloc(sizeof(*conn));
	int rc;

	if (!conn)
		return weft_fail(WEFT_ENOMEM, "weft_http_fetch: out of memory");
	*conn = (struct weft__http_conn){ 0 };
	weft__link_init(&conn->of_host);
	weft__link_init(&conn->of_pool);
	rc = weft_stream_connect(slot->host->address, &slot->pool->connect, &conn->stream,
	                         deadline_ns);
	if (rc < 0) {
		weft_release(conn);
		return rc;
	}
	slot->conn = conn;
	return 0;
}

void
weft__http_pool_init(struct weft__http_pool *pool)
{
	weft__link_init(&pool->idle);
}

void
weft__http_pool_fini(struct weft__http_pool *pool)
{
	while (pool->idle_count > 0)
		drop_idle(WEFT__LINK_OF(weft__http_conn, of_pool, pool->idle.prev));
}
