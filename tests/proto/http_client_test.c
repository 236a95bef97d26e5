/* http_client_test.c - requests and replies of the HTTP client, of every kind. */
#include <errno.h>
#include "proto/http_world.h"

/* --- one exchange ------------------------------------------------------------- */

SCRIPT(says_hello, { HEAR, "GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:", 0 }, { SAY, HELLO, 0 },
       { WAIT, NULL, 0 });

SCRIPT(says_hello_to_any, { HEAR, NULL, 0 }, { SAY, HELLO, 0 }, { WAIT, NULL, 0 });

static void
play_one(struct world *world)
{
	weft_http_field fields[] = { { "X-One", "1" }, { "Cookie", "a=b" } };
	weft_http_field field;
	weft_http *http;
	char byte;

	world->request.fields = fields;
	world->request.field_count = 2;
	OK(fetch(world, "/a?b#c", &http));
	CHECK_EQ(weft_http_status(http), 200);
	CHECK_STR(weft_http_header(http, "content-LENGTH"), "5");
	CHECK(!weft_http_header(http, "X-One"));
	CHECK(weft_http_header_at(http, 0, &field));
	CHECK_STR(field.name, "Content-Length");
	CHECK(!weft_http_header_at(http, 1, &field));
	CHECK_STR(weft_http_url(http), peer_url(&world->peer, "/a?b"));
	CHECK_EQ(weft_http_client_free(world->client), WEFT_EBUSY);
	CHECK_EQ(weft_http_read(http, &byte, 1, WEFT_NEVER), 1);
	CHECK_STR(body_of(http), "ello");
	CHECK_EQ(weft_http_read(http, &byte, 1, WEFT_NEVER), 0);
	CHECK_EQ(weft_http_finish(http, WEFT_NEVER), WEFT_EALREADY);
	weft_http_close(http);
	CHECK_EQ(peer_heard(&world->peer, "\r\nX-One: 1\r\n"), 1);
	CHECK_EQ(peer_heard(&world->peer, "\r\nCookie: a=b\r\n"), 1);
	CHECK_EQ(peer_heard(&world->peer, "\r\nUser-Agent: "), 1);
	CHECK_EQ(peer_heard(&world->peer, "Content-Length"), 0);
	weft_http_close(NULL);
	OK(weft_http_client_free(NULL));
}

TEST(request_is_sent_and_its_reply_is_read)
{
	PLAY(play_one, says_hello);
}

/* --- replies ------------------------------------------------------------------ */

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

