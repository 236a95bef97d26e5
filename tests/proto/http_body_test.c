/* http_body_test.c - bodies: chunks, lengths, trailers, limits.
 *
 * The parser gets every input at once, byte by byte, and split in two at every position.
 */
#include <inttypes.h>
#include "proto/feed.h"
#include "test.h"

#define S(text) text, sizeof(text) - 1

static const struct feed chunked = { .kind = FEED_CHUNKED };
static struct outcome whole, other;

static void
feed_all_ways(const struct feed *feed, const char *data, size_t size)
{
	struct feed_cut cut = { .how = FEED_BYTES };

	feed_run(feed, data, size, (struct feed_cut){ .how = FEED_WHOLE }, &whole);
	for (cut.number = 0; cut.number < size; cut.number++) {
		const char *what;

		feed_run(feed, data, size, cut, &other);
		what = feed_difference(&whole, &other);
		if (what)
			test_fail(__FILE__, __LINE__, "%.*s\ncut at %" PRIu64 ": %s differs",
			          (int)size, data, cut.number, what);
		cut.how = FEED_TWO;
	}
}

static uint64_t
hash_of(const char *text)
{
	uint64_t hash = 0;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

struct good {
	const char *text;
	size_t size;
	const char *body;
	size_t rest;
	uint32_t trailers;
};

static const struct good good_bodies[] = {
	{ S("0\r\n\r\n"), "", 0, 0 },
	{ S("0\r\n\r\nGET"), "", 3, 0 },
	{ S("0000000000000000\r\n\r\n"), "", 0, 0 },
	{ S("5\r\nhello\r\n0\r\n\r\n"), "hello", 0, 0 },
	{ S("05\r\nhello\r\n00\r\n\r\n"), "hello", 0, 0 },
	{ S("0000000000000005\r\nhello\r\n0\r\n\r\n"), "hello", 0, 0 },
	{ S("1\r\na\r\n2\r\nbc\r\n3\r\n\r\n0\r\n0\r\n\r\n"), "abc\r\n0", 0, 0 },
	{ S("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n"), "01234567890123456789", 0, 0 },
	{ S("1;a\r\nx\r\n0;b\r\n\r\n"), "x", 0, 0 },
	{ S("1;a=b\r\nx\r\n0\r\n\r\n"), "x", 0, 0 },
	{ S("1;a=b;c;d=\"e;f\\\"\tg\xff\";h\r\nx\r\n0\r\n\r\n"), "x", 0, 0 },
	{ S("1;a=\"\"\r\nx\r\n0\r\n\r\n"), "x", 0, 0 },
	{ S("1\r\nx\r\n0\r\nA: b\r\n\r\n"), "x", 0, 1 },
	{ S("1\r\nx\r\n0\r\nA: b\r\nX-Checksum:  c \r\n\r\n\r\n"), "x", 2, 2 },
};

TEST(chunks_are_joined_wherever_the_input_is_split)
{
	for (size_t i = 0; i < sizeof(good_bodies) / sizeof(good_bodies[0]); i++) {
		const struct good *good = &good_bodies[i];

		feed_all_ways(&chunked, good->text, good->size);
		if (whole.rc != WEFT__HTTP_DONE)
			test_fail(__FILE__, __LINE__, "%.*s\ngives %d (%s)", (int)good->size,
			          good->text, whole.rc, weft_detail());
		CHECK_EQ(whole.body_size, strlen(good->body));
		CHECK(whole.body_hash == hash_of(good->body));
		CHECK_EQ(whole.used, good->size - good->rest);
		CHECK_EQ(whole.body.trailers.count, good->trailers);
		CHECK_EQ(whole.close_rc, 0);
	}
}

TEST(body_is_complete_only_with_its_last_byte)
{
	for (size_t i = 0; i < sizeof(good_bodies) / sizeof(good_bodies[0]); i++) {
		const struct good *good = &good_bodies[i];

		for (size_t n = 0; n < good->size - good->rest; n++) {
			feed_all_ways(&chunked, good->text, n);
			CHECK_EQ(whole.rc, WEFT__HTTP_MORE);
			CHECK_EQ(whole.close_rc, WEFT_ETRUNCATED);
		}
	}
}

struct bad {
	int status;
	const char *text;
	size_t size;
};

static const struct bad bad_bodies[] = {
	{ 400, S("\r\n") },
	{ 400, S(" 1\r\nx") },
	{ 400, S("1 \r\nx") },
	{ 400, S("1\t\r\nx") },
	{ 400, S("+1\r\nx") },
	{ 400, S("-1\r\nx") },
	{ 400, S("0x1\r\nx") },
	{ 400, S("g\r\nx") },
	{ 400, S("1g\r\nx") },
	{ 400, S("1.\r\nx") },
	{ 400, S("1_0\r\nx") },
	{ 400, S("1\0\r\nx") },
	{ 400, S("\xef\xbc\x91\r\nx") },
	{ 400, S("1\nx") },
	{ 400, S("1\rx") },
	{ 400, S("1\r\r\nx") },
	{ 400, S("00000000000000001\r\nx") },
	{ 400, S("10000000000000000\r\nx") },
	{ 400, S("1ffffffffffffffff\r\nx") },
	{ 413, S("ffffffffffffffff\r\nx") },
	{ 413, S("1000001\r\nx") },
	{ 413, S("1\r\nx\r\n1000000\r\n") },
	{ 400, S("1\r\nxy\r\n") },
	{ 400, S("1\r\nx\n0\r\n\r\n") },
	{ 400, S("1\r\nx\rx") },
	{ 400, S("1\r\nx0\r\n\r\n") },
	{ 400, S("2\r\nx\r\n0\r\n\r\n") },
	{ 400, S("1;\r\nx") },
	{ 400, S("1; a\r\nx") },
	{ 400, S("1 ;a\r\nx") },
	{ 400, S("1;a;\r\nx") },
	{ 400, S("1;a=\r\nx") },
	{ 400, S("1;=a\r\nx") },
	{ 400, S("1;a=b=c\r\nx") },
	{ 400, S("1;a=\"b\"c\r\nx") },
	{ 400, S("1;a=b\"c\"\r\nx") },
	{ 400, S("1;a\nx") },
	{ 400, S("1;a=\"\r\n\"\r\nx") },
	{ 400, S("1;a=\"b\nc\"\r\nx") },
	{ 400, S("1;a=\"\\\r\n\"\r\nx") },
	{ 400, S("1;a\xff\r\nx") },
	{ 400, S("0\r\nA : b\r\n\r\n") },
	{ 400, S("0\r\n A: b\r\n\r\n") },
	{ 400, S("0\r\nA: b\r\n c\r\n\r\n") },
	{ 400, S("0\r\nA: b\n\r\n") },
	{ 400, S("0\r\nA: b\rc\r\n\r\n") },
	{ 400, S("0\r\nA: \0\r\n\r\n") },
	{ 400, S("0\r\nGET / HTTP/1.1\r\n\r\n") },
	{ 400, S("0\r\n\n") },
	{ 400, S("0\r\nContent-Length: 1\r\n\r\n") },
	{ 400, S("0\r\ntransfer-encoding: chunked\r\n\r\n") },
	{ 400, S("0\r\nA: b\r\nHOST: a\r\n\r\n") },
	{ 400, S("0\r\nAuthorization: a\r\n\r\n") },
	{ 400, S("0\r\nSet-Cookie: a\r\n\r\n") },
	{ 400, S("0\r\nContent-Encoding: gzip\r\n\r\n") },
	{ 400, S("0\r\nConnection: close\r\n\r\n") },
	{ 400, S("0\r\nTrailer: a\r\n\r\n") },
	{ 400, S("0\r\nExpect: 100-continue\r\n\r\n") },
};

TEST(malformed_chunks_and_trailers_are_refused_wherever_they_are_split)
{
	for (size_t i = 0; i < sizeof(bad_bodies) / sizeof(bad_bodies[0]); i++) {
		const struct bad *bad = &bad_bodies[i];

		feed_all_ways(&chunked, bad->text, bad->size);
		if (whole.fault.status != bad->status || whole.rc >= 0)
			test_fail(__FILE__, __LINE__, "%.*s\ngives %d, not %d", (int)bad->size,
			          bad->text, whole.fault.status, bad->status);
		CHECK_EQ(whole.close_rc, whole.rc);
	}
}

TEST(trailer_is_found_at_the_position_of_the_last_step)
{
	static const char text[] = "1\r\nx\r\n0\r\nName:  value \r\n\r\n";
	const struct weft__http_field *field;
	uint32_t index = 0;

	feed_all_ways(&chunked, text, sizeof(text) - 1);
	field = weft__http_field_next(&whole.body.trailers, text + whole.trailers_at, "name",
	                              &index);
	CHECK(field);
	CHECK_EQ(field->value.size, 5);
	CHECK(memcmp(text + whole.trailers_at + field->value.at, "value", 5) == 0);
}

/* --- limits ------------------------------------------------------------------- */

static char big[1 << 17];

static void
check(const struct feed *feed, size_t size, int status)
{
	feed_run(feed, big, size, (struct feed_cut){ .how = FEED_WHOLE }, &whole);
	feed_run(feed, big, size, (struct feed_cut){ FEED_RANDOM, size }, &other);
	CHECK(feed_difference(&whole, &other) == NULL);
	CHECK_EQ(whole.fault.status, status);
	CHECK(status != 0 || whole.rc == WEFT__HTTP_DONE);
}

TEST(chunked_body_at_the_limit_passes_and_one_byte_more_is_413)
{
	static const char text[] = "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
	struct feed feed = { .kind = FEED_CHUNKED, .limits.body_max = 5 };

	feed_all_ways(&feed, text, sizeof(text) - 1);
	CHECK_EQ(whole.rc, WEFT__HTTP_DONE);
	feed.limits.body_max = 4;
	feed_all_ways(&feed, text, sizeof(text) - 1);
	CHECK_EQ(whole.fault.status, 413);
	CHECK_EQ(whole.rc, WEFT_EMSGSIZE);
	CHECK_EQ(whole.body_size, 3);
}

TEST(body_without_a_limit_may_have_64_bit_sizes)
{
	static const char text[] = "1\r\nx\r\nfffffffffffffffe\r\nx";
	static const char over[] = "1\r\nx\r\nffffffffffffffff\r\nx";
	struct feed feed = { .kind = FEED_CHUNKED, .limits.body_max = UINT64_MAX };

	feed_all_ways(&feed, text, sizeof(text) - 1);
	CHECK_EQ(whole.rc, WEFT__HTTP_MORE);
	CHECK_EQ(whole.body_size, 2);
	feed_all_ways(&feed, over, sizeof(over) - 1);
	CHECK_EQ(whole.fault.status, 413);
}

TEST(body_until_close_is_refused_beyond_its_limit)
{
	static const char text[] = "HTTP/1.1 200 OK\r\n\r\n12345";
	struct feed feed = { .kind = FEED_RESPONSE, .limits.body_max = 5 };

	feed_all_ways(&feed, text, sizeof(text) - 1);
	CHECK_EQ(whole.rc, WEFT__HTTP_MORE);
	CHECK_EQ(whole.close_rc, 0);
	CHECK_EQ(whole.body_size, 5);
	feed.limits.body_max = 4;
	feed_all_ways(&feed, text, sizeof(text) - 1);
	CHECK_EQ(whole.fault.status, 413);
	CHECK_EQ(whole.body_size, 4);
}

/* Make chunks of one byte, each with an extension of `extension` bytes, not counting its
 * semicolon.  Returns the size. */
static size_t
make_extensions(size_t chunks, size_t extension)
{
	size_t at = 0;

	for (size_t i = 0; i < chunks; i++) {
		at += (size_t)snprintf(big + at, sizeof(big) - at, "1;");
		memset(big + at, 'e', extension);
		at += extension;
		at += (size_t)snprintf(big + at, sizeof(big) - at, "\r\nx\r\n");
	}
	return at + (size_t)snprintf(big + at, sizeof(big) - at, "0\r\n\r\n");
}

TEST(chunk_extensions_are_limited_per_chunk_and_per_body)
{
	/* The CR that ends an extension is counted, too. */
	struct feed feed = { .kind = FEED_CHUNKED, .limits.head_max = 2000 };

	check(&chunked, make_extensions(1, 255), 0);
	check(&chunked, make_extensions(1, 256), 400);
	check(&chunked, make_extensions(100, 255), 0);
	check(&feed, make_extensions(20, 99), 0);
	check(&feed, make_extensions(21, 99), 400);
}

TEST(trailers_have_the_limits_of_a_header_section)
{
	struct feed feed = { .kind = FEED_CHUNKED, .limits.head_max = 100, .room = 2 };
	size_t at = (size_t)snprintf(big, sizeof(big), "0\r\nA: ");

	memset(big + at, 'a', 93);
	memcpy(big + at + 93, "\r\n\r\n", 4);
	check(&feed, at + 97, 0);
	CHECK_EQ(at, 6);
	memcpy(big + at + 94, "\r\n\r\n", 4);
	big[at + 93] = 'a';
	check(&feed, at + 98, 431);
	at = (size_t)snprintf(big, sizeof(big), "0\r\nA:\r\nB:\r\n\r\n");
	check(&feed, at, 0);
	at = (size_t)snprintf(big, sizeof(big), "0\r\nA:\r\nB:\r\nC:\r\n\r\n");
	check(&feed, at, 431);
}

TEST(mutated_chunks_have_the_same_result_wherever_they_are_split)
{
	static const char likely[] = "\r\n\r\n01fF;=\"\\ \t:aX\0\x7f";
	uint64_t seed = test_seed();
	size_t count = sizeof(good_bodies) / sizeof(good_bodies[0]);

	for (size_t i = 0; i < 20000; i++) {
		const struct good *good = &good_bodies[i % count];
		struct feed_cut cut = { FEED_RANDOM, test_random(&seed) };

		memcpy(big, good->text, good->size);
		for (int n = 0; n < 2; n++)
			big[test_random(&seed) % good->size] =
				likely[test_random(&seed) % (sizeof(likely) - 1)];
		feed_run(&chunked, big, good->size, (struct feed_cut){ .how = FEED_WHOLE }, &whole);
		feed_run(&chunked, big, good->size, cut, &other);
		CHECK(feed_difference(&whole, &other) == NULL);
		cut.how = FEED_BYTES;
		feed_run(&chunked, big, good->size, cut, &other);
		CHECK(feed_difference(&whole, &other) == NULL);
	}
}
