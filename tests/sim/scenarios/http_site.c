/* http_site.c - the handlers of the simulated server, and checks of what they see.
 *
 *   1. A handler is called only for a valid request that was sent, once, and not before the
 *      earlier requests of its connection.
 *   2. A handler sees what was sent.
 *   3. At most requests_max handlers run at once.
 *   4. A call fails only if there is a cause.
 *   5. A handler that sends events to a client that has left gets an error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim/scenarios/http_play.h"

#define NOTICE_NS (10 * WEFT_S) /* time to notice that the client has left */

struct http_site http_site;

bool
http_spoils(enum http_spoil spoil)
{
	if (http_site.spoil != spoil)
		return false;
	http_site.spoil = HTTP_SPOIL_NOTHING;
	return true;
}

unsigned char
http_byte(uint32_t id, size_t at)
{
	return (unsigned char)(id * 31 + at * 7 + (at >> 8));
}

static int
rest_ns(uint64_t ns)
{
	return weft_sleep_until(weft_after(ns));
}

/* --- checks ---------------------------------------------------------------- */

static bool
is_excused(const struct http_request *request)
{
	return http_site.harsh || http_site.tight || http_site.forced
	       || http_client_is_bad(request->client);
}

/* Invariant 4. */
static int
judge(const struct http_request *request, const char *what, int64_t rc)
{
	if (rc < 0 && !is_excused(request))
		sim_fail("%s of request %u, of kind %d, tells %lld: %s", what, request->id,
		         (int)request->ask, (long long)rc, weft_detail());
	return rc < 0 ? (int)rc : 0;
}

/* Invariant 1. */
static void
check_turn(struct http_request *request)
{
	if (request->ask == HTTP_ASK_BAD || !request->reachable)
		sim_fail("request %u comes to a handler", request->id);
	if (request->handled++ > 0)
		sim_fail("request %u is handled twice", request->id);
	for (uint32_t i = request->id + 1; i < http_site.requests_used; i++)
		if (http_site.requests[i].client == request->client
		    && http_site.requests[i].handled > 0)
			sim_fail("request %u is handled before %u", i, request->id);
}

static void
enter(void)
{
	uint32_t inside = weft__add(&http_site.inside, 1, WEFT__RELAXED) + 1;

	if (http_spoils(HTTP_SPOIL_LIMIT))
		inside = http_site.requests_max + 1;
	if (inside > http_site.requests_max)
		sim_fail("%u requests at once, of %u", inside, http_site.requests_max);
}

/* Find the request; NULL: no memory. */
static struct http_request *
begin(weft_http *http)
{
	const char *id = weft_http_param(http, "id");
	const char *header = weft_http_header(http, "x-id");
	struct http_request *request;

	if (!id) {
		sim_check(http_site.harsh);
		return NULL;
	}
	sim_check(header && strcmp(id, header) == 0);
	sim_check(strtoul(id, NULL, 10) < http_site.requests_used);
	request = &http_site.requests[strtoul(id, NULL, 10)];
	check_turn(request);
	if (http_spoils(HTTP_SPOIL_TWICE))
		check_turn(request);
	enter();
	if (weft_http_set_header(http, "X-Id", id) < 0) {
		sim_check(http_site.harsh);
		(void)weft__add(&http_site.inside, UINT32_MAX, WEFT__RELAXED);
		return NULL;
	}
	return request;
}

static int
end(struct http_request *request, int rc)
{
	request->ended_ns = sim_time();
	(void)weft__add(&http_site.inside, UINT32_MAX, WEFT__RELAXED);
	return rc;
}

/* --- bodies ---------------------------------------------------------------- */

enum { PIECE = 1500 };

static size_t
fill(const struct http_request *request, unsigned char *buf, size_t from, size_t most)
{
	size_t size = request->size - from;

	if (size > most)
		size = most;
	for (size_t i = 0; i < size; i++)
		buf[i] = http_byte(request->id, from + i);
	return size;
}

