/* topjson_fuzz.c - the JSON parser of weft top.
 *
 * The input is a document.  The parser must accept exactly what a second parser accepts, which
 * only returns yes or no and is not recursive: it keeps a stack of open brackets.  An accepted
 * document that is written out is parsed to the same result.  No text of it, once cleaned, has
 * a byte that a terminal would interpret.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "fuzz.h"
#include "top/json.h"
#include "base/terminal_text.h"

/* --- the second parser -------------------------------------------------------- */

struct judge {
	const char *at, *end;
	char open[JSON_DEPTH_MAX]; /* brackets */
	size_t depth, values;
};

static void
skip(struct judge *judge)
{
	while (judge->at < judge->end && *judge->at && strchr(" \t\r\n", *judge->at))
		judge->at++;
}

static char
peek(const struct judge *judge)
{
	return judge->at < judge->end ? *judge->at : '\0';
}

static bool
is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static bool
judge_text(struct judge *judge)
{
	const char *begin = ++judge->at;

	for (; peek(judge) != '"'; judge->at++) {
		if ((unsigned char)peek(judge) < 0x20
		    || (size_t)(judge->at - begin) >= JSON_TEXT_MAX)
			return false; /* includes the end of the input */
		if (peek(judge) != '\\')
			continue;
		judge->at++;
		if (peek(judge) == '\0' || !strchr("\"\\/bfnrtu", peek(judge)))
			return false;
		if (peek(judge) != 'u')
			continue;
		for (int i = 0; i < 4; i++) {
			judge->at++;
			if (peek(judge) == '\0' || !strchr("0123456789abcdefABCDEF", peek(judge)))
				return false;
		}
	}
	judge->at++;
	return true;
}

static bool
judge_digits(struct judge *judge)
{
	if (!is_digit(peek(judge)))
		return false;
	while (is_digit(peek(judge)))
		judge->at++;
	return true;
}

static bool
judge_number(struct judge *judge)
{
	const char *begin = judge->at;
	char copy[JSON_NUMBER_MAX + 1] = "";
	size_t size;

	judge->at += peek(judge) == '-';
	if (peek(judge) == '0')
		judge->at++;
	else if (!judge_digits(judge))
		return false;
	if (peek(judge) == '.' && (judge->at++, !judge_digits(judge)))
		return false;
	if (peek(judge) == 'e' || peek(judge) == 'E') {
		judge->at++;
		judge->at += peek(judge) == '+' || peek(judge) == '-';
		if (!judge_digits(judge))
			return false;
	}
	size = (size_t)(judge->at - begin);
	if (size > JSON_NUMBER_MAX)
		return false;
	memcpy(copy, begin, size);
	return isfinite(strtod(copy, NULL));
}

static bool
judge_plain(struct judge *judge)
{
	static const char *const words[] = { "null", "true", "false" };

	if (peek(judge) == '"')
		return judge_text(judge);
	for (int i = 0; i < 3; i++) {
		size_t size = strlen(words[i]);

		if ((size_t)(judge->end - judge->at) >= size
		    && memcmp(judge->at, words[i], size) == 0) {
			judge->at += size;
			return true;
		}
	}
	return judge_number(judge);
}

static bool
judge_name(struct judge *judge)
{
	skip(judge);
	if (peek(judge) != '"' || !judge_text(judge))
		return false;
	skip(judge);
	return peek(judge) == ':' && judge->at++;
}

/* One value, or the opening bracket of a list or object: then sets `*open`. */
static bool
judge_value(struct judge *judge, bool *open)
{
	char byte;

	skip(judge);
	if (judge->values++ == JSON_VALUES_MAX)
		return false;
	byte = peek(judge);
	*open = byte == '[' || byte == '{';
	if (!*open)
		return judge_plain(judge);
	if (judge->depth == JSON_DEPTH_MAX)
		return false;
	judge->open[judge->depth++] = byte;
	judge->at++;
	skip(judge);
	if (peek(judge) != (byte == '[' ? ']' : '}'))
		return byte == '[' || judge_name(judge);
	judge->at++;
	judge->depth--;
	*open = false;
	return true;
}

