/* redis_linear_test.c - a reply that arrives byte by byte is parsed in linear time, measured by
 * the number of bytes inspected, not by the clock.
 *
 * The parser is compiled into this program with a counter in its scan.
 */
#include "proto/resp_feed.h"
#include "test.h"

uint64_t weft__resp_scanned;

static uint64_t
cost(const struct resp_text *text, size_t piece)
{
	static const struct weft__resp_limits limits = { 1 << 26, 8, 1 << 22 };
	struct weft__resp_scan scan = { 0 };
	ssize_t rc = 0;

	weft__resp_scanned = 0;
	for (size_t at = piece; rc == 0; at += piece)
		rc = weft__resp_scan(&scan, &limits, text->data, at < text->size ? at : text->size);
	CHECK_EQ(rc, text->size);
	return weft__resp_scanned;
}

/* A list of the same item; a long line; a long bulk string. */
static struct resp_text
make(int kind, size_t size)
{
	static const char *const items[] = { "$3\r\nabc\r\n", ":123456\r\n", ",1.25\r\n",
		                             "*1\r\n_\r\n", "|1\r\n+k\r\n#t\r\n_\r\n" };
	struct resp_text text = { 0 };

	if (kind == 5)
		resp_addf(&text, "+");
	else if (kind == 6)
		resp_addf(&text, "$%zu\r\n", size);
	else
		resp_addf(&text, "*%zu\r\n", size);
	for (size_t i = 0; i < size; i++)
		resp_addf(&text, "%s", kind < 5 ? items[kind] : "a");
	if (kind >= 5)
		resp_addf(&text, "\r\n");
	return text;
}

TEST(reply_bytes_are_inspected_a_constant_number_of_times)
{
	for (size_t size = 1000; size <= 32000; size *= 2) {
		for (int kind = 0; kind < 7; kind++) {
			struct resp_text text = make(kind, size);

			CHECK(cost(&text, text.size) <= 3 * text.size);
			CHECK(cost(&text, 100) <= 3 * text.size);
			CHECK(cost(&text, 1) <= 4 * text.size);
			free(text.data);
		}
	}
}

TEST(bytes_of_a_bulk_string_are_not_inspected)
{
	struct resp_text text = make(6, 100000);

	CHECK(cost(&text, text.size) < 50);
	CHECK(cost(&text, 1) < 50);
	free(text.data);
}
