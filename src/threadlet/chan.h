/* chan.h - a channel, as select and the channel's own calls share it.  Private.
 *
 * Needs: gate.h.  Thread: inside of the gate, but for what is set once.
 */
#ifndef WEFT_THREADLET_CHAN_H
#define WEFT_THREADLET_CHAN_H

#include <weft/chan.h>
#include "threadlet/gate.h"

struct weft_chan {
	struct weft__gate  gate;
	struct weft__waits senders, receivers; /* at most one has any */
	size_t    value_bytes; /* set once, as the next */
	size_t    capacity;
	char     *end;         /* of the values; set once, too */
	char     *head;        /* where the oldest value is, */
	char     *tail;        /* and where the next one goes */
	weft__a64 count;       /* buffered; read by any */
	weft__a32 refs;
	bool      closed;
	char      values[] __attribute__((aligned(16)));
};

/* Inside of the gate: do it if it can be done now.  WEFT_EAGAIN if not; else 0 or
 * WEFT_EPIPE, and `*wake` is to be woken with 0 outside of the gate, if not NULL. */
int weft__chan_send(weft_chan *chan, const void *value, struct weft__wait **wake);
int weft__chan_recv(weft_chan *chan, void *out, struct weft__wait **wake);

#endif
