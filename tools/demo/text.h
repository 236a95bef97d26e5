/* text.h - builds text in a buffer of fixed size. */
#ifndef WEFT_DEMO_TEXT_H
#define WEFT_DEMO_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
	char  *data; /* ends with a NUL */
	size_t size, max;
	bool   full; /* something did not fit */
};

struct text text_in(char *data, size_t max);

void text_add(struct text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Add untrusted bytes as a JSON string, in quotes. */
void text_add_quoted(struct text *text, const char *bytes);

#endif
