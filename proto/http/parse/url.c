/* url.c - absolute URLs and references (RFC 3986, sections 3 and 5).
 *
 * An accepted URL is rewritten in one canonical form, so that equal origins are equal texts.
 * Origins are the key of the connection pool, and decide whether a redirect leaves the host
 * that credentials are meant for.
 *
 *   1. The result contains no byte that could end a line or split a request line: neither in
 *      the target nor in Host.
 *   2. The host is the text between "//" and the next "/", "?" or "#".  It hides nothing: no
 *      user information, no backslash, no percent encoding.  The encoded path of a Unix socket
 *      is exempt.
 *   3. Error texts show neither user information nor a query nor a fragment.
 */
#include "http/parse/url.h"
#include <stdint.h>
#include <stdio.h>
#include "base/proto_hex.h"
#include "http/parse/parse_inner.h"

enum scheme { PLAIN, SECURE, LOCAL };

static const struct {
	const char *text;
	const char *transport;
	uint64_t port;
} schemes[] = {
	[PLAIN] = { "http://", "tcp://", 80 },
	[SECURE] = { "https://", "tls://", 443 },
	[LOCAL] = { "http+unix://", "unix:", 0 },
};

/* The parts of a URL as given. */
struct given {
	const char *url;
	enum scheme scheme;
	struct text host; /* with brackets, without the port */
	uint64_t port;
	struct text rest; /* path and query */
};

static bool
split_scheme(const char *url, enum scheme *out, const char **after)
{
	for (int i = PLAIN; i <= LOCAL; i++) {
		struct text begin = { url, strlen(schemes[i].text) };

		if (strnlen(url, begin.size) < begin.size
		    || !weft__http_same(begin, schemes[i].text))
			continue;
		*out = (enum scheme)i;
		*after = url + begin.size;
		return true;
	}
	return false;
}

/* Rule 3.  In a malformed URL it is unknown where the user information ends, so if there is an
 * "@" anywhere only the scheme is shown.  Only printable bytes are shown. */
static int
url_refuse(const char *url, const char *why)
{
	bool hide = strchr(url, '@') != NULL;
	const char *after = url;
	enum scheme scheme;
	size_t shown = 0;

	if (hide) {
		(void)split_scheme(url, &scheme, &after);
		shown = (size_t)(after - url);
	} else {
		while (shown < 200 && url[shown] > ' ' && url[shown] < 0x7f
		       && !strchr("?#", url[shown]))
			shown++;
	}
	return weft_fail(WEFT_EINVAL, "url %.*s%s: %s", (int)shown, url, hide ? "..." : "", why);
}

static int
refuse_length(void)
{
	return weft_fail(WEFT_EMSGSIZE, "weft_http_fetch: the URL is longer than %u bytes",
	                 (unsigned)WEFT__HTTP_URL_MAX);
}

/* Cut a port off the end of a host that weft__http_host_ok() has accepted. */
static int
split_port(struct given *given)
{
	struct text all = given->host;
	size_t at = all.size;

	given->port = schemes[given->scheme].port;
	while (at > 0 && byte_is(all.data[at - 1], BYTE_DIGIT))
		at--;
	if (at == 0 || all.data[at - 1] != ':')
		return 0;
	given->host.size = at - 1;
	if (at == all.size)
		return 0;
	(void)weft__http_decimal((struct text){ all.data + at, all.size - at }, &given->port);
	return given->port > 0 ? 0 : url_refuse(given->url, "the port must not be 0");
}

/* At least one byte, and all of them visible ASCII. */
static bool
is_visible(struct text text)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] <= ' ' || text.data[i] >= 0x7f)
			return false;
	return text.size > 0;
}

