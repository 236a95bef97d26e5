/* weft/hiredis.h - run an asynchronous hiredis context on a loop.
 *
 * This header is for programs that already use hiredis: replace the adapter of the previous
 * event loop by this one; nothing else changes.  New programs should prefer weft/redis.h.
 * weft/weft.h does not include this header, which contains the whole adapter and needs hiredis
 * 0.14 or 1.x.
 *
 *   1. An attached context is used on the loop's thread only.  Its callbacks run there, and may
 *      disconnect and free it.
 *   2. While a context is connected, it keeps weft_loop_run() from returning, as with other event
 *      loops: end it with redisAsyncDisconnect().
 *   3. When the loop stops, it frees the context: pending commands get a NULL reply, then
 *      onDisconnect is called.  A context with REDIS_NO_AUTO_FREE is only detached.
 *   4. Timeouts are those of hiredis; version 0.14 has none.
 */
#ifndef WEFT_HIREDIS_H
#define WEFT_HIREDIS_H

#include <string.h>
#include <hiredis/async.h>
#include <weft/base.h>
#include <weft/timer.h>
#include <weft/watch.h>

WEFT_BEGIN

/* Attach `context`, just connected or connecting, to `loop`.  Borrows it until hiredis frees
 * it.
 * Returns 0, WEFT_EBUSY if it is already attached to an event loop of any kind, WEFT_EINVAL,
 * WEFT_ENOMEM, WEFT_ESHUTDOWN, WEFT_EBADF if there is no connection (context->err); after an
 * error the context is unchanged.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_INLINE int weft_redis_attach_hiredis(weft_loop *loop,
                                          redisAsyncContext *context);

/* --- private from here on --------------------------------------------------- */

/* The argument of the hooks of hiredis.  Its cleanup hook frees this struct, possibly during one
 * of our callbacks.  So before a callback continues, it checks a variable on its own stack, which
 * the cleanup hook sets through `gone`. */
struct weft__hiredis {
	redisAsyncContext *context;
	weft_loop         *loop;
	bool              *gone;   /* of the running callback; NULL: none runs */
	uint32_t           events; /* events being watched */
	weft_watch         watch;
	weft_timer         timer;  /* timeout of hiredis */
	weft_timer         broken; /* fires if the watch could not be changed */
};

/* Detach: the context is freed or kept after this, and must not refer to us. */
static inline void
weft__hiredis_clean_up(void *arg)
{
	struct weft__hiredis *e = (struct weft__hiredis *)arg;

	if (e->gone)
		*e->gone = true;
	(void)weft_watch_stop(&e->watch);
	(void)weft_timer_stop(&e->timer);
	(void)weft_timer_stop(&e->broken);
	memset(&e->context->ev, 0, sizeof(e->context->ev));
	weft_release(e);
}

static inline void
weft__hiredis_end(struct weft__hiredis *e)
{
#ifdef REDIS_NO_AUTO_FREE
	if (e->context->c.flags & REDIS_NO_AUTO_FREE) {
		weft__hiredis_clean_up(e);
		return;
	}
#endif
	redisAsyncFree(e->context);
}

/* Hooks cannot fail.  If the watch cannot be changed, this ends the context in the next
 * iteration. */
static inline void
weft__hiredis_break(weft_timer *timer, void *arg)
{
	(void)timer;
	weft__hiredis_end((struct weft__hiredis *)arg);
}

/* The callback of the watch: the loop stops (`what` is an error), or the connection is ready.
 * ERROR and HUP count as the awaited events: hiredis finds the error in its next call. */
static inline void
weft__hiredis_ready(weft_watch *watch, int what, void *arg)
{
	struct weft__hiredis *e = (struct weft__hiredis *)arg;
	redisAsyncContext *context = e->context;
	bool gone = false;

	(void)watch;
	if (what < 0) {
		weft__hiredis_end(e);
		return;
	}
	if (what & (WEFT_EV_ERROR | WEFT_EV_HUP))
		what |= WEFT_READABLE | WEFT_WRITABLE;
	e->gone = &gone;
	if (what & (int)e->events & WEFT_READABLE)
		redisAsyncHandleRead(context);
	if (!gone && (what & (int)e->events & WEFT_WRITABLE))
		redisAsyncHandleWrite(context);
	if (!gone)
		e->gone = NULL;
}

