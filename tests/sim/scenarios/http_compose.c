/* http_compose.c - the text of requests, good ones and bad ones. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "sim/scenarios/http_play.h"

#define HOST "Host: sim\r\n"
#define ID   "X-Id: %u\r\n"
#define GET  "GET /whole?id=%u HTTP/1.1\r\n"

/* A careless parser would find a request in each that has a handler. */
static const struct bad {
	int status;
	const char *text; /* with its ID, twice */
} bads[] = {
	{ 400, GET ID "\r\n" },
	{ 400, GET HOST ID "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
	                   "\r\n0\r\n\r\n" },
	{ 400, GET HOST ID "Content-Length: 0\r\nContent-Length: 6\r\n"
	                   "\r\nhello!" },
	{ 400, GET "Host : sim\r\n" ID "\r\n" },
	{ 400, GET HOST HOST ID "\r\n" },
	{ 400, GET HOST " " ID "\r\n" },
	{ 400, GET HOST ID "X: a\rb\r\n\r\n" },
	{ 400, "GET /whole?id=%u HTTP/1.1\n" HOST ID "\r\n" },
	{ 400, " GET /whole?id=%u HTTP/1.1\r\n" HOST ID "\r\n" },
	{ 400, "GET /whole?id=%u\x01 HTTP/1.1\r\n" HOST ID "\r\n" },
	{ 400, GET HOST ID "Transfer-Encoding: chunked, chunked\r\n\r\n" },
	{ 501, GET HOST ID "Transfer-Encoding: gzip\r\n\r\n" },
	{ 505, "GET /whole?id=%u HTTP/2.0\r\n" HOST ID "\r\n" },
	{ 417, GET HOST ID "Content-Length: 1\r\nExpect: tea\r\n\r\nx" },
};

static const struct {
	const char *line; /* up to the ID */
	int status;
} asks[HTTP_ASKS] = {
	[HTTP_ASK_WHOLE] = { "GET /whole", 200 },
	[HTTP_ASK_HEAD] = { "HEAD /whole", 200 },
	[HTTP_ASK_ECHO] = { "POST /echo/of/it", 200 },
	[HTTP_ASK_EXPECT] = { "POST /echo/", 200 },
	[HTTP_ASK_PIECES] = { "GET /pieces", 200 },
	[HTTP_ASK_LENGTH] = { "GET /pieces", 200 },
	[HTTP_ASK_EVENTS] = { "GET /events", 200 },
	[HTTP_ASK_SLOW] = { "GET /%73low", 200 },
	[HTTP_ASK_IGNORE] = { "POST /ignore", 200 },
	[HTTP_ASK_FAIL] = { "GET /fail", 500 },
	[HTTP_ASK_MUTE] = { "GET /a/../mute", 404 },
	[HTTP_ASK_NOWHERE] = { "GET /nowhere", 404 },
	[HTTP_ASK_METHOD] = { "DELETE /whole", 405 },
	[HTTP_ASK_OPTIONS] = { "OPTIONS /whole", 204 },
	[HTTP_ASK_LAST] = { "GET /whole", 200 },
	[HTTP_ASK_OLD] = { "GET /pieces", 200 },
	[HTTP_ASK_BAD_BODY] = { "POST /echo/", 400 },
	[HTTP_ASK_ENDLESS] = { "GET /endless/x", 200 },
	[HTTP_ASK_UPGRADE] = { "GET /upgrade", 101 },
};

int
http_status_of(const struct http_request *request)
{
	return request->ask == HTTP_ASK_BAD ? bads[request->bad].status : asks[request->ask].status;
}

static __attribute__((format(printf, 2, 3))) void
put(struct http_text *text, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->bytes + text->size, HTTP_OUT_MAX - text->size, format, args);
	va_end(args);
	sim_check(n >= 0 && (size_t)n < HTTP_OUT_MAX - text->size);
	text->size += (size_t)n;
}

static void
put_body(struct http_text *text, const struct http_request *request, size_t from, size_t size)
{
	sim_check(size < HTTP_OUT_MAX - text->size);
	for (size_t i = 0; i < size; i++)
		text->bytes[text->size++] = (char)http_byte(request->id, from + i);
}

static void
put_chunks(struct http_text *text, const struct http_request *request)
{
	size_t done = 0;

	while (done < request->size) {
		size_t size = 1 + sim_random_below(request->size - done);

		put(text, "%zx%s\r\n", size, sim_random_below(4) ? "" : ";a=\"b\"");
		put_body(text, request, done, size);
		put(text, "%s", "\r\n");
		done += size;
	}
	put(text, "0\r\n%s\r\n", sim_random_below(2) ? "" : "X-End: 1\r\n");
}

static void
put_bad_chunks(struct http_text *text, const struct http_request *request)
{
	put(text, "%zx\r\n", request->size);
	put_body(text, request, 0, request->size);
	put(text, "%s", sim_random_below(2) ? "xx" : "\r\n-1\r\n");
}

/* The end of the header section, and the body. */
static void
put_rest(struct http_request *request, struct http_text *text)
{
	bool has_body = request->ask == HTTP_ASK_ECHO || request->ask == HTTP_ASK_EXPECT
	                || request->ask == HTTP_ASK_IGNORE;
	bool bad = request->ask == HTTP_ASK_BAD_BODY;
	bool chunked = bad || (has_body && sim_random_below(2));

	if (chunked)
		put(text, "%s", "Transfer-Encoding: chunked\r\n");
	else if (has_body)
		put(text, "Content-Length: %zu\r\n", request->size);
	put(text, "%s", "\r\n");
	request->head_end = text->size;
	if (bad)
		put_bad_chunks(text, request);
	else if (chunked)
		put_chunks(text, request);
	else if (has_body || request->ask == HTTP_ASK_UPGRADE)
		put_body(text, request, 0, request->size);
}

static void
put_good(struct http_request *request, struct http_text *text)
{
	enum http_ask ask = request->ask;

	put(text, "%s?id=%u HTTP/1.%d\r\nHost: sim\r\nX-Id: %u\r\n", asks[ask].line, request->id,
	    ask == HTTP_ASK_OLD ? 0 : 1, request->id);
	for (uint64_t i = sim_random_below(4); i > 1; i--)
		put(text, "X-%c: %.*s\r\n", (char)('A' + i), (int)sim_random_below(60),
		    "............................................................");
	if (ask == HTTP_ASK_EXPECT)
		put(text, "%s", "Expect: 100-continue\r\n");
	if (ask == HTTP_ASK_LAST)
		put(text, "%s", "Connection: close\r\n");
	if (ask == HTTP_ASK_UPGRADE)
		put(text, "%s", "Connection: upgrade\r\nUpgrade: raw\r\n");
	put_rest(request, text);
}

void
http_compose(struct http_request *request, struct http_text *text)
{
	size_t count = sizeof(bads) / sizeof(bads[0]);

	if (request->ask != HTTP_ASK_BAD) {
		put_good(request, text);
	} else if (http_spoils(HTTP_SPOIL_BAD)) {
		put(text, GET HOST ID "\r\n", request->id, request->id);
		request->head_end = text->size;
	} else {
		request->bad = (uint32_t)sim_random_below(count);
		text->size += (size_t)snprintf(text->bytes + text->size, HTTP_OUT_MAX - text->size,
		                               bads[request->bad].text, request->id, request->id);
		request->head_end = text->size;
	}
	request->end = text->size;
}
