/* redis_address.c - addresses of endpoints: redis://user:password@host:port/db, rediss://,
 * redis+unix:/path.
 *
 * The stored address is the one for weft_stream_connect().  It contains no secrets and so may be
 * part of error texts.  User and password may contain percent-encoded bytes.
 */
#include "redis_client.h"
#include <stdio.h>
#include "base/proto_hex.h"

#define PORT "6379"

char *
weft__redis_copy(const char *text, size_t size)
{
	char *copy = weft_alloc(size + 1);

	if (copy) {
		memcpy(copy, text, size);
		copy[size] = '\0';
	}
	return copy;
}

/* Copy a text and decode %XX. */
static int
decode(const char *text, size_t size, char **out)
{
	char *copy = weft__redis_copy(text, size), *to = copy;
	const char *end = text + size;

	if (!copy)
		return weft_fail(WEFT_ENOMEM, "weft_redis_open: out of memory");
	while (text < end) {
		int byte = weft__percent_next(&text, end);

		if (byte <= 0) {
			weft_release(copy);
			return weft_fail(WEFT_EINVAL,
			                 "weft_redis_open: user or password: two "
			                 "hexadecimal digits (not 00) must follow a percent sign");
		}
		*to++ = (char)byte;
	}
	*to = '\0';
	*out = copy;
	return 0;
}

/* "user:password", ":password", "user". */
static int
read_user(weft_redis *redis, const char *text, size_t size)
{
	const char *colon = memchr(text, ':', size);
	size_t user = colon ? (size_t)(colon - text) : size;
	int rc = 0;

	if (user > 0)
		rc = decode(text, user, &redis->user);
	if (rc == 0 && colon)
		rc = decode(colon + 1, size - user - 1, &redis->password);
	return rc;
}

static int
read_database(weft_redis *redis, const char *text)
{
	size_t size = strlen(text);

	if (size > 9 || strspn(text, "0123456789") != size)
		return weft_fail(WEFT_EINVAL, "weft_redis_open: the database is not a number");
	while (size > 0 && *text == '0') {
		text++;
		size--;
	}
	memcpy(redis->database, text, size + 1);
	return 0;
}

/* "host:port"; each may be missing; an IPv6 address is in brackets. */
static int
read_host(weft_redis *redis, const char *scheme, const char *text, size_t size)
{
	const char *bracket = size > 0 && text[0] == '[' ? memchr(text, ']', size) : NULL;
	const char *from = bracket ? bracket : text;
	const char *colon = memchr(from, ':', size - (size_t)(from - text));
	size_t host = colon ? (size_t)(colon - text) : size;
	const char *port = colon ? colon + 1 : PORT;
	size_t port_size = colon ? size - host - 1 : sizeof(PORT) - 1;
	size_t room = size + 32;

	if (port_size == 0 || port_size > 5 || strspn(port, "0123456789") < port_size)
		return weft_fail(WEFT_EINVAL, "weft_redis_open: the port is not a number");
	redis->address = weft_alloc(room);
	if (!redis->address)
		return weft_fail(WEFT_ENOMEM, "weft_redis_open: out of memory");
	(void)snprintf(redis->address, room, "%s%.*s:%.*s", scheme, host > 0 ? (int)host : 9,
	               host > 0 ? text : "127.0.0.1", (int)port_size, port);
	return 0;
}

static int
read_net(weft_redis *redis, const char *scheme, const char *text)
{
	size_t size = strcspn(text, "/?#");
	const char *rest = text + size;
	const char *at = NULL;
	int rc = 0;

	for (size_t i = 0; i < size; i++)
		if (text[i] == '@')
			at = text + i; /* the last one: a password may contain others */
	if (*rest == '/')
		rc = read_database(redis, rest + 1);
	else if (*rest)
		rc = weft_fail(WEFT_EINVAL, "weft_redis_open: only /db may follow host and port");
	if (rc == 0 && at)
		rc = read_user(redis, text, (size_t)(at - text));
	if (rc < 0)
		return rc;
	if (at) {
		size -= (size_t)(at + 1 - text);
		text = at + 1;
	}
	return read_host(redis, scheme, text, size);
}

static int
read_path(weft_redis *redis, const char *path)
{
	size_t size = strlen(path);

	if (size == 0)
		return weft_fail(WEFT_EINVAL, "weft_redis_open: the path of the socket is missing");
	redis->address = weft_alloc(size + 6);
	if (!redis->address)
		return weft_fail(WEFT_ENOMEM, "weft_redis_open: out of memory");
	memcpy(redis->address, "unix:", 5);
	memcpy(redis->address + 5, path, size + 1);
	return 0;
}

int
weft__redis_address(weft_redis *redis, const char *text)
{
	if (strncmp(text, "redis://", 8) == 0)
		return read_net(redis, "tcp://", text + 8);
	if (strncmp(text, "rediss://", 9) == 0)
		return read_net(redis, "tls://", text + 9);
	if (strncmp(text, "redis+unix:", 11) == 0)
		return read_path(redis, text + 11);
	return weft_fail(WEFT_EINVAL, "weft_redis_open: the address must begin with "
	                              "redis://, rediss:// or redis+unix:");
}
