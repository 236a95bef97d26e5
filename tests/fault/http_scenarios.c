/* http_scenarios.c - an HTTP server and its client, while a call fails.
 *
 * Whatever fails, every call returns, and the server drains and can be freed.  If no fault was
 * injected, every call succeeds.  A reply with status 200 is complete.
 */
#include <string.h>
#include <weft/http.h>
#include "fault.h"
#include "scenarios.h"
#include "strike.h"

#define HOST "Host: a\r\n"

struct web {
	struct world world;
	weft_http_server *server;
	weft_listener *listener; /* NULL: closed */
	char address[WEFT_ADDR_TEXT_MAX];
	int serve_left, play_left;
};

/* --- the server ------------------------------------------------------------ */

static int
echo(weft_http *http, void *arg)
{
	char buf[64];
	ssize_t n;
	int rc = weft_http_set_header(http, "X-Name", weft_http_param(http, "name"));

	(void)arg;
	if (!went_well(rc, 0))
		return rc;
	while ((n = weft_http_read(http, buf, sizeof(buf), soon())) > 0) {
		n = weft_http_write(http, buf, (size_t)n, soon());
		if (n < 0)
			break;
	}
	(void)went_well(n, 0);
	return (int)n;
}

static int
send_events(weft_http *http, void *arg)
{
	int rc = weft_http_send_event(http, "name", "one\ntwo", soon());

	(void)arg;
	if (went_well(rc, 0))
		rc = weft_http_send_event(http, NULL, "three", soon());
	(void)went_well(rc, 0);
	return rc;
}

static int
serve(void *arg)
{
	struct web *web = arg;
	weft_listener *listener = web->listener;
	struct weft_http_server_stats stats;

	if (!went_well(weft_http_serve(web->server, listener, WEFT_NEVER), WEFT_ESHUTDOWN)
	    && web->listener) {
		web->listener = NULL;
		weft_listener_close(listener);
	}
	weft_http_server_stats(web->server, &stats);
	EXPECT(stats.open == 0 && stats.active == 0);
	web->serve_left = 0;
	return 0;
}

static bool
open_web(struct web *web)
{
	weft_http_server_opts opts = { .drain_ns = WAIT_NS };
	weft_addr addr;

	web->server = weft_http_server_new(&opts);
	if (!went_well(!!web->server, true)
	    || !went_well(weft_http_route(web->server, "POST /echo/{name}", echo, NULL), 0)
	    || !went_well(weft_http_route(web->server, "GET /events", send_events, NULL), 0)
	    || !went_well(weft_listener_open("tcp://127.0.0.1:0", NULL, &web->listener), 0))
		return false;
	EXPECT(weft_listener_local(web->listener, &addr) == 0);
	EXPECT(weft_addr_format(&addr, web->address, sizeof(web->address)) > 0);
	return true;
}

/* --- the client -------------------------------------------------------------- */

/* Send `text` and read a complete reply.  False if a fault was injected. */
static bool
request(weft_stream *stream, const char *text)
{
	size_t size = strlen(text);
	char reply[512];
	ssize_t n;

	if (!went_well(weft_stream_write(stream, text, size, soon()), (int64_t)size))
		return false;
	n = weft_stream_read_until(stream, "\r\n\r\n", reply, sizeof(reply), soon());
	if (n < 12 || memcmp(reply, "HTTP/1.1 200", 12) != 0)
		return went_well(0, 1);
	return went_well(weft_stream_read_until(stream, "0\r\n\r\n", reply, sizeof(reply), soon())
	                         > 0,
	                 true);
}

static void
visit(struct web *web)
{
	weft_stream *stream;

	if (!web->listener
	    || !went_well(weft_stream_connect(web->address, NULL, &stream, soon()), 0))
		return;
	if (request(stream,
	            "POST /echo/a%20b?c=d HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	            "5\r\nhello\r\n0\r\nX: y\r\n\r\n"))
		(void)request(stream, "GET /events HTTP/1.1\r\n" HOST "\r\n");
	weft_stream_close(stream);
}

static int
play(void *arg)
{
	struct web *web = arg;
	weft_listener *listener;

	if (open_web(web)) {
		web->serve_left = start_on(&web->world, serve, web);
		if (web->serve_left)
			visit(web);
	}
	listener = web->listener;
	web->listener = NULL;
	weft_listener_close(listener);
	web->play_left = 0;
	return 0;
}

void
run_http(const char *backend)
{
	struct web web = { .server = NULL };
	bool freed;

	if (!make_world(&web.world, backend, 0))
		return;
	web.play_left = start_on(&web.world, play, &web);
	await_zero(&web.world, &web.play_left);
	await_zero(&web.world, &web.serve_left);
	freed = weft_http_server_free(web.server) == 0;
	EXPECT(freed);
	check_works(&web.world);
	end_world(&web.world);
	if (!freed) /* after the loop has stopped, nothing is served */
		EXPECT(weft_http_server_free(web.server) == 0);
}