SCRIPT(says_all, { HEAR, NULL, 0 },
       { DRIP, CHUNKED "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-Sum: 7\r\n\r\n", 0 }, { HEAR, NULL, 0 },
       { SAY, "HTTP/1.1 204 No Content\r\n\r\n", 0 }, { HEAR, NULL, 0 },
       { SAY, "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 0 }, { HEAR, "HEAD ", 0 },
       { SAY, LENGTH("1000\r\n\r\n"), 0 }, { HEAR, NULL, 0 },
       { DRIP,
         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a"
         "\r\n\r\nHTTP/1.1 404 Nowhere\r\nContent-Length: 2\r\n\r\nno",
         0 },
       { HEAR, NULL, 0 }, { SAY, "HTTP/1.1 200 OK\r\n\r\nuntil close", 0 });

static void
play_kinds(struct world *world)
{
	weft_http_field field;
	weft_http *http;

	OK(fetch(world, "/", &http));
	CHECK(!weft_http_header_at(http, 1, &field));
	CHECK_STR(body_of(http), "abcdefg");
	CHECK(weft_http_header_at(http, 1, &field));
	CHECK_STR(field.name, "X-Sum");
	CHECK_STR(field.value, "7");
	weft_http_close(http);
	get(world, "/", 204, "");
	get(world, "/", 304, "");
	world->request.method = "HEAD";
	get(world, "/", 200, "");
	world->request.method = NULL;
	get(world, "/", 404, "no");
	CHECK_EQ(world->peer.open, 1);
	get(world, "/", 200, "until close");
	CHECK_EQ(world->peer.accepted, 1);
}

TEST(replies_of_every_framing_are_read_on_one_connection)
{
	PLAY(play_kinds, says_all);
}

#define BAD(name, text) SCRIPT(name, { HEAR, NULL, 0 }, { SAY, text, 0 }, { WAIT, NULL, 0 })
#define CUT(name, text) SCRIPT(name, { HEAR, NULL, 0 }, { SAY, text, 0 })

BAD(says_garbage, "220 mail.example.org ESMTP\r\n");
BAD(says_http2, "HTTP/2 200 OK\r\n\r\n");
BAD(says_two_lengths, LENGTH("1\r\nContent-Length: 2\r\n\r\nab"));
BAD(says_folded, "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n");
BAD(switches, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
              "Connection: upgrade\r\n\r\n");
BAD(says_smuggle, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
#define INTERIM "HTTP/1.1 102 P\r\n\r\n"
#define FOUR    INTERIM INTERIM INTERIM INTERIM
SCRIPT(says_1xx_for_ever, { HEAR, NULL, 0 }, { SAY, FOUR FOUR FOUR FOUR FOUR, 0 },
       { WAIT, NULL, 0 });
SCRIPT(says_too_much, { HEAR, NULL, 0 }, { SAY, "HTTP/1.1 200 OK\r\nA: ", 0 },
       { FLOOD, NULL, 5000 }, { WAIT, NULL, 0 });
CUT(cuts_at_once, "");
CUT(cuts_status, "HTTP/1.1 2");
CUT(cuts_head, "HTTP/1.1 200 OK\r\nA: b\r\n");
CUT(cuts_1xx, "HTTP/1.1 100 Continue\r\n\r\n");

static void
play_bad(struct world *world)
{
	world->unplayed = SOME; /* one script floods a client that has disconnected */
	for (int i = 0; i < 7; i++)
		get_error(world, "/bad", WEFT_EPROTO, "");
	get_error(world, "/big", WEFT_EMSGSIZE, "");
	get_error(world, "/cut", WEFT_ETRUNCATED, "without a reply");
	get_error(world, "/cut", WEFT_ETRUNCATED, "");
	get_error(world, "/cut", WEFT_ETRUNCATED, "");
	get_error(world, "/cut", WEFT_ETRUNCATED, "");
	UNTIL(world->peer.open == 0);
	CHECK_EQ(world->peer.accepted, 12);
}

TEST(malformed_or_truncated_reply_is_an_error_that_names_the_url)
{
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world);
	world->opts.header_max = 4096;
	world->peer.scripts = SCRIPTS(says_garbage, says_http2, says_two_lengths, says_folded,
	                              switches, says_smuggle, says_1xx_for_ever, says_too_much,
	                              cuts_at_once, cuts_status, cuts_head, cuts_1xx);
	world_run(world, play_bad);
	free(world);
}

SCRIPT(says_long_head, { HEAR, NULL, 0 }, { SAY, LENGTH("5\r\nA: "), 0 }, { FLOOD, NULL, 100000 },
       { SAY, "\r\n\r\nhello", 0 }, { WAIT, NULL, 0 });
SCRIPT(says_long_heads, { HEAR, NULL, 0 }, { SAY, LENGTH("5\r\nA: "), 0 }, { FLOOD, NULL, 100000 },
       { SAY, "\r\n\r\nhello", 0 }, { HEAR, NULL, 0 }, { SAY, LENGTH("5\r\nA: "), 0 },
       { FLOOD, NULL, 190000 }, { SAY, "\r\n\r\nhello", 0 }, { HEAR, NULL, 0 },
       { SAY, LENGTH("5\r\nA: "), 0 }, { FLOOD, NULL, 210000 }, { WAIT, NULL, 0 });

static void
play_long_head(struct world *world)
{
	weft_http *http;

	OK(fetch(world, "/", &http));
	CHECK_EQ(strlen(weft_http_header(http, "A")), 100000);
	CHECK_STR(body_of(http), "hello");
	weft_http_close(http);
}

static void
play_long_heads(struct world *world)
{
	world->unplayed = SOME; /* the last script floods a client that has disconnected */
	play_long_head(world);
	get(world, "/", 200, "hello");
	get_error(world, "/", WEFT_EMSGSIZE, "");
	CHECK_EQ(world->peer.accepted, 1);
}

/* The header section arrives in pieces that fill the queue beyond its default size. */
TEST(reply_header_section_may_be_as_long_as_header_max)
{
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world);
	world->opts.header_max = 200000;
	world->peer.scripts = SCRIPTS(says_long_heads);
	world_run(world, play_long_heads);
	world->opts.header_max = SIZE_MAX;
	world->peer.scripts = SCRIPTS(says_long_head);
	world_run(world, play_long_head);
	free(world);
}

