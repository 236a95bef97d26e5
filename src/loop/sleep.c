/* sleep.c - how a loop waits, and how others end that.
 *
 * With nothing to do the loop spins for a moment if that paid lately, then parks on
 * its inbox.  Waking a sleeper costs tens of microseconds, much more where an idle
 * virtual CPU has to be woken too; spinning costs CPU.  So:
 *
 *   1. It never spins where another thread would need the CPU to end the wait (one
 *      CPU, or a quota below two), nor when told not to.
 *   2. A spin that did not pay makes the next ones rarer (look.h); a spin that paid, or a
 *      sleep so short that a spin would have, starts over.
 *   3. A loop that is fed by threads as fast as it takes would take posts one by one,
 *      and each look at the inbox takes the head word from a producer just when it
 *      needs it.  So after some small batches in a row it looks away for a moment; a
 *      batch comes together meanwhile, at a fraction of the cost for each.
 *   4. A wait that fails does not make the loop turn at once: it is tried again after a
 *      moment.  One that fails again and again, other than for want of memory, is given
 *      up (weft__backend_fall()).
 */
#include <errno.h>
#include <stdio.h>
#include "base/report.h"
#include "loop/lane.h"
#include "loop/loop.h"
#include "loop/signal.h"

#define POLL_TURNS    61             /* of a busy loop, between two looks at descriptors, */
#define POLL_NS       (50 * WEFT_US) /* or so long */
#define SMALL_BATCH   64u            /* posts */
#define SMALL_ROW     3u
#define GATHER_PAUSES 48 /* some 600 ns */
#define SPIN_NS       (20 * WEFT_US)
#define SHORT_NS      (50 * WEFT_US) /* of a sleep, with the cost of being woken */
#define SKIPS_MAX     1024u
#define PAUSES_MAX    16      /* between two looks: some 300 ns */
#define FAILURES_MAX  8u      /* of waits in a row, until it is taken for lasting */
#define RETRY_NS      WEFT_MS /* between two of them */

void
weft__loop_gather(weft_loop *loop, uint32_t taken)
{
	struct weft__spin *spin = &loop->spin;

	if (taken == 0 || taken >= SMALL_BATCH || spin->own || loop->own.first || !spin->allowed
	    || !weft__inbox_has(&loop->inbox)) {
		spin->small = 0;
		spin->own = false;
		return;
	}
	if (++spin->small < SMALL_ROW || weft__lanes_own(&loop->inbox))
		return;
	for (int i = 0; i < GATHER_PAUSES; i++)
		weft__pause();
}

void
weft__loop_kick(weft_loop *loop, int mode)
{
	struct weft__meter *meter;

	if (mode == WEFT__AWAKE)
		return;
	meter = (struct weft__meter *)weft__load(&loop->metering,
	                                         WEFT__ACQUIRE); /* K, in observe.c */
	if (meter)
		weft__store(&meter->posted, weft__sys->now(), WEFT__RELAXED);
	if (mode == WEFT__IN_PARK)
		weft__inbox_ring(&loop->inbox);
	else if (mode == WEFT__IN_FOREIGN)
		loop->backend.waker->show(&loop->backend);
	else
		loop->backend.waker->wake(&loop->backend);
	weft__inbox_woken(&loop->inbox);
}

/* Who wakes the loop has something to tell (stop, leave), written before.  Either
 * it finds the node free (W) and pushes it, or the loop, as it takes the node, comes
 * after it and sees what it wrote (X).  Both are exchanges, acquiring and releasing:
 * with a plain store instead of X the loop could free the node, miss the news, and
 * the node still be seen as queued. */
void
weft__loop_wake(weft_loop *loop)
{
	if (weft__exchange(&loop->wake.state, WEFT__NODE_QUEUED, WEFT__ACQ_REL))
		return; /* W */
	weft__loop_kick(loop, weft__inbox_push(&loop->inbox, &loop->wake, true));
}

void
weft__loop_woken(weft_loop *loop)
{
	if (weft__exchange(&loop->wake.state, 0, WEFT__ACQ_REL) /* X */
	    == WEFT__NODE_QUEUED)
		loop->woken = true;
	loop->own_run++;
	if (weft__load(&loop->looks, WEFT__RELAXED) > 0)
		weft__crew_ops.look(loop);
	if (weft__load(&loop->observed_ns, WEFT__RELAXED) > 0)
		weft__meter_on(loop);
}

/* A wake that came by now has ended this wait; its node, still to be taken, is not to
 * end the next one too.  One that comes later finds the node queued and makes it count
 * again.  An exchange, for the reason told above. */
