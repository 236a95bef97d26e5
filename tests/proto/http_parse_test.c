/* http_parse_test.c - header sections of HTTP messages: which are accepted, and how others are
 * refused.
 *
 * The parser gets every input of a table at once, byte by byte, and in two pieces split at
 * every position.  All results must be equal.
 */
#include <inttypes.h>
#include "proto/bad_requests.h"
#include "proto/feed.h"
#include "test.h"

struct good {
	const char *text;
	size_t size;
	enum weft__http_framing framing;
	unsigned flags;
	const char *path, *query, *host;
	uint64_t body_size;
	size_t rest; /* bytes that do not belong to this message */
};

static const struct feed request = { .kind = FEED_REQUEST };
static struct outcome whole, other;

static void
check_same(struct feed_cut cut, size_t input)
{
	const char *what = feed_difference(&whole, &other);

	if (what)
		test_fail(__FILE__, __LINE__,
		          "input %zu, cut %d at %" PRIu64 ": %s differs (%d, %d)", input,
		          (int)cut.how, cut.number, what, whole.rc, other.rc);
}

/* Feed the input in all ways; `whole` is the result. */
static void
feed_all_ways(const struct feed *feed, const char *data, size_t size, size_t input)
{
	struct feed_cut cut = { .how = FEED_BYTES };

	feed_run(feed, data, size, (struct feed_cut){ .how = FEED_WHOLE }, &whole);
	feed_run(feed, data, size, cut, &other);
	check_same(cut, input);
	cut.how = FEED_TWO;
	for (cut.number = 1; cut.number < size; cut.number++) {
		feed_run(feed, data, size, cut, &other);
		check_same(cut, input);
	}
}

TEST(malformed_requests_get_their_status_wherever_they_are_split)
{
	size_t count = bad_requests_count;

	CHECK(count >= 80);
	for (size_t i = 0; i < count; i++) {
		const struct bad *bad = &bad_requests[i];

		feed_all_ways(&request, bad->text, bad->size, i);
		if (whole.fault.status != bad->status || whole.rc >= 0)
			test_fail(__FILE__, __LINE__, "%.*s\ngives %d (%s), not %d", (int)bad->size,
			          bad->text, whole.fault.status,
			          whole.fault.text ? whole.fault.text : "none", bad->status);
		CHECK(whole.fault.text && whole.fault.text[0]);
		CHECK_EQ(whole.rc, bad->status == 413 ? WEFT_EMSGSIZE : WEFT_EPROTO);
	}
}

#define KEEP     WEFT__HTTP_KEEP_ALIVE
#define UPGRADE  WEFT__HTTP_UPGRADE
#define CONTINUE WEFT__HTTP_CONTINUE
#define NONE     WEFT__HTTP_NO_BODY
#define LENGTH   WEFT__HTTP_LENGTH
#define CHUNKED  WEFT__HTTP_CHUNKED