#define SECRET LENGTH("6\r\n\r\nsecret")

/* Just one 1xx reply too many: no unread bytes are left. */
SCRIPT(answers_the_next_one, { HEAR, "GET /alice", 0 }, { SAY, FOUR FOUR FOUR FOUR INTERIM, 0 },
       { HEAR, "GET /bob", 0 }, { SAY, SECRET, 0 }, { WAIT, NULL, 0 });
SCRIPT(answers_late, { HEAR, "POST ", 0 }, { TAKE, "0\r\n\r\n", 0 },
       { SAY, FOUR FOUR FOUR FOUR INTERIM, 0 }, { HOLD, NULL, 0 }, { SAY, SECRET, 0 },
       { WAIT, NULL, 0 });
SCRIPT(switches_late, { HEAR, "POST ", 0 }, { TAKE, "0\r\n\r\n", 0 },
       { SAY,
         "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
         "Connection: upgrade\r\n\r\n" SECRET,
         0 },
       { WAIT, NULL, 0 });

static void
play_interim(struct world *world)
{
	world->unplayed = 1; /* the peer gets no second request */
	get_error(world, "/alice", WEFT_EPROTO, "1xx");
	get(world, "/bob", 200, "hello");
	CHECK_EQ(world->peer.accepted, 2);
}

TEST(reply_to_one_request_is_not_given_to_the_next)
{
	PLAY(play_interim, answers_the_next_one, says_hello_to_any);
}

static void
play_interim_stream(struct world *world)
{
	world->request.method = "POST";
	world->request.streamed = true;
	for (int i = 0; i < 2; i++) {
		weft_http *http;

		OK(fetch(world, "/", &http));
		CHECK_EQ(weft_http_finish(http, weft_after(HOUR)), WEFT_EPROTO);
		CHECK_EQ(weft_http_status(http), 0);
		CHECK(!weft_http_header(http, "Upgrade"));
		peer_go_on(&world->peer);
		CHECK_EQ(weft_http_finish(http, weft_after(HOUR)), WEFT_EPROTO);
		weft_http_close(http);
		UNTIL(world->peer.open == 0);
	}
}

TEST(too_many_interim_replies_fail_the_exchange_permanently)
{
	PLAY(play_interim_stream, answers_late, switches_late);
}

CUT(cuts_length, LENGTH("6\r\n\r\nhello"));
CUT(cuts_chunk, CHUNKED "5\r\nhel");
CUT(cuts_trailers, CHUNKED "5\r\nhello\r\n0\r\nA: b\r\n");
BAD(bad_chunk, CHUNKED "x\r\n");
SCRIPT(breaks_body, { HEAR, NULL, 0 }, { SAY, LENGTH("6\r\n\r\nhello"), 0 }, { HOLD, NULL, 0 },
       { RESET, NULL, 0 });

static void
play_cut(struct world *world)
{
	weft_http *http;
	char bytes[8];

	get(world, "/", 200, "WEFT_ETRUNCATED");
	get(world, "/", 200, "WEFT_ETRUNCATED");
	get(world, "/", 200, "WEFT_ETRUNCATED");
	get(world, "/", 200, "WEFT_EPROTO");
	OK(fetch(world, "/r", &http));
	CHECK_EQ(weft_http_read(http, bytes, 8, WEFT_NEVER), 5);
	peer_go_on(&world->peer);
	CHECK_EQ(weft_http_read(http, bytes, 8, WEFT_NEVER), WEFT_ECONNRESET);
	CHECK(strstr(weft_detail(), peer_url(&world->peer, "/r")));
	CHECK_EQ(weft_http_read(http, bytes, 8, WEFT_NEVER), WEFT_ECONNRESET);
	weft_http_close(http);
	UNTIL(world->peer.open == 0);
}

