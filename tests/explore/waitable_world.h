/* waitable_world.h - what the models of channels, select and locks share.
 *
 * All waiters are plain threads, which park.  The models are in waitable_models.c (channels and
 * select) and waitable_locks.c.  They form one program, because the orders of one source file are
 * weakened over all its models.
 */
#ifndef WEFT_TESTS_EXPLORE_WAITABLE_WORLD_H
#define WEFT_TESTS_EXPLORE_WAITABLE_WORLD_H

#include <weft/select.h>
#include "models.h"
#include "threadlet/chan.h"

/* Planted bugs, implemented in waitable_world.c. */
enum bug {
	NO_BUG,
	NO_CLAIM,    /* a deadline ends a wait that may already be claimed */
	NO_DROP,     /* a wait that timed out stays in the queue */
	LATE_PUSH,   /* a receiver checks, leaves the waitable, and queues only then */
	LATE_SLEEP,  /* a waiter sleeps without checking that it was woken */
	EARLY_WAKE,  /* a receiver is woken before its value is copied */
	NO_UNPARK,   /* a waiter's word is set, but it is not unparked */
	LATE_READ,   /* the next waiter of a list is read after this one was woken */
	LATE_LEAVE,  /* waiters of an event are woken inside its waitable */
	ONE_WAITABLE,    /* a select checks and queues one waitable at a time */
	EARLY_UNLOCK, /* the mutex is unlocked before the wait is queued */
	NO_CHECK,    /* a sender stores a value under its own lock alone while a receiver waits */
	EARLY_COUNT, /* a value is counted before it is stored */
	NO_OWNER,    /* an unlocked mutex is not passed on; the next waiter is only woken */
};

struct world {
	enum bug bug;
	weft_chan *a, *b;
	weft_event *event; /* allocated, so that it can be freed */
	weft_group *group;
	weft_mutex mutex;
	weft_cond cond;
	weft_sem sem;

	uint64_t shared; /* plain; protected by the locks */
	uint32_t flag;
	uint32_t got[3];  /* one per thread, for the check */
	uint32_t done[3];
	uint32_t last[2]; /* for each sender, the last value received */
	int      rc[3];
};

extern const struct model_set lock_models;

#define SOON (2 * WEFT_S) /* A deadline.  It passes when nothing else can run, or with `timeouts` at
                           * once. */

#define MODEL(name_, setup_, ...)                                  \
	{                                                          \
		.name = name_, .state_size = sizeof(struct world), \
		.setup = setup_, .late_unpark = true, __VA_ARGS__  \
	}

/* Channels of capacity 0, 1 and 2, for values of 8 bytes. */
void setup_0(void *state);
void setup_1(void *state);
void setup_2(void *state);
void give_up(void *state);  /* drop the references to the channels */

/* Do the operation correctly or with the planted bug. */
int send_value(struct world *w, weft_chan *chan, uint64_t value, uint64_t deadline_ns);
int recv_value(struct world *w, weft_chan *chan, uint64_t *out, uint64_t deadline_ns);
void close_chan(struct world *w, weft_chan *chan);
void set_event(struct world *w);
int select_two(struct world *w, weft_case cases[2], uint64_t deadline_ns);
int wait_for_cond(struct world *w, uint64_t deadline_ns);
void unlock_mutex(struct world *w);

#endif
