/* redis_reply_test.c - the contents of a reply: types, items, texts, numbers, fields, owners. */
#include <locale.h>
#include <math.h>
#include "proto/resp_feed.h"
#include "unit/probe.h"

/* Parses a reply.  The caller frees it. */
static weft_redis_reply *
reply_of(const char *bytes)
{
	weft_redis_reply *reply = resp_read(bytes, strlen(bytes), false);

	CHECK(reply != NULL);
	return reply;
}

static void
text_is(const weft_redis_reply *reply, const char *want)
{
	weft_span text;

	CHECK_EQ(weft_redis_text(reply, &text), 0);
	CHECK_EQ(text.size, strlen(want));
	CHECK_STR(text.data, want);
}

TEST(each_reply_type_is_reported)
{
	static const struct {
		const char *bytes;
		weft_redis_type kind;
		size_t count;
	} kinds[] = {
		{ "_\r\n", WEFT_REDIS_NIL, 0 },
		{ "+a\r\n", WEFT_REDIS_TEXT, 0 },
		{ "(5\r\n", WEFT_REDIS_TEXT, 0 },
		{ "$3\r\nabc\r\n", WEFT_REDIS_TEXT, 0 },
		{ ":7\r\n", WEFT_REDIS_INTEGER, 0 },
		{ ",7\r\n", WEFT_REDIS_NUMBER, 0 },
		{ "#t\r\n", WEFT_REDIS_BOOL, 0 },
		{ "-E\r\n", WEFT_REDIS_ERROR, 0 },
		{ "*2\r\n_\r\n_\r\n", WEFT_REDIS_LIST, 2 },
		{ "%1\r\n_\r\n_\r\n", WEFT_REDIS_MAP, 2 },
		{ "~1\r\n_\r\n", WEFT_REDIS_SET, 1 },
		{ ">1\r\n_\r\n", WEFT_REDIS_PUSH, 1 },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		weft_redis_reply *reply = reply_of(kinds[i].bytes);
		size_t count = kinds[i].count;

		CHECK_EQ(weft_redis_reply_type(reply), kinds[i].kind);
		CHECK_EQ(weft_redis_count(reply), count);
		CHECK(weft_redis_item(reply, count) == NULL);
		CHECK(weft_redis_item(reply, SIZE_MAX) == NULL);
		CHECK(count == 0 || weft_redis_item(reply, count - 1) != NULL);
		weft_redis_reply_free(reply);
	}
}

TEST(null_reply_is_nil)
{
	weft_span text;
	int64_t integer;
	double number;

	CHECK_EQ(weft_redis_reply_type(NULL), WEFT_REDIS_NIL);
	CHECK_EQ(weft_redis_count(NULL), 0);
	CHECK(weft_redis_item(NULL, 0) == NULL);
	CHECK(weft_redis_field(NULL, "a") == NULL);
	CHECK_EQ(weft_redis_text(NULL, &text), WEFT_ENOENT);
	CHECK_EQ(weft_redis_integer(NULL, &integer), WEFT_ENOENT);
	CHECK_EQ(weft_redis_number(NULL, &number), WEFT_ENOENT);
	CHECK_STR(weft_detail(), "weft_redis_number: nil, not a number");
	weft_redis_reply_free(NULL);
}

TEST(texts_and_errors_are_nul_terminated)
{
	weft_redis_reply *reply = reply_of("*5\r\n+ab\r\n$2\r\ncd\r\n-ERR e\r\n"
	                                   "=6\r\ntxt:fg\r\n(12\r\n");

	text_is(weft_redis_item(reply, 0), "ab");
	text_is(weft_redis_item(reply, 1), "cd");
	text_is(weft_redis_item(reply, 2), "ERR e");
	text_is(weft_redis_item(reply, 3), "fg");
	text_is(weft_redis_item(reply, 4), "12");
	weft_redis_reply_free(reply);
}

