/* http_world.c - the fixture of the HTTP client tests: a client and two peers. */
#include "proto/http_world.h"

/* A script that stopped early has not checked everything. */
static void
end_peer(struct peer *peer, int unplayed)
{
	peer_go_on(peer);
	UNTIL(peer->open == 0);
	if (unplayed != SOME)
		CHECK_EQ(peer->accepted - peer->ended, unplayed);
	peer_close(peer);
}

static int
enter(void *arg)
{
	struct world *world = arg;

	world->client = weft_http_client_new(&world->opts);
	CHECK(world->client);
	world->play(world);
	OK(weft_http_client_free(world->client));
	end_peer(&world->peer, world->unplayed);
	if (world->other.scripts)
		end_peer(&world->other, 0);
	return 0;
}

void
world_run(struct world *world, void (*play)(struct world *world))
{
	weft_loop *loop = make();

	world->play = play;
	peer_open(&world->peer, loop);
	if (world->other.scripts) {
		world->other.other = &world->peer;
		world->peer.other = &world->other;
		peer_open(&world->other, loop);
	}
	(void)go_on(loop, enter, world);
	OK(weft_loop_run(loop));
	weft_loop_shutdown(loop);
	if (weft_loop_state(loop) != WEFT_STOPPED)
		OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

int
fetch(struct world *world, const char *path, weft_http **out)
{
	weft_http_request request = world->request;

	if (!request.url)
		request.url = peer_url(&world->peer, path);
	return weft_http_fetch(world->client, &request, out, weft_after(HOUR));
}

const char *
body_of(weft_http *http)
{
	static char text[8192];
	size_t used = 0;
	ssize_t n;

	while ((n = weft_http_read(http, text + used, sizeof(text) - 1 - used, weft_after(HOUR)))
	       > 0)
		used += (size_t)n;
	text[used] = '\0';
	return n < 0 ? weft_errname((int)n) : text;
}

void
get(struct world *world, const char *path, int status, const char *body)
{
	weft_http *http;

	OK(fetch(world, path, &http));
	CHECK_EQ(weft_http_status(http), status);
	CHECK_STR(body_of(http), body);
	weft_http_close(http);
}

void
get_error(struct world *world, const char *path, int error, const char *words)
{
	weft_http *http = NULL;
	char url[64];

	CHECK_EQ(fetch(world, path, &http), error);
	CHECK(!http);
	(void)snprintf(url, sizeof(url), "127.0.0.1:%u%s", world->peer.port, path);
	if (!strstr(weft_detail(), url))
		CHECK_STR(weft_detail(), url);
	if (!strstr(weft_detail(), words))
		CHECK_STR(weft_detail(), words);
}
