/* listen_handshake.c - TLS handshakes of accepted connections.
 *
 * Each handshake runs on a threadlet of its own, on any loop, and its struct is on the stack of
 * that threadlet.  A handshake may take long, so all handshakes of a set can be cut: interrupted,
 * and made to fail.  A handshake leaves the set under the lock of the set, and has succeeded only
 * after that: so a connection whose handshake was cut is not used, and a connection in use is not
 * interrupted.
 */
#include "net/listen/listener.h"
#include "net/tls/tls.h"

struct weft__handshake {
	struct weft__handshake *prev, *next;
	weft_stream *stream;
	bool cut;
};

static bool
handshake_begin(struct weft__handshakes *all, struct weft__handshake *handshake)
{
	bool may;

	weft__lock_take(&all->lock);
	may = !all->over;
	if (may) {
		handshake->next = all->first;
		if (handshake->next)
			handshake->next->prev = handshake;
		all->first = handshake;
	}
	weft__lock_give(&all->lock);
	return may;
}

/* Remove the handshake from the set.  False if it was cut. */
static bool
handshake_end(struct weft__handshakes *all, struct weft__handshake *handshake)
{
	weft__lock_take(&all->lock);
	*(handshake->prev ? &handshake->prev->next : &all->first) = handshake->next;
	if (handshake->next)
		handshake->next->prev = handshake->prev;
	weft__lock_give(&all->lock);
	return !handshake->cut;
}

bool
weft__handshake(struct weft__handshakes *all, weft_stream *stream)
{
	struct weft__handshake handshake = { .stream = stream };
	int rc;

	if (!all->tls)
		return true;
	if (!handshake_begin(all, &handshake))
		return false;
	rc = weft_tls_start(stream, all->tls, WEFT_TLS_SERVER, NULL, weft_after(all->limit_ns));
	return handshake_end(all, &handshake) && rc == 0;
}

void
weft__handshakes_cut(struct weft__handshakes *all)
{
	weft__lock_take(&all->lock);
	all->over = true;
	for (struct weft__handshake *h = all->first; h; h = h->next) {
		h->cut = true;
		weft_stream_interrupt(h->stream);
	}
	weft__lock_give(&all->lock);
}
