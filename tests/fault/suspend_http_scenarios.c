/* suspend_http_scenarios.c - an HTTP server and its client, disturbed while they wait.
 *
 * Whichever threadlet is disturbed, the client's connection ends, the server drains, and
 * nothing is left.  Undisturbed, every reply is complete.
 */
#include <string.h>
#include <weft/http.h>
#include "fault.h"
#include "suspend.h"

struct web {
	weft_http_server *server;
	weft_listener *listener; /* NULL: closed */
	char address[WEFT_ADDR_TEXT_MAX];
};

#define HOST "Host: a\r\n"

/* --- handlers -------------------------------------------------------------- */

/* Echo the body.  A failure fails the request. */
static int
echo(weft_http *http, void *arg)
{
	char buf[8];
	ssize_t n;

	(void)arg;
	while ((n = weft_http_read(http, buf, sizeof(buf), WEFT_NEVER)) > 0) {
		n = weft_http_write(http, buf, (size_t)n, WEFT_NEVER);
		if (n < 0)
			break;
	}
	EXPECT(n == 0 || target());
	return (int)n;
}

static int
nap_and_reply(weft_http *http, void *arg)
{
	int rc = nap(1);

	(void)arg;
	if (rc < 0)
		return rc;
	return weft_http_reply(http, 200, NULL, weft_text("slept"), WEFT_NEVER);
}

/* --- the server ------------------------------------------------------------- */

static void
close_web(struct web *web)
{
	weft_listener *listener = web->listener;

	web->listener = NULL;
	weft_listener_close(listener);
}

static bool
open_web(struct web *web)
{
	weft_addr addr;

	*web = (struct web){ .server = weft_http_server_new(NULL) };
	EXPECT(web->server);
	EXPECT(weft_http_route(web->server, "POST /echo", echo, NULL) == 0);
	EXPECT(weft_http_route(web->server, "/nap", nap_and_reply, NULL) == 0);
	EXPECT(weft_listener_open("tcp://127.0.0.1:0", NULL, &web->listener) == 0);
	EXPECT(weft_listener_local(web->listener, &addr) == 0);
	return weft_addr_format(&addr, web->address, sizeof(web->address)) > 0;
}

static int
serve(void *arg)
{
	struct web *web = arg;
	struct weft_http_server_stats stats;
	int rc = weft_http_serve(web->server, web->listener, WEFT_NEVER);

	EXPECT(rc == WEFT_ESHUTDOWN || target() == weft_self() || weft_check_canceled() == rc);
	weft_http_server_stats(web->server, &stats);
	EXPECT(stats.open == 0 && stats.active == 0);
	close_web(web); /* so that a later client does not wait */
	return 0;
}

/* --- the client --------------------------------------------------------------- */

/* False: a threadlet was disturbed. */
static bool
say(weft_stream *stream, const char *text)
{
	size_t size = strlen(text);
	ssize_t n = weft_stream_write(stream, text, size, WEFT_NEVER);

	EXPECT(n == (ssize_t)size || target());
	return n == (ssize_t)size;
}

/* Read a complete reply whose body ends with `end`.  The body of an error reply is not read. */
static bool
hear(weft_stream *stream, const char *end)
{
	char text[512];
	ssize_t n = weft_stream_read_until(stream, "\r\n\r\n", text, sizeof(text), WEFT_NEVER);
	bool well = n > 12 && memcmp(text, "HTTP/1.1 200", 12) == 0;

	if (well) {
		n = weft_stream_read_until(stream, end, text, sizeof(text), WEFT_NEVER);
		well = n > 0;
	}
	EXPECT(well || target());
	return well;
}

static void
talk(weft_stream *stream)
{
	bool well = say(stream, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	                        "5\r\nhello\r\n");

	(void)nap(1);
	well = well && say(stream, "5\r\nworld\r\n0\r\n\r\n") && hear(stream, "0\r\n\r\n");
	well = well
	       && say(stream, "GET /nap HTTP/1.1\r\n" HOST "\r\n"
	                      "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\n")
	       && hear(stream, "slept");
	if (well && say(stream, "abc"))
		(void)hear(stream, "0\r\n\r\n");
}

static int
visit(void *arg)
{
	struct web *web = arg;
	weft_stream *stream;
	int rc = weft_stream_connect(web->address, NULL, &stream, WEFT_NEVER);

	EXPECT(rc == 0 || target());
	if (rc == 0) {
		talk(stream);
		weft_stream_close(stream);
	}
	close_web(web);
	return 0;
}

int
run_http(void *arg)
{
	struct web web;
	weft_scope scope;

	(void)arg;
	EXPECT(open_web(&web));
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, serve, &web);
	(void)start_in(&scope, NULL, visit, &web);
	EXPECT(weft_scope_close(&scope) == 0);
	close_web(&web);
	EXPECT(weft_http_server_free(web.server) == 0);
	return 0;
}
