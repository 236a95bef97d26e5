/* reader_test.c - parsing of requests, wherever they are split, and requests that are refused. */
#include <stdio.h>
#include "store/connection/store_reader.h"
#include "test.h"

static struct memory memory;
static const struct reader_limits usual = { 512 << 20, 1 << 30, 1 << 20, 65536 };

/* The arguments of one request, each in brackets; the error text; or "..."  if it is
 * incomplete. */
static const char *
shown(const struct reader *reader, ssize_t size)
{
	static char text[4096];
	size_t at = 0;

	if (size == 0)
		return "...";
	if (size < 0)
		return reader->error;
	text[0] = '\0';
	for (size_t i = 0; i < reader->argc; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "[%.*s]",
		                       (int)reader->argv[i].size, reader->argv[i].data);
	return text;
}

/* Parse what has arrived, first `cut` bytes and then all, in memory of its exact size.  An
 * incomplete request needs more than that, and no more than there is. */
static void
check_cut(const char *data, size_t size, size_t cut, const char *want)
{
	struct reader reader = { .memory = &memory };
	char *first = weft_alloc(cut + 1), *all = weft_alloc(size + 1);
	ssize_t got;

	memcpy(first, data, cut);
	memcpy(all, data, size);
	got = reader_next(&reader, &usual, first, cut);
	if (got == 0 && cut < size) {
		CHECK(reader.need > cut);
		CHECK(reader.need <= size || strcmp(want, "...") == 0);
		memset(first, 'x', cut);
		got = reader_next(&reader, &usual, all, size);
	}
	CHECK_STR(shown(&reader, got), want);
	reader_clear(&reader);
	CHECK_EQ(memory.used, 0);
	weft_release(first);
	weft_release(all);
}

static void
check(const char *data, size_t size, const char *want)
{
	for (size_t cut = 0; cut <= size; cut++)
		check_cut(data, size, cut, want);
}

#define READ(text, want) check((text), sizeof(text) - 1, (want))

TEST(request_is_parsed_the_same_wherever_it_is_split)
{
	READ("*1\r\n$4\r\nPING\r\n", "[PING]");
	READ("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\n", "[SET][a][]");
	READ("*2\r\n$4\r\nECHO\r\n$11\r\nhello\r\n$3\r\n\r\n", "[ECHO][hello\r\n$3\r\n]");
	READ("*10\r\n$1\r\n0\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n"
	     "$1\r\n5\r\n$1\r\n6\r\n$1\r\n7\r\n$1\r\n8\r\n$1\r\n9\r\n",
	     "[0][1][2][3][4][5][6][7][8][9]");
}

TEST(request_without_arguments_is_empty)
{
	READ("*0\r\n", "");
	READ("*-1\r\n", "");
	READ("\r\n", "");
	READ("\n", "");
}

TEST(inline_command_is_a_request)
{
	READ("PING\r\n", "[PING]");
	READ("SET  a\tb \n", "[SET][a][b]");
}

TEST(inline_command_with_quotes_is_refused)
{
	READ("SET \"a b\" c\r\n", "quotes in an inline request are not supported");
	READ("SET 'a'\r\n", "quotes in an inline request are not supported");
}

TEST(request_with_invalid_lengths_is_refused)
{
	READ("*x\r\n", "invalid multibulk length");
	READ("*1048577\r\n", "invalid multibulk length");
	READ("*99999999999999999999\r\n", "invalid multibulk length");
	READ("*01\r\n$4\r\nPING\r\n", "invalid multibulk length");
	READ("*1\r\n$-1\r\n", "invalid bulk length");
	READ("*1\r\n$x\r\n", "invalid bulk length");
	READ("*1\r\n$536870913\r\n", "invalid bulk length");
	READ("*1\r\n:4\r\n", "expected '$', got ':'");
	READ("*1111111111111111111111111111111111111111", "invalid multibulk length");
}

/* The first argument ends at the maximum size of a request. */
TEST(argument_beyond_the_request_limit_is_refused)
{
	static const struct reader_limits tight = { 1 << 20, 21, 100, 65536 };
	static const char bytes[] = "*2\r\n$12\r\n0123456789ab\r\n$1\r\nx\r\n";
	struct reader reader = { .memory = &memory };

	CHECK_EQ(reader_next(&reader, &tight, bytes, 23), 0);
	CHECK_EQ(reader_next(&reader, &tight, bytes, sizeof(bytes) - 1), -1);
	CHECK_STR(reader.error, "invalid bulk length");
	reader_clear(&reader);
}

static ssize_t
parse(const struct reader_limits *limits, const char *text, bool unauthenticated)
{
	struct reader reader = { .memory = &memory, .unauthenticated = unauthenticated };
	ssize_t size = reader_next(&reader, limits, text, strlen(text));

	reader_clear(&reader);
	CHECK_EQ(memory.used, 0);
	return size;
}

TEST(request_over_a_limit_is_refused_before_it_is_complete)
{
	const struct reader_limits tight = { 10, 40, 2, 8 };

	CHECK_EQ(parse(&tight, "*3\r\n", false), -1);
	CHECK_EQ(parse(&tight, "*1\r\n$11\r\n", false), -1);
	CHECK_EQ(parse(&tight, "PING a lo", false), -1);
	CHECK_EQ(parse(&tight, "PING a l", false), 0);
	CHECK_EQ(parse(&tight, "*2\r\n$10\r\n0123456789\r\n$10\r\n", false), 0);
}

TEST(announced_arguments_take_no_memory_before_they_arrive)
{
	struct reader reader = { .memory = &memory };

	CHECK_EQ(reader_next(&reader, &usual, "*1048576\r\n$536870912\r\n", 22), 0);
	CHECK_EQ(memory.used, 0);
	reader_clear(&reader);
}

TEST(unauthenticated_client_has_small_request_limits)
{
	CHECK_EQ(parse(&usual, "*10\r\n", true), 0);
	CHECK_EQ(parse(&usual, "*11\r\n", true), -1);
	CHECK_EQ(parse(&usual, "*1\r\n$16384\r\n", true), 0);
	CHECK_EQ(parse(&usual, "*1\r\n$16385\r\n", true), -1);
}

TEST(consecutive_requests_are_parsed_one_by_one)
{
	const char *text = "*1\r\n$4\r\nPING\r\nECHO a\r\n*0\r\n";
	struct reader reader = { .memory = &memory };
	ssize_t size;

	size = reader_next(&reader, &usual, text, strlen(text));
	CHECK_STR(shown(&reader, size), "[PING]");
	text += size;
	size = reader_next(&reader, &usual, text, strlen(text));
	CHECK_STR(shown(&reader, size), "[ECHO][a]");
	text += size;
	CHECK_EQ(reader_next(&reader, &usual, text, strlen(text)), 4);
	reader_clear(&reader);
}
