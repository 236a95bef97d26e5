/* redis_format.c - the arguments of a command from a format, as of printf(3).
 *
 * The format is walked twice, to measure and to write, so that everything is one allocation.
 * Spaces in the format separate arguments; spaces in values do not.  The second walk checks the
 * measured size: a string that has grown meanwhile is refused, not overrun.
 */
#include <stdio.h>
#include "resp.h"

struct arguments {
	va_list list;
};

/* What the walk fills.  The first walk only counts. */
struct sink {
	weft_span *args; /* NULL: measure */
	char *bytes;
	size_t count, used; /* arguments and bytes so far */
	size_t room;        /* bytes, without the NUL after the last */
	bool in_word;
};

/* A conversion of the format: a percent sign and what follows it. */
struct conversion {
	char spec[24]; /* for printf(3), without length and letter */
	size_t size;
	char length; /* 'H': hh, 'q': ll, else the letter of the length, or 0 */
	char letter;
	const char *end; /* the byte of the format behind the conversion */
};

static int
redis_format_refuse(const char *format, const char *at, const char *why)
{
	return weft_fail(WEFT_EINVAL, "weft_redis_callf: %s, at byte %zu of \"%.200s\"", why,
	                 (size_t)(at - format), format);
}

/* --- arguments --------------------------------------------------------------- */

static void
begin_word(struct sink *sink)
{
	if (sink->in_word)
		return;
	if (sink->args)
		sink->args[sink->count] = (weft_span){ sink->bytes + sink->used, 0 };
	sink->count++;
	sink->in_word = true;
}

/* Add `size` bytes to the current argument. */
static void
grow_word(struct sink *sink, size_t size)
{
	if (sink->args)
		sink->args[sink->count - 1].size += size;
	sink->used += size;
}

static int
redis_format_add(struct sink *sink, const void *data, size_t size)
{
	begin_word(sink);
	if (sink->args && size > sink->room - sink->used)
		return WEFT_EINVAL;
	if (sink->args && size > 0)
		memcpy(sink->bytes + sink->used, data, size);
	grow_word(sink, size);
	return 0;
}

