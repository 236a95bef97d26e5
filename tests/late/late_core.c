/* late_core.c - the table of waiting calls: calls that wait for the program itself. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "loop/core/loop.h"
#include "loop/process/process.h"
#include "late/late.h"

/* --- channels and sync objects -------------------------------------------- */

static int64_t
call_chan_recv(struct waiter *w, uint64_t deadline_ns)
{
	return weft_chan_recv(w->object, &w->value, deadline_ns);
}

static int64_t
call_chan_send(struct waiter *w, uint64_t deadline_ns)
{
	return weft_chan_send(w->object, &w->value, deadline_ns);
}

static void
open_chan(struct waiter *w)
{
	w->object = weft_chan_new(sizeof(w->value), 1, WEFT_SHARED);
	CHECK(w->object != NULL);
}

static void
open_full_chan(struct waiter *w)
{
	open_chan(w);
	OK(weft_chan_send(w->object, &w->value, WEFT_NOWAIT));
}

static void
close_chan(struct waiter *w)
{
	(void)weft_chan_unref(w->object);
}

static void *
send_value(void *arg)
{
	struct waiter *w = arg;

	OK(weft_chan_send(w->object, &w->value, WEFT_NOWAIT));
	return NULL;
}

static void *
take_value(void *arg)
{
	struct waiter *w = arg;
	int64_t value;

	OK(weft_chan_recv(w->object, &value, WEFT_NOWAIT));
	return NULL;
}

static void
feed_chan_here(struct waiter *w)
{
	(void)send_value(w);
}

static void
drain_chan_here(struct waiter *w)
{
	(void)take_value(w);
}

static void
feed_chan_from_thread(struct waiter *w)
{
	late_on_thread(send_value, w);
}

static int64_t
call_select_chan(struct waiter *w, uint64_t deadline_ns)
{
	weft_case c = { .recv = w->object, .value = &w->value };

	return weft_select(&c, 1, deadline_ns);
}

/* The sync objects of one waiter. */
struct sync {
	weft_mutex mutex;
	weft_cond cond;
	weft_sem sem;
	weft_group group;
	weft_event event;
};

static void
open_sync(struct waiter *w)
{
	struct sync *sync = calloc(1, sizeof(*sync));

	CHECK(sync != NULL);
	OK(weft_group_add(&sync->group, 1));
	w->object = sync;
}

static void
close_sync(struct waiter *w)
{
	free(w->object);
}

static void
seize_mutex(struct waiter *w)
{
	OK(weft_mutex_lock(&((struct sync *)w->object)->mutex, WEFT_NOWAIT));
}

static int64_t
call_mutex(struct waiter *w, uint64_t deadline_ns)
{
	struct sync *sync = w->object;
	int64_t rc = weft_mutex_lock(&sync->mutex, deadline_ns);

	if (rc == 0)
		OK(weft_mutex_unlock(&sync->mutex));
	return rc;
}

static int64_t
call_cond(struct waiter *w, uint64_t deadline_ns)
{
	struct sync *sync = w->object;
	int64_t rc;

	OK(weft_mutex_lock(&sync->mutex, WEFT_NEVER));
	rc = weft_cond_wait(&sync->cond, &sync->mutex, deadline_ns);
	OK(weft_mutex_unlock(&sync->mutex));
	return rc;
}

static int64_t
call_sem(struct waiter *w, uint64_t deadline_ns)
{
	return weft_sem_acquire(&((struct sync *)w->object)->sem, deadline_ns);
}

static int64_t
call_group(struct waiter *w, uint64_t deadline_ns)
{
	return weft_group_wait(&((struct sync *)w->object)->group, deadline_ns);
}

static int64_t
call_event(struct waiter *w, uint64_t deadline_ns)
{
	return weft_event_wait(&((struct sync *)w->object)->event, deadline_ns);
}

