/* http_target.c - the four forms of a request target (RFC 9112, section 3.2), and hosts.
 *
 * The line's scan has left only visible ASCII in a target.  Browsers send some bytes unencoded
 * that RFC 3986 requires to be encoded ("|", "[", "{"); that is harmless.  A "#" is refused: a
 * fragment is never sent, and some parsers take a "#" for the end of the path.  User
 * information before a host ("user@host") is refused too: it is used to disguise the host.
 */
#include "base/proto_hex.h"
#include "http/parse/parse_inner.h"

static int
bad_target(struct weft__http_head *head)
{
	return weft__http_refuse(&head->fault, 400, "bad target");
}

static bool
port_ok(const char *at, const char *end)
{
	uint64_t port;

	return weft__http_decimal((struct text){ at, (size_t)(end - at) }, &port) && end - at <= 5
	       && port <= 65535;
}

/* The byte after the "[address]" that the text begins with; NULL if that is malformed. */
static const char *
after_literal(struct text host)
{
	const char *at = host.data + 1, *end = host.data + host.size;
	unsigned colons = 0;

	for (; at < end && (byte_is(*at, BYTE_HEX) || *at == ':' || *at == '.'); at++)
		colons += *at == ':';
	return at < end && *at == ']' && colons >= 2 ? at + 1 : NULL;
}

/* The byte after the name or IPv4 address that the text begins with; NULL if two hexadecimal
 * digits do not follow a "%". */
static const char *
after_name(struct text host)
{
	const char *at = host.data, *end = host.data + host.size;

	for (; at < end; at++) {
		if (*at == '%') {
			if (end - at < 3 || weft__hex_byte(at + 1) < 0)
				return NULL;
			at += 2;
		} else if (!byte_is(*at, BYTE_NAME)) {
			break;
		}
	}
	return at;
}

bool
weft__http_host_ok(struct text host, bool need_port)
{
	bool literal = host.size > 0 && host.data[0] == '[';
	const char *at = literal ? after_literal(host) : after_name(host);
	const char *end = host.data + host.size;

	if (!at)
		return false;
	if (at == end)
		return !need_port;
	if (*at != ':' || (host.data == at && !literal))
		return false;
	if (at + 1 == end)
		return !need_port;
	return port_ok(at + 1, end);
}

/* Set path and query from data[at..end of the target). */
static void
set_path(struct weft__http_head *head, const char *data, uint32_t at)
{
	uint32_t end = head->target.at + head->target.size;
	const char *mark = memchr(data + at, '?', end - at);
	uint32_t stop = mark ? (uint32_t)(mark - data) : end;

	head->path = (struct weft__http_part){ at, stop - at };
	if (mark)
		head->query = (struct weft__http_part){ stop + 1, end - stop - 1 };
}

/* "http://host/path"; schemes other than http and https are refused. */
static int
absolute(struct weft__http_head *head, const char *data)
{
	struct text target = part_text(data, head->target);
	uint32_t begin, end = head->target.at + head->target.size, at;

	if (target.size > 7 && weft__http_same((struct text){ target.data, 7 }, "http://"))
		begin = head->target.at + 7;
	else if (target.size > 8 && weft__http_same((struct text){ target.data, 8 }, "https://"))
		begin = head->target.at + 8;
	else
		return bad_target(head);
	for (at = begin; at < end && data[at] != '/' && data[at] != '?';)
		at++;
	head->form = WEFT__HTTP_ABSOLUTE;
	head->host = (struct weft__http_part){ begin, at - begin };
	if (at == begin || !weft__http_host_ok(part_text(data, head->host), false))
		return bad_target(head);
	set_path(head, data, at);
	return 0;
}

int
weft__http_target(struct weft__http_head *head, const char *data)
{
	struct text method = part_text(data, head->method);
	struct text target = part_text(data, head->target);

	if (memchr(target.data, '#', target.size))
		return bad_target(head);
	if (text_is(method, "CONNECT")) {
		head->form = WEFT__HTTP_AUTHORITY;
		head->host = head->target;
		return weft__http_host_ok(target, true) ? 0 : bad_target(head);
	}
	if (target.data[0] == '/') {
		head->form = WEFT__HTTP_ORIGIN;
		set_path(head, data, head->target.at);
		return 0;
	}
	if (text_is(target, "*") && text_is(method, "OPTIONS")) {
		head->form = WEFT__HTTP_ASTERISK;
		return 0;
	}
	return absolute(head, data);
}
