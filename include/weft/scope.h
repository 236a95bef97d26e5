/* weft/scope.h - structured concurrency: nothing outlives the block it is in.
 *
 * A scope is opened and closed by one threadlet, like a brace.  It holds the
 * threadlets started in it, and it bounds every suspending call made inside it,
 * theirs and the opener's: by its deadline and by its cancellation.  Scopes nest; the
 * nearest end counts.
 *
 * A threadlet that ends with scopes open closes them, and a failure there is reported.  By
 * then its frames are gone: what is still in such a scope must not point into them.
 */
#ifndef WEFT_SCOPE_H
#define WEFT_SCOPE_H

#include <weft/base.h>
#include <weft/threadlet.h>

WEFT_BEGIN

enum {
	WEFT_FAIL_FAST = 1 << 0, /* the first failure cancels the scope */
	WEFT_SHIELD    = 1 << 1, /* cancellation from outside stays outside */
};

struct weft_scope {
	uint32_t  flags;       /* read-only */
	int       error;       /* read-only: the first failure, or 0 */
	uint64_t  deadline_ns; /* read-only, see weft_scope_set_deadline() */
	uint64_t  opaque[1];   /* private */
	uint64_t  spare[3];
};
WEFT_STATIC_ASSERT(sizeof(struct weft_scope) <= 96, "weft_scope is part of the ABI");

/* Open a scope around what follows.  Inside of it the deadline is told as
 * WEFT_ETIMEDOUT.
 * Returns 0, WEFT_EINVAL, WEFT_ENOMEM, WEFT_ENOSUSPEND outside of a threadlet.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_scope_open(weft_scope *scope, uint32_t flags,
                             uint64_t deadline_ns);

/* Move the deadline of an open scope, sooner or later; waits inside follow.
 * Returns 0, WEFT_EALREADY once it has passed or the scope is cancelled, WEFT_EINVAL,
 * WEFT_ENOMEM.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_scope_set_deadline(weft_scope *scope, uint64_t deadline_ns);

/* Start a threadlet in the scope, on the caller's loop; weft_go_with() has the
 * options.  Its handle can be joined until the scope is closed, the last one that
 * weft_scope_close() waits for until it has ended; of those that have ended the last
 * 65,536 are remembered.
 * Returns as weft_go(), WEFT_ECANCELED or WEFT_ETIMEDOUT once the scope is cancelled.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_threadlet weft_scope_go(weft_scope *scope, weft_threadlet_fn fn,
                                      void *arg);

/* Cancel: every suspending call inside returns WEFT_ECANCELED from now on.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_scope_cancel(weft_scope *scope);

/* Wait until every threadlet in the scope has ended; not cancellable, without a
 * deadline of its own.  The scope closed must be the one opened last.
 * Returns 0, or the first failure of a threadlet that was not told to end, with its text
 * in weft_detail(); WEFT_EINVAL if it is not the caller's last.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_scope_close(weft_scope *scope);

WEFT_END
#endif
