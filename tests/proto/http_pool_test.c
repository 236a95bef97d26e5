/* http_pool_test.c - connections of the HTTP client: reuse, limits, queue, retries. */
#include "http/client/http_client.h"
#include "proto/http_world.h"

SCRIPT(serves_three, { HEAR, "GET /1", 0 }, { SAY, HELLO, 0 }, { HEAR, "GET /2", 0 },
       { SAY, HELLO, 0 }, { HEAR, "GET /3", 0 }, { SAY, HELLO, 0 }, { WAIT, NULL, 0 });
SCRIPT(serves_three_any, { HEAR, NULL, 0 }, { SAY, HELLO, 0 }, { HEAR, NULL, 0 }, { SAY, HELLO, 0 },
       { HEAR, NULL, 0 }, { SAY, HELLO, 0 }, { WAIT, NULL, 0 });
SCRIPT(serves_one, { HEAR, NULL, 0 }, { SAY, HELLO, 0 }, { WAIT, NULL, 0 });
SCRIPT(serves_last, { HEAR, NULL, 0 }, { SAY, LENGTH("5\r\nConnection: close\r\n\r\nhello"), 0 },
       { WAIT, NULL, 0 });
SCRIPT(serves_old, { HEAR, NULL, 0 },
       { SAY, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", 0 }, { WAIT, NULL, 0 });
SCRIPT(serves_and_closes, { HEAR, NULL, 0 }, { SAY, HELLO, 0 });
SCRIPT(serves_and_chatters, { HEAR, NULL, 0 }, { SAY, HELLO, 0 }, { HOLD, NULL, 0 },
       { SAY, "HTTP/1.1 408 Late\r\n\r\n", 0 }, { WAIT, NULL, 0 });
SCRIPT(serves_too_much, { HEAR, NULL, 0 }, { SAY, HELLO "x", 0 }, { WAIT, NULL, 0 });

static void
play_reuse(struct world *world)
{
	weft_http *http;

	get(world, "/1", 200, "hello");
	get(world, "/2", 200, "hello");
	OK(fetch(world, "/3", &http)); /* not read: the data that has arrived is discarded */
	weft_http_close(http);
	CHECK_EQ(world->peer.accepted, 1);
	CHECK_EQ(world->peer.open, 1);
}

TEST(connection_is_reused_for_the_next_exchange)
{
	PLAY(play_reuse, serves_three);
}

/* Each request needs a new connection: none is reused. */
static void
play_no_reuse(struct world *world)
{
	for (int i = 1; i <= 5; i++) {
		get(world, "/", 200, "hello");
		UNTIL(world->peer.accepted == i);
		if (i == 3)
			UNTIL(world->peer.open == 0);
		if (i == 4) {
			peer_go_on(&world->peer);
			UNTIL(world->peer.open == 0);
		}
	}
	get(world, "/", 200, "hello");
	CHECK_EQ(world->peer.accepted, 6);
}

TEST(connection_that_ended_or_has_extra_data_is_not_reused)
{
	PLAY(play_no_reuse, serves_last, serves_old, serves_and_closes, serves_and_chatters,
	     serves_too_much, serves_one);
}

SCRIPT(serves_long, { HEAR, NULL, 0 }, { SAY, LENGTH("200000\r\n\r\n"), 0 },
       { FLOOD, NULL, 200000 }, { WAIT, NULL, 0 });
SCRIPT(serves_half, { HEAR, NULL, 0 }, { SAY, LENGTH("9\r\n\r\nhello"), 0 }, { WAIT, NULL, 0 });

static void
play_unread(struct world *world)
{
	weft_http *http;
	char byte;

	world->unplayed = SOME; /* one script floods a client that has disconnected */
	for (int i = 0; i < 2; i++) {
		OK(fetch(world, "/", &http));
		CHECK_EQ(weft_http_read(http, &byte, 1, WEFT_NEVER), 1);
		weft_http_close(http);
	}
	UNTIL(world->peer.open == 0);
	get(world, "/", 200, "hello");
	CHECK_EQ(world->peer.accepted, 3);
}

TEST(unread_reply_closes_its_connection)
{
	PLAY(play_unread, serves_long, serves_half, serves_one);
}

static void
play_idle(struct world *world)
{
	get(world, "/", 200, "hello");
	CHECK_EQ(world->peer.open, 1);
	UNTIL(world->peer.open == 0);
	get(world, "/", 200, "hello");
	CHECK_EQ(world->peer.accepted, 2);
}

TEST(idle_connection_is_closed_after_idle_ns)
{
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world);
	world->opts.idle_ns = 2 * WEFT_MS;
	world->peer.scripts = SCRIPTS(serves_one, serves_one);
	world_run(world, play_idle);
	free(world);
}

/* --- limits ------------------------------------------------------------------- */

struct visitor {
	struct world *world;
	char path[16];
	int order, result;
};

static int arrivals;

static int
visit(void *arg)
{
	struct visitor *visitor = arg;
	weft_http *http;

	visitor->result = fetch(visitor->world, visitor->path, &http);
	if (visitor->result < 0)
		return 0;
	visitor->order = ++arrivals;
	CHECK_STR(body_of(http), "hello");
	OK(weft_yield());
	weft_http_close(http);
	return 0;
}

SCRIPT(serves_many, { HOLD, NULL, 0 }, { HEAR, NULL, 0 }, { SAY, HELLO, 0 }, { HEAR, NULL, 0 },
       { SAY, HELLO, 0 }, { HEAR, NULL, 0 }, { SAY, HELLO, 0 }, { WAIT, NULL, 0 });

/* Two connections, three requests in the queue, one too many, and one that times out in the
 * queue. */
static void
play_queue(struct world *world)
{
	struct visitor visitors[6];
	weft_threadlet ids[6];
	weft_scope scope;
	weft_http *http;
	weft_http_request request = { .url = peer_url(&world->peer, "/t") };

	world->unplayed = SOME; /* they could serve more */
	arrivals = 0;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < 6; i++) {
		visitors[i] = (struct visitor){ .world = world };
		(void)snprintf(visitors[i].path, sizeof(visitors[i].path), "/%d", i);
		ids[i] = weft_scope_go(&scope, visit, &visitors[i]);
		CHECK(ids[i] > 0);
		OK(weft_yield());
	}
	OK(weft_join(ids[5], NULL, WEFT_NEVER));
	CHECK_EQ(visitors[5].result, WEFT_EAGAIN);
	CHECK(weft_cancel(ids[3]) == 0);
	OK(weft_join(ids[3], NULL, WEFT_NEVER));
	CHECK_EQ(visitors[3].result, WEFT_ECANCELED);
	CHECK_EQ(weft_http_fetch(world->client, &request, &http, weft_after(WEFT_MS)),
	         WEFT_ETIMEDOUT);
	CHECK(strstr(weft_detail(), "one of 2 connections"));
	peer_go_on(&world->peer);
	OK(weft_scope_close(&scope));
	CHECK_EQ(visitors[2].order, 3);
	CHECK_EQ(visitors[4].order, 4);
	CHECK_EQ(world->peer.accepted, 2);
	CHECK_EQ(world->peer.open, 2);
}

