/* http_fetch_play.c - threadlets that fetch from a simulated server, with one client and its
 * connection pool.  They are canceled, leave early, and time out; the server is slow, cuts off
 * replies, breaks connections, or shuts down.
 *
 *   1. Each request ends once: with the complete reply to it, or with an error that has a cause
 *      and a text that names the request.
 *   2. A request that must not be repeated is not repeated.
 *   3. Connections are reused: there are at most per_host_max, plus one for each connection
 *      that was lost.  In a calm play none is lost.
 *   4. All waits are bounded: everything ends by itself, and nothing is left.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim/scenarios/http_fetch_play.h"
#include "sim/scenarios/http_world.h"

#define LONG_NS (2000 * WEFT_S)

enum {
	CLIENTS = 8,
	FETCHES = 5,
	SIZE_LOG2 = 11, /* more would take long where packets are tiny */
	SIZE_MOST = 1 + (1 << SIZE_LOG2),
	URL_MAX = 64
};

enum ask {
	ASK_WHOLE,
	ASK_PIECES,
	ASK_SLOW,
	ASK_MOVED,
	ASK_DIE,  /* the reply is cut off */
	ASK_ECHO, /* kinds from here on are not idempotent */
	ASK_STREAM,
	ASK_REFUSE, /* the server does not read the body */
	ASK_LOSE,   /* the server reads it, and does not reply */
	ASKS,
};

static const char *const paths[ASKS] = {
	[ASK_WHOLE] = "/whole", [ASK_PIECES] = "/pieces", [ASK_SLOW] = "/slow",
	[ASK_MOVED] = "/moved", [ASK_DIE] = "/die",       [ASK_ECHO] = "/echo",
	[ASK_STREAM] = "/echo", [ASK_REFUSE] = "/refuse", [ASK_LOSE] = "/lose",
};

/* May a request of this kind cost its connection? */
static bool
costs(enum ask ask)
{
	return ask == ASK_DIE || ask == ASK_LOSE || ask == ASK_REFUSE;
}

struct fetch {
	enum ask ask;
	uint32_t id;
	size_t size;      /* of the reply's body, and of an echo's */
	size_t leave_at;  /* stop reading the reply there; SIZE_MAX: never */
	uint32_t handled; /* times; redirects are not counted */
	uint64_t deadline_ns;
	struct once once;
	char url[URL_MAX];
};

static struct {
	struct http_world world;
	struct host host;
	weft_http_client *client;
	struct fetch fetches[CLIENTS * FETCHES];
	uint32_t fetches_used;
	weft_threadlet ids[CLIENTS];
	uint32_t per_host_max;
	uint32_t lost; /* connections that may have been lost */
	bool calm;     /* nothing goes wrong */
	bool harsh;    /* faults that the library cannot hide are on */
	bool tight;    /* few requests may wait for a connection */
	bool keeps;    /* idle connections are kept */
	bool closing;  /* the server shuts down, or is about to */
	weft__a32 ended, freed;
	enum http_fetch_spoil spoil;
} play;

/* Plant that bug now?  True at most once. */
static bool
spoils(enum http_fetch_spoil spoil)
{
	if (play.spoil != spoil)
		return false;
	play.spoil = HTTP_FETCH_SPOIL_NOTHING;
	return true;
}

static unsigned char
byte_at(const struct fetch *fetch, size_t at)
{
	return (unsigned char)(fetch->id * 29 + at * 5 + (at >> 8));
}

static void
fill(const struct fetch *fetch, unsigned char *buf, size_t from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		buf[i] = byte_at(fetch, from + i);
}

static int
rest_ns(uint64_t ns)
{
	return weft_sleep_until(weft_after(ns));
}

/* --- the server ------------------------------------------------------------ */

/* Find the fetch of a request; NULL: no memory. */
static struct fetch *
find(weft_http *http)
{
	const char *id = weft_http_param(http, "id");

	sim_check(id || play.harsh);
	if (!id)
		return NULL;
	sim_check(strtoul(id, NULL, 10) < play.fetches_used);
	return &play.fetches[strtoul(id, NULL, 10)];
}

