/* op_scenarios.c - watches, ops that end early, and shutdown while all of these are pending. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>
#include "base/sys.h"
#include "fault.h"
#include "loop/core/loop.h"
#include "scenarios.h"

/* --- watch -------------------------------------------------------------- */

struct eye {
	weft_watch watch;
	int left; /* 1: a call is expected */
	int calls;
	int ended;
	uint32_t events; /* of the last start that succeeded */
	bool once;       /* stop at the first call */
};

static void
on_watch(weft_watch *watch, int what, void *arg)
{
	struct eye *eye = arg;
	char bytes[16];

	eye->left = 0;
	eye->calls++;
	eye->ended += what == WEFT_ESHUTDOWN;
	EXPECT(eye->ended <= 1);
	if (what > 0 && (what & WEFT_READABLE))
		(void)!read(watch->id, bytes, sizeof(bytes));
	if (eye->once && what > 0)
		EXPECT(weft_watch_stop(watch) == 1);
}

static int
start_watch(struct world *world, struct eye *eye, int fd, uint32_t events)
{
	int rc = weft_watch_start(world->loop, &eye->watch, fd, events, on_watch, eye);

	if (rc == 0)
		eye->events = events;
	return rc;
}

/* A started watch is called for what is ready, at the latest after the fault is healed. */
static void
expect_call(struct world *world, struct eye *eye)
{
	eye->left = 1;
	drive(world->loop, &eye->left);
	if (eye->left == 0)
		return;
	EXPECT(fault_hits() > 0);
	fault_heal();
	drive(world->loop, &eye->left);
	EXPECT(eye->left == 0);
}

/* Change a watch whose descriptor is ready.  If that fails, the watch is unchanged or stopped.
 * It is never started without getting called. */
static void
change_eye(struct world *world, struct eye *eye, const int fds[2], uint32_t events)
{
	if (start_watch(world, eye, fds[0], events) < 0) {
		EXPECT(fault_hits() > 0);
		fault_heal();
		eye->left = eye->events != 0;
		drive(world->loop, &eye->left);
		EXPECT(eye->left == 0 || weft_watch_stop(&eye->watch) == 0);
		EXPECT(start_watch(world, eye, fds[0], events) == 0);
		put_byte(fds[1]);
	}
	expect_call(world, eye);
}

static void
mute_and_change(struct world *world, struct eye *eye, const int fds[2])
{
	int calls;

	if (start_watch(world, eye, fds[0], WEFT_READABLE) < 0)
		return;
	put_byte(fds[1]);
	expect_call(world, eye);
	if (start_watch(world, eye, fds[0], 0) < 0) {
		EXPECT(fault_hits() > 0);
		return;
	}
	put_byte(fds[1]);
	calls = eye->calls;
	turn(world->loop);
	EXPECT(eye->calls == calls);
	change_eye(world, eye, fds, WEFT_READABLE | WEFT_EDGE);
	put_byte(fds[1]);
	change_eye(world, eye, fds, WEFT_READABLE);
}

/* The descriptor is closed without the loop's knowledge, and reused for another file. */
static void
replace_file(struct world *world, struct eye *eye, int fds[2])
{
	close_both(fds);
	if (!make_pipe(fds))
		return;
	put_byte(fds[1]);
	if (start_watch(world, eye, fds[0], WEFT_READABLE) == 0)
		expect_call(world, eye);
	else
		EXPECT(fault_hits() > 0);
}

/* A regular file is always ready, and so is a pipe with room. */
static void
watch_ready_ones(struct world *world, int pipe_end)
{
	struct eye writer = { .once = true }, file = { .calls = 0 };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (start_watch(world, &writer, pipe_end, WEFT_WRITABLE) == 0)
		expect_call(world, &writer);
	if (fd >= 0 && start_watch(world, &file, fd, WEFT_READABLE) == 0) {
		expect_call(world, &file);
		expect_call(world, &file);
		weft__watch_set_background(&file.watch, true);
		EXPECT(weft_watch_stop(&file.watch) == 1);
	}
	EXPECT(weft_watch_stop(&writer.watch) == 0 || fault_hits() > 0);
	fault_close(fd);
}

void
run_watch(const char *backend)
{
	struct world world;
	struct eye eye = { .calls = 0 }, other = { .calls = 0 };
	int first[2], second[2];
	bool started;

	if (!make_world(&world, backend, 0))
		return;
	if (make_pipe(first)) {
		mute_and_change(&world, &eye, first);
		watch_ready_ones(&world, first[1]);
		replace_file(&world, &eye, first);
		(void)weft_watch_stop(&eye.watch);
		EXPECT(weft_watch_stop(&eye.watch) == 0);
	}
	if (make_pipe(second)) {
		started = start_watch(&world, &other, second[0], WEFT_READABLE) == 0;
		close_by_op(&world, second[0]);
		turn(world.loop);
		EXPECT(other.ended == started);
	}
	check_works(&world);
	close_both(first);
	fault_close(second[1]);
	end_world(&world);
}

