/* chan.h - a channel, as select and the channel's own calls share it.  Private.
 *
 * Needs: waitable.h.  Thread: inside the waitable, except for members that are set once, and
 * where invariant 4 of chan.c allows one lock.
 */
#ifndef WEFT_THREADLET_CHAN_H
#define WEFT_THREADLET_CHAN_H

#include <weft/chan.h>
#include "threadlet/waitable.h"

/* The state of one direction: sending or receiving. */
struct weft__chan_direction {
	weft__a64         count; /* of values that went through, ever */
	char             *at; /* where the next value is stored, or taken from */
	uint64_t          other; /* a lower bound of the other direction's count */
	struct weft__lock lock;  /* of a shared channel that has a buffer */
	struct weft__spin_backoff backoff;  /* adaptive spin before a wait, */
	weft__a32         pauses; /* and its pauses between two checks */
} __attribute__((aligned(64))); /* each direction works in its own line */

struct weft_chan {
	struct weft__waitable_pair pair;
	struct weft__waits senders, receivers; /* one is empty, unless one select is in both */
	size_t    value_bytes; /* set once, as the next three */
	size_t    capacity;
	char     *end;         /* of the values */
	void     *memory;      /* the allocation */
	weft__a32 refs;
	bool      closed;
	struct weft__chan_direction in, out;
	char      values[];
};

static inline struct weft__waitable *
weft__chan_waitable(weft_chan *chan)
{
	return &chan->pair.waitable;
}

/* Inside the waitable: send or receive if that is possible now.  Returns WEFT_EAGAIN if
 * not; else 0 or WEFT_ECLOSED, and the caller wakes `*wake`, unless NULL, with 0 once it has
 * left the waitable. */
int weft__chan_send(weft_chan *chan, const void *value, struct weft__wait **wake);
int weft__chan_recv(weft_chan *chan, void *out, struct weft__wait **wake);

#endif
