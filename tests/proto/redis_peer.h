/* redis_peer.h - a server for the Redis client that checks it, and misbehaves as told.
 *
 * Every reply says which command it is for: "GET:key".  So a reply that comes to another
 * is seen.  What it hears is kept as text, a line each.  It runs on threadlets of the loop
 * under test, which do not keep that.
 */
#ifndef WEFT_TESTS_REDIS_PEER_H
#define WEFT_TESTS_REDIS_PEER_H

#include <weft/redis.h>
#include "unit/threadlet/crew.h"

struct peer_seat;

struct peer {
	/* of the test */
	weft_tls   *tls;
	const char *user, *password; /* that it wants; user NULL: "default" */
	bool        is_old;    /* knows nothing but RESP2 */
	bool        drips;     /* sends byte by byte */
	bool        pushes;    /* a message before each reply */
	bool        is_mute;   /* greets, and never answers */
	bool        is_deaf;   /* does not even greet */
	bool        holds;     /* answers only after peer_go_on() */
	bool        resets;    /* ends by a reset */
	bool        knows;     /* the script */
	/* Of the first connections: the bytes of replies, but for greetings, after which
	 * it ends; < 0: none. */
	const int64_t *cuts;
	int         cut_count;
	int         dies_at;   /* the first connection ends on hearing that command; 0: no */
	/* read-only */
	weft_listener *listener;
	unsigned    port;
	int         accepted, open, ended, commands;
	char        heard[1 << 17];
	/* private */
	weft_event  go_on;
	struct peer_seat *seats;
};

/* Listen, again at the same port; and end that, not the connections. */
void peer_open(struct peer *peer, weft_loop *loop);
void peer_close(struct peer *peer);
/* What is held is answered from now on. */
void peer_go_on(struct peer *peer);
/* Send raw bytes on all connections that are open. */
void peer_say(struct peer *peer, const char *bytes);
/* End all connections that are there. */
void peer_drop(struct peer *peer);
/* How often a line was heard. */
int  peer_heard(const struct peer *peer, const char *line);
/* "redis://127.0.0.1:PORT" with the user's part and a path; one of four texts, in turn. */
const char *peer_address(const struct peer *peer, const char *user, const char *path);

/* --- the world of a test ------------------------------------------------------ */

struct world {
	struct peer     peer;
	weft_redis     *redis;
	weft_redis_opts opts;
	const char     *user, *path; /* of the address */
	void          (*play)(struct world *world);
};

/* Run `play` in a threadlet of a new loop; then all must have been given back. */
void world_run(struct world *world, void (*play)(struct world *world));

/* Call "NAME KEY"; returns what the call did, and checks its reply's tag. */
int ask(struct world *world, const char *name, const char *key, uint64_t deadline_ns);

struct weft_redis_stats stats_of(struct world *world);

/* Let others run until it holds. */
#define UNTIL(cond)                                                            \
	while (!(cond))                                                        \
	CHECK_EQ(weft_sleep_until(weft_after(50 * WEFT_US)), 0)

/* Make a world, let `set` fill it, run. */
#define PLAY(fn, ...)                                                          \
	do {                                                                   \
		struct world *world_ = calloc(1, sizeof(*world_));             \
		CHECK(world_);                                                 \
		*world_ = (struct world){ __VA_ARGS__ };                       \
		world_run(world_, fn);                                         \
		free(world_);                                                  \
	} while (0)

#endif
