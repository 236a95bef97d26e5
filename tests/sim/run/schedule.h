/* schedule.h - simulated threads: stacks that take turns on one OS thread.
 *
 * Needs: clock.h, rng.h, base/switch.
 */
#ifndef WEFT_SIM_SCHEDULE_H
#define WEFT_SIM_SCHEDULE_H

#include "sim/run/sim.h"

#define SIM_THREADS_MAX 128

/* A call is as likely to end a time slice as three atomic operations, and a call by which
 * threads synchronize as twelve. */
enum { SIM_CALL_WEIGHT = 3, SIM_MEET_WEIGHT = 12 };

/* What a thread waits for.  The thread continues when it is woken, at the deadline, or when a
 * signal arrives, whichever comes first. */
struct sim_wait {
	const void *channel;      /* the address that wakes it */
	const char *what;         /* for failure texts: "recv", ... */
	int64_t     what_arg;
	uint64_t    deadline_ns;  /* or WEFT_NEVER */
	uint64_t    interrupt_ns; /* when a signal arrives, or WEFT_NEVER */
	uint64_t    spurious_ns;  /* when it wakes spuriously, or WEFT_NEVER */
};

void sim_sched_reset(uint64_t steps_max);

/* Run fn(arg) as the first thread until it ends or the run fails. */
void sim_sched_run(void (*fn)(void *arg), void *arg);

/* Abandon the run, from any of its stacks. */
_Noreturn void sim_sched_leave(void);

/* sim_sched_dump(): describe the state of each thread in `text`.  sim_sched_fini(): drop all
 * threads; returns how many there were besides the first. */
void sim_sched_dump(char *text, size_t size);
int  sim_sched_fini(void);

/* A scheduling point: another thread may continue instead.  The higher the weight, the likelier. */
void sim_point(uint32_t weight);

/* Sleep.  Returns the result that was passed to sim_wake_all(), or -ETIMEDOUT, -EINTR, or 0 if
 * the wake was spurious. */
int  sim_wait(const struct sim_wait *wait);

/* Wake all threads that sleep on `channel`. */
void sim_wake_all(const void *channel, int result);

/* About the running thread; 0 and "-" outside of a run. */
uint32_t    sim_thread_id(void);
const char *sim_thread_name(void);
uint32_t    sim_thread_masked(void);
uint64_t    sim_steps(void);

/* Members of the sys table. */
int  sim_park(weft__a32 *word, uint32_t value, uint64_t deadline_ns);
void sim_unpark(weft__a32 *word);
void sim_yield(void);
int  sim_barrier(void);
int  sim_thread_start(const struct weft__thread_opts *opts, uint64_t *out);
int  sim_thread_join(uint64_t thread);
struct weft__thread *sim_thread_self(void);

#endif
