/* first_line.c - the first line of a head: a request line or a status line.
 *
 * Exactly one space separates the parts, and none surrounds them.  RFC 9112 allows a parser to
 * be more lenient, but then a proxy in front of this one could see another target.  The
 * versions are 1.0 and 1.1; any other well-formed version gets 505.
 */
#include "http/parse/parse_inner.h"
#include "http/parse/scan.h"

#define VERSION_SIZE (sizeof("HTTP/1.1") - 1)

/* Parse a version, which is the whole of `text`. */
static int
version(struct weft__http_head *head, struct text text)
{
	const char *x = text.data;

	if (text.size != VERSION_SIZE || memcmp(x, "HTTP/", 5) != 0 || !byte_is(x[5], BYTE_DIGIT)
	    || x[6] != '.' || !byte_is(x[7], BYTE_DIGIT))
		return weft__http_refuse(&head->fault, 400, "bad version");
	if (x[5] != '1' || x[7] > '1')
		return weft__http_refuse(&head->fault, 505, "version is not 1.0 or 1.1");
	head->minor = (uint8_t)(x[7] - '0');
	return 0;
}

/* Parse the method, which ends at the first byte that is not a token byte. */
static int
method(struct weft__http_head *head, const char *data, uint32_t end)
{
	uint32_t line = head->lines.line, at = line;

	while (byte_is(data[at], BYTE_TOKEN))
		at++;
	WEFT__HTTP_COUNT_SCANNED(at - line + 1);
	if (at == line || at == end || data[at] != ' ')
		return weft__http_refuse(&head->fault, 400, "bad method");
	if (at - line > WEFT__HTTP_METHOD_MAX)
		return weft__http_refuse(&head->fault, 501, "method too long");
	head->method = (struct weft__http_part){ line, at - line };
	return 0;
}

int
weft__http_request_line(struct weft__http_head *head, const char *data, uint32_t end)
{
	uint32_t from, to;
	int rc = method(head, data, end);

	if (rc < 0)
		return rc;
	from = head->method.at + head->method.size + 1;
	to = (uint32_t)weft__http_scan_word(data, from, end);
	if (to == from || to == end || data[to] != ' ')
		return weft__http_refuse(&head->fault, 400, "bad request line");
	if (to - from > head->limits.target_max)
		return weft__http_refuse(&head->fault, 414, "target too long");
	head->target = (struct weft__http_part){ from, to - from };
	rc = version(head, (struct text){ data + to + 1, end - to - 1 });
	return rc < 0 ? rc : weft__http_target(head, data);
}

/* "HTTP/1.1 200 reason"; the space before an empty reason is often left out. */
int
weft__http_status_line(struct weft__http_head *head, const char *data, uint32_t end)
{
	uint32_t line = head->lines.line;
	const char *code = data + line + VERSION_SIZE + 1;
	int rc;

	if (end - line < VERSION_SIZE + 4 || code[-1] != ' ')
		return weft__http_refuse(&head->fault, 400, "bad status line");
	rc = version(head, (struct text){ data + line, VERSION_SIZE });
	if (rc < 0)
		return rc;
	if (!byte_is(code[0], BYTE_DIGIT) || code[0] == '0' || !byte_is(code[1], BYTE_DIGIT)
	    || !byte_is(code[2], BYTE_DIGIT))
		return weft__http_refuse(&head->fault, 400, "bad status");
	head->status = (uint16_t)((code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0'));
	if (code + 3 == data + end)
		return 0;
	if (code[3] != ' ')
		return weft__http_refuse(&head->fault, 400, "bad status line");
	head->reason.at = line + VERSION_SIZE + 5;
	head->reason.size = end - head->reason.at;
	return 0;
}
