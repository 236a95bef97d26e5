/* encode.c - encode a command: a list of texts. */
#include "resp.h"

static unsigned
count_digits(size_t number)
{
	unsigned count = 1;

	for (; number >= 10; number /= 10)
		count++;
	return count;
}

/* A type, a number and a line end. */
static char *
put_line(char *at, char type, size_t number)
{
	unsigned digits = 1;

	*at++ = type;
	if (number >= 10)
		digits = count_digits(number);
	for (unsigned i = digits; i > 0; number /= 10)
		at[--i] = (char)('0' + number % 10);
	at += digits;
	*at++ = '\r';
	*at++ = '\n';
	return at;
}

size_t
weft__resp_size(const weft_span *args, size_t count)
{
	size_t size = 3 + count_digits(count);

	for (size_t i = 0; i < count; i++)
		size += 5 + count_digits(args[i].size) + args[i].size;
	return size;
}

char *
weft__resp_put(char *at, const weft_span *args, size_t count)
{
	at = put_line(at, '*', count);
	for (size_t i = 0; i < count; i++) {
		at = put_line(at, '$', args[i].size);
		/* Empty data may be NULL, which memcpy() does not allow. */
		if (args[i].size > 0)
			memcpy(at, args[i].data, args[i].size);
		at += args[i].size;
		*at++ = '\r';
		*at++ = '\n';
	}
	return at;
}
