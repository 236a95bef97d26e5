/* scenarios.c - small programs over the public API that handle every error.
 *
 * Each call may fail.  After an error, the program continues or cleans up.  EXPECT checks what
 * must hold under every fault:
 *
 *   1. Every accepted callback runs exactly once: posts, timers, timeouts, results of ops.
 *   2. After the last fault, the loop works: posts and descriptors.
 *   3. At the end the loop shuts down and is freed, whatever happened before.
 *   4. The data that was read is the data that was sent.
 *   5. The library repeats calls that must be repeated; the program does not see it.
 *   6. If io_uring does not do something that could be done at once, nothing is late because of
 *      it.
 *
 * No wait is longer than WAIT_NS.  After that a message counts as lost, and its op is canceled.
 * Faults during shutdown and freeing are reached, too: the fault is healed in the middle only
 * if it was injected by then.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/embed.h>
#include <weft/wheel.h>
#include "base/sys.h"
#include "fault.h"
#include "scenarios.h"
#include "strike.h"

uint64_t scenario_wait_ns;

#define STEPS_MAX  5000 /* loop iterations after which a wait counts as a busy loop */
#define POSTS_MANY 600  /* makes the producer queue grow and become hot */

/* --- waiting ------------------------------------------------------------ */

/* A descriptor that epoll refuses counts as always ready, like a regular file.  A wait for it
 * is a busy loop until something else ends the wait. */
static bool
may_spin(void)
{
	return fault_hits() > 0 && fault_is_of(FAULT_epoll_ctl) && fault_error() == EPERM;
}

void
drive(weft_loop *loop, const int *left)
{
	uint64_t deadline_ns = weft_after(WAIT_NS);
	int steps = 0, rc = 1;

	while (*left > 0 && rc > 0 && (steps < STEPS_MAX || may_spin())
	       && (steps < STEPS_MIN || weft_now() < deadline_ns)) {
		rc = weft_loop_run_once(loop, deadline_ns);
		steps++;
	}
	EXPECT(rc >= 0);
	EXPECT(steps < STEPS_MAX || fault_is_lasting() || may_spin());
}

bool
went_well(int64_t rc, int64_t want)
{
	EXPECT(rc == want || fault_hits() > 0);
	return rc == want;
}

bool
went_in_time(int64_t rc, int64_t want)
{
	EXPECT(rc == want || fault_hits() > 0);
	EXPECT(rc != WEFT_ETIMEDOUT
	       || (fault_hits() > 0
	           && (fault_is_of(FAULT_recv) || (fault_error() && !fault_is_honest()))));
	return rc == want;
}

uint64_t
soon(void)
{
	return weft_after(4 * WAIT_NS);
}

int
start_on(struct world *world, weft_threadlet_fn fn, void *arg)
{
	weft_go_opts opts = { .loop = world->loop };

	return went_well(weft_go_with(&opts, fn, arg) > 0, true);
}

void
await_zero(struct world *world, const int *left)
{
	for (int times = 2 * STEPS_MIN; times > 0 && *left > 0; times--)
		drive(world->loop, left);
	EXPECT(*left == 0);
}

void
turn(weft_loop *loop)
{
	for (int i = 0; i < STEPS_MIN; i++)
		(void)weft_loop_run_once(loop, WEFT_NOWAIT);
}

void
on_done(weft_op *op, int64_t result, void *arg)
{
	struct job *job = arg;

	EXPECT(job->left == 1);
	EXPECT(result != WEFT_EAGAIN && result != -EINTR); /* invariant 5 */
	job->result = result;
	if (result > 0)
		job->bytes += (size_t)result;
	if (!op->more)
		job->left = 0;
}

void
begin(struct job *job, int rc)
{
	job->left = rc == 0;
	job->result = rc;
}

void
init(struct world *world, struct job *job)
{
	*job = (struct job){ .result = WEFT_EAGAIN };
	EXPECT(weft_op_init(&job->op, world->loop, on_done, job) == 0);
}

