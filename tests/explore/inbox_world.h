/* inbox_world.h - what the models of an inbox share: a world, and the loop's side of it.
 *
 * The models are in inbox_models.c and producer_models.c.  With mailbox_models.c they form one
 * program, because the orders of one source file are weakened over all its models.
 */
#ifndef WEFT_TESTS_EXPLORE_INBOX_WORLD_H
#define WEFT_TESTS_EXPLORE_INBOX_WORLD_H

#include "base/lock.h"
#include "base/thread.h"
#include "explore.h"
#include "loop/post/producer.h"
#include "models.h"

enum bug {
	NO_BUG,
	NO_COMPARE, /* the loop checks, then parks on another word than the mark */
	NO_WAKE_CALL, /* the producer that removed the mark does not wake the loop */
	NO_DEBT,    /* the loop does not wait for producers that still owe a wake */
	LATE_CLOSE, /* the inbox is closed after the last check */
	LIFO,       /* the chain is not reversed */
	NO_BARRIER, /* the loop stops checking a HOT queue without a barrier */
	NO_REST,    /* the loop ends while producer queues are HOT */
	NO_BEGIN_SLEEP, /* an embedded loop returns to its host without the sleep mark */
	NO_CHECK,   /* the host does not check whether the inbox has something */
};

extern const struct model_set producer_models, mailbox_models;

struct world {
	enum bug bug;
	struct weft__inbox *inbox; /* allocated, so that it can be freed */
	struct weft__node node[2][2];
	weft__a32 accepted;
	uint32_t got, last[2];
	struct weft__node_list first, rest;
	int shared;
	int opened; /* the backend; written before the loop first waits there */
	struct weft__lock lock;
	struct weft__thread maker; /* the thread that made the producer queues, in setup */
};

/* --- creation and end --------------------------------------------------- */

/* Make the inbox.  Free it; if `alone`, without waiting for producers that owe a wake. */
void open_world(struct world *w, uint32_t slots_max);
void end_world(struct world *w, bool alone);

void setup(void *state); /* an inbox with a limit of two entries */

/* --- producers ---------------------------------------------------------- */

#define UNORDERED ((uintptr_t)32) /* a call without order; others hold producer and number */

void mark(void *arg); /* the function of all calls; does nothing */
void fill(struct weft__node *node, uintptr_t what);

/* Wake the loop if the result of a push requires it, and count the wake. */
void wake(struct world *w, struct weft__inbox *inbox, int mode);

/* --- the loop's side ---------------------------------------------------- */

/* A call has arrived: check that each producer's calls arrive in order, each once. */
void note(struct world *w, void *arg);

void run_producers(struct world *w);
void take_all(struct world *w); /* nodes, then producer queues */
void open_backend(struct world *w);
void sleep_once(struct world *w, bool by_fd);

/* Take and sleep until `want` calls have arrived.  If `switch_modes`, each sleep chooses
 * between parking and the descriptor. */
void consume(struct world *w, uint32_t want, bool switch_modes);

/* The same as thread functions of models. */
void consume_two(void *state);
void consume_and_free(void *state);
void close_and_take(void *state);

/* --- checks ------------------------------------------------------------- */

void check_accepted(void *state); /* exactly the accepted calls have arrived */
void check_gone(void *state);     /* nothing: the loop's thread has freed the inbox */

#endif
