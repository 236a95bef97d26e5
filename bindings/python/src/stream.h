/* stream.h - the transport of a connected socket, as stream.c and its parts see it.
 *
 *   1. The watch is armed for what is wanted: reading unless paused, closing or at the
 *      end; writing while something is queued.  While it is armed for anything the
 *      loop's list owns a reference; else whoever holds the transport does.
 *   2. Readiness puts the transport into the ring, once; it reads and writes from there.
 *   3. `lost` counts from when connection_lost() is planned: nothing is read, sent or
 *      queued afterwards, and the queue is empty.
 *   4. Calls of the protocol may do anything to the transport, its end included: who
 *      makes them holds a reference, and looks at the fields again.
 */
#ifndef WEFTPY_STREAM_H
#define WEFTPY_STREAM_H

#include "core.h"

/* How the protocol takes what is read. */
enum taker { TAKES_BYTES, TAKES_BUFFER, TAKES_TLS, TAKES_STREAM };

struct piece { /* of the queue */
	PyObject   *bytes;
	const char *at; /* what is left of it */
	size_t      left;
};

struct stream {
	PyObject_HEAD
	PyObject *extra;            /* the slot `_extra` of asyncio.BaseTransport */
	PyObject *mixin[4];         /* slots of _FlowControlMixin: getters stand before them */
	PyObject *weak;             /* weak references */
	weft_watch watch;
	struct loop_core *core;     /* NULL before _start() and after _release() */
	struct stream *next, **link;/* in the loop's list */
	PyObject *sock, *protocol, *server, *context, *empty_waiter;
	struct piece *queue;        /* of queue_size, from first on */
	size_t queue_size, first, count;
	size_t queued;              /* bytes */
	size_t high, low;           /* marks of the queue, bytes */
	size_t last_read;           /* bytes */
	uint32_t armed, ready;      /* events */
	int fd;
	int lost;
	enum taker taker;
	bool watching, in_ring;
	bool context_given;         /* so its end is told in it as well */
	bool closing, eof, paused, reading, connected, protocol_paused;
};

/* stream_read.c: -1 with what ends the loop's run. */
int weftpy_stream_read(struct stream *s);

/* reader.c: 1 if a reader of asyncio's own has it now, 0 if Python is to be asked, -1 with
 * what a call of data_received() would have raised. */
int weftpy_reader_feed(struct weftpy_state *state, PyObject *protocol, const char *at,
                       size_t count);

/* stream_write.c */
int  weftpy_stream_flush(struct stream *s); /* what the socket takes; -1 as above */
int  weftpy_stream_maybe_pause(struct stream *s);
int  weftpy_stream_writelines(struct stream *s, PyObject *list);
void weftpy_stream_drop_queue(struct stream *s);

/* stream.c */
int  weftpy_stream_update(struct stream *s);     /* rule 1 */
int  weftpy_stream_close(struct stream *s);
int  weftpy_stream_fatal(struct stream *s, const char *message); /* takes the exception */

#endif
