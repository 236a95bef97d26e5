/* sleep.c - how a loop waits, and how other threads wake it.
 *
 * With nothing to do the loop spins for a moment if spinning paid recently, then parks on its
 * inbox.  Waking a sleeping thread costs tens of microseconds, and much more where an idle
 * virtual CPU must be woken too; spinning costs CPU time.  So:
 *
 *   1. The loop never spins where another thread needs the CPU to end the wait (one CPU, or a
 *      quota below two), nor with WEFT_LOOP_NO_SPIN.
 *   2. A spin that did not pay makes later ones rarer (spin.h).  A spin that paid, or a sleep
 *      so short that a spin would have paid, starts over.
 *   3. A loop that takes posts as fast as threads make them would take them one by one, and
 *      each check of the inbox takes the head word's cache line from a producer just when the
 *      producer needs it.  So after some small batches in a row the loop pauses for a moment.
 *      A batch collects meanwhile, and each post costs a fraction.
 *   4. A wait that fails does not start the next loop iteration at once: the loop retries
 *      after a moment.  If waits fail again and again with an error that is not temporary, the
 *      loop changes its way to wait (weft__backend_fall()).
 */
#include <errno.h>
#include <stdio.h>
#include "loop/post/producer.h"
#include "loop/core/loop.h"
#include "loop/process/signal.h"

#define POLL_TURNS    61             /* busy iterations between two polls of the kernel, */
#define POLL_NS       (50 * WEFT_US) /* or this much time */
#define SMALL_BATCH   64u            /* posts */
#define SMALL_ROW     3u
#define GATHER_PAUSES 48 /* some 600 ns */
#define SPIN_NS       (20 * WEFT_US)
#define SHORT_NS      (50 * WEFT_US) /* a short sleep, including the cost of the wake */
#define SKIPS_MAX     1024u
#define PAUSES_MAX    16      /* between two checks of a spin: some 300 ns */
#define FAILURES_MAX  8u      /* failed waits in a row that count as permanent */
#define RETRY_NS      WEFT_MS /* between two attempts */

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
	if (++spin->small < SMALL_ROW || weft__producers_own(&loop->inbox))
		return;
	for (int i = 0; i < GATHER_PAUSES; i++)
		weft__pause();
}

void
weft__loop_wake_sleeper(weft_loop *loop, int mode)
{
	struct weft__sampler *sampler;

	if (mode == WEFT__AWAKE)
		return;
	sampler = (struct weft__sampler *)weft__load(&loop->sampling,
	                                             WEFT__ACQUIRE); /* K, in observe.c */
	if (sampler)
		weft__store(&sampler->posted, weft__sys->now(), WEFT__RELAXED);
	if (mode == WEFT__IN_PARK)
		weft__inbox_futex_wake(&loop->inbox);
	else if (mode == WEFT__IN_FOREIGN)
		loop->backend.waker->show(&loop->backend);
	else
		loop->backend.waker->wake(&loop->backend);
	weft__inbox_wake_done(&loop->inbox);
}

void
weft__loop_send(weft_loop *loop, struct weft__node_head *head, weft_fn fn, void *arg)
{
	struct weft__node *node = (struct weft__node *)(void *)head;

	weft__put(node->fn, fn);
	weft__put(node->arg, arg);
	weft__put(node->kind, WEFT__NODE_OWN | WEFT__NODE_KEEP | WEFT__NODE_FIRST);
	weft__loop_wake_sleeper(loop, weft__inbox_push(&loop->inbox, node, true));
}

/* The caller has written a request for the loop (stop, break) before.  Either the caller finds
 * the wake node free (W) and pushes it; or the loop's exchange (X), as the loop takes the
 * node, comes after W, and the loop sees the request.  Both are exchanges that acquire and
 * release: with a plain store instead of X, the loop could free the node and miss the request
 * while the caller still saw the node as queued. */
void
weft__loop_wake(weft_loop *loop)
{
	if (weft__exchange(&loop->wake.state, WEFT__NODE_QUEUED, WEFT__ACQ_REL))
		return; /* W */
	weft__loop_wake_sleeper(loop, weft__inbox_push(&loop->inbox, &loop->wake, true));
}