static void
spend_wake(weft_loop *loop)
{
	if (weft__load(&loop->wake.state, WEFT__RELAXED) == WEFT__NODE_QUEUED)
		(void)weft__exchange(&loop->wake.state, WEFT__NODE_SPENT, WEFT__ACQ_REL);
}

/* Watch the inbox for a moment; true if something came.  Looks become rarer, so
 * that a producer in full flight is left alone for a while and a batch comes in
 * together: each look takes the word from it. */
static bool
spin_for_work(weft_loop *loop, uint64_t now_ns, uint64_t deadline_ns)
{
	uint64_t end_ns = now_ns + SPIN_NS;

	if (end_ns > deadline_ns)
		end_ns = deadline_ns;
	for (int pauses = 1;; pauses *= 2) {
		if (weft__inbox_has(&loop->inbox))
			return true;
		if (pauses > PAUSES_MAX) {
			pauses = PAUSES_MAX;
			if (weft__sys->now() >= end_ns)
				return false;
		}
		for (int i = 0; i < pauses; i++)
			weft__pause();
	}
}

int
weft__loop_open_backend(weft_loop *loop)
{
	if (loop->backend.ops)
		return 0;
	return weft__backend_open(&loop->backend, loop->backend_name[0] ? loop->backend_name : NULL,
	                          loop->flags & WEFT_LOOP_MOVABLE);
}

/* An embedded loop asks the kernel in any case; see embed.c. */
static bool
uses_backend(const weft_loop *loop)
{
	return weft__backend_is_used(&loop->backend) || weft__loop_is_embedded(loop);
}

/* An error that passes: the kernel lacks memory, or room for results. */
static bool
wait_may_recover(int error)
{
	return error == -ENOMEM || error == -EAGAIN || error == -EBUSY || error == -EINTR;
}

/* The loop cannot wait as it did.  That is reported once: afterwards it waits by another
 * call, or for no descriptor at all. */
WEFT__SELDOM static void
lose_backend(weft_loop *loop, int error)
{
	char text[160];

	weft__backend_fall(&loop->backend, error);
	(void)snprintf(text, sizeof(text), "the loop cannot wait as before: %s",
	               (const char *)weft__load(&loop->tally.reason, WEFT__RELAXED));
	weft__report(&(weft_report){ .kind = WEFT_REPORT_BACKEND,
	                             .level = 1,
	                             .error = error,
	                             .loop = loop,
	                             .name = loop->name,
	                             .text = text });
}

WEFT__SELDOM static void
note_failure(weft_loop *loop, int error)
{
	if (++loop->backend.failures < FAILURES_MAX || wait_may_recover(error))
		return;
	loop->backend.failures = 0;
	lose_backend(loop, error);
}

static int
ask_kernel(weft_loop *loop, int64_t timeout_ns)
{
	struct weft__backend *backend = &loop->backend;
	int rc;

	if (backend->always > 0)
		weft__ready_note_files(backend);
	backend->more = backend->timed_out = false;
	weft__expiry_asked(loop);
	rc = backend->ops->wait(backend, timeout_ns);
	backend->events_fresh = true;
	if (rc < 0)
		note_failure(loop, rc);
	else
		backend->failures = 0;
	return rc;
}

/* Nothing that the loop knows of can wake it but a signal; other threads can.  A loop of a
 * runtime asks the others then. */
static bool
is_quiet(const weft_loop *loop, uint64_t deadline_ns)
{
	const struct weft__signals *signals = loop->signals;

	return deadline_ns == WEFT_NEVER && loop->runtime && loop->ops == 0
	       && loop->backend.fds.in_use == (signals ? 1u : 0u)
	       && !(signals && signals->processes) && !loop->hooks.first
	       && !weft__loop_is_embedded(loop) && !weft__loop_is_stopping(loop);
}

/* The loop dozes: must it not sleep, since nobody would wake it? */
static bool
is_stuck(weft_loop *loop, uint64_t deadline_ns)
{
	return is_quiet(loop, deadline_ns) && weft__runtime_rest(loop);
}

/* A wait has failed: it is tried again, but not at once. */
WEFT__SELDOM static void
rest(weft_loop *loop, uint64_t deadline_ns)
{
	uint64_t retry_ns = weft_in(RETRY_NS);

	if (!weft__inbox_doze(&loop->inbox, WEFT__IN_PARK))
		return;
	weft__inbox_park(&loop->inbox, retry_ns < deadline_ns ? retry_ns : deadline_ns);
	weft__inbox_rouse(&loop->inbox, WEFT__IN_PARK);
}

