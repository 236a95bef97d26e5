/* redis_handshake.c - the handshake: HELLO with credentials, SELECT, CLIENT TRACKING.
 *
 * All of it is sent at once.  If the server does not know HELLO, or requires AUTH before it,
 * AUTH and SELECT are sent again for RESP2 once the other replies have arrived.
 */
#include "redis_client.h"

enum handshake {
	HELLO = 1,
	SELECT,
	TRACKING, /* the first round */
	AUTH,
	SELECT_AGAIN, /* the second round, for RESP2 */
};

static int
put_handshake(struct weft__redis_conn *conn, enum handshake which, const weft_span *args,
              size_t count)
{
	struct weft__redis_command command = {
		.args = args,
		.count = count,
		.replies = 1,
	};
	struct weft__redis_pending *pending = weft__redis_conn_put(conn, &command);

	if (!pending)
		return weft_fail(WEFT_ENOMEM, "weft_redis_*: out of memory");
	pending->handshake = (uint8_t)which;
	conn->handshakes++;
	return 0;
}

static int
put_hello(struct weft__redis_conn *conn)
{
	const weft_redis *redis = conn->redis;
	weft_span args[7] = { weft_text("HELLO"), weft_text("3") };
	size_t count = 2;

	if (redis->password) {
		args[count++] = weft_text("AUTH");
		args[count++] = weft_text(redis->user ? redis->user : "default");
		args[count++] = weft_text(redis->password);
	}
	args[count++] = weft_text("SETNAME");
	args[count++] = weft_text("weft");
	return put_handshake(conn, HELLO, args, count);
}

static int
put_select(struct weft__redis_conn *conn, enum handshake which)
{
	weft_span args[2] = { weft_text("SELECT"), weft_text(conn->redis->database) };

	return conn->redis->database[0] ? put_handshake(conn, which, args, 2) : 0;
}

static int
put_tracking(struct weft__redis_conn *conn)
{
	const weft_span args[3] = { weft_text("CLIENT"), weft_text("TRACKING"), weft_text("ON") };

	if (!conn->redis->cache || conn->slot->kind != WEFT__REDIS_SHARED)
		return 0;
	return put_handshake(conn, TRACKING, args, 3);
}

int
weft__redis_handshake_start(struct weft__redis_conn *conn)
{
	int rc = put_hello(conn);

	if (rc == 0)
		rc = put_select(conn, SELECT);
	if (rc == 0)
		rc = put_tracking(conn);
	return rc;
}

static int
resend_auth(struct weft__redis_conn *conn)
{
	const weft_redis *redis = conn->redis;
	weft_span args[3] = { weft_text("AUTH") };
	size_t count = 1;
	int rc = 0;

	if (redis->user)
		args[count++] = weft_text(redis->user);
	if (redis->password) {
		args[count++] = weft_text(redis->password);
		rc = put_handshake(conn, AUTH, args, count);
	}
	if (rc == 0)
		rc = put_select(conn, SELECT_AGAIN);
	return rc;
}

/* --- replies ----------------------------------------------------------------- */

static bool
begins(weft_span text, const char *with)
{
	size_t size = strlen(with);

	return text.size >= size && memcmp(text.data, with, size) == 0;
}

/* Whether an error of HELLO means that the connection has to use RESP2. */
static bool
is_old(const weft_redis *redis, weft_span text)
{
	return begins(text, "NOPROTO") || begins(text, "ERR unknown command")
	       || (redis->password && begins(text, "NOAUTH Auth"));
}

static void
on_error(struct weft__redis_conn *conn, enum handshake which, const weft_redis_reply *reply)
{
	weft_span text = { "", 0 };

	(void)weft_redis_text(reply, &text);
	if (which == HELLO && is_old(conn->redis, text)) {
		conn->fell_back = true;
		return;
	}
	if (which == TRACKING || (which == SELECT && conn->fell_back))
		return; /* no tracking then; SELECT is sent again */
	(void)weft_fail(WEFT_EREPLY, "%s: %.*s", conn->redis->address, (int)text.size,
	                (const char *)text.data);
	weft__redis_conn_slot_failed(conn->slot, WEFT_EREPLY, weft_detail());
}

static bool
is_version_3(const weft_redis_reply *reply)
{
	int64_t version = 0;

	return weft_redis_integer(weft_redis_field(reply, "proto"), &version) == 0 && version >= 3;
}

static void
on_answer(struct weft__redis_conn *conn, enum handshake which, const weft_redis_reply *reply)
{
	if (weft_redis_reply_type(reply) == WEFT_REDIS_ERROR)
		on_error(conn, which, reply);
	else if (which == HELLO)
		conn->is_resp3 = is_version_3(reply);
	else if (which == TRACKING)
		conn->tracks = conn->is_resp3;
}

void
weft__redis_handshake_reply(struct weft__redis_conn *conn, unsigned which, weft_redis_reply *reply)
{
	on_answer(conn, which, reply);
	weft_redis_reply_free(reply);
	conn->handshakes--;
	if (!conn->slot || conn->handshakes > 0)
		return;
	if (conn->fell_back && which < AUTH && resend_auth(conn) < 0) {
		weft__redis_conn_slot_failed(conn->slot, WEFT_ENOMEM, weft_detail());
		return;
	}
	if (conn->handshakes == 0)
		weft__redis_conn_slot_ready(conn->slot);
}