static inline void
weft__hiredis_want(struct weft__hiredis *e, uint32_t events)
{
	int rc;

	if (events == e->events)
		return;
	rc = weft_watch_start(e->loop, &e->watch, (int)e->context->c.fd, events,
	                      weft__hiredis_ready, e);
	e->events = events;
	/* A stopping loop calls its watches next, also this one. */
	if (rc < 0 && rc != WEFT_ESHUTDOWN)
		(void)weft_timer_start(e->loop, &e->broken, weft_now(), 0,
		                       weft__hiredis_break, e);
}

static inline void
weft__hiredis_add_read(void *arg)
{
	struct weft__hiredis *e = (struct weft__hiredis *)arg;

	weft__hiredis_want(e, e->events | WEFT_READABLE);
}

static inline void
weft__hiredis_drop_read(void *arg)
{
	struct weft__hiredis *e = (struct weft__hiredis *)arg;

	weft__hiredis_want(e, e->events & ~(uint32_t)WEFT_READABLE);
}

static inline void
weft__hiredis_add_write(void *arg)
{
	struct weft__hiredis *e = (struct weft__hiredis *)arg;

	weft__hiredis_want(e, e->events | WEFT_WRITABLE);
}

static inline void
weft__hiredis_drop_write(void *arg)
{
	struct weft__hiredis *e = (struct weft__hiredis *)arg;

	weft__hiredis_want(e, e->events & ~(uint32_t)WEFT_WRITABLE);
}

#if HIREDIS_MAJOR >= 1
static inline void
weft__hiredis_time_out(weft_timer *timer, void *arg)
{
	(void)timer;
	redisAsyncHandleTimeout(((struct weft__hiredis *)arg)->context);
}

/* The timer is background work: the connection itself keeps the loop running. */
static inline void
weft__hiredis_set_timer(void *arg, struct timeval delay)
{
	struct weft__hiredis *e = (struct weft__hiredis *)arg;
	uint64_t delay_ns = (uint64_t)delay.tv_sec * WEFT_S
	                    + (uint64_t)delay.tv_usec * WEFT_US;

	weft_timer_set_background(&e->timer, true);
	(void)weft_timer_start(e->loop, &e->timer, weft_after(delay_ns), 0,
	                       weft__hiredis_time_out, e);
}
#endif

static inline int
weft_redis_attach_hiredis(weft_loop *loop, redisAsyncContext *context)
{
	struct weft__hiredis *e;
	int rc;

	if (!context)
		return weft_fail(WEFT_EINVAL, "weft_redis_attach_hiredis: the context is NULL");
	if (context->ev.data)
		return weft_fail(WEFT_EBUSY,
		                 "weft_redis_attach_hiredis: the context is already attached to "
		                 "an event loop");
	e = (struct weft__hiredis *)weft_alloc(sizeof(*e));
	if (!e)
		return WEFT_ENOMEM;
	memset(e, 0, sizeof(*e));
	e->context = context;
	/* Wait for no event yet; only get the loop's stop. */
	rc = weft_watch_start(loop, &e->watch, (int)context->c.fd, 0,
	                      weft__hiredis_ready, e);
	if (rc < 0) {
		weft_release(e);
		return rc;
	}
	e->loop = e->watch.loop;
	context->ev.data = e;
	context->ev.addRead = weft__hiredis_add_read;
	context->ev.delRead = weft__hiredis_drop_read;
	context->ev.addWrite = weft__hiredis_add_write;
	context->ev.delWrite = weft__hiredis_drop_write;
	context->ev.cleanup = weft__hiredis_clean_up;
#if HIREDIS_MAJOR >= 1
	context->ev.scheduleTimer = weft__hiredis_set_timer;
#endif
	return 0;
}

WEFT_END
#endif
