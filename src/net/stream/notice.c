/* notice.c - interrupts from any thread; see notice.h. */
#include "net/stream/stream.h"
#include "threadlet/threadlet.h"

/* Invariant 2. */
void
weft__on_notice(struct weft__mailbox *box, struct weft__letter *letter)
{
	struct weft__notice *notice =
		(struct weft__notice *)(void *)((char *)letter
	                                        - offsetof(struct weft__notice, letter));

	(void)box;
	weft__lock_take(&notice->lock);
	notice->posted = false;
	weft__lock_give(&notice->lock);
	if (weft__notice_loop(notice) && weft__notice_is_marked(notice))
		notice->tell(notice);
}

void
weft__notice_settle(struct weft__notice *notice, weft_loop *loop)
{
	weft__lock_take(&notice->lock);
	weft__store(&notice->forks, weft__loop_forks(loop), WEFT__RELAXED);
	weft__store(&notice->loop, (uintptr_t)loop, WEFT__SEQ_CST); /* S */
	weft__lock_give(&notice->lock);
}

/* Invariant 2: once it has no loop, no letter of it is posted, and the drain takes the last. */
void
weft__notice_drop(struct weft__notice *notice)
{
	weft_loop *loop = weft__notice_loop(notice);

	if (!loop)
		return;
	weft__lock_take(&notice->lock);
	weft__store(&notice->loop, 0, WEFT__SEQ_CST);
	weft__lock_give(&notice->lock);
	if (notice->posted)
		weft__mailbox_drain(&weft__net_of(loop)->notices);
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
	if (loop && !notice->posted)
		notice->posted = weft__mailbox_post(&weft__net_of(loop)->notices, &notice->letter);
	weft__lock_give(&notice->lock);
}