/* Invariant 2. */
static struct fetch *
begin(weft_http *http)
{
	struct fetch *fetch = find(http);

	if (!fetch)
		return NULL;
	fetch->handled++;
	if (fetch->ask >= ASK_ECHO && spoils(HTTP_FETCH_SPOIL_AGAIN))
		fetch->handled++;
	if (fetch->handled > (fetch->ask < ASK_ECHO ? 2 : 1))
		sim_fail("request %u of kind %d is sent again", fetch->id, (int)fetch->ask);
	return fetch;
}

/* Read the body and check it. */
static int
read_body(weft_http *http, const struct fetch *fetch)
{
	unsigned char buf[SIZE_MOST + 1];
	ssize_t n = weft_http_read_all(http, buf, sizeof(buf), WEFT_NEVER);

	if (n < 0)
		return (int)n;
	if ((size_t)n != fetch->size)
		sim_fail("%zd bytes of %zu are sent", n, fetch->size);
	for (size_t i = 0; i < fetch->size; i++)
		if (buf[i] != byte_at(fetch, i))
			sim_fail("a wrong byte in the body of request %u", fetch->id);
	return 0;
}

static int
reply_whole(weft_http *http, const struct fetch *fetch, int status)
{
	unsigned char buf[SIZE_MOST];

	fill(fetch, buf, 0, fetch->size);
	return weft_http_reply(http, status, "text/plain", (weft_span){ buf, fetch->size },
	                       WEFT_NEVER);
}

static int
on_whole(weft_http *http, void *arg)
{
	const struct fetch *fetch = begin(http);

	(void)arg;
	if (!fetch)
		return WEFT_ENOMEM;
	if (fetch->ask == ASK_SLOW)
		(void)rest_ns(sim_random_below(WEFT_S / 4));
	return reply_whole(http, fetch, 200);
}

static int
write_until(weft_http *http, const struct fetch *fetch, size_t end)
{
	ssize_t n = 0;

	for (size_t at = 0; n >= 0 && at < end;) {
		unsigned char buf[512];
		size_t size = 1 + sim_random_below(sizeof(buf));

		size = size < end - at ? size : end - at;
		fill(fetch, buf, at, size);
		n = weft_http_write(http, buf, size, WEFT_NEVER);
		at += size;
		if (sim_random_below(4) == 0)
			(void)rest_ns(sim_random_below(WEFT_MS));
	}
	return n < 0 ? (int)n : 0;
}

/* Begin a reply, with or without a Content-Length. */
static int
begin_reply(weft_http *http, const struct fetch *fetch)
{
	char length[32];

	(void)snprintf(length, sizeof(length), "%zu", fetch->size);
	if (sim_random_below(2) && weft_http_set_header(http, "Content-Length", length) < 0)
		return WEFT_ENOMEM;
	return weft_http_begin(http, 200, "text/plain", WEFT_NEVER);
}

static int
on_pieces(weft_http *http, void *arg)
{
	const struct fetch *fetch = begin(http);
	int rc = fetch ? begin_reply(http, fetch) : WEFT_ENOMEM;

	(void)arg;
	return rc < 0 ? rc : write_until(http, fetch, fetch->size);
}

static int
on_die(weft_http *http, void *arg)
{
	const struct fetch *fetch = begin(http);
	int rc = fetch ? begin_reply(http, fetch) : WEFT_ENOMEM;

	(void)arg;
	if (rc == 0)
		rc = write_until(http, fetch, sim_random_below(fetch->size));
	return rc < 0 ? rc : WEFT_EPROTO;
}

/* A client that is redirected does not wait for the body, and so may lose the connection. */
static int
on_moved(weft_http *http, void *arg)
{
	const struct fetch *fetch = find(http);
	char where[URL_MAX];
	int rc;

	(void)arg;
	if (!fetch)
		return WEFT_ENOMEM;
	(void)snprintf(where, sizeof(where), "/whole?id=%u", fetch->id);
	rc = weft_http_set_header(http, "Location", where);
	return rc < 0 ? rc
	              : weft_http_reply(http, 302, "text/plain",
	                                weft_text(play.calm ? "" : "there"), WEFT_NEVER);
}

static int
on_echo(weft_http *http, void *arg)
{
	const struct fetch *fetch = begin(http);
	int rc = fetch ? read_body(http, fetch) : WEFT_ENOMEM;

	(void)arg;
	return rc < 0 ? rc : reply_whole(http, fetch, 200);
}

static int
on_refuse(weft_http *http, void *arg)
{
	const struct fetch *fetch = begin(http);

	(void)arg;
	return fetch ? reply_whole(http, fetch, 403) : WEFT_ENOMEM;
}

