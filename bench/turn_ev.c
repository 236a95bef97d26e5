/* turn_ev.c - an idle watcher of libev. */
#include "bench.h"
#include <ev.h>

static bool turns_more(void);
static void turn_seen(void);

static struct ev_loop *loop;
static ev_idle idle;
static ev_prepare prepare;

static void
on_idle(struct ev_loop *l, ev_idle *watcher, int events)
{
	(void)events;
	if (!turns_more())
		ev_idle_stop(l, watcher);
}

static void
on_prepare(struct ev_loop *l, ev_prepare *watcher, int events)
{
	(void)l;
	(void)watcher;
	(void)events;
	turn_seen();
}

static void
turns_open(void)
{
	loop = ev_loop_new(EVBACKEND_EPOLL);
	BENCH_CHECK(loop);
	ev_idle_init(&idle, on_idle);
	ev_prepare_init(&prepare, on_prepare);
}

static void
turns_run(void)
{
	ev_idle_start(loop, &idle);
	ev_run(loop, 0);
}

/* ev_unref() lets the loop end although the watcher is active. */
static void
turns_watch(bool on)
{
	if (on) {
		ev_prepare_start(loop, &prepare);
		ev_unref(loop);
	} else {
		ev_ref(loop);
		ev_prepare_stop(loop, &prepare);
	}
}

#include "turn_bench.h"
