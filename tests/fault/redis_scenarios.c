/* redis_scenarios.c - commands to a Redis server made of streams: calls, a transaction, an op,
 * a promise, and a subscription.
 *
 * Whatever fails, every call returns, the client can be closed, and a reply belongs to the
 * caller that gets it.  A lost connection may fail commands.  Later commands use a new
 * connection.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/redis.h>
#include "fault.h"
#include "scenarios.h"

struct site {
	struct world world;
	weft_listener *listener; /* NULL: closed */
	weft_redis *redis;
	char address[WEFT_ADDR_TEXT_MAX + 8];
	uint64_t deadline_ns; /* of all calls: one lost receive may delay all of them */
	int serve_left, play_left;
};

/* --- the server ------------------------------------------------------------- */

/* Read one argument: its size, then its bytes. */
static int
hear_word(weft_stream *peer, char *out, size_t room)
{
	ssize_t n = weft_stream_read_until(peer, "\n", out, room - 1, soon());
	size_t size;

	if (n <= 0)
		return -1;
	out[n] = '\0';
	size = strtoul(out + 1, NULL, 10);
	if (size + 3 > room || weft_stream_read_exact(peer, out, size + 2, soon()) < 0)
		return -1;
	out[size] = '\0';
	return 0;
}

/* Read the command name and the argument after it. */
static int
hear(weft_stream *peer, char *name, char *key, size_t room)
{
	char line[64];
	ssize_t n = weft_stream_read_until(peer, "\n", line, sizeof(line) - 1, soon());
	long count;

	if (n <= 0)
		return -1;
	line[n] = '\0';
	count = strtol(line + 1, NULL, 10);
	key[0] = '\0';
	for (long i = 0; i < count; i++) {
		char *to = i == 0 ? name : i == 1 ? key : line;

		if (hear_word(peer, to, i < 2 ? room : sizeof(line)) < 0)
			return -1;
	}
	return 0;
}

static int
answer_one(weft_stream *peer, const char *name, const char *key)
{
	char text[256];
	int size;

	if (strcmp(name, "HELLO") == 0)
		size = snprintf(text, sizeof(text), "%%1\r\n+proto\r\n:3\r\n");
	else if (strcmp(name, "CLIENT") == 0 || strcmp(name, "MULTI") == 0)
		size = snprintf(text, sizeof(text), "+OK\r\n");
	else if (strcmp(name, "SET") == 0)
		size = snprintf(text, sizeof(text), "+QUEUED\r\n");
	else if (strcmp(name, "EXEC") == 0)
		size = snprintf(text, sizeof(text), "*1\r\n+EXEC\r\n");
	else if (strcmp(name, "SUBSCRIBE") == 0)
		size = snprintf(text, sizeof(text),
		                ">3\r\n+subscribe\r\n+%s\r\n:1\r\n"
		                ">3\r\n+message\r\n+%s\r\n+news\r\n",
		                key, key);
	else if (strcmp(name, "UNSUBSCRIBE") == 0)
		size = 0;
	else
		size = snprintf(text, sizeof(text), "$%zu\r\n%s:%s\r\n",
		                strlen(name) + strlen(key) + 1, name, key);
	return size > 0 && weft_stream_write(peer, text, (size_t)size, soon()) < 0 ? -1 : 0;
}

static int
answer(weft_stream *peer, void *arg)
{
	char name[64], key[64];

	(void)arg;
	while (hear(peer, name, key, sizeof(name)) == 0)
		if (answer_one(peer, name, key) < 0)
			break;
	weft_stream_close(peer);
	return 0;
}

static int
serve(void *arg)
{
	struct site *site = arg;
	weft_listener *listener = site->listener;

	if (listener /* it may be closed before this threadlet runs */
	    && !went_well(weft_listener_serve(listener, NULL, answer, site, WEFT_NEVER),
	                  WEFT_ESHUTDOWN)
	    && site->listener) {
		site->listener = NULL;
		weft_listener_close(listener);
	}
	site->serve_left = 0;
	return 0;
}

/* --- the client ------------------------------------------------------------- */

static void
check_reply(weft_redis_reply *reply, const char *want)
{
	weft_span text = { "", 0 };

	EXPECT(weft_redis_text(reply, &text) == 0);
	EXPECT(strcmp(text.data, want) == 0);
	weft_redis_reply_free(reply);
}

