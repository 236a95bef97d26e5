/* uring_scenarios.c - cases that only a completion backend has: fallback, floods, late ends.
 *
 * The sockets are blocking here, so that io_uring requests stay in the kernel.  The programs do
 * not depend on that, and run on each backend.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/weft.h>
#include "fault.h"
#include "loop/core/loop.h"
#include "scenarios.h"
#include "uring.h"

bool
make_blocking_pair(int fds[2])
{
	fds[0] = fds[1] = -1;
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0;
}

/* --- choice: another backend replaces io_uring if that is refused ------- */

/* Whether a program that requested no particular backend does not notice the fault. */
static bool
is_unnoticed(void)
{
	return fault_is_of(FAULT_uring_setup) || fault_is_of(FAULT_map)
	       || (fault_is_of(FAULT_uring_register) && fault_is_honest())
	       || (fault_is_of(FAULT_uring_enter) && fault_is_honest());
}

static void
pass_byte(struct world *world, const int fds[2])
{
	struct job in, out;
	char byte = 0;

	init(world, &in);
	init(world, &out);
	begin(&in, weft_op_recv(&in.op, fds[0], &byte, 1, 0, weft_after(WAIT_NS)));
	begin(&out, weft_op_send(&out.op, fds[1], "x", 1, 0, weft_after(WAIT_NS)));
	EXPECT(await(world, &out) == 1 || (fault_hits() > 0 && !is_unnoticed()));
	EXPECT((await(world, &in) == 1 && byte == 'x') || (fault_hits() > 0 && !is_unnoticed()));
}

/* The backend is the best one that can be opened. */
static void
check_choice(const struct world *world)
{
	const struct weft__backend_ops *ops = world->loop->backend.ops;
	bool refused = fault_is_of(FAULT_uring_setup) || fault_is_of(FAULT_map)
	               || fault_is_lasting();

	if (fault_hits() == 0)
		EXPECT(ops && strcmp(ops->name, "uring") == 0);
	else if (refused && is_unnoticed())
		EXPECT(ops && strcmp(ops->name, "epoll") == 0);
}

void
run_choice(const char *backend)
{
	struct world world;
	int fds[2];

	(void)backend; /* no backend is requested */
	if (!make_world(&world, NULL, 0))
		return;
	if (make_blocking_pair(fds)) {
		pass_byte(&world, fds);
		check_choice(&world);
		pass_byte(&world, fds);
	}
	check_works(&world);
	close_both(fds);
	end_world(&world);
}

/* --- flood: many results at once, and the first cancels the others ------ */

#define RIVALS 12 /* more than a small completion ring holds */

struct flood {
	struct world world;
	int fds[RIVALS][2];
	struct rival *rivals[RIVALS]; /* NULL: it has finished */
	struct rival *graves[2 * RIVALS];
	int grave_count;
	int left;
	int cancelled; /* callbacks so far; only the first one cancels */
	size_t bytes;
	bool rush; /* the first does not cancel the others */
};

struct rival {
	weft_op op;
	struct flood *flood;
	int number;
	char byte;
};

/* Poison an op that has finished.  The library must not access it. */
static void
bury(struct flood *flood, struct rival *rival)
{
	flood->rivals[rival->number] = NULL;
	memset(rival, 0xa5, sizeof(*rival));
	flood->graves[flood->grave_count++] = rival;
}

static void
on_rival(weft_op *op, int64_t result, void *arg)
{
	struct rival *rival = arg;
	struct flood *flood = rival->flood;

	EXPECT(!op->more && flood->rivals[rival->number] == rival);
	EXPECT(result == 1 || result == WEFT_ECANCELED || fault_hits() > 0);
	EXPECT(result != WEFT_EAGAIN && result != -EINTR);
	flood->bytes += result == 1;
	flood->left--;
	bury(flood, rival);
	if (flood->rush || flood->cancelled++ > 0)
		return;
	for (int i = 0; i < RIVALS; i++)
		if (flood->rivals[i])
			weft_op_cancel(&flood->rivals[i]->op);
}

static void
start_rival(struct flood *flood, int number)
{
	struct rival *rival = calloc(1, sizeof(*rival));

	if (!rival)
		return;
	rival->flood = flood;
	rival->number = number;
	EXPECT(weft_op_init(&rival->op, flood->world.loop, on_rival, rival) == 0);
	if (weft_op_recv(&rival->op, flood->fds[number][0], &rival->byte, 1, 0, WEFT_NEVER) < 0) {
		free(rival);
		return;
	}
	flood->rivals[number] = rival;
	flood->left++;
}

/* Wait for all of them.  Cancel those that are late. */
static void
await_rivals(struct flood *flood)
{
	drive(flood->world.loop, &flood->left);
	EXPECT(flood->left == 0 || fault_hits() > 0);
	for (int i = 0; i < RIVALS; i++)
		if (flood->rivals[i])
			weft_op_cancel(&flood->rivals[i]->op);
	drive(flood->world.loop, &flood->left);
	EXPECT(flood->left == 0);
}