TEST(truncated_body_is_an_error)
{
	PLAY(play_cut, cuts_length, cuts_chunk, cuts_trailers, bad_chunk, breaks_body);
}

/* --- requests ----------------------------------------------------------------- */

SCRIPT(takes_bodies, { HEAR, "POST /p HTTP/1.1\r\n", 0 }, { TAKE, "some body", 0 },
       { SAY, HELLO, 0 }, { HEAR, "PUT /p HTTP/1.1\r\n", 0 }, { SAY, HELLO, 0 },
       { HEAR, "DELETE /p HTTP/1.1\r\n", 0 }, { SAY, HELLO, 0 },
       { HEAR, "PROPFIND /p HTTP/1.1\r\n", 0 }, { TAKE, "x", 0 }, { SAY, HELLO, 0 },
       { WAIT, NULL, 0 });

static void
play_bodies(struct world *world)
{
	weft_http_request *request = &world->request;

	request->method = "POST";
	request->body = weft_text("some body");
	get(world, "/p", 200, "hello");
	CHECK_EQ(peer_heard(&world->peer, "\r\nContent-Length: 9\r\n"), 1);
	request->method = "PUT";
	request->body = weft_text("");
	get(world, "/p", 200, "hello");
	CHECK_EQ(peer_heard(&world->peer, "\r\nContent-Length: 0\r\n"), 1);
	request->method = "DELETE";
	get(world, "/p", 200, "hello");
	CHECK_EQ(peer_heard(&world->peer, "Content-Length: "), 2);
	request->method = "PROPFIND";
	request->body = weft_text("x");
	get(world, "/p", 200, "hello");
	CHECK_EQ(world->peer.accepted, 1);
}

TEST(request_body_is_sent_with_its_length)
{
	PLAY(play_bodies, takes_bodies);
}

static void
refuse_field(struct world *world, const char *name, const char *value)
{
	weft_http_field field = { name, value };
	weft_http_request request = { .fields = &field, .field_count = 1 };
	weft_http *http = NULL;

	request.url = peer_url(&world->peer, "/");
	CHECK_EQ(weft_http_fetch(world->client, &request, &http, WEFT_NEVER), WEFT_EINVAL);
	CHECK(!http);
}

static void
refuse_method(struct world *world, const char *method)
{
	weft_http_request request = { .method = method };
	weft_http *http;

	request.url = peer_url(&world->peer, "/");
	CHECK_EQ(weft_http_fetch(world->client, &request, &http, WEFT_NEVER), WEFT_EINVAL);
}

