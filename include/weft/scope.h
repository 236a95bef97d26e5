/* weft/scope.h - structured concurrency: a scope ends after all its threadlets.
 *
 * One threadlet opens and closes a scope, like a brace.  The scope owns the threadlets started
 * in it.  Its deadline and its cancellation end every suspending call inside it: calls of those
 * threadlets, and calls of the opener until it closes the scope.  Scopes nest; the earliest
 * deadline applies.
 *
 * If the function of a threadlet returns while scopes are open, the library closes these scopes,
 * and reports a failure in them (WEFT_REPORT_FAILED).  The stack frames of the function are gone
 * by then: threadlets in such a scope must not point into them.
 */
#ifndef WEFT_SCOPE_H
#define WEFT_SCOPE_H

#include <weft/base.h>
#include <weft/threadlet.h>

WEFT_BEGIN

enum {
	WEFT_FAIL_FAST = 1 << 0, /* the first failure cancels the scope */
	WEFT_SHIELD    = 1 << 1, /* cancellations and deadlines outside have no effect inside */
};

struct weft_scope {
	uint32_t  flags;       /* read-only */
	int       error;       /* read-only: the first failure, or 0 */
	uint64_t  deadline_ns; /* read-only, see weft_scope_set_deadline() */
	uint64_t  opaque[1];   /* private */
	uint64_t  spare[3];    /* room for later versions */
};
WEFT_STATIC_ASSERT(sizeof(struct weft_scope) <= 96, "weft_scope is part of the ABI");

/* Open a scope.  When its deadline passes, calls inside it return WEFT_ETIMEDOUT.
 * Returns 0, WEFT_EINVAL, WEFT_ENOMEM, WEFT_ENOSUSPEND outside of a threadlet.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_scope_open(weft_scope *scope, uint32_t flags,
                             uint64_t deadline_ns);

/* Move the deadline of an open scope to an earlier or later time.  Waits in progress inside the
 * scope use the new deadline.
 * Returns 0, WEFT_EALREADY once the deadline has passed or the scope is canceled, WEFT_EINVAL,
 * WEFT_ENOMEM.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_scope_set_deadline(weft_scope *scope, uint64_t deadline_ns);

/* Start a threadlet in the scope, on the caller's loop; for options use weft_go_with().  The
 * threadlet can be joined until the scope is closed, also after the threadlet has ended; a scope
 * keeps the results of the last 65,536 threadlets that have ended.  While weft_scope_close() waits,
 * the end of the last threadlet closes the scope, so a call that joins it must begin before that.
 * Returns as weft_go(); WEFT_ECANCELED once the scope is canceled, WEFT_ETIMEDOUT once its
 * deadline has passed, or the error of the abort signal that has canceled it.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_threadlet weft_scope_go(weft_scope *scope, weft_threadlet_fn fn,
                                      void *arg);

/* Cancel the scope: from now on, calls inside it that have to wait return WEFT_ECANCELED, except
 * weft_scope_close().
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_scope_cancel(weft_scope *scope);

/* Close the scope: wait until every threadlet in it has ended.  The wait is not cancelable and
 * has no deadline of its own.
 * Returns 0, or the first failure of a threadlet in the scope, with its message in weft_detail();
 * WEFT_EINVAL if the scope is not the innermost open scope of the caller.  A negative result is
 * not a failure if, before the threadlet returned it, the threadlet or the scope was canceled or
 * the deadline of the scope had passed.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_scope_close(weft_scope *scope);

WEFT_END
#endif