static void
wait_in_backend(weft_loop *loop, uint64_t deadline_ns)
{
	int rc;

	if (!weft__inbox_doze(&loop->inbox, WEFT__IN_BACKEND))
		return;
	rc = ask_kernel(loop, loop->backend.always > 0 || is_stuck(loop, deadline_ns)
	                              ? 0
	                              : weft__timeout_of(deadline_ns));
	weft__inbox_rouse(&loop->inbox, WEFT__IN_BACKEND);
	if (loop->backend.timed_out && loop->backend.always == 0)
		weft__expiry_slept(loop, deadline_ns);
	if (rc < 0)
		rest(loop, deadline_ns);
}

static void
wait_in_park(weft_loop *loop, uint64_t deadline_ns)
{
	if (!weft__inbox_doze(&loop->inbox, WEFT__IN_PARK))
		return;
	if (!is_stuck(loop, deadline_ns))
		weft__inbox_park(&loop->inbox, deadline_ns);
	weft__inbox_rouse(&loop->inbox, WEFT__IN_PARK);
	weft__count(&loop->tally.syscalls, 1);
}

/* While work is runnable the kernel is asked only now and then.  What it has told before is
 * looked at first; but those who have always more to do keep nobody from being told. */
static bool
is_poll_due(weft_loop *loop)
{
	const struct weft__backend *backend = &loop->backend;

	if (!uses_backend(loop) || (backend->events_count > 0 && backend->events_fresh)
	    || backend->events_count == backend->events_max)
		return false;
	if (++loop->unpolled < POLL_TURNS && !loop->must_poll && !weft__expiry_wants_poll(loop)
	    && weft__loop_time(loop) < loop->polled_ns + POLL_NS) {
		weft__count(&loop->counts.polls_skipped, 1);
		return false;
	}
	loop->unpolled = 0;
	loop->polled_ns = weft__loop_time(loop);
	return true;
}

void
weft__loop_ask(weft_loop *loop)
{
	if (is_poll_due(loop))
		(void)ask_kernel(loop, 0);
}

void
weft__loop_poll(weft_loop *loop)
{
	if (!is_poll_due(loop))
		return;
	if (loop->hooks.first)
		weft__hooks_before_wait(loop, false);
	(void)ask_kernel(loop, 0);
	if (loop->timed)
		weft__meter_mark(loop, WEFT_PHASE_WAIT);
	if (loop->hooks.first)
		weft__hooks_after_wait(loop, false);
}

/* Spin, then sleep. */
static void
sleep_until(weft_loop *loop, uint64_t deadline_ns)
{
	struct weft__spin *spin = &loop->spin;
	uint32_t state = WEFT_RUNNING;
	uint64_t begin_ns = 0;

	/* A spin watches the inbox only, so not where the kernel is awaited. */
	if (spin->allowed && !weft__backend_is_used(&loop->backend)) {
		begin_ns = weft__sys->now();
		if (weft__luck_try(&spin->sleeps)) {
			bool paid = spin_for_work(loop, begin_ns, deadline_ns);

			weft__luck_tell(&spin->sleeps, paid, SKIPS_MAX);
			if (paid)
				return;
		}
	}
	/* Fails once stopping; whoever stops also wakes.  At the end it waits for
	 * those who finish late. */
	if (!weft__cas(&loop->state, &state, WEFT_SLEEPING, WEFT__RELAXED) && !loop->ending
	    && !loop->draining)
		return;
	if (weft__loop_meter(loop))
		weft__meter_sleep(loop);
	if (loop->traced)
		weft__trace_sleep(loop);
	if (uses_backend(loop) && !loop->backend.broken)
		wait_in_backend(loop, deadline_ns);
	else
		wait_in_park(loop, deadline_ns);
	if (weft__loop_meter(loop))
		weft__meter_woke(loop);
	if (loop->traced)
		weft__trace_woke(loop);
	state = WEFT_SLEEPING;
	(void)weft__cas(&loop->state, &state, WEFT_RUNNING, WEFT__RELAXED);
	if (loop->quiet)
		weft__runtime_go_on(loop);
	if (begin_ns && weft__inbox_has(&loop->inbox) && weft__sys->now() - begin_ns < SHORT_NS)
		weft__luck_good(&spin->sleeps);
}

void
weft__loop_sleep(weft_loop *loop, uint64_t deadline_ns)
{
	sleep_until(loop, deadline_ns);
	spend_wake(loop);
}