TEST(getter_of_another_type_fails_and_names_the_type)
{
	static const char *const bytes[] = { ":7\r\n", ",7\r\n", "#t\r\n", "*1\r\n+a\r\n",
		                             "%0\r\n" };
	weft_redis_reply *reply;
	weft_span text = { "kept", 4 };
	int64_t integer = 4;

	for (size_t i = 0; i < 5; i++) {
		reply = reply_of(bytes[i]);
		CHECK_EQ(weft_redis_text(reply, &text), WEFT_EINVAL);
		weft_redis_reply_free(reply);
	}
	CHECK_STR(weft_detail(), "weft_redis_text: a map, not a text");
	reply = reply_of("-WRONGTYPE no\r\n");
	CHECK_EQ(weft_redis_integer(reply, &integer), WEFT_EINVAL);
	CHECK_STR(weft_detail(), "weft_redis_integer: an error \"WRONGTYPE no\", not an integer");
	weft_redis_reply_free(reply);
	CHECK(text.size == 4 && integer == 4);
}

/* The integer of the reply, or the error of the getter. */
static int64_t
integer_of(const char *bytes)
{
	weft_redis_reply *reply = reply_of(bytes);
	int64_t integer = 0;
	int rc = weft_redis_integer(reply, &integer);

	weft_redis_reply_free(reply);
	return rc < 0 ? rc : integer;
}

TEST(integer_getter_accepts_integers_bools_and_texts)
{
	CHECK_EQ(integer_of(":-12\r\n"), -12);
	CHECK_EQ(integer_of("#t\r\n"), 1);
	CHECK_EQ(integer_of("#f\r\n"), 0);
	CHECK_EQ(integer_of("$2\r\n42\r\n"), 42);
	CHECK_EQ(integer_of("+0\r\n"), 0);
	CHECK_EQ(integer_of("$20\r\n-9223372036854775808\r\n"), INT64_MIN);
	CHECK_EQ(integer_of("$19\r\n9223372036854775807\r\n"), INT64_MAX);
	CHECK_EQ(integer_of("$19\r\n9223372036854775808\r\n"), WEFT_EINVAL);
	CHECK_EQ(integer_of("$0\r\n\r\n"), WEFT_EINVAL);
	CHECK_EQ(integer_of("$1\r\n-\r\n"), WEFT_EINVAL);
	CHECK_EQ(integer_of("$2\r\n+1\r\n"), WEFT_EINVAL);
	CHECK_EQ(integer_of("$2\r\n-0\r\n"), WEFT_EINVAL);
	CHECK_EQ(integer_of("$2\r\n07\r\n"), WEFT_EINVAL);
	CHECK_EQ(integer_of("$3\r\n1.5\r\n"), WEFT_EINVAL);
	CHECK_EQ(integer_of("$2\r\n1 \r\n"), WEFT_EINVAL);
	CHECK_EQ(integer_of(",5\r\n"), WEFT_EINVAL);
	CHECK_EQ(integer_of("-5\r\n"), WEFT_EINVAL);
	CHECK_EQ(integer_of("$-1\r\n"), WEFT_ENOENT);
}

static double
number_of(const char *bytes)
{
	weft_redis_reply *reply = reply_of(bytes);
	double number = -12345;

	CHECK_EQ(weft_redis_number(reply, &number), 0);
	weft_redis_reply_free(reply);
	return number;
}