static const struct good good_requests[] = {
	{ S(GET HOST END), NONE, KEEP, "/", "", "a", 0, 0 },
	{ S("\r\n\r\n\r\n\r\n" GET HOST END), NONE, KEEP, "/", "", "a", 0, 0 },
	{ S("GET / HTTP/1.0\r\n" END), NONE, 0, "/", "", "", 0, 0 },
	{ S("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n" END), NONE, KEEP, "/", "", "", 0, 0 },
	{ S("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n" END), NONE, 0, "/", "", "", 0,
	  0 },
	{ S(GET HOST "Connection: close\r\n" END), NONE, 0, "/", "", "a", 0, 0 },
	{ S(GET HOST "Connection: x,, CLOSE ,y\r\n" END), NONE, 0, "/", "", "a", 0, 0 },
	{ S(GET HOST "Connection: x\r\nConnection: close\r\n" END), NONE, 0, "/", "", "a", 0, 0 },
	{ S(GET HOST "Connection: closed\r\n" END), NONE, KEEP, "/", "", "a", 0, 0 },
	{ S(GET HOST "Connection:\r\n" END), NONE, KEEP, "/", "", "a", 0, 0 },
	{ S(GET HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n" END), NONE, KEEP | UPGRADE,
	  "/", "", "a", 0, 0 },
	{ S(GET HOST "Upgrade: websocket\r\n" END), NONE, KEEP, "/", "", "a", 0, 0 },
	{ S(GET HOST "Connection: Upgrade\r\n" END), NONE, KEEP, "/", "", "a", 0, 0 },
	{ S("GET /a/b?c=d&e HTTP/1.1\r\n" HOST END), NONE, KEEP, "/a/b", "c=d&e", "a", 0, 0 },
	{ S("GET /? HTTP/1.1\r\n" HOST END), NONE, KEEP, "/", "", "a", 0, 0 },
	{ S("GET //a?b?c HTTP/1.1\r\n" HOST END), NONE, KEEP, "//a", "b?c", "a", 0, 0 },
	{ S("GET /[{|}]\"<>\\^` HTTP/1.1\r\n" HOST END), NONE, KEEP, "/[{|}]\"<>\\^`", "", "a", 0,
	  0 },
	{ S("GET http://b:8/c?d HTTP/1.1\r\n" HOST END), NONE, KEEP, "/c", "d", "b:8", 0, 0 },
	{ S("GET HTTPS://b HTTP/1.1\r\n" HOST END), NONE, KEEP, "", "", "b", 0, 0 },
	{ S("GET http://b?c HTTP/1.1\r\n" HOST END), NONE, KEEP, "", "c", "b", 0, 0 },
	{ S("OPTIONS * HTTP/1.1\r\n" HOST END), NONE, KEEP, "", "", "a", 0, 0 },
	{ S("OPTIONS /a HTTP/1.1\r\n" HOST END), NONE, KEEP, "/a", "", "a", 0, 0 },
	{ S("CONNECT b:443 HTTP/1.1\r\n" HOST END "x"), NONE, KEEP, "", "", "b:443", 0, 1 },
	{ S("CONNECT [::1]:443 HTTP/1.1\r\n" HOST CL "0\r\n" END), NONE, KEEP, "", "", "[::1]:443",
	  0, 0 },
	{ S("brew / HTTP/1.1\r\n" HOST END), NONE, KEEP, "/", "", "a", 0, 0 },
	{ S("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF / HTTP/1.1\r\n" HOST END), NONE, KEEP, "/", "", "a",
	  0, 0 },
	{ S("M-SEARCH!#$%&'*+.^_`|~9 / HTTP/1.1\r\n" HOST END), NONE, KEEP, "/", "", "a", 0, 0 },
	{ S(GET "Host:\r\n" END), NONE, KEEP, "/", "", "", 0, 0 },
	{ S(GET "hOST:  \t a.b:80 \t\r\n" END), NONE, KEEP, "/", "", "a.b:80", 0, 0 },
	{ S(GET "Host: [fe80::1.2.3.4]:1\r\n" END), NONE, KEEP, "/", "", "[fe80::1.2.3.4]:1", 0,
	  0 },
	{ S(GET "Host: a%20b:\r\n" END), NONE, KEEP, "/", "", "a%20b:", 0, 0 },
	{ S(GET HOST "X:\r\nY: \xff\tz \r\nX: ,\r\n" END), NONE, KEEP, "/", "", "a", 0, 0 },
	{ S(GET HOST END GET HOST END), NONE, KEEP, "/", "", "a", 0, sizeof(GET HOST END) - 1 },
	{ S(POST CL "5\r\n" END "hello"), LENGTH, KEEP, "/", "", "a", 5, 0 },
	{ S(POST CL "5\r\n" END "hellohello"), LENGTH, KEEP, "/", "", "a", 5, 5 },
	{ S(POST CL "0\r\n" END "x"), NONE, KEEP, "/", "", "a", 0, 1 },
	{ S(POST CL "0005\r\n" END "hello"), LENGTH, KEEP, "/", "", "a", 5, 0 },
	{ S(POST TE "chunked\r\n" END "5\r\nhello\r\n0\r\n\r\nx"), CHUNKED, KEEP, "/", "", "a", 5,
	  1 },
	{ S(POST TE "CHUNKED\r\n" END "5\r\nhello\r\n0\r\n\r\n"), CHUNKED, KEEP, "/", "", "a", 5,
	  0 },
	{ S(POST CL "5\r\nExpect: 100-Continue\r\n" END "hello"), LENGTH, KEEP | CONTINUE, "/", "",
	  "a", 5, 0 },
	{ S(GET HOST "Expect: 100-continue\r\n" END), NONE, KEEP, "/", "", "a", 0, 0 },
	{ S("POST / HTTP/1.0\r\n" CL "5\r\nExpect: x\r\n" END "hello"), LENGTH, 0, "/", "", "", 5,
	  0 },
	{ S(GET HOST "Content-Length2: x\r\nHosts: a b\r\n" END), NONE, KEEP, "/", "", "a", 0, 0 },
};

static void
check_part(const char *text, struct weft__http_part part, const char *want, size_t input)
{
	if (part.size != strlen(want) || memcmp(text + part.at, want, part.size) != 0)
		test_fail(__FILE__, __LINE__, "input %zu: %.*s, not %s", input, (int)part.size,
		          text + part.at, want);
}

TEST(well_formed_requests_are_parsed_wherever_they_are_split)
{
	for (size_t i = 0; i < sizeof(good_requests) / sizeof(good_requests[0]); i++) {
		const struct good *good = &good_requests[i];

		feed_all_ways(&request, good->text, good->size, i);
		if (whole.rc != WEFT__HTTP_DONE)
			test_fail(__FILE__, __LINE__, "%.*s\ngives %d (%s)", (int)good->size,
			          good->text, whole.rc, weft_detail());
		check_part(good->text, whole.head.path, good->path, i);
		check_part(good->text, whole.head.query, good->query, i);
		check_part(good->text, whole.head.host, good->host, i);
		CHECK_EQ(whole.head.framing, good->framing);
		CHECK_EQ(whole.head.flags, good->flags);
		CHECK_EQ(whole.body_size, good->body_size);
		CHECK_EQ(whole.used, good->size - good->rest);
	}
}

TEST(headers_are_found_by_name_in_any_case_and_in_order)
{
	static const char text[] = GET HOST "Accept: a\r\nX-^: b\r\n"
					    "aCCEPT:\tc d \r\n" END;
	const struct weft__http_field *field;
	uint32_t index = 0;

	feed_all_ways(&request, text, sizeof(text) - 1, 0);
	CHECK_EQ(whole.head.lines.count, 4);
	field = weft__http_field_next(&whole.head.lines, text, "ACCEPT", &index);
	CHECK(field);
	check_part(text, field->name, "Accept", 0);
	check_part(text, field->value, "a", 0);
	field = weft__http_field_next(&whole.head.lines, text, "accept", &index);
	CHECK(field);
	check_part(text, field->name, "aCCEPT", 0);
	check_part(text, field->value, "c d", 0);
	CHECK(!weft__http_field_next(&whole.head.lines, text, "accept", &index));
	index = 0;
	CHECK(!weft__http_field_next(&whole.head.lines, text, "x-~", &index));
	index = 0;
	CHECK(!weft__http_field_next(&whole.head.lines, text, "accep", &index));
	check_part(text, whole.head.method, "GET", 0);
	check_part(text, whole.head.target, "/", 0);
}

TEST(parse_error_persists_and_its_text_is_the_detail)
{
	static const char text[] = "GET / HTTP/3.0\r\n";
	struct weft__http_field fields[4];
	struct weft__http_head head;

	weft__http_request_init(&head, fields, 4, NULL);
	CHECK_EQ(weft__http_head_parse(&head, text, sizeof(text) - 1), WEFT_EPROTO);
	CHECK_STR(weft_detail(), "weft_http_*: version is not 1.0 or 1.1");
	CHECK_EQ(weft__http_head_parse(&head, "GET", 3), WEFT_EPROTO);
	CHECK_EQ(head.fault.status, 505);
}

TEST(parse_with_fewer_bytes_than_before_is_misuse)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: a";
	struct weft__http_field fields[4];
	struct weft__http_head head;

	weft__http_request_init(&head, fields, 4, NULL);
	CHECK_EQ(weft__http_head_parse(&head, text, sizeof(text) - 1), WEFT__HTTP_MORE);
	CHECK_EQ(weft__http_head_parse(&head, text, sizeof(text) - 2), WEFT_EINVAL);
	CHECK_EQ(head.fault.status, 0);
	CHECK_EQ(weft__http_head_parse(&head, text, sizeof(text) - 1), WEFT__HTTP_MORE);
}

