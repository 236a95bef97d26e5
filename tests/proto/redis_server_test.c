/* redis_server_test.c - the Redis client with redis-server, which is also killed and restarted.
 *
 * The test starts the server, on a socket in its own folder.  Without redis-server the test is
 * skipped.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "proto/redis_peer.h"

static struct {
	char folder[64], path[96], address[128];
	weft_child *child;
	weft_redis *redis;
	weft_redis_opts opts;
	const char *password;
} site;

/* --- the server --------------------------------------------------------------- */

static void
start_server(void)
{
	const char *argv[] = { "redis-server",
		               "--port",
		               "0",
		               "--unixsocket",
		               site.path,
		               "--save",
		               "",
		               "--appendonly",
		               "no",
		               "--dir",
		               site.folder,
		               "--requirepass",
		               site.password ? site.password : "",
		               NULL };
	weft_child_opts opts = { .std = { WEFT_CHILD_NULL, WEFT_CHILD_NULL, WEFT_CHILD_NULL } };

	OK(weft_child_open(argv, &opts, &site.child, WEFT_NEVER));
}

static void
kill_server(void)
{
	int status;

	OK(weft_child_kill(site.child, SIGKILL));
	OK(weft_child_wait(site.child, &status, WEFT_NEVER));
	weft_child_close(site.child);
	(void)unlink(site.path);
}

/* Only a successful command shows that the server is ready. */
static void
await_server(void)
{
	while (weft_redis_callf(site.redis, NULL, WEFT_NEVER, "PING") < 0)
		OK(weft_sleep_until(weft_after(WEFT_MS)));
}

static int (*play)(void);

static int
enter(void *arg)
{
	(void)arg;
	start_server();
	OK(weft_redis_open(site.address, &site.opts, &site.redis));
	await_server();
	OK(play());
	weft_redis_close(site.redis);
	kill_server();
	return 0;
}

static void
play_with_server(int (*fn)(void))
{
	if (access("/usr/bin/redis-server", X_OK) != 0)
		test_skip("redis-server is not installed");
	play = fn;
	(void)snprintf(site.folder, sizeof(site.folder), "/tmp/weft-redis-XXXXXX");
	CHECK(mkdtemp(site.folder));
	(void)snprintf(site.path, sizeof(site.path), "%s/socket", site.folder);
	(void)snprintf(site.address, sizeof(site.address), "redis+unix:%s", site.path);
	site.opts.backoff_max_ns = 10 * WEFT_MS;
	run_threadlet(enter, NULL);
	CHECK_EQ(rmdir(site.folder), 0);
	memset(&site, 0, sizeof(site));
}

static int64_t
number(const char *command)
{
	weft_redis_reply *reply = NULL;
	int64_t value;

	OK(weft_redis_callf(site.redis, &reply, WEFT_NEVER, command));
	OK(weft_redis_integer(reply, &value));
	weft_redis_reply_free(reply);
	return value;
}

/* --- features -------------------------------------------------------------------- */

static int
play_commands(void)
{
	weft_redis_reply *reply = NULL;
	weft_span text;
	double score;

	OK(weft_redis_callf(site.redis, NULL, WEFT_NEVER, "SET %s %b", "a b", "x\0y", (size_t)3));
	OK(weft_redis_callf(site.redis, &reply, WEFT_NEVER, "GET %s", "a b"));
	OK(weft_redis_text(reply, &text));
	CHECK_EQ(text.size, 3);
	CHECK(memcmp(text.data, "x\0y", 3) == 0);
	weft_redis_reply_free(reply);
	OK(weft_redis_callf(site.redis, NULL, WEFT_NEVER, "HSET h one 1 two 2"));
	OK(weft_redis_callf(site.redis, &reply, WEFT_NEVER, "HGETALL h"));
	CHECK_EQ(weft_redis_reply_type(reply), WEFT_REDIS_MAP);
	OK(weft_redis_text(weft_redis_field(reply, "two"), &text));
	CHECK_STR((const char *)text.data, "2");
	weft_redis_reply_free(reply);
	OK(weft_redis_callf(site.redis, NULL, WEFT_NEVER, "ZADD z 1.5 m"));
	OK(weft_redis_callf(site.redis, &reply, WEFT_NEVER, "ZSCORE z m"));
	OK(weft_redis_number(reply, &score));
	CHECK(score == 1.5);
	weft_redis_reply_free(reply);
	CHECK_EQ(number("INCR n"), 1);
	CHECK_EQ(number("INCRBY n 41"), 42);
	CHECK_EQ(weft_redis_callf(site.redis, NULL, WEFT_NEVER, "LPUSH n 1"), WEFT_EREPLY);
	CHECK(strncmp(weft_detail(), "WRONGTYPE", 9) == 0);
	return 0;
}

