/* http_world.h - the fixture of the HTTP client tests: a client and two peers. */
#ifndef WEFT_TESTS_HTTP_WORLD_H
#define WEFT_TESTS_HTTP_WORLD_H

#include <weft/http.h>
#include "proto/http_peer.h"

struct world {
	weft_http_client     *client;
	struct peer           peer, other; /* `other` is used if it has scripts */
	weft_http_client_opts opts;
	void                (*play)(struct world *world);
	weft_http_request     request;     /* for fetch() */
	int                   unplayed;    /* scripts of `peer` that stop early; or */
#define SOME (-1)                          /* timing decides whether any do */
};

/* Run `play` in a threadlet of a new loop.  Then everything must have been freed. */
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

/* Read a body to its end.  Returns its text, at most 8 KiB, or the name of the error. */
const char *body_of(weft_http *http);

/* Fetch, check status and body, and close. */
void get(struct world *world, const char *path, int status, const char *body);

/* Fetch.  It must fail with this error, and the error text must contain the URL and these
 * words. */
void get_error(struct world *world, const char *path, int error, const char *words);

/* Let other threadlets run until `condition` holds. */
#define UNTIL(condition)                               \
	while (!(condition))                           \
		OK(weft_sleep_until(weft_after(WEFT_US)))

#define LENGTH(text) "HTTP/1.1 200 OK\r\nContent-Length: " text
#define HELLO        LENGTH("5\r\n\r\nhello")

#endif
