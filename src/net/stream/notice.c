/* notice.c - interrupts from any thread; see notice.h. */
#include "net/stream/notice.h"
#include "threadlet/threadlet.h"

/* The interrupted objects of a loop.  Created on first use, freed with the loop. */
struct notices {
	struct weft__lock lock;
	bool queued; /* the node is queued */
	struct weft__notice *first;
	struct weft__node_head node;
	weft_loop *loop;
};

static struct notices *
notices_of(const struct weft__notice *notice)
{
	weft_loop *loop = weft__notice_loop(notice);

	return loop ? loop->notices : NULL;
}

int
weft__notice_settle(struct weft__notice *notice, weft_loop *loop)
{
	struct notices *all = loop->notices;

	if (!all) {
		all = weft__alloc_zero(sizeof(*all));
		if (!all)
			return weft__fail(WEFT_ENOMEM, "out of memory");
		all->loop = loop;
		loop->notices = all;
	}
	weft__lock_take(&notice->lock);
	weft__store(&notice->forks, loop->forks, WEFT__RELAXED);
	weft__store(&notice->loop, (uintptr_t)loop, WEFT__SEQ_CST); /* S */
	weft__lock_give(&notice->lock);
	return 0;
}

/* The caller holds the lock of the loop's list. */
static void
notice_unlist(struct weft__notice *notice)
{
	*notice->link = notice->next;
	if (notice->next)
		notice->next->link = notice->link;
	notice->link = NULL;
}

void
weft__notice_drop(struct weft__notice *notice)
{
	struct notices *all = notices_of(notice);

	if (!all)
		return;
	weft__lock_take(&notice->lock);
	weft__lock_take(&all->lock);
	if (notice->link)
		notice_unlist(notice);
	weft__store(&notice->loop, 0, WEFT__SEQ_CST);
	weft__lock_give(&all->lock);
	weft__lock_give(&notice->lock);
}

static struct weft__notice *
notice_pop(struct notices *all)
{
	struct weft__notice *notice;

	weft__lock_take(&all->lock);
	notice = all->first;
	if (notice)
		notice_unlist(notice);
	else
		all->queued = false;
	weft__lock_give(&all->lock);
	return notice;
}

static void
on_told(void *arg)
{
	struct notices *all = arg;
	struct weft__notice *notice;

	while ((notice = notice_pop(all)))
		if (weft__notice_is_marked(notice))
			notice->tell(notice);
}

static void
notice_list(struct weft__notice *notice, weft_loop *loop)
{
	struct notices *all = loop->notices;

	weft__lock_take(&all->lock);
	if (!notice->link) {
		notice->next = all->first;
		notice->link = &all->first;
		if (notice->next)
			notice->next->link = &notice->next;
		all->first = notice;
		if (!all->queued) {
			all->queued = true;
			weft__loop_tell(loop, &all->node, on_told, all);
		}
	}
	weft__lock_give(&all->lock);
}

/* A forked child only sets the mark: it has no loop thread to notify, and a thread that held a
 * lock no longer exists. */
void
weft__notice_send(struct weft__notice *notice)
{
	weft_loop *loop;

	if (weft__exchange(&notice->mark, 1, WEFT__SEQ_CST)) /* I */
		return;                                      /* already interrupted */
	if (!weft__load(&notice->loop, WEFT__SEQ_CST)        /* S */
	    || weft__load(&notice->forks, WEFT__RELAXED)
	               != weft__load(&weft__program.forks, WEFT__RELAXED))
		return;
	weft__lock_take(&notice->lock);
	loop = weft__notice_loop(notice);
	if (loop)
		notice_list(notice, loop);
	weft__lock_give(&notice->lock);
}