static int
split_host(struct given *given)
{
	struct text host = given->host;

	if (given->scheme == LOCAL)
		return is_visible(host)
		               ? 0
		               : url_refuse(given->url,
		                            "the socket path is missing or has a byte that is not "
		                            "visible ASCII");
	if (memchr(host.data, '@', host.size))
		return url_refuse(given->url, "user information before the host is not supported");
	if (memchr(host.data, '%', host.size) || !weft__http_host_ok(host, false))
		return url_refuse(given->url, "the host is malformed");
	if (split_port(given) < 0)
		return WEFT_EINVAL;
	return given->host.size > 0 ? 0 : url_refuse(given->url, "the host is missing");
}

static int
split(const char *url, struct given *out)
{
	const char *at;

	out->url = url;
	if (!split_scheme(url, &out->scheme, &at))
		return url_refuse(url, "the scheme is not http, https or http+unix");
	out->host = (struct text){ at, strcspn(at, "/?#") };
	out->rest.data = at + out->host.size;
	out->rest.size = strcspn(out->rest.data, "#");
	for (size_t i = 0; i < out->rest.size; i++) {
		unsigned char byte = (unsigned char)out->rest.data[i];

		if (byte <= ' ' || byte == 0x7f)
			return url_refuse(url, "contains a space or control byte");
	}
	return split_host(out);
}

/* --- writing ------------------------------------------------------------------ */

static char *
url_put(char *at, const char *text, size_t size)
{
	memcpy(at, text, size);
	at[size] = '\0';
	return at + size;
}

static char *
put_lower(char *at, struct text text)
{
	for (size_t i = 0; i < text.size; i++) {
		char byte = text.data[i];

		*at++ = byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
	}
	*at = '\0';
	return at;
}

/* Copy ASCII as it is and percent-encode bytes above 127. */
static char *
put_encoded(char *at, struct text text)
{
	static const char hex[] = "0123456789ABCDEF";

	for (size_t i = 0; i < text.size; i++) {
		unsigned char byte = (unsigned char)text.data[i];

		if (byte < 0x80) {
			*at++ = (char)byte;
			continue;
		}
		*at++ = '%';
		*at++ = hex[byte >> 4];
		*at++ = hex[byte & 15];
	}
	*at = '\0';
	return at;
}

/* The size of the dot segment at `at`, which is a slash: 2 for "/." and 3 for "/.."; 0 if
 * another segment follows. */
static size_t
dots_at(const char *at)
{
	size_t size = strcspn(at + 1, "/?");

	if (size == 0 || size > 2 || memcmp(at + 1, "..", size) != 0)
		return 0;
	return size + 1;
}

/* Remove the dot segments of a path with its query, in place. */
static void
remove_dots(char *path)
{
	char *from = path, *to = path;

	while (*from == '/') {
		size_t size = dots_at(from);

		if (size == 3)
			while (to > path && *--to != '/')
				;
		if (size > 0) {
			from += size;
			if (*from != '/')
				*to++ = '/';
			continue;
		}
		do
			*to++ = *from++;
		while (*from != '/' && *from != '?' && *from != '\0');
	}
	memmove(to, from, strlen(from) + 1);
}

/* Decode the path of a socket.  NULL if it is malformed or not absolute. */
static char *
put_socket(char *at, struct text host)
{
	const char *begin = at, *from = host.data, *end = from + host.size;

	while (from < end) {
		int byte = weft__percent_next(&from, end);

		if (byte < ' ')
			return NULL;
		*at++ = (char)byte;
	}
	*at = '\0';
	return *begin == '/' ? at : NULL;
}

static char *
put_port(char *at, uint64_t port)
{
	return at + snprintf(at, 8, ":%u", (unsigned)port);
}

/* Write the address and the Host value to memory that is large enough. */
static int
put_origin(char *at, const struct given *given, struct weft__http_url *out)
{
	const char *transport = schemes[given->scheme].transport;
	char *host;

	out->address = at;
	at = url_put(at, transport, strlen(transport));
	if (given->scheme == LOCAL) {
		at = put_socket(at, given->host);
		if (!at)
			return url_refuse(given->url,
			                  "the socket path is malformed or not absolute");
		out->host = host = at + 1;
		(void)url_put(host, "localhost", 9);
		return 0;
	}
	at = put_port(put_lower(at, given->host), given->port);
	out->host = host = at + 1;
	host = put_lower(host, given->host);
	if (given->port != schemes[given->scheme].port)
		(void)put_port(host, given->port);
	return 0;
}

