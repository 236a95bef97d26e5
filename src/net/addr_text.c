/* addr_text.c - parses and formats the text of addresses.
 *
 * Every call that takes an address uses this parser.  It refuses text that another program
 * might read differently: leading zeros, dotted numbers that are not an IPv4 address, IPv6
 * without brackets, and anything behind the port.
 *
 *   1. Formatted text parses to an equal address.  So scopes are formatted as numbers: names of
 *      interfaces can change, and may contain any character.
 *   2. "unix:" alone is a socket without a name, as the system may report it.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include "base/sys.h"
#include "base/text.h"
#include "base/thread.h"
#include "net/addr.h"
#include "net/ip.h"

#define PATH_AT        offsetof(struct sockaddr_un, sun_path)
#define PATH_MAX_BYTES (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)
#define NAME_MAX_BYTES 253 /* of a host name */
#define SCOPE_MAX      16  /* of the name of an interface, with its NUL */

static const struct scheme {
	const char *text;
	enum weft__addr_scheme scheme;
	uint32_t kind;
} schemes[] = {
	{ "tcp://", WEFT__ADDR_TCP, SOCK_STREAM },
	{ "tls://", WEFT__ADDR_TLS, SOCK_STREAM },
	{ "udp://", WEFT__ADDR_UDP, SOCK_DGRAM },
	{ "unix:", WEFT__ADDR_UNIX, SOCK_STREAM },
	{ "unixdgram:", WEFT__ADDR_UNIXDGRAM, SOCK_DGRAM },
	{ "fd:", WEFT__ADDR_FD, 0 },
};

struct reader {
	const char *text;
	const char *at; /* the next byte to read */
	struct weft__addr_parts *parts;
};

#define MASK "***"

/* Masks what precedes the last "@" (after "://", if there is one): user and password.  In a URL it
 * also masks the query, everything after the first "?", unless the last "@" follows that "?".  In
 * "unix:@name" the "@" marks an abstract name, so without "://" an "@" directly behind a colon
 * masks nothing. */
const char *
weft_addr_mask(const char *text, char *out, size_t max)
{
	const char *scheme = strstr(text, "://");
	const char *from = scheme ? scheme + 3 : text;
	const char *at = strrchr(text, '@');
	const char *query = scheme ? strchr(from, '?') : NULL;

	if (!at || at <= from || (!scheme && at[-1] == ':'))
		at = from = text;
	if (query && query < at)
		query = NULL;
	(void)snprintf(out, max, "%.*s%s%.*s%s", (int)(from - text), text, at > from ? MASK : "",
	               query ? (int)(query + 1 - at) : INT32_MAX, at, query ? MASK : "");
	return out;
}

static int
addr_text_fail(const struct reader *reader, const char *at, const char *why)
{
	char shown[300];

	return weft_fail(WEFT_EINVAL, "address \"%s\": %s, at byte %zu",
	                 weft_addr_mask(reader->text, shown, sizeof(shown)), why,
	                 (size_t)(at - reader->text));
}

/* --- parsing: hosts ----------------------------------------------------- */

static void
set_inet(struct weft__addr_parts *parts, const uint8_t ip[4])
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	memcpy(&in.sin_addr, ip, 4);
	memcpy(parts->addr.bytes, &in, sizeof(in));
	parts->addr.size = sizeof(in);
	parts->is_literal = true;
}

static void
set_inet6(struct weft__addr_parts *parts, const uint8_t ip[16], uint32_t scope)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_scope_id = scope };

	memcpy(&in6.sin6_addr, ip, 16);
	memcpy(parts->addr.bytes, &in6, sizeof(in6));
	parts->addr.size = sizeof(in6);
	parts->is_literal = true;
}

/* Parse the number or the name of an interface. */
static int
read_scope(const struct reader *reader, const char *at, size_t size, uint32_t *out)
{
	char name[SCOPE_MAX];
	int rc;

	if (weft__digits_read(at, size, UINT32_MAX, out) && *out > 0)
		return 0;
	if (size == 0 || size >= sizeof(name))
		return addr_text_fail(reader, at,
		                      "the scope is not the name or number of an interface");
	memcpy(name, at, size);
	name[size] = '\0';
	rc = weft__sys->interface_index(name);
	if (rc <= 0)
		return addr_text_fail(reader, at, "no interface has this name");
	*out = (uint32_t)rc;
	return 0;
}