static void
play_refused(struct world *world)
{
	static const char *const ours[] = {
		"Host",    "content-length", "Transfer-Encoding", "Connection", "TE",
		"Upgrade", "Expect",         "Trailer",           "keep-alive",
	};
	static const char *const urls[] = { "ftp://h/", "http://", "/x", "http://u:p@h/",
		                            "http://h/a b\r\nX: y" };
	weft_http_request request = { .url = "http://h/", .streamed = true };
	weft_http *http = NULL;

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		refuse_field(world, ours[i], "x");
	refuse_field(world, "A", "b\r\nX: y");
	refuse_field(world, "A", "b\nX: y");
	refuse_field(world, "A", "b\x7f");
	refuse_field(world, "A", NULL);
	refuse_field(world, NULL, "b");
	refuse_field(world, "", "b");
	refuse_field(world, "A b", "b");
	refuse_field(world, "A:", "b");
	refuse_field(world, "A\r\nB", "b");
	refuse_method(world, "");
	refuse_method(world, "GET /x HTTP/1.1\r\nA:");
	refuse_method(world, "CONNECT");
	refuse_method(world, "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG");
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		weft_http_request other = { .url = urls[i] };

		CHECK_EQ(weft_http_fetch(world->client, &other, &http, WEFT_NEVER), WEFT_EINVAL);
	}
	request.body = weft_text("x");
	CHECK_EQ(weft_http_fetch(world->client, &request, &http, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_http_fetch(NULL, &request, &http, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_http_fetch(world->client, NULL, &http, WEFT_NEVER), WEFT_EINVAL);
	CHECK(!http);
	CHECK_EQ(world->peer.accepted, 0);
}

TEST(invalid_and_reserved_request_parts_are_refused)
{
	PLAY(play_refused, says_hello);
}

SCRIPT(takes_long, { HEAR, "GET /aaaa", 0 }, { SAY, HELLO, 0 }, { HEAR, NULL, 0 },
       { SAY, HELLO, 0 }, { WAIT, NULL, 0 });

static void
play_long(struct world *world)
{
	static char value[3000], url[3000];
	weft_http_field fields[] = { { "X-Long", value }, { "X-End", "1" } };

	memset(url, 'a', sizeof(url) - 1);
	memcpy(url, peer_url(&world->peer, "/"), strlen(peer_url(&world->peer, "/")));
	memset(value, 'v', sizeof(value) - 1);
	world->request.url = url;
	get(world, "/", 200, "hello");
	world->request.url = NULL;
	world->request.fields = fields;
	world->request.field_count = 2;
	get(world, "/", 200, "hello");
	CHECK_EQ(peer_heard(&world->peer, value), 1);
	CHECK_EQ(peer_heard(&world->peer, "v\r\nX-End: 1\r\n"), 1);
	CHECK_EQ(world->peer.accepted, 1);
}

TEST(long_urls_and_headers_are_sent_completely)
{
	PLAY(play_long, takes_long);
}

/* --- streaming ---------------------------------------------------------------- */

SCRIPT(takes_chunks, { HEAR, "POST /s HTTP/1.1\r\n", 0 },
       { TAKE, "3\r\none\r\n5\r\n, two\r\n0\r\nX-Sum: 8\r\n\r\n", 0 }, { SAY, HELLO, 0 },
       { HEAR, "POST /s HTTP/1.1\r\n", 0 }, { TAKE, "0\r\n\r\n", 0 },
       { SAY, "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", 0 },
       { WAIT, NULL, 0 });

static void
play_streamed(struct world *world)
{
	weft_http *http;
	char byte;

	world->request.method = "POST";
	world->request.streamed = true;
	OK(fetch(world, "/s", &http));
	CHECK_EQ(weft_http_status(http), 0);
	CHECK(weft_http_read(http, &byte, 1, WEFT_NEVER) < 0);
	CHECK_EQ(weft_http_write(http, "one", 3, WEFT_NEVER), 3);
	CHECK_EQ(weft_http_write(http, ", two", 5, WEFT_NEVER), 5);
	OK(weft_http_set_header(http, "X-Sum", "8"));
	OK(weft_http_finish(http, WEFT_NEVER));
	CHECK_EQ(weft_http_status(http), 200);
	CHECK_STR(body_of(http), "hello");
	CHECK(weft_http_write(http, "x", 1, WEFT_NEVER) < 0);
	CHECK_EQ(weft_http_finish(http, WEFT_NEVER), WEFT_EALREADY);
	weft_http_close(http);
	CHECK_EQ(peer_heard(&world->peer, "Transfer-Encoding: chunked\r\n"), 1);
	OK(fetch(world, "/s", &http));
	OK(weft_http_finish(http, WEFT_NEVER));
	CHECK_EQ(weft_http_status(http), 302);
	weft_http_close(http);
	CHECK_EQ(world->peer.accepted, 1);
}

TEST(streamed_body_is_sent_in_chunks_and_not_redirected)
{
	PLAY(play_streamed, takes_chunks);
}

#define MUCH ((size_t)24 << 20) /* more than the kernel takes at once */
static char much[MUCH];

SCRIPT(sinks_and_floods, { HEAR, NULL, 0 }, { SINK, NULL, MUCH },
       { SAY, LENGTH("1000000\r\n\r\n"), 0 }, { FLOOD, NULL, 1000000 }, { WAIT, NULL, 0 });

static void
play_much(struct world *world)
{
	weft_http *http;
	char bytes[5000];
	size_t all = 0;
	ssize_t n;

	memset(much, 'm', sizeof(much));
	world->request.method = "PUT";
	world->request.body = (weft_span){ much, sizeof(much) };
	OK(fetch(world, "/", &http));
	while ((n = weft_http_read(http, bytes, sizeof(bytes), WEFT_NEVER)) > 0)
		all += (size_t)n;
	CHECK_EQ(n, 0);
	CHECK_EQ(all, 1000000);
	weft_http_close(http);
}

TEST(large_bodies_are_sent_and_received)
{
	PLAY(play_much, sinks_and_floods);
}

/* --- early replies ------------------------------------------------------------ */

#define TOO_LARGE "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n"

SCRIPT(refuses_and_closes, { HEAR, NULL, 0 }, { SAY, TOO_LARGE "Connection: close\r\n\r\nbig", 0 });
SCRIPT(refuses_and_waits, { HEAR, NULL, 0 }, { SINK, NULL, 100000 },
       { SAY, "HTTP/1.1 100 Continue\r\n\r\n", 0 }, { DRIP, TOO_LARGE "\r\nbig", 0 },
       { HOLD, NULL, 0 });
SCRIPT(agrees_early, { HEAR, NULL, 0 }, { SINK, NULL, 100000 },
       { SAY, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", 0 }, { SINK, NULL, MUCH - 100000 },
       { SAY, "llo", 0 });
SCRIPT(goes_away, { HEAR, NULL, 0 }, { SINK, NULL, 100000 }, { RESET, NULL, 0 });

static void
play_early(struct world *world)
{
	world->request.method = "PUT";
	world->request.body = (weft_span){ much, sizeof(much) };
	get(world, "/", 413, "big");
	get(world, "/", 413, "big");
	UNTIL(world->peer.accepted == 2);
	peer_go_on(&world->peer);
	get(world, "/", 200, "hello");
	UNTIL(world->peer.open == 0);
	get_error(world, "/", WEFT_ECONNRESET, "");
}

static void
play_early_stream(struct world *world)
{
	weft_http *http;
	ssize_t n;

	world->request.method = "POST";
	world->request.streamed = true;
	for (int i = 0; i < 2; i++) {
		OK(fetch(world, "/", &http));
		do
			n = weft_http_write(http, much, sizeof(much), weft_after(HOUR));
		while (n > 0);
		CHECK(n == WEFT_EPIPE || n == WEFT_ECONNRESET);
		OK(weft_http_finish(http, weft_after(HOUR)));
		CHECK_EQ(weft_http_status(http), 413);
		CHECK_STR(body_of(http), "big");
		weft_http_close(http);
	}
	peer_go_on(&world->peer);
	UNTIL(world->peer.open == 0);
}

TEST(reply_that_arrives_before_the_body_is_sent_is_read)
{
	PLAY(play_early, refuses_and_closes, refuses_and_waits, agrees_early, goes_away);
}

TEST(reply_that_arrives_while_a_body_is_streamed_is_read)
{
	PLAY(play_early_stream, refuses_and_closes, refuses_and_waits);
}

SCRIPT(refuses_and_listens, { HEAR, NULL, 0 }, { SAY, TOO_LARGE "\r\nbig", 0 }, { HOLD, NULL, 0 });

static void
play_early_bytes(struct world *world)
{
	weft_http *http;
	ssize_t n = 1;

	world->request.method = "POST";
	world->request.streamed = true;
	OK(fetch(world, "/", &http));
	for (int i = 0; i < 1000 && n == 1; i++) {
		n = weft_http_write(http, "x", 1, weft_after(HOUR));
		OK(weft_sleep_until(weft_after(WEFT_US)));
	}
	CHECK_EQ(n, WEFT_EPIPE);
	OK(weft_http_finish(http, weft_after(HOUR)));
	CHECK_EQ(weft_http_status(http), 413);
	weft_http_close(http);
	peer_go_on(&world->peer);
	UNTIL(world->peer.open == 0);
}

TEST(early_refusal_fails_the_next_write)
{
	PLAY(play_early_bytes, refuses_and_listens);
}
