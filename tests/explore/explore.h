/* explore.h - run a small concurrent protocol over all its schedules.
 *
 * A model is a few threads that call the real library source, compiled with
 * WEFT__HOOK_ATOMICS.  explore_run() runs it again and again, each time with
 * another choice of which thread does the next atomic operation and which of
 * the stores that the C11 memory model allows a load sees, until there is no
 * other choice left or one execution has failed.  A failure is: explore_fail(),
 * a data race on plain memory, a use of released memory, a leak, a deadlock, a
 * thread that spins alone, an abort, a call of a system function that has no
 * model.
 *
 *   1. A model is deterministic but for what the explorer chooses: no clock but
 *      weft__sys->now(), no chance but explore_choose(), no memory that an
 *      earlier execution has changed.  `state` is zeroed each time; what hooked
 *      accesses change outside of it is put back.
 *   2. Threads share only what they reach by hooked accesses: the atomics of
 *      base/atomic.h and weft__get()/weft__put().  What others do is not seen.
 *   3. Memory comes from weft__sys->alloc(), in setup, threads and check.
 *   4. Threads end.  They may spin, if each round has a weft__sys->yield() or
 *      is a single atomic operation at one place.
 *
 * memory.c says what the memory model covers, search.c why the search may leave
 * schedules out, world.c how the outside behaves.
 *
 * Needs: threadlet/switch, base.  Thread: one at a time.
 */
#ifndef WEFT_TESTS_EXPLORE_H
#define WEFT_TESTS_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPLORE_THREADS_MAX 4
#define EXPLORE_MODELS_MAX  64 /* that are weakened together */

struct explore_model {
	const char *name;
	size_t      state_size;
	int         threads;
	void      (*setup)(void *state);  /* or NULL; before all threads */
	void      (*thread[EXPLORE_THREADS_MAX])(void *state);
	void      (*check)(void *state);  /* or NULL; after all threads */

	int      preemptions; /* at most so many; 0 or -1: all schedules */
	int      spurious;    /* at most so many parks return for no reason */
	bool     timeouts;    /* a deadline may pass while others can run */
	bool     reuse;       /* released memory is given out again (ABA) */
	bool     late_unpark; /* an unpark may reach a word that is gone */
	int      steps_max;   /* of one execution; 0: 1,000 */
	uint64_t executions_max; /* then stop, incomplete; 0: no limit */
};

struct explore_result {
	uint64_t    executions; /* that came to their end */
	uint64_t    redundant;  /* stopped: the same as one before (search.c) */
	uint64_t    pruned;     /* stopped at steps_max: NOT covered */
	uint32_t    depth_max;  /* choices in one execution */
	double      seconds;
	bool        complete;   /* nothing pruned, no limit hit, no failure */
	const char *failure;    /* what went wrong, or NULL; until the next run */
	const char *schedule;   /* the steps that led there, a line each */
};

/* Explore `model`; fills `out`.  Returns 0, or -1 if it failed. */
int explore_run(const struct explore_model *model, struct explore_result *out);

/* The same, with a line about it on standard output, and on a failure that was
 * not `expected` the text and the schedule. */
int explore_report(const struct explore_model *model, bool expected,
                   struct explore_result *out);

/* Explore `model` once more for each order that can be made one step weaker at
 * one place of the source, and print which of these the model finds.  Returns
 * how many it does not find, or -1 if it fails as it is. */
int explore_weaken(const struct explore_model *model);

/* The same over several models: found is what one of them finds. */
int explore_weaken_all(const struct explore_model *models, int count);

/* The same for the orders of compare-exchanges that fail, and no other order. */
int explore_weaken_failed(const struct explore_model *models, int count);

/* The execution has failed.  From threads, setup and check. */
_Noreturn void explore_fail(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

#define EXPLORE_CHECK(cond)                                                    \
	((cond) ? (void)0 : explore_fail("%s:%d: %s is false", __FILE__,       \
	                                 __LINE__, #cond))

/* 0 to options - 1, each of them in some execution. */
int explore_choose(int options);

/* The index of the running thread; EXPLORE_THREADS_MAX in setup and check. */
int explore_thread(void);

/* An eventfd that is always there; weft__sys->eventfd() makes more.  write()
 * sets it, read() resets it; this waits until it is set, and resets it: true,
 * or false if the deadline came first. */
#define EXPLORE_FD 1000

bool explore_fd_wait(int fd, uint64_t deadline_ns);

/* A thread of the model that is started by weft__sys->thread_start(), which finds one
 * that has not been started or was joined, or says EAGAIN.  It comes to its end when it
 * is not needed any more: explore_dismiss(), which the model has to call. */
void explore_started(void *state);
void explore_dismiss(void);

#endif