TEST(redis_server_answers_commands)
{
	play_with_server(play_commands);
}

static int
play_units(void)
{
	const weft_span set[] = { weft_text("SET"), weft_text("a"), weft_text("1") };
	const weft_span bad[] = { weft_text("LPUSH"), weft_text("a"), weft_text("1") };
	const weft_span unknown[] = { weft_text("NOSUCH") };
	const weft_span incr[] = { weft_text("INCR"), weft_text("a") };
	const weft_redis_command unit[] = { { set, 3 }, { bad, 3 }, { incr, 2 } };
	const weft_redis_command wrong[] = { { set, 3 }, { unknown, 1 } };
	const weft_span words[] = { weft_text("1"), weft_text("a"), weft_text("b") };
	weft_redis_reply *reply = NULL;
	int64_t value;

	OK(weft_redis_multi(site.redis, unit, 3, &reply, WEFT_NEVER));
	CHECK_EQ(weft_redis_reply_type(weft_redis_item(reply, 1)), WEFT_REDIS_ERROR);
	OK(weft_redis_integer(weft_redis_item(reply, 2), &value));
	CHECK_EQ(value, 2);
	weft_redis_reply_free(reply);
	CHECK_EQ(weft_redis_multi(site.redis, wrong, 2, &reply, WEFT_NEVER), WEFT_EREPLY);
	CHECK(strstr(weft_detail(), "command 2 of the transaction"));
	for (int i = 0; i < 3; i++) {
		OK(weft_redis_script(site.redis, "return redis.call('INCR', KEYS[1])", words, 3,
		                     &reply, WEFT_NEVER));
		OK(weft_redis_integer(reply, &value));
		CHECK_EQ(value, 3 + i);
		weft_redis_reply_free(reply);
	}
	return 0;
}

TEST(redis_server_runs_transactions_and_scripts)
{
	play_with_server(play_units);
}

/* A session's WATCH makes its transaction fail after another client has written. */
static int
play_watch(void)
{
	const weft_span incr[] = { weft_text("INCR"), weft_text("a") };
	const weft_redis_command unit[] = { { incr, 2 } };
	weft_redis_opts opts = { .session = true };
	weft_redis *session;

	OK(weft_redis_open(site.address, &opts, &session));
	OK(weft_redis_callf(session, NULL, WEFT_NEVER, "WATCH a"));
	OK(weft_redis_callf(site.redis, NULL, WEFT_NEVER, "SET a 5"));
	CHECK_EQ(weft_redis_multi(session, unit, 1, NULL, WEFT_NEVER), WEFT_EAGAIN);
	OK(weft_redis_callf(session, NULL, WEFT_NEVER, "WATCH a"));
	OK(weft_redis_multi(session, unit, 1, NULL, WEFT_NEVER));
	CHECK_EQ(number("GET a"), 6);
	OK(weft_redis_callf(session, NULL, WEFT_NEVER, "SELECT 3"));
	OK(weft_redis_callf(session, NULL, WEFT_NEVER, "SET a 7"));
	CHECK_EQ(number("GET a"), 6);
	weft_redis_close(session);
	return 0;
}

TEST(session_watch_detects_another_write)
{
	play_with_server(play_watch);
}

static int
pop(void *arg)
{
	weft_redis_reply *reply = NULL;
	weft_span text;

	OK(weft_redis_callf(site.redis, &reply, WEFT_NEVER, "BLPOP list 0"));
	OK(weft_redis_text(weft_redis_item(reply, 1), &text));
	*(int *)arg = *(const char *)text.data - '0';
	weft_redis_reply_free(reply);
	return 0;
}

static int
pop_in_vain(void *arg)
{
	(void)arg;
	CHECK_EQ(weft_redis_callf(site.redis, NULL, WEFT_NEVER, "BLPOP list 0"), WEFT_ECANCELED);
	return 0;
}

/* Until so many commands wait for an element, as the server sees it. */
static void
wait_for_blocked(int count)
{
	weft_redis_reply *reply;
	weft_span text;
	char want[64];
	bool found;

	(void)snprintf(want, sizeof(want), "blocked_clients:%d\r\n", count);
	do {
		OK(weft_redis_callf(site.redis, &reply, WEFT_NEVER, "INFO clients"));
		OK(weft_redis_text(reply, &text));
		found = strstr((const char *)text.data, want) != NULL;
		weft_redis_reply_free(reply);
	} while (!found);
}

