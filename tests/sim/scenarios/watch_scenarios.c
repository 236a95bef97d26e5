/* watch_scenarios.c - watches that are started, changed, muted and stopped at random; and a
 * loop that is short of memory.
 *
 *   1. A watch that was stopped or muted is not called.  A watch that was changed is called as
 *      changed.
 *   2. What is readable at the end is reported.
 *   3. A call that is refused for lack of memory changes nothing.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/scenarios.h"

#define BOTH ((uint32_t)(WEFT_READABLE | WEFT_WRITABLE))

enum { EYES = 4, LOOKS = 250 };

struct eye {
	weft_watch watch;
	int ends[2]; /* the second is the peer's */
	bool started, last_seen;
	uint32_t events;
	unsigned version; /* identifies its last start */
};

static struct {
	struct host host;
	struct eye eyes[EYES];
	weft_timer timer;
	unsigned version;
	int left;
	weft__a32 done, over, seen;
} sight;

static void look(weft_watch *watch, int what, struct eye *eye);

static void
look_even(weft_watch *watch, int what, void *arg)
{
	sim_check(((struct eye *)arg)->version % 2 == 0);
	look(watch, what, arg);
}

static void
look_odd(weft_watch *watch, int what, void *arg)
{
	sim_check(((struct eye *)arg)->version % 2 == 1);
	look(watch, what, arg);
}

static int
start_eye(struct eye *eye, uint32_t events)
{
	unsigned version = sight.version + 1;
	int rc = weft_watch_start(NULL, &eye->watch, eye->ends[0], events,
	                          version % 2 ? look_odd : look_even, eye);

	sim_check(rc == 0 || rc == WEFT_ENOMEM || rc == WEFT_EBADF || rc == -ENOSPC || rc == -EMFILE
	          || rc == -ENFILE || rc == -ENODEV);
	if (rc == 0) {
		eye->version = sight.version = version;
		eye->started = true;
		eye->events = events;
	}
	return rc;
}

static void
stop_eye(struct eye *eye)
{
	sim_check(weft_watch_stop(&eye->watch) == eye->started);
	eye->started = false;
}

static void
open_eye(struct eye *eye)
{
	while (sim_socketpair(eye->ends) < 0)
		continue;
}

/* Read what is there; stop at the end of the stream. */
static void
look(weft_watch *watch, int what, struct eye *eye)
{
	char buf[16];
	int64_t rc = 0;

	sim_check(watch == &eye->watch);
	if (!eye->started)
		sim_fail("a stopped watch is called");
	if (what == WEFT_ESHUTDOWN) {
		eye->started = false;
		return;
	}
	if (!(eye->events & BOTH))
		sim_fail("a muted watch is called");
	sim_check(what != 0);
	if ((uint32_t)what & ~(eye->events | WEFT_EV_ERROR | WEFT_EV_HUP))
		sim_fail("told what was not asked for: %d", what);
	if (what & WEFT_WRITABLE) /* or it would be reported forever */
		(void)start_eye(eye, eye->events & ~(uint32_t)WEFT_WRITABLE);
	if ((what & (WEFT_READABLE | WEFT_EV_HUP)) == 0)
		return;
	do {
		rc = weft__sys->recv(eye->ends[0], buf, sizeof(buf), 0);
		if (rc > 0 && buf[rc - 1] == '!' && !eye->last_seen) {
			eye->last_seen = true;
			count_up(&sight.seen);
		}
	} while (rc > 0 && (eye->events & WEFT_EDGE));
	if (rc == 0 || (rc < 0 && !is_passing(rc)))
		stop_eye(eye);
}

static void
act_on_eye(weft_timer *timer, void *arg)
{
	struct eye *eye = &sight.eyes[sim_random_below(EYES)];

	(void)arg;
	switch (sim_random_below(6)) {
	case 0:
		stop_eye(eye);
		break;
	case 1:
		(void)start_eye(eye, 0);
		break;
	case 2:
		if (sim_random_below(3))
			break;
		stop_eye(eye);
		(void)weft__sys->close(eye->ends[0]);
		(void)weft__sys->close(eye->ends[1]);
		open_eye(eye);
		break;
	default:
		(void)start_eye(eye, 1 + (uint32_t)sim_random_below(3));
		break;
	}
	if (--sight.left == 0) {
		(void)weft_timer_stop(timer);
		count_up(&sight.done);
	}
}

static void
begin_sight(void *arg)
{
	(void)arg;
	for (int i = 0; i < EYES; i++)
		open_eye(&sight.eyes[i]);
	while (weft_timer_start(NULL, &sight.timer, weft_after(WEFT_US),
	                        1 + sim_random_below(30 * WEFT_US), act_on_eye, NULL)
	       == WEFT_ENOMEM)
		continue;
}

/* Open new pairs and watch all of them, for the last bytes of the peers. */
static void
end_sight(void *arg)
{
	(void)arg;
	for (int i = 0; i < EYES; i++) {
		struct eye *eye = &sight.eyes[i];

		stop_eye(eye);
		(void)weft__sys->close(eye->ends[0]);
		(void)weft__sys->close(eye->ends[1]);
		open_eye(eye);
		sim_check(start_eye(eye, WEFT_READABLE | (sim_random_below(2) ? WEFT_EDGE : 0))
		          == 0);
	}
}

