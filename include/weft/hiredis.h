/* weft/hiredis.h - an asynchronous context of hiredis, driven by a loop.
 *
 * For programs that have hiredis already: what was an adapter for another loop becomes
 * this one, and all else stays.  New ones find more in weft/redis.h.  Not part of
 * weft/weft.h; needs hiredis, 0.14 or 1.x, and is all in this header.
 *
 *   1. An attached context is used on the loop's thread only.  Its callbacks run there,
 *      as all do, and may disconnect and free it.
 *   2. While it is connected it keeps weft_loop_run() from returning, as with other loops:
 *      end it by redisAsyncDisconnect().
 *   3. As the loop stops the context is freed: its commands are told so by a reply that is
 *      NULL, then onDisconnect is called.  One with REDIS_NO_AUTO_FREE is left alone
 *      instead, as attached to nothing.
 *   4. Timeouts are hiredis' own; version 0.14 has none.
 */
#ifndef WEFT_HIREDIS_H
#define WEFT_HIREDIS_H

#include <string.h>
#include <hiredis/async.h>
#include <weft/base.h>
#include <weft/timer.h>
#include <weft/watch.h>

WEFT_BEGIN

/* Let `loop` drive `context`, just connected or connecting.  Borrows it until hiredis
 * frees it.
 * Returns 0, WEFT_EBUSY if it is attached to a loop, of whatever kind, WEFT_EINVAL,
 * WEFT_ENOMEM, WEFT_ESHUTDOWN, WEFT_EBADF if there is no connection (context->err);
 * then the context is as it was.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_INLINE int weft_redis_attach_hiredis(weft_loop *loop,
                                          redisAsyncContext *context);

/* --- private from here on --------------------------------------------------- */

/* What hiredis' hooks are given.  Freed by its cleanup, which may come while a callback of
 * ours is under way: that one looks at `gone`, on its own stack, before it goes on. */
struct weft__hiredis {
	redisAsyncContext *context;
	weft_loop         *loop;
	bool              *gone;   /* NULL: no callback is under way */
	uint32_t           events; /* that are watched for */
	weft_watch         watch;
	weft_timer         timer;  /* of hiredis */
	weft_timer         broken; /* fires if the watch could not be changed */
};

/* The context must not find us any more: it is freed after this, or let go. */
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

/* Hooks cannot fail: what cannot be watched ends in the next turn. */
static inline void
weft__hiredis_break(weft_timer *timer, void *arg)
{
	(void)timer;
	weft__hiredis_end((struct weft__hiredis *)arg);
}

/* The loop stops, or the connection is ready.  An error or its end is told as what is
 * waited for: hiredis finds out by its next call. */
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
	/* A loop that stops tells its watches next, also this one. */
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

/* It counts for nothing by itself: the connection keeps the loop running. */
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
		return weft_fail(WEFT_EINVAL, "weft_redis_attach_hiredis: NULL");
	if (context->ev.data)
		return weft_fail(WEFT_EBUSY,
		                 "weft_redis_attach_hiredis: attached before");
	e = (struct weft__hiredis *)weft_alloc(sizeof(*e));
	if (!e)
		return WEFT_ENOMEM;
	memset(e, 0, sizeof(*e));
	e->context = context;
	/* With nothing to wait for yet, but told of the loop's end. */
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
