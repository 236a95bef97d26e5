/* http_values_test.c - paths, queries, dates, ranges, entity tags, encodings. */
#include "http/parse/uri.h"
#include "http/parse/http_values.h"
#include "test.h"

/* --- paths -------------------------------------------------------------------- */

struct path {
	const char *text, *want; /* NULL: WEFT_EINVAL */
};

static const struct path paths[] = {
	{ "/", "/" },
	{ "//", "//" },
	{ "/a/b", "/a/b" },
	{ "/a/b/", "/a/b/" },
	{ "/a//b", "/a//b" },
	{ "/%61%2D%7e", "/a-~" },
	{ "/%c3%A9", "/\xc3\xa9" },
	{ "/a+b", "/a+b" },
	{ "/%25", "/%" },
	{ "/%252e%252e/", "/%2e%2e/" },
	{ "/.", "/" },
	{ "/./", "/" },
	{ "/./a", "/a" },
	{ "/a/.", "/a/" },
	{ "/a/./b", "/a/b" },
	{ "/a/..", "/" },
	{ "/a/../b", "/b" },
	{ "/a/b/../../c", "/c" },
	{ "/a/b/../c/./d/..", "/a/c/" },
	{ "/a//../b", "/a/b" },
	{ "/a/%2e%2E/b", "/b" },
	{ "/a/.%2e/b", "/b" },
	{ "/...", "/..." },
	{ "/.a/..b/c..", "/.a/..b/c.." },
	{ "/.../..", "/" },
	{ "", NULL },
	{ "a", NULL },
	{ "*", NULL },
	{ "/..", NULL },
	{ "/../a", NULL },
	{ "/a/../../b", NULL },
	{ "/%2e%2e/a", NULL },
	{ "/a/..%2f..%2fb", NULL },
	{ "/a%2Fb", NULL },
	{ "/a%5cb", NULL },
	{ "/a\\b", NULL },
	{ "/a\\..\\b", NULL },
	{ "/a%00", NULL },
	{ "/a%0a", NULL },
	{ "/a%1f", NULL },
	{ "/a%7f", NULL },
	{ "/%", NULL },
	{ "/%a", NULL },
	{ "/%zz", NULL },
	{ "/%-1", NULL },
	{ "/%u0041", NULL },
};

TEST(paths_are_decoded_once_and_cannot_leave_their_root)
{
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		size_t size = strlen(paths[i].text);
		char *text = malloc(size + 1), *out = malloc(size + 1);
		ssize_t rc;

		memcpy(text, paths[i].text, size);
		rc = weft__http_path_decode(text, size, out, size + 1);
		if (paths[i].want && rc < 0)
			test_fail(__FILE__, __LINE__, "%s: %s", paths[i].text, weft_detail());
		if (paths[i].want) {
			CHECK_STR(out, paths[i].want);
			CHECK_EQ(rc, strlen(out));
		} else if (rc != WEFT_EINVAL) {
			test_fail(__FILE__, __LINE__, "%s gives %zd", paths[i].text, rc);
		}
		free(text);
		free(out);
	}
}

TEST(path_that_does_not_fit_the_buffer_is_refused)
{
	char out[8];

	CHECK_EQ(weft__http_path_decode("/abc", 4, out, 5), 4);
	CHECK_EQ(weft__http_path_decode("/abc", 4, out, 4), WEFT_EMSGSIZE);
	CHECK_EQ(weft__http_path_decode("/", 1, out, 1), WEFT_EMSGSIZE);
	CHECK_EQ(weft__http_path_decode("/", 1, out, 0), WEFT_EMSGSIZE);
	CHECK_EQ(weft__http_path_decode("/a/../b/../c/..", 15, out, 6), 1);
	CHECK_EQ(weft__http_path_decode("/a/..", 5, out, 5), WEFT_EMSGSIZE);
}

/* --- queries ------------------------------------------------------------------ */

static void
check_query(const char *text, const char *want)
{
	struct weft__http_query query = { text, strlen(text) };
	struct weft__http_pair pair;
	char got[200] = "";
	size_t at = 0;

	while (weft__http_query_next(&query, &pair))
		at += (size_t)snprintf(got + at, sizeof(got) - at, "[%.*s|%.*s]",
		                       (int)pair.name_size, pair.name, (int)pair.value_size,
		                       pair.value);
	CHECK_STR(got, want);
	CHECK(!weft__http_query_next(&query, &pair));
}