static void
unlock_mutex(struct waiter *w)
{
	OK(weft_mutex_unlock(&((struct sync *)w->object)->mutex));
}

static void
wake_cond(struct waiter *w)
{
	CHECK_EQ(weft_cond_wake(&((struct sync *)w->object)->cond), 1);
}

static void
release_sem(struct waiter *w)
{
	OK(weft_sem_release(&((struct sync *)w->object)->sem, 1));
}

static void
end_group(struct waiter *w)
{
	OK(weft_group_done(&((struct sync *)w->object)->group));
}

static void
set_event(struct waiter *w)
{
	OK(weft_event_set(&((struct sync *)w->object)->event));
}

/* --- promises, ops, threadlets --------------------------------------------- */

static void
open_promise(struct waiter *w)
{
	w->object = weft_promise_new(NULL);
	CHECK(w->object != NULL);
}

static void
close_promise(struct waiter *w)
{
	(void)weft_promise_unref(w->object);
}

static int64_t
call_await(struct waiter *w, uint64_t deadline_ns)
{
	return weft_await(w->object, NULL, deadline_ns);
}

static void *
resolve(void *arg)
{
	struct waiter *w = arg;

	OK(weft_promise_resolve(w->object, weft_value_integer(1)));
	return NULL;
}

static void
feed_promise(struct waiter *w)
{
	(void)resolve(w);
}

static void
feed_promise_from_thread(struct waiter *w)
{
	late_on_thread(resolve, w);
}

static void
on_own_cancel(weft_op *op, int why, void *arg)
{
	(void)arg;
	OK(weft_op_finish(op, why));
}

static int64_t
call_own_op(struct waiter *w, uint64_t deadline_ns)
{
	OK(weft_op_init(&w->op, NULL, NULL, NULL));
	OK(weft_op_begin(&w->op, on_own_cancel, w, deadline_ns));
	return weft_op_wait(&w->op, WEFT_NEVER);
}

static void *
finish_op(void *arg)
{
	OK(weft_op_finish(&((struct waiter *)arg)->op, 7));
	return NULL;
}

static void
feed_own_op(struct waiter *w)
{
	(void)finish_op(w);
}

static void
feed_own_op_from_thread(struct waiter *w)
{
	late_on_thread(finish_op, w);
}

/* Another loop, whose threadlets run until `over` is set. */
struct elsewhere {
	weft_loop *loop;
	weft_event over;
	uint32_t lives, has_turned; /* atomic */
};

static void
open_elsewhere(struct stage *stage)
{
	struct elsewhere *there = calloc(1, sizeof(*there));

	CHECK(there != NULL);
	there->loop = make_started();
	there->over = (weft_event)WEFT_SHARED_INIT;
	stage->object = there;
}

static void
close_elsewhere(struct stage *stage)
{
	struct elsewhere *there = stage->object;

	(void)weft_event_set(&there->over);
	stop_and_free(there->loop);
	free(there);
}

static int
live_elsewhere(void *arg)
{
	struct elsewhere *there = arg;

	__atomic_add_fetch(&there->lives, 1, __ATOMIC_RELEASE);
	return weft_event_wait(&there->over, WEFT_NEVER);
}

static bool
all_live(struct waiter *w)
{
	struct elsewhere *there = w->stage->object;

	return __atomic_load_n(&there->lives, __ATOMIC_ACQUIRE) == w->stage->count;
}

static int64_t
call_join(struct waiter *w, uint64_t deadline_ns)
{
	struct elsewhere *there = w->stage->object;
	weft_go_opts opts = { .loop = there->loop, .scope = &w->scope };
	int64_t rc;

	OK(weft_scope_open(&w->scope, 0, WEFT_NEVER));
	w->value = weft_go_with(&opts, live_elsewhere, there);
	CHECK(w->value > 0);
	rc = weft_join(w->value, NULL, deadline_ns);
	weft_scope_cancel(&w->scope);
	(void)weft_scope_close(&w->scope);
	return rc;
}