TEST(request_without_a_free_connection_waits_in_a_limited_queue)
{
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world);
	world->opts.per_host_max = 2;
	world->opts.queue_max = 3;
	world->peer.scripts = SCRIPTS(serves_many, serves_many);
	world_run(world, play_queue);
	free(world);
}

/* A queued request that is canceled as it gets a slot passes the slot on, whichever happens
 * first. */
static void
give(struct world *world, bool cancel_first)
{
	struct visitor visitors[2];
	weft_threadlet ids[2];
	weft_scope scope;
	weft_http *http;

	arrivals = 0;
	OK(fetch(world, "/", &http));
	CHECK_STR(body_of(http), "hello");
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < 2; i++) {
		visitors[i] = (struct visitor){ .world = world, .path = "/" };
		ids[i] = weft_scope_go(&scope, visit, &visitors[i]);
		CHECK(ids[i] > 0);
	}
	OK(weft_yield());
	if (cancel_first)
		OK(weft_cancel(ids[0]));
	weft_http_close(http);
	OK(weft_cancel(ids[0]));
	OK(weft_scope_close(&scope));
	CHECK_EQ(visitors[0].result, WEFT_ECANCELED);
	CHECK_EQ(visitors[1].result, 0);
}

static void
play_given(struct world *world)
{
	give(world, true);
	give(world, false);
}

TEST(canceled_request_passes_its_slot_on)
{
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world);
	world->opts.per_host_max = 1;
	world->peer.scripts = SCRIPTS(serves_three_any, serves_one, serves_one);
	world_run(world, play_given);
	free(world);
}

