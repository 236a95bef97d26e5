/* http_redirect_test.c - redirects of the HTTP client, and what it sends along. */
#include <errno.h>
#include "proto/http_world.h"

#define TO(status, where) \
	"HTTP/1.1 " status " Go\r\nContent-Length: 2\r\nLocation: " where "\r\n\r\nxx"

SCRIPT(leads_around, { HEAR, "GET /a HTTP", 0 }, { DRIP, TO("301", "/b/c?d"), 0 },
       { HEAR, "GET /b/c?d HTTP", 0 }, { SAY, TO("302", "../e"), 0 }, { HEAR, "GET /e HTTP", 0 },
       { SAY, TO("307", "//127.0.0.1:%P/f#g"), 0 }, { HEAR, "GET /f HTTP", 0 },
       { SAY, TO("308", "http://127.0.0.1:%P"), 0 }, { HEAR, "GET / HTTP", 0 },
       { SAY, TO("303", "?q"), 0 }, { HEAR, "GET /?q HTTP", 0 }, { SAY, HELLO, 0 },
       { WAIT, NULL, 0 });

static void
play_around(struct world *world)
{
	weft_http *http;

	OK(fetch(world, "/a", &http));
	CHECK_EQ(weft_http_status(http), 200);
	CHECK_STR(body_of(http), "hello");
	CHECK_STR(weft_http_url(http), peer_url(&world->peer, "/?q"));
	CHECK_STR(weft_http_method(http), "GET");
	CHECK_STR(weft_http_path(http), "");
	weft_http_close(http);
	CHECK_EQ(world->peer.accepted, 1);
}

TEST(redirects_are_followed_on_the_same_connection)
{
	PLAY(play_around, leads_around);
}

/* --- methods and bodies --------------------------------------------------------- */

#define HOP(method, body, status, then, then_body)                                       \
	{ HEAR, method " /a HTTP", 0 }, { TAKE, body, 0 }, { SAY, TO(status, "/b"), 0 }, \
		{ HEAR, then " /b HTTP", 0 }, { TAKE, then_body, 0 },                    \
	{                                                                                \
		SAY, HELLO, 0                                                            \
	}

SCRIPT(keeps_and_drops, HOP("POST", "body", "301", "GET", ""),
       HOP("POST", "body", "302", "GET", ""), HOP("POST", "body", "303", "GET", ""),
       HOP("POST", "body", "307", "POST", "body"), HOP("POST", "body", "308", "POST", "body"),
       HOP("PUT", "body", "301", "PUT", "body"), HOP("PUT", "body", "303", "GET", ""),
       { WAIT, NULL, 0 });
SCRIPT(heads, { HEAR, "HEAD /a", 0 },
       { SAY, "HTTP/1.1 303 Go\r\nLocation: /b\r\nContent-Length: 9\r\n\r\n", 0 },
       { HEAR, "HEAD /b", 0 }, { SAY, LENGTH("5\r\n\r\n"), 0 }, { WAIT, NULL, 0 });

static void
play_methods(struct world *world)
{
	static const char *const methods[] = {
		"POST", "POST", "POST", "POST", "POST", "PUT", "PUT"
	};
	weft_http_field fields[] = { { "Content-Type", "text/plain" }, { "Accept", "x" } };

	world->request.fields = fields;
	world->request.field_count = 2;
	world->request.body = weft_text("body");
	for (int i = 0; i < 7; i++) {
		world->request.method = methods[i];
		get(world, "/a", 200, "hello");
	}
	CHECK_EQ(peer_heard(&world->peer, "Content-Type: text/plain"), 7 + 3);
	CHECK_EQ(peer_heard(&world->peer, "Content-Length: 4"), 7 + 3);
	CHECK_EQ(peer_heard(&world->peer, "Accept: x"), 14);
	CHECK_EQ(world->peer.accepted, 1);
}

static void
play_heads(struct world *world)
{
	world->request.method = "HEAD";
	get(world, "/a", 200, "");
}

TEST(redirect_status_decides_about_method_and_body)
{
	PLAY(play_methods, keeps_and_drops);
	PLAY(play_heads, heads);
}

/* --- credentials ---------------------------------------------------------------- */

SCRIPT(leads_away, { HEAR, "GET /a", 0 }, { SAY, TO("302", "/b"), 0 }, { HEAR, "GET /b", 0 },
       { SAY, TO("302", "http://127.0.0.1:%Q/c"), 0 }, { HEAR, "GET /d", 0 }, { SAY, HELLO, 0 },
       { WAIT, NULL, 0 });
