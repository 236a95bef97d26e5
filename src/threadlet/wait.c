/* wait.c - how a threadlet waits, and how a wait ends.
 *
 * A waiter says what the threadlet waits for, and carries the result.  The code that ends the
 * wait claims the waiter first; see threadlet.h.  Deadlines, cancellation and interruption are
 * requests to end early.  A waiter with a function request_end() decides what follows: that of an
 * op cancels the op, and the wait ends when the op has finished.  All other waits end at once.
 *
 * A wait that fails leaves a text for weft_detail(): the call and the error, from a table,
 * unless the error came with its own text.
 */
#include "threadlet/threadlet.h"

/* --- texts of waits that failed ----------------------------------------- */

/* The error parts match weft_strerror().  An entry that several calls share names the object. */
#define WAIT_TEXTS(what, call)                                                     \
	{                                                                          \
		what, call ": timed out", call ": canceled", call ": interrupted", \
			call ": closed or shutting down on this side"              \
	}

static const struct wait_texts {
	const char *what;
	const char *timed_out, *canceled, *interrupted, *shut_down;
} wait_texts[] = {
	WAIT_TEXTS("accept", "weft_listener_accept"),
	WAIT_TEXTS("chan recv", "weft_chan_recv"),
	WAIT_TEXTS("chan send", "weft_chan_send"),
	WAIT_TEXTS("child", "weft_child_wait"),
	WAIT_TEXTS("cond", "weft_cond_wait"),
	WAIT_TEXTS("dag", "weft_dag_run_wait"),
	WAIT_TEXTS("dgram", "datagram"),
	WAIT_TEXTS("dns", "name resolution"),
	WAIT_TEXTS("event", "weft_event_wait"),
	WAIT_TEXTS("fd", "weft_wait_fd"),
	WAIT_TEXTS("file", "file operation"),
	WAIT_TEXTS("group", "weft_group_wait"),
	WAIT_TEXTS("join", "weft_join"),
	WAIT_TEXTS("list", "weft_threadlet_list"),
	WAIT_TEXTS("mutex", "weft_mutex_lock"),
	WAIT_TEXTS("op", "weft_op_wait"),
	WAIT_TEXTS("promise", "weft_await"),
	WAIT_TEXTS("read", "weft_stream_read"),
	WAIT_TEXTS("scope", "weft_scope_close"),
	WAIT_TEXTS("select", "weft_select"),
	WAIT_TEXTS("sem", "weft_sem_acquire"),
	WAIT_TEXTS("signal", "weft_signal_wait"),
	WAIT_TEXTS("sleep", "weft_sleep"),
	WAIT_TEXTS("sleep until", "weft_sleep_until"),
	WAIT_TEXTS("stop", "weft_loop_wait_stopped"),
	WAIT_TEXTS("work", "weft_work"),
	WAIT_TEXTS("write", "weft_stream_write"),
};

static const char *
pick_text(const struct wait_texts *texts, int error)
{
	switch (error) {
	case WEFT_ETIMEDOUT:
		return texts->timed_out;
	case WEFT_ECANCELED:
		return texts->canceled;
	case WEFT_EINTR:
		return texts->interrupted;
	case WEFT_ESHUTDOWN:
		return texts->shut_down;
	default:
		return weft_strerror(error);
	}
}

const char *
weft__wait_text(const char *what, int error)
{
	size_t count = sizeof(wait_texts) / sizeof(wait_texts[0]);

	for (size_t i = 0; i < count; i++)
		if (__builtin_strcmp(wait_texts[i].what, what) == 0)
			return pick_text(&wait_texts[i], error);
	return weft_strerror(error);
}

/* A text that was passed along with this error stays. */
void
weft__wait_failed(const struct weft__waiter *waiter, int error)
{
	struct weft__failure *failure = &waiter->threadlet->failure;
	const struct weft__words *words = failure->words;

	if (words && failure->text == words->text && words->error == error)
		return;
	failure->text = weft__wait_text(waiter->what, error);
}

/* --- waiting ------------------------------------------------------------ */

/* The error that every wait of the threadlet returns at once; 0: it can wait. */
static int
why_not(const struct weft__threadlet *self)
{
	if (weft__loop_is_forked(self->sched->loop))
		return weft__misuse(WEFT_EWRONGLOOP, "a forked child cannot continue "
		                                     "with its parent's loop");
	if (weft__loop_is_ending(self->sched->loop))
		return weft__fail(WEFT_ESHUTDOWN, "the loop has stopped");
	return self->why ? weft__fail(self->why, weft_strerror(self->why)) : 0;
}

