/* guard_test.c - which requests the admin endpoint answers, and which it refuses. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <weft/listener.h>
#include "admin/world.h"
#include "base/sys.h"

#define LOCAL  "Host: localhost\r\n"
#define TOKEN  "open sesame"
#define BEARER "Authorization: Bearer " TOKEN "\r\n"

/* Send a request with those headers, and return its status. */
static int
ask(struct world *world, const char *line, const char *headers)
{
	char text[2048];

	(void)snprintf(text, sizeof(text), "%s HTTP/1.1\r\n%sConnection: close\r\n\r\n", line,
	               headers);
	return raw(world->place, text);
}

#define ASK(headers) ask(world, "GET /metrics", headers)

/* --- Host headers and sites ---------------------------------------------------------- */

static void
play_names(struct world *world)
{
	CHECK_EQ(ASK("Host: localhost\r\n"), 200);
	CHECK_EQ(ASK("Host: LOCALHOST:7070\r\n"), 200);
	CHECK_EQ(ASK("Host: weft.localhost:7070\r\n"), 200);
	CHECK_EQ(ASK("Host: 127.0.0.1:80\r\n"), 200);
	CHECK_EQ(ASK("Host: [::1]:80\r\n"), 200);
	CHECK_EQ(ASK("Host: [::1]\r\n"), 200);
	CHECK_EQ(ASK("Host: 127.9.8.7\r\n"), 200);
	CHECK_EQ(ASK("Host: [0:0::1]:80\r\n"), 200);
	/* These are addresses of this machine, but browsers do not treat them as trustworthy
	 * and send no Sec-Fetch-Site header for them. */
	CHECK_EQ(ASK("Host: 0.0.0.0:7070\r\n"), 403);
	CHECK_EQ(ASK("Host: 0\r\n"), 403);
	CHECK_EQ(ASK("Host: [::]\r\n"), 403);
	CHECK_EQ(ASK("Host: [::ffff:0.0.0.0]\r\n"), 403);
	CHECK_EQ(ASK("Host: [::ffff:127.0.0.1]\r\n"), 403);
	CHECK_EQ(ASK("Host: [::127.0.0.1]\r\n"), 403);
	CHECK_EQ(ASK("Host: 127.1\r\n"), 403);
	CHECK_EQ(ASK("Host: 2130706433\r\n"), 403);
	CHECK_EQ(ASK("Host: 0x7f.0.0.1\r\n"), 403);
	CHECK_EQ(ASK("Host: 0177.0.0.1\r\n"), 403);
	CHECK_EQ(ASK("Host: 192.168.1.1\r\n"), 403);
	CHECK_EQ(ASK("Host: 128.0.0.1\r\n"), 403);
	CHECK_EQ(ASK("Host: evil.example\r\n"), 403);
	CHECK_EQ(ASK("Host: localhost.evil.example\r\n"), 403);
	CHECK_EQ(ASK("Host: evillocalhost\r\n"), 403);
	CHECK_EQ(ASK("Host: 127.0.0.1.evil.example\r\n"), 403);
	CHECK_EQ(ASK("Host: \r\n"), 403);
	CHECK_EQ(ASK("Host: localhost.\r\n"), 403);
	CHECK_EQ(ASK("Host: evil.example:127.0.0.1\r\n"), 400);
	CHECK_EQ(raw(world->place, "GET /metrics HTTP/1.0\r\n\r\n"), 403);
}

TEST(admin_answers_only_to_host_names_that_cannot_be_rebound)
{
	world_run(&(struct world){ 0 }, play_names);
}

static void
play_passed_on(struct world *world)
{
	bool shows = world->opts.token != NULL;
	const char *bearer = shows ? BEARER : "";
	static const char *const fields[] = {
		"Forwarded: for=192.0.2.7",
		"X-Forwarded-For: 192.0.2.7",
		"X-Forwarded-Host: a.example",
		"X-Real-IP: 192.0.2.7",
		"Via: 1.1 proxy",
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		char headers[256];

		(void)snprintf(headers, sizeof(headers),
		               LOCAL "%s"
		                     "%s\r\n",
		               bearer, fields[i]);
		CHECK_EQ(ASK(headers), shows ? 200 : 403);
	}
}

TEST(admin_without_a_token_refuses_proxied_requests)
{
	world_run(&(struct world){ 0 }, play_passed_on);
	world_run(&(struct world){ .opts = { .token = TOKEN } }, play_passed_on);
}

