/* http_both_test.c - the HTTP client and the HTTP server together. */
#include <weft/http.h>
#include "unit/threadlet/sched.h"

struct both {
	weft_http_server *server;
	weft_http_client *client;
	weft_listener *listener;
	char base[64];
};

static int
greet(weft_http *http, void *arg)
{
	(void)arg;
	return weft_http_reply(http, 200, "text/plain", weft_text("hello"), WEFT_NEVER);
}

static int
move(weft_http *http, void *arg)
{
	(void)arg;
	OK(weft_http_set_header(http, "Location", "greet"));
	return weft_http_reply(http, 303, NULL, weft_text("over there"), WEFT_NEVER);
}

/* Send the body back as it arrives, and its size in a trailer. */
static int
echo(weft_http *http, void *arg)
{
	char buf[3000], sum[16];
	size_t all = 0;
	ssize_t n;

	(void)arg;
	OK(weft_http_begin(http, 200, "text/plain", WEFT_NEVER));
	while ((n = weft_http_read(http, buf, sizeof(buf), WEFT_NEVER)) > 0) {
		all += (size_t)n;
		n = weft_http_write(http, buf, (size_t)n, WEFT_NEVER);
		if (n < 0)
			return (int)n;
	}
	(void)snprintf(sum, sizeof(sum), "%zu", all);
	OK(weft_http_set_header(http, "X-Sum", sum));
	return (int)n;
}

static int
serve(void *arg)
{
	struct both *both = arg;

	CHECK_EQ(weft_http_serve(both->server, both->listener, WEFT_NEVER), WEFT_ESHUTDOWN);
	return 0;
}

static weft_http *
ask(struct both *both, const char *path, weft_http_request request)
{
	weft_http *http;
	char url[128];

	(void)snprintf(url, sizeof(url), "%s%s", both->base, path);
	request.url = url;
	OK(weft_http_fetch(both->client, &request, &http, weft_after(HOUR)));
	return http;
}

static void
expect(weft_http *http, int status, const char *body)
{
	char text[64];
	size_t used = 0;
	ssize_t n;

	CHECK_EQ(weft_http_status(http), status);
	while ((n = weft_http_read(http, text + used, sizeof(text) - 1 - used, WEFT_NEVER)) > 0)
		used += (size_t)n;
	CHECK_EQ(n, 0);
	text[used] = '\0';
	if (body)
		CHECK_STR(text, body);
	weft_http_close(http);
}

#define BIG   ((size_t)2 << 20)
#define PIECE 10007u

/* Send a body in pieces, followed by a trailer. */
static void
stream(struct both *both)
{
	weft_http_request request = { .method = "POST", .streamed = true };
	weft_http *http = ask(both, "/sink", request);
	static char piece[PIECE];
	weft_http_field field;
	size_t left = BIG;

	while (left > 0) {
		size_t size = left < PIECE ? left : PIECE;

		CHECK_EQ(weft_http_write(http, piece, size, weft_after(HOUR)), (ssize_t)size);
		left -= size;
	}
	OK(weft_http_set_header(http, "X-Last", "1"));
	OK(weft_http_finish(http, weft_after(HOUR)));
	CHECK(weft_http_header_at(http, 0, &field));
	expect(http, 200, "2097152 1");
}

static int
sink(weft_http *http, void *arg)
{
	char buf[4096], sum[32];
	weft_http_field field = { "", "" };
	size_t all = 0;
	ssize_t n;

	(void)arg;
	while ((n = weft_http_read(http, buf, sizeof(buf), WEFT_NEVER)) > 0)
		all += (size_t)n;
	for (size_t i = 0; weft_http_header_at(http, i, &field);)
		i++;
	(void)snprintf(sum, sizeof(sum), "%zu %s", all, field.value);
	return weft_http_reply(http, 200, "text/plain", weft_text(sum), WEFT_NEVER);
}

static void
play(struct both *both)
{
	weft_http_request none = { 0 }, head = { .method = "HEAD" };
	weft_http_request post = { .method = "POST", .body = weft_text("to and fro") };
	weft_http_field field;
	weft_http *http;

	expect(ask(both, "/greet", none), 200, "hello");
	expect(ask(both, "/greet", head), 200, "");
	expect(ask(both, "/move", post), 200, "hello");
	expect(ask(both, "/nowhere", none), 404, NULL);
	expect(ask(both, "/greet", post), 405, NULL);
	http = ask(both, "/echo", post);
	expect(http, 200, "to and fro");
	stream(both);
	http = ask(both, "/echo", post);
	while (weft_http_read(http, (char[16]){ 0 }, 16, WEFT_NEVER) > 0)
		;
	for (size_t i = 0; weft_http_header_at(http, i, &field);)
		i++;
	CHECK_STR(field.name, "X-Sum");
	CHECK_STR(field.value, "10");
	weft_http_close(http);
}

static int
run(void *arg)
{
	struct both *both = arg;
	struct weft_http_server_stats stats;
	char text[WEFT_ADDR_TEXT_MAX];
	weft_addr local;
	weft_scope scope;

	OK(weft_listener_open("tcp://127.0.0.1:0", NULL, &both->listener));
	OK(weft_listener_local(both->listener, &local));
	CHECK(weft_addr_format(&local, text, sizeof(text)) > 0);
	(void)snprintf(both->base, sizeof(both->base), "http%.50s", text + 3);
	both->client = weft_http_client_new(NULL);
	CHECK(both->client);
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, serve, both) > 0);
	play(both);
	weft_http_server_stats(both->server, &stats);
	CHECK_EQ(stats.connections, 1);
	CHECK_EQ(stats.bad_requests, 0);
	OK(weft_http_client_free(both->client));
	weft_listener_close(both->listener);
	OK(weft_scope_close(&scope));
	return 0;
}

TEST(client_and_server_exchange_all_kinds_on_one_connection)
{
	struct both both = { .server = weft_http_server_new(NULL) };

	CHECK(both.server);
	OK(weft_http_route(both.server, "GET /greet", greet, NULL));
	OK(weft_http_route(both.server, "POST /move", move, NULL));
	OK(weft_http_route(both.server, "POST /echo", echo, NULL));
	OK(weft_http_route(both.server, "POST /sink", sink, NULL));
	run_threadlet(run, &both);
	OK(weft_http_server_free(both.server));
}
