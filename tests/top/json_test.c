/* json_test.c - the JSON reader of weft top: what it accepts and refuses, and its limits. */
#include <stdlib.h>
#include <string.h>
#include "test.h"
#include "top/json.h"

static struct json_document document;

static const struct json *
read_text(const char *text)
{
	CHECK_STR(json_read(&document, text, strlen(text)) == 0 ? "read" : document.error, "read");
	return document.root;
}

/* It is refused with that error at that byte. */
static void
refuse(const char *text, size_t size, const char *error, size_t at)
{
	CHECK_EQ(json_read(&document, text, size), -1);
	CHECK_STR(document.error, error);
	CHECK_EQ(document.error_at, at);
	CHECK(!document.root && !document.blocks && !document.texts);
}

#define REFUSE(text, error, at) refuse(text, sizeof(text) - 1, error, at)

TEST(values_of_all_types_are_read)
{
	const struct json *root = read_text(
		" {\"a\" : [1, -2.5e3, true, false, null, \"x\", {}, []],\r\n"
		"\t\"b\":{\"c\":0}} ");
	const struct json *item = json_list(root, "a");

	CHECK_EQ(root->kind, JSON_OBJECT);
	CHECK_EQ(root->count, 2);
	CHECK_EQ(json_get(root, "a")->count, 8);
	CHECK(item->number == 1 && item->next->number == -2500);
	item = item->next->next;
	CHECK_EQ(item->kind, JSON_TRUE);
	CHECK_EQ(item->next->kind, JSON_FALSE);
	CHECK_EQ(item->next->next->kind, JSON_NULL);
	item = item->next->next->next;
	CHECK_STR(item->text, "x");
	CHECK_EQ(item->next->kind, JSON_OBJECT);
	CHECK_EQ(item->next->next->kind, JSON_LIST);
	CHECK(!item->next->next->next);
	CHECK(json_number(json_get(root, "b"), "c", 7) == 0);
	json_free(&document);
}

TEST(missing_members_and_members_of_another_type_have_a_default)
{
	const struct json *root = read_text("{\"t\":\"x\",\"n\":1,\"n\":2}");

	CHECK(json_number(root, "t", 7) == 7);
	CHECK(json_number(root, "n", 7) == 1); /* the first one */
	CHECK(json_number(NULL, "n", 7) == 7);
	CHECK_STR(json_text(root, "n"), "");
	CHECK_STR(json_text(root, "none"), "");
	CHECK(!json_list(root, "t") && !json_get(root->first, "t"));
	json_free(&document);
}