static void
run_rivals(struct flood *flood)
{
	uint64_t overflows = fault_overflows();

	for (int i = 0; i < RIVALS; i++)
		start_rival(flood, i);
	turn(flood->world.loop); /* the kernel has all requests now */
	for (int i = 0; i < RIVALS; i++)
		put_byte(flood->fds[i][1]);
	await_rivals(flood);
	flood->rush = true; /* bytes of the canceled receives are still there */
	for (int i = 0; i < RIVALS; i++)
		start_rival(flood, i);
	for (int i = 0; i < RIVALS; i++)
		put_byte(flood->fds[i][1]);
	await_rivals(flood);
	EXPECT(flood->bytes > RIVALS || fault_hits() > 0);
	EXPECT(fault_overflows() > overflows || !fault_has_small_rings() || fault_hits() > 0);
}

void
run_flood(const char *backend)
{
	struct flood flood;
	bool made = true;

	memset(&flood, 0, sizeof(flood));
	if (!make_world(&flood.world, backend, 0))
		return;
	for (int i = 0; i < RIVALS; i++)
		made = make_blocking_pair(flood.fds[i]) && made;
	if (made)
		run_rivals(&flood);
	check_works(&flood.world);
	for (int i = 0; i < RIVALS; i++)
		close_both(flood.fds[i]);
	end_world(&flood.world);
	while (flood.grave_count > 0)
		free(flood.graves[--flood.grave_count]);
}

/* --- late: requests in the kernel that end early, in every way ---------- */

struct late {
	struct world world;
	int fds[2], full[2], listener;
	struct job jobs[5];
	struct msghdr msg;
	struct iovec iov;
	char byte;
};

/* Fill the socket until it accepts no more. */
static void
fill_up(int fd)
{
	char bytes[4096];

	memset(bytes, 0, sizeof(bytes));
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
}

static int
make_quiet_listener(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 1) < 0)
		return -1;
	return fd;
}

static void
start_late(struct late *late, uint64_t deadline_ns)
{
	struct job *jobs = late->jobs;

	for (int i = 0; i < 5; i++)
		init(&late->world, &jobs[i]);
	begin(&jobs[0], weft_op_recv(&jobs[0].op, late->fds[0], &late->byte, 1, 0, deadline_ns));
	begin(&jobs[1], weft_op_recv_multi(&jobs[1].op, late->fds[1], deadline_ns));
	begin(&jobs[2], weft_op_recv(&jobs[2].op, late->full[0], &late->byte, 1, 0, deadline_ns));
	begin(&jobs[3], weft_op_send(&jobs[3].op, late->full[0], "x", 1, 0, deadline_ns));
	begin(&jobs[4], weft_op_accept(&jobs[4].op, late->listener,
	                               deadline_ns == WEFT_NEVER ? WEFT_MULTI : 0, deadline_ns));
}

/* All of them end with that error; or with the end of the stream, if the peer was closed first. */
static void
expect_late(struct late *late, int64_t why)
{
	for (int i = 0; i < 5; i++) {
		int64_t result = await(&late->world, &late->jobs[i]);

		EXPECT(result == why || fault_hits() > 0 || (result == 0 && why == WEFT_ESHUTDOWN));
		EXPECT(late->jobs[i].result != -ENOBUFS
		       || !(fault_is_of(FAULT_sq_recv_multi) || fault_is_of(FAULT_cq_recv_multi)));
	}
}

static void
cancel_late(struct late *late)
{
	for (int i = 0; i < 5; i++)
		weft_op_cancel(&late->jobs[i].op);
	expect_late(late, WEFT_ECANCELED);
}

/* The descriptors are closed while the ops are pending. */
static void
close_late(struct late *late)
{
	struct world *world = &late->world;

	close_by_op(world, late->fds[0]);
	close_by_op(world, late->fds[1]);
	close_by_op(world, late->full[0]);
	close_by_op(world, late->listener);
	expect_late(late, WEFT_ESHUTDOWN);
	late->fds[0] = late->fds[1] = late->full[0] = late->listener = -1;
}

static void
run_late_ones(struct late *late)
{
	weft_loop *loop = late->world.loop;

	fill_up(late->full[0]);
	start_late(late, WEFT_NEVER);
	cancel_late(late); /* before the kernel has the requests, */
	start_late(late, WEFT_NEVER);
	turn(loop);
	cancel_late(late); /* and after that */
	start_late(late, weft_after(300 * WEFT_US));
	turn(loop);
	expect_late(late, WEFT_ETIMEDOUT);
	start_late(late, WEFT_NEVER);
	turn(loop);
	close_late(late);
}

void
run_late(const char *backend)
{
	struct late late;

	memset(&late, 0, sizeof(late));
	late.iov = (struct iovec){ &late.byte, 1 };
	late.msg = (struct msghdr){ .msg_iov = &late.iov, .msg_iovlen = 1 };
	if (!make_world(&late.world, backend, 0))
		return;
	late.listener = make_quiet_listener();
	if (make_blocking_pair(late.fds) && make_blocking_pair(late.full) && late.listener >= 0)
		run_late_ones(&late);
	check_works(&late.world);
	close_both(late.fds);
	close_both(late.full);
	fault_close(late.listener);
	end_world(&late.world);
}