int64_t
await(struct world *world, struct job *job)
{
	drive(world->loop, &job->left);
	if (job->left > 0) {
		EXPECT(!fault_is_painless()); /* invariant 6 */
		weft_op_cancel(&job->op);
		drive(world->loop, &job->left);
	}
	EXPECT(job->left == 0);
	return job->result;
}

int64_t
end_job(struct world *world, struct job *job)
{
	weft_op_cancel(&job->op);
	return await(world, job);
}

void
close_by_op(struct world *world, int fd)
{
	struct job job;

	if (fd < 0)
		return;
	init(world, &job);
	begin(&job, weft_op_close(&job.op, fd));
	if (job.result < 0)
		fault_close(fd);
	else
		(void)await(world, &job);
}

bool
make_pair(int fds[2])
{
	fds[0] = fds[1] = -1;
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0;
}

bool
make_pipe(int fds[2])
{
	fds[0] = fds[1] = -1;
	return pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0;
}

void
close_both(int fds[2])
{
	fault_close(fds[0]);
	fault_close(fds[1]);
}

void
put_byte(int fd)
{
	(void)!write(fd, "x", 1);
}

/* --- lifetime of a world ------------------------------------------------ */

void
on_call(void *arg)
{
	((struct world *)arg)->left--;
}

void
accepted(struct world *world, int64_t rc)
{
	EXPECT(rc >= 0 || fault_hits() > 0);
	if (rc >= 0)
		world->left++;
}

bool
make_world(struct world *world, const char *backend, uint32_t flags)
{
	weft_loop_opts opts = { .name = "sweep",
		                .backend = backend,
		                .flags = WEFT_LOOP_NO_SPIN | flags };

	*world = (struct world){ .loop = weft_loop_new(&opts) };
	EXPECT(world->loop || fault_hits() > 0);
	return world->loop != NULL;
}

/* A byte passes through the loop after the fault was healed. */
static void
check_bytes(struct world *world)
{
	int fds[2];
	char byte = 0;
	struct job job;

	if (!make_pair(fds))
		return;
	init(world, &job);
	begin(&job, weft_op_recv(&job.op, fds[0], &byte, 1, 0, weft_after(WAIT_NS)));
	EXPECT(job.left == 1);
	turn(world->loop);
	put_byte(fds[1]);
	EXPECT(await(world, &job) == 1);
	EXPECT(byte == 'x');
	close_by_op(world, fds[0]);
	fault_close(fds[1]);
}

void
check_works(struct world *world)
{
	bool struck = fault_hits() > 0;

	if (struck)
		fault_heal();
	drive(world->loop, &world->left);
	EXPECT(world->left == 0);
	accepted(world, weft_loop_post(world->loop, on_call, world));
	drive(world->loop, &world->left);
	EXPECT(world->left == 0);
	if (struck)
		check_bytes(world);
}

void
end_world(struct world *world)
{
	weft_loop_shutdown(world->loop);
	for (int i = 0; i < STEPS_MIN; i++)
		if (weft_loop_state(world->loop) != WEFT_STOPPED)
			(void)weft_loop_run_once(world->loop, WEFT_NOWAIT);
	EXPECT(weft_loop_state(world->loop) == WEFT_STOPPED);
	/* A loop that is not freed would falsify the counts of all later runs. */
	while (weft_loop_state(world->loop) != WEFT_STOPPED)
		(void)weft_loop_run_once(world->loop, WEFT_NEVER);
	EXPECT(weft_loop_free(world->loop) == 0);
}

/* --- loop: everything that needs no descriptor -------------------------- */

static void
on_timer(weft_timer *timer, void *arg)
{
	struct world *world = arg;

	if (timer->every_ns)
		EXPECT(weft_timer_stop(timer) == 1);
	world->left--;
}

static void
on_leave(weft_timer *timer, void *arg)
{
	(void)timer;
	weft_loop_break(arg);
}