static void
play_sites(struct world *world)
{
	CHECK_EQ(ASK(LOCAL "Sec-Fetch-Site: none\r\n"), 200);
	CHECK_EQ(ASK(LOCAL "Sec-Fetch-Site: same-origin\r\n"), 200);
	CHECK_EQ(ASK(LOCAL "Sec-Fetch-Site: same-site\r\n"), 403);
	CHECK_EQ(ASK(LOCAL "Sec-Fetch-Site: cross-site\r\n"), 403);
	CHECK_EQ(ASK(LOCAL "Origin: http://localhost\r\n"), 200);
	CHECK_EQ(ASK(LOCAL "Origin: http://localhost:81\r\n"), 403);
	CHECK_EQ(ASK(LOCAL "Origin: http://evil.example\r\n"), 403);
	CHECK_EQ(ASK(LOCAL "Origin: null\r\n"), 403);
	CHECK_EQ(ASK(LOCAL "Origin: http://evil.example\r\n"
	                   "Sec-Fetch-Site: same-origin\r\n"),
	         403);
	CHECK_EQ(ask(world, "GET /events",
	             LOCAL "Sec-Fetch-Site: cross-site"
	                   "\r\n"),
	         403);
	CHECK_EQ(ask(world, "GET /", LOCAL "Sec-Fetch-Site: cross-site\r\n"), 403);
}

TEST(admin_refuses_cross_site_requests)
{
	world_run(&(struct world){ 0 }, play_sites);
}

static void
play_methods(struct world *world)
{
	static const char *const methods[] = { "POST", "PUT", "DELETE", "PATCH" };
	static const char *const paths[] = { "/", "/metrics", "/debug/loops", "/debug/threadlets",
		                             "/events" };

	for (size_t m = 0; m < 4; m++)
		for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++) {
			char line[64];

			(void)snprintf(line, sizeof(line), "%s %s", methods[m], paths[p]);
			CHECK_EQ(ask(world, line, LOCAL "Content-Length: 0\r\n"), 405);
		}
	CHECK_EQ(ask(world, "HEAD /metrics", LOCAL), 200);
	CHECK_EQ(ask(world, "GET /etc/passwd", LOCAL), 404);
}

TEST(admin_accepts_only_get_and_head)
{
	world_run(&(struct world){ 0 }, play_methods);
}

#define FOREIGN LOCAL "Sec-Fetch-Site: cross-site\r\n"
#define VISIT   FOREIGN "Sec-Fetch-Mode: navigate\r\n"

static void
play_links(struct world *world)
{
	CHECK_EQ(ask(world, "GET /", VISIT), 200);
	CHECK_EQ(ask(world, "GET /", VISIT "Sec-Fetch-Dest: document\r\n"), 200);
	CHECK_EQ(ask(world, "GET /", VISIT "Sec-Fetch-Dest: iframe\r\n"), 403);
	CHECK_EQ(ask(world, "GET /", VISIT "Origin: http://evil.example\r\n"), 403);
	CHECK_EQ(ask(world, "GET /", FOREIGN "Sec-Fetch-Mode: no-cors\r\n"), 403);
	CHECK_EQ(ask(world, "HEAD /", VISIT), 403);
	CHECK_EQ(ASK(VISIT), 403);
	CHECK_EQ(ask(world, "GET /debug/loops", VISIT), 403);
	CHECK_EQ(ask(world, "GET /debug/trace", VISIT), 403);
	CHECK_EQ(ask(world, "GET /events", VISIT), 403);
}

TEST(admin_serves_only_the_page_to_a_cross_site_link)
{
	world_run(&(struct world){ 0 }, play_links);
}

/* --- the token ------------------------------------------------------------------------ */