TEST(query_pairs_are_split_at_the_first_equals_sign)
{
	check_query("", "");
	check_query("&&", "");
	check_query("a", "[a|]");
	check_query("a=", "[a|]");
	check_query("=a", "[|a]");
	check_query("a=b", "[a|b]");
	check_query("a=b&c=d", "[a|b][c|d]");
	check_query("&a=b&&c&", "[a|b][c|]");
	check_query("a=b=c;d&a=x", "[a|b=c;d][a|x]");
}

TEST(query_is_decoded_with_plus_as_space)
{
	char out[16];

	CHECK_EQ(weft__http_query_decode("a+b%2B%2f%c3", 12, out, 16), 6);
	CHECK_STR(out, "a b+/\xc3");
	CHECK_EQ(weft__http_query_decode("", 0, out, 1), 0);
	CHECK_EQ(weft__http_query_decode("", 0, out, 0), WEFT_EMSGSIZE);
	CHECK_EQ(weft__http_query_decode("ab", 2, out, 3), 2);
	CHECK_EQ(weft__http_query_decode("ab", 2, out, 2), WEFT_EMSGSIZE);
	CHECK_EQ(weft__http_query_decode("%00", 3, out, 16), WEFT_EINVAL);
	CHECK_EQ(weft__http_query_decode("a\0", 2, out, 16), WEFT_EINVAL);
	CHECK_EQ(weft__http_query_decode("%", 1, out, 16), WEFT_EINVAL);
	CHECK_EQ(weft__http_query_decode("%1", 2, out, 16), WEFT_EINVAL);
	CHECK_EQ(weft__http_query_decode("%g0", 3, out, 16), WEFT_EINVAL);
}

/* --- dates -------------------------------------------------------------------- */

#define NOW INT64_C(1800000000) /* in the year 2027 */

static int64_t
parse_date(const char *text)
{
	int64_t out = -1;
	int rc = weft__http_date_parse(text, strlen(text), NOW, &out);

	return rc < 0 ? INT64_MIN : out;
}