static void
on_nested(void *arg)
{
	struct world *world = arg;

	accepted(world, weft_schedule_microtask(NULL, on_call, world));
	accepted(world, weft_schedule_tick(NULL, on_call, world));
	accepted(world, weft_schedule_immediate(NULL, on_call, world));
	accepted(world, weft_schedule_timeout(NULL, 0, on_call, world));
	world->left--;
}

static void
schedule_much(struct world *world)
{
	int64_t id;

	for (int i = 0; i < 70; i++) /* more than a table and two slabs hold */
		accepted(world,
		         weft_schedule_timeout(world->loop, (uint64_t)i * WEFT_US, on_call, world));
	accepted(world, weft_schedule_immediate(world->loop, on_call, world));
	id = weft_schedule_timeout(world->loop, WEFT_S, on_call, world);
	if (id > 0)
		EXPECT(weft_schedule_clear(world->loop, id, NULL) == 0);
}

static void
post_much(struct world *world, weft_node nodes[3])
{
	accepted(world, weft_loop_post(world->loop, on_nested, world));
	for (int i = 0; i < POSTS_MANY; i++)
		accepted(world, weft_loop_post(world->loop, on_call, world));
	for (int i = 0; i < 3; i++)
		nodes[i] = (weft_node){ .fn = on_call, .arg = world };
	accepted(world, weft_loop_post_node(world->loop, &nodes[0]));
	accepted(world, weft_loop_post_node(world->loop, &nodes[1]));
	accepted(world, weft_loop_post_before_wait(world->loop, &nodes[2]));
}

static void
start_timers(struct world *world, weft_timer timers[20])
{
	memset(timers, 0, 20 * sizeof(timers[0]));
	for (int i = 0; i < 20; i++)
		accepted(world, weft_timer_start(world->loop, &timers[i],
		                                 weft_after((uint64_t)i * 20 * WEFT_US),
		                                 i % 5 ? 0 : WEFT_MS, on_timer, world));
}

static void
run_loop(const char *backend)
{
	struct world world;
	weft_node nodes[3];
	weft_timer timers[20], guard = WEFT_INIT;

	if (!make_world(&world, backend, 0))
		return;
	accepted(&world, weft_schedule_microtask(world.loop, on_call, &world));
	post_much(&world, nodes);
	start_timers(&world, timers);
	schedule_much(&world);
	if (weft_timer_start(world.loop, &guard, weft_after(WAIT_NS), 0, on_leave, world.loop)
	    == 0) {
		weft_timer_set_background(&guard, true);
		EXPECT(weft_loop_run(world.loop) == 0);
	}
	check_works(&world);
	(void)weft_timer_stop(&guard);
	end_world(&world);
}

/* --- thread: a loop on its own thread, and two other threads ------------ */

enum awaited { NOTHING, WATCH, OP };

struct crowd {
	struct world world;
	int fds[2]; /* what the loop waits for, so that it waits in its backend; or -1 */
	weft__a64 called;
	weft__a64 posted;
	weft__a64 lost;
	weft_watch watch;
	weft_op op;
	char byte;
};

static void
on_crowd(void *arg)
{
	(void)weft__add(&((struct crowd *)arg)->called, 1, WEFT__RELAXED);
}

/* Wait until everything that was posted was called: for a second at most, or for less if a
 * fault may have lost a wake. */
static bool
is_called(struct crowd *crowd, bool hurry)
{
	uint64_t begin_ns = weft__sys_real.now();
	uint64_t posted = weft__load(&crowd->posted, WEFT__RELAXED);

	while (weft__load(&crowd->called, WEFT__RELAXED) < posted) {
		uint64_t waited_ns = weft__sys_real.now() - begin_ns;
		bool lost = hurry && fault_hits() > 0 && !fault_is_honest();

		if (waited_ns > (lost ? WAIT_NS : 50 * WAIT_NS))
			return false;
		(void)sched_yield();
	}
	return true;
}

