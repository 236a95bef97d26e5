/* admin_text.c - growing texts, and escaping of untrusted bytes. */
#include "admin_text.h"
#include <stdio.h>
#include <string.h>
#include "base/utf8.h"

void
weft__admin_text_fini(struct weft__admin_text *text)
{
	weft__buffer_free(&text->out);
	*text = (struct weft__admin_text){ 0 };
}

static bool
admin_text_make_room(struct weft__admin_text *text, size_t size)
{
	if (size > WEFT__ADMIN_TEXT_MAX - text->out.size)
		text->error = WEFT_EMSGSIZE;
	else if (!weft__buffer_reserve(&text->out, size))
		text->error = WEFT_ENOMEM;
	return !text->error;
}

void
weft__admin_put(struct weft__admin_text *text, const char *data, size_t size)
{
	if (text->error || size == 0 || !admin_text_make_room(text, size))
		return;
	memcpy(text->out.data + text->out.size, data, size);
	text->out.size += size;
	text->last = data[size - 1];
}

void
weft__admin_puts(struct weft__admin_text *text, const char *data)
{
	weft__admin_put(text, data, strlen(data));
}

void
weft__admin_put_number(struct weft__admin_text *text, uint64_t number)
{
	char digits[24], *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	weft__admin_put(text, at, (size_t)(digits + sizeof(digits) - at));
}

/* Print a number with a ".".  The locale's decimal point may differ, and have several bytes. */
static size_t
print_double(char *out, size_t room, double number)
{
	int size = snprintf(out, room, "%.15g", number);
	size_t used = 0;
	bool foreign = false;

	for (int i = 0; i < size; i++) {
		bool plain = (out[i] >= '0' && out[i] <= '9') || strchr("+-e", out[i]);

		if (plain)
			out[used++] = out[i];
		else if (!foreign)
			out[used++] = '.';
		foreign = !plain;
	}
	return used;
}

void
weft__admin_put_double(struct weft__admin_text *text, double number, bool special)
{
	char digits[64];

	if (number == number && number - number == 0)
		weft__admin_put(text, digits, print_double(digits, sizeof(digits), number));
	else if (!special)
		weft__admin_puts(text, "null");
	else if (number != number)
		weft__admin_puts(text, "NaN");
	else
		weft__admin_puts(text, number > 0 ? "+Inf" : "-Inf");
}

/* --- characters ---------------------------------------------------------------- */

/* Write text with other texts in place of some characters: texts[i] for special[i].  Bytes that are
 * not UTF-8 become U+FFFD. */
static void
put_escaped(struct weft__admin_text *text, const char *data, const char *special,
            const char *const *texts)
{
	while (*data) {
		const char *found = strchr(special, *data);
		size_t size = weft__utf8_size(data);

		if (found)
			weft__admin_puts(text, texts[found - special]);
		else if (size > 0)
			weft__admin_put(text, data, size);
		else
			weft__admin_puts(text, "\xef\xbf\xbd");
		data += size > 0 ? size : 1;
	}
}

void
weft__admin_put_html(struct weft__admin_text *text, const char *data)
{
	static const char *const texts[] = { "&lt;", "&amp;", "&quot;" };

	put_escaped(text, data, "<&\"", texts);
}

void
weft__admin_put_help(struct weft__admin_text *text, const char *data)
{
	static const char *const texts[] = { " ", " " };

	put_escaped(text, data, "\n\\", texts);
}

void
weft__admin_put_label(struct weft__admin_text *text, const char *data)
{
	static const char *const texts[] = { "\\n", "\\\\", "\\\"" };

	put_escaped(text, data, "\n\\\"", texts);
}

/* --- JSON ---------------------------------------------------------------------- */

static void
put_comma(struct weft__admin_text *text)
{
	if (text->last && !strchr("{[:", text->last))
		weft__admin_put(text, ",", 1);
}

void
weft__json_open(struct weft__admin_text *text, char bracket)
{
	put_comma(text);
	weft__admin_put(text, &bracket, 1);
}

void
weft__json_close(struct weft__admin_text *text, char bracket)
{
	weft__admin_put(text, &bracket, 1);
}

/* "<" is written as \u003c, so that it cannot end a script element. */
void
weft__json_text(struct weft__admin_text *text, const char *value)
{
	char character[6];

	put_comma(text);
	weft__admin_put(text, "\"", 1);
	while (*value)
		if (*value == '<') {
			weft__admin_puts(text, "\\u003c");
			value++;
		} else {
			weft__admin_put(text, character, weft__json_character(&value, character));
		}
	weft__admin_put(text, "\"", 1);
}

void
weft__json_key(struct weft__admin_text *text, const char *key)
{
	weft__json_text(text, key);
	weft__admin_put(text, ":", 1);
}

void
weft__json_number(struct weft__admin_text *text, uint64_t value)
{
	put_comma(text);
	weft__admin_put_number(text, value);
}

void
weft__json_signed(struct weft__admin_text *text, int64_t value)
{
	put_comma(text);
	if (value < 0)
		weft__admin_put(text, "-", 1);
	weft__admin_put_number(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void
weft__json_double(struct weft__admin_text *text, double value)
{
	put_comma(text);
	weft__admin_put_double(text, value, false);
}

void
weft__json_raw(struct weft__admin_text *text, const char *value)
{
	put_comma(text);
	weft__admin_puts(text, value);
}
