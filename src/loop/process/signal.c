/* signal.c - signals: one handler for the process, and their delivery to each loop.
 *
 * The handler does only what a handler may do.  It walks the list of loops that use signals,
 * sets a bit in a word of each, and writes a byte to a pipe that the loop watches.  The loop
 * takes the bits, finishes ops and calls watches.  So no thread has to block a signal, no
 * extra thread is needed, and every interested loop gets each signal.
 *
 *   1. taken[n].loops counts the loops whose `wanted` has bit n.  While it is not 0 our
 *      handler is installed for the signal, and `before` is the action it replaced.
 *   2. The handler sets a bit (B) before it writes the byte, and the loop reads the byte
 *      before it takes the bits (T): so for every bit a byte has arrived or will arrive.
 *   3. A handler counts itself in (I) before it reads the list (L).  A thread that removes a
 *      loop from the list waits until no handler is counted.  All are sequentially consistent,
 *      so a handler that counts itself later does not find that loop.
 *   4. The handler waits for no thread, so the thread that it interrupts may hold the lock.
 *   5. A forked child has restored all signals; its loops are memory only.  Another thread of the
 *      parent may have been about to install or to remove the handler.  So the child gives back
 *      every signal that is `known`, whatever `loops` is.  `known` is set before signal_take(),
 *      which fills `before` and then installs the handler, and is never cleared.  signal_give()
 *      changes nothing while the handler is not installed.
 *
 * Deliveries are not counted: a signal that arrives twice before the loop reads it is
 * delivered once.
 */
#include <signal.h>
#include "loop/process/process.h"
#include "loop/process/signal.h"

#define BIT(signo) (UINT64_C(1) << (signo))
#define DUE        0x100000u /* in a watch's flags: must be called */
#define READS_MAX  64        /* of the pipe, per callback */

static struct {
	struct weft__lock lock; /* for writing the list and each `wanted`, and for `taken` */
	weft__aptr first;       /* the list of struct weft__signals; handlers read it */
	weft__a32 inside;       /* handlers that are running */
	struct {
		uint32_t loops;
		bool known; /* invariant 5 */
		struct sigaction before;
	} taken[WEFT__SIGNALS];
} all;

WEFT_STATIC_ASSERT(sizeof(void *) == sizeof(uint64_t), "a set fits cancel_arg");

/* --- the process -------------------------------------------------------- */

static struct weft__signals *
loop_signal_load(weft__aptr *place)
{
	return (struct weft__signals *)weft__load(place, WEFT__SEQ_CST);
}

/* The signal handler: it can interrupt any code. */
static void
loop_signal_on_signal(int signo)
{
	(void)weft__add(&all.inside, 1, WEFT__SEQ_CST); /* I */
	for (struct weft__signals *s = loop_signal_load(&all.first); s;
	     s = loop_signal_load(&s->next)) { /* L */
		if (!(weft__load(&s->wanted, WEFT__RELAXED) & BIT(signo)))
			continue;
		(void)weft__or(&s->came, BIT(signo), WEFT__ACQ_REL); /* B */
		/* A full pipe is readable too, so a failed write is no problem. */
		while (weft__sys->write(s->fds[1], "", 1) == -EINTR)
			;
	}
	(void)weft__add(&all.inside, UINT32_MAX, WEFT__RELEASE);
}

static void
set_wanted(struct weft__signals *s, int signo, bool on)
{
	uint64_t rest = weft__load(&s->wanted, WEFT__RELAXED) & ~BIT(signo);

	weft__store(&s->wanted, on ? rest | BIT(signo) : rest, WEFT__SEQ_CST);
}

/* The bit is set first, so that no signal is lost once the handler is installed. */
static int
want(struct weft__signals *s, int signo)
{
	int rc = 0;

	weft__lock_take(&all.lock);
	set_wanted(s, signo, true);
	all.taken[signo].known = true;
	if (all.taken[signo].loops++ == 0)
		rc = weft__sys->signal_take(signo, loop_signal_on_signal, &all.taken[signo].before);
	if (rc < 0) {
		all.taken[signo].loops--;
		set_wanted(s, signo, false);
	}
	weft__lock_give(&all.lock);
	return rc;
}