/* --- ops: canceled, timed out, custom ----------------------------------- */

#define OWN_MANY 20 /* more than the initial capacity of the wheel */

/* Finishes at once. */
static void
on_cancel(weft_op *op, int why, void *arg)
{
	(void)arg;
	EXPECT(weft_op_finish(op, why) == 0);
}

struct later {
	weft_node node;
	weft_op *op;
	int why;
};

static void
on_later(void *arg)
{
	struct later *later = arg;

	EXPECT(weft_op_finish(later->op, later->why) == 0);
}

/* Finishes in a posted callback. */
static void
on_cancel_later(weft_op *op, int why, void *arg)
{
	struct later *later = arg;

	*later = (struct later){ .op = op, .why = why };
	later->node = (weft_node){ .fn = on_later, .arg = later };
	if (weft_loop_post_node(NULL, &later->node) < 0)
		on_later(later);
}

static void
finisher_main(void *arg)
{
	EXPECT(weft_op_finish(arg, 7) == 0);
}

/* Begun here, finished by another thread. */
static void
finish_elsewhere(struct world *world)
{
	struct weft__thread_opts opts = { .fn = finisher_main };
	struct job job;
	uint64_t thread;

	init(world, &job);
	begin(&job, weft_op_begin(&job.op, on_cancel, NULL, WEFT_NEVER));
	if (job.left == 0)
		return;
	opts.arg = &job.op;
	if (weft__sys_real.thread_start(&opts, &thread) < 0) {
		(void)end_job(world, &job);
		return;
	}
	(void)weft__sys_real.thread_join(thread);
	EXPECT(await(world, &job) == 7);
}

static void
run_own_kinds(struct world *world)
{
	struct job many[OWN_MANY];
	struct later later[OWN_MANY];

	for (int i = 0; i < OWN_MANY; i++) {
		init(world, &many[i]);
		begin(&many[i],
		      weft_op_begin(&many[i].op, i % 2 ? on_cancel : on_cancel_later, &later[i],
		                    i % 4 ? weft_after((uint64_t)i * 40 * WEFT_US) : WEFT_NEVER));
	}
	for (int i = 0; i < OWN_MANY; i++) {
		if (i % 4 == 0 || i % 7 == 0)
			weft_op_cancel(&many[i].op);
		(void)await(world, &many[i]);
	}
	finish_elsewhere(world);
}

/* Ops that never get a result. */
static void
wait_in_vain(struct world *world, const int fds[2])
{
	struct job jobs[4];
	char byte;

	for (int i = 0; i < 4; i++)
		init(world, &jobs[i]);
	begin(&jobs[0], weft_op_recv(&jobs[0].op, fds[0], &byte, 1, 0, weft_after(300 * WEFT_US)));
	begin(&jobs[1], weft_op_poll(&jobs[1].op, fds[1], WEFT_READABLE | WEFT_MULTI, WEFT_NEVER));
	begin(&jobs[2], weft_op_sleep(&jobs[2].op, weft_after(200 * WEFT_US)));
	begin(&jobs[3], weft_op_sleep(&jobs[3].op, WEFT_NEVER));
	EXPECT(await(world, &jobs[0]) == WEFT_ETIMEDOUT || fault_hits() > 0);
	(void)end_job(world, &jobs[1]);
	EXPECT(await(world, &jobs[2]) == 0 || fault_hits() > 0);
	(void)end_job(world, &jobs[3]);
	EXPECT(jobs[3].result == WEFT_ECANCELED || fault_hits() > 0);
}

/* Both directions of a descriptor at once, and a byte that arrives. */
static void
poll_both(struct world *world, const int fds[2])
{
	struct job reader, writer;
	char byte = 0;

	init(world, &reader);
	init(world, &writer);
	begin(&reader, weft_op_poll(&reader.op, fds[0], WEFT_READABLE, weft_after(WAIT_NS)));
	begin(&writer, weft_op_poll(&writer.op, fds[0], WEFT_WRITABLE, weft_after(WAIT_NS)));
	put_byte(fds[1]);
	(void)await(world, &writer);
	EXPECT(await(world, &reader) > 0 || fault_hits() > 0);
	init(world, &reader);
	begin(&reader, weft_op_recv(&reader.op, fds[0], &byte, 1, 0, weft_after(WAIT_NS)));
	EXPECT(await(world, &reader) == 1 || fault_hits() > 0);
}