/* Invariant 2. */
static void
check_body(const struct http_request *request, const unsigned char *buf, size_t from, size_t size)
{
	if (size > request->size - from)
		sim_fail("request %u has a body that is too long", request->id);
	for (size_t i = 0; i < size; i++)
		if (buf[i] != http_byte(request->id, from + i))
			sim_fail("a wrong byte in the body of request %u", request->id);
}

/* Read and check the body: 0, or the error. */
static int
read_body(weft_http *http, const struct http_request *request)
{
	size_t got = 0;
	ssize_t n;

	do {
		unsigned char buf[PIECE];
		size_t size = 1 + sim_random_below(PIECE);

		n = weft_http_read(http, buf, size, WEFT_NEVER);
		if (n > 0)
			check_body(request, buf, got, (size_t)n);
		got += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	if (n == 0 && request->ask == HTTP_ASK_BAD_BODY)
		sim_fail("the bad body of request %u is read", request->id);
	if (n == 0 && got < request->size)
		sim_fail("the body of request %u ends early", request->id);
	if (request->ask == HTTP_ASK_BAD_BODY)
		return (int)n;
	return judge(request, "read", n);
}

static int
write_pieces(weft_http *http, const struct http_request *request)
{
	size_t done = 0;
	int rc = 0;

	while (rc == 0 && done < request->size) {
		unsigned char buf[PIECE];
		size_t size = fill(request, buf, done, 1 + sim_random_below(PIECE));

		rc = judge(request, "write", weft_http_write(http, buf, size, WEFT_NEVER));
		done += size;
		if (sim_random_below(4) == 0)
			(void)rest_ns(sim_random_below(WEFT_MS));
	}
	return rc;
}

static int
reply(weft_http *http, const struct http_request *request)
{
	unsigned char *buf = weft_alloc(request->size + 1);
	weft_span body = { buf, request->size };
	int rc;

	if (!buf) {
		sim_check(http_site.harsh);
		return WEFT_ENOMEM;
	}
	(void)fill(request, buf, 0, request->size);
	rc = judge(request, "reply", weft_http_reply(http, 200, "text/plain", body, WEFT_NEVER));
	weft_release(buf);
	return rc;
}

/* --- handlers -------------------------------------------------------------- */

static int
on_whole(weft_http *http, void *arg)
{
	struct http_request *request = begin(http);
	int rc = 0;

	(void)arg;
	if (!request)
		return WEFT_ENOMEM;
	if (request->ask == HTTP_ASK_LAST && sim_random_below(4) == 0)
		rc = judge(request, "sleep", rest_ns(3 * WEFT_S));
	return end(request, rc == 0 ? reply(http, request) : rc);
}

static int
on_echo(weft_http *http, void *arg)
{
	struct http_request *request = begin(http);
	int rc;

	(void)arg;
	if (!request)
		return WEFT_ENOMEM;
	rc = read_body(http, request);
	if (rc == 0)
		rc = sim_random_below(2) ? reply(http, request) : write_pieces(http, request);
	return end(request, rc);
}

static int
on_pieces(weft_http *http, void *arg)
{
	struct http_request *request = begin(http);
	char size[24];
	int rc = 0;

	(void)arg;
	if (!request)
		return WEFT_ENOMEM;
	(void)snprintf(size, sizeof(size), "%zu", request->size);
	if (request->ask == HTTP_ASK_LENGTH)
		rc = judge(request, "set", weft_http_set_header(http, "Content-Length", size));
	if (rc == 0)
		rc = judge(request, "begin", weft_http_begin(http, 200, "text/plain", WEFT_NEVER));
	if (rc == 0)
		rc = write_pieces(http, request);
	if (rc == 0 && request->ask == HTTP_ASK_PIECES && sim_random_below(2))
		rc = judge(request, "trailer", weft_http_set_header(http, "X-Sum", "1"));
	return end(request, rc);
}

static int
on_slow(weft_http *http, void *arg)
{
	struct http_request *request = begin(http);
	int rc;

	(void)arg;
	if (!request)
		return WEFT_ENOMEM;
	rc = judge(request, "sleep",
	           rest_ns(sim_random_below(UINT64_C(1) << (10 + sim_random_below(18)))));
	return end(request, rc == 0 ? reply(http, request) : rc);
}

static int
on_fail(weft_http *http, void *arg)
{
	struct http_request *request = begin(http);

	(void)arg;
	return request ? end(request, -EIO) : WEFT_ENOMEM;
}

static int
on_mute(weft_http *http, void *arg)
{
	struct http_request *request = begin(http);

	(void)arg;
	return request ? end(request, 0) : WEFT_ENOMEM;
}

/* --- events ---------------------------------------------------------------- */

static int
send_event(weft_http *http, size_t number)
{
	char data[24];

	(void)snprintf(data, sizeof(data), "%zu", number);
	return weft_http_send_event(http, number % 2 ? "odd" : NULL, data, WEFT_NEVER);
}

static int
on_events(weft_http *http, void *arg)
{
	struct http_request *request = begin(http);
	int rc = 0;

	(void)arg;
	if (!request)
		return WEFT_ENOMEM;
	for (size_t i = 0; rc == 0 && i < request->size; i++) {
		rc = send_event(http, i);
		if (rc == 0)
			rc = rest_ns(sim_random_below(WEFT_MS));
	}
	if (!http_site.closing)
		(void)judge(request, "event", rc);
	return end(request, rc);
}

/* Invariant 5. */
static int
on_endless(weft_http *http, void *arg)
{
	struct http_request *request = begin(http);
	int rc = 0;

	(void)arg;
	if (!request)
		return WEFT_ENOMEM;
	for (size_t i = 0; rc == 0; i++) {
		uint64_t left_ns = http_client_left_ns(request->client);

		if (left_ns && sim_time() - left_ns > NOTICE_NS)
			sim_fail("events for nobody");
		rc = send_event(http, i);
		if (rc == 0)
			rc = rest_ns(i < 3 ? WEFT_MS : 20 * WEFT_S);
	}
	if (!http_site.closing && !http_client_left_ns(request->client))
		(void)judge(request, "endless event", rc);
	return end(request, sim_random_below(2) ? 0 : rc);
}

/* --- upgrades -------------------------------------------------------------- */

/* Send its bytes back. */
static void
speak(weft_stream *stream, const struct http_request *request)
{
	size_t done = 0;
	int64_t n = 1;

	while (n > 0 && done < request->size) {
		unsigned char buf[PIECE];

		n = weft_stream_read(stream, buf, PIECE, WEFT_NEVER);
		if (n > 0) {
			check_body(request, buf, done, (size_t)n);
			done += (size_t)n;
			n = weft_stream_write(stream, buf, (size_t)n, WEFT_NEVER);
		}
	}
	if (n <= 0 && !http_site.closing)
		(void)judge(request, "upgraded stream", n ? n : WEFT_EPIPE);
}

static int
on_upgrade(weft_http *http, void *arg)
{
	struct http_request *request = begin(http);
	weft_stream *stream;
	int rc;

	(void)arg;
	if (!request)
		return WEFT_ENOMEM;
	rc = judge(request, "upgrade", weft_http_upgrade(http, "raw", &stream, WEFT_NEVER));
	if (rc < 0)
		return end(request, rc);
	speak(stream, request);
	weft_stream_close(stream);
	return end(request, 0);
}

const struct http_route http_routes[] = {
	{ "GET /whole", on_whole },
	{ "POST /echo/{x...}", on_echo },
	{ "GET /pieces", on_pieces },
	{ "GET /slow", on_slow },
	{ "POST /ignore", on_whole },
	{ "/fail", on_fail },
	{ "/mute", on_mute },
	{ "GET /events", on_events },
	{ "GET /endless/{x}", on_endless },
	{ "GET /upgrade", on_upgrade },
	{ NULL, NULL },
};
