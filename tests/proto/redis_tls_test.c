/* redis_tls_test.c - the Redis client over TLS. */
#include "proto/redis_peer.h"
#include "proto/tls_three.h"

static int
call_often(void *arg)
{
	struct world *world = arg;
	char key[32];

	for (int i = 0; i < 20; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		OK(ask(world, "GET", key, WEFT_NEVER));
	}
	return 0;
}

static void
play_trusted(struct world *world)
{
	weft_redis_reply *reply = NULL;
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < 20; i++)
		CHECK(weft_scope_go(&scope, call_often, world) > 0);
	OK(weft_scope_close(&scope));
	OK(weft_redis_callf(world->redis, &reply, WEFT_NEVER, "BIG 200000"));
	weft_redis_reply_free(reply);
	CHECK_EQ(ask(world, "BLPOP", "never", weft_after(5 * WEFT_MS)), WEFT_ETIMEDOUT);
	peer_drop(&world->peer);
	OK(ask(world, "GET", "k", WEFT_NEVER));
}

TEST(rediss_address_uses_tls)
{
	make_tls();
	PLAY(play_trusted, .peer = { .tls = tls.server }, .opts = { .tls = tls.client });
	drop_tls();
}

static void
play_stranger(struct world *world)
{
	CHECK_EQ(ask(world, "GET", "k", WEFT_NEVER), WEFT_ECERT);
	CHECK_EQ(peer_heard(&world->peer, "GET k"), 0);
}

TEST(rediss_address_refuses_an_untrusted_server)
{
	make_tls();
	PLAY(play_stranger, .peer = { .tls = tls.server }, .opts = { .tls = tls.stranger });
	drop_tls();
}