static void
note_turn(void *arg)
{
	__atomic_store_n(&((struct elsewhere *)arg)->has_turned, 1, __ATOMIC_RELEASE);
}

/* End all threadlets there.  Then wait for one more iteration of that loop, which reports their
 * ends to the loop of the joining threadlets. */
static void
end_elsewhere(struct stage *stage)
{
	struct elsewhere *there = stage->object;

	OK(weft_event_set(&there->over));
	while (weft__count_get(&there->loop->threadlets) > 0)
		weft__sys->yield();
	OK(weft_loop_post(there->loop, note_turn, there));
	while (!__atomic_load_n(&there->has_turned, __ATOMIC_ACQUIRE))
		weft__sys->yield();
}

/* --- pools ------------------------------------------------------------------ */

/* A pool of one thread, which runs one task after the other. */
struct shop {
	weft_pool *pool;
	int door[2]; /* when it is closed, all tasks return */
	weft_op last;
	uint32_t was_last; /* atomic */
};

static void
open_shop(struct stage *stage)
{
	weft_pool_opts opts = { .threads_max = 1 };
	struct shop *shop = calloc(1, sizeof(*shop));

	CHECK(shop != NULL);
	shop->pool = weft_pool_new(&opts);
	CHECK(shop->pool != NULL);
	OK(pipe(shop->door));
	stage->object = shop;
}

static void
close_shop(struct stage *stage)
{
	struct shop *shop = stage->object;

	if (shop->door[1] >= 0)
		OK(close(shop->door[1]));
	else
		(void)weft_op_wait(&shop->last, WEFT_NEVER);
	OK(weft_pool_free(shop->pool));
	OK(close(shop->door[0]));
	free(shop);
}

static int
wait_at_door(void *arg)
{
	struct shop *shop = arg;
	char byte;

	return (int)read(shop->door[0], &byte, 1);
}

static int
tell_that_last(void *arg)
{
	__atomic_store_n(&((struct shop *)arg)->was_last, 1, __ATOMIC_RELEASE);
	return 0;
}

static int64_t
call_work(struct waiter *w, uint64_t deadline_ns)
{
	struct shop *shop = w->stage->object;

	return weft_work(shop->pool, wait_at_door, shop, deadline_ns);
}

static int64_t
call_work_op(struct waiter *w, uint64_t deadline_ns)
{
	struct shop *shop = w->stage->object;

	OK(weft_op_init(&w->op, NULL, NULL, NULL));
	OK(weft_work_op(shop->pool, wait_at_door, shop, &w->op, deadline_ns));
	return weft_op_wait(&w->op, WEFT_NEVER);
}

/* The task behind those of all waiters has started, so the tasks of the waiters have ended. */
static void
feed_shop(struct stage *stage)
{
	struct shop *shop = stage->object;

	OK(weft_op_init(&shop->last, NULL, NULL, NULL));
	OK(weft_work_op(shop->pool, tell_that_last, shop, &shop->last, WEFT_NEVER));
	OK(close(shop->door[1]));
	shop->door[1] = -1;
	while (!__atomic_load_n(&shop->was_last, __ATOMIC_ACQUIRE))
		weft__sys->yield();
}

/* --- processes and signals ---------------------------------------------------- */

static void
open_child(struct waiter *w)
{
	const char *const argv[] = { "head", "-c1", NULL };
	weft_child_opts opts = { .std = { WEFT_CHILD_FD, WEFT_CHILD_NULL, WEFT_CHILD_NULL } };
	weft_child *child;
	int fds[2];

	OK(pipe(fds));
	OK(fcntl(fds[0], F_SETFD, FD_CLOEXEC));
	OK(fcntl(fds[1], F_SETFD, FD_CLOEXEC));
	opts.fd[0] = fds[0];
	OK(weft_child_open(argv, &opts, &child, WEFT_NEVER));
	OK(close(fds[0]));
	w->peer = fds[1];
	w->object = child;
}

