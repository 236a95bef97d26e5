/* store_reply.c - writes replies, in the protocol that the client has chosen. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include "store/commands/commands.h"

#define ROOM_MIN    1024u /* first size of the output buffer */
#define ELEMENT_MIN 3u    /* shortest element of a reply, in bytes */

/* Returns room for `size` bytes; NULL if nothing is written to this client. */
static char *
reply_reserve(struct client *client, size_t size)
{
	if (client->flags & CLIENT_CLOSING)
		return NULL;
	if (client->out.size == 0)
		client_wake(client);
	if (client->out.room - client->out.size >= size)
		return client->out.data + client->out.size;
	if (client->out.size + client->unwritten + size > client->store->opts.output_max) {
		client_drop(client);
		return NULL;
	}
	client->out.room = client->out.room ? client->out.room : ROOM_MIN;
	while (client->out.room - client->out.size < size)
		client->out.room *= 2;
	client->out.data = memory_resize(&client->store->traffic, client->out.data,
	                                 client->out.room);
	return client->out.data + client->out.size;
}

static void
reply_raw(struct client *client, const char *text)
{
	size_t size = strlen(text);
	char *at = reply_reserve(client, size);

	if (!at)
		return;
	memcpy(at, text, size);
	client->out.size += size;
}

/* Writes a line of a type byte and a number to `at`.  Returns its size. */
static size_t
format_line(char *at, char kind, int64_t number)
{
	size_t size = 1;

	at[0] = kind;
	if (number >= 0 && number < 10)
		at[size++] = (char)('0' + number);
	else
		size += integer_format(at + 1, number).size;
	at[size++] = '\r';
	at[size++] = '\n';
	return size;
}

static void
reply_line(struct client *client, char kind, int64_t number)
{
	char *at = reply_reserve(client, INTEGER_MAX + 3);

	if (at)
		client->out.size += format_line(at, kind, number);
}

void
reply_status(struct client *client, const char *text)
{
	reply_raw(client, "+");
	reply_raw(client, text);
	reply_raw(client, "\r\n");
}

void
reply_ok(struct client *client)
{
	reply_raw(client, "+OK\r\n");
}

/* Newlines in client input would be parsed as the end of the reply. */
bool
reply_error(struct client *client, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (char *at = text; *at; at++)
		*at = *at == '\r' || *at == '\n' ? ' ' : *at;
	reply_raw(client, "-");
	reply_raw(client, text);
	reply_raw(client, "\r\n");
	return false;
}

void
reply_integer(struct client *client, int64_t number)
{
	reply_line(client, ':', number);
}

void
reply_bulk(struct client *client, struct slice slice)
{
	char *at = reply_reserve(client, slice.size + INTEGER_MAX + 5);
	size_t size;

	if (!at)
		return;
	size = format_line(at, '$', (int64_t)slice.size);
	memcpy(at + size, slice.data, slice.size);
	size += slice.size;
	at[size++] = '\r';
	at[size++] = '\n';
	client->out.size += size;
}

void
reply_text(struct client *client, const char *text)
{
	reply_bulk(client, (struct slice){ text, strlen(text) });
}

void
reply_string(struct client *client, const struct string *string)
{
	if (string)
		reply_bulk(client, string_slice(string));
	else
		reply_null(client);
}

void
reply_double(struct client *client, double number)
{
	char text[32];
	int size = isinf(number) ? snprintf(text, sizeof(text), "%s", number > 0 ? "inf" : "-inf")
	                         : snprintf(text, sizeof(text), "%.17g", number);

	if (client->protocol < 3) {
		reply_bulk(client, (struct slice){ text, (size_t)size });
		return;
	}
	reply_raw(client, ",");
	reply_raw(client, text);
	reply_raw(client, "\r\n");
}

void
reply_null(struct client *client)
{
	reply_raw(client, client->protocol < 3 ? "$-1\r\n" : "_\r\n");
}

void
reply_null_array(struct client *client)
{
	reply_raw(client, client->protocol < 3 ? "*-1\r\n" : "_\r\n");
}

/* If even the shortest elements would exceed output_max, the client is dropped before the reply
 * is produced. */
void
reply_many(struct client *client, char kind, size_t count)
{
	if (count > client->store->opts.output_max / ELEMENT_MIN) {
		client_drop(client);
		return;
	}
	if (client->protocol < 3) {
		count *= kind == '%' ? 2 : 1;
		kind = '*';
	}
	reply_line(client, kind, (int64_t)count);
}

size_t
reply_later(const struct client *client)
{
	return client->out.size;
}

/* Writes the header at the end, and then moves it to its position. */
void
reply_count(struct client *client, size_t position, char kind, size_t count)
{
	size_t end = client->out.size, size;
	char line[INTEGER_MAX + 3], *data;

	reply_many(client, kind, count);
	if (client->flags & CLIENT_CLOSING)
		return;
	data = client->out.data;
	size = client->out.size - end;
	memcpy(line, data + end, size);
	memmove(data + position + size, data + position, end - position);
	memcpy(data + position, line, size);
}