/* The lock is held. */
static void
unwant_locked(struct weft__signals *s, int signo)
{
	weft__assert(all.taken[signo].loops > 0);
	if (--all.taken[signo].loops == 0) /* cannot fail: the handler was ours */
		(void)weft__sys->signal_give(signo, &all.taken[signo].before);
	set_wanted(s, signo, false);
}

static void
unwant(struct weft__signals *s, int signo)
{
	weft__lock_take(&all.lock);
	unwant_locked(s, signo);
	weft__lock_give(&all.lock);
}

static void
enlist(struct weft__signals *s)
{
	weft__lock_take(&all.lock);
	weft__store(&s->next, (uintptr_t)loop_signal_load(&all.first), WEFT__SEQ_CST);
	weft__store(&all.first, (uintptr_t)s, WEFT__SEQ_CST); /* L */
	weft__lock_give(&all.lock);
}

/* On return no handler can reach `s`. */
static void
delist(struct weft__signals *s)
{
	weft__aptr *link = &all.first;

	weft__lock_take(&all.lock);
	for (int signo = 1; signo < WEFT__SIGNALS; signo++)
		if (weft__load(&s->wanted, WEFT__RELAXED) & BIT(signo))
			unwant_locked(s, signo);
	while (loop_signal_load(link) != s)
		link = &loop_signal_load(link)->next;
	weft__store(link, (uintptr_t)loop_signal_load(&s->next), WEFT__SEQ_CST); /* L */
	while (weft__load(&all.inside, WEFT__SEQ_CST) > 0)                       /* invariant 3 */
		weft__sys->yield();
	weft__lock_give(&all.lock);
}

void
weft__signals_forked(void)
{
	for (int signo = 1; signo < WEFT__SIGNALS; signo++)
		if (all.taken[signo].known) /* invariant 5 */
			(void)weft__sys->signal_give(signo, &all.taken[signo].before);
	__builtin_memset(&all, 0, sizeof(all));
}

/* --- the loop's part: open and close ------------------------------------ */

static void on_pipe(weft_watch *watch, int what, void *arg);

static void
loop_signal_release(struct weft__signals *s)
{
	for (int i = 0; i < 2; i++)
		if (s->fds[i] >= 0)
			(void)weft__kernel(&s->loop->backend)->close(s->fds[i]);
	weft__sys->release(s);
}

/* The loop's signal state, made at first need; or NULL and an error. */
static struct weft__signals *
open_signals(weft_loop *loop, int *error)
{
	struct weft__signals *s = loop->signals;

	if (s)
		return s;
	s = weft__alloc_zero(sizeof(*s));
	*error = WEFT_ENOMEM;
	if (!s)
		return NULL;
	s->loop = loop;
	s->fds[0] = s->fds[1] = -1;
	*error = weft__kernel(&loop->backend)->pipe(s->fds);
	weft__watch_set_background(&s->watch, true);
	if (*error == 0)
		*error = weft_watch_start(loop, &s->watch, s->fds[0], WEFT_READABLE, on_pipe, s);
	if (*error < 0) {
		loop_signal_release(s);
		return NULL;
	}
	enlist(s);
	loop->signals = s;
	return s;
}

static void
close_signals(struct weft__signals *s)
{
	weft_loop *loop = s->loop;

	loop->signals = NULL;
	delist(s);
	(void)weft_watch_stop(&s->watch);
	weft__ready_forget(&loop->backend, s->fds[0]);
	loop_signal_release(s);
}

static void
close_if_unused(struct weft__signals *s)
{
	if (!s->busy && !s->keep && weft__load(&s->wanted, WEFT__RELAXED) == 0)
		close_signals(s);
}

void
weft__signals_fini(weft_loop *loop, bool alone)
{
	struct weft__signals *s = loop->signals;

	if (!s)
		return;
	loop->signals = NULL;
	if (!alone) /* else invariant 5 */
		delist(s);
	loop_signal_release(s);
}

int
weft__signal_use(weft_loop *loop, int signo)
{
	int rc = 0;
	struct weft__signals *s = open_signals(loop, &rc);

	if (!s)
		return rc;
	if (s->uses[signo] == 0 && !(s->keep & BIT(signo)))
		rc = want(s, signo);
	if (rc == 0)
		s->uses[signo]++;
	else
		close_if_unused(s);
	return rc;
}