/* Replace the locale's decimal separator by a point, in place.  Returns the new size. */
static size_t
set_point(char *text, size_t size)
{
	size_t new_size = 0;

	for (size_t i = 0; i < size; i++) {
		bool plain = (text[i] >= '0' && text[i] <= '9')
		             || ((text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z')
		             || text[i] == '+' || text[i] == '-' || text[i] == ' ';

		if (plain)
			text[new_size++] = text[i];
		else if (new_size == 0 || text[new_size - 1] != '.')
			text[new_size++] = '.';
	}
	return new_size;
}

__attribute__((format(printf, 3, 4))) static int
print(struct sink *sink, bool has_point, const char *spec, ...)
{
	char *at = sink->args ? sink->bytes + sink->used : NULL;
	size_t room = sink->args ? sink->room - sink->used + 1 : 0;
	va_list args;
	int size;

	begin_word(sink);
	va_start(args, spec);
	size = vsnprintf(at, room, spec, args);
	va_end(args);
	if (size < 0 || (sink->args && (size_t)size >= room))
		return WEFT_EINVAL;
	grow_word(sink, at && has_point ? set_point(at, (size_t)size) : (size_t)size);
	return 0;
}

/* --- conversions -------------------------------------------------------------- */

/* Copy the bytes at `at` that are in `set` to the spec.  Returns the byte after them, or NULL
 * if they do not fit. */
static const char *
take_spec(struct conversion *c, const char *at, const char *set)
{
	size_t size = strspn(at, set);

	if (c->size + size + 4 > sizeof(c->spec))
		return NULL;
	memcpy(c->spec + c->size, at, size);
	c->size += size;
	return at + size;
}

static const char *
take_length(struct conversion *c, const char *at)
{
	c->length = 0;
	if (!*at || !strchr("hlLjzt", *at))
		return at;
	c->length = *at++;
	if ((c->length != 'h' && c->length != 'l') || *at != c->length)
		return at;
	c->length = c->length == 'h' ? 'H' : 'q';
	return at + 1;
}

/* Parse the conversion at a percent sign; false if it is malformed. */
static bool
read_conversion(struct conversion *c, const char *at)
{
	c->spec[0] = '%';
	c->size = 1;
	at = take_spec(c, at + 1, "-+ #0");
	if (at)
		at = take_spec(c, at, "0123456789");
	if (at && *at == '.') {
		c->spec[c->size++] = '.';
		at = take_spec(c, at + 1, "0123456789");
	}
	if (!at)
		return false;
	at = take_length(c, at);
	c->letter = *at;
	c->end = at + 1;
	return *at != '\0';
}

/* Complete the spec with this length and the letter. */
static const char *
complete(struct conversion *c, char length)
{
	char *end = c->spec + c->size;

	if (length)
		*end++ = length;
	*end++ = c->letter;
	*end = '\0';
	return c->spec;
}

static intmax_t
signed_argument(char length, struct arguments *args)
{
	switch (length) {
	case 'H':
		return (signed char)va_arg(args->list, int);
	case 'h':
		return (short)va_arg(args->list, int);
	case 'l':
		return va_arg(args->list, long);
	case 'q':
		return va_arg(args->list, long long);
	case 'j':
		return va_arg(args->list, intmax_t);
	case 'z':
		return va_arg(args->list, ssize_t);
	case 't':
		return va_arg(args->list, ptrdiff_t);
	default:
		return va_arg(args->list, int);
	}
}

static uintmax_t
unsigned_argument(char length, struct arguments *args)
{
	switch (length) {
	case 'H':
		return (unsigned char)va_arg(args->list, unsigned);
	case 'h':
		return (unsigned short)va_arg(args->list, unsigned);
	case 'l':
		return va_arg(args->list, unsigned long);
	case 'q':
		return va_arg(args->list, unsigned long long);
	case 'j':
		return va_arg(args->list, uintmax_t);
	case 'z':
		return va_arg(args->list, size_t);
	case 't':
		return (uintmax_t)va_arg(args->list, ptrdiff_t);
	default:
		return va_arg(args->list, unsigned);
	}
}

static int
put_number(struct sink *sink, struct conversion *c, struct arguments *args)
{
	if (strchr("eEfFgGaA", c->letter)) {
		if (c->length == 'L')
			return print(sink, true, complete(c, 'L'), va_arg(args->list, long double));
		return c->length && c->length != 'l'
		               ? WEFT_EINVAL
		               : print(sink, true, complete(c, 0), va_arg(args->list, double));
	}
	if (c->length == 'L')
		return WEFT_EINVAL;
	if (c->letter == 'd' || c->letter == 'i')
		return print(sink, false, complete(c, 'j'), signed_argument(c->length, args));
	if (strchr("ouxX", c->letter))
		return print(sink, false, complete(c, 'j'), unsigned_argument(c->length, args));
	return WEFT_EINVAL;
}

static int
put_value(struct sink *sink, struct conversion *c, struct arguments *args)
{
	const char *data;
	size_t size;

	if (!strchr("sb%", c->letter))
		return put_number(sink, c, args);
	if (c->size > 1 || c->length)
		return WEFT_EINVAL;
	if (c->letter == '%')
		return redis_format_add(sink, "%", 1);
	data = va_arg(args->list, const char *);
	if (c->letter == 'b')
		size = va_arg(args->list, size_t);
	else
		size = data ? strlen(data) : 1;
	return data || size == 0 ? redis_format_add(sink, data, size) : WEFT_EINVAL;
}

/* --- the walk ---------------------------------------------------------------- */

static int
walk(struct sink *sink, const char *format, struct arguments *args)
{
	const char *at = format;

	while (*at) {
		size_t plain = strcspn(at, " %");
		struct conversion c;

		if (plain > 0 && redis_format_add(sink, at, plain) < 0)
			return WEFT_EINVAL;
		at += plain;
		if (*at == ' ') {
			sink->in_word = false;
			at++;
		} else if (*at == '%') {
			if (!read_conversion(&c, at) || put_value(sink, &c, args) < 0)
				return redis_format_refuse(format, at,
				                           "invalid conversion or value");
			at = c.end;
		}
	}
	return sink->count > 0 ? 0 : redis_format_refuse(format, at, "an empty command");
}

static int
walk_copy(struct sink *sink, const char *format, va_list list)
{
	struct arguments args;
	int rc;

	va_copy(args.list, list);
	rc = walk(sink, format, &args);
	va_end(args.list);
	return rc;
}

int
weft__resp_format(struct weft__resp_args *out, const char *format, va_list args)
{
	struct sink sink = { .args = NULL };
	size_t spans;
	int rc;

	if (!format)
		return weft_fail(WEFT_EINVAL, "weft_redis_callf: the format is NULL");
	rc = walk_copy(&sink, format, args);
	if (rc < 0)
		return rc;
	spans = sink.count * sizeof(weft_span);
	sink.room = sink.used;
	sink.args = weft_alloc(spans + sink.room + 1);
	if (!sink.args)
		return WEFT_ENOMEM;
	sink.bytes = (char *)sink.args + spans;
	sink.count = sink.used = 0;
	sink.in_word = false;
	rc = walk_copy(&sink, format, args);
	if (rc < 0) {
		weft_release(sink.args);
		return rc;
	}
	*out = (struct weft__resp_args){ sink.count, sink.args };
	return 0;
}
