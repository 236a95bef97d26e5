/* text.c - builds text in a buffer of fixed size. */
#include "text.h"
#include <stdarg.h>
#include <stdio.h>

struct text
text_in(char *data, size_t max)
{
	data[0] = '\0';
	return (struct text){ .data = data, .max = max };
}

void
text_add(struct text *text, const char *format, ...)
{
	size_t room = text->max - text->size;
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(text->data + text->size, room, format, args);
	va_end(args);
	if (size < 0 || (size_t)size >= room) {
		text->full = true;
		text->data[text->size] = '\0';
		return;
	}
	text->size += (size_t)size;
}

/* JSON cannot represent bytes that are not UTF-8.  Names in the store are UTF-8, so non-ASCII
 * bytes are copied unchanged; control bytes are escaped. */
void
text_add_quoted(struct text *text, const char *bytes)
{
	text_add(text, "\"");
	for (; *bytes; bytes++) {
		unsigned char byte = (unsigned char)*bytes;

		if (byte == '"' || byte == '\\')
			text_add(text, "\\%c", byte);
		else if (byte < 0x20)
			text_add(text, "\\u%04x", byte);
		else
			text_add(text, "%c", byte);
	}
	text_add(text, "\"");
}