void
weft__loop_take_wake(weft_loop *loop)
{
	if (weft__exchange(&loop->wake.state, 0, WEFT__ACQ_REL) /* X */
	    == WEFT__NODE_QUEUED)
		loop->wake_pending = true;
	if (weft__load(&loop->listings, WEFT__RELAXED) > 0)
		weft__loop_sched(loop)->answer_listings(loop);
	if (weft__load(&loop->observed_ns, WEFT__RELAXED) > 0)
		weft__sampler_on(loop);
}

/* A wake that arrived by now has ended this wait.  The wake node is still queued, and must not end
 * the next wait, too: so its state becomes SPENT.  A later wake sets QUEUED again (W), and so does
 * end the next wait.  This is an exchange for the same reason as X. */
static void
consume_wake(weft_loop *loop)
{
	if (weft__load(&loop->wake.state, WEFT__RELAXED) == WEFT__NODE_QUEUED)
		(void)weft__exchange(&loop->wake.state, WEFT__NODE_SPENT, WEFT__ACQ_REL);
}

/* Spin on the inbox for a moment; true if something arrived.  The checks become rarer, so that
 * a busy producer is left alone and a batch comes in together: each check takes the cache line
 * of the head word from the producer. */
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

/* An embedded loop always polls the kernel; see embed.c. */
static bool
uses_backend(const weft_loop *loop)
{
	return weft__backend_is_used(&loop->backend) || weft__loop_is_embedded(loop);
}

/* The error is temporary: the kernel lacks memory, or room for results. */
static bool
wait_may_recover(int error)
{
	return error == -ENOMEM || error == -EAGAIN || error == -EBUSY || error == -EINTR;
}

/* The loop cannot wait as before.  This is reported once: from now on it waits by another
 * system call, or for no descriptor at all. */
WEFT__COLD static void
lose_backend(weft_loop *loop, int error)
{
	char text[160];

	weft__backend_fall(&loop->backend, error);
	(void)snprintf(text, sizeof(text), "the loop's way to wait for events has failed: %s",
	               (const char *)weft__load(&loop->backend_counters.reason, WEFT__RELAXED));
	weft__loop_report(&(weft_report){ .kind = WEFT_REPORT_BACKEND,
	                                  .level = 1,
	                                  .error = error,
	                                  .loop = loop,
	                                  .name = loop->name,
	                                  .text = text });
}

WEFT__COLD static void
note_failure(weft_loop *loop, int error)
{
	if (++loop->backend.failures < FAILURES_MAX || wait_may_recover(error))
		return;
	loop->backend.failures = 0;
	lose_backend(loop, error);
}

static int
poll_kernel(weft_loop *loop, int64_t timeout_ns)
{
	struct weft__backend *backend = &loop->backend;
	int rc;

	if (backend->always > 0)
		weft__ready_note_files(backend);
	backend->more = backend->timed_out = false;
	weft__expiry_polled(loop);
	rc = backend->ops->wait(backend, timeout_ns);
	backend->events_fresh = true;
	if (rc < 0)
		note_failure(loop, rc);
	else
		backend->failures = 0;
	return rc;
}

/* As far as the loop knows, only a signal or another thread can wake it.  A loop of a runtime then
 * checks whether any thread will. */
static bool
is_quiet(const weft_loop *loop, uint64_t deadline_ns)
{
	const struct weft__signals *signals = loop->signals;

	return deadline_ns == WEFT_NEVER && weft__loop_runtime(loop) && loop->ops == 0
	       && loop->backend.fds.in_use == (signals ? 1u : 0u)
	       && !(signals && signals->processes) && !loop->hooks.first
	       && !weft__loop_is_embedded(loop) && !weft__loop_is_stopping(loop);
}

/* The loop has begun a sleep.  True if it must not sleep, because no thread would wake it. */
static bool
is_stuck(weft_loop *loop, uint64_t deadline_ns)
{
	return is_quiet(loop, deadline_ns) && weft__loop_runtime(loop)->begin_quiet(loop);
}

/* A wait has failed: retry, but not at once. */
WEFT__COLD static void
rest(weft_loop *loop, uint64_t deadline_ns)
{
	uint64_t retry_ns = weft_after(RETRY_NS);

	if (!weft__inbox_begin_sleep(&loop->inbox, WEFT__IN_PARK))
		return;
	weft__inbox_park(&loop->inbox, retry_ns < deadline_ns ? retry_ns : deadline_ns);
	weft__inbox_end_sleep(&loop->inbox, WEFT__IN_PARK);
}