void
weft__signal_unuse(weft_loop *loop, int signo)
{
	struct weft__signals *s = loop->signals;

	weft__assert(s && s->uses[signo] > 0);
	if (--s->uses[signo] == 0 && !(s->keep & BIT(signo)))
		unwant(s, signo);
	close_if_unused(s);
}

void
weft__signal_pretend(weft_loop *loop, int signo)
{
	struct weft__signals *s = loop->signals;

	(void)weft__or(&s->came, BIT(signo), WEFT__ACQ_REL);
	while (weft__sys->write(s->fds[1], "", 1) == -EINTR)
		;
}

/* --- watches ------------------------------------------------------------ */

static weft_watch **
link_of(weft_watch *watch)
{
	return (weft_watch **)(void *)&watch->spare;
}

void
weft__signal_link(weft_watch *watch)
{
	weft_watch **link = &watch->loop->signals->first;

	while (*link)
		link = link_of(*link);
	*link = watch;
	watch->spare = 0;
	watch->flags &= ~DUE;
}

void
weft__signal_unlink(weft_watch *watch)
{
	struct weft__signals *s = watch->loop->signals;
	weft_watch **link = &s->first;

	while (*link != watch)
		link = link_of(*link);
	*link = *link_of(watch);
	if (s->cursor == watch)
		s->cursor = *link;
	weft__signal_unuse(watch->loop, watch->id);
}

/* Begin to call the watches on `signo` that exist now.  Callbacks may stop any watch. */
static void
begin_calls(struct weft__signals *s, int signo)
{
	for (weft_watch *watch = s->first; watch; watch = *link_of(watch))
		if (watch->id == signo)
			watch->flags |= DUE;
	s->cursor = s->first;
	s->process_cursor = signo == SIGCHLD ? s->processes : NULL;
}

/* The next watch to call, with what to call it; NULL: all were called. */
static weft_watch *
next_call(struct weft__signals *s, int signo, int *what)
{
	weft_watch *watch;

	*what = signo;
	while ((watch = s->cursor)) {
		s->cursor = *link_of(watch);
		if (watch->flags & DUE) {
			watch->flags &= ~DUE;
			return watch;
		}
	}
	return weft__processes_next(s, what);
}

/* --- ops ---------------------------------------------------------------- */

static uint64_t
set_of(const struct weft__op *op)
{
	return (uint64_t)(uintptr_t)op->cancel_arg;
}

/* Finish every op that waits for the signal.  If there is none, keep the signal for the next
 * op. */
static void
finish_ops(struct weft__signals *s, int signo)
{
	struct weft__node *node = s->waiting.first;
	bool any = false;

	s->waiting = (struct weft__node_list){ 0 };
	while (node) {
		struct weft__op *op = weft__node_op(node);

		node = node->next;
		if (set_of(op) & BIT(signo)) {
			any = true;
			(void)weft_op_finish((weft_op *)(void *)op, signo);
		} else {
			weft__node_append(&s->waiting, weft__op_node(op));
		}
	}
	if (!any)
		s->kept |= BIT(signo) & s->keep;
}

/* Take the signals that have arrived.  Ops are finished at once, watches are called from the
 * pipe callback. */
static void
loop_signal_take(struct weft__signals *s)
{
	uint64_t came = weft__exchange(&s->came, 0, WEFT__ACQ_REL); /* T */

	s->due |= came;
	for (; came; came &= came - 1)
		finish_ops(s, __builtin_ctzll(came));
}

static void
on_op_cancel(weft_op *op, int why, void *arg)
{
	struct weft__signals *s = op->loop->signals;

	(void)arg;
	weft__node_remove(&s->waiting, weft__op_node(weft__op_of(op)));
	(void)weft_op_finish(op, why);
}

static void
unkeep(struct weft__signals *s, uint64_t set)
{
	for (; set; set &= set - 1) {
		int signo = __builtin_ctzll(set);

		s->keep &= ~BIT(signo);
		if (s->uses[signo] == 0)
			unwant(s, signo);
	}
}

/* Use a set of signals for the rest of the loop's life.  0, or an error and nothing has
 * changed. */
