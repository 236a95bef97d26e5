/* text.c - builds text in a fixed buffer. */
#include "base/text.h"

struct weft__text
weft__text_begin(char *buf, size_t room)
{
	buf[0] = '\0';
	return (struct weft__text){ .buf = buf, .room = room };
}

void
weft__text_add(struct weft__text *text, const char *what)
{
	while (*what && text->size + 1 < text->room)
		text->buf[text->size++] = *what++;
	text->buf[text->size] = '\0';
}

static void
add_digits(struct weft__text *text, uint64_t number, unsigned base, int least)
{
	char digits[24];
	char *at = digits + sizeof(digits) - 1;

	*at = '\0';
	do {
		*--at = "0123456789abcdef"[number % base];
		number /= base;
	} while (number > 0 || at > digits + sizeof(digits) - 1 - least);
	weft__text_add(text, at);
}

void
weft__text_number(struct weft__text *text, int64_t number)
{
	if (number < 0)
		weft__text_add(text, "-");
	add_digits(text, number < 0 ? -(uint64_t)number : (uint64_t)number, 10, 1);
}

void
weft__text_hex(struct weft__text *text, uint64_t number)
{
	weft__text_add(text, "0x");
	add_digits(text, number, 16, 1);
}

void
weft__text_seconds(struct weft__text *text, uint64_t ns)
{
	add_digits(text, ns / 1000000000, 10, 1);
	weft__text_add(text, ".");
	add_digits(text, ns / 1000000 % 1000, 10, 3);
	weft__text_add(text, " s");
}

void
weft__text_end_line(struct weft__text *text)
{
	if (text->size > 0 && text->buf[text->size - 1] == '\n')
		text->buf[--text->size] = '\0';
}
