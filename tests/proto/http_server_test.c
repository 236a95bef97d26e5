/* http_server_test.c - replies of a server to valid requests. */
#include "proto/http_site.h"

static int
hello(weft_http *http, void *arg)
{
	struct site *site = arg;

	site->calls++;
	return weft_http_reply(http, 200, "text/plain", weft_text("hello"), WEFT_NEVER);
}

/* Reply with the route and its parameters. */
static int
name_route(weft_http *http, void *arg)
{
	const char *a = weft_http_param(http, "a");
	const char *b = weft_http_param(http, "b");
	char text[256];

	(void)snprintf(text, sizeof(text), "%s %s a=%s b=%s", (char *)arg, weft_http_path(http),
	               a ? a : "-", b ? b : "-");
	return weft_http_reply(http, 200, NULL, weft_text(text), WEFT_NEVER);
}

static int
echo(weft_http *http, void *arg)
{
	char buf[100];
	ssize_t n;

	(void)arg;
	while ((n = weft_http_read(http, buf, sizeof(buf), WEFT_NEVER)) > 0) {
		n = weft_http_write(http, buf, (size_t)n, WEFT_NEVER);
		if (n < 0)
			return (int)n;
	}
	return (int)n;
}

/* --- routes -------------------------------------------------------------- */

static void
add_routes(struct site *site)
{
	static const char *const patterns[] = { "GET /",       "/any",
		                                "GET /u/{a}",  "GET /u/me",
		                                "POST /u/{a}", "GET /u/{a}/x/{b}",
		                                "/s/{a...}",   "/s/deep/{a...}",
		                                "PUT /only",   "/w/{a}/{b...}" };

	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
		OK(weft_http_route(site->server, patterns[i], name_route,
		                   (void *)(uintptr_t)patterns[i]));
}

static const char *
body_of(const char *reply)
{
	const char *end = strstr(reply, "\r\n\r\n");

	return end ? end + 4 : "";
}

static void
check_route(struct site *site, const char *line, const char *want)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "%s HTTP/1.1\r\n" HOST END, line);

	CHECK_STR(body_of(ask(site, text, (size_t)n)), want);
}

static void
visit_routes(struct site *site)
{
	check_route(site, "GET /", "GET / / a=- b=-");
	check_route(site, "GET /any?a=1&b=x%20y", "/any /any a=1 b=x y");
	check_route(site, "BREW /any?b=+&b=2&=3", "/any /any a=- b= ");
	check_route(site, "GET /any?a=%zz&a=1", "/any /any a=1 b=-");
	check_route(site, "GET /u/me", "GET /u/me /u/me a=- b=-");
	check_route(site, "GET /u/%6de", "GET /u/me /u/me a=- b=-");
	check_route(site, "GET /u/you?a=1", "GET /u/{a} /u/you a=you b=-");
	check_route(site, "POST /u/me", "POST /u/{a} /u/me a=me b=-");
	check_route(site, "GET /u/me/x/7", "GET /u/{a}/x/{b} /u/me/x/7 a=me b=7");
	check_route(site, "GET /s/", "/s/{a...} /s/ a= b=-");
	check_route(site, "GET /s/a/b/", "/s/{a...} /s/a/b/ a=a/b/ b=-");
	check_route(site, "GET /s/deep/b", "/s/deep/{a...} /s/deep/b a=b b=-");
	check_route(site, "GET /s/deep", "/s/{a...} /s/deep a=deep b=-");
	check_route(site, "GET /s/x/../y", "/s/{a...} /s/y a=y b=-");
	check_route(site, "GET /w/1/2/3", "/w/{a}/{b...} /w/1/2/3 a=1 b=2/3");
	check_route(site, "GET http://h/any", "/any /any a=- b=-");
	check_route(site, "GET http://h?a=1", "GET / / a=1 b=-");
	check_route(site, "GET /u/", "404 Not Found\n");
	check_route(site, "GET /u", "404 Not Found\n");
	check_route(site, "GET /any/", "404 Not Found\n");
	check_route(site, "GET /..", "400 Bad Request\n");
	check_route(site, "GET /a%00", "400 Bad Request\n");
	check_route(site, "CONNECT a:80", "501 Not Implemented\n");
}