TEST(escapes_in_strings_are_decoded)
{
	CHECK_STR(read_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"")->text, "\"\\/\b\f\n\r\t");
	json_free(&document);
	CHECK_STR(read_text("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"")->text,
	          "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	json_free(&document);
}

TEST(invalid_escapes_become_the_replacement_character)
{
	CHECK_STR(read_text("\"a\\u0000b\"")->text, "a\xef\xbf\xbd"
	                                            "b");
	json_free(&document);
	CHECK_STR(read_text("\"\\ud800\\u0041\\udc00\"")->text, "\xef\xbf\xbd"
	                                                        "A\xef\xbf\xbd");
	json_free(&document);
	CHECK_STR(read_text("\"\\ud800x\"")->text, "\xef\xbf\xbdx");
	json_free(&document);
}

TEST(bytes_of_strings_are_kept_unchanged)
{
	CHECK_STR(read_text("\"\xff\xc3\"")->text, "\xff\xc3");
	json_free(&document);
}

TEST(invalid_json_is_refused_with_its_position)
{
	REFUSE("", "a value is missing", 0);
	REFUSE("  ", "a value is missing", 2);
	REFUSE("nul", "not a valid value", 0);
	REFUSE("[1,]", "not a valid value", 3);
	REFUSE("[1 2]", "a comma or ] is missing", 3);
	REFUSE("{\"a\":1", "a comma or } is missing", 6);
	REFUSE("{\"a\" 1}", "a colon is missing", 5);
	REFUSE("{a:1}", "a member name is missing", 1);
	REFUSE("{\"a\":1,}", "a member name is missing", 7);
	REFUSE("1 2", "unexpected bytes after the document", 2);
	REFUSE("01", "unexpected bytes after the document", 1);
	REFUSE("-", "a malformed number", 1);
	REFUSE("1.", "a malformed number", 2);
	REFUSE("1e+", "a malformed number", 3);
	REFUSE("+1", "not a valid value", 0);
	REFUSE(".5", "not a valid value", 0);
	REFUSE("NaN", "not a valid value", 0);
	REFUSE("1e999", "a number is out of range", 5);
	REFUSE("\"a", "a string is not terminated", 2);
	REFUSE("\"a\\", "a string is not terminated", 3);
	REFUSE("\"\\x\"", "an unknown escape in a string", 2);
	REFUSE("\"\\u12g4\"", "\\u needs four digits", 5);
	REFUSE("\"\\ud800\\u12\"", "\\u needs four digits", 11);
	REFUSE("\"a\nb\"", "a control character in a string", 2);
	REFUSE("\"a\0b\"", "a control character in a string", 2);
	REFUSE("\0", "not a valid value", 0);
}

static char *
repeat(const char *part, size_t count, size_t more)
{
	size_t size = strlen(part);
	char *text = malloc(size * count + more + 1);

	CHECK(text);
	for (size_t i = 0; i < count; i++)
		memcpy(text + i * size, part, size);
	text[size * count] = '\0';
	return text;
}

TEST(nesting_depth_is_limited)
{
	char *open = repeat("[", JSON_DEPTH_MAX + 1, 0);
	char *close = repeat("]", JSON_DEPTH_MAX, 0);
	char both[2 * JSON_DEPTH_MAX + 1];

	refuse(open, JSON_DEPTH_MAX + 1, "nested too deeply", JSON_DEPTH_MAX + 1);
	memcpy(both, open, JSON_DEPTH_MAX);
	memcpy(both + JSON_DEPTH_MAX, close, JSON_DEPTH_MAX);
	both[2 * JSON_DEPTH_MAX] = '\0';
	(void)read_text(both);
	json_free(&document);
	free(open);
	free(close);
}

TEST(length_of_strings_and_numbers_is_limited)
{
	char *text = repeat("a", JSON_TEXT_MAX + 2, 8);

	text[0] = '"';
	text[JSON_TEXT_MAX + 1] = '"';
	(void)read_text((text[JSON_TEXT_MAX + 2] = '\0', text));
	json_free(&document);
	text[JSON_TEXT_MAX + 1] = 'a';
	refuse(text, JSON_TEXT_MAX + 2, "a string is too long", JSON_TEXT_MAX + 1);
	free(text);
	text = repeat("1", JSON_NUMBER_MAX + 1, 0);
	refuse(text, JSON_NUMBER_MAX + 1, "a number is too long", JSON_NUMBER_MAX + 1);
	refuse(text, JSON_BYTES_MAX + 1, "the document is too large", 0);
	free(text);
}

TEST(number_of_values_is_limited)
{
	char *text = repeat("1,", JSON_VALUES_MAX, 2);

	text[0] = '[';
	CHECK_EQ(json_read(&document, text, JSON_VALUES_MAX * 2), -1);
	text[1] = '1';
	CHECK_EQ(json_read(&document, text, JSON_VALUES_MAX * 2), -1);
	CHECK_STR(document.error, "too many values");
	free(text);
}

/* For every proper prefix of a document: nothing is read beyond its end. */
TEST(truncated_document_is_refused)
{
	static const char whole[] = "{\"a\":[1.5e3,\"\\ud83d\\ude00\\n\",true,"
				    "null,{\"b\":[]}],\"c\":false}";

	for (size_t size = 0; size < sizeof(whole) - 1; size++) {
		char *copy = malloc(size + 1); /* so that a sanitizer detects reads beyond the
		                                * end */

		CHECK(copy);
		memcpy(copy, whole, size);
		CHECK_EQ(json_read(&document, copy, size), -1);
		CHECK(document.error_at <= size);
		free(copy);
	}
	(void)read_text(whole);
	json_free(&document);
}
