/* redis_format_test.c - command arguments: from spans, and from a format. */
#include <locale.h>
#include "base/sys.h"
#include "proto/resp_feed.h"
#include "test.h"

static int
format(struct weft__resp_args *out, const char *text, ...)
{
	va_list args;
	int rc;

	va_start(args, text);
	rc = weft__resp_format(out, text, args);
	va_end(args);
	return rc;
}

/* Check that the arguments, joined by bars, are `want`.  Releases them. */
static void
words_are(struct weft__resp_args words, const char *want)
{
	struct resp_text text = { 0 };

	for (size_t i = 0; i < words.count; i++) {
		if (i > 0)
			resp_add(&text, "|", 1);
		resp_add(&text, words.args[i].data, words.args[i].size);
	}
	resp_add(&text, "", 1);
	CHECK_STR(text.data, want);
	CHECK_EQ(strlen(text.data), strlen(want));
	free(text.data);
	weft_release(words.args);
}

#define WORDS(want, ...)                                   \
	do {                                               \
		struct weft__resp_args words_;             \
		CHECK_EQ(format(&words_, __VA_ARGS__), 0); \
		words_are(words_, want);                   \
	} while (0)

TEST(spaces_in_the_format_separate_arguments)
{
	WORDS("GET|key", "GET key");
	WORDS("GET|key", "  GET   key ");
	WORDS("PING", "PING");
	WORDS("100%|a", "100%% a");
}

TEST(formatted_values_are_never_split)
{
	WORDS("SET|a key|two words\r\n", "SET %s %s", "a key", "two words\r\n");
	WORDS("GET|user:7:name", "GET user:%d:%s", 7, "name");
	WORDS("SET|k|", "SET k %s", "");
	WORDS("SET|k|", "SET k %b", NULL, (size_t)0);
	WORDS("GET|ab", "GET %s%s", "a", "b");
	WORDS("x|", "x %s ", "");
}

TEST(byte_values_may_contain_any_bytes)
{
	struct weft__resp_args words;

	CHECK_EQ(format(&words, "SET k %b", "a\0b\r\n", (size_t)5), 0);
	CHECK_EQ(words.count, 3);
	CHECK_EQ(words.args[2].size, 5);
	CHECK(memcmp(words.args[2].data, "a\0b\r\n", 5) == 0);
	weft_release(words.args);
}

TEST(numbers_are_formatted_as_by_printf)
{
	WORDS("-1|2|3|ff|17", "%d %i %u %x %o", -1, 2, 3u, 255u, 15u);
	WORDS("-1|-2|18446744073709551615", "%ld %lld %lu", -1L, -2LL, ~0UL);
	WORDS("5|6|7|8", "%zu %jd %td %llX", (size_t)5, (intmax_t)6, (ptrdiff_t)7, 8ULL);
	WORDS("-1|255|-1|65535", "%hhd %hhu %hd %hu", 255, 255, 65535, 65535);
	WORDS("1.500000|1.5|1e+20|0.1", "%f %g %g %Lg", 1.5, 1.5, 1e20, 0.1L);
	WORDS("1.50|0x1p+0|2e+00|1.500000", "%.2f %a %.0e %lf", 1.5, 1.0, 2.0, 1.5);
	WORDS("00042|+7|0x1f", "%05d %+d %#x", 42, 7, 31u);
	WORDS("   1|1   |", "%4d %-4d %s", 1, 1, "");
}

TEST(padding_does_not_split_arguments)
{
	struct weft__resp_args words;

	CHECK_EQ(format(&words, "a %2000d", 5), 0);
	CHECK_EQ(words.count, 2);
	CHECK_EQ(words.args[1].size, 2000);
	weft_release(words.args);
}

TEST(decimal_point_does_not_depend_on_the_locale)
{
	static const char *const locales[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE",
		                               "ps_AF.UTF-8" };
	bool set = false;

	for (size_t i = 0; i < 4; i++) {
		set |= setlocale(LC_NUMERIC, locales[i]) != NULL;
		WORDS("a|1.50|-2.5e+10|x", "a %.2f %g x", 1.5, -2.5e10);
	}
	(void)setlocale(LC_NUMERIC, "C");
	if (!set)
		printf("no locale with a comma is installed\n");
}