/* --- caller: connects that are never answered --------------------------- */

struct caller {
	struct world world;
	struct sockaddr_in addr;
	int listener;
	int before[2]; /* connections that fill its queue */
};

static bool
find_busy_one(struct caller *caller)
{
	struct sockaddr *addr = (struct sockaddr *)&caller->addr;
	socklen_t size = sizeof(caller->addr);

	caller->addr = (struct sockaddr_in){ .sin_family = AF_INET };
	caller->addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	caller->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(caller->listener, addr, size) < 0 || listen(caller->listener, 0) < 0
	    || getsockname(caller->listener, addr, &size) < 0)
		return false;
	for (int i = 0; i < 2; i++) {
		caller->before[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)connect(caller->before[i], addr, size);
	}
	return true;
}

/* Connect, and make it end early with `why`.  `seen`: after the kernel has the request. */
static void
call_in_vain(struct caller *caller, int64_t why, bool seen)
{
	struct world *world = &caller->world;
	struct job job;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	init(world, &job);
	begin(&job,
	      weft_op_connect(&job.op, fd, (struct sockaddr *)&caller->addr, sizeof(caller->addr),
	                      why == WEFT_ETIMEDOUT ? weft_after(200 * WEFT_US) : WEFT_NEVER));
	if (seen)
		turn(world->loop);
	if (why == WEFT_ECANCELED)
		weft_op_cancel(&job.op);
	if (why == WEFT_ESHUTDOWN)
		close_by_op(world, fd);
	EXPECT(await(world, &job) == why || fault_hits() > 0);
	if (why != WEFT_ESHUTDOWN)
		close_by_op(world, fd);
}

void
run_caller(const char *backend)
{
	struct caller caller = { .listener = -1, .before = { -1, -1 } };

	if (!make_world(&caller.world, backend, 0))
		return;
	if (find_busy_one(&caller)) {
		call_in_vain(&caller, WEFT_ECANCELED, false);
		call_in_vain(&caller, WEFT_ECANCELED, true);
		call_in_vain(&caller, WEFT_ETIMEDOUT, true);
		call_in_vain(&caller, WEFT_ESHUTDOWN, true);
	}
	check_works(&caller.world);
	close_both(caller.before);
	fault_close(caller.listener);
	end_world(&caller.world);
}

/* --- prompt: readiness is reported at once ------------------------------ */

struct bell {
	weft_watch watch;
	int left; /* 1: was not called */
};

static void
on_bell(weft_watch *watch, int what, void *arg)
{
	struct bell *bell = arg;

	(void)what;
	bell->left = 0;
	(void)weft_watch_stop(watch);
}

/* A fault that may happen at any time may cost a loop iteration, but no wait. */
void
run_prompt(const char *backend)
{
	struct bell bell = { .left = 1 };
	struct world world;
	uint64_t begin_ns = weft__sys_real.now();
	int fds[2];

	if (!make_world(&world, backend, 0))
		return;
	if (make_pipe(fds)
	    && weft_watch_start(world.loop, &bell.watch, fds[0], WEFT_READABLE, on_bell, &bell)
	               == 0) {
		put_byte(fds[1]);
		for (int i = 0; i < STEPS_MIN && bell.left > 0; i++)
			(void)weft_loop_run_once(world.loop, weft_after(4 * WEFT_S));
		EXPECT(bell.left == 0 || fault_hits() > 0);
		EXPECT(weft__sys_real.now() - begin_ns < 2 * WEFT_S || !fault_is_honest());
	}
	check_works(&world);
	(void)weft_watch_stop(&bell.watch);
	close_both(fds);
	end_world(&world);
}

/* --- early: ended while a nonblocking socket returns EAGAIN ------------- */

static void
run_early_one(struct world *world, int fd, bool multi, uint64_t deadline_ns)
{
	int64_t why = deadline_ns == WEFT_NEVER ? WEFT_ECANCELED : WEFT_ETIMEDOUT;
	struct job job;
	char byte;

	init(world, &job);
	begin(&job, multi ? weft_op_recv_multi(&job.op, fd, deadline_ns)
	                  : weft_op_recv(&job.op, fd, &byte, 1, 0, deadline_ns));
	if (deadline_ns == WEFT_NEVER)
		weft_op_cancel(&job.op);
	EXPECT(await(world, &job) == why || fault_hits() > 0);
}

void
run_early(const char *backend)
{
	struct world world;
	int fds[2];

	if (!make_world(&world, backend, 0))
		return;
	if (make_pair(fds))
		for (int i = 0; i < 4; i++)
			run_early_one(&world, fds[i % 2], i % 2, i < 2 ? WEFT_NEVER : weft_now());
	check_works(&world);
	close_both(fds);
	end_world(&world);
}
