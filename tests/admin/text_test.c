/* text_test.c - growing text buffers, and escaping of foreign bytes in them. */
#include <locale.h>
#include <math.h>
#include "admin/admin_text.h"
#include "unit/probe.h"

/* Returns the text written so far, NUL-terminated, and empties the buffer. */
static const char *
said(struct weft__admin_text *text)
{
	static char copy[4096];

	CHECK_EQ(text->error, 0);
	CHECK(text->out.size < sizeof(copy));
	memcpy(copy, text->out.data, text->out.size);
	copy[text->out.size] = '\0';
	text->out.size = 0;
	text->last = '\0';
	return copy;
}

TEST(json_writer_puts_commas_between_values)
{
	struct weft__admin_text text = { 0 };

	weft__json_open(&text, '{');
	weft__json_key(&text, "a");
	weft__json_open(&text, '[');
	weft__json_number(&text, 1);
	weft__json_signed(&text, -2);
	weft__json_text(&text, "{");
	weft__json_open(&text, '{');
	weft__json_close(&text, '}');
	weft__json_raw(&text, "null");
	weft__json_close(&text, ']');
	weft__json_key(&text, "b");
	weft__json_double(&text, 0.5);
	weft__json_close(&text, '}');
	CHECK_STR(said(&text), "{\"a\":[1,-2,\"{\",{},null],\"b\":0.5}");
	weft__admin_text_fini(&text);
}

TEST(json_writer_escapes_foreign_names)
{
	static const struct {
		const char *given, *want;
	} cases[] = {
		{ "a\"b\\c", "\"a\\\"b\\\\c\"" },
		{ "\n\t\x1b[31m\x7f", "\"\\u000a\\u0009\\u001b[31m\\u007f\"" },
		{ "</script>", "\"\\u003c/script>\"" },
		{ "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\xa7\xb5",
		  "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\xa7\xb5\"" },
		{ "\xff", "\"\xef\xbf\xbd\"" },
		{ "\xc3", "\"\xef\xbf\xbd\"" },
		{ "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xe0\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	};
	struct weft__admin_text text = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		weft__json_text(&text, cases[i].given);
		CHECK_STR(said(&text), cases[i].want);
	}
	weft__admin_text_fini(&text);
}

TEST(labels_and_html_escape_special_characters)
{
	struct weft__admin_text text = { 0 };

	weft__admin_put_label(&text, "a\"b\\c\nd\xff<");
	CHECK_STR(said(&text), "a\\\"b\\\\c\\nd\xef\xbf\xbd<");
	weft__admin_put_html(&text, "<a href=\"x\">&\xff");
	CHECK_STR(said(&text), "&lt;a href=&quot;x&quot;>&amp;\xef\xbf\xbd");
	weft__admin_text_fini(&text);
}

TEST(numbers_are_written_in_their_standard_form)
{
	struct weft__admin_text text = { 0 };

	weft__admin_put_number(&text, 0);
	CHECK_STR(said(&text), "0");
	weft__admin_put_number(&text, UINT64_MAX);
	CHECK_STR(said(&text), "18446744073709551615");
	weft__json_signed(&text, INT64_MIN);
	CHECK_STR(said(&text), "-9223372036854775808");
	weft__admin_put_double(&text, 1e300, true);
	CHECK_STR(said(&text), "1e+300");
	weft__admin_put_double(&text, NAN, true);
	CHECK_STR(said(&text), "NaN");
	weft__admin_put_double(&text, -INFINITY, true);
	CHECK_STR(said(&text), "-Inf");
	weft__json_double(&text, NAN);
	CHECK_STR(said(&text), "null");
	weft__json_double(&text, INFINITY);
	CHECK_STR(said(&text), "null");
	weft__admin_text_fini(&text);
}

TEST(numbers_do_not_depend_on_the_locale)
{
	static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", NULL };
	struct weft__admin_text text = { 0 };
	const char *const *name = names;

	while (*name && !setlocale(LC_NUMERIC, *name))
		name++;
	if (!*name)
		return; /* no locale with another decimal point is installed */
	weft__admin_put_double(&text, 1234.5, true);
	CHECK_STR(said(&text), "1234.5");
	(void)setlocale(LC_NUMERIC, "C");
	weft__admin_text_fini(&text);
}

TEST(text_buffer_has_a_limit_and_keeps_the_error)
{
	struct weft__admin_text text = { 0 };
	char *piece = calloc(1, 1 << 20);

	CHECK(piece);
	for (int i = 0; i < 8; i++)
		weft__admin_put(&text, piece, 1 << 20);
	CHECK_EQ(text.error, 0);
	weft__admin_put(&text, "x", 1);
	CHECK_EQ(text.error, WEFT_EMSGSIZE);
	CHECK_EQ(text.out.size, 8 << 20);
	weft__admin_put(&text, "x", 1);
	CHECK_EQ(text.out.size, 8 << 20);
	weft__admin_text_fini(&text);
	free(piece);
}