TEST(invalid_format_is_refused_with_its_position)
{
	static const char *const wrong[] = {
		"GET %",
		"GET %q",
		"GET %*d",
		"GET %.*s",
		"GET %5s",
		"GET %ls",
		"GET %n",
		"GET %c",
		"GET %p",
		"GET %5%",
		"GET %zf",
		"GET %Ld",
		"GET %h",
		"%.",
		"%00000000000000000000000000000000000000000d",
		"%0000000000000000000.0000000000000000000000d",
	};
	struct weft__resp_args words = { 99, NULL };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (format(&words, wrong[i], 1, 1, 1) != WEFT_EINVAL)
			test_fail(__FILE__, __LINE__, "%s is not refused", wrong[i]);
	CHECK_EQ(format(&words, "GET a%q"), WEFT_EINVAL);
	CHECK_STR(weft_detail(),
	          "weft_redis_callf: invalid conversion or value, at byte 5 of \"GET a%q\"");
	CHECK_EQ(words.count, 99);
}

TEST(empty_formats_and_null_values_are_refused)
{
	struct weft__resp_args words;

	CHECK_EQ(format(&words, ""), WEFT_EINVAL);
	CHECK_EQ(format(&words, "   "), WEFT_EINVAL);
	CHECK_EQ(format(&words, NULL), WEFT_EINVAL);
	CHECK_EQ(format(&words, "GET %s", (char *)NULL), WEFT_EINVAL);
	CHECK_EQ(format(&words, "GET %b", NULL, (size_t)1), WEFT_EINVAL);
}

static void *
no_memory(size_t size)
{
	(void)size;
	return NULL;
}

TEST(format_fails_without_memory)
{
	const struct weft__sys *before = weft__sys;
	struct weft__sys sys = *before;
	struct weft__resp_args words;

	sys.alloc = no_memory;
	weft__sys = &sys;
	CHECK_EQ(format(&words, "GET %s", "a"), WEFT_ENOMEM);
	weft__sys = before;
}

/* --- wire format ----------------------------------------------------------- */

static void
check_put(const weft_span *words, size_t count)
{
	size_t size = weft__resp_size(words, count);
	char *bytes = malloc(size);
	weft_redis_reply *reply;

	CHECK(weft__resp_put(bytes, words, count) == bytes + size);
	reply = resp_read(bytes, size, false);
	CHECK_EQ(weft_redis_reply_type(reply), WEFT_REDIS_LIST);
	CHECK_EQ(weft_redis_count(reply), count);
	for (size_t i = 0; i < count; i++) {
		weft_span text;

		CHECK_EQ(weft_redis_text(weft_redis_item(reply, i), &text), 0);
		CHECK_EQ(text.size, words[i].size);
		CHECK(text.size == 0 || memcmp(text.data, words[i].data, text.size) == 0);
	}
	weft_redis_reply_free(reply);
	free(bytes);
}

TEST(arguments_are_encoded_as_a_list_of_bulk_strings)
{
	weft_span words[] = { weft_text("GET"), weft_text("a") };
	char bytes[64];
	char *end = weft__resp_put(bytes, words, 2);

	*end = '\0';
	CHECK_STR(bytes, "*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
	CHECK_EQ(weft__resp_size(words, 2), end - bytes);
}

TEST(arguments_of_all_sizes_and_counts_are_read_back)
{
	static char data[100001];
	static weft_span words[1200];
	uint64_t random = test_seed();

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)test_random(&random);
	for (size_t size = 1; size <= 100000; size *= 10)
		for (size_t more = 0; more < 3; more++)
			check_put(&(weft_span){ data, size + more - 1 }, 1);
	check_put(&(weft_span){ NULL, 0 }, 1);
	for (size_t i = 0; i < 1200; i++)
		words[i] = (weft_span){ data + i, test_random(&random) % 30 };
	for (size_t count = 1; count < 1200; count += 1 + count / 7)
		check_put(words, count);
}
