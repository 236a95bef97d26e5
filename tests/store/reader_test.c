/* reader_test.c - parsing of requests, wherever they are split, and requests that are refused. */
#include <stdio.h>
#include "store/reader.h"
#include "test.h"

static struct heap heap;
static const struct reader_limits usual = { 512 << 20, 1 << 30, 1 << 20, 65536 };

/* The arguments of one request, each in brackets; the error text; or "..."  if it is
 * incomplete. */
static const char *
told(const struct reader *reader, ssize_t size)
{
	static char text[4096];
	size_t at = 0;

	if (size == 0)
		return "...";
	if (size < 0)
		return reader->wrong;
	text[0] = '\0';
	for (uint32_t i = 0; i < reader->count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "[%.*s]",
		                       (int)reader->words[i].size, reader->words[i].data);
	return text;
}

/* Read in two pieces, split at `cut`.  The memory moves between the pieces. */
static void
read_cut(const char *data, size_t size, size_t cut, const char *want)
{
	char *first = weft_alloc(cut + 1), *all = weft_alloc(size + 1);
	struct reader reader;
	ssize_t got;

	reader_init(&reader, &heap);
	memcpy(first, data, cut);
	memcpy(all, data, size);
	got = reader_next(&reader, &usual, first, cut);
	if (got == 0) {
		reader_moved(&reader, first, all);
		memset(first, 'x', cut);
		got = reader_next(&reader, &usual, all, size);
	}
	CHECK_STR(told(&reader, got), want);
	reader_fini(&reader);
	CHECK_EQ(heap.used, 0);
	weft_release(first);
	weft_release(all);
}

/* Read byte by byte, in the same memory. */
static void
read_slowly(const char *data, size_t size, const char *want)
{
	struct reader reader;
	ssize_t got = 0;

	reader_init(&reader, &heap);
	for (size_t i = 1; i <= size && got == 0; i++)
		got = reader_next(&reader, &usual, data, i);
	CHECK_STR(told(&reader, got), want);
	reader_fini(&reader);
	CHECK_EQ(heap.used, 0);
}

static void
check(const char *data, size_t size, const char *want)
{
	for (size_t cut = 0; cut <= size; cut++)
		read_cut(data, size, cut, want);
	read_slowly(data, size, want);
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
	READ("SET \"a b\" 'c\\'d' \"\\x41\\n\\\"\"\r\n", "[SET][a b][c'd][A\n\"]");
	READ("SET a \"\"\r\n", "[SET][a][]");
}

TEST(inline_command_with_unbalanced_quotes_is_refused)
{
	READ("SET \"a\r\n", "unbalanced quotes in request");
	READ("SET 'a\r\n", "unbalanced quotes in request");
	READ("SET \"a\"b\r\n", "unbalanced quotes in request");
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
	struct reader reader;

	reader_init(&reader, &heap);
	CHECK_EQ(reader_next(&reader, &tight, bytes, 23), 0);
	CHECK_EQ(reader_next(&reader, &tight, bytes, sizeof(bytes) - 1), -1);
	CHECK_STR(reader.wrong, "invalid bulk length");
	reader_fini(&reader);
}

TEST(request_over_a_limit_is_refused_before_it_is_complete)
{
	const struct reader_limits tight = { 10, 40, 2, 8 };
	struct reader reader;

	reader_init(&reader, &heap);
	CHECK_EQ(reader_next(&reader, &tight, "*3\r\n", 4), -1);
	reader_reset(&reader);
	CHECK_EQ(reader_next(&reader, &tight, "*1\r\n$11\r\n", 9), -1);
	reader_reset(&reader);
	CHECK_EQ(reader_next(&reader, &tight, "PING a lo", 9), -1);
	reader_reset(&reader);
	CHECK_EQ(reader_next(&reader, &tight, "PING a l", 8), 0);
	reader_reset(&reader);
	CHECK_EQ(reader_next(&reader, &tight, "*2\r\n$10\r\n0123456789\r\n$10\r\n", 26), 0);
	reader_fini(&reader);
}

TEST(announced_arguments_take_no_memory_before_they_arrive)
{
	struct reader reader;

	reader_init(&reader, &heap);
	CHECK_EQ(reader_next(&reader, &usual, "*1048576\r\n$536870912\r\n", 22), 0);
	CHECK_EQ(heap.used, 0);
	reader_fini(&reader);
}

TEST(unauthenticated_client_has_small_request_limits)
{
	struct reader reader;

	reader_init(&reader, &heap);
	reader.is_stranger = true;
	CHECK_EQ(reader_next(&reader, &usual, "*11\r\n", 5), -1);
	CHECK_STR(reader.wrong, "unauthenticated multibulk length");
	reader_reset(&reader);
	CHECK_EQ(reader_next(&reader, &usual, "*1\r\n$16385\r\n", 12), -1);
	CHECK_STR(reader.wrong, "unauthenticated bulk length");
	reader_fini(&reader);
}

TEST(consecutive_requests_are_parsed_one_by_one)
{
	const char *text = "*1\r\n$4\r\nPING\r\nECHO a\r\n*0\r\n";
	struct reader reader;
	ssize_t size;

	reader_init(&reader, &heap);
	size = reader_next(&reader, &usual, text, strlen(text));
	CHECK_STR(told(&reader, size), "[PING]");
	reader_reset(&reader);
	text += size;
	size = reader_next(&reader, &usual, text, strlen(text));
	CHECK_STR(told(&reader, size), "[ECHO][a]");
	reader_reset(&reader);
	text += size;
	CHECK_EQ(reader_next(&reader, &usual, text, strlen(text)), 4);
	reader_fini(&reader);
}