static int
read_inet6(struct reader *reader)
{
	const char *start = reader->at + 1, *end = strchr(start, ']');
	size_t size = end ? (size_t)(end - start) : 0;
	const char *percent = memchr(start, '%', size);
	size_t ip_size = percent ? (size_t)(percent - start) : size;
	uint32_t scope = 0;
	uint8_t ip[16];
	int rc;

	if (!end)
		return addr_text_fail(reader, reader->at, "the bracket is not closed");
	if (!weft__ip6_read(start, ip_size, ip))
		return addr_text_fail(reader, start, "not an IPv6 address");
	rc = percent ? read_scope(reader, percent + 1, size - ip_size - 1, &scope) : 0;
	if (rc < 0)
		return rc;
	set_inet6(reader->parts, ip, scope);
	reader->parts->host = start;
	reader->parts->host_size = ip_size;
	reader->at = end + 1;
	return 0;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_of_name(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'
	       || c == '_' || c == '.';
}

/* Whether the last label is all digits.  No host name ends like that, so check_name() reports such
 * a host as a malformed IPv4 address. */
static bool
is_like_ip4(const char *host, size_t size)
{
	size_t i;

	if (size > 0 && host[size - 1] == '.')
		size--;
	for (i = size; i > 0 && is_digit(host[i - 1]); i--)
		;
	return i < size && (i == 0 || host[i - 1] == '.');
}

static int
check_name(const struct reader *reader, const char *host, size_t size)
{
	if (is_like_ip4(host, size))
		return addr_text_fail(reader, host, "not an IPv4 address");
	for (size_t i = 0; i < size; i++) {
		if (!is_of_name(host[i]))
			return addr_text_fail(reader, host + i, "not allowed in a host name");
		if (host[i] == '.' && (i == 0 || host[i - 1] == '.'))
			return addr_text_fail(reader, host + i,
			                      "a label of the host name is empty");
	}
	return size > NAME_MAX_BYTES ? addr_text_fail(reader, host, "the host name is too long")
	                             : 0;
}

static int
read_host(struct reader *reader)
{
	const char *host = reader->at;
	size_t size = strcspn(host, ":");
	uint8_t ip[16] = { 0 };
	int rc = 0;

	if (host[0] == '[')
		return read_inet6(reader);
	if (host[size] == ':' && strchr(host + size + 1, ':'))
		return addr_text_fail(reader, host, "IPv6 addresses need brackets");
	if (size == 0)
		set_inet6(reader->parts, ip, 0);
	else if (weft__ip4_read(host, size, ip))
		set_inet(reader->parts, ip);
	else
		rc = check_name(reader, host, size);
	reader->parts->host = host;
	reader->parts->host_size = size;
	reader->at = host + size;
	return rc;
}

/* --- parsing: the rest -------------------------------------------------- */

static int
read_port(struct reader *reader)
{
	uint32_t port;

	if (reader->at[0] != ':')
		return addr_text_fail(reader, reader->at, "the port is missing");
	reader->at++;
	if (!weft__digits_read(reader->at, strlen(reader->at), UINT16_MAX, &port))
		return addr_text_fail(reader, reader->at,
		                      "the port is not a number from 0 to 65535");
	reader->parts->port = (uint16_t)port;
	weft__addr_set_port(&reader->parts->addr, (uint16_t)port);
	return 0;
}

static int
read_fd(struct reader *reader)
{
	uint32_t fd;

	if (!weft__digits_read(reader->at, strlen(reader->at), INT32_MAX, &fd))
		return addr_text_fail(reader, reader->at, "not a descriptor number");
	reader->parts->fd = (int)fd;
	return 0;
}

/* An '@' represents the NUL that begins an abstract name. */
static int
read_unix(struct reader *reader)
{
	struct weft__addr_parts *parts = reader->parts;
	size_t size = strnlen(reader->at, PATH_MAX_BYTES + 2);
	bool is_abstract = reader->at[0] == '@';
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	if (size > PATH_MAX_BYTES + is_abstract)
		return addr_text_fail(reader, reader->at + PATH_MAX_BYTES, "the path is too long");
	if (is_abstract && size == 1)
		return addr_text_fail(reader, reader->at + 1, "the name is empty");
	memcpy(un.sun_path, reader->at, size);
	if (is_abstract)
		un.sun_path[0] = '\0';
	memcpy(parts->addr.bytes, &un, sizeof(un));
	parts->addr.size = (uint32_t)(PATH_AT + size + (size > 0 && !is_abstract));
	parts->path = reader->at;
	parts->path_size = size;
	parts->is_literal = true;
	return 0;
}

static const struct scheme *
find_scheme(const char *text)
{
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strncmp(text, schemes[i].text, strlen(schemes[i].text)) == 0)
			return &schemes[i];
	return NULL;
}