static void
play_token(struct world *world)
{
	const char *cookie;
	char headers[1024];

	CHECK_EQ(ASK(LOCAL), 401);
	CHECK_EQ(ASK(LOCAL BEARER), 200);
	CHECK_EQ(ASK("Host: any.example\r\n" BEARER), 200);
	CHECK_EQ(ASK(LOCAL "Authorization: bearer open sesame\r\n"), 200);
	CHECK_EQ(ASK(LOCAL "Authorization: BEARER open sesame\r\n"), 200);
	CHECK_EQ(ASK(LOCAL "Authorization: Bearer\r\n"), 401);
	CHECK_EQ(ASK(LOCAL "Authorization: Bearers open sesame\r\n"), 401);
	CHECK_EQ(ASK(LOCAL BEARER "Sec-Fetch-Site: cross-site\r\n"), 403);
	CHECK_EQ(ASK(LOCAL "Authorization: Bearer open sesam\r\n"), 401);
	CHECK_EQ(ASK(LOCAL "Authorization: Bearer open sesamf\r\n"), 401);
	CHECK_EQ(ASK(LOCAL "Authorization: Bearer open sesamee\r\n"), 401);
	CHECK_EQ(ASK(LOCAL "Authorization: Bearer \r\n"), 401);
	CHECK_EQ(ASK(LOCAL "Authorization: Basic open sesame\r\n"), 401);
	CHECK_EQ(get(world, "/?token=open+sesam")->status, 401);
	CHECK_STR(get(world, "/?token=")->cookie, "");

	CHECK_EQ(get(world, "/?token=open%20sesame")->status, 303);
	CHECK_STR(get(world, "/?token=open%20sesame")->location, "?");
	cookie = get(world, "/?token=open%20sesame")->cookie;
	CHECK(strstr(cookie, "; HttpOnly"));
	CHECK(strstr(cookie, "; SameSite=Strict"));
	CHECK(!strstr(cookie, "sesame"));
	/* The cookie belongs to the port of the request that set it. */
	(void)snprintf(headers, sizeof(headers), "Host: %s\r\nCookie: a=b; %.*s; c=d\r\n",
	               world->url + 7, (int)strcspn(cookie, ";"), cookie);
	CHECK_EQ(ASK(headers), 200);
	(void)snprintf(headers, sizeof(headers), "Host: %s\r\nCookie: %.*s0\r\n", world->url + 7,
	               (int)strcspn(cookie, ";"), cookie);
	CHECK_EQ(ASK(headers), 401);
	(void)snprintf(headers, sizeof(headers), LOCAL "Cookie: %.*s\r\n",
	               (int)strcspn(cookie, ";"), cookie);
	CHECK_EQ(ASK(headers), 401);
	CHECK_EQ(ASK(LOCAL "Cookie: weft_admin=; weft_admin=zz\r\n"), 401);
}

TEST(admin_with_a_token_answers_only_requests_that_have_it)
{
	world_run(&(struct world){ .opts = { .token = TOKEN } }, play_token);
}

static int
open_badly(void *arg)
{
	static const char *const open[] = { "tcp://0.0.0.0:0", "tcp://:0", "tcp://[::]:0",
		                            "tcp://192.0.2.1:0" };
	char long_token[400];
	weft_admin_opts opts = { .token = long_token };
	weft_admin *admin = NULL;

	(void)arg;
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		CHECK_EQ(weft_admin_open(open[i], NULL, &admin), WEFT_EPERM);
	CHECK(strstr(weft_detail(), "token"));
	memset(long_token, 'x', sizeof(long_token));
	long_token[sizeof(long_token) - 1] = '\0';
	CHECK_EQ(weft_admin_open(NULL, &opts, &admin), WEFT_EINVAL);
	long_token[0] = '\0';
	CHECK_EQ(weft_admin_open(NULL, &opts, &admin), WEFT_EINVAL);
	CHECK_EQ(weft_admin_open("tcp://127.0.0.1", NULL, &admin), WEFT_EINVAL);
	CHECK(!admin);
	opts.token = "from a file\n";
	CHECK_EQ(weft_admin_open(NULL, &opts, &admin), WEFT_EINVAL);
	opts.token = " x";
	CHECK_EQ(weft_admin_open(NULL, &opts, &admin), WEFT_EINVAL);
	opts.token = "x";
	OK(weft_admin_open("tcp://0.0.0.0:0", &opts, &admin));
	weft_admin_close(admin);
	return 0;
}

TEST(admin_without_a_token_listens_only_on_loopback)
{
	run_threadlet(open_badly, NULL);
}

/* --- peers ---------------------------------------------------------------------------- */

/* Find an address of this machine other than loopback.  Returns false if there is none. */
static bool
find_outside(char *out, size_t room)
{
	struct ifaddrs *all, *one;
	char text[INET_ADDRSTRLEN];

	OK(getifaddrs(&all));
	for (one = all; one; one = one->ifa_next)
		if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET
		    && !(one->ifa_flags & IFF_LOOPBACK))
			break;
	if (one) {
		const struct sockaddr_in *in = (const void *)one->ifa_addr;

		(void)snprintf(out, room, "tcp://%s:0",
		               inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)));
	}
	freeifaddrs(all);
	return one != NULL;
}

