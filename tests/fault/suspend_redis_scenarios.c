/* suspend_redis_scenarios.c - Redis client commands, disturbed at each of their suspensions.
 *
 * The server is made of callbacks, so that only callers suspend.  A disturbed call gets no
 * reply.  All other calls get their own reply, on the same connection.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/redis.h>
#include "fault.h"
#include "suspend.h"

/* --- the server ------------------------------------------------------------- */

struct seat {
	char heard[1024];
	size_t size;
};

/* Find the first two arguments of the command at `at`.  Returns its end, or NULL if it is
 * incomplete. */
static char *
read_words(char *at, char *words[2])
{
	long count = strtol(at + 1, &at, 10);

	for (long i = 0; i < count; i++) {
		char *size_at = strchr(at, '$');
		long size;

		if (!size_at)
			return NULL;
		size = strtol(size_at + 1, &at, 10);
		if (strlen(at) < (size_t)size + 4)
			return NULL;
		if (i < 2)
			words[i] = at + 2;
		at += 2 + size;
		if (strncmp(at, "\r\n", 2) != 0)
			return NULL;
	}
	return at + 2;
}

static void
answer(weft_stream *stream, char *words[2])
{
	char text[128];
	int key = (int)strcspn(words[1], "\r"), name = (int)strcspn(words[0], "\r");
	weft_span span;

	if (strncmp(words[0], "HELLO", 5) == 0)
		(void)snprintf(text, sizeof(text), "%%1\r\n+proto\r\n:3\r\n");
	else if (strncmp(words[0], "SUBSCRIBE", 9) == 0)
		(void)snprintf(text, sizeof(text),
		               ">3\r\n+subscribe\r\n+%.*s\r\n:1\r\n"
		               ">3\r\n+message\r\n+%.*s\r\n+news\r\n",
		               key, words[1], key, words[1]);
	else if (strncmp(words[0], "UNSUBSCRIBE", 11) == 0)
		return;
	else
		(void)snprintf(text, sizeof(text), "+%.*s:%.*s\r\n", name, words[0], key, words[1]);
	span = weft_text(text);
	EXPECT(weft_stream_write_some(stream, &span, 1) == (ssize_t)span.size);
}

static void
hear(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct seat *seat = arg;
	char *words[2], *end;

	if (size <= 0) {
		weft_stream_close(stream);
		free(seat);
		return;
	}
	EXPECT(seat->size + (size_t)size < sizeof(seat->heard));
	memcpy(seat->heard + seat->size, data, (size_t)size);
	seat->size += (size_t)size;
	seat->heard[seat->size] = '\0';
	EXPECT(weft_stream_skip(stream, (size_t)size) == 0);
	while (seat->size > 0 && (end = read_words(seat->heard, words))) {
		answer(stream, words);
		seat->size -= (size_t)(end - seat->heard);
		memmove(seat->heard, end, seat->size + 1);
	}
}

static void
let_in(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	static const weft_stream_events events = { .on_data = hear };
	struct seat *seat;

	(void)listener;
	(void)error;
	(void)arg;
	if (!peer)
		return;
	seat = calloc(1, sizeof(*seat));
	EXPECT(seat);
	EXPECT(weft_stream_start(peer, NULL, &events, seat) == 0);
}

/* --- the client ------------------------------------------------------------ */

static enum went
call(weft_redis *redis, const char *name, const char *key)
{
	const weft_span words[] = { weft_text(name), weft_text(key) };
	weft_redis_reply *reply = NULL;
	char want[64];
	enum went went;
	weft_span text;

	RETRY(went, how(weft_redis_call(redis, words, 2, &reply, WEFT_NEVER), 0));
	EXPECT((went == WELL) == (reply != NULL));
	if (went != WELL)
		return went;
	(void)snprintf(want, sizeof(want), "%s:%s", name, key);
	EXPECT(weft_redis_text(reply, &text) == 0);
	EXPECT(strcmp(text.data, want) == 0);
	weft_redis_reply_free(reply);
	return WELL;
}

static int
visit(void *arg)
{
	char key[16];

	for (int i = 0; i < 3; i++) {
		(void)snprintf(key, sizeof(key), "a%d", i);
		if (call(arg, i & 1 ? "INCR" : "GET", key) != WELL)
			break;
	}
	return 0;
}

static int
visit_blocking(void *arg)
{
	if (call(arg, "BLPOP", "b") == WELL)
		(void)call(arg, "GET", "c");
	return 0;
}

static int
visit_feed(void *arg)
{
	const char *const names[] = { "d", NULL };
	weft_redis_reply *message = NULL;
	weft_redis_subscription *feed = NULL;
	enum went went;

	RETRY(went, how(weft_redis_subscribe(arg, names, &feed, WEFT_NEVER), 0));
	if (went != WELL)
		return 0;
	RETRY(went, how(weft_redis_subscription_recv(feed, &message, WEFT_NEVER), 0));
	EXPECT((went == WELL) == (message != NULL));
	weft_redis_reply_free(message);
	weft_redis_subscription_close(feed);
	return 0;
}

int
run_redis(void *arg)
{
	struct stage *stage = arg;
	char text[WEFT_ADDR_TEXT_MAX], address[WEFT_ADDR_TEXT_MAX + 8];
	weft_listener *listener;
	weft_redis *redis;
	weft_scope scope;
	weft_addr addr;

	EXPECT(weft_listener_open("tcp://127.0.0.1:0", NULL, &listener) == 0);
	EXPECT(weft_listener_local(listener, &addr) == 0);
	EXPECT(weft_addr_format(&addr, text, sizeof(text)) > 0);
	(void)snprintf(address, sizeof(address), "redis%s", text + 3);
	EXPECT(weft_listener_start(listener, NULL, let_in, NULL) == 0);
	EXPECT(weft_redis_open(address, NULL, &redis) == 0);
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, stage->there, visit, redis);
	(void)start_in(&scope, stage->there, visit_blocking, redis);
	(void)start_in(&scope, NULL, visit, redis);
	(void)start_in(&scope, NULL, visit_feed, redis);
	EXPECT(weft_scope_close(&scope) == 0);
	weft_redis_close(redis);
	weft_listener_close(listener);
	return 0;
}
