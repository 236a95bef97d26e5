/* http_bytes.c - byte classes, and short texts: tokens, lists, numbers. */
#include "http/parse/parse_inner.h"

#define LETTER (BYTE_TOKEN | BYTE_NAME | BYTE_ALPHA)
#define BOTH   (BYTE_TOKEN | BYTE_NAME)

const uint8_t weft__http_bytes[256] = {
	['0' ... '9'] = BOTH | BYTE_HEX | BYTE_DIGIT,
	['A' ... 'F'] = LETTER | BYTE_HEX,
	['G' ... 'Z'] = LETTER,
	['a' ... 'f'] = LETTER | BYTE_HEX,
	['g' ... 'z'] = LETTER,
	['!'] = BOTH,
	['$'] = BOTH,
	['&'] = BOTH,
	['\''] = BOTH,
	['*'] = BOTH,
	['+'] = BOTH,
	['-'] = BOTH,
	['.'] = BOTH,
	['_'] = BOTH,
	['~'] = BOTH,
	['#'] = BYTE_TOKEN,
	['%'] = BYTE_TOKEN,
	['^'] = BYTE_TOKEN,
	['`'] = BYTE_TOKEN,
	['|'] = BYTE_TOKEN,
	['('] = BYTE_NAME,
	[')'] = BYTE_NAME,
	[','] = BYTE_NAME,
	[';'] = BYTE_NAME,
	['='] = BYTE_NAME,
};

int
weft__http_refuse(struct weft__http_fault *fault, int status, const char *text)
{
	bool too_much = status == 413 || status == 414 || status == 431;

	fault->status = status;
	fault->error = too_much ? WEFT_EMSGSIZE : WEFT_EPROTO;
	fault->text = text;
	return weft_fail(fault->error, "weft_http_*: %s", text);
}

bool
weft__http_is_token(struct text text)
{
	for (size_t i = 0; i < text.size; i++)
		if (!byte_is(text.data[i], BYTE_TOKEN))
			return false;
	return text.size > 0;
}

static char
lower_of(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

bool
weft__http_same(struct text text, const char *name)
{
	for (size_t i = 0; i < text.size; i++)
		if (name[i] == '\0' || lower_of(text.data[i]) != lower_of(name[i]))
			return false;
	return name[text.size] == '\0';
}

bool
weft__http_is_one_of(struct text text, const char *const *names)
{
	while (*names && !weft__http_same(text, *names))
		names++;
	return *names != NULL;
}

static struct text
trimmed(const char *from, const char *to)
{
	while (from < to && is_blank(*from))
		from++;
	while (from < to && is_blank(to[-1]))
		to--;
	return (struct text){ from, (size_t)(to - from) };
}

bool
weft__http_list_next(struct text *list, struct text *element)
{
	const char *end, *comma;

	if (!list->data)
		return false;
	end = list->data + list->size;
	comma = memchr(list->data, ',', list->size);
	*element = trimmed(list->data, comma ? comma : end);
	if (comma)
		*list = (struct text){ comma + 1, (size_t)(end - comma - 1) };
	else
		*list = (struct text){ NULL, 0 };
	return true;
}

bool
weft__http_decimal(struct text text, uint64_t *out)
{
	uint64_t number = 0;

	for (size_t i = 0; i < text.size; i++) {
		unsigned digit = (unsigned)(text.data[i] - '0');

		if (!byte_is(text.data[i], BYTE_DIGIT) || number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	if (text.size == 0)
		return false;
	*out = number;
	return true;
}