struct mounted {
	weft_http_server *server;
	weft_listener *listener;
	char place[WEFT_ADDR_TEXT_MAX];
};

static int
serve(void *arg)
{
	struct mounted *mounted = arg;

	CHECK_EQ(weft_http_serve(mounted->server, mounted->listener, WEFT_NEVER), WEFT_ESHUTDOWN);
	return 0;
}

static weft_threadlet
open_mounted(struct world *world, struct mounted *mounted, const char *address, weft_scope *scope)
{
	weft_addr addr;

	mounted->server = weft_http_server_new(NULL);
	OK(weft_admin_mount(world->admin, mounted->server, "/inside"));
	OK(weft_listener_open(address, NULL, &mounted->listener));
	OK(weft_listener_local(mounted->listener, &addr));
	CHECK(weft_addr_format(&addr, mounted->place, sizeof(mounted->place)) > 0);
	OK(weft_scope_open(scope, 0, WEFT_NEVER));
	return weft_scope_go(scope, serve, mounted);
}

static void
close_mounted(struct mounted *mounted, weft_scope *scope)
{
	weft_listener_close(mounted->listener);
	OK(weft_scope_close(scope));
	OK(weft_http_server_free(mounted->server));
}

static void
play_outside(struct world *world)
{
	static const char request[] = "GET /inside/metrics HTTP/1.1\r\n"
				      "Host: localhost\r\n\r\n";
	static const char shown[] = "GET /inside/metrics HTTP/1.1\r\n" BEARER
				    "Host: localhost\r\n\r\n";
	static const char bare[] = "GET /inside HTTP/1.1\r\n"
				   "Host: localhost\r\n\r\n";
	struct mounted mounted;
	char address[80];
	weft_scope scope;
	bool has = find_outside(address, sizeof(address));

	if (!has)
		return; /* this machine has only loopback */
	CHECK(open_mounted(world, &mounted, address, &scope) > 0);
	CHECK_EQ(raw(mounted.place, request), world->opts.token ? 401 : 403);
	CHECK_EQ(raw(mounted.place, shown), world->opts.token ? 200 : 403);
	CHECK_EQ(raw(mounted.place, bare), world->opts.token ? 401 : 403);
	close_mounted(&mounted, &scope);
}

TEST(mounted_admin_refuses_peers_on_other_machines)
{
	world_run(&(struct world){ 0 }, play_outside);
	world_run(&(struct world){ .opts = { .token = TOKEN } }, play_outside);
}

static bool
has_six(void)
{
	weft_listener *listener;
	int rc = weft_listener_open("tcp://[::1]:0", NULL, &listener);

	if (rc == 0)
		weft_listener_close(listener);
	return rc == 0;
}

/* A listener on all addresses also accepts IPv4.  Its peers have the address ::ffff:127.0.0.1
 * there. */
static void
play_six(struct world *world)
{
	static const char request[] = "GET /inside/metrics HTTP/1.1\r\n"
				      "Host: localhost\r\n\r\n";
	struct mounted mounted;
	char place[80];
	const char *port;
	weft_scope scope;

	if (!has_six())
		return; /* no IPv6 */
	CHECK(open_mounted(world, &mounted, "tcp://:0", &scope) > 0);
	port = strrchr(mounted.place, ':');
	(void)snprintf(place, sizeof(place), "tcp://[::1]%s", port);
	CHECK_EQ(raw(place, request), 200);
	(void)snprintf(place, sizeof(place), "tcp://127.0.0.1%s", port);
	CHECK_EQ(raw(place, request), 200);
	close_mounted(&mounted, &scope);
	CHECK(open_mounted(world, &mounted, "tcp://[::1]:0", &scope) > 0);
	CHECK_EQ(raw(mounted.place, request), 200);
	close_mounted(&mounted, &scope);
}

TEST(admin_accepts_ipv6_loopback_peers)
{
	world_run(&(struct world){ 0 }, play_six);
}

/* --- routes of the program ------------------------------------------------------------- */

static int
on_set(weft_http *http, void *arg)
{
	struct world *world = arg;
	int rc = weft_admin_authorize(world->admin, http, true);

	if (rc < 0)
		return rc == WEFT_EPERM ? 0 : rc;
	return weft_http_reply(http, 204, NULL, weft_text(""), WEFT_NEVER);
}

