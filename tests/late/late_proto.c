/* late_proto.c - the table of waiting calls: Redis and HTTP.  The director acts as their
 * server. */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <unistd.h>
#include <weft/http.h>
#include <weft/redis.h>
#include "late/late.h"

#define CONNS_MAX 3100
#define HEARD_MAX ((size_t)1 << 20)

/* A server on plain nonblocking sockets. */
struct server {
	int door;
	uint16_t port;
	const char *mark;                    /* the end of a complete request */
	uint32_t marks;                      /* complete requests so far */
	const char *greeting, *reply, *head; /* sent: on HELLO; by the feed; on a request */
	int conns[CONNS_MAX];
	uint32_t count;
	size_t size; /* bytes received since the last mark */
	char heard[HEARD_MAX];
	void *client;
};

static void
say(int fd, const char *text)
{
	CHECK_EQ(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Count the complete requests, and remove them from the buffer. */
static void
count_marks(struct server *server, int fd)
{
	size_t size = strlen(server->mark);
	char *at = server->heard, *found;

	server->heard[server->size] = '\0';
	while ((found = strstr(at, server->mark))) {
		server->marks++;
		at = found + size;
		if (server->head)
			say(fd, server->head);
	}
	server->size -= (size_t)(at - server->heard);
	memmove(server->heard, at, server->size);
}

static void
hear(struct server *server, int fd)
{
	ssize_t n = recv(fd, server->heard + server->size, HEARD_MAX - server->size - 1,
	                 MSG_DONTWAIT);
	bool greets;

	if (n <= 0)
		return;
	server->size += (size_t)n;
	server->heard[server->size] = '\0';
	greets = server->greeting && strstr(server->heard, "HELLO");
	if (greets) {
		say(fd, server->greeting);
		server->size = 0;
	} else {
		count_marks(server, fd);
	}
}

static void
pump(struct stage *stage)
{
	struct server *server = stage->object;
	int fd, on = 1;

	while ((fd = accept(server->door, NULL, NULL)) >= 0) {
		/* Otherwise the kernel delays small replies. */
		OK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
		server->conns[server->count++] = fd;
	}
	for (uint32_t i = 0; i < server->count; i++)
		hear(server, server->conns[i]);
}

static struct server *
open_server(struct stage *stage, const char *mark, const char *reply)
{
	struct server *server = calloc(1, sizeof(*server));
	struct sockaddr_in addr;

	CHECK(server != NULL);
	server->door = make_listener(CONNS_MAX, &addr);
	OK(fcntl(server->door, F_SETFL, O_NONBLOCK));
	server->port = ntohs(addr.sin_port);
	server->mark = mark;
	server->reply = reply;
	stage->object = server;
	return server;
}

static void
close_server(struct server *server)
{
	for (uint32_t i = 0; i < server->count; i++)
		OK(close(server->conns[i]));
	OK(close(server->door));
	free(server);
}

/* The server has received as many requests as there are waiters. */
static bool
was_heard(struct waiter *w)
{
	return ((struct server *)w->stage->object)->marks >= w->stage->count;
}

static bool
was_heard_once(struct waiter *w)
{
	return ((struct server *)w->stage->object)->marks > 0;
}

/* --- Redis -------------------------------------------------------------------- */

static void
open_redis(struct stage *stage, const char *mark, const char *reply)
{
	struct server *server = open_server(stage, mark, reply);
	weft_redis *redis;
	char text[64];

	server->greeting = "%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n";
	(void)snprintf(text, sizeof(text), "redis://127.0.0.1:%u", server->port);
	OK(weft_redis_open(text, NULL, &redis));
	server->client = redis;
}

static void
open_for_get(struct stage *stage)
{
	open_redis(stage, "GET\r\n", "$1\r\nx\r\n");
}

static void
open_for_multi(struct stage *stage)
{
	open_redis(stage, "EXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n$1\r\nx\r\n");
}

static void
open_for_script(struct stage *stage)
{
	open_redis(stage, "EVALSHA\r\n", ":1\r\n");
}

#define SUBSCRIBED ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
#define MESSAGE    ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n"

static void
open_for_feed(struct stage *stage)
{
	open_redis(stage, "SUBSCRIBE\r\n", SUBSCRIBED);
}

static void
open_for_message(struct stage *stage)
{
	open_redis(stage, "SUBSCRIBE\r\n", MESSAGE);
	((struct server *)stage->object)->head = SUBSCRIBED;
}

static void
close_redis(struct stage *stage)
{
	struct server *server = stage->object;

	weft_redis_close(server->client);
	close_server(server);
}

/* Send one reply for each waiter, on the connection of the requests.  Use one call: the kernel
 * delays some of many small segments until others are acknowledged. */
static void
reply_to_all(struct stage *stage)
{
	struct server *server = stage->object;
	size_t size = strlen(server->reply);
	char *all = malloc(stage->count * size + 1);

	CHECK(all != NULL);
	for (uint32_t i = 0; i < stage->count; i++)
		memcpy(all + i * size, server->reply, size + 1);
	say(server->conns[0], all);
	free(all);
}

static void
reply_once(struct stage *stage)
{
	struct server *server = stage->object;

	say(server->conns[server->count - 1], server->reply);
}

static weft_redis *
redis_of(struct waiter *w)
{
	return ((struct server *)w->stage->object)->client;
}

static int64_t
call_redis(struct waiter *w, uint64_t deadline_ns)
{
	weft_span words[] = { weft_text("GET"), weft_text("a") };

	return weft_redis_call(redis_of(w), words, 2, NULL, deadline_ns);
}

static int64_t
call_redis_by_format(struct waiter *w, uint64_t deadline_ns)
{
	return weft_redis_callf(redis_of(w), NULL, deadline_ns, "GET a");
}

static int64_t
call_redis_op(struct waiter *w, uint64_t deadline_ns)
{
	weft_span words[] = { weft_text("GET"), weft_text("a") };

	OK(weft_op_init(&w->op, NULL, NULL, NULL));
	OK(weft_redis_call_op(redis_of(w), words, 2, NULL, &w->op, deadline_ns));
	return weft_op_wait(&w->op, WEFT_NEVER);
}

static int64_t
call_redis_promise(struct waiter *w, uint64_t deadline_ns)
{
	weft_span words[] = { weft_text("GET"), weft_text("a") };
	weft_promise *promise = weft_redis_call_promise(redis_of(w), words, 2, deadline_ns);
	int64_t rc;

	CHECK(promise != NULL);
	rc = weft_await(promise, NULL, WEFT_NEVER);
	(void)weft_promise_unref(promise);
	return rc;
}

static int64_t
call_redis_multi(struct waiter *w, uint64_t deadline_ns)
{
	weft_span words[] = { weft_text("GET"), weft_text("a") };
	weft_redis_command command = { words, 2 };

	return weft_redis_multi(redis_of(w), &command, 1, NULL, deadline_ns);
}

static int64_t
call_redis_script(struct waiter *w, uint64_t deadline_ns)
{
	weft_span words[] = { weft_text("0") };

	return weft_redis_script(redis_of(w), "return 1", words, 1, NULL, deadline_ns);
}

static int
call_redis_there(void *arg)
{
	struct waiter *w = arg;

	return weft_redis_callf(redis_of(w), NULL, w->stage->deadline_ns, "GET a");
}

/* The call is made by a plain thread. */
static int64_t
call_redis_afar(struct waiter *w, uint64_t deadline_ns)
{
	(void)deadline_ns;
	return weft_work(WEFT_BLOCKING, call_redis_there, w, WEFT_NEVER);
}

static int64_t
open_feed(struct waiter *w, uint64_t deadline_ns)
{
	const char *const channels[] = { "c", NULL };
	weft_redis_subscription *feed;
	int64_t rc = weft_redis_subscribe(redis_of(w), channels, &feed, deadline_ns);

	w->object = rc == 0 ? feed : NULL;
	return rc;
}

static void
subscribe(struct waiter *w)
{
	OK(open_feed(w, WEFT_NEVER));
}

static void
close_feed(struct waiter *w)
{
	if (w->object)
		weft_redis_subscription_close(w->object);
}

static int64_t
call_feed_recv(struct waiter *w, uint64_t deadline_ns)
{
	weft_redis_reply *reply;
	int64_t rc = weft_redis_subscription_recv(w->object, &reply, deadline_ns);

	if (rc == 0)
		weft_redis_reply_free(reply);
	return rc;
}

/* --- HTTP --------------------------------------------------------------------- */

#define HEAD "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"

static void
open_http(struct stage *stage, const char *reply, const char *head)
{
	weft_http_client_opts opts = { .per_host_max = CONNS_MAX };
	struct server *server = open_server(stage, "\r\n\r\n", reply);

	server->head = head;
	server->client = weft_http_client_new(&opts);
	CHECK(server->client != NULL);
}

static void
open_for_fetch(struct stage *stage)
{
	open_http(stage, HEAD "ok", NULL);
}

static void
open_for_body(struct stage *stage)
{
	open_http(stage, "ok", HEAD);
}

static void
close_http(struct stage *stage)
{
	struct server *server = stage->object;

	OK(weft_http_client_free(server->client));
	close_server(server);
}

static void
answer_all(struct stage *stage)
{
	struct server *server = stage->object;

	CHECK_EQ(server->count, stage->count);
	for (uint32_t i = 0; i < server->count; i++)
		say(server->conns[i], server->reply);
}

static int64_t
fetch(struct waiter *w, uint64_t deadline_ns)
{
	struct server *server = w->stage->object;
	weft_http_request request = { .url = w->buf };
	weft_http *http;
	int64_t rc;

	(void)snprintf(w->buf, sizeof(w->buf), "http://127.0.0.1:%u/", server->port);
	rc = weft_http_fetch(server->client, &request, &http, deadline_ns);
	w->object = rc == 0 ? http : NULL;
	return rc;
}

static void
begin_fetch(struct waiter *w)
{
	OK(fetch(w, WEFT_NEVER));
}

static void
end_fetch(struct waiter *w)
{
	weft_http_close(w->object);
}

static int64_t
call_http_read(struct waiter *w, uint64_t deadline_ns)
{
	return weft_http_read(w->object, w->buf, sizeof(w->buf), deadline_ns);
}

static int64_t
call_http_read_all(struct waiter *w, uint64_t deadline_ns)
{
	return weft_http_read_all(w->object, w->buf, sizeof(w->buf), deadline_ns);
}

/* clang-format off */
#define ROW(call_) .call = #call_
#define REDIS(open_, call_it_) \
	.open = open_, .close = close_redis, .pump = pump, .is_waiting = was_heard, \
	.call_it = call_it_, .feed_all = reply_to_all
#define BODY(call_it_) \
	.open = open_for_body, .close = close_http, .pump = pump, .prepare = begin_fetch, \
	.call_it = call_it_, .finish = end_fetch, .feed_all = answer_all
const struct row late_proto_rows[] = {
	{ ROW(weft_redis_call), REDIS(open_for_get, call_redis) },
	{ ROW(weft_redis_callf), REDIS(open_for_get, call_redis_by_format) },
	{ ROW(weft_redis_callf), REDIS(open_for_get, call_redis_afar), .max = 8 },
	{ ROW(weft_redis_call_op), REDIS(open_for_get, call_redis_op) },
	{ ROW(weft_redis_call_promise), REDIS(open_for_get, call_redis_promise) },
	{ ROW(weft_redis_multi), REDIS(open_for_multi, call_redis_multi) },
	{ ROW(weft_redis_script), REDIS(open_for_script, call_redis_script) },
	{ ROW(weft_redis_subscribe), .open = open_for_feed, .close = close_redis,
	  .pump = pump, .is_waiting = was_heard_once, .call_it = open_feed,
	  .finish = close_feed, .feed_all = reply_once },
	{ ROW(weft_redis_subscription_recv), .open = open_for_message, .close = close_redis,
	  .pump = pump, .prepare = subscribe, .call_it = call_feed_recv,
	  .finish = close_feed, .feed_all = reply_once },
	{ ROW(weft_http_fetch), .open = open_for_fetch, .close = close_http, .pump = pump,
	  .is_waiting = was_heard, .call_it = fetch, .finish = end_fetch,
	  .feed_all = answer_all },
	{ ROW(weft_http_read), BODY(call_http_read) },
	{ ROW(weft_http_read_all), BODY(call_http_read_all) },
	{ NULL },
};
/* clang-format on */