/* A connection that cannot be reused still makes room for the next one. */
static void
play_slots(struct world *world)
{
	struct visitor visitors[4];
	weft_scope scope;

	arrivals = 0;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < 4; i++) {
		visitors[i] = (struct visitor){ .world = world, .path = "/" };
		CHECK(weft_scope_go(&scope, visit, &visitors[i]) > 0);
	}
	OK(weft_scope_close(&scope));
	CHECK_EQ(visitors[0].result, 0);
	CHECK_EQ(visitors[1].result, WEFT_EPROTO);
	CHECK_EQ(visitors[2].result, 0);
	CHECK_EQ(visitors[3].result, 0);
	CHECK_EQ(world->peer.accepted, 4);
}

SCRIPT(says_nonsense, { HEAR, NULL, 0 }, { SAY, "nonsense\r\n\r\n", 0 }, { WAIT, NULL, 0 });

TEST(slot_is_passed_on_even_without_a_connection)
{
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world);
	world->opts.per_host_max = 1;
	world->peer.scripts = SCRIPTS(serves_last, says_nonsense, serves_last, serves_one);
	world_run(world, play_slots);
	free(world);
}

static void
play_idle_max(struct world *world)
{
	weft_http *http[3];

	for (int i = 0; i < 3; i++)
		OK(fetch(world, "/", &http[i]));
	for (int i = 0; i < 3; i++)
		weft_http_close(http[i]);
	UNTIL(world->peer.open == 2);
	world->request.url = peer_url(&world->other, "/");
	get(world, "/", 200, "hello");
	UNTIL(world->peer.open == 1);
	world->request.url = NULL;
	CHECK_EQ(world->other.open, 1);
}

TEST(most_recently_used_idle_connections_are_kept)
{
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world);
	world->opts.idle_max = 2;
	world->peer.scripts = SCRIPTS(serves_one, serves_one, serves_one);
	world->other.scripts = SCRIPTS(serves_one);
	world_run(world, play_idle_max);
	free(world);
}

/* The connection that was used last is used next, and the others become old. */
static void
play_latest(struct world *world)
{
	weft_http *http[2];

	OK(fetch(world, "/1", &http[0]));
	OK(fetch(world, "/1", &http[1]));
	weft_http_close(http[1]);
	weft_http_close(http[0]);
	get(world, "/2", 200, "hello");
	get(world, "/3", 200, "hello");
	CHECK_EQ(world->peer.accepted, 2);
}

TEST(most_recently_used_connection_is_used_first)
{
	PLAY(play_latest, serves_three, serves_one);
}

/* --- retries ------------------------------------------------------------------ */

SCRIPT(dies_on_second, { HEAR, NULL, 0 }, { SAY, HELLO, 0 }, { HEAR, NULL, 0 });
SCRIPT(breaks_on_second, { HEAR, NULL, 0 }, { SAY, HELLO, 0 }, { HEAR, NULL, 0 },
       { RESET, NULL, 0 });
SCRIPT(dies_in_head, { HEAR, NULL, 0 }, { SAY, HELLO, 0 }, { HEAR, NULL, 0 },
       { SAY, "HTTP/1.1 200 O", 0 });
SCRIPT(dies_after_1xx, { HEAR, NULL, 0 }, { SAY, HELLO, 0 }, { HEAR, NULL, 0 },
       { SAY, "HTTP/1.1 103 Hints\r\n\r\n", 0 });
SCRIPT(dies_at_once, { HEAR, NULL, 0 });

static void
play_again(struct world *world)
{
	get(world, "/", 200, "hello");
	get(world, "/", 200, "hello"); /* the connection ends; retried on a new one */
	CHECK_EQ(world->peer.accepted, 2);
	get(world, "/", 200, "hello"); /* the connection is reset; retried on a new one */
	CHECK_EQ(world->peer.accepted, 3);
	world->request.method = "PUT";
	world->request.body = weft_text("x");
	get(world, "/", 200, "hello"); /* the same for a PUT */
	CHECK_EQ(world->peer.accepted, 4);
}

SCRIPT(takes_put, { HEAR, "PUT", 0 }, { TAKE, "x", 0 }, { SAY, HELLO, 0 }, { WAIT, NULL, 0 });

TEST(request_on_a_dead_connection_is_retried_once)
{
	PLAY(play_again, dies_on_second, breaks_on_second, dies_on_second, takes_put);
}