TEST(number_getter_accepts_numbers_integers_and_texts)
{
	int64_t integer;
	double number;
	weft_redis_reply *reply = reply_of("#t\r\n");

	CHECK(number_of(",1.5\r\n") == 1.5);
	CHECK(number_of(":-3\r\n") == -3);
	CHECK(number_of("$4\r\n2e10\r\n") == 2e10);
	CHECK(number_of("+0.1\r\n") == 0.1);
	CHECK(number_of("(100000000000000000000\r\n") == 1e20);
	CHECK(isinf(number_of(",inf\r\n")));
	CHECK(number_of(",-inf\r\n") == -INFINITY);
	CHECK(isnan(number_of(",nan\r\n")));
	CHECK(signbit(number_of(",-0\r\n")));
	CHECK_EQ(weft_redis_number(reply, &number), WEFT_EINVAL);
	weft_redis_reply_free(reply);
	reply = reply_of("+1.5x\r\n");
	CHECK_EQ(weft_redis_number(reply, &number), WEFT_EINVAL);
	CHECK_STR(weft_detail(), "weft_redis_number: a text \"1.5x\", not a number");
	CHECK_EQ(weft_redis_integer(reply, &integer), WEFT_EINVAL);
	weft_redis_reply_free(reply);
}

/* Hard cases of rounding: exact halves, and digits far behind that decide. */
TEST(numbers_are_rounded_to_the_nearest_double)
{
	static const char *const texts[] = {
		"9007199254740993",
		"9007199254740993.00000000000000000000000000000001",
		"2.2250738585072011e-308",
		"2.2250738585072014e-308",
		"4.9406564584124654e-324",
		"2.4703282292062327e-324",
		"2.4703282292062328e-324",
		"1.7976931348623157e308",
		"1.7976931348623159e308",
		"123456789012345678901234567890",
		"0.000000000000000000000000000000000000000000123",
		"1e400",
		"1e-400",
		"1e99999999999999999999",
		"1e-99999999999999999999",
		"0e99999999999999999999",
		"8.5e22",
		"123456789012345e22",
		"3e-22",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		double number, want = strtod(texts[i], NULL);

		CHECK(weft__resp_number(texts[i], strlen(texts[i]), &number));
		if (memcmp(&number, &want, sizeof(want)) != 0)
			test_fail(__FILE__, __LINE__, "%s is %a, not %a", texts[i], number, want);
	}
}

/* An exact half followed by 1,999 zeros and a one is above the half. */
TEST(rounding_considers_digits_far_behind)
{
	char text[2100];
	size_t size = (size_t)snprintf(text, sizeof(text), "9007199254740993.");
	double number;

	memset(text + size, '0', 2000);
	CHECK(weft__resp_number(text, size + 2000, &number));
	CHECK(number == 9007199254740992.0);
	text[size + 1999] = '1';
	CHECK(weft__resp_number(text, size + 2000, &number));
	CHECK(number == 9007199254740994.0);
	memset(text, '1', 2000);
	CHECK(weft__resp_number(text, 2000, &number) && isinf(number));
}

TEST(random_numbers_round_trip)
{
	uint64_t random = test_seed();

	for (int i = 0; i < 100000; i++) {
		uint64_t bits = test_random(&random);
		double want, got;
		char text[64];
		int size;

		memcpy(&want, &bits, sizeof(want));
		if (i & 1)
			want = (double)(int64_t)bits / 1000;
		size = snprintf(text, sizeof(text), "%.17g", want);
		CHECK(weft__resp_number(text, (size_t)size, &got));
		CHECK(got == want || (isnan(got) && isnan(want)));
	}
}

TEST(decimal_point_does_not_depend_on_the_locale)
{
	static const char *const locales[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE",
		                               "ru_RU.UTF-8" };
	const char *set = NULL;

	for (size_t i = 0; i < 4 && !set; i++)
		set = setlocale(LC_NUMERIC, locales[i]);
	CHECK(number_of(",1234567890.12345678901\r\n") == 1234567890.12345678901);
	CHECK(number_of(",1.5\r\n") == 1.5);
	(void)setlocale(LC_NUMERIC, "C");
	if (!set)
		printf("no locale with a comma is installed\n");
}

