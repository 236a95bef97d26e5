/* redis_peer.h - a server that checks the Redis client, and misbehaves as configured.
 *
 * Every reply names the command it is for: "GET:key".  So a test detects a reply that goes to
 * another caller.  The received commands are kept as text, one per line.  The server runs on
 * threadlets of the loop under test, which do not keep the loop alive.
 */
#ifndef WEFT_TESTS_REDIS_PEER_H
#define WEFT_TESTS_REDIS_PEER_H

#include <weft/redis.h>
#include "unit/threadlet/sched.h"

struct peer_seat;

struct peer {
	/* set by the test */
	weft_tls   *tls;
	const char *user, *password; /* required; user NULL: "default" */
	bool        is_old;    /* supports only RESP2 */
	bool        drips;     /* sends byte by byte */
	bool        pushes;    /* sends a push message before each reply */
	bool        is_mute;   /* answers the handshake and nothing else */
	bool        is_deaf;   /* does not even answer the handshake */
	bool        holds;     /* answers only after peer_go_on() */
	bool        resets;    /* ends connections with a reset */
	bool        knows;     /* has the script */
	/* For the first connections: the number of reply bytes, not counting the handshake,
	 * after which the connection is closed; < 0: no limit. */
	const int64_t *cuts;
	int         cut_count;
	int         dies_at;   /* the first connection is closed on that command; 0: no */
	/* read-only */
	weft_listener *listener;
	unsigned    port;
	int         accepted, open, ended, commands;
	char        heard[1 << 17];
	/* private */
	weft_event  go_on;
	struct peer_seat *seats;
};

/* Listen, the second time at the same port; stop listening, but keep the connections. */
void peer_open(struct peer *peer, weft_loop *loop);
void peer_close(struct peer *peer);
/* Answer held commands from now on. */
void peer_go_on(struct peer *peer);
/* Send raw bytes on all open connections. */
void peer_say(struct peer *peer, const char *bytes);
/* End all open connections. */
void peer_drop(struct peer *peer);
/* How many times a line was received. */
int  peer_heard(const struct peer *peer, const char *line);
/* "redis://127.0.0.1:PORT" with the user part and a path, in one of four static buffers in
 * turn. */
const char *peer_address(const struct peer *peer, const char *user, const char *path);

/* --- the fixture of a test ---------------------------------------------------- */

struct world {
	struct peer     peer;
	weft_redis     *redis;
	weft_redis_opts opts;
	const char     *user, *path; /* parts of the address */
	void          (*play)(struct world *world);
};

/* Run `play` in a threadlet of a new loop.  Then everything must have been freed. */
void world_run(struct world *world, void (*play)(struct world *world));

/* Call "NAME KEY".  Returns the result of the call, and checks the tag of its reply. */
int ask(struct world *world, const char *name, const char *key, uint64_t deadline_ns);

struct weft_redis_stats stats_of(struct world *world);

/* Let other threadlets run until the condition holds. */
#define UNTIL(cond)                                                            \
	while (!(cond))                                                        \
	CHECK_EQ(weft_sleep_until(weft_after(50 * WEFT_US)), 0)

/* Make a world with these initializers, and run `fn` in it. */
#define PLAY(fn, ...)                                                          \
	do {                                                                   \
		struct world *world_ = calloc(1, sizeof(*world_));             \
		CHECK(world_);                                                 \
		*world_ = (struct world){ __VA_ARGS__ };                       \
		world_run(world_, fn);                                         \
		free(world_);                                                  \
	} while (0)

#endif