static void
close_child(struct waiter *w)
{
	weft_child_close(w->object);
	OK(close(w->peer));
}

static int64_t
call_child_wait(struct waiter *w, uint64_t deadline_ns)
{
	int status;

	return weft_child_wait(w->object, &status, deadline_ns);
}

static void
end_child(struct waiter *w)
{
	const struct weft__process *process = w->object; /* its first member */
	siginfo_t info;

	CHECK_EQ(write(w->peer, "x", 1), 1);
	OK(waitid(P_PID, (id_t)process->pid.pid, &info, WEXITED | WNOWAIT));
}

static int64_t
call_signal(struct waiter *w, uint64_t deadline_ns)
{
	(void)w;
	return weft_signal_wait(WEFT_SIG(SIGUSR1), deadline_ns);
}

static void
send_signal(struct stage *stage)
{
	(void)stage;
	OK(raise(SIGUSR1));
}

/* clang-format off */
#define ROW(call_) .call = #call_
const struct row late_core_rows[] = {
	{ ROW(weft_chan_recv), .prepare = open_chan, .call_it = call_chan_recv,
	  .finish = close_chan, .feed = feed_chan_here },
	{ ROW(weft_chan_recv), .prepare = open_chan, .call_it = call_chan_recv,
	  .finish = close_chan, .feed = feed_chan_from_thread, .max = 300 },
	{ ROW(weft_chan_send), .prepare = open_full_chan, .call_it = call_chan_send,
	  .finish = close_chan, .feed = drain_chan_here },
	{ ROW(weft_select), .prepare = open_chan, .call_it = call_select_chan,
	  .finish = close_chan, .feed = feed_chan_here },
	{ ROW(weft_mutex_lock), .prepare = open_sync, .seize = seize_mutex,
	  .call_it = call_mutex, .finish = close_sync, .feed = unlock_mutex,
	  .by_director = true },
	{ ROW(weft_cond_wait), .prepare = open_sync, .call_it = call_cond,
	  .finish = close_sync, .feed = wake_cond },
	{ ROW(weft_sem_acquire), .prepare = open_sync, .call_it = call_sem,
	  .finish = close_sync, .feed = release_sem },
	{ ROW(weft_group_wait), .prepare = open_sync, .call_it = call_group,
	  .finish = close_sync, .feed = end_group },
	{ ROW(weft_event_wait), .prepare = open_sync, .call_it = call_event,
	  .finish = close_sync, .feed = set_event },
	{ ROW(weft_await), .prepare = open_promise, .call_it = call_await,
	  .finish = close_promise, .feed = feed_promise },
	{ ROW(weft_await), .prepare = open_promise, .call_it = call_await,
	  .finish = close_promise, .feed = feed_promise_from_thread, .max = 300 },
	{ ROW(weft_op_begin), .call_it = call_own_op, .feed = feed_own_op },
	{ ROW(weft_op_begin), .call_it = call_own_op, .feed = feed_own_op_from_thread,
	  .max = 300 },
	{ ROW(weft_join), .open = open_elsewhere, .close = close_elsewhere,
	  .call_it = call_join, .is_waiting = all_live, .feed_all = end_elsewhere },
	{ ROW(weft_work), .open = open_shop, .close = close_shop, .call_it = call_work,
	  .feed_all = feed_shop, .has_no_end = true },
	{ ROW(weft_work_op), .open = open_shop, .close = close_shop,
	  .call_it = call_work_op, .feed_all = feed_shop, .has_no_end = true },
	{ ROW(weft_child_wait), .prepare = open_child, .call_it = call_child_wait,
	  .finish = close_child, .feed = end_child, .max = 20 },
	{ ROW(weft_signal_wait), .call_it = call_signal, .feed_all = send_signal },
	{ NULL },
};
/* clang-format on */