void
run_ops(const char *backend)
{
	struct world world;
	int fds[2];

	if (!make_world(&world, backend, 0))
		return;
	if (make_pair(fds)) {
		poll_both(&world, fds);
		wait_in_vain(&world, fds);
	}
	run_own_kinds(&world);
	check_works(&world);
	close_both(fds);
	end_world(&world);
}

/* --- stop: shutdown with everything pending ----------------------------- */

struct ending {
	struct world world;
	struct job jobs[5];
	struct job own[4];
	struct eye eye;
	int partner; /* own[i ^ partner] is the partner of own[i] */
	weft_timer timer;
	int fds[2], others[2];
};

/* Two ops on one connection: the cancellation of one finishes both. */
static void
on_cancel_both(weft_op *op, int why, void *arg)
{
	struct ending *ending = arg;
	int canceled = 0;

	while (&ending->own[canceled].op != op)
		canceled++;
	(void)weft_op_finish(op, why);
	if (ending->own[canceled ^ ending->partner].left > 0)
		(void)weft_op_finish(&ending->own[canceled ^ ending->partner].op, why);
}

/* The cancellation of one cancels the others. */
static void
on_cancel_request(weft_op *op, int why, void *arg)
{
	struct ending *ending = arg;

	EXPECT(weft_op_finish(op, why) == 0);
	for (int i = 0; i < 4; i++)
		weft_op_cancel(&ending->own[i].op);
}

/* The shutdown disarms this timer without calling it. */
static void
on_far(weft_timer *timer, void *arg)
{
	(void)timer;
	(void)arg;
	fault_problem(__FILE__, __LINE__, "a timer is disarmed");
}

static void
start_all(struct ending *e, weft_op_cancel_fn fn)
{
	struct world *world = &e->world;
	static char byte;

	for (int i = 0; i < 5; i++)
		init(world, &e->jobs[i]);
	for (int i = 0; i < 4; i++) {
		init(world, &e->own[i]);
		begin(&e->own[i], weft_op_begin(&e->own[i].op, fn, e, WEFT_NEVER));
	}
	begin(&e->jobs[0], weft_op_sleep(&e->jobs[0].op, WEFT_NEVER));
	begin(&e->jobs[1],
	      weft_op_recv(&e->jobs[1].op, e->fds[0], &byte, 1, 0, weft_after(WEFT_S)));
	begin(&e->jobs[2], weft_op_recv_multi(&e->jobs[2].op, e->fds[1], WEFT_NEVER));
	begin(&e->jobs[3],
	      weft_op_poll(&e->jobs[3].op, e->others[0], WEFT_READABLE | WEFT_MULTI, WEFT_NEVER));
	begin(&e->jobs[4], weft_op_sleep(&e->jobs[4].op, weft_after(WEFT_S)));
	e->eye = (struct eye){ .calls = 0 };
	e->eye.left = start_watch(world, &e->eye, e->others[1], WEFT_READABLE) == 0;
	(void)weft_timer_start(world->loop, &e->timer, weft_after(WEFT_S), 0, on_far, NULL);
	(void)weft_schedule_timeout(world->loop, WEFT_S, on_call, world);
}

static void
stop_all(const char *backend, weft_op_cancel_fn fn, bool running, int partner)
{
	struct ending e;

	memset(&e, 0, sizeof(e));
	e.partner = partner;
	if (!make_world(&e.world, backend, 0))
		return;
	if (make_pair(e.fds) && make_pair(e.others))
		start_all(&e, fn);
	accepted(&e.world, weft_loop_post(e.world.loop, on_call, &e.world));
	if (running)
		turn(e.world.loop);
	end_world(&e.world);
	EXPECT(e.world.left == 0);
	for (int i = 0; i < 5; i++)
		EXPECT(e.jobs[i].left == 0);
	for (int i = 0; i < 4; i++)
		EXPECT(e.own[i].left == 0);
	EXPECT(e.eye.left == 0);
	close_both(e.fds);
	close_both(e.others);
}

void
run_stop(const char *backend)
{
	stop_all(backend, on_cancel, true, 0);
	stop_all(backend, on_cancel, false, 0);
}

void
run_stop_both(const char *backend)
{
	for (int partner = 1; partner < 4; partner++)
		stop_all(backend, on_cancel_both, true, partner);
}

void
run_stop_request(const char *backend)
{
	stop_all(backend, on_cancel_request, true, 0);
}
