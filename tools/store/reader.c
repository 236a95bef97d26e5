/* reader.c - parses requests from bytes that arrive in pieces.
 *
 *   1. reader->at is after the last complete line or argument; or inside an incomplete inline
 *      command, where the search for its end continues.
 *   2. The array of arguments grows as they arrive, never by the announced count.
 */
#include <ctype.h>
#include <stdio.h>
#include "reader.h"

#define LINE_MAX_BYTES 32 /* longest line with a count or a size */
#define KEEP_WORDS     1024u

void
reader_init(struct reader *reader, struct heap *heap)
{
	memset(reader, 0, sizeof(*reader));
	reader->heap = heap;
	reader->words = reader->few;
	reader->room = READER_WORDS;
}

static void
free_words(struct reader *reader)
{
	if (reader->words != reader->few)
		heap_give(reader->heap, reader->words, reader->room * sizeof(*reader->words));
	reader->words = reader->few;
	reader->room = READER_WORDS;
}

void
reader_fini(struct reader *reader)
{
	free_words(reader);
	text_free(reader->heap, reader->line);
	reader->line = NULL;
}

void
reader_reset(struct reader *reader)
{
	reader->count = 0;
	reader->left = 0;
	reader->at = 0;
	reader->has_bulk = false;
	if (reader->line) {
		text_free(reader->heap, reader->line);
		reader->line = NULL;
	}
	if (reader->room > KEEP_WORDS)
		free_words(reader);
}

void
reader_moved(struct reader *reader, const char *from, const char *to)
{
	for (uint32_t i = 0; i < reader->count; i++)
		reader->words[i].data = to + (reader->words[i].data - from);
}

static ssize_t
store_reader_fail(struct reader *reader, const char *text)
{
	(void)snprintf(reader->wrong, sizeof(reader->wrong), "%s", text);
	return -1;
}

static void
store_reader_make_room(struct reader *reader)
{
	size_t room = (size_t)reader->room * 2;
	struct word *words = heap_take(reader->heap, room * sizeof(*reader->words));

	memcpy(words, reader->words, reader->count * sizeof(*words));
	free_words(reader);
	reader->words = words;
	reader->room = (uint32_t)room;
}

static void
add_word(struct reader *reader, const char *data, size_t size)
{
	if (reader->count == reader->room)
		store_reader_make_room(reader);
	reader->words[reader->count++] = (struct word){ data, size };
}

/* --- inline commands -------------------------------------------------------- */

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static char
escaped(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'a':
		return '\a';
	default:
		return c;
	}
}

/* Copies a quoted argument to `*out`.  Returns the position after the closing quote, or NULL. */
static const char *
unquote(const char *at, const char *end, char **out)
{
	char quote = *at++;

	for (; at < end && *at != quote; at++) {
		if (quote == '"' && *at == '\\' && end - at > 3 && at[1] == 'x' && hex(at[2]) >= 0
		    && hex(at[3]) >= 0) {
			*(*out)++ = (char)(hex(at[2]) * 16 + hex(at[3]));
			at += 3;
		} else if (quote == '"' && *at == '\\' && end - at > 1) {
			*(*out)++ = escaped(*++at);
		} else if (quote == '\'' && *at == '\\' && end - at > 1 && at[1] == '\'') {
			*(*out)++ = *++at;
		} else {
			*(*out)++ = *at;
		}
	}
	if (at == end || (at + 1 < end && !isspace((unsigned char)at[1])))
		return NULL; /* not closed, or not followed by a blank */
	return at + 1;
}

/* Copies one argument to `*out`.  Returns the position after it, or NULL. */
static const char *
line_word(const char *at, const char *end, char **out)
{
	while (at < end && !isspace((unsigned char)*at)) {
		if (*at == '"' || *at == '\'')
			return unquote(at, end, out);
		*(*out)++ = *at++;
	}
	return at;
}

static ssize_t
split(struct reader *reader, const char *data, size_t size)
{
	const char *at = data, *end = data + size;
	char *out;

	reader->line = text_new(reader->heap, (struct word){ data, size });
	out = reader->line->bytes;
	for (;;) {
		char *begin = out;

		while (at < end && isspace((unsigned char)*at))
			at++;
		if (at == end)
			return 0;
		at = line_word(at, end, &out);
		if (!at)
			return store_reader_fail(reader, "unbalanced quotes in request");
		add_word(reader, begin, (size_t)(out - begin));
	}
}