static void
on_crowd_watch(weft_watch *watch, int what, void *arg)
{
	char bytes[16];

	(void)arg;
	if (what > 0)
		(void)!read(watch->id, bytes, sizeof(bytes));
}

static void
on_crowd_byte(weft_op *op, int64_t result, void *arg)
{
	struct crowd *crowd = arg;

	if (result > 0)
		(void)weft_op_recv(op, crowd->fds[0], &crowd->byte, 1, 0, WEFT_NEVER);
}

/* Make the loop wait for something. */
static void
occupy(struct crowd *crowd, enum awaited what)
{
	weft_loop *loop = crowd->world.loop;

	if (what == WATCH && make_pipe(crowd->fds))
		(void)weft_watch_start(loop, &crowd->watch, crowd->fds[0], WEFT_READABLE,
		                       on_crowd_watch, NULL);
	if (what != OP || !make_blocking_pair(crowd->fds))
		return;
	EXPECT(weft_op_init(&crowd->op, loop, on_crowd_byte, crowd) == 0);
	(void)weft_op_recv(&crowd->op, crowd->fds[0], &crowd->byte, 1, 0, WEFT_NEVER);
}

/* Post, and wait for the call.  If an untrue error of the kernel lost the wake, a byte in the
 * pipe wakes the loop. */
static void
post_to_crowd(struct crowd *crowd)
{
	if (weft_loop_post(crowd->world.loop, on_crowd, crowd) < 0)
		return;
	(void)weft__add(&crowd->posted, 1, WEFT__RELAXED);
	if (is_called(crowd, true))
		return;
	EXPECT(fault_hits() > 0 && !fault_is_honest());
	put_byte(crowd->fds[1]);
	EXPECT(is_called(crowd, false));
}

static void
poster_main(void *arg)
{
	struct crowd *crowd = arg;
	weft_loop *loop = crowd->world.loop;
	int64_t id;

	for (int i = 0; i < 3; i++)
		post_to_crowd(crowd);
	id = weft_schedule_timeout(loop, 0, on_crowd, crowd);
	if (id > 0 && weft_schedule_clear(loop, id, NULL) < 0)
		(void)weft__add(&crowd->posted, 1, WEFT__RELAXED);
	weft_loop_wake(loop);
}

static void
run_posters(struct crowd *crowd)
{
	struct weft__thread_opts opts = { .fn = poster_main, .arg = crowd };
	uint64_t threads[2];
	int count = 0;

	while (count < 2 && weft__sys_real.thread_start(&opts, &threads[count]) == 0)
		count++;
	while (count > 0)
		(void)weft__sys_real.thread_join(threads[--count]);
}

/* Shut it down from here and wait.  If a wake was lost, send the byte again. */
static void
stop_crowd(struct crowd *crowd)
{
	weft_loop *loop = crowd->world.loop;
	bool stopped = false;

	weft_loop_shutdown(loop);
	for (int i = 0; !stopped && i < 100; i++) {
		stopped = weft_loop_wait_stopped(loop, weft_after(WAIT_NS)) == 0;
		if (!stopped && fault_hits() > 0 && !fault_is_honest())
			put_byte(crowd->fds[1]);
	}
	EXPECT(stopped);
	EXPECT(weft_loop_free(loop) == 0);
	EXPECT(weft__load(&crowd->called, WEFT__RELAXED)
	       >= weft__load(&crowd->posted, WEFT__RELAXED));
}

static void
run_crowd(const char *backend, enum awaited what)
{
	struct crowd crowd = { .fds = { -1, -1 } };

	if (!make_world(&crowd.world, backend, WEFT_LOOP_KEEP))
		return;
	occupy(&crowd, what);
	if (weft_loop_start(crowd.world.loop) == 0) {
		run_posters(&crowd);
		if (fault_hits() > 0)
			fault_heal();
		post_to_crowd(&crowd);
		stop_crowd(&crowd);
	} else {
		EXPECT(fault_hits() > 0);
		(void)weft_watch_stop(&crowd.watch);
		weft_op_cancel(&crowd.op);
		check_works(&crowd.world);
		end_world(&crowd.world);
	}
	close_both(crowd.fds);
}

