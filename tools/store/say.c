/* say.c - writes replies, in the protocol that the client has chosen. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include "say.h"

#define SLAB        16384u /* size of a buffer that is kept for reuse */
#define ELEMENT_MIN 3u     /* shortest element of a reply, in bytes */

static void
say_grow(struct client *client, size_t more)
{
	struct weft_store *store = client->store;
	struct buffer *out = &client->out;
	size_t room = out->room ? out->room : SLAB;

	if (!out->data && more <= SLAB && store->spare_count > 0) {
		*out = store->spare[--store->spare_count];
		return;
	}
	while (room - out->size < more)
		room *= 2;
	out->data = heap_resize(&store->traffic, out->data, out->room, room);
	out->room = room;
}

/* Returns room for `size` bytes; NULL if nothing is written to this client. */
static char *
say_reserve(struct client *client, size_t size)
{
	struct buffer *out = &client->out;

	if (!client_hears(client))
		return NULL;
	if (out->room - out->size < size) {
		if (out->size + client->flying.size + size > client->store->opts.output_max) {
			client->flags |= CLIENT_DOOMED;
			client_dirty(client);
			return NULL;
		}
		say_grow(client, size);
	}
	if (!(client->flags & CLIENT_DIRTY))
		client_dirty(client);
	return out->data + out->size;
}

void
say_raw(struct client *client, const char *data, size_t size)
{
	char *at = say_reserve(client, size);

	if (!at)
		return;
	memcpy(at, data, size);
	client->out.size += size;
}

static void
say_line(struct client *client, char kind, int64_t number)
{
	char *at = say_reserve(client, NUMBER_MAX + 3);
	size_t size = 1;

	if (!at)
		return;
	at[0] = kind;
	if (number >= 0 && number < 10)
		at[size++] = (char)('0' + number);
	else
		size += number_write(at + 1, number);
	at[size++] = '\r';
	at[size++] = '\n';
	client->out.size += size;
}

void
say_ok(struct client *client)
{
	say_raw(client, "+OK\r\n", 5);
}

void
say_status(struct client *client, const char *text)
{
	say_raw(client, "+", 1);
	say_raw(client, text, strlen(text));
	say_raw(client, "\r\n", 2);
}

/* Newlines in client input would be parsed as the end of the reply. */
void
say_error(struct client *client, const char *format, ...)
{
	char text[512];
	va_list args;
	size_t size;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	size = strlen(text);
	while (size > 0 && (text[size - 1] == '\r' || text[size - 1] == '\n'))
		size--;
	for (size_t i = 0; i < size; i++)
		if (text[i] == '\r' || text[i] == '\n')
			text[i] = ' ';
	say_raw(client, "-", 1);
	say_raw(client, text, size);
	say_raw(client, "\r\n", 2);
}

void
say_wrong_kind(struct client *client)
{
	say_error(client, "WRONGTYPE Operation against a key holding the wrong kind of value");
}

void
say_syntax(struct client *client)
{
	say_error(client, "ERR syntax error");
}

/* Replies that the subcommand is unknown. */
void
say_unknown_part(struct client *client, const char *command, struct word part)
{
	say_error(client, "ERR unknown subcommand '%.*s'. Try %s HELP.",
	          (int)(part.size < 128 ? part.size : 128), part.data, command);
}

void
say_number(struct client *client, int64_t number)
{
	say_line(client, ':', number);
}

void
say_bool(struct client *client, bool is)
{
	if (client->protocol < 3)
		say_number(client, is);
	else
		say_raw(client, is ? "#t\r\n" : "#f\r\n", 4);
}

void
say_bulk(struct client *client, struct word word)
{
	char *at = say_reserve(client, word.size + NUMBER_MAX + 5);
	size_t size = 1;

	if (!at)
		return;
	at[0] = '$';
	if (word.size < 10)
		at[size++] = (char)('0' + word.size);
	else
		size += number_write(at + 1, (int64_t)word.size);
	at[size++] = '\r';
	at[size++] = '\n';
	memcpy(at + size, word.data, word.size);
	size += word.size;
	at[size++] = '\r';
	at[size++] = '\n';
	client->out.size += size;
}

void
say_text(struct client *client, const char *text)
{
	say_bulk(client, (struct word){ text, strlen(text) });
}

void
say_double(struct client *client, double number)
{
	char text[REAL_MAX];
	size_t size = real_write(text, number);

	if (client->protocol < 3) {
		say_bulk(client, (struct word){ text, size });
		return;
	}
	say_raw(client, ",", 1);
	say_raw(client, text, size);
	say_raw(client, "\r\n", 2);
}

void
say_verbatim(struct client *client, struct word word)
{
	if (client->protocol < 3) {
		say_bulk(client, word);
		return;
	}
	say_line(client, '=', (int64_t)word.size + 4);
	say_raw(client, "txt:", 4);
	say_raw(client, word.data, word.size);
	say_raw(client, "\r\n", 2);
}

void
say_null(struct client *client)
{
	if (client->protocol < 3)
		say_raw(client, "$-1\r\n", 5);
	else
		say_raw(client, "_\r\n", 3);
}

void
say_null_array(struct client *client)
{
	if (client->protocol < 3)
		say_raw(client, "*-1\r\n", 5);
	else
		say_raw(client, "_\r\n", 3);
}

/* --- aggregates ------------------------------------------------------------- */

/* If even the shortest elements would exceed output_max, the client is dropped before the reply
 * is produced. */
static void
say_begin(struct client *client, char kind, size_t count)
{
	if (count > client->store->opts.output_max / ELEMENT_MIN) {
		client->flags |= CLIENT_DOOMED;
		client_dirty(client);
		return;
	}
	if (client->protocol < 3) {
		count *= kind == '%' ? 2 : 1;
		kind = '*';
	}
	say_line(client, kind, (int64_t)count);
}

void
say_array(struct client *client, size_t count)
{
	say_begin(client, '*', count);
}

void
say_map(struct client *client, size_t count)
{
	say_begin(client, '%', count);
}

void
say_set(struct client *client, size_t count)
{
	say_begin(client, '~', count);
}

void
say_push(struct client *client, size_t count)
{
	say_begin(client, '>', count);
}

size_t
say_later(const struct client *client)
{
	return client->out.size;
}

/* Writes the header at the end, and then moves it to its position. */
void
say_count(struct client *client, size_t place, char kind, size_t count)
{
	size_t end = client->out.size, size;
	char line[NUMBER_MAX + 3];

	say_begin(client, kind, count);
	if (client->flags & CLIENT_DOOMED || client->out.size == end)
		return;
	size = client->out.size - end;
	memcpy(line, client->out.data + end, size);
	memmove(client->out.data + place + size, client->out.data + place, end - place);
	memcpy(client->out.data + place, line, size);
}

/* Moves what was written from `end` on before what was written from `begin` on. */
void
say_turn(struct client *client, size_t begin, size_t end)
{
	size_t size = client->out.size - end;
	char last[128];

	if ((client->flags & CLIENT_DOOMED) || size == 0 || size > sizeof(last))
		return;
	memcpy(last, client->out.data + end, size);
	memmove(client->out.data + begin + size, client->out.data + begin, end - begin);
	memcpy(client->out.data + begin, last, size);
}
