/* inbox_world.h - what the models of an inbox share: a world, and its loop's side.
 *
 * The models are in inbox_models.c and lane_models.c and make one program, since the
 * orders of one source are weakened over all its models.
 */
#ifndef WEFT_TESTS_EXPLORE_INBOX_WORLD_H
#define WEFT_TESTS_EXPLORE_INBOX_WORLD_H

#include "base/lock.h"
#include "base/thread.h"
#include "explore.h"
#include "loop/lane.h"
#include "models.h"

enum bug {
	NO_BUG,
	NO_COMPARE, /* the loop looks, then parks without the mark */
	NO_RING,    /* the producer that took the mark does not wake */
	NO_DEBT,    /* the loop does not wait for who still owes a wake */
	LATE_CLOSE, /* the door is closed after the last look */
	LIFO,       /* the chain is not turned around */
	NO_BARRIER, /* a hot lane is left without one */
	NO_REST,    /* the loop ends while lanes are hot */
	NO_DOZE,    /* an embedded loop goes back to its host without the mark */
	NO_LOOK,    /* its host does not ask whether the doze has failed */
};

extern const struct model_set lane_models;

struct world {
	enum bug bug;
	struct weft__inbox *inbox; /* allocated, so that it can be given up */
	struct weft__node node[2][2];
	weft__a32 accepted;
	uint32_t got, last[2];
	struct weft__node_list first, rest;
	int shared;
	int opened; /* the backend: written before the loop first waits there */
	struct weft__lock lock;
	struct weft__thread maker; /* of lanes, in setup */
};

/* --- its life ----------------------------------------------------------- */

/* Make the inbox; give it up, `alone` without those who owe a wake. */
void open_world(struct world *w, uint32_t slots_max);
void end_world(struct world *w, bool alone);

void setup(void *state); /* an inbox for two */

/* --- producers ---------------------------------------------------------- */

#define UNORDERED ((uintptr_t)32) /* what has no order; else producer and number */

void mark(void *arg); /* is what all calls call */
void fill(struct weft__node *node, uintptr_t what);

/* Wake the loop as a push has told, and count that. */
void wake(struct world *w, struct weft__inbox *inbox, int mode);

/* --- the loop's side ---------------------------------------------------- */

/* A call came: each producer's come in their order, each once. */
void note(struct world *w, void *arg);

void run_lanes(struct world *w);
void take_all(struct world *w); /* nodes, then lanes */
void open_backend(struct world *w);
void sleep_once(struct world *w, bool by_fd);

/* Take and sleep until `want` calls have come; with both ways of sleeping or one. */
void consume(struct world *w, uint32_t want, bool switch_modes);

/* As threads of models. */
void consume_two(void *state);
void consume_and_free(void *state);
void close_and_take(void *state);

/* --- checks ------------------------------------------------------------- */

void check_accepted(void *state); /* all that was, and only that, has come */
void check_gone(void *state);     /* nothing: the loop's thread has ended the world */

#endif