static void
write_and_hang_up(void *arg)
{
	(void)arg;
	for (int i = 0; i < 250 && !count_of(&sight.over); i++) {
		int fd = sight.eyes[sim_random_below(EYES)].ends[1];

		if (sim_random_below(20) == 0)
			(void)weft__sys->shutdown(fd, SHUT_WR);
		else
			(void)weft__sys->send(fd, "12345678", 1 + sim_random_below(8), 0);
		pause_ns(sim_random_below(40 * WEFT_US));
	}
}

static void
run_watches(void *arg)
{
	uint64_t peer;

	(void)arg;
	memset(&sight, 0, sizeof(sight));
	sight.left = LOOKS;
	host_make(&sight.host);
	host_run(&sight.host);
	host_call(&sight.host, begin_sight, NULL);
	peer = thread_start("peer", write_and_hang_up, NULL);
	pause_ns(sim_random_below(20 * WEFT_MS));
	sim_heal();
	await_count(&sight.done, 1);
	count_up(&sight.over);
	thread_join(peer);
	host_call(&sight.host, end_sight, NULL);
	for (int i = 0; i < EYES; i++)
		sim_check(weft__sys->send(sight.eyes[i].ends[1], "!", 1, 0) == 1);
	await_count(&sight.seen, EYES);
	host_end(&sight.host);
	for (int i = 0; i < EYES; i++) {
		sim_check(!sight.eyes[i].started);
		(void)weft__sys->close(sight.eyes[i].ends[0]);
		(void)weft__sys->close(sight.eyes[i].ends[1]);
	}
}

const struct sim_scenario sim_scenario_watches = { .name = "fd_watches", .run = run_watches };

/* --- no memory -------------------------------------------------------- */

enum { THINGS = 40, LOOPS = 6 };

struct thing {
	weft_op op;
	weft_timer timer;
	struct once once;
	int ends[2];
};

static struct {
	weft_loop *loop;
	struct thing things[THINGS];
} scarce;

static void
end_thing(void *arg)
{
	once_end(&((struct thing *)arg)->once);
}

static void
end_timer(weft_timer *timer, void *arg)
{
	(void)timer;
	end_thing(arg);
}

static void
end_op(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	/* If the kernel reports fewer events than there are, a deadline may pass. */
	sim_check(result >= 0 || result == WEFT_ENOMEM || result == WEFT_ETIMEDOUT);
	end_thing(arg);
}

/* Start one of everything that may need memory; returns the result. */
static int64_t
start_thing(struct thing *thing)
{
	weft_loop *loop = scarce.loop;
	uint64_t soon_ns = weft_after(sim_random_below(WEFT_MS));

	switch (sim_random_below(9)) {
	case 0:
	case 1:
		return weft_loop_post(loop, end_thing, thing);
	case 2:
		return weft_timer_start(loop, &thing->timer, soon_ns, 0, end_timer, thing);
	case 3:
		return weft_schedule_timeout(loop, sim_random_below(WEFT_MS), end_thing, thing);
	case 4:
		return weft_schedule_immediate(loop, end_thing, thing);
	case 5:
		return weft_schedule_microtask(loop, end_thing, thing);
	case 6:
		return weft_schedule_tick(loop, end_thing, thing);
	case 7:
		return weft_op_sleep(&thing->op, soon_ns);
	default:
		return weft_op_poll(&thing->op, thing->ends[0], WEFT_WRITABLE, soon_ns);
	}
}

static void
start_things(void)
{
	weft_loop_opts opts = WEFT_INIT;

	memset(&scarce, 0, sizeof(scarce));
	scarce.loop = loop_make(&opts);
	for (int i = 0; i < THINGS; i++) {
		struct thing *thing = &scarce.things[i];
		int64_t rc;

		while (sim_socketpair(thing->ends) < 0)
			continue;
		sim_check(weft_op_init(&thing->op, scarce.loop, end_op, thing) == 0);
		rc = start_thing(thing);
		sim_check(rc >= 0 || rc == WEFT_ENOMEM || rc == WEFT_EAGAIN);
		if (rc >= 0)
			once_begin(&thing->once);
		if (sim_random_below(10) == 0)
			(void)weft_loop_run_once(scarce.loop, WEFT_NOWAIT);
	}
}

static void
end_things(void)
{
	sim_check(weft_loop_run(scarce.loop) == 0);
	for (int i = 0; i < THINGS; i++) {
		once_check(&scarce.things[i].once);
		(void)weft__sys->close(scarce.things[i].ends[0]);
		(void)weft__sys->close(scarce.things[i].ends[1]);
	}
	sim_check(weft_loop_free(scarce.loop) == 0);
}

static void
run_memory(void *arg)
{
	(void)arg;
	for (int i = 0; i < LOOPS; i++) {
		start_things();
		if (i == LOOPS - 1)
			sim_heal();
		end_things();
	}
}

const struct sim_scenario sim_scenario_memory = {
	.name = "loop_memory",
	.run = run_memory,
	.masked_faults = SIM_MASK_ALL & ~SIM_MASK(SIM_ALLOC) & ~SIM_MASK(SIM_LATE)
	                 & ~SIM_MASK(SIM_BATCH),
};
