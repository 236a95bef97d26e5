/* blocking.c - a plain Redis client: one socket, one blocking call at a time.
 *
 * It uses nothing of weft except error texts.  Commands are sent as inline commands, which every
 * server accepts; replies are RESP2: lines, numbers, strings, and lists of them.
 */
#include "blocking.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void
blocking_init(struct blocking *client)
{
	client->fd = -1;
	client->size = client->used = 0;
}

void
blocking_close(struct blocking *client)
{
	if (client->fd >= 0)
		(void)close(client->fd);
	blocking_init(client);
}

/* --- the socket -------------------------------------------------------------------- */

static int
fail_system(const char *what)
{
	int error = errno == EAGAIN ? ETIMEDOUT : errno;

	return weft_fail(-error, "%s: %s", what, weft_strerror(-error));
}

static int
send_all(struct blocking *client, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t sent = send(client->fd, data, size, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return fail_system("send");
		data += sent > 0 ? sent : 0;
		size -= sent > 0 ? (size_t)sent : 0;
	}
	return 0;
}

static int
receive_some(struct blocking *client)
{
	ssize_t size;

	if (client->size == sizeof(client->buffer))
		return weft_fail(WEFT_EMSGSIZE, "redis: the reply is too long");
	do
		size = recv(client->fd, client->buffer + client->size,
		            sizeof(client->buffer) - client->size, 0);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return fail_system("receive");
	if (size == 0)
		return weft_fail(WEFT_EPIPE, "the connection was lost");
	client->size += (size_t)size;
	return 0;
}

/* --- replies ----------------------------------------------------------------------- */

/* Returns the next line, without its terminator, as a C string. */
static int
read_line(struct blocking *client, char **out)
{
	int rc = 0;

	for (;;) {
		char *begin = client->buffer + client->used;
		char *end = memmem(begin, client->size - client->used, "\r\n", 2);

		if (end) {
			*end = '\0';
			*out = begin;
			client->used = (size_t)(end + 2 - client->buffer);
			return 0;
		}
		rc = receive_some(client);
		if (rc < 0)
			return rc;
	}
}

static int
read_text(struct blocking *client, size_t size, char **out)
{
	int rc = 0;

	while (rc == 0 && client->size - client->used < size + 2)
		rc = receive_some(client);
	if (rc < 0)
		return rc;
	*out = client->buffer + client->used;
	(*out)[size] = '\0';
	client->used += size + 2;
	return 0;
}

/* Reads a line, a number or a string; NULL for nil. */
static int
read_item(struct blocking *client, char *line, char **out)
{
	long size;

	*out = line + 1;
	if (line[0] == '+' || line[0] == ':')
		return 0;
	if (line[0] == '-')
		return weft_fail(WEFT_EREPLY, "%s", line + 1);
	size = strtol(line + 1, NULL, 10);
	if (line[0] != '$' || size > BLOCKING_BUFFER)
		return weft_fail(WEFT_EPROTO, "redis: the reply is not valid RESP2");
	if (size >= 0)
		return read_text(client, (size_t)size, out);
	*out = NULL;
	return 0;
}

static int
read_reply(struct blocking *client, struct blocking_reply *out)
{
	char *line, *item;
	long count = 1;
	int rc = read_line(client, &line);
	bool list = rc == 0 && line[0] == '*';

	out->count = 0;
	if (list)
		count = strtol(line + 1, NULL, 10);
	if (count > BLOCKING_ITEMS)
		return weft_fail(WEFT_EMSGSIZE, "redis: the list is too long");
	while (rc == 0 && count-- > 0) {
		if (list)
			rc = read_line(client, &line);
		if (rc == 0)
			rc = read_item(client, line, &item);
		if (rc == 0 && item)
			out->items[out->count++] = item;
	}
	return rc;
}

/* --- calls -------------------------------------------------------------------------- */

static int
exchange(struct blocking *client, const char *line, size_t size, struct blocking_reply *out)
{
	int rc = send_all(client, line, size);

	client->size = client->used = 0;
	return rc < 0 ? rc : read_reply(client, out);
}

/* Adds an argument as a bulk string, so it may contain any bytes. */
static void
add_word(struct text *text, const char *word)
{
	text_add(text, "$%zu\r\n%s\r\n", strlen(word), word);
}

static int
greet(struct blocking *client, const struct endpoint *to)
{
	char data[512];
	struct text text = text_in(data, sizeof(data));
	struct blocking_reply reply;
	int rc = 0;

	if (to->password[0]) {
		text_add(&text, "*%d\r\n", to->user[0] ? 3 : 2);
		add_word(&text, "AUTH");
		if (to->user[0])
			add_word(&text, to->user);
		add_word(&text, to->password);
		rc = exchange(client, text.data, text.size, &reply);
	}
	if (rc == 0 && to->database[0]) {
		text = text_in(data, sizeof(data));
		text_add(&text, "SELECT %s\r\n", to->database);
		rc = exchange(client, text.data, text.size, &reply);
	}
	return rc;
}

static int
dial(struct blocking *client, const struct demo *demo)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)far_port(demo->far)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct timeval patience = { .tv_sec = RUN_DEADLINE / WEFT_S };
	int on = 1;

	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client->fd < 0)
		return fail_system("socket");
	(void)setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(client->fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return fail_system("connect");
	return greet(client, &demo->endpoint);
}

int
blocking_call(struct blocking *client, const struct demo *demo, struct blocking_reply *out,
              const char *format, ...)
{
	char line[256];
	va_list args;
	int size, rc = client->fd < 0 ? dial(client, demo) : 0;

	va_start(args, format);
	size = vsnprintf(line, sizeof(line) - 2, format, args);
	va_end(args);
	if (rc == 0 && (size < 0 || (size_t)size >= sizeof(line) - 2))
		rc = WEFT_EMSGSIZE;
	if (rc == 0) {
		memcpy(line + size, "\r\n", 2);
		rc = exchange(client, line, (size_t)size + 2, out);
	}
	if (rc < 0)
		blocking_close(client);
	return rc;
}