/* The request is received completely; its reply has only headers, or there is none. */
static int
on_lose(weft_http *http, void *arg)
{
	const struct fetch *fetch = begin(http);
	int rc = fetch ? read_body(http, fetch) : WEFT_ENOMEM;

	(void)arg;
	if (rc == 0 && play.harsh)
		sim_break_all();
	else if (rc == 0)
		rc = begin_reply(http, fetch);
	return rc < 0 ? rc : WEFT_EPROTO;
}

static const struct http_route routes[] = {
	{ "GET /whole", on_whole },    { "GET /slow", on_whole },  { "GET /pieces", on_pieces },
	{ "GET /die", on_die },        { "GET /moved", on_moved }, { "POST /echo", on_echo },
	{ "POST /refuse", on_refuse }, { "POST /lose", on_lose },  { NULL, NULL },
};

/* --- checks ---------------------------------------------------------------- */

static bool
is_of_connection(int64_t rc)
{
	return rc == WEFT_ECONNRESET || rc == WEFT_EPIPE || rc == WEFT_ETRUNCATED
	       || rc == WEFT_ECONNREFUSED;
}

static bool
is_of_faults(int64_t rc)
{
	return rc == WEFT_ENOMEM || rc == -EMFILE || rc == -ENFILE || rc == -ENOBUFS
	       || rc == -EACCES || rc == -EADDRNOTAVAIL || rc == -ENOSPC || rc == -ENODEV
	       || rc == -ENETUNREACH || rc == -EHOSTUNREACH || rc == -ENOTCONN || rc == -EIO;
}

/* A kept connection may end just when it is reused; the client retries if it may. */
static bool
may_break(const struct fetch *fetch)
{
	return play.harsh || play.closing || fetch->ask == ASK_DIE || fetch->ask == ASK_LOSE
	       || (!play.keeps && fetch->ask >= ASK_ECHO);
}

static bool
has_cause(const struct fetch *fetch, int64_t rc)
{
	if (rc == WEFT_ECANCELED)
		return weft_check_canceled() == rc;
	if (rc == WEFT_EAGAIN)
		return play.tight;
	if (is_of_connection(rc))
		return may_break(fetch);
	return is_of_faults(rc) && play.harsh;
}

/* Invariant 1: a request has failed.  Without memory the text may be incomplete. */
static void
judge_error(const struct fetch *fetch, int64_t rc)
{
	const char *text = spoils(HTTP_FETCH_SPOIL_MUTE) ? "" : weft_detail();
	bool said = strstr(text, paths[fetch->ask])
	            || (fetch->ask == ASK_MOVED && strstr(text, "/whole"))
	            || (*text && sim_has_failed(SIM_ALLOC));

	play.lost++;
	if (rc == WEFT_ETIMEDOUT)
		time_check(fetch->deadline_ns);
	else if (!has_cause(fetch, rc))
		sim_fail("request %u of kind %d tells %lld: %s", fetch->id, (int)fetch->ask,
		         (long long)rc, text);
	if (!said)
		sim_fail("request %u does not say what has failed: %s", fetch->id, text);
}

static void
judge_bytes(const struct fetch *fetch, unsigned char *buf, size_t from, size_t size)
{
	if (spoils(HTTP_FETCH_SPOIL_BYTE))
		buf[0]++;
	if (size > fetch->size - from)
		sim_fail("the reply to %u is too long", fetch->id);
	for (size_t i = 0; i < size; i++)
		if (buf[i] != byte_at(fetch, from + i))
			sim_fail("a wrong byte in the reply to %u", fetch->id);
}

/* --- fetching -------------------------------------------------------------- */

/* Read the reply, usually to its end; > 0: left early. */
static int
read_reply(struct fetch *fetch, weft_http *http)
{
	size_t got = 0;
	ssize_t n;

	do {
		unsigned char buf[512];
		size_t size = 1 + sim_random_below(sizeof(buf));

		if (got >= fetch->leave_at) {
			play.lost++;
			return 1;
		}
		n = weft_http_read(http, buf, size, fetch->deadline_ns);
		if (n > 0)
			judge_bytes(fetch, buf, got, (size_t)n);
		got += n > 0 ? (size_t)n : 0;
		if (n > 0 && got < fetch->size && spoils(HTTP_FETCH_SPOIL_END))
			n = 0;
	} while (n > 0);
	if (n == 0 && got < fetch->size)
		sim_fail("the reply to %u ends after %zu of %zu", fetch->id, got, fetch->size);
	return (int)n;
}

