/* weft/embed.h - loops inside of other systems: hooks, values of a loop, foreign event loops.
 *
 * A binding runs a queue of its own on a loop of weft: by hooks at fixed points of each iteration,
 * and by values that are local to a loop.  Or a foreign event loop, the host, drives a loop of
 * weft: the host polls one descriptor, and runs the loop of weft when the descriptor is readable
 * or the time of weft_loop_next() has come.
 *
 * Not included by weft/weft.h.
 */
#ifndef WEFT_EMBED_H
#define WEFT_EMBED_H

#include <weft/base.h>
#include <weft/loop.h>

WEFT_BEGIN

/* --- hooks, for bindings ------------------------------------------------- */

/* Functions that the loop calls at fixed points of each iteration; NULL ones are skipped.  Zero
 * the struct before its first use; it must not move or change while it is pushed.  The functions
 * may push and drop any hook.  The loop calls a hook that was pushed by such a function from the
 * next point on. */
typedef struct weft_loop_hook {
	/* Called once per iteration, before the loop decides how long to wait and before
	 * weft_loop_post_before_wait() nodes run.  Runs a queue of the binding.  Returns > 0 if
	 * work is left: the loop then neither blocks nor ends its run. */
	int  (*ready)(weft_loop *loop, void *arg);
	/* Called before and after each wait and each poll of descriptors, spinning included.
	 * `may_block` is true if the wait can take time (a binding then releases its GIL).  No
	 * microtasks run between the two calls.  A signal (EINTR) ends a wait, so that
	 * after_wait can handle it. */
	void (*before_wait)(weft_loop *loop, bool may_block, void *arg);
	void (*after_wait)(weft_loop *loop, bool may_block, void *arg);
	/* Called in each microtask checkpoint.  Runs some jobs and returns how many.  The loop
	 * calls it until it returns 0 and the microtask queue is empty. */
	int  (*checkpoint)(weft_loop *loop, void *arg);
	/* Called when the result of weft_loop_next() has changed, but only outside of
	 * iterations, and not for posts, timer IDs, ticks and microtasks: those make the
	 * descriptor readable. */
	void (*next_changed)(weft_loop *loop, void *arg);
	void    *arg;       /* caller's */
	uint64_t opaque[4]; /* private */
	uint64_t spare[1];  /* must be zero: room for later versions */
} weft_loop_hook;

/* Add and remove a hook.  A loop can have any number of hooks.  It calls them in the order in
 * which they were pushed, but after_wait in reverse order.  A removed hook is not called again,
 * and its memory belongs to the caller.  A loop that stops, or is freed, removes all its hooks.
 * push returns 0, WEFT_EBUSY if the hook is already on a loop.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int  weft_loop_push_hook(weft_loop *loop, weft_loop_hook *hook);
WEFT_API void weft_loop_drop_hook(weft_loop *loop, weft_loop_hook *hook);

/* Run `node->fn(node->arg)` once, after all other work of this iteration and before the loop
 * waits.  Use it to flush, in one call, data that many callbacks have added.  A node that is
 * already queued stays queued.
 * Returns 0, also while the loop is stopping.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_post_before_wait(weft_loop *loop, weft_node *node);

/* --- values of a loop ---------------------------------------------------- */

/* Make a key for values that are local to a loop.  `drop` (may be NULL) frees a value at the end
 * of its loop.  Keys are never freed; a process can make 64.
 * Returns the key, which is not 0, or WEFT_EAGAIN.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_key_new(weft_fn drop);

/* Get and set the loop's value for a key of weft_key_new(); an unset value is NULL.  The key's
 * `drop` frees a replaced value at once.  It frees the last value when the loop stops, or when
 * the loop is freed without having stopped: in reverse order of keys, on the thread that stops
 * or frees the loop, and not in a forked child.  During that, `drop` may get the values of other
 * keys, but can set none.
 * set takes `value` on success; on error the value still belongs to the caller.  set returns 0,
 * WEFT_EINVAL, WEFT_ENOMEM, WEFT_ESHUTDOWN.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void *weft_loop_local_get(const weft_loop *loop, int key);
WEFT_API int   weft_loop_local_set(weft_loop *loop, int key, void *value);

/* --- a loop in a foreign event loop -------------------------------------- */

/* Get a descriptor that becomes readable when weft_loop_run_once() has work.  Only poll the
 * descriptor, never read it; it may be readable although there is no work.  From this call on
 * the loop belongs to the calling thread, also between iterations: if another thread calls
 * weft_loop_shutdown(), the loop stops when its own thread next runs it.
 * Returns the descriptor, borrowed until the loop is freed, or WEFT_ENOSYS (poll backend).
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_fd(weft_loop *loop);

/* Get the time at which weft_loop_run_once() must be called even if the descriptor is not
 * readable.  Call this after each iteration.  Unless a hook has next_changed, also call it
 * before each wait of the host loop.
 * Returns the time, WEFT_NOWAIT if work is runnable, WEFT_NEVER if nothing is scheduled.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API uint64_t weft_loop_next(weft_loop *loop);

WEFT_END
#endif
