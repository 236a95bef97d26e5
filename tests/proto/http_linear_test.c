/* http_linear_test.c - a message that arrives byte by byte is parsed in linear time, measured
 * by the number of bytes inspected, not by the clock.
 *
 * The parser is compiled into this program with a counter in its scans.
 */
#include "http/parse/parse.h"
#include "http/parse/scan.h"
#include "test.h"

uint64_t weft__http_scanned;

static char text[1 << 16];

/* A header section of `size` bytes: one long header, or many short ones. */
static size_t
make_head(size_t size, bool one)
{
	size_t at = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\n");

	while (!one && at + 12 < size)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "Name: 12\r\n");
	if (one) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "X: ");
		memset(text + at, 'a', size - at - 4);
		at = size - 4;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "\r\n");
	}
	at += (size_t)snprintf(text + at, sizeof(text) - at, "\r\n");
	return at;
}

static uint64_t
cost(size_t size, size_t piece)
{
	static struct weft__http_field fields[8000];
	struct weft__http_limits limits = { .head_max = sizeof(text) };
	struct weft__http_head head;
	int rc = WEFT__HTTP_MORE;

	weft__http_scanned = 0;
	weft__http_request_init(&head, fields, 8000, &limits);
	for (size_t at = piece; rc == WEFT__HTTP_MORE; at += piece)
		rc = weft__http_head_parse(&head, text, at < size ? at : size);
	CHECK_EQ(rc, WEFT__HTTP_DONE);
	CHECK_EQ(head.size, size);
	return weft__http_scanned;
}

TEST(header_bytes_are_inspected_a_constant_number_of_times)
{
	for (size_t size = 1000; size <= 60000; size *= 2) {
		for (int one = 0; one < 2; one++) {
			size_t made = make_head(size, one);

			CHECK(cost(made, made) <= 2 * made);
			CHECK(cost(made, 100) <= 2 * made + made / 10);
			CHECK(cost(made, 1) <= 4 * made);
		}
	}
}

TEST(trailer_bytes_are_inspected_a_constant_number_of_times)
{
	static const char request[] = "POST / HTTP/1.1\r\nHost: a\r\n"
				      "Transfer-Encoding: chunked\r\n\r\n";
	struct weft__http_field fields[8];
	struct weft__http_head head;
	struct weft__http_body body;
	struct weft__http_step step;
	size_t from = 0, size = 30000;
	int rc = WEFT__HTTP_MORE;

	memcpy(text, "0\r\nX: ", 6);
	memset(text + 6, 'a', size - 10);
	memcpy(text + size - 4, "\r\n\r\n", 4);
	weft__http_request_init(&head, fields, 8, NULL);
	CHECK_EQ(weft__http_head_parse(&head, request, sizeof(request) - 1), WEFT__HTTP_DONE);
	weft__http_body_init(&body, &head, fields, 8);
	weft__http_scanned = 0;
	for (size_t at = 1; rc == WEFT__HTTP_MORE; at++) {
		rc = weft__http_body_next(&body, text + from, at - from, &step);
		CHECK(rc >= 0);
		from += step.used;
	}
	CHECK_EQ(rc, WEFT__HTTP_DONE);
	CHECK_EQ(from, size);
	CHECK(weft__http_scanned <= 3 * size);
}
