/* json.c - a recursive descent parser for JSON, limited to a depth of JSON_DEPTH_MAX.
 *
 *   1. A decoded string with its NUL is shorter than the source string with its quotes.  So one
 *      buffer of the document's size holds all strings.
 *   2. Values are allocated in blocks and never move, so they may point at each other.
 *   3. The first error is kept: a function that fails returns false, and every caller returns at
 *      once.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "json.h"

#define BLOCK_VALUES 256u

struct json_block {
	struct json_block *next;
	uint32_t used;
	struct json values[BLOCK_VALUES];
};

struct reader {
	struct json_document *out;
	const char *begin, *at, *end;
	char *text; /* where the next string is stored */
	uint32_t depth, count;
};

static bool
top_json_fail(struct reader *reader, const char *error)
{
	reader->out->error = error;
	reader->out->error_at = (size_t)(reader->at - reader->begin);
	return false;
}

static struct json *
new_value(struct reader *reader)
{
	struct json_block *block = reader->out->blocks;

	if (reader->count++ == JSON_VALUES_MAX) {
		(void)top_json_fail(reader, "too many values");
		return NULL;
	}
	if (!block || block->used == BLOCK_VALUES) {
		block = malloc(sizeof(*block));
		if (!block) {
			(void)top_json_fail(reader, "out of memory");
			return NULL;
		}
		block->next = reader->out->blocks;
		block->used = 0;
		reader->out->blocks = block;
	}
	return memset(&block->values[block->used++], 0, sizeof(struct json));
}

static void
skip_space(struct reader *reader)
{
	while (reader->at < reader->end
	       && (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n'
	           || *reader->at == '\r'))
		reader->at++;
}

static bool
top_json_take(struct reader *reader, char byte)
{
	if (reader->at == reader->end || *reader->at != byte)
		return false;
	reader->at++;
	return true;
}

/* --- strings ---------------------------------------------------------------- */

static void
put_point(struct reader *reader, uint32_t point)
{
	static const unsigned char lead[] = { 0, 0xc0, 0xe0, 0xf0 };
	int more;

	if (point == 0 || (point >= 0xd800 && point <= 0xdfff))
		point = 0xfffd;
	more = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
	*reader->text++ = (char)(lead[more] | point >> 6 * more);
	while (more-- > 0)
		*reader->text++ = (char)(0x80 | (point >> 6 * more & 0x3f));
}

