/* fetch_scenarios.c - requests on keep-alive connections, to a server made of streams.
 *
 * Whatever fails, every call returns, the client can be freed, and a body that was read to its
 * end is the right one.  A dead connection is no failure of the request: the client may have
 * replaced it.
 */
#include <stdio.h>
#include <string.h>
#include <weft/http.h>
#include "fault.h"
#include "scenarios.h"

#define REPLY                                                                 \
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n" \
	"0\r\nA: b\r\n\r\n"

struct site {
	struct world world;
	weft_listener *listener; /* NULL: closed */
	weft_http_client *client;
	char url[WEFT_ADDR_TEXT_MAX + 8];
	int serve_left, play_left;
};

/* --- the server ------------------------------------------------------------- */

static int
answer(weft_stream *peer, void *arg)
{
	char head[1024];

	(void)arg;
	for (;;) {
		ssize_t n = weft_stream_read_until(peer, "\r\n\r\n", head, sizeof(head), soon());

		if (n <= 0)
			break;
		if (memcmp(head, "PUT", 3) == 0
		    && weft_stream_read_exact(peer, head, 4, soon()) < 0)
			break;
		if (weft_stream_write(peer, REPLY, sizeof(REPLY) - 1, soon()) < 0)
			break;
	}
	weft_stream_close(peer);
	return 0;
}

static int
serve(void *arg)
{
	struct site *site = arg;
	weft_listener *listener = site->listener;

	if (listener /* it may be closed before this threadlet runs */
	    && !went_well(weft_listener_serve(listener, NULL, answer, site, WEFT_NEVER),
	                  WEFT_ESHUTDOWN)
	    && site->listener) {
		site->listener = NULL;
		weft_listener_close(listener);
	}
	site->serve_left = 0;
	return 0;
}

/* --- the client ------------------------------------------------------------- */

static void
read_all(weft_http *http)
{
	size_t got = 0;
	char buf[16];
	ssize_t n;

	while ((n = weft_http_read(http, buf, sizeof(buf), soon())) > 0) {
		EXPECT(got + (size_t)n <= 5);
		EXPECT(memcmp(buf, &"hello"[got], (size_t)n) == 0);
		got += (size_t)n;
	}
	if (went_well(n, 0))
		EXPECT(got == 5);
}

static void
fetch_one(struct site *site, const weft_http_request *request)
{
	weft_http *http = NULL;
	int rc = weft_http_fetch(site->client, request, &http, soon());

	EXPECT((rc == 0) == (http != NULL));
	if (went_well(rc, 0)) {
		EXPECT(weft_http_status(http) == 200);
		read_all(http);
	}
	weft_http_close(http);
}

static void
fetch_all(struct site *site)
{
	weft_http_field field = { "Accept", "text/plain" };
	weft_http_request get = { .url = site->url, .fields = &field, .field_count = 1 };
	weft_http_request put = { .url = site->url, .method = "PUT", .body = { "body", 4 } };

	fetch_one(site, &get);
	fetch_one(site, &put);
	fetch_one(site, &get);
}

static void
play_site(struct site *site)
{
	char text[WEFT_ADDR_TEXT_MAX];
	weft_listener *listener;
	weft_addr addr;

	if (!went_well(weft_listener_open("tcp://127.0.0.1:0", NULL, &site->listener), 0))
		return;
	EXPECT(weft_listener_local(site->listener, &addr) == 0);
	EXPECT(weft_addr_format(&addr, text, sizeof(text)) > 0);
	(void)snprintf(site->url, sizeof(site->url), "http%s/", text + 3);
	site->serve_left = start_on(&site->world, serve, site);
	site->client = weft_http_client_new(NULL);
	(void)went_well(site->client != NULL, true);
	if (site->serve_left && site->client)
		fetch_all(site);
	EXPECT(weft_http_client_free(site->client) == 0);
	listener = site->listener;
	site->listener = NULL;
	weft_listener_close(listener);
}

static int
play(void *arg)
{
	struct site *site = arg;

	play_site(site);
	site->play_left = 0;
	return 0;
}

void
run_fetch(const char *backend)
{
	struct site site = { .client = NULL };

	if (!make_world(&site.world, backend, 0))
		return;
	site.play_left = start_on(&site.world, play, &site);
	await_zero(&site.world, &site.play_left);
	await_zero(&site.world, &site.serve_left);
	check_works(&site.world);
	end_world(&site.world);
}
