/* chan.h - a channel, as select and the channel's own calls share it.  Private.
 *
 * Needs: gate.h.  Thread: inside of the gate, but for what is set once.
 */
#ifndef WEFT_THREADLET_CHAN_H
#define WEFT_THREADLET_CHAN_H

#include <weft/chan.h>
#include "threadlet/gate.h"

/* What senders have, or receivers. */
struct weft__chan_side {
	weft__a64         count; /* of the values that have gone through, from the first on */
	char             *place; /* where the next one is put, or taken from */
	uint64_t          other; /* what the other side's count was at least */
	struct weft__lock lock;  /* of a shared channel that has a buffer */
	struct weft__luck luck;  /* of those who look on before they wait, */
	weft__a32         pauses; /* and how long they do */
} __attribute__((aligned(64))); /* each side works in its own line */

struct weft_chan {
	struct weft__gate_pair pair;
	struct weft__waits senders, receivers; /* at most one has any */
	size_t    value_bytes; /* set once, as the next three */
	size_t    capacity;
	char     *end;         /* of the values */
	void     *memory;      /* the channel's */
	weft__a32 refs;
	bool      closed;
	struct weft__chan_side in, out;
	char      values[];
};

static inline struct weft__gate *
weft__chan_gate(weft_chan *chan)
{
	return &chan->pair.gate;
}

/* Inside of the gate: do it if it can be done now.  WEFT_EAGAIN if not; else 0 or
 * WEFT_EPIPE, and `*wake` is to be woken with 0 outside of the gate, if not NULL. */
int weft__chan_send(weft_chan *chan, const void *value, struct weft__wait **wake);
int weft__chan_recv(weft_chan *chan, void *out, struct weft__wait **wake);

#endif
