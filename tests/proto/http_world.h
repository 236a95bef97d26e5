/* http_world.h - what tests of the HTTP client have: a client and two peers. */
#ifndef WEFT_TESTS_HTTP_WORLD_H
#define WEFT_TESTS_HTTP_WORLD_H

#include <weft/http.h>
#include "proto/http_peer.h"

struct world {
	weft_http_client     *client;
	struct peer           peer, other; /* the other one if it has scripts */
	weft_http_client_opts opts;
	void                (*play)(struct world *world);
	weft_http_request     request;     /* for fetch() */
	int                   unplayed;    /* scripts of the peer that stop half-way; or */
#define SOME (-1)                          /* time decides whether any do */
};

/* Run `play` in a threadlet of a new loop; then all must have been given back. */
void world_run(struct world *world, void (*play)(struct world *world));

#define SCRIPTS(...) ((const struct step *const[]){ __VA_ARGS__, NULL })
#define PLAY(play_, ...)                                                        \
	do {                                                                    \
		struct world *world_ = calloc(1, sizeof(*world_));              \
		CHECK(world_);                                                  \
		world_->peer.scripts = SCRIPTS(__VA_ARGS__);                    \
		world_run(world_, play_);                                       \
		free(world_);                                                   \
	} while (0)

/* Send world->request, with the URL of `path` at the peer if it has none. */
int fetch(struct world *world, const char *path, weft_http **out);

/* Read a body to its end: its text, at most 8 KiB of it, or the name of the error. */
const char *body_of(weft_http *http);

/* Fetch, check status and body, and close. */
void get(struct world *world, const char *path, int status, const char *body);

/* Fetch, which fails with this error, and a text that has the URL and these words. */
void get_error(struct world *world, const char *path, int error, const char *words);

/* Let others go on, until `condition`. */
#define UNTIL(condition)                               \
	while (!(condition))                           \
		OK(weft_sleep_until(weft_after(WEFT_US)))

#define LENGTH(text) "HTTP/1.1 200 OK\r\nContent-Length: " text
#define HELLO        LENGTH("5\r\n\r\nhello")

#endif
