/* trim.c - giving back what a loop keeps for reuse.
 *
 * Each part gives back what nothing uses now.  It may be called from any callback: they
 * are made where no pointer into these parts is held, but for the data of an op that
 * receives again and again, which lies in a buffer; so that stays during a turn.
 *
 * Lanes are not given back: they belong to the threads that post.
 */
#include "loop/loop.h"

static size_t
trim_ring(struct weft__ring *ring)
{
	size_t bytes = ring->room * sizeof(*ring->calls);

	if (ring->count > 0)
		return 0;
	weft__ring_fini(ring);
	return bytes;
}

static size_t
trim_crew(weft_loop *loop)
{
	return weft__load(&loop->crew, WEFT__ACQUIRE) ? weft__crew_ops.trim(loop) : 0;
}

static size_t
trim_promises(weft_loop *loop)
{
	const struct weft__loop_promises *promises = weft__loop_promises(loop);

	return promises ? promises->trim(loop) : 0;
}

static size_t
trim_backend(weft_loop *loop)
{
	struct weft__backend *backend = &loop->backend;
	size_t bytes = 0;

	/* Events that were fetched are of known generations. */
	if (backend->events_count == 0)
		bytes += weft__fds_trim(&backend->fds);
	if (loop->in_turn || (loop->bound && loop->bound != (uintptr_t)weft__thread_self()))
		return bytes;
	if (backend->ops && backend->ops->trim)
		bytes += backend->ops->trim(backend);
	return bytes + weft__ready_trim(backend);
}

int64_t
weft_loop_trim(weft_loop *loop)
{
	int rc;

	loop = weft__loop_or_current(loop);
	rc = weft__loop_check(loop, "weft_loop_trim");
	if (rc < 0)
		return rc;
	return (int64_t)(trim_crew(loop) + trim_ring(&loop->ticks) + trim_ring(&loop->microtasks)
	                 + weft__numbers_trim(loop) + weft__wheel_trim(&loop->wheel)
	                 + trim_backend(loop) + trim_promises(loop)
	                 + (loop->net ? loop->net_trim(loop->net) : 0));
}
