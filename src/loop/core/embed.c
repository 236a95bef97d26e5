/* embed.c - embedding in a foreign loop: a descriptor, and when to run without it.
 *
 * The host waits until the descriptor is readable or the time of weft_loop_next() has come,
 * and then runs one iteration.  Between iterations the loop sleeps IN_FOREIGN.  That mark in
 * the wake word makes every producer that finds it call the backend's show().
 *
 *   1. `host` is the thread that called weft_loop_fd(), or that ran the loop last since then;
 *      0: the loop is not embedded.  The loop belongs to its host also between iterations: if
 *      another thread stops it, it stops when the host next runs it.
 *   2. `foreign` is true from the beginning to the end of a sleep IN_FOREIGN.
 *   3. No push is missed.  The loop begins to sleep before the run gives it back, so before
 *      the host can call weft_loop_next().  A push before that makes begin_sleep fail and is in
 *      the inbox: weft_loop_next() returns WEFT_NOWAIT.  The first push after it removes the
 *      mark, and the producer that removed the mark makes the descriptor readable.  The
 *      descriptor stays readable until an iteration has polled the kernel.  That iteration
 *      finds later pushes.
 *   4. Every iteration of an embedded loop polls the kernel, even if no descriptor is in use:
 *      the poll consumes the wake.  Otherwise the host would run iterations forever.
 *   5. The descriptor reports what the kernel knows and the loop does not.  weft_loop_next()
 *      reports what the loop knows and the kernel does not: requests that were not submitted,
 *      results that were fetched, watched files.
 *   6. If the io_uring of the loop has failed, or no backend is left, the descriptor reports only
 *      pushes.  Then weft_loop_next() makes the host run an iteration every few milliseconds.
 */
#include "loop/core/loop.h"

#define DEAF_NS (10 * WEFT_MS)

void
weft__loop_settle(weft_loop *loop)
{
	struct weft__backend *backend = &loop->backend;

	if (!weft__loop_is_embedded(loop) || loop->foreign
	    || weft__load(&loop->state, WEFT__RELAXED) == WEFT_STOPPED)
		return;
	if (backend->ops->has_work && backend->ops->has_work(backend))
		backend->ops->flush(backend);
	loop->foreign = weft__inbox_begin_sleep(&loop->inbox, WEFT__IN_FOREIGN);
}

void
weft__loop_end_sleep(weft_loop *loop)
{
	if (!loop->foreign)
		return;
	loop->foreign = false;
	weft__inbox_end_sleep(&loop->inbox, WEFT__IN_FOREIGN);
}

void
weft__loop_adopt(weft_loop *loop)
{
	if (weft__loop_is_embedded(loop))
		weft__store(&loop->host, (uintptr_t)weft__thread_self(), WEFT__RELAXED);
	weft__loop_end_sleep(loop);
}

bool
weft__loop_is_hosted_elsewhere(const weft_loop *loop)
{
	uintptr_t host = weft__load(&loop->host, WEFT__RELAXED);

	return host && host != (uintptr_t)weft__thread_self();
}

static bool
backend_has_work(weft_loop *loop)
{
	struct weft__backend *backend = &loop->backend;

	return backend->ops
	       && (backend->always > 0
	           || (backend->ops->has_work && backend->ops->has_work(backend)));
}

static uint64_t
sooner(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

/* When to poll for events that the descriptor does not report; invariant 6. */
static uint64_t
next_poll(const weft_loop *loop)
{
	return loop->backend.ops && loop->backend.ops->deaf ? weft_after(DEAF_NS) : WEFT_NEVER;
}

uint64_t
weft__loop_next(weft_loop *loop)
{
	if (weft__loop_is_stopping(loop) || weft__loop_is_runnable(loop) || loop->wake_pending
	    || backend_has_work(loop))
		return WEFT_NOWAIT;
	return sooner(weft__wheel_bound(&loop->wheel), next_poll(loop));
}

uint64_t
weft_loop_next(weft_loop *loop)
{
	loop = weft__loop_or_current(loop);
	if (weft__loop_check(loop, "weft_loop_next") < 0)
		return WEFT_NEVER;
	loop->hooks.notified_ns = weft__loop_next(loop);
	return loop->hooks.notified_ns;
}

/* Open the descriptor for the host to poll.  Returns it, or an error. */
static int
open_fd(weft_loop *loop)
{
	int rc = weft__loop_open_backend(loop);

	if (rc == 0 && !loop->backend.ops->fd)
		rc = WEFT_ENOSYS;
	return rc < 0 ? rc : loop->backend.ops->fd(&loop->backend);
}

int
weft_loop_fd(weft_loop *loop)
{
	uintptr_t self = (uintptr_t)weft__thread_self();
	int rc;

	loop = weft__loop_or_current(loop);
	rc = weft__loop_check(loop, "weft_loop_fd");
	if (rc < 0)
		return rc;
	if (loop->bound && loop->bound != self)
		return weft__misuse(WEFT_EWRONGLOOP,
		                    "weft_loop_fd: the loop is bound to another thread");
	if (weft__loop_is_stopping(loop) && !weft__loop_is_embedded(loop))
		return weft__fail(WEFT_ESHUTDOWN, "weft_loop_fd: the loop is stopping");
	rc = open_fd(loop);
	if (loop->backend.ops && loop->backend.binds)
		loop->bound = self;
	if (rc < 0)
		return weft__fail(rc, "weft_loop_fd: the backend has no descriptor to poll");
	weft__store(&loop->host, self, WEFT__RELAXED);
	/* Another thread may be stopping the loop.  A loop that runs settles when the run
	 * ends. */
	if (weft__load(&loop->runner, WEFT__RELAXED) != self && weft__loop_claim(loop)) {
		weft__loop_settle(loop);
		weft__loop_give_back(loop);
	}
	return rc;
}