TEST(dates_are_read_in_all_three_forms)
{
	CHECK_EQ(parse_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
	CHECK_EQ(parse_date("Sunday, 06-Nov-94 08:49:37 GMT"), 784111777);
	CHECK_EQ(parse_date("Sun Nov  6 08:49:37 1994"), 784111777);
	CHECK_EQ(parse_date("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
	CHECK_EQ(parse_date("Wed, 31 Dec 1969 23:59:59 GMT"), -1);
	CHECK_EQ(parse_date("Tue, 29 Feb 2000 00:00:00 GMT"), 951782400);
	CHECK_EQ(parse_date("Sat Nov 16 08:49:37 2024"), 1731746977);
	CHECK_EQ(parse_date("Sat, 31 Dec 2016 23:59:60 GMT"), 1483228800);
}

TEST(two_digit_year_is_at_most_fifty_years_ahead)
{
	CHECK_EQ(parse_date("Friday, 01-Jan-77 00:00:00 GMT"),
	         parse_date("Fri, 01 Jan 2077 00:00:00 GMT"));
	CHECK_EQ(parse_date("Sunday, 01-Jan-78 00:00:00 GMT"),
	         parse_date("Sun, 01 Jan 1978 00:00:00 GMT"));
	CHECK_EQ(parse_date("Saturday, 01-Jan-00 00:00:00 GMT"),
	         parse_date("Sat, 01 Jan 2000 00:00:00 GMT"));
}

TEST(invalid_dates_are_refused)
{
	static const char *const texts[] = {
		"",
		"S",
		"Sun",
		"Sun,",
		"Sun, 06 Nov 1994 08:49:37",
		"Sun, 06 Nov 1994 08:49:37 UTC",
		"Sun, 06 Nov 1994 08:49:37 GMT ",
		"sun, 06 Nov 1994 08:49:37 GMT",
		"Son, 06 Nov 1994 08:49:37 GMT",
		"Sun, 06 Nev 1994 08:49:37 GMT",
		"Sun, 6 Nov 1994 08:49:37 GMT",
		"Sun, 00 Nov 1994 08:49:37 GMT",
		"Sun, 31 Nov 1994 08:49:37 GMT",
		"Thu, 29 Feb 1900 08:49:37 GMT",
		"Sun, 29 Feb 2026 08:49:37 GMT",
		"Sun, 06 Nov 1994 24:00:00 GMT",
		"Sun, 06 Nov 1994 08:60:37 GMT",
		"Sun, 06 Nov 1994 08:49:61 GMT",
		"Sun, 06 Nov 1994 08:49:-1 GMT",
		"Sun, 06 Nov +994 08:49:37 GMT",
		"Sunday, 06-Nov-1994 08:49:37 GMT",
		"Sunday, 06-Nov-94 08:49:37",
		"Sundae, 06-Nov-94 08:49:37 GMT",
		"Sun Nov 6 08:49:37 1994",
		"Sun Nov  6 08:49:37 94",
		"Sun Nov  6 08:49:37 1994 ",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (parse_date(texts[i]) != INT64_MIN)
			test_fail(__FILE__, __LINE__, "taken: %s", texts[i]);
}

TEST(formatted_dates_can_be_parsed_again)
{
	uint64_t seed = test_seed();
	char text[WEFT__HTTP_DATE_SIZE];

	CHECK_EQ(weft__http_date_format(784111777, text), 0);
	CHECK_STR(text, "Sun, 06 Nov 1994 08:49:37 GMT");
	CHECK_EQ(weft__http_date_format(-1, text), 0);
	CHECK_STR(text, "Wed, 31 Dec 1969 23:59:59 GMT");
	CHECK_EQ(weft__http_date_format(INT64_C(253402300799), text), 0);
	CHECK_STR(text, "Fri, 31 Dec 9999 23:59:59 GMT");
	CHECK_EQ(weft__http_date_format(INT64_C(-62167219200), text), 0);
	CHECK_STR(text, "Sat, 01 Jan 0000 00:00:00 GMT");
	CHECK_EQ(weft__http_date_format(INT64_C(253402300800), text), WEFT_EINVAL);
	CHECK_EQ(weft__http_date_format(INT64_C(-62167219201), text), WEFT_EINVAL);
	CHECK_EQ(weft__http_date_format(INT64_MIN, text), WEFT_EINVAL);
	CHECK_EQ(weft__http_date_format(INT64_MAX, text), WEFT_EINVAL);
	for (int i = 0; i < 20000; i++) {
		int64_t range = INT64_C(253402300800) + INT64_C(62167219200);
		int64_t seconds = (int64_t)(test_random(&seed) % (uint64_t)range)
		                  - INT64_C(62167219200);

		CHECK_EQ(weft__http_date_format(seconds, text), 0);
		CHECK_EQ(parse_date(text), seconds);
	}
}

TEST(modified_since_compares_with_the_date)
{
	static const char date[] = "Sun, 06 Nov 1994 08:49:37 GMT";
	size_t size = sizeof(date) - 1;

	CHECK(!weft__http_modified_since(date, size, 784111776, NOW));
	CHECK(!weft__http_modified_since(date, size, 784111777, NOW));
	CHECK(weft__http_modified_since(date, size, 784111778, NOW));
	CHECK(weft__http_modified_since(date, size, 0, 784111776));
	CHECK(weft__http_modified_since("yesterday", 9, 0, NOW));
}

/* --- ranges ------------------------------------------------------------------- */

struct range {
	const char *text;
	uint64_t total;
	int rc;
	struct weft__http_range want[3];
};

static const struct range ranges[] = {
	{ "bytes=0-4", 10, 1, { { 0, 5 } } },
	{ "bytes=0-0", 10, 1, { { 0, 1 } } },
	{ "bytes=5-", 10, 1, { { 5, 5 } } },
	{ "bytes=9-9", 10, 1, { { 9, 1 } } },
	{ "bytes=5-100", 10, 1, { { 5, 5 } } },
	{ "bytes=5-18446744073709551615", 10, 1, { { 5, 5 } } },
	{ "bytes=-3", 10, 1, { { 7, 3 } } },
	{ "bytes=-100", 10, 1, { { 0, 10 } } },
	{ "BYTES=0-4", 10, 1, { { 0, 5 } } },
	{ "bytes=0-1,4-5", 10, 2, { { 0, 2 }, { 4, 2 } } },
	{ "bytes=8-,, 0-1 ,\t-1", 10, 3, { { 8, 2 }, { 0, 2 }, { 9, 1 } } },
	{ "bytes=0-1,20-30", 10, 1, { { 0, 2 } } },
	{ "bytes=10-", 10, WEFT_ENOENT, { { 0, 0 } } },
	{ "bytes=10-20,30-", 10, WEFT_ENOENT, { { 0, 0 } } },
	{ "bytes=-0", 10, WEFT_ENOENT, { { 0, 0 } } },
	{ "bytes=0-", 0, WEFT_ENOENT, { { 0, 0 } } },
	{ "bytes=-5", 0, WEFT_ENOENT, { { 0, 0 } } },
	{ "bytes=0-0,1-1,2-2,3-3", 10, WEFT_EMSGSIZE, { { 0, 0 } } },
	{ "bytes=0-,0-,0-", 10, WEFT_EMSGSIZE, { { 0, 0 } } },
	{ "bytes=0-5,5-9", 10, WEFT_EMSGSIZE, { { 0, 0 } } },
	{ "", 10, 0, { { 0, 0 } } },
	{ "bytes", 10, 0, { { 0, 0 } } },
	{ "bytes=", 10, 0, { { 0, 0 } } },
	{ "bytes= ", 10, WEFT_ENOENT, { { 0, 0 } } },
	{ "lines=0-4", 10, 0, { { 0, 0 } } },
	{ "bytes=5", 10, 0, { { 0, 0 } } },
	{ "bytes=-", 10, 0, { { 0, 0 } } },
	{ "bytes=5-4", 10, 0, { { 0, 0 } } },
	{ "bytes=a-b", 10, 0, { { 0, 0 } } },
	{ "bytes=0--4", 10, 0, { { 0, 0 } } },
	{ "bytes=--4", 10, 0, { { 0, 0 } } },
	{ "bytes=0-4x", 10, 0, { { 0, 0 } } },
	{ "bytes=0 -4", 10, 0, { { 0, 0 } } },
	{ "bytes=0-4,x", 10, 0, { { 0, 0 } } },
	{ "bytes=99999999999999999999-", 10, 0, { { 0, 0 } } },
};

TEST(ranges_are_limited_to_the_existing_bytes)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct range *range = &ranges[i];
		struct weft__http_range got[3];
		int rc = weft__http_range_parse(range->text, strlen(range->text), range->total, got,
		                                3);

		if (rc != range->rc)
			test_fail(__FILE__, __LINE__, "%s gives %d, not %d", range->text, rc,
			          range->rc);
		for (int j = 0; j < rc; j++) {
			CHECK_EQ(got[j].first, range->want[j].first);
			CHECK_EQ(got[j].size, range->want[j].size);
		}
	}
}

/* --- entity tags and encodings ------------------------------------------------- */

static bool
match(const char *list, const char *etag, bool weak)
{
	return weft__http_etag_match(list, strlen(list), etag, weak);
}

TEST(entity_tags_are_compared_weakly_or_strongly)
{
	CHECK(match("*", "\"a\"", false));
	CHECK(match("\"a\"", "\"a\"", false));
	CHECK(match("\"b\", \"a\"", "\"a\"", false));
	CHECK(match("\"b\" ,\t\"a\",", "\"a\"", false));
	CHECK(match("\"a,b\", \"c\"", "\"c\"", false));
	CHECK(match("\"a\\\", \"c\"", "\"c\"", false));
	CHECK(match("\"\"", "\"\"", false));
	CHECK(!match("\"A\"", "\"a\"", true));
	CHECK(!match("\"ab\"", "\"a\"", true));
	CHECK(!match("", "\"a\"", true));
	CHECK(match("W/\"a\"", "\"a\"", true));
	CHECK(match("\"a\"", "W/\"a\"", true));
	CHECK(match("W/\"a\"", "W/\"a\"", true));
	CHECK(!match("W/\"a\"", "\"a\"", false));
	CHECK(!match("\"a\"", "W/\"a\"", false));
	CHECK(!match("W/\"a\"", "W/\"a\"", false));
}

TEST(malformed_entity_tag_list_matches_nothing)
{
	CHECK(!match("a", "a", true));
	CHECK(!match("\"a", "\"a\"", true));
	CHECK(!match("\"a\"x", "\"a\"", true));
	CHECK(!match("\"a\", b", "\"a\"", true));
	CHECK(!match("w/\"a\"", "\"a\"", true));
	CHECK(!match("W\"a\"", "\"a\"", true));
	CHECK(!match("W/", "\"a\"", true));
	CHECK(!match("\"a\", *", "\"a\"", true));
	CHECK(!match("\"", "\"\"", true));
}