/* A server short of resources may reply so; and one whose clock jumped may report a timeout. */
static bool
may_say(int status)
{
	return (play.harsh && (status == 500 || status == 503))
	       || (status == 408 && sim_has_failed(SIM_CLOCK));
}

static int
take_reply(struct fetch *fetch, weft_http *http)
{
	int status = weft_http_status(http);

	play.lost += costs(fetch->ask);
	if (status == (fetch->ask == ASK_REFUSE ? 403 : 200))
		return read_reply(fetch, http);
	if (!may_say(status))
		sim_fail("request %u has status %d", fetch->id, status);
	play.lost++;
	return 0;
}

/* Send the body of a streamed request, and receive the headers of the reply. */
static int
send_body(struct fetch *fetch, weft_http *http)
{
	ssize_t n = 0;

	for (size_t at = 0; n >= 0 && at < fetch->size;) {
		unsigned char buf[512];
		size_t size = 1 + sim_random_below(sizeof(buf));

		size = size < fetch->size - at ? size : fetch->size - at;
		fill(fetch, buf, at, size);
		n = weft_http_write(http, buf, size, fetch->deadline_ns);
		at += size;
	}
	if (n < 0 && n != WEFT_EPIPE && n != WEFT_ECONNRESET)
		return (int)n;
	return weft_http_finish(http, fetch->deadline_ns);
}

static bool
is_streamed(const struct fetch *fetch)
{
	return fetch->ask == ASK_STREAM || (fetch->ask == ASK_REFUSE && fetch->id % 2);
}

static int
fetch_it(struct fetch *fetch)
{
	unsigned char body[SIZE_MOST];
	weft_http_request request = { .url = fetch->url };
	weft_http *http = NULL;
	int rc;

	if (fetch->ask >= ASK_ECHO)
		request.method = "POST";
	request.streamed = is_streamed(fetch);
	if (fetch->ask >= ASK_ECHO && !request.streamed) {
		fill(fetch, body, 0, fetch->size);
		request.body = (weft_span){ body, fetch->size };
	}
	rc = weft_http_fetch(play.client, &request, &http, fetch->deadline_ns);
	sim_check((rc == 0) == (http != NULL));
	if (rc == 0 && request.streamed)
		rc = send_body(fetch, http);
	if (rc == 0)
		rc = take_reply(fetch, http);
	if (rc == 0 && spoils(HTTP_FETCH_SPOIL_ERROR))
		rc = WEFT_EPROTO;
	if (rc < 0)
		judge_error(fetch, rc);
	if (!http || !spoils(HTTP_FETCH_SPOIL_KEEP))
		weft_http_close(http);
	return rc;
}

static struct fetch *
draw_fetch(void)
{
	uint32_t id = play.fetches_used++;
	uint64_t below = UINT64_C(2) << sim_random_below(SIZE_LOG2);
	struct fetch *fetch = &play.fetches[id];

	*fetch = (struct fetch){
		.ask = (enum ask)sim_random_below(ASKS),
		.id = id,
		.size = 2 + sim_random_below(below),
		.leave_at = SIZE_MAX,
		.deadline_ns = play.calm ? WEFT_NEVER : weft_after(5 * WEFT_S),
	};
	if (play.calm && costs(fetch->ask))
		fetch->ask = ASK_WHOLE;
	if (!play.calm && sim_random_below(8) == 0)
		fetch->leave_at = sim_random_below(fetch->size);
	if (!play.calm && sim_random_below(8) == 0)
		fetch->deadline_ns = weft_after(sim_random_below(WEFT_MS));
	(void)snprintf(fetch->url, sizeof(fetch->url), "http://127.0.0.1:%u%s?id=%u",
	               ntohs(play.world.name.sin_port), paths[fetch->ask], id);
	return fetch;
}

static int
run_client(void *arg)
{
	(void)arg;
	for (int i = 0; i < FETCHES && weft_check_canceled() == 0; i++) {
		struct fetch *fetch = draw_fetch();

		once_begin(&fetch->once);
		(void)fetch_it(fetch);
		once_end(&fetch->once);
		if (spoils(HTTP_FETCH_SPOIL_TWICE))
			once_end(&fetch->once);
		(void)rest_ns(sim_random_below(UINT64_C(1) << sim_random_below(28)));
	}
	if (!spoils(HTTP_FETCH_SPOIL_WAKE))
		count_up(&play.ended);
	return 0;
}