TEST(header_section_is_complete_only_with_its_empty_line)
{
	static const char text[] = GET HOST "X: y\r\n" END;

	for (size_t size = 0; size < sizeof(text) - 1; size++) {
		feed_all_ways(&request, text, size, size);
		CHECK_EQ(whole.rc, WEFT__HTTP_MORE);
	}
}

/* --- responses --------------------------------------------------------------- */

#define OK_LINE "HTTP/1.1 200 OK\r\n"

static const struct bad bad_responses[] = {
	{ 400, S("\r\n" OK_LINE END) },
	{ 400, S("HTTP/1.1\r\n") },
	{ 400, S("HTTP/1.1 \r\n") },
	{ 400, S("HTTP/1.1 20\r\n") },
	{ 400, S("HTTP/1.1 2000\r\n") },
	{ 400, S("HTTP/1.1 2a0 OK\r\n") },
	{ 400, S("HTTP/1.1 099 OK\r\n") },
	{ 400, S("HTTP/1.1 -20 OK\r\n") },
	{ 400, S("HTTP/1.1  200 OK\r\n") },
	{ 400, S("HTTP/1.1\t200 OK\r\n") },
	{ 400, S("HTTP/1.1 200\tOK\r\n") },
	{ 400, S("http/1.1 200 OK\r\n") },
	{ 400, S("HTTP/1.1 200 O\0K\r\n") },
	{ 400, S("HTTP/1.1 200 OK\n") },
	{ 400, S("ICY 200 OK\r\n\r\n") },
	{ 505, S("HTTP/2.0 200 OK\r\n") },
	{ 400, S(OK_LINE CL "5\r\n" CL "5\r\n" END) },
	{ 400, S(OK_LINE CL "5\r\n" TE "chunked\r\n" END) },
	{ 400, S("HTTP/1.0 200 OK\r\n" TE "chunked\r\n" END) },
	{ 400, S(OK_LINE TE "chunked, gzip\r\n" END) },
	{ 501, S(OK_LINE TE "gzip\r\n" END) },
	{ 400, S(OK_LINE "X : a\r\n" END) },
	{ 400, S(OK_LINE "X: a\r\n b\r\n" END) },
	{ 413, S(OK_LINE CL "16777217\r\n" END) },
	{ 400, S("HTTP/1.1 204 None\r\n" CL "x\r\n" END) },
	{ 400, S("HTTP/1.1 204 None\r\n" CL "2\r\n" END "hi") },
	{ 400, S("HTTP/1.1 204 None\r\n" TE "chunked\r\n" END) },
	{ 400, S("HTTP/1.1 100 Continue\r\n" CL "2\r\n" END "hi") },
	{ 400, S("HTTP/1.1 101 x\r\n" TE "chunked\r\n" END) },
	{ 400, S("HTTP/1.1 199 x\r\n" TE "chunked\r\n" END) },
};