/* The value of a hexadecimal digit, or -1. */
static int
digit_of(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	byte |= 0x20;
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static bool
read_four(struct reader *reader, uint32_t *out)
{
	uint32_t point = 0;

	for (int i = 0; i < 4; i++, reader->at++) {
		int digit = reader->at < reader->end ? digit_of(*reader->at) : -1;

		if (digit < 0)
			return top_json_fail(reader, "\\u needs four digits");
		point = point << 4 | (uint32_t)digit;
	}
	*out = point;
	return true;
}

/* Called after \u.  A high surrogate is combined with a \u low surrogate that follows it; any
 * other surrogate is kept as a lone one. */
static bool
read_point(struct reader *reader)
{
	uint32_t point, low;
	const char *after;

	if (!read_four(reader, &point))
		return false;
	after = reader->at;
	if (point >= 0xd800 && point <= 0xdbff && top_json_take(reader, '\\')
	    && top_json_take(reader, 'u')) {
		if (!read_four(reader, &low))
			return false;
		if (low >= 0xdc00 && low <= 0xdfff) {
			point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
			after = reader->at;
		}
	}
	reader->at = after;
	put_point(reader, point);
	return true;
}

/* Called after a backslash. */
static bool
read_escape(struct reader *reader)
{
	static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
	const char *letter;

	if (reader->at == reader->end)
		return top_json_fail(reader, "a string is not terminated");
	if (top_json_take(reader, 'u'))
		return read_point(reader);
	letter = *reader->at ? strchr(letters, *reader->at) : NULL;
	if (!letter)
		return top_json_fail(reader, "an unknown escape in a string");
	*reader->text++ = means[letter - letters];
	reader->at++;
	return true;
}

/* Called after the opening quote. */
static bool
read_text(struct reader *reader, const char **out)
{
	const char *begin = reader->at;
	char *text = reader->text;

	while (!top_json_take(reader, '"')) {
		if (reader->at == reader->end)
			return top_json_fail(reader, "a string is not terminated");
		if ((size_t)(reader->at - begin) >= JSON_TEXT_MAX)
			return top_json_fail(reader, "a string is too long");
		if ((unsigned char)*reader->at < 0x20)
			return top_json_fail(reader, "a control character in a string");
		if (!top_json_take(reader, '\\'))
			*reader->text++ = *reader->at++;
		else if (!read_escape(reader))
			return false;
	}
	*reader->text++ = '\0';
	*out = text;
	return true;
}

/* --- numbers and literals --------------------------------------------------- */

static bool
skip_digits(struct reader *reader)
{
	const char *begin = reader->at;

	while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9')
		reader->at++;
	return reader->at > begin;
}

static bool
skip_number(struct reader *reader)
{
	(void)top_json_take(reader, '-');
	if (!top_json_take(reader, '0') && !skip_digits(reader))
		return false;
	if (top_json_take(reader, '.') && !skip_digits(reader))
		return false;
	if (top_json_take(reader, 'e') || top_json_take(reader, 'E')) {
		if (!top_json_take(reader, '+'))
			(void)top_json_take(reader, '-');
		return skip_digits(reader);
	}
	return true;
}

static bool
top_json_read_number(struct reader *reader, struct json *value)
{
	const char *begin = reader->at;
	char copy[JSON_NUMBER_MAX + 1];
	size_t size;

	if (!skip_number(reader))
		return top_json_fail(reader, "a malformed number");
	size = (size_t)(reader->at - begin);
	if (size > JSON_NUMBER_MAX)
		return top_json_fail(reader, "a number is too long");
	memcpy(copy, begin, size);
	copy[size] = '\0';
	value->kind = JSON_NUMBER;
	value->number = strtod(copy, NULL);
	if (!isfinite(value->number))
		return top_json_fail(reader, "a number is out of range");
	return true;
}

static bool
read_word(struct reader *reader, struct json *value)
{
	static const struct {
		const char *word;
		enum json_kind kind;
	} words[] = { { "null", JSON_NULL }, { "false", JSON_FALSE }, { "true", JSON_TRUE } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t size = strlen(words[i].word);

		if ((size_t)(reader->end - reader->at) < size
		    || memcmp(reader->at, words[i].word, size) != 0)
			continue;
		reader->at += size;
		value->kind = words[i].kind;
		return true;
	}
	return top_json_fail(reader, "not a valid value");
}

/* --- values ----------------------------------------------------------------- */

static bool read_value(struct reader *reader, struct json *value);

static bool
read_name(struct reader *reader, struct json *member)
{
	if (!top_json_take(reader, '"'))
		return top_json_fail(reader, "a member name is missing");
	if (!read_text(reader, &member->name))
		return false;
	skip_space(reader);
	return top_json_take(reader, ':') || top_json_fail(reader, "a colon is missing");
}

/* Called after the opening bracket: reads items or members up to the closing one. */
static bool
read_items(struct reader *reader, struct json *value)
{
	bool named = value->kind == JSON_OBJECT;
	char close = named ? '}' : ']';
	struct json **link = &value->first;

	skip_space(reader);
	if (top_json_take(reader, close))
		return true;
	do {
		struct json *item = new_value(reader);

		skip_space(reader);
		if (!item || (named && !read_name(reader, item)) || !read_value(reader, item))
			return false;
		*link = item;
		link = &item->next;
		value->count++;
		skip_space(reader);
	} while (top_json_take(reader, ','));
	return top_json_take(reader, close)
	       || top_json_fail(reader,
	                        named ? "a comma or } is missing" : "a comma or ] is missing");
}

static bool
read_inside(struct reader *reader, struct json *value)
{
	bool good;

	if (reader->depth == JSON_DEPTH_MAX)
		return top_json_fail(reader, "nested too deeply");
	reader->depth++;
	good = read_items(reader, value);
	reader->depth--;
	return good;
}

static bool
read_value(struct reader *reader, struct json *value)
{
	skip_space(reader);
	if (reader->at == reader->end)
		return top_json_fail(reader, "a value is missing");
	if (top_json_take(reader, '"')) {
		value->kind = JSON_TEXT;
		return read_text(reader, &value->text);
	}
	if (*reader->at == '-' || (*reader->at >= '0' && *reader->at <= '9'))
		return top_json_read_number(reader, value);
	if (top_json_take(reader, '['))
		value->kind = JSON_LIST;
	else if (top_json_take(reader, '{'))
		value->kind = JSON_OBJECT;
	else
		return read_word(reader, value);
	return read_inside(reader, value);
}

static bool
read_document(struct reader *reader, size_t size)
{
	if (size > JSON_BYTES_MAX)
		return top_json_fail(reader, "the document is too large");
	reader->out->texts = reader->text = malloc(size + 1);
	if (!reader->text)
		return top_json_fail(reader, "out of memory");
	reader->out->root = new_value(reader);
	if (!reader->out->root || !read_value(reader, reader->out->root))
		return false;
	skip_space(reader);
	return reader->at == reader->end
	       || top_json_fail(reader, "unexpected bytes after the document");
}

int
json_read(struct json_document *out, const char *bytes, size_t size)
{
	struct reader reader = { .out = out, .begin = bytes, .at = bytes, .end = bytes + size };
	struct json_document error = { 0 };

	*out = error;
	if (read_document(&reader, size))
		return 0;
	error.error = out->error;
	error.error_at = out->error_at;
	json_free(out);
	*out = error;
	return -1;
}

void
json_free(struct json_document *document)
{
	struct json_block *block;

	while ((block = document->blocks)) {
		document->blocks = block->next;
		free(block);
	}
	free(document->texts);
	*document = (struct json_document){ 0 };
}

/* --- access ----------------------------------------------------------------- */

const struct json *
json_get(const struct json *object, const char *name)
{
	if (!object || object->kind != JSON_OBJECT)
		return NULL;
	for (const struct json *member = object->first; member; member = member->next)
		if (strcmp(member->name, name) == 0)
			return member;
	return NULL;
}

double
json_number(const struct json *object, const char *name, double otherwise)
{
	const struct json *member = json_get(object, name);

	return member && member->kind == JSON_NUMBER ? member->number : otherwise;
}

const char *
json_text(const struct json *object, const char *name)
{
	const struct json *member = json_get(object, name);

	return member && member->kind == JSON_TEXT ? member->text : "";
}

const struct json *
json_list(const struct json *object, const char *name)
{
	const struct json *member = json_get(object, name);

	return member && member->kind == JSON_LIST ? member->first : NULL;
}