TEST(most_specific_route_pattern_wins)
{
	site_run(NULL, add_routes, visit_routes);
}

static void
visit_methods(struct site *site)
{
	const char *reply = ASK(site, "GET /only HTTP/1.1\r\n" HOST END);

	CHECK_EQ(status_of(reply), 405);
	CHECK(strstr(reply, "\r\nAllow: PUT, OPTIONS\r\n"));
	reply = ASK(site, "OPTIONS /u/me HTTP/1.1\r\n" HOST END);
	CHECK_EQ(status_of(reply), 204);
	CHECK(strstr(reply, "\r\nAllow: GET, HEAD, OPTIONS, POST\r\n"));
	CHECK(!strstr(reply, "Content-Length"));
	reply = ASK(site, "OPTIONS * HTTP/1.1\r\n" HOST END);
	CHECK_EQ(status_of(reply), 204);
	CHECK(strstr(reply, "PUT") && strstr(reply, "POST"));
	CHECK_EQ(status_of(ASK(site, "OPTIONS /no HTTP/1.1\r\n" HOST END)), 404);
	CHECK_STR(ASK(site, "HEAD / HTTP/1.1\r\n" HOST END),
	          "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n");
	CHECK_STR(ASK(site, "HEAD /no HTTP/1.1\r\n" HOST END),
	          "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n"
	          "Content-Length: 14\r\n\r\n");
}

TEST(unsupported_method_gets_405_with_allow)
{
	site_run(NULL, add_routes, visit_methods);
}