TEST(malformed_responses_are_refused_wherever_they_are_split)
{
	const struct feed feed = { .kind = FEED_RESPONSE };

	for (size_t i = 0; i < sizeof(bad_responses) / sizeof(bad_responses[0]); i++) {
		const struct bad *bad = &bad_responses[i];

		feed_all_ways(&feed, bad->text, bad->size, i);
		if (whole.fault.status != bad->status)
			test_fail(__FILE__, __LINE__, "%.*s\ngives %d, not %d", (int)bad->size,
			          bad->text, whole.fault.status, bad->status);
	}
}

struct reply {
	const char *text;
	size_t size;
	enum weft__http_reply_to asked;
	int status;
	enum weft__http_framing framing;
	unsigned flags;
	uint64_t body_size;
	int rc, close_rc;
};

#define HEAD_ASKED    WEFT__HTTP_REPLY_TO_HEAD
#define CONNECT_ASKED WEFT__HTTP_REPLY_TO_CONNECT
#define CLOSE         WEFT__HTTP_UNTIL_CLOSE
#define TUNNEL        WEFT__HTTP_TUNNEL
#define DONE          WEFT__HTTP_DONE
#define MORE          WEFT__HTTP_MORE

static const struct reply replies[] = {
	{ S(OK_LINE CL "2\r\n" END "hi"), 0, 200, LENGTH, KEEP, 2, DONE, 0 },
	{ S(OK_LINE CL "2\r\n" END "h"), 0, 200, LENGTH, KEEP, 1, MORE, WEFT_ETRUNCATED },
	{ S(OK_LINE CL "0\r\n" END), 0, 200, NONE, KEEP, 0, DONE, 0 },
	{ S(OK_LINE END "hi"), 0, 200, CLOSE, 0, 2, MORE, 0 },
	{ S("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" END "hi"), 0, 200, CLOSE, 0, 2, MORE,
	  0 },
	{ S("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" CL "2\r\n" END "hi"), 0, 200, LENGTH,
	  KEEP, 2, DONE, 0 },
	{ S("HTTP/1.0 200 OK\r\n" CL "2\r\n" END "hi"), 0, 200, LENGTH, 0, 2, DONE, 0 },
	{ S(OK_LINE TE "chunked\r\n" END "2\r\nhi\r\n0\r\n\r\n"), 0, 200, CHUNKED, KEEP, 2, DONE,
	  0 },
	{ S(OK_LINE TE "chunked\r\n" END "2\r\nhi\r\n"), 0, 200, CHUNKED, KEEP, 2, MORE,
	  WEFT_ETRUNCATED },
	{ S(OK_LINE CL "2\r\n" END), HEAD_ASKED, 200, NONE, KEEP, 0, DONE, 0 },
	{ S(OK_LINE TE "chunked\r\n" END), HEAD_ASKED, 200, NONE, KEEP, 0, DONE, 0 },
	{ S(OK_LINE END), HEAD_ASKED, 200, NONE, KEEP, 0, DONE, 0 },
	{ S("HTTP/1.1 100 Continue\r\n" END "x"), 0, 100, NONE, KEEP, 0, DONE, 0 },
	{ S("HTTP/1.1 204 No Content\r\n" CL "0\r\n" END "x"), 0, 204, NONE, KEEP, 0, DONE, 0 },
	{ S("HTTP/1.1 204 No Content\r\n" CL "2\r\n" END "x"), HEAD_ASKED, 204, NONE, KEEP, 0, DONE,
	  0 },
	{ S("HTTP/1.1 304 Not Modified\r\n" CL "2\r\n" END "x"), 0, 304, NONE, KEEP, 0, DONE, 0 },
	{ S("HTTP/1.1 101 x\r\nUpgrade: a\r\nConnection: upgrade\r\n" END "x"), 0, 101, TUNNEL,
	  UPGRADE, 0, DONE, 0 },
	{ S(OK_LINE CL "2\r\n" END "hi"), CONNECT_ASKED, 200, TUNNEL, 0, 0, DONE, 0 },
	{ S("HTTP/1.1 407 x\r\n" CL "2\r\n" END "hi"), CONNECT_ASKED, 407, LENGTH, KEEP, 2, DONE,
	  0 },
	{ S("HTTP/1.1 200\r\n" CL "2\r\nConnection: close\r\n" END "hi"), 0, 200, LENGTH, 0, 2,
	  DONE, 0 },
	{ S("HTTP/1.1 999 \r\nHost: a b\r\nHost: c\r\n" CL "0\r\n" END), 0, 999, NONE, KEEP, 0,
	  DONE, 0 },
	{ S("HTTP/1.1 200 d'accord \xc3\xa9\t!\r\nExpect: x\r\n" CL "0\r\n" END), 0, 200, NONE,
	  KEEP, 0, DONE, 0 },
};

