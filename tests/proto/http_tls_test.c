/* http_tls_test.c - the HTTP client over TLS: trusted and untrusted servers, redirects, ends. */
#include "proto/http_world.h"
#include "proto/tls_three.h"

/* `peer` uses TLS, `other` does not. */
static void
play_tls(void (*play)(struct world *world), bool trusts, const struct step *const *scripts,
         const struct step *const *others)
{
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world);
	make_tls();
	world->peer.scripts = scripts;
	world->peer.tls = tls.server;
	world->other.scripts = others;
	world->opts.tls = trusts ? tls.client : tls.stranger;
	world_run(world, play);
	drop_tls();
	free(world);
}

SCRIPT(serves_two, { HEAR, "GET /1 ", 0 }, { SAY, HELLO, 0 }, { HEAR, "PUT /2 ", 0 },
       { TAKE, "body", 0 }, { DRIP, HELLO, 0 }, { WAIT, NULL, 0 });

static void
play_good(struct world *world)
{
	get(world, "/1", 200, "hello");
	world->request.method = "PUT";
	world->request.body = weft_text("body");
	get(world, "/2", 200, "hello");
	CHECK_EQ(world->peer.accepted, 1);
}

TEST(server_with_a_valid_certificate_is_used_on_one_connection)
{
	play_tls(play_good, true, SCRIPTS(serves_two), NULL);
}

static void
play_untrusted(struct world *world)
{
	get_error(world, "/1", WEFT_ECERT, "https://127.0.0.1");
	get_error(world, "/1", WEFT_ECERT, "");
	CHECK_EQ(peer_heard(&world->peer, "GET"), 0);
}

TEST(untrusted_server_gets_no_request)
{
	play_tls(play_untrusted, false, SCRIPTS(serves_two), NULL);
}

static void
play_wrong_name(struct world *world)
{
	char url[64];
	weft_http_request request = { .url = url };
	weft_http *http;

	(void)snprintf(url, sizeof(url), "https://localhost:%u/1", world->peer.port);
	CHECK_EQ(weft_http_fetch(world->client, &request, &http, weft_after(HOUR)), WEFT_ECERT);
	CHECK(strstr(weft_detail(), url));
	CHECK_EQ(peer_heard(&world->peer, "GET"), 0);
}

TEST(certificate_for_another_name_is_refused)
{
	play_tls(play_wrong_name, true, SCRIPTS(serves_two), NULL);
}

/* --- redirects between HTTP and HTTPS -------------------------------------------- */

#define TO(where) "HTTP/1.1 302 Go\r\nContent-Length: 0\r\nLocation: " where "\r\n\r\n"

SCRIPT(leads_down, { HEAR, NULL, 0 }, { SAY, TO("http://127.0.0.1:%Q/"), 0 }, { WAIT, NULL, 0 });
SCRIPT(leads_up, { HEAR, NULL, 0 }, { SAY, TO("https://127.0.0.1:%Q/1"), 0 }, { WAIT, NULL, 0 });
SCRIPT(serves_one, { HEAR, "GET /1 ", 0 }, { SAY, HELLO, 0 }, { WAIT, NULL, 0 });
SCRIPT(nobody, { WAIT, NULL, 0 });

static void
play_down(struct world *world)
{
	get_error(world, "/", WEFT_EPERM, "would leave https");
	CHECK_EQ(world->other.accepted, 0);
}

static void
play_up(struct world *world)
{
	weft_http_field field = { "Cookie", "a=b" };

	world->request.fields = &field;
	world->request.field_count = 1;
	world->request.url = peer_url(&world->other, "/");
	get(world, "/", 200, "hello");
	CHECK_EQ(peer_heard(&world->other, "Cookie"), 1);
	CHECK_EQ(peer_heard(&world->peer, "Cookie"), 0);
}

TEST(redirect_from_https_to_http_is_refused)
{
	play_tls(play_down, true, SCRIPTS(leads_down), SCRIPTS(nobody));
	play_tls(play_up, true, SCRIPTS(serves_one), SCRIPTS(leads_up));
}

/* --- ends, and servers without TLS ------------------------------------------------ */

SCRIPT(until_close, { HEAR, NULL, 0 }, { SAY, "HTTP/1.1 200 OK\r\n\r\nuntil close", 0 });
SCRIPT(until_broken, { HEAR, NULL, 0 }, { SAY, "HTTP/1.1 200 OK\r\n\r\nuntil", 0 },
       { HOLD, NULL, 0 }, { RESET, NULL, 0 });

static void
play_close(struct world *world)
{
	weft_http *http;
	char bytes[16];
	ssize_t n;

	get(world, "/", 200, "until close");
	OK(fetch(world, "/", &http));
	CHECK_EQ(weft_http_read(http, bytes, sizeof(bytes), WEFT_NEVER), 5);
	peer_go_on(&world->peer);
	n = weft_http_read(http, bytes, sizeof(bytes), WEFT_NEVER);
	CHECK(n == WEFT_ETRUNCATED || n == WEFT_ECONNRESET);
	weft_http_close(http);
}

TEST(body_until_close_needs_a_tls_close)
{
	play_tls(play_close, true, SCRIPTS(until_close, until_broken), NULL);
}

SCRIPT(speaks_plain, { SAY, "HTTP/1.1 400 Bad Request\r\n\r\n", 0 }, { WAIT, NULL, 0 });

static void
play_plain(struct world *world)
{
	char url[64];
	weft_http_request request = { .url = url };
	weft_http *http;
	int rc;

	(void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/", world->other.port);
	rc = weft_http_fetch(world->client, &request, &http, weft_after(HOUR));
	CHECK_EQ(rc, WEFT_EPROTO);
	CHECK(strstr(weft_detail(), url));
	rc = weft_http_fetch(world->client, &request, &http, weft_after(2 * WEFT_MS));
	CHECK_EQ(rc, WEFT_ETIMEDOUT);
	CHECK(strstr(weft_detail(), url));
}

TEST(server_without_tls_is_an_error_and_a_silent_one_times_out)
{
	play_tls(play_plain, true, SCRIPTS(nobody), SCRIPTS(speaks_plain, nobody));
}
