/* dgram_recv.c - receives datagrams.
 *
 * A call takes what is there without waiting.  If there is nothing, it waits until the socket
 * is readable, and tries again.  The headers for the kernel are on the stack, so nothing is
 * allocated.  Addresses and bytes go directly to the caller's memory.
 */
#include <errno.h>
#include <sys/uio.h>
#include "net/dgram/dgram.h"
#include "threadlet/threadlet.h"

#define TRIES_MAX 16 /* of a call that a signal interrupts */

struct batch {
	struct weft__mmsg msgs[WEFT__DGRAM_BATCH];
	struct iovec spans[WEFT__DGRAM_BATCH];
};

static void
dgram_recv_prepare(struct batch *batch, weft_message *messages, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		batch->spans[i] = (struct iovec){ messages[i].data, messages[i].size };
		batch->msgs[i] = (struct weft__mmsg){
			.hdr = { .msg_name = messages[i].addr.bytes,
			         .msg_namelen = sizeof(messages[i].addr.bytes),
			         .msg_iov = &batch->spans[i],
			         .msg_iovlen = 1 },
		};
	}
}

static void
dgram_recv_settle(const struct batch *batch, weft_message *messages, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct msghdr *hdr = &batch->msgs[i].hdr;

		messages[i].size = batch->msgs[i].size;
		messages[i].truncated = hdr->msg_flags & MSG_TRUNC;
		messages[i].addr.kind = SOCK_DGRAM;
		weft__addr_settle(&messages[i].addr, hdr->msg_namelen);
	}
}

/* Make one system call.  Sets *drained if there is no more to receive. */
static int
recv_batch(weft_dgram *dgram, weft_message *messages, uint32_t count, bool *drained)
{
	const struct weft__sys *sys = weft__dgram_kernel(dgram);
	struct batch batch;
	int rc = -EINTR;

	dgram_recv_prepare(&batch, messages, count);
	for (int i = 0; rc == -EINTR && i < TRIES_MAX; i++)
		rc = sys->recvmmsg(dgram->fd, batch.msgs, count, 0);
	if (rc == -EINTR || rc == -EWOULDBLOCK)
		rc = -EAGAIN;
	*drained = rc < (int)count;
	if (rc <= 0)
		return rc;
	dgram_recv_settle(&batch, messages, (uint32_t)rc);
	if (*drained)
		weft__dgram_keep_error(dgram, batch.msgs[rc].error);
	return rc;
}

int
weft__dgram_try_recv(weft_dgram *dgram, weft_message *messages, size_t count)
{
	size_t done = 0;
	bool drained = false;
	int rc = weft__dgram_take_error(dgram);

	if (rc < 0)
		return rc;
	while (done < count && !drained) {
		size_t left = count - done;

		rc = recv_batch(dgram, messages + done,
		                left < WEFT__DGRAM_BATCH ? (uint32_t)left : WEFT__DGRAM_BATCH,
		                &drained);
		done += rc > 0 ? (size_t)rc : 0;
	}
	if (done > 0 && rc < 0)
		weft__dgram_keep_error(dgram, rc);
	return done > 0 ? (int)done : rc;
}

/* Suspend until the socket is readable, or the wait ends otherwise. */
static int
wait_readable(weft_dgram *dgram, uint64_t deadline_ns)
{
	weft_op op;
	int rc = weft__may_wait_in(WEFT_NEVER, "weft_dgram_recv");

	if (rc == 0)
		rc = weft__dgram_use(dgram, weft__self()->sched->loop, "weft_dgram_recv");
	if (rc < 0)
		return rc;
	weft__op_init_waited(&op);
	rc = weft_op_poll(&op, dgram->fd, WEFT_READABLE, deadline_ns);
	if (rc < 0)
		return rc;
	dgram->reader = &op;
	dgram->refs++;
	rc = (int)weft__op_wait(&op, "dgram");
	dgram->reader = NULL;
	if (dgram->closing)
		rc = weft__fail(WEFT_ESHUTDOWN, "weft_dgram_recv: the socket was closed");
	weft__dgram_unref(dgram);
	return rc;
}

int
weft_dgram_recv(weft_dgram *dgram, weft_message *messages, size_t count, uint64_t deadline_ns)
{
	int rc = weft__dgram_check_batch(dgram, messages, count, "weft_dgram_recv");

	if (rc == 0 && deadline_ns != WEFT_NOWAIT)
		rc = weft__may_wait_in(deadline_ns, "weft_dgram_recv");
	if (rc < 0)
		return rc;
	if (dgram->reader || dgram->watch.token)
		return weft__fail(
			WEFT_EBUSY,
			"weft_dgram_recv: another threadlet or a callback already receives");
	for (;;) {
		rc = weft__dgram_try_recv(dgram, messages, count);
		if (rc != -EAGAIN)
			return weft__dgram_return(rc, "weft_dgram_recv");
		if (deadline_ns == WEFT_NOWAIT)
			return WEFT_ETIMEDOUT;
		rc = wait_readable(dgram, deadline_ns);
		if (rc < 0)
			return rc;
	}
}