/* A command that was given up does not take an element that another one waits for. */
static int
play_pops(void)
{
	int got[3] = { 0 };
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, pop_in_vain, NULL) > 0);
	wait_for_blocked(1);
	weft_scope_cancel(&scope);
	(void)weft_scope_close(&scope);
	wait_for_blocked(0);
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < 3; i++)
		CHECK(weft_scope_go(&scope, pop, &got[i]) > 0);
	wait_for_blocked(3);
	OK(weft_redis_callf(site.redis, NULL, WEFT_NEVER, "RPUSH list 1 2 3"));
	OK(weft_scope_close(&scope));
	CHECK_EQ(got[0] + got[1] + got[2], 6);
	CHECK_EQ(number("LLEN list"), 0);
	CHECK_EQ(weft_redis_callf(site.redis, NULL, weft_after(10 * WEFT_MS), "BLPOP list 0"),
	         WEFT_ETIMEDOUT);
	return 0;
}

TEST(blocking_commands_get_pushed_elements)
{
	play_with_server(play_pops);
}

static int
play_publish(void)
{
	const char *const names[] = { "news", "w*", NULL };
	weft_redis_reply *message = NULL;
	weft_redis_subscription *feed;
	weft_span text;

	OK(weft_redis_subscribe(site.redis, names, &feed, WEFT_NEVER));
	CHECK_EQ(number("PUBLISH news one"), 1);
	CHECK_EQ(number("PUBLISH weather two"), 1);
	CHECK_EQ(number("PUBLISH other three"), 0);
	OK(weft_redis_subscription_recv(feed, &message, WEFT_NEVER));
	OK(weft_redis_text(weft_redis_item(message, 1), &text));
	CHECK_STR((const char *)text.data, "one");
	weft_redis_reply_free(message);
	OK(weft_redis_subscription_recv(feed, &message, WEFT_NEVER));
	OK(weft_redis_text(weft_redis_item(message, 0), &text));
	CHECK_STR((const char *)text.data, "weather");
	weft_redis_reply_free(message);
	kill_server();
	start_server();
	await_server();
	while (number("PUBLISH news again") == 0)
		OK(weft_sleep_until(weft_after(WEFT_MS)));
	OK(weft_redis_subscription_recv(feed, &message, WEFT_NEVER));
	OK(weft_redis_text(weft_redis_item(message, 1), &text));
	CHECK_STR((const char *)text.data, "again");
	weft_redis_reply_free(message);
	weft_redis_subscription_close(feed);
	return 0;
}

TEST(subscription_gets_messages_even_after_a_restart)
{
	play_with_server(play_publish);
}

static int
play_tracking(void)
{
	weft_redis_opts opts = { .cache_bytes = 1 << 20 };
	weft_redis *reader;
	weft_redis_reply *reply;
	struct weft_redis_stats stats;
	int64_t value;

	OK(weft_redis_open(site.address, &opts, &reader));
	for (int64_t i = 0; i < 200; i++) {
		OK(weft_redis_callf(site.redis, NULL, WEFT_NEVER, "SET k %d", (int)i));
		do { /* until the invalidation has arrived */
			OK(weft_redis_callf(reader, &reply, WEFT_NEVER, "GET k"));
			OK(weft_redis_integer(reply, &value));
			weft_redis_reply_free(reply);
			OK(weft_yield());
		} while (value < i);
		CHECK_EQ(value, i);
		/* A reader sees its own writes at once. */
		OK(weft_redis_callf(reader, NULL, WEFT_NEVER, "SET mine %d", (int)i));
		OK(weft_redis_callf(reader, &reply, WEFT_NEVER, "GET mine"));
		OK(weft_redis_integer(reply, &value));
		CHECK_EQ(value, i);
		weft_redis_reply_free(reply);
	}
	OK(weft_redis_callf(reader, NULL, WEFT_NEVER, "GET k"));
	OK(weft_redis_stats(reader, &stats));
	CHECK(stats.hits > 0);
	CHECK(stats.invalidated > 0);
	weft_redis_close(reader);
	return 0;
}

TEST(cache_follows_invalidations_of_redis_server)
{
	play_with_server(play_tracking);
}