/* --- the play -------------------------------------------------------------- */

static void
begin_server(void)
{
	struct http_world_opts opts = {
		.loops = 1 + (uint32_t)sim_random_below(2),
		.routes = routes,
		.server = { .header_ns = LONG_NS,
		            .idle_ns = LONG_NS,
		            .request_ns = LONG_NS,
		            .grace_ns = LONG_NS },
	};

	if (!play.keeps && sim_random_below(2))
		opts.server.idle_ns = WEFT_MS + sim_random_below(WEFT_S / 10);
	http_world_begin(&play.world, &opts);
}

static void
begin_client(void)
{
	weft_http_client_opts opts = { .idle_ns = LONG_NS };

	host_make(&play.host);
	host_run(&play.host);
	play.per_host_max = 1 + (uint32_t)sim_random_below(4);
	opts.loop = play.host.loop;
	opts.per_host_max = play.per_host_max;
	if (play.tight)
		opts.queue_max = 1 + (uint32_t)sim_random_below(2);
	if (!play.keeps && sim_random_below(2))
		opts.idle_ns = WEFT_MS + sim_random_below(WEFT_S / 10);
	if (!play.keeps && sim_random_below(2))
		opts.idle_max = 1;
	while (!(play.client = weft_http_client_new(&opts)))
		continue;
}

static weft_threadlet
start(weft_threadlet_fn fn)
{
	weft_go_opts opts = { .loop = play.host.loop };
	weft_threadlet id;

	while ((id = weft_go_with(&opts, fn, NULL)) < 0)
		continue;
	return id;
}

static int
free_client(void *arg)
{
	(void)arg;
	if (weft_http_client_free(play.client) != 0)
		sim_fail("exchanges are left: %s", weft_detail());
	count_up(&play.freed);
	return 0;
}

/* Invariant 3. */
static void
judge_pool(void)
{
	struct weft_http_server_stats stats;

	weft_http_server_stats(play.world.server, &stats);
	if (spoils(HTTP_FETCH_SPOIL_POOL))
		stats.connections += play.per_host_max;
	if (!play.harsh && play.keeps && !play.closing
	    && stats.connections > play.per_host_max + play.lost)
		sim_fail("%llu connections for %u at once, %u may be lost",
		         (unsigned long long)stats.connections, play.per_host_max, play.lost);
}

static void
disturb(void)
{
	pause_ns(sim_random_below(UINT64_C(1) << (10 + sim_random_below(20))));
	for (uint32_t i = 0; i < CLIENTS; i++)
		if (sim_random_below(8) == 0)
			(void)weft_cancel(play.ids[i]);
	if (sim_random_below(4) == 0) {
		play.closing = true;
		http_world_close(&play.world);
	}
}

void
http_fetch_play(enum http_fetch_spoil spoil)
{
	memset(&play, 0, sizeof(play));
	play.spoil = spoil;
	play.calm = sim_random_below(4) == 0;
	play.harsh = !play.calm && sim_random_below(2);
	play.tight = !play.calm && sim_random_below(4) == 0;
	play.keeps = play.calm || sim_random_below(2);
	if (!play.harsh)
		sim_spare(SIM_MASK(SIM_RESET) | SIM_MASK(SIM_REFUSE) | SIM_MASK(SIM_ERRNO)
		          | SIM_MASK(SIM_ALLOC) | SIM_MASK(SIM_CLOCK) | SIM_MASK(SIM_THREAD));
	if (play.calm)
		sim_calm_net(); /* so that nothing times out */
	begin_server();
	begin_client();
	for (uint32_t i = 0; i < CLIENTS; i++)
		play.ids[i] = start(run_client);
	if (!play.calm)
		disturb();
	sim_heal();
	await_count(&play.ended, CLIENTS);
	judge_pool();
	(void)start(free_client);
	await_count(&play.freed, 1);
	if (!play.closing)
		http_world_close(&play.world);
	http_world_end(&play.world);
	host_end(&play.host);
	for (uint32_t i = 0; i < play.fetches_used; i++)
		once_check(&play.fetches[i].once);
}