/* After a value: closing brackets, and a comma. */
static bool
judge_rest(struct judge *judge)
{
	while (judge->depth > 0) {
		bool list = judge->open[judge->depth - 1] == '[';

		skip(judge);
		if (peek(judge) == ',') {
			judge->at++;
			return list || judge_name(judge);
		}
		if (peek(judge) != (list ? ']' : '}'))
			return false;
		judge->at++;
		judge->depth--;
	}
	return true;
}

static bool
is_json(const char *bytes, size_t size)
{
	struct judge judge = { .at = bytes, .end = bytes + size };
	bool open;

	do {
		if (!judge_value(&judge, &open))
			return false;
		if (!open && !judge_rest(&judge))
			return false;
	} while (open || judge.depth > 0);
	skip(&judge);
	return judge.at == judge.end;
}

/* --- what was read -------------------------------------------------------------- */

static void
check_text(const char *text)
{
	while (*text) {
		char out[4];
		size_t size;
		int width = text_next(&text, true, out, &size);

		ORACLE(width >= 0 && width <= 2 && size >= 1 && size <= 4, "%d cells, %zu bytes",
		       width, size);
		ORACLE((unsigned char)out[0] >= 0x20 && out[0] != 0x7f, "byte %d", out[0]);
		ORACLE(size > 1 || !(out[0] & 0x80), "byte %d alone", out[0]);
		ORACLE(size != 2 || (unsigned char)out[0] != 0xc2 || (unsigned char)out[1] >= 0xa0,
		       "a control of eight bits");
	}
}

static void
write_text(FILE *to, const char *text)
{
	fputc('"', to);
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == '"' || *text == '\\')
			fprintf(to, "\\u%04x", *text);
		else
			fputc(*text, to);
	fputc('"', to);
}

/* Also checks that each list and object has as many values as its count. */
static void
write_value(FILE *to, const struct json *value)
{
	static const char *const words[] = { "null", "false", "true" };
	uint32_t count = 0;

	if (value->name) {
		check_text(value->name);
		write_text(to, value->name);
		fputc(':', to);
	}
	if (value->kind == JSON_NUMBER) {
		fprintf(to, "%.17g", value->number);
	} else if (value->kind == JSON_TEXT) {
		check_text(value->text);
		write_text(to, value->text);
	} else if (value->kind < JSON_NUMBER) {
		fputs(words[value->kind], to);
	} else {
		bool list = value->kind == JSON_LIST;

		fputc(list ? '[' : '{', to);
		for (const struct json *v = value->first; v; v = v->next) {
			ORACLE(list != (v->name != NULL), "a name");
			if (count++ > 0)
				fputc(',', to);
			write_value(to, v);
		}
		fputc(list ? ']' : '}', to);
		ORACLE(count == value->count, "%u of %u", count, value->count);
	}
}

static char *
write_again(const struct json_document *document, size_t *size)
{
	char *text = NULL;
	FILE *to = open_memstream(&text, size);

	if (!to)
		abort();
	write_value(to, document->root);
	if (fclose(to) != 0)
		abort();
	return text;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct json_document first, second;
	bool good = json_read(&first, size ? bytes : "", size) == 0;
	char *once, *twice;
	size_t once_size, twice_size;

	ORACLE(good == is_json(bytes, size), "the reader says %s", good ? "yes" : first.error);
	if (!good) {
		ORACLE(first.error && first.error_at <= size, "at %zu", first.error_at);
		return 0;
	}
	once = write_again(&first, &once_size);
	ORACLE(json_read(&second, once, once_size) == 0, "not again: %s", second.error);
	twice = write_again(&second, &twice_size);
	ORACLE(once_size == twice_size && memcmp(once, twice, once_size) == 0, "%s is %s", once,
	       twice);
	json_free(&first);
	json_free(&second);
	free(once);
	free(twice);
	return 0;
}
