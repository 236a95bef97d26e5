/* http_late_test.c - the HTTP client, ended at each point of an exchange. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include "proto/http_world.h"

#define MUCH ((size_t)8 << 20)
static char much[MUCH];

SCRIPT(nobody, { WAIT, NULL, 0 });
SCRIPT(never_reads, { HEAR, NULL, 0 }, { HOLD, NULL, 0 }, { WAIT, NULL, 0 });
SCRIPT(half_a_head, { HEAR, NULL, 0 }, { SAY, "HTTP/1.1 200 OK\r\nA: ", 0 }, { HOLD, NULL, 0 },
       { WAIT, NULL, 0 });
SCRIPT(half_a_body, { HEAR, NULL, 0 }, { SAY, LENGTH("5\r\n\r\nhe"), 0 }, { HOLD, NULL, 0 },
       { SAY, "llo", 0 }, { WAIT, NULL, 0 });
SCRIPT(then_answers, { HEAR, NULL, 0 }, { TAKE, "0\r\n\r\n", 0 }, { SAY, "HTTP/1.1 2", 0 },
       { HOLD, NULL, 0 }, { SAY, "00 OK\r\nContent-Length: 5\r\n\r\nhello", 0 }, { WAIT, NULL, 0 });

static int
fetch_by(struct world *world, uint64_t deadline_ns, weft_http **out)
{
	weft_http_request request = world->request;

	request.url = peer_url(&world->peer, "/late");
	return weft_http_fetch(world->client, &request, out, deadline_ns);
}

static void
play_deadlines(struct world *world)
{
	weft_http *http = NULL;
	char bytes[8];

	world->unplayed = SOME; /* a request may end before it arrives */
	CHECK_EQ(fetch_by(world, WEFT_NOWAIT, &http), WEFT_ETIMEDOUT);
	world->request.method = "PUT";
	world->request.body = (weft_span){ much, sizeof(much) };
	CHECK_EQ(fetch_by(world, weft_after(2 * WEFT_MS), &http), WEFT_ETIMEDOUT);
	CHECK(strstr(weft_detail(), "/late: ")); /* followed by what it was doing then */
	CHECK(strstr(weft_detail(), ": timed out"));
	world->request = (weft_http_request){ 0 };
	CHECK_EQ(fetch_by(world, weft_after(2 * WEFT_MS), &http), WEFT_ETIMEDOUT);
	CHECK(!http);
	OK(fetch_by(world, weft_after(HOUR), &http));
	CHECK_EQ(weft_http_read(http, bytes, 8, WEFT_NOWAIT), 2);
	CHECK_EQ(weft_http_read(http, bytes, 8, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_http_read(http, bytes, 8, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK(strstr(weft_detail(), "/late: timed out"));
	peer_go_on(&world->peer);
	CHECK_STR(body_of(http), "llo");
	weft_http_close(http);
	UNTIL(world->peer.open == 1); /* the last one is kept */
}

TEST(deadline_ends_each_part_of_an_exchange_and_a_read_can_continue)
{
	/* The clock decides which script serves which of the first requests. */
	PLAY(play_deadlines, never_reads, half_a_head, half_a_body);
}

static void
fire(void *arg)
{
	(void)weft_abort_fire(arg, weft_value_text("enough"));
}

/* During a fetch, during a body, between two calls, and before the first. */
static void
play_aborts(struct world *world)
{
	weft_abort *abort = weft_abort_new(NULL);
	weft_http *http = NULL;
	char bytes[8];

	world->unplayed = SOME;
	world->request.abort = abort;
	CHECK(weft_schedule_timeout(NULL, WEFT_MS, fire, abort) > 0);
	CHECK_EQ(fetch_by(world, weft_after(HOUR), &http), WEFT_ECANCELED);
	CHECK(!http && strstr(weft_detail(), "/late: "));
	CHECK_EQ(fetch_by(world, weft_after(HOUR), &http), WEFT_ECANCELED);
	(void)weft_abort_unref(abort);
	world->request.abort = abort = weft_abort_new(NULL);
	OK(fetch_by(world, weft_after(HOUR), &http));
	(void)weft_abort_unref(abort); /* the exchange has its own reference */
	CHECK_EQ(weft_http_read(http, bytes, 8, weft_after(HOUR)), 2);
	CHECK(weft_schedule_timeout(NULL, WEFT_MS, fire, abort) > 0);
	CHECK_EQ(weft_http_read(http, bytes, 8, weft_after(HOUR)), WEFT_ECANCELED);
	CHECK_EQ(weft_http_read(http, bytes, 8, WEFT_NOWAIT), WEFT_ECANCELED);
	weft_http_close(http);
}

TEST(abort_signal_ends_an_exchange_at_any_point)
{
	PLAY(play_aborts, never_reads, half_a_body);
}

static void
play_finish(struct world *world)
{
	weft_http *http;

	world->request.method = "POST";
	world->request.streamed = true;
	OK(fetch_by(world, weft_after(HOUR), &http));
	CHECK_EQ(weft_http_finish(http, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_http_finish(http, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	peer_go_on(&world->peer);
	OK(weft_http_finish(http, weft_after(HOUR)));
	CHECK_STR(body_of(http), "hello");
	weft_http_close(http);
	CHECK_EQ(world->peer.open, 1);
}

TEST(http_finish_can_be_repeated_after_a_timeout)
{
	PLAY(play_finish, then_answers);
}

/* Bytes of the request are missing: the server would take the next request for them. */
SCRIPT(refuses_slowly, { HEAR, "POST ", 0 }, { SAY, "HTTP/1.1 413 Too Large\r\n", 0 },
       { HOLD, NULL, 0 }, { SAY, "Content-Length: 3\r\n\r\nbig", 0 }, { HEAR, NULL, 0 },
       { SAY, HELLO, 0 }, { WAIT, NULL, 0 });
SCRIPT(says_hello, { HEAR, "GET ", 0 }, { SAY, HELLO, 0 }, { WAIT, NULL, 0 });

static void
play_refused_finish(struct world *world)
{
	weft_http *http;
	ssize_t n = 1;

	world->unplayed = 1; /* the peer gets no second request */
	world->request.method = "POST";
	world->request.streamed = true;
	OK(fetch_by(world, weft_after(HOUR), &http));
	while (n == 1) {
		n = weft_http_write(http, "x", 1, weft_after(HOUR));
		OK(weft_sleep_until(weft_after(WEFT_US)));
	}
	CHECK_EQ(n, WEFT_EPIPE);
	CHECK(strstr(weft_detail(), "/late: the peer accepts no more"));
	(void)weft_fail(0, "of something else");
	CHECK_EQ(weft_http_write(http, "x", 1, weft_after(HOUR)), WEFT_EPIPE);
	CHECK(strstr(weft_detail(), "/late: the peer accepts no more"));
	CHECK_EQ(weft_http_finish(http, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_http_finish(http, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_http_write(http, "x", 1, weft_after(HOUR)), WEFT_EPIPE);
	CHECK(strstr(weft_detail(), "/late: the peer accepts no more"));
	peer_go_on(&world->peer);
	OK(weft_http_finish(http, weft_after(HOUR)));
	CHECK_EQ(weft_http_status(http), 413);
	CHECK_STR(body_of(http), "big");
	weft_http_close(http);
	world->request = (weft_http_request){ 0 };
	get(world, "/", 200, "hello");
	CHECK_EQ(world->peer.accepted, 2);
}

TEST(connection_of_a_request_refused_early_is_not_reused)
{
	PLAY(play_refused_finish, refuses_slowly, says_hello);
}

/* --- refused at the start ----------------------------------------------------- */

#define BUSY "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"

/* A peer that answers at a moment that no script can hit: after a request got its connection,
 * and before its first byte is sent.  At that moment the client allocates memory for a header
 * of this size. */
#define FIELD_SIZE 20000
static int listener_fd = -1, peer_fd = -1;

static void *
alloc_and_answer(void *arg, size_t size)
{
	(void)arg;
	if (listener_fd >= 0 && peer_fd < 0 && size >= FIELD_SIZE && size < 4 * FIELD_SIZE) {
		peer_fd = accept(listener_fd, NULL, NULL);
		if (peer_fd >= 0)
			(void)!write(peer_fd, BUSY, strlen(BUSY));
	}
	return malloc(size);
}

static void *
resize(void *arg, void *mem, size_t size)
{
	(void)arg;
	return realloc(mem, size);
}

static void
release(void *arg, void *mem)
{
	(void)arg;
	free(mem);
}

__attribute__((constructor)) static void
set_hooks(void)
{
	weft_hooks hooks = { .alloc = alloc_and_answer, .resize = resize, .release = release };

	(void)weft_set_hooks(&hooks);
}

static unsigned
listen_apart(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t size = sizeof(addr);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK(listener_fd >= 0);
	CHECK_EQ(bind(listener_fd, (struct sockaddr *)&addr, size), 0);
	CHECK_EQ(listen(listener_fd, 4), 0);
	CHECK_EQ(getsockname(listener_fd, (struct sockaddr *)&addr, &size), 0);
	return ntohs(addr.sin_port);
}

static void
play_unheard(struct world *world)
{
	static char value[FIELD_SIZE];
	weft_http_field field = { "X-Long", value };
	weft_http *http;
	char url[64], byte;
	bool unheard;
	ssize_t n;

	memset(value, 'v', sizeof(value) - 1);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", listen_apart());
	world->request = (weft_http_request){
		.method = "POST", .url = url, .streamed = true, .fields = &field, .field_count = 1
	};
	OK(fetch(world, "", &http));
	CHECK(peer_fd >= 0);
	/* A ring may have received the reply although the client has not checked for it yet. */
	unheard = weft_http_status(http) == 503;
	CHECK(unheard || weft_http_status(http) == 0);
	do
		n = weft_http_write(http, "x", 1, weft_after(HOUR));
	while (n == 1 && !unheard && weft_sleep_until(weft_after(WEFT_US)) == 0);
	CHECK_EQ(n, WEFT_EPIPE);
	CHECK_EQ(weft_http_write(http, "x", 1, weft_after(HOUR)), WEFT_EPIPE);
	OK(weft_http_finish(http, weft_after(HOUR)));
	CHECK_EQ(weft_http_finish(http, weft_after(HOUR)), WEFT_EALREADY);
	CHECK_EQ(weft_http_status(http), 503);
	CHECK_STR(body_of(http), "busy");
	weft_http_close(http);
	if (unheard)
		CHECK(recv(peer_fd, &byte, 1, MSG_DONTWAIT) <= 0);
	CHECK_EQ(close(peer_fd), 0);
	CHECK_EQ(close(listener_fd), 0);
	listener_fd = peer_fd = -1;
}

TEST(request_refused_before_its_first_byte_sends_nothing)
{
	PLAY(play_unheard, nobody);
}

/* --- canceled or disconnected at any time --------------------------------------- */

struct guest {
	struct world *world;
	weft_http *http;
	int rc;
	bool reads;
};

static int
be_guest(void *arg)
{
	struct guest *guest = arg;
	char bytes[8];

	guest->rc = fetch(guest->world, "/", &guest->http);
	while (guest->rc >= 0 && guest->reads) {
		guest->rc = (int)weft_http_read(guest->http, bytes, 8, WEFT_NEVER);
		if (guest->rc == 0)
			break;
	}
	weft_http_close(guest->http);
	return 0;
}

/* Cancel the client's threadlet after `count` yields. */
static void
cancel_after(struct world *world, int count, bool body)
{
	struct guest guest = { .world = world, .reads = true };
	weft_threadlet id;
	weft_scope scope;

	world->request.method = body ? "PUT" : NULL;
	world->request.body = (weft_span){ much, body ? sizeof(much) : 0 };
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	id = weft_scope_go(&scope, be_guest, &guest);
	CHECK(id > 0);
	for (int i = 0; i < count; i++)
		OK(weft_yield());
	(void)weft_cancel(id);
	OK(weft_scope_close(&scope));
	CHECK_EQ(guest.rc, WEFT_ECANCELED);
	UNTIL(world->peer.open == 0);
}

static void
play_cancel(struct world *world)
{
	world->unplayed = SOME; /* the client disconnects while they send */
	for (int i = 0; i < 40; i++)
		cancel_after(world, i, i & 1);
	CHECK(world->peer.accepted > 20);
}

SCRIPT(slow, { HEAR, NULL, 0 }, { DRIP, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", 0 },
       { WAIT, NULL, 0 });

TEST(exchange_canceled_at_any_time_closes_its_connection)
{
	static const struct step *scripts[64];
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world);
	for (int i = 0; i < 60; i++)
		scripts[i] = slow;
	world->peer.scripts = scripts;
	world_run(world, play_cancel);
	free(world);
}

static void
stop_loop(void *arg)
{
	(void)arg;
	weft_loop_shutdown(weft_loop_current());
}

/* One exchange waits for a body, one for a header section, one for a connection. */
TEST(loop_shutdown_ends_its_exchanges)
{
	struct guest guests[3];
	struct world *world = calloc(1, sizeof(*world));
	weft_loop *loop = make();

	CHECK(world);
	world->opts.loop = loop;
	world->opts.per_host_max = 2;
	world->client = weft_http_client_new(&world->opts);
	world->peer.scripts = SCRIPTS(half_a_body, half_a_head);
	peer_open(&world->peer, loop);
	for (int i = 0; i < 3; i++) {
		guests[i] = (struct guest){ .world = world, .reads = true };
		(void)go_on(loop, be_guest, &guests[i]);
	}
	while (world->peer.open < 2)
		CHECK(weft_loop_run_once(loop, weft_after(WEFT_MS)) >= 0);
	for (int i = 0; i < 20; i++)
		CHECK(weft_loop_run_once(loop, WEFT_NOWAIT) >= 0);
	OK(weft_loop_post(loop, stop_loop, NULL));
	OK(weft_loop_run(loop));
	for (int i = 0; i < 3; i++)
		CHECK_EQ(guests[i].rc, WEFT_ECANCELED);
	peer_close(&world->peer);
	OK(weft_http_client_free(world->client));
	OK(weft_loop_free(loop));
	free(world);
}

#define WHOLE                                                   \
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" \
	"5\r\nhello\r\n0\r\nA: b\r\n\r\n"

/* A peer that closes or resets the connection after each number of bytes of its reply. */
static void
play_resets(struct world *world)
{
	size_t size = strlen(WHOLE);

	for (size_t i = 0; i < 2 * size; i++) {
		struct guest guest = { .world = world, .reads = true };

		(void)be_guest(&guest);
		if (guest.rc != WEFT_ECONNRESET && guest.rc != WEFT_ETRUNCATED)
			CHECK_EQ(guest.rc, WEFT_ECONNRESET);
		CHECK(strstr(weft_detail(), "http://127.0.0.1"));
	}
	CHECK_EQ(world->peer.accepted, (int)(2 * size));
	UNTIL(world->peer.open == 0);
}

TEST(connection_that_ends_after_any_byte_is_an_error)
{
	static const struct step *scripts[256];
	static struct step steps[256][4];
	static char texts[128][128];
	struct world *world = calloc(1, sizeof(*world));
	size_t size = strlen(WHOLE);

	CHECK(world);
	for (size_t i = 0; i < 2 * size; i++) {
		memcpy(texts[i / 2], WHOLE, i / 2);
		steps[i][0] = (struct step){ HEAR, NULL, 0 };
		steps[i][1] = (struct step){ SAY, texts[i / 2], 0 };
		steps[i][2] = (struct step){ i & 1 ? RESET : PLAYED, NULL, 0 };
		scripts[i] = steps[i];
	}
	world->peer.scripts = scripts;
	world_run(world, play_resets);
	free(world);
}

/* --- no connection --------------------------------------------------------------- */

static void
play_refused(struct world *world)
{
	weft_http_request request = { .url = "http://127.0.0.1:1/x?secret" };
	weft_http *http;

	CHECK_EQ(weft_http_fetch(world->client, &request, &http, WEFT_NEVER), WEFT_ECONNREFUSED);
	CHECK(strstr(weft_detail(), "GET http://127.0.0.1:1/x: "));
	CHECK(!strstr(weft_detail(), "secret"));
	request.url = "http+unix://%2Fnowhere%2Fat.all/";
	CHECK_EQ(weft_http_fetch(world->client, &request, &http, WEFT_NEVER), WEFT_ENOENT);
	CHECK(strstr(weft_detail(), "nowhere"));
}

TEST(connect_error_names_the_url)
{
	PLAY(play_refused, nobody);
}

static int
serve_local(void *arg)
{
	weft_listener *listener = arg;
	weft_stream *peer;
	char head[1024];
	ssize_t n;

	OK(weft_listener_accept(listener, &peer, WEFT_NEVER));
	n = weft_stream_read_until(peer, "\r\n\r\n", head, sizeof(head) - 1, WEFT_NEVER);
	CHECK(n > 0);
	head[n] = '\0';
	CHECK(strncmp(head, "GET /x HTTP/1.1\r\nHost: localhost\r\n", 34) == 0);
	CHECK(weft_stream_write(peer, HELLO, strlen(HELLO), WEFT_NEVER) > 0);
	weft_stream_close(peer);
	return 0;
}

static void
play_local(struct world *world)
{
	weft_listener *listener;
	char path[64], url[128];
	weft_scope scope;

	(void)snprintf(path, sizeof(path), "unix:/tmp/weft-http-%d.sock", (int)getpid());
	(void)snprintf(url, sizeof(url), "http+unix://%%2Ftmp%%2fweft-http-%d.sock/x",
	               (int)getpid());
	OK(weft_listener_open(path, NULL, &listener));
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, serve_local, listener) > 0);
	world->request.url = url;
	get(world, "", 200, "hello");
	OK(weft_scope_close(&scope));
	weft_listener_close(listener);
	(void)unlink(path + 5);
}

TEST(unix_socket_url_works_like_a_host)
{
	PLAY(play_local, nobody);
}
