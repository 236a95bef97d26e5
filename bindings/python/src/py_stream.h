/* py_stream.h - the transport of a connected socket, as seen by py_stream.c and its parts.
 *
 *   1. The watch is armed for reading unless the transport is paused, closing or at the end, and
 *      for writing while the queue is not empty.  While it is armed, the loop's list owns a
 *      reference to the transport; otherwise only its users do.
 *   2. Readiness puts the transport into the ring, once; it reads and writes when it is called
 *      from there.
 *   3. `lost` is above 0 once connection_lost() is scheduled: nothing is read, sent or queued
 *      afterwards, and the queue is empty.
 *   4. Methods of the protocol may do anything to the transport, including closing it.  The code
 *      that calls them holds a reference, and rereads the members afterwards.
 */
#ifndef WEFTPY_STREAM_H
#define WEFTPY_STREAM_H

#include "core.h"

/* How the protocol receives data. */
enum taker { TAKES_BYTES, TAKES_BUFFER, TAKES_TLS, TAKES_STREAM };

struct piece { /* an item of the queue */
	PyObject   *bytes;
	const char *at; /* the part not sent yet */
	size_t      left;
};

struct stream {
	PyObject_HEAD
	PyObject *extra;            /* the slot `_extra` of asyncio.BaseTransport */
	PyObject *mixin[4];         /* slots of _FlowControlMixin; getters override them */
	PyObject *weak;             /* weak references */
	weft_watch watch;
	struct loop_core *core;     /* NULL before _start() and after _release() */
	struct weft__link link;     /* in the loop's list, if `listed` */
	PyObject *sock, *protocol, *server, *context, *empty_waiter;
	struct piece *queue;        /* queue_size items; the first used is `first` */
	size_t queue_size, first, count;
	size_t queued;              /* bytes */
	size_t high, low;           /* high and low watermark of the queue, bytes */
	size_t last_read;           /* bytes */
	uint32_t armed, ready;      /* events */
	int fd;
	int lost;
	enum taker taker;
	bool watching, in_ring, listed;
	bool context_given;         /* connection_lost() is called in it, too */
	bool closing, eof, paused, reading, connected, protocol_paused;
};

/* stream_read.c.  Returns -1 with an exception that ends the loop's run. */
int weftpy_stream_read(struct stream *s);

/* reader.c.  Returns 1 if one of asyncio's own readers has taken the data, 0 if Python must be
 * called, -1 with the exception that data_received() would have raised. */
int weftpy_reader_feed(struct weftpy_state *state, PyObject *protocol, const char *at,
                       size_t count);

/* stream_write.c */
int  weftpy_stream_flush(struct stream *s); /* send what the socket accepts; -1 as above */
int  weftpy_stream_maybe_pause(struct stream *s);
int  weftpy_stream_writelines(struct stream *s, PyObject *list);
void weftpy_stream_drop_queue(struct stream *s);

/* py_stream.c */
int  weftpy_stream_update(struct stream *s);     /* rule 1 */
int  weftpy_stream_close(struct stream *s);
int  weftpy_stream_fatal(struct stream *s, const char *message); /* takes the exception */

#endif