TEST(response_framing_depends_on_status_request_and_headers)
{
	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		const struct reply *reply = &replies[i];
		struct feed feed = { .kind = FEED_RESPONSE, .asked = reply->asked };

		feed_all_ways(&feed, reply->text, reply->size, i);
		if (whole.rc != reply->rc)
			test_fail(__FILE__, __LINE__, "%.*s\ngives %d (%s)", (int)reply->size,
			          reply->text, whole.rc, weft_detail());
		CHECK_EQ(whole.head.status, reply->status);
		CHECK_EQ(whole.head.framing, reply->framing);
		CHECK_EQ(whole.head.flags, reply->flags);
		CHECK_EQ(whole.body_size, reply->body_size);
		CHECK_EQ(whole.close_rc, reply->close_rc);
	}
}

TEST(reason_is_the_text_after_the_status)
{
	static const char text[] = "HTTP/1.1 404 Not  Found\r\n" END;
	const struct feed feed = { .kind = FEED_RESPONSE };

	feed_all_ways(&feed, text, sizeof(text) - 1, 0);
	check_part(text, whole.head.reason, "Not  Found", 0);
}

/* --- limits ------------------------------------------------------------------ */

static char big[1 << 16];

/* Makes "GET /aaa HTTP/1.1" with a target of `target` bytes, and a header that makes the header
 * section `size` bytes long.  Returns its size. */