TEST(route_patterns_are_checked_and_unique)
{
	weft_http_server *server = weft_http_server_new(NULL);
	static const char *const bad[] = {
		"",
		"x",
		"GET",
		"GET x",
		"GET  /x",
		"G@T /x",
		"/{x",
		"/x}",
		"/a{x}",
		"/{}",
		"/{...}",
		"/{a...}/b",
		"/{a}/{a}",
		"/{a-b}",
		" /x",
		"/{a b}",
		"/{a}b",
		"GET/x",
		"/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}"
		"/{j}/{k}/{l}/{m}/{n}/{o}/{p}/{q}",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK_EQ(weft_http_route(server, bad[i], hello, NULL), WEFT_EINVAL);
	CHECK_EQ(weft_http_route(server, "/", NULL, NULL), WEFT_EINVAL);
	CHECK_EQ(weft_http_route(NULL, "/", hello, NULL), WEFT_EINVAL);
	OK(weft_http_route(server, "/{a}", hello, NULL));
	OK(weft_http_route(server, "GET /{a}", hello, NULL));
	OK(weft_http_route(server, "/{a...}", hello, NULL));
	CHECK_EQ(weft_http_route(server, "/{b}", hello, NULL), WEFT_EEXIST);
	CHECK_EQ(weft_http_route(server, "GET /{c}", hello, NULL), WEFT_EEXIST);
	CHECK_EQ(weft_http_route(server, "/{b...}", hello, NULL), WEFT_EEXIST);
	OK(weft_http_server_free(server));
	OK(weft_http_server_free(NULL));
}

/* --- keep-alive and pipelining --------------------------------------------- */

static void
say_hello(struct site *site)
{
	OK(weft_http_route(site->server, "/", hello, site));
	OK(weft_http_route(site->server, "/echo", echo, site));
}

#define HELLO "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n"
#define CLOSE "Connection: close\r\n"

static void
visit_kept_alive(struct site *site)
{
	weft_stream *stream = site_enter(site);

	for (int i = 0; i < 3; i++) {
		SAY(stream, GET HOST END);
		CHECK_STR(hear(stream, "hello"), HELLO END "hello");
	}
	SAY(stream, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n" END);
	CHECK_STR(hear(stream, "hello"), HELLO "Connection: keep-alive\r\n" END "hello");
	SAY(stream, "GET / HTTP/1.0\r\n" END);
	CHECK_STR(hear_all(stream), HELLO CLOSE END "hello");
	weft_stream_close(stream);
	CHECK_STR(ASK(site, GET HOST "Connection: close\r\n" END), HELLO CLOSE END "hello");
	CHECK_EQ(site->calls, 6);
	CHECK_EQ(stats_of(site).connections, 2);
}

TEST(keep_alive_follows_the_http_version)
{
	site_run(NULL, say_hello, visit_kept_alive);
}

/* Many requests at once, split anywhere. */
static void
visit_pipelined(struct site *site)
{
	static char text[200 * sizeof(GET HOST END)];
	size_t size = 0, one = sizeof(GET HOST END) - 1;
	weft_stream *stream = site_enter(site);

	for (int i = 0; i < 200; i++, size += one)
		memcpy(text + size, GET HOST END, one);
	for (size_t at = 0, n; at < size; at += n) {
		n = 1 + at * 7 % 311;
		n = n < size - at ? n : size - at;
		say(stream, text + at, n);
	}
	OK(weft_stream_shutdown(stream, WEFT_NEVER));
	CHECK_EQ(count_of(hear_all(stream), HELLO END "hello"), 200);
	weft_stream_close(stream);
	CHECK_EQ(site->calls, 200);
}

TEST(pipelined_requests_are_answered_in_order)
{
	site_run(NULL, say_hello, visit_pipelined);
}

static void
visit_pipelined_bodies(struct site *site)
{
	CHECK_STR(ASK(site,
	              "POST /echo HTTP/1.1\r\n" HOST CL "3\r\n" END "abc"
	              "POST / HTTP/1.1\r\n" HOST CL "4\r\n" END "GET "
	              "POST / HTTP/1.1\r\n" HOST TE "chunked\r\n" END "5\r\nGET /\r\n0\r\n\r\n"
	              "POST /echo HTTP/1.1\r\n" HOST TE "chunked\r\n" END
	              "1;x=y\r\na\r\n2\r\nbc\r\n0\r\nX: y\r\n\r\n"),
	          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" END
	          "3\r\nabc\r\n0\r\n\r\n" HELLO END "hello" HELLO END "hello"
	          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" END
	          "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n");
}

TEST(unread_request_bodies_are_skipped)
{
	site_run(NULL, say_hello, visit_pipelined_bodies);
}

/* --- bodies ------------------------------------------------------------------ */

static void
visit_old_client(struct site *site)
{
	CHECK_STR(ASK(site, "POST /echo HTTP/1.0\r\n" CL "3\r\n" END "abc"),
	          "HTTP/1.1 200 OK\r\n" CLOSE END "abc");
}

/* Reply with the body, if it has at most ten bytes. */
static int
echo_short(weft_http *http, void *arg)
{
	char buf[10];
	ssize_t n = weft_http_read_all(http, buf, sizeof(buf), WEFT_NEVER);

	(void)arg;
	if (n < 0)
		return (int)n;
	return weft_http_reply(http, 200, NULL, (weft_span){ buf, (size_t)n }, WEFT_NEVER);
}

static void
prepare_short(struct site *site)
{
	OK(weft_http_route(site->server, "POST /", echo_short, NULL));
}

static void
visit_short(struct site *site)
{
	CHECK_STR(body_of(ASK(site,
	                      "POST / HTTP/1.1\r\n" HOST CLOSE TE "chunked\r\n" END "4\r\n0123\r\n"
	                      "6\r\n456789\r\n0\r\n\r\n")),
	          "0123456789");
	CHECK_STR(body_of(ASK(site, "POST / HTTP/1.1\r\n" HOST CLOSE END)), "");
	CHECK_EQ(status_of(ASK(site, "POST / HTTP/1.1\r\n" HOST CL "11\r\n" END "0123456789a")),
	         413);
}

TEST(http_read_all_returns_the_body_or_refuses_a_larger_one)
{
	site_run(NULL, prepare_short, visit_short);
}

TEST(http_1_0_client_gets_no_chunks)
{
	site_run(NULL, say_hello, visit_old_client);
}

static void
visit_with_expectations(struct site *site)
{
	weft_stream *stream = site_enter(site);

	SAY(stream, "POST /echo HTTP/1.1\r\n" HOST CL "3\r\nExpect: 100-continue\r\n" END);
	CHECK_STR(hear(stream, END END), "HTTP/1.1 100 Continue\r\n" END);
	SAY(stream, "abc");
	CHECK_STR(hear(stream, "0\r\n\r\n"),
	          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" END "3\r\nabc\r\n0\r\n\r\n");
	/* The handler does not read the body, so the server cannot know whether it will arrive. */
	SAY(stream, "POST / HTTP/1.1\r\n" HOST CL "3\r\nExpect: 100-continue\r\n" END);
	CHECK_STR(hear_all(stream), HELLO CLOSE END "hello");
	weft_stream_close(stream);
	/* The body has already arrived. */
	CHECK_EQ(count_of(ASK(site, "POST /echo HTTP/1.1\r\n" HOST CL
	                            "3\r\nExpect: 100-continue\r\n" END "abc"),
	                  "100 Continue"),
	         0);
}

TEST(expect_continue_is_answered_when_the_body_is_read)
{
	site_run(NULL, say_hello, visit_with_expectations);
}

/* Read everything, then send the trailers back as trailers. */
static int
pass_trailers(weft_http *http, void *arg)
{
	weft_http_field field;
	size_t index = 0;
	char buf[64];
	ssize_t n;

	(void)arg;
	OK(weft_http_set_header(http, "Trailer", "x-a, x-b"));
	OK(weft_http_begin(http, 201, "text/plain", WEFT_NEVER));
	CHECK_EQ(weft_http_status(http), 201);
	while ((n = weft_http_read(http, buf, sizeof(buf), WEFT_NEVER)) > 0)
		CHECK_EQ(weft_http_write(http, buf, (size_t)n, WEFT_NEVER), n);
	CHECK_EQ(weft_http_read(http, buf, 1, WEFT_NEVER), 0);
	while (weft_http_header_at(http, index++, &field))
		if (strncmp(field.name, "x-", 2) == 0)
			OK(weft_http_set_header(http, field.name, field.value));
	CHECK_EQ(weft_http_set_header(http, "Content-Length", "1"), WEFT_EINVAL);
	CHECK_EQ(weft_http_set_header(http, "Host", "a"), WEFT_EINVAL);
	CHECK_EQ(weft_http_begin(http, 200, NULL, WEFT_NEVER), WEFT_EALREADY);
	return (int)n;
}

static void
prepare_trailers(struct site *site)
{
	OK(weft_http_route(site->server, "/", pass_trailers, site));
}

static void
visit_trailers(struct site *site)
{
	CHECK_STR(ASK(site, POST TE "chunked\r\nx-z: 1\r\n" END
	                            "3\r\nabc\r\n0\r\nx-a: 1\r\nx-b: two \r\n\r\n"),
	          "HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\n"
	          "Transfer-Encoding: chunked\r\nTrailer: x-a, x-b\r\n" END
	          "3\r\nabc\r\n0\r\nx-z: 1\r\nx-a: 1\r\nx-b: two\r\n\r\n");
	/* The handler does not need to know that an HTTP/1.0 client gets no trailers. */
	CHECK_STR(ASK(site, "POST / HTTP/1.0\r\nx-z: 1\r\n" CL "3\r\n" END "abc"),
	          "HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\n" CLOSE
	          "Trailer: x-a, x-b\r\n" END "abc");
}

TEST(trailers_are_received_and_sent)
{
	site_run(NULL, prepare_trailers, visit_trailers);
}

/* --- headers ----------------------------------------------------------------- */

static int
set_fields(weft_http *http, void *arg)
{
	struct site *site = arg;
	static char large[30000];

	site->calls++;
	CHECK_STR(weft_http_method(http), "POST");
	CHECK_STR(weft_http_header(http, "x-one"), "1");
	CHECK_STR(weft_http_header(http, "X-EMPTY"), "");
	CHECK(!weft_http_header(http, "x"));
	CHECK_EQ(weft_http_status(http), 0);
	CHECK_EQ(weft_http_set_header(http, "X\r\nY", "a"), WEFT_EINVAL);
	CHECK_EQ(weft_http_set_header(http, "X", "a\r\nY: b"), WEFT_EINVAL);
	CHECK_EQ(weft_http_set_header(http, "X", "a\nb"), WEFT_EINVAL);
	CHECK_EQ(weft_http_set_header(http, "X", "a\rb"), WEFT_EINVAL);
	CHECK_EQ(weft_http_set_header(http, "", "a"), WEFT_EINVAL);
	CHECK_EQ(weft_http_set_header(http, "X:", "a"), WEFT_EINVAL);
	CHECK_EQ(weft_http_set_header(http, NULL, "a"), WEFT_EINVAL);
	CHECK_EQ(weft_http_set_header(http, "Transfer-Encoding", "x"), WEFT_EINVAL);
	CHECK_EQ(weft_http_set_header(http, "Connection", "upgrade"), WEFT_EINVAL);
	CHECK_EQ(weft_http_set_header(http, "Content-Length", "-1"), WEFT_EINVAL);
	OK(weft_http_set_header(http, "X-A", "1"));
	OK(weft_http_set_header(http, "x-a", "2"));
	OK(weft_http_set_header(http, "X-B", "1"));
	OK(weft_http_set_header(http, "X-B", NULL));
	OK(weft_http_set_header(http, "Set-Cookie", "a"));
	OK(weft_http_set_header(http, "Set-Cookie", "b"));
	OK(weft_http_set_header(http, "Content-Type", "x/y"));
	memset(large, 'x', sizeof(large) - 1);
	if (weft_http_param(http, "large"))
		OK(weft_http_set_header(http, "X-Large", large));
	OK(weft_http_set_header(http, "Connection", "close"));
	return weft_http_reply(http, 299, NULL, (weft_span){ "abc", 3 }, WEFT_NEVER);
}

static void
prepare_fields(struct site *site)
{
	OK(weft_http_route(site->server, "/", set_fields, site));
}

static void
visit_fields(struct site *site)
{
	const char *reply;

	CHECK_STR(ASK(site, POST "X-One:  1 \r\nx-empty:\r\nX-One: 2\r\n" END),
	          "HTTP/1.1 299 \r\nContent-Length: 3\r\nConnection: close\r\n"
	          "x-a: 2\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
	          "Content-Type: x/y\r\n" END "abc");
	reply = ASK(site, "POST /?large HTTP/1.1\r\n" HOST "X-One: 1\r\nx-empty:\r\n" END);
	CHECK(strstr(reply, "xxx\r\n\r\nabc"));
	CHECK(strlen(reply) > 30000);
}

TEST(set_header_replaces_and_refuses_line_breaks)
{
	site_run(NULL, prepare_fields, visit_fields);
}

/* --- replies ------------------------------------------------------------------ */

static int
write_with_length(weft_http *http, void *arg)
{
	const char *how = weft_http_param(http, "how");

	(void)arg;
	OK(weft_http_set_header(http, "Content-Length", "5"));
	CHECK_EQ(weft_http_write(http, "abc", 3, WEFT_NEVER), 3);
	CHECK_EQ(weft_http_write(http, "def", 3, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_http_set_header(http, "X-A", "b"), WEFT_EINVAL);
	if (strcmp(how, "whole") == 0)
		CHECK_EQ(weft_http_write(http, "de", 2, WEFT_NEVER), 2);
	return strcmp(how, "fail") == 0 ? WEFT_EPERM : 0;
}

static int
answer_badly(weft_http *http, void *arg)
{
	const char *how = weft_http_param(http, "how");

	(void)arg;
	OK(weft_http_set_header(http, "Content-Encoding", "gzip"));
	OK(weft_http_set_header(http, "Content-Length", "100"));
	OK(weft_http_set_header(http, "Date", "never"));
	OK(weft_http_set_header(http, "Set-Cookie", "a"));
	OK(weft_http_set_header(http, "Set-Cookie", "b"));
	if (strcmp(how, "fail") == 0)
		return WEFT_EPERM;
	if (strcmp(how, "silent") == 0)
		return 0;
	OK(weft_http_set_header(http, "Set-Cookie", NULL));
	OK(weft_http_set_header(http, "Content-Encoding", NULL));
	OK(weft_http_set_header(http, "Date", NULL));
	OK(weft_http_reply(http, 204, NULL, (weft_span){ NULL, 0 }, WEFT_NEVER));
	CHECK_EQ(weft_http_reply(http, 200, NULL, weft_text("x"), WEFT_NEVER), WEFT_EALREADY);
	CHECK_EQ(weft_http_write(http, "x", 1, WEFT_NEVER), WEFT_EALREADY);
	CHECK_EQ(weft_http_set_header(http, "x", "y"), WEFT_EALREADY);
	return 0;
}

static int
reply_much(weft_http *http, void *arg)
{
	static char much[300000];

	(void)arg;
	memset(much, 'm', sizeof(much));
	return weft_http_reply(http, 200, NULL, (weft_span){ much, sizeof(much) }, WEFT_NEVER);
}

static void
prepare_replies(struct site *site)
{
	OK(weft_http_route(site->server, "/length/{how}", write_with_length, site));
	OK(weft_http_route(site->server, "/bad/{how}", answer_badly, site));
	OK(weft_http_route(site->server, "/much", reply_much, site));
}

static bool
is_broken_off(struct site *site, const char *text)
{
	weft_stream *stream = site_enter(site);
	bool broken;

	say(stream, text, strlen(text));
	broken = hear_break(stream);
	weft_stream_close(stream);
	return broken;
}

static void
visit_replies(struct site *site)
{
	CHECK_STR(ASK(site, "GET /length/whole HTTP/1.1\r\n" HOST END),
	          "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" END "abcde");
	CHECK_EQ(stats_of(site).failed, 0);
	CHECK(is_broken_off(site, "GET /length/short HTTP/1.1\r\n" HOST END));
	CHECK_EQ(stats_of(site).failed, 1);
	CHECK(is_broken_off(site, "GET /length/fail HTTP/1.1\r\n" HOST END));
	CHECK_EQ(stats_of(site).failed, 2);
	CHECK_STR(ASK(site, "GET /bad/fail HTTP/1.1\r\n" HOST END),
	          "HTTP/1.1 500 Internal Server Error\r\n"
	          "Content-Type: text/plain\r\nContent-Length: 26\r\n" END
	          "500 Internal Server Error\n");
	CHECK_EQ(stats_of(site).failed, 3);
	CHECK_STR(ASK(site, "GET /bad/silent HTTP/1.1\r\n" HOST END),
	          "HTTP/1.1 404 Not Found\r\n"
	          "Content-Type: text/plain\r\nContent-Length: 14\r\n" END "404 Not Found\n");
	CHECK_STR(ASK(site, "GET /bad/twice HTTP/1.1\r\n" HOST END),
	          "HTTP/1.1 204 No Content\r\n\r\n");
	CHECK_EQ(strlen(body_of(ASK(site, "GET /much HTTP/1.1\r\n" HOST END))), 300000);
}

TEST(incomplete_reply_resets_the_connection)
{
	site_run(NULL, prepare_replies, visit_replies);
}

/* The visitor sends no request; it only misuses the API. */
static void
visit_misuse(struct site *site)
{
	char byte;

	CHECK_EQ(weft_http_server_free(site->server), WEFT_EBUSY);
	CHECK_EQ(weft_http_route(site->server, "/late", hello, site), WEFT_EBUSY);
	CHECK_EQ(weft_http_serve(NULL, site->listener, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_http_read(NULL, &byte, 1, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_http_write(NULL, &byte, 1, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_http_send_event(NULL, NULL, "", WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_http_reply(NULL, 200, NULL, weft_text(""), WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_http_reply_file(NULL, "/", "", WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_http_begin(NULL, 200, NULL, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_http_upgrade(NULL, "x", NULL, WEFT_NEVER), WEFT_EINVAL);
	CHECK_STR(weft_http_method(NULL), "");
	CHECK_STR(weft_http_path(NULL), "");
	CHECK_EQ(weft_http_status(NULL), 0);
	CHECK(!weft_http_param(NULL, "x"));
	CHECK(!weft_http_header(NULL, "x"));
	CHECK(!weft_http_header_at(NULL, 0, NULL));
}

TEST(api_misuse_is_refused)
{
	site_run(NULL, say_hello, visit_misuse);
}

TEST(weft_alloc_and_weft_release_use_the_librarys_allocator)
{
	int64_t before = test_live_allocations();
	void *mem = weft_alloc(0);

	CHECK(mem);
	CHECK_EQ(test_live_allocations(), before + 1);
	weft_release(mem);
	weft_release(NULL);
	CHECK_EQ(test_live_allocations(), before);
}
