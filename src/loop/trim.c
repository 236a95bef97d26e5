/* trim.c - freeing memory that a loop keeps for reuse.
 *
 * Each part frees what is unused now.  Any callback may call it: callbacks run where no
 * pointer into these parts is held.  The one exception is the data of a multishot receive,
 * which is in a buffer: so that buffer is kept during an iteration.
 *
 * Producer queues are not freed: they belong to the threads that post.
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
trim_sched(weft_loop *loop)
{
	return weft__load(&loop->sched, WEFT__ACQUIRE) ? weft__sched_ops.trim(loop) : 0;
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

	/* Fetched events refer to generations of these entries. */
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
	return (int64_t)(trim_sched(loop) + trim_ring(&loop->ticks) + trim_ring(&loop->microtasks)
	                 + weft__numbers_trim(loop) + weft__wheel_trim(&loop->wheel)
	                 + trim_backend(loop) + trim_promises(loop)
	                 + (loop->net ? loop->net_trim(loop->net) : 0));
}
