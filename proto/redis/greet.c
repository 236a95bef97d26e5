/* greet.c - the handshake: HELLO with credentials, SELECT, CLIENT TRACKING.
 *
 * All of it is sent at once.  If the server does not know HELLO, or requires AUTH before it,
 * AUTH and SELECT are sent again for RESP2 once the other replies have arrived.
 */
#include "client.h"

enum greeting {
	HELLO = 1,
	SELECT,
	TRACKING, /* the first round */
	AUTH,
	SELECT_AGAIN, /* the second round, for RESP2 */
};

static int
say(struct weft__redis_wire *wire, enum greeting which, const weft_span *words, size_t count)
{
	struct weft__redis_command command = {
		.words = words,
		.count = count,
		.replies = 1,
	};
	struct weft__redis_slot *slot = weft__redis_wire_put(wire, &command);

	if (!slot)
		return weft_fail(WEFT_ENOMEM, "no memory for the handshake");
	slot->greeting = (uint8_t)which;
	wire->greetings++;
	return 0;
}

static int
say_hello(struct weft__redis_wire *wire)
{
	const weft_redis *redis = wire->redis;
	weft_span words[7] = { weft_text("HELLO"), weft_text("3") };
	size_t count = 2;

	if (redis->password) {
		words[count++] = weft_text("AUTH");
		words[count++] = weft_text(redis->user ? redis->user : "default");
		words[count++] = weft_text(redis->password);
	}
	words[count++] = weft_text("SETNAME");
	words[count++] = weft_text("weft");
	return say(wire, HELLO, words, count);
}

static int
say_select(struct weft__redis_wire *wire, enum greeting which)
{
	weft_span words[2] = { weft_text("SELECT"), weft_text(wire->redis->database) };

	return wire->redis->database[0] ? say(wire, which, words, 2) : 0;
}

static int
say_tracking(struct weft__redis_wire *wire)
{
	const weft_span words[3] = { weft_text("CLIENT"), weft_text("TRACKING"), weft_text("ON") };

	if (!wire->redis->cache || wire->line->kind != WEFT__REDIS_SHARED)
		return 0;
	return say(wire, TRACKING, words, 3);
}

int
weft__redis_greet(struct weft__redis_wire *wire)
{
	int rc = say_hello(wire);

	if (rc == 0)
		rc = say_select(wire, SELECT);
	if (rc == 0)
		rc = say_tracking(wire);
	return rc;
}

static int
say_again(struct weft__redis_wire *wire)
{
	const weft_redis *redis = wire->redis;
	weft_span words[3] = { weft_text("AUTH") };
	size_t count = 1;
	int rc = 0;

	if (redis->user)
		words[count++] = weft_text(redis->user);
	if (redis->password) {
		words[count++] = weft_text(redis->password);
		rc = say(wire, AUTH, words, count);
	}
	if (rc == 0)
		rc = say_select(wire, SELECT_AGAIN);
	return rc;
}

/* --- replies ----------------------------------------------------------------- */

static bool
begins(weft_span text, const char *with)
{
	size_t size = strlen(with);

	return text.size >= size && memcmp(text.data, with, size) == 0;
}

/* Whether an error of HELLO means that there is only RESP2. */
static bool
is_old(const weft_redis *redis, weft_span said)
{
	return begins(said, "NOPROTO") || begins(said, "ERR unknown command")
	       || (redis->password && begins(said, "NOAUTH Auth"));
}

static void
on_error(struct weft__redis_wire *wire, enum greeting which, const weft_redis_reply *reply)
{
	weft_span said = { "", 0 };

	(void)weft_redis_text(reply, &said);
	if (which == HELLO && is_old(wire->redis, said)) {
		wire->fell_back = true;
		return;
	}
	if (which == TRACKING || (which == SELECT && wire->fell_back))
		return; /* no tracking then; SELECT is sent again */
	(void)weft_fail(WEFT_EREPLY, "%s: %.*s", wire->redis->address, (int)said.size,
	                (const char *)said.data);
	weft__redis_line_failed(wire->line, WEFT_EREPLY, weft_detail());
}

static bool
is_version_3(const weft_redis_reply *reply)
{
	int64_t version = 0;

	return weft_redis_integer(weft_redis_field(reply, "proto"), &version) == 0 && version >= 3;
}

static void
on_answer(struct weft__redis_wire *wire, enum greeting which, const weft_redis_reply *reply)
{
	if (weft_redis_reply_type(reply) == WEFT_REDIS_ERROR)
		on_error(wire, which, reply);
	else if (which == HELLO)
		wire->is_resp3 = is_version_3(reply);
	else if (which == TRACKING)
		wire->tracks = wire->is_resp3;
}

void
weft__redis_greeted(struct weft__redis_wire *wire, unsigned which, weft_redis_reply *reply)
{
	on_answer(wire, which, reply);
	weft_redis_reply_free(reply);
	wire->greetings--;
	if (!wire->line || wire->greetings > 0)
		return;
	if (wire->fell_back && which < AUTH && say_again(wire) < 0) {
		weft__redis_line_failed(wire->line, WEFT_ENOMEM, weft_detail());
		return;
	}
	if (wire->greetings == 0)
		weft__redis_line_ready(wire->line);
}