static ssize_t
read_line(struct reader *reader, const struct reader_limits *limits, const char *data, size_t size)
{
	const char *end = memchr(data + reader->at, '\n', size - reader->at);
	size_t line = end ? (size_t)(end - data) : size;

	reader->at = line;
	if (line > limits->inline_max)
		return store_reader_fail(reader, "too big inline request");
	if (!end)
		return 0;
	if (line > 0 && data[line - 1] == '\r')
		line--;
	if (split(reader, data, line) < 0)
		return -1;
	return end - data + 1;
}

/* --- arrays ----------------------------------------------------------------- */

/* Parses the number of a line that starts at `at` with a type byte.  Returns the position of the
 * next line, 0 if the line is incomplete, -1 if it is not valid. */
static ssize_t
line_number(const char *data, size_t at, size_t size, int64_t *out)
{
	size_t i = at + 1, most = at + LINE_MAX_BYTES;
	const char *end;

	if (i < size && (unsigned char)(data[i] - '1') < 9) { /* the common case */
		int64_t number = data[i] - '0';

		for (i++; i < size && (unsigned char)(data[i] - '0') < 10 && i < at + 11; i++)
			number = number * 10 + (data[i] - '0');
		if (i + 1 < size && data[i] == '\r') {
			*out = number;
			return (ssize_t)i + 2;
		}
	}
	i = at + 1;
	end = memchr(data + i, '\r', (size < most ? size : most) - i);
	if (!end)
		return size < most ? 0 : -1;
	if (!number_read((struct word){ data + i, (size_t)(end - data) - i }, out))
		return -1;
	i = (size_t)(end - data) + 2;
	return i > size ? 0 : (ssize_t)i;
}

/* Parses the first line of an array.  Returns 1, 0 if it is incomplete, -1 on error. */
static int
store_reader_read_count(struct reader *reader, const struct reader_limits *limits, const char *data,
                        size_t size)
{
	int64_t count;
	ssize_t next = line_number(data, 0, size, &count);

	if (next == 0)
		return 0;
	if (next < 0 || count > limits->words_max)
		return (int)store_reader_fail(reader, "invalid multibulk length");
	if (reader->is_stranger && count > READER_STRANGER_WORDS)
		return (int)store_reader_fail(reader, "unauthenticated multibulk length");
	reader->at = (size_t)next;
	reader->left = count;
	return 1;
}

/* Parses the size line of an argument.  Returns 1, 0 if it is incomplete, -1 on error. */
static int
read_bulk(struct reader *reader, const struct reader_limits *limits, const char *data, size_t size)
{
	int64_t bulk;
	ssize_t next;

	if (reader->at >= size)
		return 0;
	if (data[reader->at] != '$') {
		(void)snprintf(reader->wrong, sizeof(reader->wrong), "expected '$', got '%c'",
		               data[reader->at]);
		return -1;
	}
	next = line_number(data, reader->at, size, &bulk);
	if (next == 0)
		return 0;
	if (next < 0 || bulk < 0 || (uint64_t)bulk > limits->bulk_max
	    || (size_t)next > limits->request_max
	    || (uint64_t)bulk > limits->request_max - (size_t)next)
		return (int)store_reader_fail(reader, "invalid bulk length");
	if (reader->is_stranger && bulk > READER_STRANGER_BULK)
		return (int)store_reader_fail(reader, "unauthenticated bulk length");
	reader->at = (size_t)next;
	reader->bulk = (size_t)bulk;
	reader->has_bulk = true;
	return 1;
}

ssize_t
reader_next(struct reader *reader, const struct reader_limits *limits, const char *data,
            size_t size)
{
	int rc;

	if (size == 0)
		return 0;
	if (reader->left == 0) {
		if (data[0] != '*')
			return read_line(reader, limits, data, size);
		rc = store_reader_read_count(reader, limits, data, size);
		if (rc <= 0)
			return rc;
	}
	while (reader->left > 0) {
		if (!reader->has_bulk) {
			rc = read_bulk(reader, limits, data, size);
			if (rc <= 0)
				return rc;
		}
		if (size - reader->at < reader->bulk + 2)
			return 0;
		add_word(reader, data + reader->at, reader->bulk);
		reader->at += reader->bulk + 2;
		reader->has_bulk = false;
		reader->left--;
	}
	return (ssize_t)reader->at;
}