int
weft__may_wait(uint64_t deadline_ns)
{
	struct weft__threadlet *self = weft__self();
	int rc;

	if (deadline_ns == WEFT_NOWAIT)
		return weft__fail(WEFT_ETIMEDOUT, "timed out: WEFT_NOWAIT does not wait");
	if (!self)
		return weft__fail(WEFT_ENOSUSPEND, "this call has to wait, which only a threadlet "
		                                   "can do");
	rc = why_not(self);
	if (rc == 0 && self->interrupted) {
		self->interrupted = false;
		rc = weft__fail(WEFT_EINTR, weft_strerror(WEFT_EINTR));
	}
	return rc;
}

/* The text is static, so it can be a part of the new one.  The other errors keep theirs: they are
 * frequent, and a later wait that ends with the same error must not find a formatted text. */
int
weft__wait_refused(int error, const char *call)
{
	return error == WEFT_ESHUTDOWN || error == WEFT_ENOSUSPEND
	               ? weft__fail_in(error, call, weft_detail())
	               : error;
}

/* An interrupt ends one wait only.  So this leaves it to the next wait, and does not report it. */
int
weft_can_suspend(void)
{
	const struct weft__threadlet *self = weft__self();
	int rc = self ? why_not(self) : 0;

	return rc < 0 ? rc : self != NULL;
}

void
weft__request_end(struct weft__threadlet *threadlet, int why)
{
	struct weft__waiter *waiter = threadlet->waiter;

	if (!waiter || waiter->deaf)
		return;
	if (waiter->request_end)
		waiter->request_end(waiter, why);
	else if (weft__claim(waiter))
		weft__wake(waiter, why);
}

void
weft__wait_until(struct weft__threadlet *self, uint64_t deadline_ns)
{
	struct weft_wheel *wheel = weft__loop_wheel(self->sched->loop);

	if (__builtin_expect(self->entry.block != NULL, 0))
		(void)weft__wheel_drop(wheel, &self->entry);
	self->entry.kind = WEFT__ENTRY_THREADLET | WEFT__ENTRY_BACKGROUND
	                   | (self->waiter->sleeps ? 0 : WEFT__ENTRY_DEADLINE);
	if (weft__wheel_add(wheel, &self->entry, deadline_ns) < 0)
		weft__request_end(self, WEFT_ENOMEM);
}

int
weft__yield(struct weft__threadlet *self)
{
	self->sched->streak = 0;
	weft__make_ready(weft__loop_here(), self);
	weft__switch_out(self);
	return 0;
}

/* --- queues ------------------------------------------------------------- */

void
weft__wait_drop(struct weft__wait *wait)
{
	struct weft__waits *queue = weft__get(wait->queue);
	struct weft__wait *next, *prev;

	if (!queue)
		return;
	next = weft__get(wait->next);
	prev = weft__get(wait->prev);
	if (prev)
		weft__put(prev->next, next);
	else
		weft__put(queue->first, next);
	if (next)
		weft__put(next->prev, prev);
	else
		weft__put(queue->last, prev);
	weft__put(wait->queue, NULL);
}

/* --- deadlines ---------------------------------------------------------- */

void
weft__sched_expire(weft_loop *loop, struct weft__wheel_entry *entry)
{
	struct weft__threadlet *t;

	(void)loop;
	if ((entry->kind & WEFT__ENTRY_KIND) == WEFT__ENTRY_SCOPE) {
		weft__scope_end(weft__entry_scope(entry), WEFT_ETIMEDOUT);
		return;
	}
	t = weft__entry_threadlet(entry);
	if (t->waiter && t->waiter->sleeps)
		weft__request_end(t, 0);
	else
		weft__request_end(t, WEFT_ETIMEDOUT);
}

/* --- ops ---------------------------------------------------------------- */

void
weft__op_waited(weft_op *op, int64_t result, void *arg)
{
	struct weft__waiter *waiter = arg;
	const struct weft__op *own = (struct weft__op *)(void *)op;

	if (op->more || !weft__claim(waiter))
		return;
	if (own->kind == WEFT__OP_OWN && own->has_text)
		weft__pass_words((int)result, &waiter->threadlet->failure);
	weft__wake(waiter, result);
}
