/* op.h - what the layers above the loop use of ops, beside <weft/op.h>.
 *
 * The layout of an op is in backend/backend_op.h, which the backends share.  Above the loop only
 * the owner of a custom op writes members of it.
 *
 * Needs: timer, base.  Thread: the loop's, unless the comment says otherwise.
 */
#ifndef WEFT_LOOP_OP_H
#define WEFT_LOOP_OP_H

#include "backend/backend_op.h"
#include "base/build.h"

/* Request that a pending op finishes with `why`. */
void weft__op_request_cancel(struct weft__op *op, int why);

/* Send a message with several buffers or control data; `msg` belongs to the op. */
int weft__op_sendmsg(weft_op *op, int fd, const struct msghdr *msg, int flags,
                     uint64_t deadline_ns);

/* Send part of a file over a socket: finishes with the count, 0 at the end of the file. */
int  weft__op_sendfile(weft_op *op, int fd, const struct weft__file_part *part,
                       uint64_t deadline_ns);

/* Whether the backend of `loop` takes ops on files; opens the backend.  And start such an op. */
bool weft__loop_has_files(weft_loop *loop);
int  weft__op_start_file(weft_op *op, const struct weft__file_call *call,
                         uint64_t deadline_ns);

/* Finish a custom op, as its only finisher and on another thread than its loop's.  The loop then
 * calls `fn(op)`, which must end with weft__op_take_result(op). */
WEFT__SHARED void weft__op_post_result(struct weft__op *op, int64_t result, weft_fn fn);
WEFT__SHARED void weft__op_take_result(void *op);

/* Deliver 0 to `op`, which is initialized, after the results of all ops that this thread has
 * finished.  Needs no memory and works on a stopping loop: so it cannot fail, unless the loop has
 * stopped. */
void weft__op_follow(weft_op *op);

#endif
