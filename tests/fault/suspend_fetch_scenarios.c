/* suspend_fetch_scenarios.c - HTTP client requests, disturbed at each of their suspensions.
 *
 * The server is made of callbacks, so that only the client suspends: for a slot of the pool, a
 * connection, room to send, and a header section and a body that arrive in pieces.  A disturbed
 * fetch returns no exchange.  An exchange whose read was disturbed can still be used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/http.h>
#include "fault.h"
#include "suspend.h"

static const char *const pieces[] = {
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-",
	"Encoding: chunked\r\n\r\n5\r\nhel",
	"lo\r\n0\r\nA: b\r\n\r\n",
};

struct seat {
	weft_stream *stream;
	weft_timer timer;
	char last[4]; /* the last bytes received */
	size_t said;  /* pieces of the reply that were sent; 3: no request is pending */
};

static void
say(weft_timer *timer, void *arg)
{
	struct seat *seat = arg;
	weft_span span = weft_text(pieces[seat->said++]);

	(void)timer;
	(void)weft_stream_write_some(seat->stream, &span, 1);
	if (seat->said < 3)
		EXPECT(weft_timer_start(NULL, &seat->timer, weft_after(SHORT_NS), 0, say, seat)
		       == 0);
}

/* A header section and a chunked body end with an empty line. */
static bool
is_request(struct seat *seat, const char *data, size_t size)
{
	size_t count = size < 4 ? size : 4;

	memmove(seat->last, seat->last + count, 4 - count);
	memcpy(seat->last + 4 - count, data + size - count, count);
	return memcmp(seat->last, "\r\n\r\n", 4) == 0;
}

static void
hear(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct seat *seat = arg;

	if (size <= 0) {
		(void)weft_timer_stop(&seat->timer);
		weft_stream_close(stream);
		free(seat);
		return;
	}
	if (is_request(seat, data, (size_t)size)) {
		seat->said = 0;
		EXPECT(weft_timer_start(NULL, &seat->timer, weft_after(SHORT_NS), 0, say, seat)
		       == 0);
	}
	EXPECT(weft_stream_skip(stream, (size_t)size) == 0);
}

static void
let_in(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	static const weft_stream_events events = { .on_data = hear };
	struct seat *seat;

	(void)listener;
	(void)error;
	(void)arg;
	if (!peer)
		return;
	seat = calloc(1, sizeof(*seat));
	EXPECT(seat);
	seat->stream = peer;
	EXPECT(weft_stream_start(peer, NULL, &events, seat) == 0);
}

/* --- the client ------------------------------------------------------------ */

struct host {
	weft_http_client *client;
	char url[WEFT_ADDR_TEXT_MAX + 8];
};

static enum went
read_all(weft_http *http)
{
	size_t got = 0;
	char buf[3];

	for (;;) {
		ssize_t n = weft_http_read(http, buf, sizeof(buf), WEFT_NEVER);

		if (n > 0) {
			EXPECT(got + (size_t)n <= 5);
			EXPECT(memcmp(buf, &"hello"[got], (size_t)n) == 0);
			got += (size_t)n;
		} else if (how(n, 0) != AGAIN) {
			EXPECT(n < 0 || got == 5);
			return n < 0 ? DISTURBED : WELL;
		}
	}
}

static enum went
fetch(struct host *host, const weft_http_request *request)
{
	weft_http *http = NULL;
	enum went went;

	RETRY(went, how(weft_http_fetch(host->client, request, &http, WEFT_NEVER), 0));
	EXPECT((went == WELL) == (http != NULL));
	if (went == WELL && request->streamed) {
		RETRY(went, how(weft_http_finish(http, WEFT_NEVER), 0));
	}
	if (went == WELL)
		went = read_all(http);
	weft_http_close(http);
	return went;
}

static int
visit(void *arg)
{
	struct host *host = arg;
	weft_http_request request = { .url = host->url };

	if (fetch(host, &request) == WELL)
		(void)fetch(host, &request);
	return 0;
}

static int
visit_streaming(void *arg)
{
	struct host *host = arg;
	weft_http_request request = { .url = host->url, .method = "POST", .streamed = true };

	(void)fetch(host, &request);
	return 0;
}

/* A body larger than the socket buffers, which ends with an empty line. */
static int
visit_sending(void *arg)
{
	static char much[6 << 20];
	struct host *host = arg;
	weft_http_request request = { .url = host->url,
		                      .method = "PUT",
		                      .body = { much, sizeof(much) } };

	memcpy(much + sizeof(much) - 4, "\r\n\r\n", 4);
	(void)fetch(host, &request);
	return 0;
}

int
run_fetch(void *arg)
{
	weft_http_client_opts opts = { .per_host_max = 1 };
	char text[WEFT_ADDR_TEXT_MAX];
	weft_listener *listener;
	struct host host;
	weft_scope scope;
	weft_addr addr;

	(void)arg;
	EXPECT(weft_listener_open("tcp://127.0.0.1:0", NULL, &listener) == 0);
	EXPECT(weft_listener_local(listener, &addr) == 0);
	EXPECT(weft_addr_format(&addr, text, sizeof(text)) > 0);
	(void)snprintf(host.url, sizeof(host.url), "http%s", text + 3);
	EXPECT(weft_listener_start(listener, NULL, let_in, NULL) == 0);
	host.client = weft_http_client_new(&opts);
	EXPECT(host.client);
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, visit, &host);
	(void)start_in(&scope, NULL, visit_streaming, &host);
	(void)start_in(&scope, NULL, visit_sending, &host);
	EXPECT(weft_scope_close(&scope) == 0);
	EXPECT(weft_http_client_free(host.client) == 0);
	weft_listener_close(listener);
	return 0;
}
