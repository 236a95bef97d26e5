/* store_reader.c - parses requests from bytes that arrive in pieces.
 *
 * The arguments of an array are parsed as they arrive: no byte of them is parsed twice, however the
 * input was split.  The array of arguments grows with them, never by the announced count.
 */
#include "store/connection/store_reader.h"
#include <ctype.h>
#include <stdio.h>

#define LINE_MAX_BYTES 32   /* longest line with a count or a size */
#define KEEP_ARGS      1024 /* room for arguments that is kept for the next request */

void
reader_clear(struct reader *reader)
{
	memory_free(reader->memory, reader->argv);
	memory_free(reader->memory, reader->line);
	reader->argv = NULL;
	reader->line = NULL;
	reader->room = 0;
}

static ssize_t
reader_fail(struct reader *reader, const char *error)
{
	(void)snprintf(reader->error, sizeof(reader->error), "%s", error);
	return -1;
}

static void
add_arg(struct reader *reader, const char *data, size_t size)
{
	if (reader->argc == reader->room) {
		reader->room = reader->room ? 2 * reader->room : 8;
		reader->argv = memory_resize(reader->memory, reader->argv,
		                             reader->room * sizeof(*reader->argv));
	}
	reader->argv[reader->argc++] = (struct slice){ data, size };
}

/* --- inline commands -------------------------------------------------------- */

/* Redis allows quotes here; this reader does not. */
static bool
split_line(struct reader *reader, struct slice line)
{
	char *at, *end;

	if (memchr(line.data, '"', line.size) || memchr(line.data, '\'', line.size))
		return false;
	reader->line = string_new(reader->memory, line);
	at = reader->line->bytes;
	end = at + line.size;
	while (at < end) {
		char *begin = at;

		while (at < end && !isspace((unsigned char)*at))
			at++;
		if (at > begin)
			add_arg(reader, begin, (size_t)(at - begin));
		at++;
	}
	return true;
}

static ssize_t
read_line(struct reader *reader, const struct reader_limits *limits, const char *data, size_t size)
{
	const char *end = memchr(data, '\n', size);
	size_t line = end ? (size_t)(end - data) : size;

	if (line > limits->inline_max)
		return reader_fail(reader, "too big inline request");
	if (!end)
		return 0;
	if (line > 0 && data[line - 1] == '\r')
		line--;
	if (!split_line(reader, (struct slice){ data, line }))
		return reader_fail(reader, "quotes in an inline request are not supported");
	return end - data + 1;
}

/* --- arrays ----------------------------------------------------------------- */

/* Parses the number of a line that starts at `at` with a type byte.  Returns the position of the
 * next line, 0 if the line is incomplete, -1 if it is not valid. */
static ssize_t
read_number(const char *data, size_t at, size_t size, int64_t *out)
{
	size_t begin = at + 1, most = at + LINE_MAX_BYTES, end = begin;

	for (*out = 0; end < size && end < at + 10 && data[end] >= '0' && data[end] <= '9'; end++)
		*out = 10 * *out + (data[end] - '0');
	if (end + 1 < size && data[end] == '\r' && data[begin] > '0') /* the common case */
		return (ssize_t)end + 2;
	while (end < size && end < most && data[end] != '\r')
		end++;
	if (end == most)
		return -1;
	if (end == size)
		return 0;
	if (!integer_parse((struct slice){ data + begin, end - begin }, out))
		return -1;
	return end + 2 > size ? 0 : (ssize_t)end + 2;
}

/* Parses the size line of an argument at `at`.  Returns the position after it, 0 if it is
 * incomplete, -1 on error. */
static ssize_t
read_size(struct reader *reader, const struct reader_limits *limits, const char *data, size_t at,
          size_t size, size_t *out)
{
	int64_t bulk;
	ssize_t next;

	if (at >= size)
		return 0;
	if (data[at] != '$') {
		(void)snprintf(reader->error, sizeof(reader->error), "expected '$', got '%c'",
		               data[at]);
		return -1;
	}
	next = read_number(data, at, size, &bulk);
	if (next == 0)
		return 0;
	if (next < 0 || bulk < 0 || (uint64_t)bulk > limits->bulk_max
	    || (size_t)next > limits->request_max
	    || (uint64_t)bulk > limits->request_max - (size_t)next)
		return reader_fail(reader, "invalid bulk length");
	if (reader->unauthenticated && bulk > READER_UNAUTH_BULK)
		return reader_fail(reader, "unauthenticated bulk length");
	*out = (size_t)bulk;
	return next;
}

/* Parses the arguments that have arrived. */
static ssize_t
read_args(struct reader *reader, const struct reader_limits *limits, const char *data, size_t size)
{
	while (reader->left > 0) {
		size_t bulk, end;
		ssize_t at = read_size(reader, limits, data, reader->at, size, &bulk);

		if (at <= 0)
			return at;
		end = (size_t)at + bulk + 2;
		if (end > size) {
			reader->need = end;
			return 0;
		}
		add_arg(reader, data + at, bulk);
		reader->at = end;
		reader->left--;
	}
	return (ssize_t)reader->at;
}

/* Parses the first line of an array.  Returns the position after it, 0 if it is incomplete, -1 on
 * error. */
static ssize_t
read_count(struct reader *reader, const struct reader_limits *limits, const char *data, size_t size)
{
	int64_t count;
	ssize_t at = read_number(data, 0, size, &count);

	if (at == 0)
		return 0;
	if (at < 0 || count > limits->args_max)
		return reader_fail(reader, "invalid multibulk length");
	if (reader->unauthenticated && count > READER_UNAUTH_ARGS)
		return reader_fail(reader, "unauthenticated multibulk length");
	reader->at = (size_t)at;
	reader->left = count;
	return at;
}

ssize_t
reader_next(struct reader *reader, const struct reader_limits *limits, const char *data,
            size_t size)
{
	ssize_t rc = 1;

	reader->need = size + 1;
	if (size == 0)
		return 0;
	if (reader->left > 0) { /* it has moved with the input */
		for (size_t i = 0; i < reader->argc; i++)
			reader->argv[i].data = data + (reader->argv[i].data - reader->data);
	} else {
		reader->argc = 0;
		if (reader->line || reader->room > KEEP_ARGS)
			reader_clear(reader);
		if (data[0] != '*')
			return read_line(reader, limits, data, size);
		rc = read_count(reader, limits, data, size);
	}
	reader->data = data;
	return rc <= 0 ? rc : read_args(reader, limits, data, size);
}