TEST(field_is_found_in_a_map_and_in_a_list_of_pairs)
{
	static const char *const bytes[] = {
		"%3\r\n+a\r\n:1\r\n+bc\r\n:2\r\n+a\r\n:3\r\n",
		"*6\r\n$1\r\na\r\n:1\r\n$2\r\nbc\r\n:2\r\n+a\r\n:3\r\n",
		"*7\r\n$1\r\na\r\n:1\r\n$2\r\nbc\r\n:2\r\n:4\r\n+z\r\n+d\r\n",
	};

	for (size_t i = 0; i < 3; i++) {
		weft_redis_reply *reply = reply_of(bytes[i]);
		int64_t integer = 0;

		CHECK_EQ(weft_redis_integer(weft_redis_field(reply, "a"), &integer), 0);
		CHECK_EQ(integer, 1);
		CHECK_EQ(weft_redis_integer(weft_redis_field(reply, "bc"), &integer), 0);
		CHECK_EQ(integer, 2);
		CHECK(weft_redis_field(reply, "b") == NULL);
		CHECK(weft_redis_field(reply, "") == NULL);
		CHECK(weft_redis_field(reply, "z") == NULL);
		CHECK(weft_redis_field(reply, "d") == NULL);
		CHECK(weft_redis_field(reply, NULL) == NULL);
		weft_redis_reply_free(reply);
	}
}

TEST(other_types_have_no_fields)
{
	static const char *const bytes[] = {
		"~2\r\n+a\r\n+b\r\n", ">2\r\n+a\r\n+b\r\n", "+a\r\n", "_\r\n", "*0\r\n",
		"*1\r\n+a\r\n"
	};

	for (size_t i = 0; i < 6; i++) {
		weft_redis_reply *reply = reply_of(bytes[i]);

		CHECK(weft_redis_field(reply, "a") == NULL);
		weft_redis_reply_free(reply);
	}
}

TEST(null_output_is_refused)
{
	weft_redis_reply *reply = reply_of("+1\r\n");

	CHECK_EQ(weft_redis_text(reply, NULL), WEFT_EINVAL);
	CHECK_EQ(weft_redis_integer(reply, NULL), WEFT_EINVAL);
	CHECK_EQ(weft_redis_number(reply, NULL), WEFT_EINVAL);
	weft_redis_reply_free(reply);
}

TEST(reply_lives_until_its_last_owner_frees_it)
{
	for (int taking = 0; taking < 2; taking++) {
		int64_t held = test_live_allocations();
		weft_redis_reply *reply = resp_read("*1\r\n+abc\r\n", 10, taking);

		CHECK(weft__resp_ref(reply) == reply);
		weft_redis_reply_free(reply);
		text_is(weft_redis_item(reply, 0), "abc");
		weft_redis_reply_free(reply);
		CHECK_EQ(test_live_allocations(), held);
	}
}

static void *
read_and_free(void *arg)
{
	text_is(weft_redis_item(arg, 0), "abc");
	weft_redis_reply_free(arg);
	return NULL;
}

TEST(owners_on_several_threads_free_a_reply_once_each)
{
	for (int i = 0; i < 100; i++) {
		weft_redis_reply *reply = resp_read("*1\r\n+abc\r\n", 10, i & 1);
		pthread_t threads[4];

		for (int t = 0; t < 4; t++)
			threads[t] = thread(read_and_free, weft__resp_ref(reply));
		read_and_free(reply);
		for (int t = 0; t < 4; t++)
			CHECK_EQ(pthread_join(threads[t], NULL), 0);
	}
}

TEST(reply_is_a_shareable_value)
{
	int64_t held = test_live_allocations();
	weft_value value = weft_value_ptr(&weft_type_redis, reply_of("+abc\r\n"));
	weft_value other;

	CHECK_EQ(weft_value_share(&value, &other), 0);
	CHECK(value.as.ptr == other.as.ptr);
	weft_value_drop(&value);
	text_is(other.as.ptr, "abc");
	weft_value_drop(&other);
	CHECK_EQ(test_live_allocations(), held);
}