static size_t
make_head(size_t target, size_t size)
{
	size_t at = (size_t)snprintf(big, sizeof(big), "GET /");

	memset(big + at, 'a', target - 1);
	at += target - 1;
	at += (size_t)snprintf(big + at, sizeof(big) - at, " HTTP/1.1\r\n" HOST "X: ");
	if (size > at + 4) {
		memset(big + at, 'b', size - at - 4);
		at = size - 4;
	}
	memcpy(big + at, "\r\n\r\n", 4);
	return at + 4;
}

static void
check_limit(const struct feed *feed, size_t size, int status)
{
	struct feed_cut bytes = { .how = FEED_BYTES };

	feed_run(feed, big, size, (struct feed_cut){ .how = FEED_WHOLE }, &whole);
	feed_run(feed, big, size, bytes, &other);
	check_same(bytes, size);
	CHECK_EQ(whole.fault.status, status);
	CHECK_EQ(whole.rc, status ? WEFT_EMSGSIZE : WEFT__HTTP_DONE);
}

TEST(header_section_at_the_limit_passes_and_one_byte_more_is_431)
{
	check_limit(&request, make_head(1, 32 << 10), 0);
	check_limit(&request, make_head(1, (32 << 10) + 1), 431);
	check_limit(&request, make_head(1, (32 << 10) + 2), 431);
	check_limit(&request, make_head(1, (32 << 10) + 4), 431);
	check_limit(&request, make_head(1, (32 << 10) + 100), 431);
	for (uint32_t max = 60; max < 140; max++) {
		struct feed feed = { .limits.head_max = max };

		check_limit(&feed, make_head(1, 100), max < 100 ? 431 : 0);
	}
}

TEST(request_line_over_the_header_limit_is_431)
{
	for (uint32_t max = 1; max < 40; max++) {
		struct feed feed = { .limits.head_max = max };

		check_limit(&feed, make_head(20, 100), 431);
	}
}

