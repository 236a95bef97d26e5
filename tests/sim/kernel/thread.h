/* thread.h - a simulated thread; what schedule.c and thread.c share.
 *
 * schedule.c chooses which thread runs; thread.c starts, joins, parks and wakes threads.
 *
 * Needs: schedule.h, base/switch.
 */
#ifndef WEFT_SIM_THREAD_H
#define WEFT_SIM_THREAD_H

#include "base/thread.h"
#include "sim/run/schedule.h"
#include "base/switch/switch.h"

enum sim_thread_state {
	SIM_THREAD_FREE,
	SIM_THREAD_READY,
	SIM_THREAD_ASLEEP,
	SIM_THREAD_ENDED,
};

struct sim_thread {
	struct weft__context  context; /* of its own stack */
	struct weft__context *resume;  /* where it continues, while not current */
	struct weft__thread   self;
	struct weft__thread_opts opts;
	struct sim_wait       wait;    /* while asleep */
	char       name[16];
	enum sim_thread_state state;
	uint32_t   id;        /* from 0, never reused in a run */
	uint32_t   slot;      /* in the table of threads; determines its stack */
	uint32_t   weight;    /* relative likelihood to be chosen */
	uint32_t   masked;    /* masked fault classes */
	uint32_t   ready_at;  /* its index in ready[] */
	uint64_t   version;   /* changes with each sleep and each wake */
	int        result;    /* of its sleep */
	bool       has_self;
	bool       in_handler; /* of a signal; then no other signal is delivered */
};

/* The running thread, or NULL outside of a run. */
struct sim_thread *sim_thread_current(void);

/* sim_thread_take(): a free thread of the table, zeroed except for its slot, id, weight and
 * version; or NULL.  sim_thread_find(): the thread with that ID, or NULL. */
struct sim_thread *sim_thread_take(void);
struct sim_thread *sim_thread_find(uint64_t id);

/* A thread that sleeps on `channel`, chosen by the seed; or NULL. */
struct sim_thread *sim_thread_asleep(const void *channel);

/* Make a thread runnable: a new one, or one that sleeps. */
void sim_thread_ready(struct sim_thread *thread);
void sim_thread_wake(struct sim_thread *thread, int result);

/* Wake the thread at `at_ns` with -error, unless something else wakes it first. */
void sim_thread_wake_at(struct sim_thread *thread, uint64_t at_ns, int error);

/* sim_thread_pass(): let another thread run, if one can.  sim_thread_end(): end the running
 * thread. */
void sim_thread_pass(void);
_Noreturn void sim_thread_end(struct sim_thread *thread);

/* Make a thread.  sim_sched_run() makes the first one of a run. */
struct sim_thread *sim_thread_make(const struct weft__thread_opts *opts);

#endif
