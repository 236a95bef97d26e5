/* dgram.h - a datagram socket: the definitions that its files share.  Private.
 *
 * The files: dgram_open.c, dgram_recv.c, dgram_send.c, dgram_batch.c, dgram_face.c (callbacks),
 * and dgram.c (owner loop, closing).
 *
 *   1. `refs` counts what will still use the struct: a threadlet that waits to receive, the ops
 *      `writer` and `life` while they are pending, and the close itself.  A closed socket is freed
 *      with the last reference.
 *   2. A threadlet that is woken with an error after a close uses the struct only to drop its
 *      reference.
 *   3. `fn` is not NULL from the first start until the last call of the callback.  `life` is
 *      pending during that time, and its end makes the last call: so that call comes from the
 *      loop, once.
 *   4. `sends` are ops of threadlets that wait.  `writer` is pending while there are any.
 *
 * Needs: threadlet, loop.  Thread: the loop's, once it has one.
 */
#ifndef WEFT_NET_DGRAM_H
#define WEFT_NET_DGRAM_H

#include <netinet/udp.h>
#include <weft/dgram.h>
#include "net/addr.h"
#include "loop/core/access.h"
#include "loop/io/fd.h"

/* The control message that makes UDP split a large message into datagrams; 0: not available. */
#if defined(UDP_SEGMENT) && !defined(WEFT_PORTABLE)
#define WEFT__DGRAM_SEGMENT UDP_SEGMENT
#else
#define WEFT__DGRAM_SEGMENT 0
#endif

/* Messages per system call. */
#define WEFT__DGRAM_BATCH 32u

struct weft_dgram {
	weft__aptr loop;     /* its weft_loop, or 0; set by weft__dgram_use() */
	int        fd;
	int        family;
	bool       borrowed;
	bool       closing;
	int        error;    /* an error of the network for the next call to return; or 0 */
	uint32_t   refs;
	weft_addr  path;     /* a path to remove at the close; or none */

	weft_op   *reader;   /* the op of a threadlet that waits to receive, or NULL */

	struct weft__node_list sends;
	size_t     join_max; /* larger messages are not joined to trains */
	weft_op    writer;   /* waits for room, */
	bool       stuck;    /* or sleeps, because poll reported room where there was none */

	weft_dgram_fn fn;
	void      *arg;
	char      *room;     /* buffer for messages to be delivered */
	weft_watch watch;
	weft_op    life;

	weft_op   *closer;   /* finished when the socket is gone, or NULL */
};

static inline weft_loop *
weft__dgram_loop(const weft_dgram *dgram)
{
	return (weft_loop *)weft__load(&dgram->loop, WEFT__RELAXED);
}

/* The sys table, for a call that its loop counts. */
static inline const struct weft__sys *
weft__dgram_kernel(const weft_dgram *dgram)
{
	weft_loop *loop = weft__dgram_loop(dgram);

	return loop ? weft__loop_kernel(loop) : weft__sys;
}

/* --- dgram.c ------------------------------------------------------------ */

/* Check that this thread may use the socket now.  Returns 0 or an error. */
int weft__dgram_check(const weft_dgram *dgram, const char *call);

/* The same check, and check the messages. */
int weft__dgram_check_batch(const weft_dgram *dgram, const weft_message *messages,
                            size_t count, const char *call);

/* Bind the socket to `loop`, which is going to wait on it.  Returns 0 or an error. */
int weft__dgram_use(weft_dgram *dgram, weft_loop *loop, const char *call);

/* Drop a reference. */
void weft__dgram_unref(weft_dgram *dgram);

/* Take the error that was kept for the next call, or 0. */
static inline int
weft__dgram_take_error(weft_dgram *dgram)
{
	int error = dgram->error;

	dgram->error = 0;
	return error;
}

/* Return `rc` from a call that did not wait.  Sets the error text if the call has failed. */
int weft__dgram_return(int rc, const char *call);

/* Keep an error of the network that was read but could not be returned. */
void weft__dgram_keep_error(weft_dgram *dgram, int error);

/* --- dgram_recv.c, dgram_batch.c, dgram_send.c, dgram_face.c --------------------------- */

/* Receive what is there.  Returns the number of messages, -EAGAIN, or an error. */
int weft__dgram_try_recv(weft_dgram *dgram, weft_message *messages, size_t count);

/* Send messages by one call.  Returns their number, -EAGAIN, or an error. */
int weft__dgram_send_batch(weft_dgram *dgram, const weft_message *messages, uint32_t count);

/* Finish all sends with `why`. */
void weft__dgram_end_sends(weft_dgram *dgram, int why);

/* The callback of `writer`: there is room, or the wait has ended. */
void weft__dgram_on_writer(weft_op *op, int64_t result, void *arg);

/* Stop the callbacks; the last call follows. */
void weft__dgram_end_face(weft_dgram *dgram);

#endif