static int
on_get(weft_http *http, void *arg)
{
	struct world *world = arg;
	int rc = weft_admin_authorize(world->admin, http, false);

	if (rc < 0)
		return rc == WEFT_EPERM ? 0 : rc;
	return weft_http_reply(http, 200, NULL, weft_text("x"), WEFT_NEVER);
}

static int
post(const struct mounted *mounted, const char *headers)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "POST /set HTTP/1.1\r\nContent-Length: 0\r\n%s\r\n",
	               headers);
	return raw(mounted->place, text);
}

static void
play_own(struct world *world)
{
	struct mounted mounted = { 0 };
	weft_scope scope;
	weft_addr addr;

	mounted.server = weft_http_server_new(NULL);
	OK(weft_http_route(mounted.server, "/set", on_set, world));
	OK(weft_http_route(mounted.server, "/get", on_get, world));
	OK(weft_listener_open("tcp://127.0.0.1:0", NULL, &mounted.listener));
	OK(weft_listener_local(mounted.listener, &addr));
	CHECK(weft_addr_format(&addr, mounted.place, sizeof(mounted.place)) > 0);
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, serve, &mounted) > 0);

	CHECK_EQ(post(&mounted, LOCAL "Origin: http://localhost\r\n"), 204);
	CHECK_EQ(post(&mounted, LOCAL "Sec-Fetch-Site: same-origin\r\n"), 204);
	CHECK_EQ(post(&mounted, LOCAL "Sec-Fetch-Site: none\r\n"), 403);
	CHECK_EQ(post(&mounted, LOCAL "Sec-Fetch-Site: cross-site\r\n"), 403);
	CHECK_EQ(post(&mounted, LOCAL "Origin: http://localhost:9\r\n"), 403);
	CHECK_EQ(post(&mounted, LOCAL), 403);
	CHECK_EQ(post(&mounted, "Host: evil.example\r\n"
	                        "Origin: http://evil.example\r\n"),
	         403);
	CHECK_EQ(raw(mounted.place,
	             "GET /set HTTP/1.1\r\n" LOCAL "Sec-Fetch-Site: same-origin\r\n\r\n"),
	         405);
	CHECK_EQ(raw(mounted.place, "GET /get HTTP/1.1\r\n" LOCAL "\r\n"), 200);
	CHECK_EQ(raw(mounted.place,
	             "GET /get HTTP/1.1\r\n" LOCAL "Sec-Fetch-Site: cross-site\r\n\r\n"),
	         403);
	close_mounted(&mounted, &scope);
}

TEST(admin_check_guards_routes_of_the_program)
{
	world_run(&(struct world){ 0 }, play_own);
}

/* --- many connections ------------------------------------------------------------------ */

#define CROWD 200

static int
count_closed(weft_stream **crowd)
{
	const void *data;
	int closed = 0;

	for (int i = 0; i < CROWD; i++) {
		closed += weft_stream_peek(crowd[i], 1, &data, WEFT_NOWAIT) != WEFT_ETIMEDOUT;
		weft_stream_close(crowd[i]);
	}
	return closed;
}

static uint64_t slow_ns;

/* Threads that spin for some time need a clock that advances. */
static uint64_t
slow_now(void)
{
	return __atomic_add_fetch(&slow_ns, 100, __ATOMIC_RELAXED);
}

/* Half of the connections begin a header section.  The clock hardly moves, so no time limit
 * closes a connection: the owner is answered only if the server closes others to make room. */
static void
play_crowd(struct world *world)
{
	weft_stream *crowd[CROWD];

	for (int i = 0; i < CROWD; i++) {
		OK(weft_stream_connect(world->place, NULL, &crowd[i], WEFT_NEVER));
		if (i % 2)
			CHECK_EQ(weft_stream_write(crowd[i], "GET", 3, WEFT_NEVER), 3);
	}
	CHECK_EQ(ask(world, "GET /metrics", LOCAL BEARER), 200);
	CHECK(count_closed(crowd) >= CROWD / 2);
}

TEST(admin_answers_its_owner_among_many_idle_connections)
{
	const struct weft__sys *before = weft__sys;
	struct weft__sys slow = *before;

	slow.now = slow_now;
	slow_ns = before->now();
	weft__sys = &slow;
	world_run(&(struct world){ .opts = { .token = TOKEN } }, play_crowd);
	weft__sys = before;
}
