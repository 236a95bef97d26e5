/* phrase.c - status lines and the Date header. */
#include "http/message/exchange.h"
#include <weft/loop.h>
#include "http/server/os_http.h"
#include "http/parse/http_values.h"

#define PHRASE(status, text) \
	case status:         \
		return WEFT__HTTP_LITERAL(#status " " text)

/* tidy: long, because it is a table. */
static struct text
known(int status)
{
	switch (status) {
		PHRASE(101, "Switching Protocols");
		PHRASE(200, "OK");
		PHRASE(201, "Created");
		PHRASE(202, "Accepted");
		PHRASE(203, "Non-Authoritative Information");
		PHRASE(204, "No Content");
		PHRASE(205, "Reset Content");
		PHRASE(206, "Partial Content");
		PHRASE(300, "Multiple Choices");
		PHRASE(301, "Moved Permanently");
		PHRASE(302, "Found");
		PHRASE(303, "See Other");
		PHRASE(304, "Not Modified");
		PHRASE(307, "Temporary Redirect");
		PHRASE(308, "Permanent Redirect");
		PHRASE(400, "Bad Request");
		PHRASE(401, "Unauthorized");
		PHRASE(402, "Payment Required");
		PHRASE(403, "Forbidden");
		PHRASE(404, "Not Found");
		PHRASE(405, "Method Not Allowed");
		PHRASE(406, "Not Acceptable");
		PHRASE(407, "Proxy Authentication Required");
		PHRASE(408, "Request Timeout");
		PHRASE(409, "Conflict");
		PHRASE(410, "Gone");
		PHRASE(411, "Length Required");
		PHRASE(412, "Precondition Failed");
		PHRASE(413, "Content Too Large");
		PHRASE(414, "URI Too Long");
		PHRASE(415, "Unsupported Media Type");
		PHRASE(416, "Range Not Satisfiable");
		PHRASE(417, "Expectation Failed");
		PHRASE(421, "Misdirected Request");
		PHRASE(422, "Unprocessable Content");
		PHRASE(426, "Upgrade Required");
		PHRASE(428, "Precondition Required");
		PHRASE(429, "Too Many Requests");
		PHRASE(431, "Request Header Fields Too Large");
		PHRASE(451, "Unavailable For Legal Reasons");
		PHRASE(500, "Internal Server Error");
		PHRASE(501, "Not Implemented");
		PHRASE(502, "Bad Gateway");
		PHRASE(503, "Service Unavailable");
		PHRASE(504, "Gateway Timeout");
		PHRASE(505, "HTTP Version Not Supported");
	default:
		return (struct text){ NULL, 0 };
	}
}

struct text
weft__http_phrase(int status, char number[8])
{
	struct text text = known(status);

	if (text.size > 0)
		return text;
	for (int i = 2; i >= 0; i--, status /= 10)
		number[i] = (char)('0' + status % 10);
	number[3] = ' '; /* before the empty reason phrase */
	return (struct text){ number, 4 };
}

struct text
weft__http_date_line(struct weft__http_local *local)
{
	uint64_t now = weft_loop_now(weft_loop_current());
	int64_t seconds;

	if (now < local->date_until_ns)
		return (struct text){ local->date, local->date_size };
	/* The date is wrong for less than a tenth of a second. */
	local->date_until_ns = now + WEFT_S / 10;
	seconds = weft__http_os_seconds();
	if (seconds != local->date_s || local->date_size == 0) {
		struct text name = WEFT__HTTP_LITERAL("Date: ");
		char *at = weft__http_put_text(local->date, name);

		local->date_s = seconds;
		if (weft__http_date_format(seconds, at) < 0)
			(void)weft__http_date_format(0, at);
		at += WEFT__HTTP_DATE_SIZE - 1;
		at = weft__http_put_text(at, WEFT__HTTP_LITERAL("\r\n"));
		local->date_size = (uint32_t)(at - local->date);
	}
	return (struct text){ local->date, local->date_size };
}

static char *
put_in_base(char *at, uint64_t number, unsigned base)
{
	char digits[20];
	size_t count = 0;

	do
		digits[count++] = "0123456789abcdef"[number % base];
	while (number /= base);
	while (count > 0)
		*at++ = digits[--count];
	return at;
}

char *
weft__http_put_number(char *at, uint64_t number)
{
	return put_in_base(at, number, 10);
}

char *
weft__http_put_hex(char *at, uint64_t number)
{
	return put_in_base(at, number, 16);
}
