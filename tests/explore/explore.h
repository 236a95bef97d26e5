/* explore.h - run a small concurrent protocol over all its schedules.
 *
 * A model is a few threads that call the real library source, compiled with WEFT__HOOK_ATOMICS.
 * explore_run() runs it repeatedly.  Each execution makes different choices: which thread does
 * the next atomic operation, and which of the stores allowed by the C11 memory model a load
 * reads.  The run ends when no choice is left untried or when an execution fails.  A failure
 * is: explore_fail(), a data race on plain memory, a use of freed memory, a leak, a deadlock, a
 * thread that spins while no other thread can run, an abort, or a call of a system function
 * that has no model.
 *
 *   1. A model is deterministic except for the explorer's choices: the only clock is
 *      weft__sys->now(), the only random source is explore_choose(), and it reads no memory
 *      that an earlier execution has changed.  `state` is zeroed before each execution; changes
 *      that hooked accesses make outside of it are undone after each.
 *   2. Threads share only what they reach by hooked accesses: the atomics of base/atomic.h and
 *      weft__get()/weft__put().  The explorer does not see other accesses.
 *   3. Memory comes from weft__sys->alloc(), in setup, threads and check.
 *   4. Threads end.  They may spin if each round calls weft__sys->yield() or is a single
 *      atomic operation at one place in the source.
 *
 * memory.c states what the memory model covers, search.c why the search may skip schedules,
 * world.c how the simulated system calls behave.
 *
 * Needs: base/switch, base.  Thread: one at a time.
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

	int      preemptions; /* at most this many; 0 or -1: no limit */
	int      spurious;    /* at most this many parks return spuriously */
	bool     timeouts;    /* a deadline may pass while other threads can run */
	bool     reuse;       /* freed memory is allocated again (ABA) */
	bool     late_unpark; /* an unpark may use a word whose memory was freed */
	int      steps_max;   /* in one execution; 0: 1,000 */
	uint64_t executions_max; /* then stop, incomplete; 0: no limit */
};

struct explore_result {
	uint64_t    executions; /* that ran to their end */
	uint64_t    redundant;  /* stopped: equivalent to an earlier one (search.c) */
	uint64_t    pruned;     /* stopped at steps_max: NOT covered */
	uint32_t    depth_max;  /* choices in one execution */
	double      seconds;
	bool        complete;   /* nothing pruned, no limit reached, no failure */
	const char *failure;    /* the error, or NULL; valid until the next run */
	const char *schedule;   /* the steps that led to the failure, one per line */
};

/* Explore `model` and fill `out`.  Returns 0, or -1 if the model failed. */
int explore_run(const struct explore_model *model, struct explore_result *out);

/* Like explore_run(), and print a summary line to standard output.  If the model fails and that
 * is not `expected`, print the failure and the schedule, too. */
int explore_report(const struct explore_model *model, bool expected,
                   struct explore_result *out);

/* For each place in the source and each order that can be made one step weaker there, explore
 * `model` again with that one change.  Print which changes the model detects.  Returns how many
 * it does not detect, or -1 if the unchanged model fails. */
int explore_weaken(const struct explore_model *model);

/* The same over several models: a change counts as detected if one of them detects it. */
int explore_weaken_all(const struct explore_model *models, int count);

/* The same, but only for the orders of failed compare-exchanges. */
int explore_weaken_failed(const struct explore_model *models, int count);

/* Fail this execution.  For threads, setup and check. */
_Noreturn void explore_fail(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

#define EXPLORE_CHECK(cond)                                                    \
	((cond) ? (void)0 : explore_fail("%s:%d: %s is false", __FILE__,       \
	                                 __LINE__, #cond))

/* Returns 0 to options - 1; each value occurs in some execution. */
int explore_choose(int options);

/* The index of the running thread; EXPLORE_THREADS_MAX in setup and check. */
int explore_thread(void);

/* An eventfd that always exists; weft__sys->eventfd() makes more.  write() sets it, read()
 * resets it.  explore_fd_wait() waits until it is set, and resets it.  Returns true, or false if
 * the deadline came first. */
#define EXPLORE_FD 1000

bool explore_fd_wait(int fd, uint64_t deadline_ns);

/* A thread of the model that weft__sys->thread_start() starts.  thread_start() uses one that
 * was never started or has been joined; if there is none, it returns -EAGAIN.  Such a thread
 * ends only after explore_dismiss(), which the model must call. */
void explore_started(void *state);
void explore_dismiss(void);

#endif