SCRIPT(leads_back, { HEAR, "GET /c", 0 }, { SAY, TO("302", "http://127.0.0.1:%Q/d"), 0 },
       { WAIT, NULL, 0 });

static void
play_away(struct world *world)
{
	weft_http_field fields[] = { { "authorization", "Basic eA==" },
		                     { "Cookie", "a=b" },
		                     { "Proxy-Authorization", "y" },
		                     { "X-Other", "z" } };

	world->request.fields = fields;
	world->request.field_count = 4;
	get(world, "/a", 200, "hello");
	CHECK_EQ(peer_heard(&world->peer, "authorization: Basic eA=="), 2);
	CHECK_EQ(peer_heard(&world->peer, "Cookie: a=b"), 2);
	CHECK_EQ(peer_heard(&world->peer, "X-Other: z"), 3);
	CHECK_EQ(peer_heard(&world->other, "uthorization"), 0);
	CHECK_EQ(peer_heard(&world->other, "Cookie"), 0);
	CHECK_EQ(peer_heard(&world->other, "X-Other: z"), 1);
	CHECK_EQ(peer_heard(&world->other, "Host: 127.0.0.1:"), 1);
	CHECK_EQ(world->peer.accepted, 1);
}

TEST(credentials_are_not_sent_to_another_origin)
{
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world);
	world->peer.scripts = SCRIPTS(leads_away);
	world->other.scripts = SCRIPTS(leads_back);
	world_run(world, play_away);
	free(world);
}

/* --- redirects that are not followed -------------------------------------------- */

SCRIPT(loops, { HEAR, NULL, 0 }, { SAY, TO("302", "/a"), 0 }, { HEAR, NULL, 0 },
       { SAY, TO("302", "/a"), 0 }, { HEAR, NULL, 0 }, { SAY, TO("302", "/a"), 0 },
       { HEAR, NULL, 0 }, { SAY, TO("302", "/a"), 0 }, { WAIT, NULL, 0 });
SCRIPT(leads_nowhere, { HEAR, NULL, 0 },
       { SAY, "HTTP/1.1 302 Go\r\nContent-Length: 2\r\n\r\nxx", 0 }, { HEAR, NULL, 0 },
       { SAY, "HTTP/1.1 304 Same\r\nLocation: /x\r\n\r\n", 0 }, { HEAR, NULL, 0 },
       { SAY, TO("300", "/x"), 0 }, { HEAR, NULL, 0 }, { SAY, TO("302", "/x"), 0 },
       { WAIT, NULL, 0 });
#define LEADS(name, where) SCRIPT(name, { HEAR, NULL, 0 }, { SAY, TO("302", where), 0 })
LEADS(leads_to_ftp, "ftp://h/");
LEADS(leads_to_script, "javascript:alert(1)");
LEADS(leads_to_user, "http://u:p@h/");
LEADS(leads_to_space, "/a b");
LEADS(leads_to_socket, "http+unix://%2Frun%2Fx.sock/");

static void
play_loops(struct world *world)
{
	get_error(world, "/a", -ELOOP, "more than 3 redirects");
	CHECK_EQ(world->peer.accepted, 1);
}

static void
play_nowhere(struct world *world)
{
	get(world, "/", 302, "xx");
	get(world, "/", 304, "");
	get(world, "/", 300, "xx");
	world->request.no_redirect = true;
	get(world, "/", 302, "xx");
	CHECK_EQ(world->peer.accepted, 1);
}

static void
play_not_followed(struct world *world)
{
	world->request.no_redirect = true;
	get(world, "/", 302, "xx");
}

static void
play_wrong(struct world *world)
{
	for (int i = 0; i < 4; i++) {
		get_error(world, "/", WEFT_EPROTO, "redirect");
		UNTIL(world->peer.open == 0);
	}
	get_error(world, "/", WEFT_EPERM, "would lead to a Unix socket of this machine");
	UNTIL(world->peer.open == 0);
}

TEST(redirect_loop_ends_at_the_limit)
{
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world);
	world->opts.redirects_max = 3;
	world->peer.scripts = SCRIPTS(loops);
	world_run(world, play_loops);
	free(world);
}

TEST(redirect_without_location_or_with_no_redirect_is_a_reply)
{
	PLAY(play_nowhere, leads_nowhere);
	PLAY(play_not_followed, leads_to_ftp);
}

TEST(redirect_to_a_non_http_url_or_unix_socket_is_refused)
{
	PLAY(play_wrong, leads_to_ftp, leads_to_script, leads_to_user, leads_to_space,
	     leads_to_socket);
}
