/* child.h - child processes as ops; the suspending calls are built on these.  Private.
 *
 * Needs: loop.  Thread: the loop's.
 */
#ifndef WEFT_RUNTIME_CHILD_H
#define WEFT_RUNTIME_CHILD_H

#include <weft/child.h>
#include <weft/op.h>

/* Like weft_child_open(), on `loop` (NULL: the caller's), without suspending. */
int weft__child_open(weft_loop *loop, const char *const *argv,
                     const weft_child_opts *opts, weft_child **out);

/* Finish with the wait status once the child has ended, or with -ECHILD. */
int weft__child_wait_op(weft_child *child, weft_op *op, uint64_t deadline_ns);

/* The same without waiting: 0 and fills `out`, or WEFT_ETIMEDOUT if the child still runs. */
int weft__child_poll(weft_child *child, int *out);

/* Finish with 0 once the child is gone.  Cannot be canceled.  Takes the child unless the call
 * is misuse (WEFT_EINVAL, WEFT_EBUSY, WEFT_EWRONGLOOP).  Without memory, or on a stopping loop, the
 * child has been killed when this returns the error. */
int weft__child_close_op(weft_child *child, weft_op *op);

/* The same without an op.  Keeps the loop alive until it is done. */
int weft__child_close_later(weft_child *child);

#endif