static void
call(struct site *site, const char *command, const char *want)
{
	weft_redis_reply *reply = NULL;
	int rc = weft_redis_callf(site->redis, &reply, site->deadline_ns, command);

	EXPECT((rc == 0) == (reply != NULL));
	if (went_well(rc, 0))
		check_reply(reply, want);
}

static void
call_transaction(struct site *site)
{
	const weft_span set[] = { { "SET", 3 }, { "k", 1 }, { "v", 1 } };
	const weft_redis_command unit = { set, 3 };
	weft_redis_reply *reply = NULL;

	if (went_well(weft_redis_multi(site->redis, &unit, 1, &reply, site->deadline_ns), 0)) {
		EXPECT(weft_redis_count(reply) == 1);
		weft_redis_reply_free(reply);
	}
}

static void
call_by_op(struct site *site)
{
	const weft_span words[] = { { "GET", 3 }, { "op", 2 } };
	weft_redis_reply *reply = NULL;
	weft_op op;
	int64_t rc;

	EXPECT(weft_op_init(&op, NULL, NULL, NULL) == 0);
	rc = weft_redis_call_op(site->redis, words, 2, &reply, &op, site->deadline_ns);
	if (rc == 0)
		rc = weft_op_wait(&op, WEFT_NEVER);
	if (went_well(rc, 0))
		check_reply(reply, "GET:op");
}

static void
call_by_promise(struct site *site)
{
	const weft_span words[] = { { "GET", 3 }, { "later", 5 } };
	weft_promise *promise = weft_redis_call_promise(site->redis, words, 2, site->deadline_ns);
	weft_value value;
	weft_span text;

	if (!went_well(promise != NULL, true))
		return;
	if (went_well(weft_await(promise, &value, WEFT_NEVER), 0)) {
		EXPECT(weft_redis_text(value.as.ptr, &text) == 0);
		EXPECT(strcmp(text.data, "GET:later") == 0);
	}
	(void)weft_promise_unref(promise);
}

static void
hear_feed(struct site *site)
{
	const char *const names[] = { "channel", NULL };
	weft_redis_subscription *feed = NULL;
	weft_redis_reply *message = NULL;

	if (!went_well(weft_redis_subscribe(site->redis, names, &feed, site->deadline_ns), 0))
		return;
	if (went_well(weft_redis_subscription_recv(feed, &message, site->deadline_ns), 0)) {
		EXPECT(weft_redis_count(message) == 2);
		weft_redis_reply_free(message);
	}
	weft_redis_subscription_close(feed);
}

static void
call_all(struct site *site)
{
	call(site, "GET a", "GET:a");
	call(site, "GET a", "GET:a"); /* from the cache */
	call(site, "INCR b", "INCR:b");
	call(site, "BLPOP c", "BLPOP:c");
	call_transaction(site);
	call_by_op(site);
	call_by_promise(site);
	hear_feed(site);
	call(site, "GET d", "GET:d");
}

static void
play_site(struct site *site)
{
	weft_redis_opts opts = { .cache_bytes = 4096, .backoff_max_ns = WEFT_US };
	char text[WEFT_ADDR_TEXT_MAX];
	weft_listener *listener;
	weft_addr addr;

	if (!went_well(weft_listener_open("tcp://127.0.0.1:0", NULL, &site->listener), 0))
		return;
	EXPECT(weft_listener_local(site->listener, &addr) == 0);
	EXPECT(weft_addr_format(&addr, text, sizeof(text)) > 0);
	(void)snprintf(site->address, sizeof(site->address), "redis%s", text + 3);
	site->serve_left = start_on(&site->world, serve, site);
	site->deadline_ns = weft_after(12 * WAIT_NS);
	if (site->serve_left && went_well(weft_redis_open(site->address, &opts, &site->redis), 0))
		call_all(site);
	weft_redis_close(site->redis);
	listener = site->listener;
	site->listener = NULL;
	weft_listener_close(listener);
}

static int
play(void *arg)
{
	struct site *site = arg;

	play_site(site);
	site->play_left = 0;
	return 0;
}

void
run_redis(const char *backend)
{
	struct site site = { .redis = NULL };

	if (!make_world(&site.world, backend, 0))
		return;
	site.play_left = start_on(&site.world, play, &site);
	await_zero(&site.world, &site.play_left);
	await_zero(&site.world, &site.serve_left);
	check_works(&site.world);
	end_world(&site.world);
}