static void
wait_in_backend(weft_loop *loop, uint64_t deadline_ns)
{
	int rc;

	if (!weft__inbox_begin_sleep(&loop->inbox, WEFT__IN_BACKEND))
		return;
	rc = poll_kernel(loop, loop->backend.always > 0 || is_stuck(loop, deadline_ns)
	                               ? 0
	                               : weft__timeout_of(deadline_ns));
	weft__inbox_end_sleep(&loop->inbox, WEFT__IN_BACKEND);
	if (loop->backend.timed_out && loop->backend.always == 0)
		weft__expiry_slept(loop, deadline_ns);
	if (rc < 0)
		rest(loop, deadline_ns);
}

static void
wait_in_park(weft_loop *loop, uint64_t deadline_ns)
{
	if (!weft__inbox_begin_sleep(&loop->inbox, WEFT__IN_PARK))
		return;
	if (!is_stuck(loop, deadline_ns))
		weft__inbox_park(&loop->inbox, deadline_ns);
	weft__inbox_end_sleep(&loop->inbox, WEFT__IN_PARK);
	weft__count(&loop->backend_counters.syscalls, 1);
}

/* While work is runnable, the loop polls the kernel only now and then.  Freshly fetched events
 * are handled before the next poll.  Events that were recorded again since do not delay the poll:
 * so a descriptor that always has more to do does not keep others from being reported. */
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
weft__loop_poll_kernel(weft_loop *loop)
{
	if (is_poll_due(loop))
		(void)poll_kernel(loop, 0);
}

void
weft__loop_poll(weft_loop *loop)
{
	if (!is_poll_due(loop))
		return;
	if (loop->hooks.first)
		weft__hooks_before_wait(loop, false);
	(void)poll_kernel(loop, 0);
	if (loop->timed)
		weft__sampler_mark(loop, WEFT_PHASE_WAIT);
	if (loop->hooks.first)
		weft__hooks_after_wait(loop, false);
}

static void
sleep_until(weft_loop *loop, uint64_t deadline_ns)
{
	struct weft__spin *spin = &loop->spin;
	uint32_t state = WEFT_RUNNING;
	uint64_t begin_ns = 0;

	/* A spin checks only the inbox, so a loop that waits for the kernel does not spin. */
	if (spin->allowed && !weft__backend_is_used(&loop->backend)) {
		begin_ns = weft__sys->now();
		if (weft__spin_is_due(&spin->sleeps)) {
			bool paid = spin_for_work(loop, begin_ns, deadline_ns);

			weft__spin_update(&spin->sleeps, paid, SKIPS_MAX);
			if (paid)
				return;
		}
	}
	/* Fails once the loop is stopping; the thread that stops the loop also wakes it.  A loop
	 * that drains or ends sleeps nevertheless, to wait for work that finishes late. */
	if (!weft__cas(&loop->state, &state, WEFT_SLEEPING, WEFT__RELAXED) && !loop->ending
	    && !loop->draining)
		return;
	if (weft__loop_sampler(loop))
		weft__sampler_sleep(loop);
	if (loop->traced)
		weft__trace_sleep(loop);
	if (uses_backend(loop) && !loop->backend.broken)
		wait_in_backend(loop, deadline_ns);
	else
		wait_in_park(loop, deadline_ns);
	if (weft__loop_sampler(loop))
		weft__sampler_woke(loop);
	if (loop->traced)
		weft__trace_woke(loop);
	state = WEFT_SLEEPING;
	(void)weft__cas(&loop->state, &state, WEFT_RUNNING, WEFT__RELAXED);
	if (loop->quiet)
		weft__loop_runtime(loop)->end_quiet(loop);
	if (begin_ns && weft__inbox_has(&loop->inbox) && weft__sys->now() - begin_ns < SHORT_NS)
		weft__spin_paid(&spin->sleeps);
}

void
weft__loop_sleep(weft_loop *loop, uint64_t deadline_ns)
{
	sleep_until(loop, deadline_ns);
	consume_wake(loop);
}