static char *
url_put_text(char *at, const struct given *given, struct weft__http_url *out)
{
	const char *scheme = schemes[given->scheme].text;
	char *target;

	out->text = at;
	at = url_put(at, scheme, strlen(scheme));
	if (given->scheme == LOCAL)
		at = put_encoded(at, given->host);
	else
		at = url_put(at, out->host, strlen(out->host));
	out->target = target = at;
	if (given->rest.size == 0 || given->rest.data[0] != '/')
		*at++ = '/';
	(void)put_encoded(at, given->rest);
	remove_dots(target);
	return target + strlen(target) + 1;
}

int
weft__http_url_parse(const char *text, struct weft__http_url *out)
{
	struct weft__http_url url = { 0 };
	struct given given;
	char *memory, *at;
	size_t room;
	int rc;

	if (strnlen(text, WEFT__HTTP_URL_MAX + 1) > WEFT__HTTP_URL_MAX)
		return refuse_length();
	rc = split(text, &given);
	if (rc < 0)
		return rc;
	/* Three texts, each with the host, percent-encoded at worst; plus schemes, ports and
	 * NULs. */
	room = 3 * (3 * given.host.size + 32) + 3 * given.rest.size;
	memory = weft_alloc(room);
	if (!memory)
		return weft_fail(WEFT_ENOMEM, "weft_http_fetch: out of memory");
	at = memory + room - 2 * (given.host.size + 32);
	rc = put_origin(at, &given, &url);
	if (rc < 0) {
		weft_release(memory);
		return rc;
	}
	(void)url_put_text(memory, &given, &url);
	url.secure = given.scheme == SECURE;
	url.local = given.scheme == LOCAL;
	*out = url;
	return 0;
}

/* --- references --------------------------------------------------------------- */

/* Whether a reference begins with a scheme, known or not. */
static bool
has_scheme(const char *reference)
{
	size_t size = strcspn(reference, ":/?#");

	return size > 0 && reference[size] == ':' && byte_is(reference[0], BYTE_ALPHA);
}

/* How many bytes of the base precede a reference that has no scheme. */
static size_t
prefix_of(const struct weft__http_url *base, const char *reference)
{
	size_t origin = (size_t)(base->target - base->text);
	size_t path = strcspn(base->target, "?");

	if (reference[0] == '/' && reference[1] == '/')
		return strcspn(base->text, ":") + 1;
	if (reference[0] == '/')
		return origin;
	if (reference[0] == '?')
		return origin + path;
	if (reference[0] == '\0' || reference[0] == '#')
		return strlen(base->text);
	while (base->target[path - 1] != '/')
		path--;
	return origin + path;
}

int
weft__http_url_resolve(const struct weft__http_url *base, const char *reference,
                       struct weft__http_url *out)
{
	size_t size = strnlen(reference, WEFT__HTTP_URL_MAX + 1), prefix;
	char *whole;
	int rc;

	if (size > WEFT__HTTP_URL_MAX)
		return refuse_length();
	if (has_scheme(reference))
		return weft__http_url_parse(reference, out);
	prefix = prefix_of(base, reference);
	whole = weft_alloc(prefix + size + 1);
	if (!whole)
		return weft_fail(WEFT_ENOMEM, "weft_http_fetch: out of memory");
	(void)url_put(url_put(whole, base->text, prefix), reference, size);
	rc = weft__http_url_parse(whole, out);
	weft_release(whole);
	return rc;
}

void
weft__http_url_drop(struct weft__http_url *url)
{
	weft_release(url->text);
	*url = (struct weft__http_url){ 0 };
}

int
weft__http_url_shown(const struct weft__http_url *url)
{
	size_t size = strcspn(url->text, "?");

	return size < 200 ? (int)size : 200;
}
