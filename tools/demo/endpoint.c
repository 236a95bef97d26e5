/* endpoint.c - parses the address of Redis, for the proxy and for its clients. */
#include <stdio.h>
#include <string.h>
#include "service.h"

static int
hex_of(char byte)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = byte ? strchr(digits, byte | 0x20) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Decodes %XX escapes into a C string. */
static int
decode(const char *text, size_t size, char *out, size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < size; i++) {
		int byte = (unsigned char)text[i];

		if (byte == '%') {
			int high = i + 2 < size ? hex_of(text[i + 1]) : -1;
			int low = i + 2 < size ? hex_of(text[i + 2]) : -1;

			byte = high * 16 + low;
			if (high < 0 || low < 0 || byte == 0)
				return weft_fail(WEFT_EINVAL,
				                 "a percent sign in the Redis URL must be followed "
				                 "by two hex digits");
			i += 2;
		}
		if (count + 1 >= max)
			return weft_fail(WEFT_EMSGSIZE, "user or password is too long");
		out[count++] = (char)byte;
	}
	out[count] = '\0';
	return 0;
}

/* Parses "user:password"; either may be missing. */
static int
read_userinfo(const char *text, size_t size, struct endpoint *out)
{
	const char *colon = memchr(text, ':', size);
	size_t user = colon ? (size_t)(colon - text) : size;
	int rc;

	if (size + 2 > sizeof(out->userinfo))
		return weft_fail(WEFT_EMSGSIZE, "user and password are too long");
	(void)snprintf(out->userinfo, sizeof(out->userinfo), "%.*s@", (int)size, text);
	rc = decode(text, user, out->user, sizeof(out->user));
	if (rc == 0 && colon)
		rc = decode(colon + 1, size - user - 1, out->password, sizeof(out->password));
	return rc;
}

static int
read_net(const char *text, struct endpoint *out)
{
	size_t size = strcspn(text, "/");
	const char *database = text[size] ? text + size + 1 : "";
	const char *at = memrchr(text, '@', size);
	const char *host = at ? at + 1 : text;
	size_t host_size = size - (size_t)(host - text);
	const char *bracket = memchr(host, ']', host_size);
	const char *from = bracket ? bracket : host;
	bool port = memchr(from, ':', host_size - (size_t)(from - host));
	int rc = at ? read_userinfo(text, (size_t)(at - text), out) : 0;

	if (rc < 0)
		return rc;
	if (strlen(database) >= sizeof(out->database)
	    || strspn(database, "0123456789") != strlen(database))
		return weft_fail(WEFT_EINVAL, "the database in the Redis URL is not a number");
	(void)snprintf(out->database, sizeof(out->database), "%s", database);
	if (host_size > 256)
		return weft_fail(WEFT_EINVAL, "the host is too long");
	(void)snprintf(out->upstream, sizeof(out->upstream), "tcp://%.*s%s",
	               host_size ? (int)host_size : 9, host_size ? host : "127.0.0.1",
	               port ? "" : ":6379");
	return 0;
}

int
endpoint_read(const char *url, struct endpoint *out)
{
	static const char net[] = "redis://", local[] = "redis+unix:";
	char shown[256];

	*out = (struct endpoint){ 0 };
	if (!url)
		return 0;
	if (strncmp(url, net, sizeof(net) - 1) == 0)
		return read_net(url + sizeof(net) - 1, out);
	if (strncmp(url, local, sizeof(local) - 1) == 0 && strlen(url) < sizeof(out->upstream)) {
		(void)snprintf(out->upstream, sizeof(out->upstream), "unix:%s",
		               url + sizeof(local) - 1);
		return 0;
	}
	return weft_fail(WEFT_EINVAL,
	                 "%s: use redis://HOST:PORT or redis+unix:/PATH (TLS is not supported)",
	                 weft_addr_mask(url, shown, sizeof(shown)));
}
