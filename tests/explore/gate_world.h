/* gate_world.h - what the models of channels, select and locks share.
 *
 * Those who wait are plain threads, which park.
 * The models are in gate_models.c (channels and select) and gate_locks.c and make one
 * program, since the orders of one source are weakened over all its models.
 */
#ifndef WEFT_TESTS_EXPLORE_GATE_WORLD_H
#define WEFT_TESTS_EXPLORE_GATE_WORLD_H

#include <weft/select.h>
#include "models.h"
#include "threadlet/chan.h"

/* Planted; see the functions below that know them. */
enum bug {
	NO_BUG,
	NO_CLAIM,    /* a deadline ends a wait that somebody else may have claimed */
	NO_DROP,     /* a wait that was ended by its deadline stays in the queue */
	LATE_PUSH,   /* a receiver looks, leaves the gate, and queues then */
	LATE_SLEEP,  /* a waiter sleeps without minding that it was woken */
	EARLY_WAKE,  /* a receiver is woken, and then its value copied */
	NO_UNPARK,   /* a waiter is told, and not woken */
	LATE_READ,   /* the next of a list is read when this one was woken */
	LATE_LEAVE,  /* those who wait for an event are woken inside of its gate */
	ONE_GATE,    /* a select looks and queues gate by gate */
	NO_LET_IN,   /* a writer that gives up forgets the readers behind it */
	EARLY_UNLOCK, /* the mutex is given back before the wait is queued */
	NO_LOOK,     /* a sender puts a value by its lock alone while a receiver waits */
	EARLY_COUNT, /* a value is counted in before it is there */
	NO_OWNER,    /* a mutex is given back, and its next owner only told to try */
};

struct world {
	enum bug bug;
	weft_chan *a, *b;
	weft_event *event; /* allocated, so that it can be given up */
	weft_group *group;
	weft_mutex mutex;
	weft_cond cond;
	weft_rwlock rwlock;
	weft_sem sem;
	weft_once once;

	uint64_t shared; /* plain, for what the locks keep apart */
	uint32_t flag;
	uint32_t got[3];  /* of each thread: its own count, for the check */
	uint32_t done[3];
	uint32_t last[2]; /* of each sender, the last that came */
	int      rc[3];
};

extern const struct model_set lock_models;

#define SOON (2 * WEFT_S) /* a deadline: it passes when nothing else can, or at once */

#define MODEL(name_, setup_, ...)                                  \
	{                                                          \
		.name = name_, .state_size = sizeof(struct world), \
		.setup = setup_, .late_unpark = true, __VA_ARGS__  \
	}

/* Channels of no, one and two places, for values of 8 bytes. */
void setup_0(void *state);
void setup_1(void *state);
void setup_2(void *state);
void give_up(void *state);  /* give the channels back */

/* Send and receive as it should be, or with the planted bug. */
int send_value(struct world *w, weft_chan *chan, uint64_t value, uint64_t deadline_ns);
int recv_value(struct world *w, weft_chan *chan, uint64_t *out, uint64_t deadline_ns);
void close_chan(struct world *w, weft_chan *chan);
void set_event(struct world *w);
int select_two(struct world *w, weft_case cases[2], uint64_t deadline_ns);
int lock_to_write(struct world *w, uint64_t deadline_ns);
int wait_for_cond(struct world *w, uint64_t deadline_ns);
void unlock_mutex(struct world *w);

#endif