static int
play_entry(void)
{
	weft_redis_opts ann = { .user = "ann", .password = "secret" };
	weft_redis_opts wrong = { .password = "wrong" };
	weft_redis_opts numbered = { .password = "open sesame" };
	weft_redis *redis;
	char address[160];

	OK(weft_redis_callf(site.redis, NULL, WEFT_NEVER, "ACL SETUSER ann on >secret ~* +get"));
	OK(weft_redis_open(site.address, &ann, &redis));
	OK(weft_redis_callf(redis, NULL, WEFT_NEVER, "GET a"));
	CHECK_EQ(weft_redis_callf(redis, NULL, WEFT_NEVER, "SET a 1"), WEFT_EREPLY);
	CHECK(strncmp(weft_detail(), "NOPERM", 6) == 0);
	weft_redis_close(redis);
	OK(weft_redis_open(site.address, &wrong, &redis));
	CHECK_EQ(weft_redis_callf(redis, NULL, WEFT_NEVER, "GET a"), WEFT_EREPLY);
	CHECK(strstr(weft_detail(), "WRONGPASS"));
	weft_redis_close(redis);
	OK(weft_redis_open(site.address, NULL, &redis));
	CHECK_EQ(weft_redis_callf(redis, NULL, WEFT_NEVER, "GET a"), WEFT_EREPLY);
	CHECK(strstr(weft_detail(), "NOAUTH"));
	weft_redis_close(redis);
	(void)snprintf(address, sizeof(address), "%s", site.address);
	OK(weft_redis_open(address, &numbered, &redis));
	OK(weft_redis_callf(redis, NULL, WEFT_NEVER, "GET a"));
	weft_redis_close(redis);
	return 0;
}

TEST(authentication_works_with_redis_server)
{
	site.password = "open sesame";
	site.opts.password = "open sesame";
	play_with_server(play_entry);
}

/* --- a server that is killed or stopped ------------------------------------------ */

#define WORKERS 20

struct load {
	bool over;
	int well, failed, in_a_row, worst;
};

static int
work(void *arg)
{
	struct load *load = arg;

	for (int i = 0; !load->over; i++) {
		int rc = weft_redis_callf(site.redis, NULL, weft_after(WEFT_S),
		                          i & 1 ? "INCR n" : "GET n");

		if (rc == 0)
			load->well++;
		else
			load->failed++;
		CHECK(rc == 0 || rc == WEFT_EPIPE || rc == WEFT_ECONNREFUSED || rc == WEFT_ENOENT
		      || rc == WEFT_ECONNRESET || rc == WEFT_ETIMEDOUT || rc == WEFT_EREPLY);
	}
	return 0;
}

static int
play_killed(void)
{
	struct load load = { .over = false };
	struct weft_redis_stats stats;
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < WORKERS; i++)
		CHECK(weft_scope_go(&scope, work, &load) > 0);
	for (int i = 0; i < 5; i++) {
		int well = load.well, failed;

		UNTIL(load.well > well + 200);
		kill_server();
		failed = load.failed;
		UNTIL(load.failed >= failed + WORKERS);
		start_server();
		well = load.well;
		UNTIL(load.well > well + 200);
		failed = load.failed;
		well = load.well;
		UNTIL(load.well > well + 200);
		CHECK_EQ(load.failed, failed); /* it has recovered */
	}
	load.over = true;
	OK(weft_scope_close(&scope));
	OK(weft_redis_stats(site.redis, &stats));
	CHECK(stats.connects >= 6);
	CHECK_EQ(stats.inflight, 0);
	return 0;
}

TEST(client_recovers_from_a_server_killed_under_load)
{
	play_with_server(play_killed);
}

/* A stopped server is there but does not answer. */
static int
play_asleep(void)
{
	uint64_t late;
	struct weft_redis_stats stats;

	OK(weft_child_kill(site.child, SIGSTOP));
	for (int i = 0; i < 10; i++)
		CHECK_EQ(weft_redis_callf(site.redis, NULL, weft_after(2 * WEFT_MS), "GET n"),
		         WEFT_ETIMEDOUT);
	OK(weft_child_kill(site.child, SIGCONT));
	OK(weft_redis_callf(site.redis, NULL, WEFT_NEVER, "GET n"));
	OK(weft_redis_stats(site.redis, &stats));
	late = stats.late;
	CHECK_EQ(late, 10);
	CHECK_EQ(stats.connects, 1);
	return 0;
}

TEST(stopped_server_times_commands_out_without_reconnecting)
{
	play_with_server(play_asleep);
}
