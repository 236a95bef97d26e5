/* quota.c - how many connections of a listener are open.
 *
 * Counted by the listener's loop as they come, and by any thread as they go.
 *
 *   1. `full` is ARMED by the listener's loop after it has found no room, and then it looks
 *      once more; who leaves counts first and then looks at `full` (F, C; both
 *      sequentially consistent): one of the two sees the other.
 *   2. Whoever changes ARMED to TOLD sends the node, which makes it 0 again: so the node is
 *      sent once at a time.  With it go a reference to the loop and one to the quota.
 *   3. The quota lives as long as its listener, its connections and the node.
 */
#include "net/stream/stream.h"

enum { ARMED = 1, TOLD };

struct weft__quota {
	weft__a32 count; /* C */
	weft__a32 refs;
	weft__a32 full; /* F */
	uint32_t max;
	weft_fn fn; /* NULL: the listener has gone */
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

/* On the listener's loop. */
static void
on_room(void *arg)
{
	struct weft__quota *quota = arg;
	weft_loop *loop = quota->loop;

	loop->own_run++;
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

/* Take back what nobody has been told of. */
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

void
weft__quota_leave(struct weft__quota *quota)
{
	uint32_t armed = ARMED;

	(void)weft__add(&quota->count, UINT32_MAX, WEFT__SEQ_CST); /* C */
	if (weft__load(&quota->full, WEFT__SEQ_CST) == ARMED       /* F */
	    && weft__cas(&quota->full, &armed, TOLD, WEFT__SEQ_CST))
		weft__loop_tell(quota->loop, &quota->node, on_room, quota);
	unref(quota);
}

void
weft__quota_drop(struct weft__quota *quota)
{
	quota->fn = NULL;
	disarm(quota);
	/* A loop that has stopped runs no nodes any more. */
	if (weft__load(&quota->full, WEFT__SEQ_CST) == TOLD
	    && weft_loop_state(quota->loop) == WEFT_STOPPED) {
		weft_loop_unref(quota->loop);
		unref(quota);
	}
	unref(quota);
}