TEST(target_at_the_limit_passes_and_one_byte_more_is_414)
{
	struct feed small = { .limits.target_max = 20 };

	check_limit(&request, make_head(8 << 10, 0), 0);
	check_limit(&request, make_head((8 << 10) + 1, 0), 414);
	check_limit(&request, make_head((8 << 10) + 30, 0), 414);
	check_limit(&request, make_head(20 << 10, 0), 414);
	check_limit(&request, make_head(50 << 10, 0), 414);
	for (size_t size = 1; size < 100; size++)
		check_limit(&small, make_head(size, 0), size <= 20 ? 0 : 414);
}

TEST(endless_request_line_is_refused_at_the_target_limit)
{
	struct weft__http_field fields[1];
	struct weft__http_head head;
	int rc = WEFT__HTTP_MORE;
	size_t size = 0;

	memset(big, 'a', sizeof(big));
	memcpy(big, "GET /", 5);
	weft__http_request_init(&head, fields, 1, NULL);
	while (rc == WEFT__HTTP_MORE)
		rc = weft__http_head_parse(&head, big, ++size);
	CHECK_EQ(rc, WEFT_EMSGSIZE);
	CHECK_EQ(head.fault.status, 414);
	CHECK(size < (8 << 10) + 64);
}

TEST(headers_that_fit_the_array_pass_and_one_more_is_431)
{
	for (uint32_t room = 1; room <= 100; room += 33) {
		struct feed feed = { .room = room };
		size_t at = (size_t)snprintf(big, sizeof(big), GET HOST);

		for (uint32_t i = 1; i < room; i++)
			at += (size_t)snprintf(big + at, sizeof(big) - at, "X%u: y\r\n", i);
		memcpy(big + at, "\r\n", 2);
		check_limit(&feed, at + 2, 0);
		CHECK_EQ(whole.head.lines.count, room);
		memcpy(big + at, "Z:\r\n\r\n", 6);
		check_limit(&feed, at + 6, 431);
	}
}

TEST(content_length_at_the_limit_passes_and_one_more_is_413)
{
	static const char text[] = POST CL "5\r\n" END "hello";
	struct feed feed = { .limits.body_max = 5 };

	memcpy(big, text, sizeof(text));
	check_limit(&feed, sizeof(text) - 1, 0);
	feed.limits.body_max = 4;
	check_limit(&feed, sizeof(text) - 1, 413);
}

/* --- mutations ---------------------------------------------------------------- */

/* Change a few bytes of `big` to bytes that are likely to matter.  Returns the new size. */
static size_t
mutate(uint64_t *seed, size_t size)
{
	static const char likely[] = "\r\n\r\n:: \t,;0159aA/?%[]@#\"\0\x7f\x80";
	unsigned times = 1 + (unsigned)(test_random(seed) % 3);

	while (times-- > 0 && size > 2) {
		size_t at = test_random(seed) % size;
		size_t to = test_random(seed) % size;
		char byte = likely[test_random(seed) % (sizeof(likely) - 1)];

		switch (test_random(seed) % 4) {
		case 0:
			big[at] = byte;
			break;
		case 1:
			memmove(big + at + 1, big + at, size - at);
			big[at] = byte;
			size++;
			break;
		case 2:
			memmove(big + at, big + at + 1, size - at - 1);
			size--;
			break;
		default:
			big[at] = big[to];
		}
	}
	return size;
}

TEST(mutated_messages_have_the_same_result_wherever_they_are_split)
{
	uint64_t seed = test_seed();
	size_t count = sizeof(good_requests) / sizeof(good_requests[0]);

	for (size_t i = 0; i < 20000; i++) {
		const struct good *good = &good_requests[i % count];
		struct feed_cut cut = { FEED_RANDOM, test_random(&seed) };
		size_t size;

		memcpy(big, good->text, good->size);
		size = mutate(&seed, good->size);
		feed_run(&request, big, size, (struct feed_cut){ .how = FEED_WHOLE }, &whole);
		feed_run(&request, big, size, cut, &other);
		check_same(cut, i);
		cut.how = FEED_BYTES;
		feed_run(&request, big, size, cut, &other);
		check_same(cut, i);
	}
}