int
weft__addr_split(const char *text, struct weft__addr_parts *out)
{
	struct weft__addr_parts parts = { .fd = -1 };
	struct reader reader = { .text = text, .at = text, .parts = &parts };
	const struct scheme *scheme = find_scheme(text);
	int rc;

	if (!scheme)
		return addr_text_fail(
			&reader, text,
			"the scheme is not tcp://, tls://, udp://, unix:, unixdgram: or fd:");
	reader.at += strlen(scheme->text);
	parts.scheme = scheme->scheme;
	parts.addr.kind = scheme->kind;
	switch (scheme->scheme) {
	case WEFT__ADDR_FD:
		rc = read_fd(&reader);
		break;
	case WEFT__ADDR_UNIX:
	case WEFT__ADDR_UNIXDGRAM:
		rc = read_unix(&reader);
		break;
	default:
		rc = read_host(&reader);
		if (rc == 0)
			rc = read_port(&reader);
	}
	if (rc == 0)
		*out = parts;
	return rc;
}

int
weft_addr_parse(const char *text, weft_addr *out)
{
	struct weft__addr_parts parts;
	int rc;

	if (!text || !out)
		return weft__misuse(WEFT_EINVAL, "weft_addr_parse: text or out is NULL");
	rc = weft__addr_split(text, &parts);
	if (rc < 0)
		return rc;
	if (parts.fd >= 0)
		return weft_fail(WEFT_EINVAL, "address \"%.300s\": fd: does not name an address",
		                 text);
	if (!parts.is_literal)
		return weft_fail(WEFT_EINVAL,
		                 "address \"%.300s\": the host is a name; use weft_dns_resolve()",
		                 text);
	*out = parts.addr;
	return 0;
}

/* --- formatting --------------------------------------------------------- */

static void
write_inet(struct weft__text *text, const weft_addr *addr)
{
	struct sockaddr_in in;

	memcpy(&in, addr->bytes, sizeof(in));
	weft__ip4_write(text, (const uint8_t *)&in.sin_addr);
}

static void
write_inet6(struct weft__text *text, const weft_addr *addr)
{
	struct sockaddr_in6 in6;

	memcpy(&in6, addr->bytes, sizeof(in6));
	weft__text_add(text, "[");
	weft__ip6_write(text, in6.sin6_addr.s6_addr);
	if (in6.sin6_scope_id) {
		weft__text_add(text, "%");
		weft__text_number(text, in6.sin6_scope_id);
	}
	weft__text_add(text, "]");
}

/* False if the address has no text: a path that begins with '@' or is longer than PATH_MAX_BYTES,
 * or an abstract name that is empty or contains a NUL. */
static bool
write_unix(struct weft__text *text, const weft_addr *addr)
{
	const char *path = (const char *)addr->bytes + PATH_AT;
	size_t size = addr->size - PATH_AT;
	bool is_abstract = size > 0 && !path[0];
	char name[PATH_MAX_BYTES + 2] = { 0 };

	if (!is_abstract)
		size = strnlen(path, size);
	if (size > PATH_MAX_BYTES + is_abstract || path[0] == '@')
		return false;
	memcpy(name, path, size);
	if (is_abstract)
		name[0] = '@';
	if (strlen(name) != size || (is_abstract && size == 1))
		return false;
	weft__text_add(text, addr->kind == SOCK_DGRAM ? "unixdgram:" : "unix:");
	weft__text_add(text, name);
	return true;
}

static bool
write_addr(struct weft__text *text, const weft_addr *addr)
{
	int family = weft__addr_family(addr);

	if (addr->kind != SOCK_STREAM && addr->kind != SOCK_DGRAM)
		return false;
	if (family == AF_UNIX && addr->size <= sizeof(struct sockaddr_un))
		return write_unix(text, addr);
	if (family != AF_INET && family != AF_INET6)
		return false;
	weft__text_add(text, addr->kind == SOCK_DGRAM ? "udp://" : "tcp://");
	if (family == AF_INET)
		write_inet(text, addr);
	else
		write_inet6(text, addr);
	weft__text_add(text, ":");
	weft__text_number(text, weft__addr_port(addr));
	return true;
}

int
weft_addr_format(const weft_addr *addr, char *out, size_t max)
{
	char buf[WEFT_ADDR_TEXT_MAX];
	struct weft__text text = weft__text_begin(buf, sizeof(buf));

	if (!addr || !out)
		return weft__misuse(WEFT_EINVAL, "weft_addr_format: addr or out is NULL");
	if (!write_addr(&text, addr))
		return weft__fail(WEFT_EINVAL, "weft_addr_format: the address has no text form");
	if (text.size >= max)
		return weft__fail(WEFT_EMSGSIZE,
		                  "weft_addr_format: the text does not fit into max bytes");
	memcpy(out, buf, text.size + 1);
	return (int)text.size;
}