static void
run_thread(const char *backend)
{
	run_crowd(backend, NOTHING);
}

static void
run_thread_fd(const char *backend)
{
	run_crowd(backend, WATCH);
}

static void
run_thread_op(const char *backend)
{
	run_crowd(backend, OP);
}

/* --- wheel -------------------------------------------------------------- */

#define TIMERS 200

static void
on_fire(weft_timer *timer, void *arg)
{
	int *left = arg;

	(void)timer;
	(*left)--;
}

static void
run_wheel(const char *backend)
{
	static weft_timer timers[TIMERS];
	weft_wheel *wheel = weft_wheel_new(1000);
	int armed = 0, left;

	(void)backend;
	EXPECT(wheel || fault_hits() > 0);
	if (!wheel)
		return;
	memset(timers, 0, sizeof(timers));
	for (int i = 0; i < TIMERS; i++) {
		uint64_t due_ns = 2000 + (uint64_t)i * i * 977;
		int rc = weft_wheel_start(wheel, &timers[i], due_ns, 0, on_fire, &left);

		EXPECT(rc == 0 || (rc == WEFT_ENOMEM && fault_hits() > 0));
		armed += rc == 0;
	}
	for (int i = 0; i < TIMERS; i += 3)
		armed -= weft_wheel_stop(wheel, &timers[i]);
	EXPECT(weft_wheel_count(wheel) == (size_t)armed);
	left = armed;
	for (uint64_t now_ns = 2000; now_ns < 50000000; now_ns += 999999)
		EXPECT(weft_wheel_advance(wheel, now_ns) >= 0);
	EXPECT(left == 0 && weft_wheel_next(wheel) == WEFT_NEVER);
	fault_heal();
	left = weft_wheel_start(wheel, &timers[0], 60000000, 0, on_fire, &left) == 0;
	EXPECT(left == 1 && weft_wheel_advance(wheel, 60000000) == 1);
	EXPECT(left == 0);
	weft_wheel_free(wheel);
}

const struct scenario scenarios[] = {
	{ "loop", run_loop },
	{ "thread", run_thread },
	{ "thread_fd", run_thread_fd },
	{ "thread_op", run_thread_op },
	{ "echo", run_echo },
	{ "tcp", run_tcp },
	{ "full", run_full },
	{ "full_two", run_full_two },
	{ "poller", run_poller },
	{ "watch", run_watch },
	{ "ops", run_ops },
	{ "stop", run_stop },
	{ "stop_both", run_stop_both },
	{ "stop_request", run_stop_request },
	{ "choice", run_choice },
	{ "flood", run_flood },
	{ "late", run_late },
	{ "caller", run_caller },
	{ "prompt", run_prompt },
	{ "early", run_early },
	{ "stream", run_stream },
	{ "clients", run_clients },
	{ "line", run_line },
	{ "work", run_work },
	{ "dag", run_dag },
	{ "promise", run_promise },
	{ "file", run_file },
	{ "dgram", run_dgram },
	{ "dns", run_dns },
	{ "streams", run_streams },
	{ "stream_events", run_stream_events },
	{ "stream_file", run_stream_file },
	{ "tls", run_tls },
	{ "tls_client", run_tls_client },
	{ "fetch", run_fetch },
	{ "admin", run_admin },
	{ "redis", run_redis },
	{ "http", run_http },
	{ "signal", run_signal },
	{ "child", run_child },
	{ "child_stop", run_child_stop },
	{ "pid", run_pid },
	{ "wheel", run_wheel },
	{ "spawn", run_spawn },
	{ "spawn_there", run_spawn_there },
};
const size_t scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);