static void
play_not_again(struct world *world)
{
	get(world, "/", 200, "hello");
	world->request.method = "POST";
	world->request.body = weft_text("x");
	get_error(world, "/", WEFT_ETRUNCATED, "");
	CHECK_EQ(world->peer.accepted, 1);
	world->request.method = NULL;
	world->request.body = weft_text(NULL);
	get(world, "/", 200, "hello");
	get_error(world, "/", WEFT_ETRUNCATED, "");
	CHECK_EQ(world->peer.accepted, 2);
	get(world, "/", 200, "hello");
	get_error(world, "/", WEFT_ETRUNCATED, "");
	CHECK_EQ(world->peer.accepted, 3);
	get_error(world, "/", WEFT_ETRUNCATED, ""); /* a new connection is not retried */
	CHECK_EQ(world->peer.accepted, 4);
	get(world, "/", 200, "hello");
	get_error(world, "/", WEFT_ETRUNCATED, ""); /* and neither is the retry */
	CHECK_EQ(world->peer.accepted, 6);
}

TEST(request_that_may_have_been_processed_is_not_retried)
{
	PLAY(play_not_again, dies_on_second, dies_in_head, dies_after_1xx, dies_at_once,
	     dies_on_second, dies_at_once);
}

/* --- threads ------------------------------------------------------------------- */

static void
call_from_callback(void *arg)
{
	struct world *world = arg;
	weft_http_request request = { .url = "http://127.0.0.1/" };
	weft_http *http;

	CHECK_EQ(weft_http_fetch(world->client, &request, &http, WEFT_NEVER), WEFT_ENOSUSPEND);
	arrivals = 1;
}

static void
play_callback(struct world *world)
{
	arrivals = 0;
	OK(weft_loop_post(weft_loop_current(), call_from_callback, world));
	UNTIL(arrivals == 1);
}

TEST(client_works_only_in_threadlets_of_its_loop)
{
	weft_loop *loop = make();
	weft_http_client_opts opts = { .loop = loop };
	weft_http_client *client = weft_http_client_new(&opts);
	weft_http_request request = { .url = "http://127.0.0.1/" };
	weft_http *http;

	CHECK(client);
	CHECK_EQ(weft_http_fetch(client, &request, &http, WEFT_NEVER), WEFT_EWRONGLOOP);
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
	OK(weft_http_client_free(client));
	OK(weft_loop_free(loop));
	CHECK(!weft_http_client_new(NULL));
	PLAY(play_callback, serves_one);
}

static int
leave_idle(void *arg)
{
	struct world *world = arg;

	world->client = weft_http_client_new(NULL);
	get(world, "/", 200, "hello");
	return 0;
}

TEST(idle_connection_does_not_keep_the_loop_alive)
{
	struct world *world = calloc(1, sizeof(*world));
	weft_loop *loop = make();

	CHECK(world);
	world->peer.scripts = SCRIPTS(serves_one);
	peer_open(&world->peer, loop);
	(void)go_on(loop, leave_idle, world);
	OK(weft_loop_run(loop));
	CHECK_EQ(world->peer.open, 1);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	peer_close(&world->peer);
	OK(weft_http_client_free(world->client));
	OK(weft_loop_free(loop));
	free(world);
}

TEST(client_can_be_freed_after_its_loop_has_run)
{
	struct world *world = calloc(1, sizeof(*world));
	weft_loop *loop = make();

	CHECK(world);
	world->peer.scripts = SCRIPTS(serves_one);
	peer_open(&world->peer, loop);
	(void)go_on(loop, leave_idle, world);
	OK(weft_loop_run(loop));
	CHECK_EQ(world->peer.open, 1);
	OK(weft_http_client_free(world->client));
	for (int i = 0; i < 1000 && world->peer.open > 0; i++)
		CHECK(weft_loop_run_once(loop, weft_after(WEFT_MS)) >= 0);
	CHECK_EQ(world->peer.open, 0);
	peer_close(&world->peer);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
	free(world);
}

/* --- defaults --------------------------------------------------------------- */

/* The defaults documented in weft/http.h. */
TEST(client_without_options_has_the_documented_limits)
{
	weft_loop *loop = weft_loop_new(NULL);
	const weft_http_client_opts opts = { .loop = loop };
	weft_http_client *client = weft_http_client_new(&opts);

	CHECK_EQ(client->pool.per_host_max, 64);
	CHECK_EQ(client->pool.queue_max, 1024);
	CHECK_EQ(client->pool.idle_max, 256);
	CHECK_EQ(client->pool.idle_ns, 30 * WEFT_S);
	CHECK_EQ(client->header_max, 32 << 10);
	CHECK_EQ(client->redirects_max, 10);
	OK(weft_http_client_free(client));
	OK(weft_loop_free(loop));
}
