/* quota.c - counts the open connections of a listener.
 *
 * The listener's loop adds connections, and any thread removes them.
 *
 *   1. The listener's loop sets `full` to ARMED after it has found no room, and then tries
 *      again.  A thread that removes a connection decrements the count first, and then reads
 *      `full` (F, C; both sequentially consistent).  So at least one of the two sees the
 *      other's change.
 *   2. The thread that changes ARMED to NOTIFIED sends the node, and the node resets `full` to 0.
 *      So the node is never queued twice.  It carries a reference to the loop and one to the
 *      quota.
 *   3. The quota lives as long as its listener, its connections and the node.
 *   4. A thread counts itself in `senders` before it may change ARMED to NOTIFIED, and until it has
 *      sent the node (S).  The listener is freed on its loop's thread, or after the loop has
 *      stopped, and waits for such threads.  So a loop that continues finds the node before it
 *      ends, and to a loop that has stopped no thread sends it later.
 */
#include "net/stream/stream.h"

enum { ARMED = 1, NOTIFIED };

struct weft__quota {
	weft__a32 count; /* C */
	weft__a32 refs;
	weft__a32 full;    /* F */
	weft__a32 senders; /* S */
	uint32_t max;
	weft_fn fn; /* NULL: the listener is gone */
	void *arg;
	weft_loop *loop; /* while full */
	struct weft__node_head node;
};

struct weft__quota *
weft__quota_new(uint32_t max, weft_fn fn, void *arg)
{
	struct weft__quota *quota = weft__alloc_zero(sizeof(*quota));

	if (!quota)
		return NULL;
	weft__store(&quota->refs, 1, WEFT__RELAXED);
	quota->max = max;
	quota->fn = fn;
	quota->arg = arg;
	return quota;
}

static void
unref(struct weft__quota *quota)
{
	if (weft__add(&quota->refs, UINT32_MAX, WEFT__ACQ_REL) == 1)
		weft__sys->release(quota);
}

/* Runs on the listener's loop. */
static void
on_room(void *arg)
{
	struct weft__quota *quota = arg;
	weft_loop *loop = quota->loop;

	weft__store(&quota->full, 0, WEFT__SEQ_CST);
	if (quota->fn)
		quota->fn(quota->arg);
	unref(quota);
	weft_loop_unref(loop);
}

static bool
try_enter(struct weft__quota *quota)
{
	uint32_t count = weft__load(&quota->count, WEFT__SEQ_CST);

	while (count < quota->max)
		if (weft__cas(&quota->count, &count, count + 1, WEFT__SEQ_CST)) {
			(void)weft__add(&quota->refs, 1, WEFT__RELAXED);
			return true;
		}
	return false;
}

/* Undo ARMED, unless the node was sent. */
static void
disarm(struct weft__quota *quota)
{
	uint32_t armed = ARMED;

	if (weft__cas(&quota->full, &armed, 0, WEFT__SEQ_CST)) {
		weft_loop_unref(quota->loop);
		unref(quota);
	}
}

bool
weft__quota_enter(struct weft__quota *quota, weft_loop *loop)
{
	if (try_enter(quota))
		return true;
	if (weft__load(&quota->full, WEFT__RELAXED))
		return false;
	quota->loop = loop;
	weft_loop_ref(loop);
	(void)weft__add(&quota->refs, 1, WEFT__RELAXED);
	weft__store(&quota->full, ARMED, WEFT__SEQ_CST); /* F */
	if (!try_enter(quota))
		return false;
	disarm(quota);
	return true;
}

/* Send the node, unless it is no longer wanted or another thread sends it. */
static void
notify(struct weft__quota *quota)
{
	uint32_t armed = ARMED;

	(void)weft__add(&quota->senders, 1, WEFT__RELAXED); /* S */
	if (weft__cas(&quota->full, &armed, NOTIFIED, WEFT__SEQ_CST))
		weft__loop_send(quota->loop, &quota->node, on_room, quota);
	(void)weft__add(&quota->senders, UINT32_MAX, WEFT__RELEASE); /* S */
}

void
weft__quota_leave(struct weft__quota *quota)
{
	(void)weft__add(&quota->count, UINT32_MAX, WEFT__SEQ_CST); /* C */
	if (weft__load(&quota->full, WEFT__SEQ_CST) == ARMED)      /* F */
		notify(quota);
	unref(quota);
}

/* NOTIFIED releases, and this acquires, that its thread counts itself: invariant 4. */
static bool
was_notified(struct weft__quota *quota)
{
	if (weft__load(&quota->full, WEFT__SEQ_CST) != NOTIFIED)
		return false;
	while (weft__load(&quota->senders, WEFT__ACQUIRE) > 0) /* S */
		weft__sys->yield();
	return true;
}

void
weft__quota_drop(struct weft__quota *quota)
{
	quota->fn = NULL;
	disarm(quota);
	/* A loop that has stopped runs no more nodes. */
	if (was_notified(quota) && weft_loop_state(quota->loop) == WEFT_STOPPED) {
		weft_loop_unref(quota->loop);
		unref(quota);
	}
	unref(quota);
}
