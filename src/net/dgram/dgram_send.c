/* dgram_send.c - sends datagrams.
 *
 * A call sends at once if the queue is empty.  Otherwise it appends its op to the queue, and the
 * op `writer` sends from the queue when the socket has room.  The queue consists of the callers'
 * ops, in their memory, so nothing is allocated.
 *
 *   1. If the kernel has sent only a part of a batch, the rest is tried again until a call sends
 *      nothing and returns the reason.  The batch may have been stopped by the pending error of an
 *      earlier message, which the kernel has thereby consumed: then the rest can be sent.
 *   2. poll reports a Unix socket that is not connected as writable, even if the queue of the
 *      peer is full.  So after a report that was wrong, the writer sleeps for a moment instead.
 */
#include <errno.h>
#include "net/dgram/dgram.h"
#include "threadlet/threadlet.h"

#define STUCK_NS WEFT_MS

/* Returns the number sent, -EAGAIN, or an error. */
static int
try_send(weft_dgram *dgram, const weft_message *messages, size_t count)
{
	size_t done = 0;
	int rc = weft__dgram_take_error(dgram);

	if (rc < 0)
		return rc;
	while (done < count) {
		size_t left = count - done;

		rc = weft__dgram_send_batch(dgram, messages + done,
		                            left < WEFT__DGRAM_BATCH ? (uint32_t)left
		                                                     : WEFT__DGRAM_BATCH);
		if (rc <= 0)
			break;
		done += (size_t)rc;
	}
	if (done > 0 && rc < 0)
		weft__dgram_keep_error(dgram, rc);
	return done > 0 ? (int)done : rc;
}

/* --- the queue ---------------------------------------------------------- */

/* Until the op finishes, its result is the number of its messages. */
static size_t
count_of(const struct weft__op *op)
{
	return (size_t)op->result;
}

static void
dgram_send_push(weft_dgram *dgram, struct weft__op *op, const weft_message *messages, size_t count)
{
	op->owned = messages;
	op->result = (int64_t)count;
	weft__node_append(&dgram->sends, weft__op_node(op));
}

static void
dgram_send_finish(weft_dgram *dgram, struct weft__op *op, int64_t result)
{
	weft__node_remove(&dgram->sends, weft__op_node(op));
	(void)weft_op_finish((weft_op *)(void *)op, result);
}

static struct weft__op *
first_of(const weft_dgram *dgram)
{
	struct weft__node *node = dgram->sends.first;

	return node ? weft__node_op(node) : NULL;
}

void
weft__dgram_end_sends(weft_dgram *dgram, int why)
{
	struct weft__op *op;

	while ((op = first_of(dgram)))
		dgram_send_finish(dgram, op, why);
}

/* End a send early.  The writer ends with the last send. */
static void
dgram_send_drop(weft_dgram *dgram, struct weft__op *op, int why)
{
	dgram_send_finish(dgram, op, why);
	if (!dgram->sends.first && dgram->writer.pending)
		weft__op_request_cancel(weft__op_of(&dgram->writer), WEFT_ECANCELED);
}

/* Send what there is room for.  True if something was sent or failed. */
static bool
flush(weft_dgram *dgram)
{
	struct weft__op *op;
	bool any = false;

	while ((op = first_of(dgram))) {
		int rc = try_send(dgram, op->owned, count_of(op));

		if (rc == -EAGAIN)
			break;
		dgram_send_finish(dgram, op, rc);
		any = true;
	}
	return any;
}

/* Invariant 4 of dgram.h. */
static void
wait_for_room(weft_dgram *dgram)
{
	int rc;

	if (!dgram->sends.first)
		dgram->stuck = false;
	if (!dgram->sends.first || dgram->writer.pending || dgram->closing)
		return;
	rc = dgram->stuck ? weft_op_sleep(&dgram->writer, weft_after(STUCK_NS))
	                  : weft_op_poll(&dgram->writer, dgram->fd, WEFT_WRITABLE, WEFT_NEVER);
	if (rc < 0)
		weft__dgram_end_sends(dgram, rc);
	else
		dgram->refs++;
}

void
weft__dgram_on_writer(weft_op *op, int64_t result, void *arg)
{
	weft_dgram *dgram = arg;

	(void)op;
	if (result >= 0 && !dgram->closing)
		dgram->stuck = !flush(dgram);
	else if (result != WEFT_ECANCELED) /* canceled by dgram_send_drop() */
		weft__dgram_end_sends(dgram, (int)result);
	wait_for_room(dgram);
	weft__dgram_unref(dgram);
}

/* --- waiting ------------------------------------------------------------ */

static void
dgram_send_on_cancel(weft_op *op, int why, void *arg)
{
	dgram_send_drop(arg, weft__op_of(op), why);
}

/* Not inlined, because gcc would report an op on a threadlet's stack as a dangling pointer. */
WEFT__COLD static int
dgram_send_begin(weft_dgram *dgram, const weft_message *messages, size_t count, weft_op *op,
                 uint64_t deadline_ns)
{
	int rc = weft_op_begin(op, dgram_send_on_cancel, dgram, deadline_ns);

	if (rc == 0)
		dgram_send_push(dgram, weft__op_of(op), messages, count);
	return rc;
}

static int
wait_to_send(weft_dgram *dgram, const weft_message *messages, size_t count, uint64_t deadline_ns)
{
	weft_op op;
	int rc = weft__dgram_use(dgram, weft__self()->sched->loop, "weft_dgram_send");

	if (rc < 0)
		return rc;
	weft__op_init_waited(&op);
	rc = dgram_send_begin(dgram, messages, count, &op, deadline_ns);
	if (rc < 0)
		return rc;
	wait_for_room(dgram);
	return (int)weft__op_wait(&op, "dgram");
}

int
weft_dgram_send(weft_dgram *dgram, const weft_message *messages, size_t count, uint64_t deadline_ns)
{
	int rc = weft__dgram_check_batch(dgram, messages, count, "weft_dgram_send");

	if (rc == 0 && deadline_ns != WEFT_NOWAIT)
		rc = weft__may_wait_in(deadline_ns, "weft_dgram_send");
	if (rc < 0)
		return rc;
	rc = dgram->sends.first ? -EAGAIN : try_send(dgram, messages, count);
	if (rc != -EAGAIN)
		return weft__dgram_return(rc, "weft_dgram_send");
	return deadline_ns == WEFT_NOWAIT ? WEFT_ETIMEDOUT
	                                  : wait_to_send(dgram, messages, count, deadline_ns);
}
