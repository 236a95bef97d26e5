/* redis_subscription_test.c - subscriptions and the cache of the Redis client. */
#include "proto/redis_peer.h"

#define MESSAGE(channel, text) ">3\r\n+message\r\n+" channel "\r\n+" text "\r\n"

/* --- subscriptions ----------------------------------------------------------- */

static void
hear(weft_redis_subscription *feed, const char *channel, const char *text)
{
	weft_redis_reply *message = NULL;
	weft_span span;

	OK(weft_redis_subscription_recv(feed, &message, weft_after(HOUR)));
	CHECK_EQ(weft_redis_reply_type(message), WEFT_REDIS_LIST);
	CHECK_EQ(weft_redis_count(message), 2);
	OK(weft_redis_text(weft_redis_item(message, 0), &span));
	CHECK_STR((const char *)span.data, channel);
	OK(weft_redis_text(weft_redis_item(message, 1), &span));
	CHECK_STR((const char *)span.data, text);
	weft_redis_reply_free(message);
}

static void
play_feed(struct world *world)
{
	const char *const names[] = { "a", "b", "c*", NULL };
	const char *const one[] = { "b", NULL };
	weft_redis_subscription *feed, *other;
	weft_redis_reply *message;

	OK(weft_redis_subscribe(world->redis, names, &feed, WEFT_NEVER));
	OK(weft_redis_subscribe(world->redis, one, &other, WEFT_NEVER));
	CHECK_EQ(world->peer.accepted, 1);
	CHECK_EQ(peer_heard(&world->peer, "SUBSCRIBE b"), 1);
	CHECK_EQ(peer_heard(&world->peer, "PSUBSCRIBE c*"), 1);
	peer_say(&world->peer,
	         MESSAGE("a", "1") MESSAGE("b", "2")
	                 MESSAGE("zz", "?") ">4\r\n+pmessage\r\n+c*\r\n+cd\r\n$3\r\n3\r\n\r\n");
	hear(feed, "a", "1");
	hear(feed, "b", "2");
	hear(feed, "cd", "3\r\n");
	hear(other, "b", "2");
	CHECK_EQ(weft_redis_subscription_recv(other, &message, weft_after(WEFT_MS)),
	         WEFT_ETIMEDOUT);
	CHECK_EQ(weft_redis_subscription_recv(other, &message, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	weft_redis_subscription_close(feed);
	UNTIL(peer_heard(&world->peer, "PUNSUBSCRIBE c*") == 1
	      && peer_heard(&world->peer, "UNSUBSCRIBE a") == 1);
	CHECK_EQ(peer_heard(&world->peer, "UNSUBSCRIBE b"), 0);
	peer_say(&world->peer, MESSAGE("a", "4") MESSAGE("b", "5"));
	hear(other, "b", "5");
	weft_redis_subscription_close(other);
	weft_redis_subscription_close(NULL);
	UNTIL(world->peer.open == 0); /* no subscription needs the connection */
}

TEST(subscriptions_share_a_connection_and_get_their_messages)
{
	PLAY(play_feed, .user = NULL);
}

static void
play_old_feed(struct world *world)
{
	const char *const names[] = { "a", NULL };
	weft_redis_subscription *feed;

	OK(weft_redis_subscribe(world->redis, names, &feed, WEFT_NEVER));
	peer_say(&world->peer, "*3\r\n+message\r\n+a\r\n+1\r\n");
	hear(feed, "a", "1");
	weft_redis_subscription_close(feed);
}

TEST(subscriptions_work_in_resp2)
{
	PLAY(play_old_feed, .peer = { .is_old = true });
}

static void
play_feed_loss(struct world *world)
{
	const char *const names[] = { "a", "b*", NULL };
	weft_redis_subscription *feed;

	OK(weft_redis_subscribe(world->redis, names, &feed, WEFT_NEVER));
	for (int i = 2; i < 6; i++) {
		peer_drop(&world->peer);
		UNTIL(peer_heard(&world->peer, "PSUBSCRIBE b*") == i);
		peer_say(&world->peer, MESSAGE("a", "again"));
		hear(feed, "a", "again");
	}
	peer_close(&world->peer);
	peer_drop(&world->peer);
	OK(weft_sleep_until(weft_after(5 * WEFT_MS)));
	peer_open(&world->peer, weft_loop_current());
	UNTIL(peer_heard(&world->peer, "PSUBSCRIBE b*") == 6);
	peer_say(&world->peer, MESSAGE("a", "back"));
	hear(feed, "a", "back");
	weft_redis_subscription_close(feed);
}

TEST(subscriptions_survive_lost_connections)
{
	PLAY(play_feed_loss, .opts = { .backoff_max_ns = WEFT_MS });
}

static void
play_slow_reader(struct world *world)
{
	const char *const names[] = { "a", NULL };
	weft_redis_subscription *feed;
	weft_redis_reply *message = NULL;
	weft_span text;
	char line[64];

	OK(weft_redis_subscribe(world->redis, names, &feed, WEFT_NEVER));
	for (int i = 0; i < 1500; i++) {
		(void)snprintf(line, sizeof(line), MESSAGE("a", "%d"), i);
		peer_say(&world->peer, line);
	}
	UNTIL(stats_of(world).pushes >= 1500);
	CHECK_EQ(weft_redis_subscription_recv(feed, &message, WEFT_NEVER), WEFT_ENOBUFS);
	for (int i = 1500 - 1024; i < 1500; i++) {
		OK(weft_redis_subscription_recv(feed, &message, WEFT_NEVER));
		OK(weft_redis_text(weft_redis_item(message, 1), &text));
		(void)snprintf(line, sizeof(line), "%d", i);
		CHECK_STR((const char *)text.data, line);
		weft_redis_reply_free(message);
	}
	peer_say(&world->peer, MESSAGE("a", "fresh"));
	hear(feed, "a", "fresh");
	weft_redis_subscription_close(feed);
}

TEST(slow_subscriber_loses_the_oldest_messages_and_gets_one_error)
{
	PLAY(play_slow_reader, .user = NULL);
}

static int
hear_the_end(void *arg)
{
	weft_redis_reply *message;

	CHECK_EQ(weft_redis_subscription_recv(arg, &message, WEFT_NEVER), WEFT_ESHUTDOWN);
	return 0;
}

static void
play_feed_end(struct world *world)
{
	const char *const names[] = { "a", NULL };
	weft_redis_subscription *feed;
	weft_scope scope;

	OK(weft_redis_subscribe(world->redis, names, &feed, WEFT_NEVER));
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, hear_the_end, feed) > 0);
	CHECK(weft_scope_go(&scope, hear_the_end, feed) > 0);
	OK(weft_yield());
	weft_redis_subscription_close(feed);
	OK(weft_scope_close(&scope));
}

