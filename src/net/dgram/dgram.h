/* dgram.h - a datagram socket, as its files share it.  Private.
 *
 * The files: dgram_open.c, dgram_recv.c, dgram_send.c, dgram_batch.c, dgram_face.c
 * (callbacks), dgram_option.c, and dgram.c (whose it is, and its end).
 *
 *   1. `refs` counts what will come back to the struct: a threadlet that waits to
 *      receive, the writer and the life op while they are pending.  Closed and without
 *      any, it is given back: at once, or by the last of them.
 *   2. Who has been woken with an error after a close does not touch it any more, but to
 *      give up its reference.
 *   3. fn is not NULL from the first start until the last call was made; `life` is
 *      pending then, and its end makes that call: so it comes from the loop, once.
 *   4. `sends` are own ops of their callers; the writer is pending while there are any.
 *
 * Needs: threadlet, loop.  Thread: the loop's, once it has one.
 */
#ifndef WEFT_NET_DGRAM_H
#define WEFT_NET_DGRAM_H

#include <netinet/udp.h>
#include <weft/dgram.h>
#include "net/addr.h"
#include "net/stream/notice.h"

/* By which UDP is told where to cut what is sent as one; 0: it cannot be. */
#if defined(UDP_SEGMENT) && !defined(WEFT_PORTABLE)
#define WEFT__DGRAM_SEGMENT UDP_SEGMENT
#else
#define WEFT__DGRAM_SEGMENT 0
#endif

/* Messages of one system call. */
#define WEFT__DGRAM_BATCH 32u

struct weft_dgram {
	struct weft__notice notice; /* first: it is found by it */
	int        fd;
	int        family;
	bool       borrowed;
	bool       closing;
	int        error;    /* of the network, for the next call to return; or 0 */
	uint32_t   refs;
	weft_addr  path;     /* to be removed at the end; or none */

	weft_op   *reader;   /* by which a threadlet waits, or NULL */

	struct weft__node_list sends;
	uint64_t   queued;   /* their bytes */
	uint64_t   write_max;
	size_t     join_max; /* bytes: larger messages are not joined to trains */
	uint32_t   multicast_interface; /* as it was set; the kernel does not tell */
	weft_op    writer;   /* waits for room, */
	bool       stuck;    /* or a little, as there was none where there was said to be */

	weft_dgram_fn fn;
	void      *arg;
	char      *room;     /* for messages to be delivered */
	weft_watch watch;
	weft_op    life;

	weft_op   *closer;   /* to be told of the end, or NULL */
};

static inline weft_loop *
weft__dgram_loop(const weft_dgram *dgram)
{
	return weft__notice_loop(&dgram->notice);
}

/* --- dgram.c ------------------------------------------------------------ */

/* May this thread use it now?  0, or an error. */
int weft__dgram_check(const weft_dgram *dgram, const char *call);

/* The same for messages. */
int weft__dgram_check_batch(const weft_dgram *dgram, const weft_message *messages,
                            size_t count, const char *call);

/* It is to be waited on by `loop`: see that it is of that.  0, or an error. */
int weft__dgram_use(weft_dgram *dgram, weft_loop *loop);

/* Give up a reference. */
void weft__dgram_unref(weft_dgram *dgram);

/* The error that was kept, as a result; or 0. */
static inline int
weft__dgram_take_error(weft_dgram *dgram)
{
	int error = dgram->error;

	dgram->error = 0;
	return error;
}

/* Return from a call that did not wait, with a text if it failed. */
int weft__dgram_return(int rc, const char *call);

/* Keep an error of the network that was read and could not be returned. */
void weft__dgram_keep_error(weft_dgram *dgram, int error);

/* --- dgram_recv.c, dgram_batch.c, dgram_send.c, dgram_face.c --------------------------- */

/* Receive what is there: the number, -EAGAIN, or an error. */
int weft__dgram_try_recv(weft_dgram *dgram, weft_message *messages, size_t count);

/* Send messages by one call: the number, -EAGAIN, or an error. */
int weft__dgram_send_batch(weft_dgram *dgram, const weft_message *messages, uint32_t count);

/* Finish all sends with `why`. */
void weft__dgram_end_sends(weft_dgram *dgram, int why);

/* The first of them is interrupted. */
void weft__dgram_interrupt_send(weft_dgram *dgram);

/* Room has come, or the end. */
void weft__dgram_on_writer(weft_op *op, int64_t result, void *arg);

/* No more callbacks, but for the last. */
void weft__dgram_end_face(weft_dgram *dgram);

#endif
