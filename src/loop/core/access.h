/* access.h - what the layers above read and change of a loop.
 *
 * The members of struct weft_loop belong to src/loop.  Other layers use these functions, which
 * are inlined, or those of the other headers of src/loop.  Only src/threadlet/layout.c names
 * members: it lists their offsets for debuggers.
 *
 * Needs: loop.h.  Thread: the runner, unless the comment says otherwise.
 */
#ifndef WEFT_LOOP_ACCESS_H
#define WEFT_LOOP_ACCESS_H

#include "loop/core/loop.h"

/* --- set once: any thread ----------------------------------------------- */

static inline uint64_t
weft__loop_id(const weft_loop *loop)
{
	return loop->inbox.id;
}

/* "" if the loop has no name. */
static inline const char *
weft__loop_name(const weft_loop *loop)
{
	return loop->name;
}

/* The value of weft__program.forks when the loop was made. */
static inline uint32_t
weft__loop_forks(const weft_loop *loop)
{
	return loop->forks;
}

static inline uint32_t
weft__loop_threadlet_max(const weft_loop *loop)
{
	return loop->threadlet_max;
}

static inline size_t
weft__loop_stack_bytes(const weft_loop *loop)
{
	return loop->stack_bytes;
}

/* The options of the loop allow its threads to spin. */
static inline bool
weft__loop_allows_spin(const weft_loop *loop)
{
	return loop->spin.allowed;
}

/* --- for all layers ----------------------------------------------------- */

/* The loop stops, and ends everything that is pending. */
static inline bool
weft__loop_is_ending(const weft_loop *loop)
{
	return loop->ending;
}

static inline struct weft_wheel *
weft__loop_wheel(weft_loop *loop)
{
	return &loop->wheel;
}

/* Other threads may read the counters. */
static inline struct weft__counts *
weft__loop_counts(weft_loop *loop)
{
	return &loop->counts;
}

/* The sys table, for a call that the loop counts. */
static inline const struct weft__sys *
weft__loop_kernel(const weft_loop *loop)
{
	return weft__kernel(&loop->backend);
}

/* The loop sleeps, and nothing was sent to it since.  Any thread. */
static inline bool
weft__loop_is_asleep(const weft_loop *loop)
{
	return weft__inbox_is_asleep(&loop->inbox);
}

/* The next loop of the registry, or NULL.  Any thread, under the registry's lock. */
static inline weft_loop *
weft__loop_next_listed(const weft_loop *loop)
{
	return loop->next_listed;
}

/* --- for threadlets ----------------------------------------------------- */

static inline struct weft__run_queue *
weft__loop_ready(weft_loop *loop)
{
	return &loop->ready;
}

/* Threadlet switches left in this phase.  Other threads may read the number. */
static inline uint32_t
weft__loop_left(const weft_loop *loop)
{
	return weft__count_get(&loop->left);
}

static inline void
weft__loop_set_left(weft_loop *loop, uint32_t left)
{
	weft__count_set(&loop->left, left);
}

/* The next switch of threadlets must go to the loop: there are jobs for a checkpoint, or the
 * iteration is traced. */
static inline bool
weft__loop_must_return(const weft_loop *loop)
{
	return weft__loop_may_have_tasks(loop) | loop->hooks.checkpoints | loop->traced;
}

/* Nothing else is known to be runnable, and spinning may pay. */
static inline bool
weft__loop_may_spin(const weft_loop *loop)
{
	return loop->spin.allowed && !loop->ready.first && !weft__loop_may_have_tasks(loop)
	       && !weft__inbox_has(&loop->inbox);
}

/* Adaptive spin of the threadlets that wait for other threads. */
static inline struct weft__spin_backoff *
weft__loop_wait_spins(weft_loop *loop)
{
	return &loop->spin.waits;
}

/* Threadlets that have not ended.  Any thread may read the number. */
static inline uint64_t
weft__loop_threadlets(const weft_loop *loop)
{
	return weft__count_get(&loop->threadlets);
}

static inline void
weft__loop_add_threadlets(weft_loop *loop, int64_t count)
{
	weft__count(&loop->threadlets, (uint64_t)count);
}

/* Add to the number of things that keep a run going.  A background threadlet adds -1, because
 * every threadlet counts as 1. */
static inline void
weft__loop_add_alive(weft_loop *loop, int64_t count)
{
	weft__count(&loop->alive, (uint64_t)count);
}

/* The last reading of the clock; 0: none in this iteration. */
static inline uint64_t
weft__loop_last_ns(const weft_loop *loop)
{
	return loop->now_ns;
}

/* A recording was active as this iteration began. */
static inline bool
weft__loop_is_traced(const weft_loop *loop)
{
	return loop->traced;
}

static inline bool
weft__loop_is_in_turn(const weft_loop *loop)
{
	return loop->in_turn;
}

static inline uint64_t
weft__loop_trace_mark(const weft_loop *loop)
{
	return loop->trace.mark;
}

/* Add to the number of unanswered requests to list the loop's threadlets: -1 for a request that
 * was answered or withdrawn.  Any thread, under the registry's lock. */
static inline void
weft__loop_add_listings(weft_loop *loop, int32_t count)
{
	(void)weft__add(&loop->listings, (uint32_t)count, WEFT__RELAXED);
}

/* --- for promises ------------------------------------------------------- */

/* Queue a microtask; the caller calls weft__loop_changed().  0, or below 0 without memory. */
static inline int
weft__loop_push_microtask(weft_loop *loop, weft_fn fn, void *arg)
{
	return weft__ring_push(&loop->microtasks, fn, arg);
}

static inline bool
weft__loop_has_microtasks(const weft_loop *loop)
{
	return loop->microtasks.count > 0;
}

/* Promises have jobs for the end of a checkpoint: call the part's `due` there, once. */
static inline void
weft__loop_set_promises_due(weft_loop *loop)
{
	loop->promises_due = true;
}

/* --- for runtimes ------------------------------------------------------- */

/* The loop sleeps, and only other threads can wake it; under the lock of src/runtime/quiet.c. */
static inline bool
weft__loop_is_quiet(const weft_loop *loop)
{
	return loop->quiet;
}

static inline void
weft__loop_set_quiet(weft_loop *loop, bool on)
{
	loop->quiet = on;
}

#endif