TEST(closing_a_subscription_ends_its_receivers)
{
	PLAY(play_feed_end, .user = NULL);
}

static void
play_no_feed(struct world *world)
{
	const char *const names[] = { "a", NULL };
	weft_redis_subscription *feed = NULL;

	CHECK_EQ(weft_redis_subscribe(world->redis, names + 1, &feed, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_redis_subscribe(world->redis, names, &feed, weft_after(WEFT_MS)),
	         WEFT_ETIMEDOUT);
	CHECK_EQ(weft_redis_subscribe(world->redis, names, &feed, WEFT_NEVER),
	         WEFT_ETIMEDOUT); /* from the handshake */
	peer_close(&world->peer);
	CHECK_EQ(weft_redis_subscribe(world->redis, names, &feed, WEFT_NEVER), WEFT_ECONNREFUSED);
	CHECK(!feed);
}

TEST(subscription_that_fails_reports_the_reason)
{
	PLAY(play_no_feed, .peer = { .is_deaf = true },
	     .opts = { .connect_ns = 5 * WEFT_MS, .backoff_max_ns = WEFT_MS });
}

static void
play_no_room(struct world *world)
{
	const char *const names[] = { "a", NULL };
	weft_redis_subscription *feed = NULL;

	CHECK_EQ(weft_redis_subscribe(world->redis, names, &feed, WEFT_NEVER),
	         world->opts.session ? WEFT_EINVAL : WEFT_EAGAIN);
}

TEST(subscription_needs_a_second_connection)
{
	PLAY(play_no_room, .opts = { .connections_max = 1 });
	PLAY(play_no_room, .opts = { .session = true });
}

/* --- the cache --------------------------------------------------------------- */

#define INVALID(key) ">2\r\n+invalidate\r\n*1\r\n+" key "\r\n"

static void
play_cache(struct world *world)
{
	struct peer *peer = &world->peer;

	for (int i = 0; i < 3; i++) {
		OK(ask(world, "GET", "a", WEFT_NEVER));
		OK(ask(world, "GET", "b", WEFT_NEVER));
		OK(ask(world, "INCR", "c", WEFT_NEVER));
	}
	CHECK_EQ(peer_heard(peer, "CLIENT TRACKING ON"), 1);
	CHECK_EQ(peer_heard(peer, "GET a"), 1);
	CHECK_EQ(peer_heard(peer, "GET b"), 1);
	CHECK_EQ(peer_heard(peer, "INCR c"), 3);
	CHECK_EQ(stats_of(world).hits, 4);
	CHECK_EQ(stats_of(world).replies, 9);
	CHECK_EQ(stats_of(world).calls, 9);
	peer_say(peer, INVALID("a"));
	UNTIL(stats_of(world).invalidated == 1);
	CHECK_EQ(ask(world, "GET", "a", WEFT_NOWAIT), WEFT_ETIMEDOUT);
}

static void
play_cache_drop(struct world *world)
{
	struct peer *peer = &world->peer;

	OK(ask(world, "GET", "a", WEFT_NEVER));
	OK(ask(world, "HGET", "a", WEFT_NEVER));
	OK(ask(world, "GET", "b", WEFT_NEVER));
	peer_say(peer, INVALID("a"));
	UNTIL(stats_of(world).invalidated == 1);
	OK(ask(world, "GET", "a", WEFT_NEVER));
	OK(ask(world, "HGET", "a", WEFT_NEVER));
	OK(ask(world, "GET", "b", WEFT_NOWAIT)); /* returned at once */
	CHECK_EQ(peer_heard(peer, "GET a"), 2);
	CHECK_EQ(peer_heard(peer, "HGET a"), 2);
	CHECK_EQ(peer_heard(peer, "GET b"), 1);
	OK(ask(world, "DEL", "b", WEFT_NEVER)); /* the client's own write: no invalidation is
	                                         * needed */
	OK(ask(world, "GET", "b", WEFT_NEVER));
	CHECK_EQ(peer_heard(peer, "GET b"), 2);
	CHECK(stats_of(world).cached_bytes > 0);
	peer_say(peer, ">2\r\n+invalidate\r\n_\r\n");
	UNTIL(stats_of(world).cached_bytes == 0);
	OK(ask(world, "GET", "b", WEFT_NEVER));
	CHECK_EQ(peer_heard(peer, "GET b"), 3);
	peer_drop(peer);
	UNTIL(stats_of(world).cached_bytes == 0);
	OK(ask(world, "GET", "b", WEFT_NEVER));
	CHECK_EQ(peer_heard(peer, "GET b"), 4);
}

TEST(cache_answers_repeated_reads)
{
	PLAY(play_cache, .opts = { .cache_bytes = 1 << 20 });
}

TEST(cache_drops_changed_keys_and_everything_on_connection_loss)
{
	PLAY(play_cache_drop, .opts = { .cache_bytes = 1 << 20 });
}

struct twin {
	struct world *world;
	uint64_t deadline_ns;
	int result;
};

static int
ask_same(void *arg)
{
	struct twin *twin = arg;

	twin->result = ask(twin->world, "GET", "same", twin->deadline_ns);
	return 0;
}

static void
play_twins(struct world *world)
{
	struct twin twins[10];
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < 10; i++) {
		twins[i] = (struct twin){ world, i < 2 ? weft_after(5 * WEFT_MS) : WEFT_NEVER, 1 };
		CHECK(weft_scope_go(&scope, ask_same, &twins[i]) > 0);
	}
	UNTIL(twins[0].result < 1 && twins[1].result < 1);
	peer_go_on(&world->peer);
	OK(weft_scope_close(&scope));
	for (int i = 0; i < 10; i++)
		CHECK_EQ(twins[i].result, i < 2 ? WEFT_ETIMEDOUT : 0);
	CHECK_EQ(peer_heard(&world->peer, "GET same"), 1);
}