static int
loop_signal_keep(weft_loop *loop, uint64_t set)
{
	int rc = 0;
	struct weft__signals *s = open_signals(loop, &rc);
	uint64_t before;

	if (!s)
		return rc;
	before = s->keep;
	for (set &= ~before; rc == 0 && set; set &= set - 1) {
		int signo = __builtin_ctzll(set);

		if (s->uses[signo] == 0)
			rc = want(s, signo);
		if (rc == 0)
			s->keep |= BIT(signo);
	}
	if (rc < 0)
		unkeep(s, s->keep & ~before);
	close_if_unused(s);
	return rc;
}

/* Remove one of `signals` from those that were kept, and return it; or 0. */
static int
take_kept(struct weft__signals *s, uint64_t signals)
{
	uint64_t now = s->kept & signals;

	if (!now)
		return 0;
	s->kept &= ~(now & -now);
	return __builtin_ctzll(now);
}

static int
check_set(uint64_t signals)
{
	if (signals == 0 || (signals & BIT(0)))
		return weft__misuse(WEFT_EINVAL,
		                    "weft_signal_wait: the set is empty, or contains signal 0");
	return 0;
}

int
weft__signal_op(weft_op *op, uint64_t signals, uint64_t deadline_ns)
{
	int rc = check_set(signals), signo;

	if (rc == 0)
		rc = weft_op_begin(op, on_op_cancel, (void *)(uintptr_t)signals, deadline_ns);
	if (rc < 0)
		return rc;
	rc = loop_signal_keep(op->loop, signals);
	if (rc < 0) {
		(void)weft_op_finish(
			op, weft__fail(rc, "weft_signal_wait: cannot wait for these signals here"));
		return 0;
	}
	signo = take_kept(op->loop->signals, signals);
	if (signo > 0)
		(void)weft_op_finish(op, signo);
	else
		weft__node_append(&op->loop->signals->waiting, weft__op_node(weft__op_of(op)));
	return 0;
}

int
weft__signal_poll(weft_loop *loop, uint64_t signals)
{
	int rc = check_set(signals);

	loop = weft__loop_or_current(loop);
	if (rc == 0)
		rc = weft__loop_check(loop, "weft_signal_wait");
	if (rc < 0)
		return rc;
	rc = loop_signal_keep(loop, signals);
	if (rc < 0)
		return weft__fail(rc, "weft_signal_wait: cannot wait for these signals here");
	loop_signal_take(loop->signals);
	rc = take_kept(loop->signals, signals);
	return rc > 0 ? rc : WEFT_ETIMEDOUT;
}

/* --- the pipe ----------------------------------------------------------- */

/* The loop stops: end all watches.  Ops have been notified. */
static void
end_all(struct weft__signals *s)
{
	s->busy = true;
	while (s->first)
		weft__watch_end(s->loop, s->first);
	weft__processes_end(s);
	s->busy = false;
	close_signals(s);
}

static void
on_pipe(weft_watch *watch, int what, void *arg)
{
	struct weft__signals *s = arg;
	char bytes[512];
	int reads = 0;

	if (what < 0) {
		end_all(s);
		return;
	}
	/* What is left, also after an error, is read in the next iteration. */
	while (weft__kernel(&s->loop->backend)->read(s->fds[0], bytes, sizeof(bytes))
	               == (int64_t)sizeof(bytes)
	       && ++reads < READS_MAX)
		;
	loop_signal_take(s);
	s->busy = true;
	while (s->due) {
		int signo = __builtin_ctzll(s->due);

		s->due &= s->due - 1;
		begin_calls(s, signo);
		while ((watch = next_call(s, signo, &what))) {
			watch->fn(watch, what, watch->arg);
			weft__checkpoint(s->loop);
		}
	}
	s->busy = false;
	close_if_unused(s);
}

bool
weft__signal_has_others(weft_loop *loop, int signo)
{
	const struct weft__signals *s = loop->signals;
	bool others;

	weft__lock_take(&all.lock);
	others = all.taken[signo].loops > 1;
	weft__lock_give(&all.lock);
	return others || (s && (s->uses[signo] > 1 || (s->keep >> signo & 1)));
}