TEST(concurrent_reads_of_one_key_share_a_request)
{
	PLAY(play_twins, .peer = { .holds = true }, .opts = { .cache_bytes = 1 << 20 });
}

static void
play_bound(struct world *world)
{
	char key[32];

	for (int i = 0; i < 500; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		OK(ask(world, "GET", key, WEFT_NEVER));
		CHECK(stats_of(world).cached_bytes <= 10000);
	}
	CHECK(stats_of(world).cached_bytes > 5000);
	OK(ask(world, "GET", "k499", WEFT_NOWAIT));
	CHECK_EQ(ask(world, "GET", "k0", WEFT_NOWAIT), WEFT_ETIMEDOUT);
}

TEST(cache_is_limited_and_keeps_recently_used_entries)
{
	PLAY(play_bound, .opts = { .cache_bytes = 10000 });
}

static void
play_untracked(struct world *world)
{
	for (int i = 0; i < 3; i++)
		OK(ask(world, "GET", "k", WEFT_NEVER));
	CHECK_EQ(peer_heard(&world->peer, "GET k"), 3);
	CHECK_EQ(stats_of(world).cached_bytes, 0);
}

TEST(nothing_is_cached_without_tracking)
{
	PLAY(play_untracked, .peer = { .is_old = true }, .opts = { .cache_bytes = 10000 });
}
