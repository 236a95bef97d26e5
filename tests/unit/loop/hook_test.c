/* hook_test.c - loop hooks: when they are called, in what order, and dropping them.
 *
 * Each call appends two letters to the trace: the member and the hook.  Members are `r`eady,
 * `b`efore and `a`fter a wait (`B` and `A` if the wait may block), `c`heckpoint and
 * `n`ext_changed.
 */
#include <pthread.h>
#include <unistd.h>
#include <weft/embed.h>
#include "test.h"

#define OK(call) CHECK_EQ(call, 0)
#define HOUR     (3600 * WEFT_S)
#define MARK(c)  ((void *)(intptr_t)(c))

static char trace[128];
static int floods;

static void
on_report(void *arg, const weft_report *report)
{
	(void)arg;
	floods += report->kind == WEFT_REPORT_MICROTASK_FLOOD;
}

/* Must run before the first use of the library. */
__attribute__((constructor)) static void
listen_for_reports(void)
{
	(void)weft_set_hooks(&(weft_hooks){ .on_report = on_report });
}

static void
note(char c)
{
	size_t used = strlen(trace);

	CHECK(used + 1 < sizeof(trace));
	trace[used] = c;
	trace[used + 1] = '\0';
}

static void
note_mark(void *arg)
{
	note((char)(intptr_t)arg);
}

struct probe {
	weft_loop_hook hook;
	char name;
	int more; /* how often `ready` still reports more, or jobs that `checkpoint` still has */
	char at;  /* the member that calls `act`, once */
	void (*act)(weft_loop *loop, struct probe *probe);
	struct probe *other;
	weft_timer timer;
};

static void
called(weft_loop *loop, struct probe *p, char member)
{
	if (member == 'c' && p->at != 'c' && p->more == 0)
		return; /* there are too many checkpoints to trace */
	note(member);
	note(p->name);
	if (p->at == member || p->at == (member | 0x20)) {
		p->at = 0;
		p->act(loop, p);
	}
}

static int
on_ready(weft_loop *loop, void *arg)
{
	struct probe *p = arg;

	CHECK(weft_loop_current() == loop);
	called(loop, p, 'r');
	return p->more > 0 ? p->more-- : 0;
}

static void
on_before(weft_loop *loop, bool may_block, void *arg)
{
	called(loop, arg, may_block ? 'B' : 'b');
}

static void
on_after(weft_loop *loop, bool may_block, void *arg)
{
	called(loop, arg, may_block ? 'A' : 'a');
}

static int
on_checkpoint(weft_loop *loop, void *arg)
{
	struct probe *p = arg;

	called(loop, p, 'c');
	return p->more > 0 ? p->more-- : 0;
}

static void
on_changed(weft_loop *loop, void *arg)
{
	called(loop, arg, 'n');
}

/* A hook with the members whose letters are given. */
static struct probe
probe(char name, const char *members)
{
	struct probe p = { .name = name };

	for (; *members; members++)
		switch (*members) {
		case 'r':
			p.hook.ready = on_ready;
			break;
		case 'b':
			p.hook.before_wait = on_before;
			break;
		case 'a':
			p.hook.after_wait = on_after;
			break;
		case 'c':
			p.hook.checkpoint = on_checkpoint;
			break;
		default:
			p.hook.next_changed = on_changed;
			break;
		}
	return p;
}

static void
push(weft_loop *loop, struct probe *p)
{
	p->hook.arg = p;
	OK(weft_loop_push_hook(loop, &p->hook));
}

static weft_loop *
make(void)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_KEEP };
	weft_loop *loop = weft_loop_new(&opts);

	CHECK(loop != NULL);
	trace[0] = '\0';
	return loop;
}

/* Run an iteration that waits for a moment. */
static void
turn(weft_loop *loop)
{
	CHECK(weft_loop_run_once(loop, weft_after(WEFT_MS)) >= 0);
}

/* --- when hooks are called ---------------------------------------------- */

TEST(hooks_are_called_in_order_and_after_a_wait_in_reverse)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "rba"), y = probe('y', "rba"), z = probe('z', "r");

	push(loop, &x);
	push(loop, &y);
	push(loop, &z);
	turn(loop);
	CHECK_STR(trace, "rxryrzBxByAyAx");
	weft_loop_drop_hook(loop, &y.hook);
	trace[0] = '\0';
	turn(loop);
	CHECK_STR(trace, "rxrzBxAx");
	OK(weft_loop_free(loop));
}

TEST(an_iteration_without_a_wait_calls_no_wait_hooks)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "ba");

	push(loop, &x);
	OK(weft_loop_run_once(loop, WEFT_NOWAIT));
	CHECK_STR(trace, "");
	OK(weft_loop_free(loop));
}

static void
on_readable(weft_watch *watch, int what, void *arg)
{
	(void)watch;
	(void)arg;
	CHECK(what > 0);
	note('w');
}

TEST(a_poll_of_descriptors_is_a_wait_that_cannot_block)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "ba");
	weft_watch watch = WEFT_INIT;
	int fds[2];

	OK(pipe(fds));
	CHECK_EQ(write(fds[1], "x", 1), 1);
	OK(weft_watch_start(loop, &watch, fds[0], WEFT_READABLE, on_readable, NULL));
	push(loop, &x);
	(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	CHECK_STR(trace, "bxaxw");
	trace[0] = '\0';
	(void)weft_loop_run_once(loop, weft_after(HOUR));
	CHECK_STR(trace, "BxAxw");
	CHECK_EQ(weft_watch_stop(&watch), 1);
	OK(weft_loop_free(loop));
	OK(close(fds[0]));
	OK(close(fds[1]));
}

TEST(a_hook_with_more_to_do_keeps_a_run_from_blocking_and_ending)
{
	weft_loop *loop = weft_loop_new(NULL);
	struct probe x = probe('x', "rba");

	trace[0] = '\0';
	x.more = 3;
	push(loop, &x);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "rxrxrxrx");
	OK(weft_loop_free(loop));
}

TEST(ready_runs_before_work_posted_to_run_before_the_wait)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "rb");
	weft_node last = { .fn = note_mark, .arg = MARK('l') };

	push(loop, &x);
	OK(weft_loop_post(loop, note_mark, MARK('p')));
	OK(weft_loop_post_before_wait(loop, &last));
	turn(loop);
	CHECK_STR(trace, "prxlBx");
	OK(weft_loop_free(loop));
}

static void
add_microtask(weft_loop *loop, struct probe *p)
{
	(void)p;
	OK(weft_schedule_microtask(loop, note_mark, MARK('m')));
}

TEST(a_checkpoint_follows_ready_and_a_wait_but_never_runs_within_a_wait)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "rba"), y = probe('y', "ba");

	x.act = y.act = add_microtask;
	x.at = 'r';
	push(loop, &x);
	push(loop, &y);
	turn(loop);
	CHECK_STR(trace, "rxmBxByAyAx");
	trace[0] = '\0';
	y.at = 'b';
	turn(loop);
	CHECK_STR(trace, "rxBxByAyAxm");
	OK(weft_loop_free(loop));
}

static void
on_timer(weft_timer *timer, void *arg)
{
	(void)timer;
	(void)arg;
	note('t');
}

static void
add_timer(weft_loop *loop, struct probe *p)
{
	OK(weft_timer_start(loop, &p->timer, weft_after(0), 0, on_timer, NULL));
}

TEST(a_timer_started_by_before_wait_shortens_the_wait)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "b");

	x.at = 'b';
	x.act = add_timer;
	push(loop, &x);
	(void)weft_loop_run_once(loop, WEFT_NEVER);
	turn(loop);
	CHECK_STR(trace, "BxtBx");
	OK(weft_loop_free(loop));
}

/* --- checkpoints -------------------------------------------------------- */

static void
add_job(void *arg)
{
	struct probe *p = arg;

	note('j');
	p->more++;
}

TEST(a_checkpoint_runs_until_hooks_and_queues_are_empty)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "c"), y = probe('y', "c");

	x.more = 1;
	x.at = 'c';
	x.act = add_microtask;
	push(loop, &x);
	push(loop, &y);
	OK(weft_schedule_tick(loop, add_job, &y));
	OK(weft_loop_post(loop, note_mark, MARK('p')));
	OK(weft_loop_run_once(loop, WEFT_NOWAIT));
	CHECK_STR(trace, "jcxcymp");
	OK(weft_loop_free(loop));
}

TEST(a_checkpoint_hook_is_called_after_every_callback)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "c");

	push(loop, &x);
	OK(weft_loop_post(loop, add_job, &x));
	OK(weft_loop_post(loop, add_job, &x));
	OK(weft_loop_run_once(loop, WEFT_NOWAIT));
	CHECK_STR(trace, "jcxjcx");
	weft_loop_drop_hook(loop, &x.hook);
	OK(weft_loop_post(loop, add_job, &x));
	OK(weft_loop_run_once(loop, WEFT_NOWAIT));
	CHECK_STR(trace, "jcxjcxj");
	OK(weft_loop_free(loop));
}

static int
many_jobs(weft_loop *loop, void *arg)
{
	int *left = arg;

	(void)loop;
	return (*left)-- > 0 ? 60000 : 0;
}

TEST(jobs_of_hooks_count_towards_the_single_microtask_flood_report)
{
	weft_loop *loop = make();
	int left = 1;
	weft_loop_hook hook = { .checkpoint = many_jobs, .arg = &left };

	floods = 0;
	OK(weft_loop_push_hook(loop, &hook));
	OK(weft_loop_run_once(loop, WEFT_NOWAIT));
	CHECK_EQ(floods, 0);
	left = 5;
	OK(weft_loop_run_once(loop, WEFT_NOWAIT));
	CHECK_EQ(floods, 1);
	OK(weft_loop_free(loop));
}

/* --- dropping and pushing ----------------------------------------------- */

static void
drop_other(weft_loop *loop, struct probe *p)
{
	weft_loop_drop_hook(loop, &p->other->hook);
	memset(&p->other->hook, 0xee, sizeof(p->other->hook));
}

/* Of three hooks, `who` drops `whom` when its member is called.  The hooks have no other
 * members.  Returns the trace. */
static const char *
traced(char member, int who, int whom)
{
	struct probe p[3];
	weft_loop *loop = make();
	char members[2] = { member, '\0' };

	for (int i = 0; i < 3; i++) {
		p[i] = probe((char)('x' + i), members);
		push(loop, &p[i]);
		p[i].more = member == 'c';
	}
	p[who].other = &p[whom];
	p[who].act = drop_other;
	p[who].at = member;
	turn(loop);
	for (int i = 0; i < 3; i++)
		if (i != whom)
			weft_loop_drop_hook(loop, &p[i].hook);
	turn(loop);
	OK(weft_loop_free(loop));
	return trace;
}

TEST(a_hook_may_drop_itself_and_any_other_from_each_of_its_calls)
{
	CHECK_STR(traced('r', 0, 0), "rxryrz");
	CHECK_STR(traced('r', 0, 1), "rxrz");
	CHECK_STR(traced('r', 1, 0), "rxryrz");
	CHECK_STR(traced('r', 2, 2), "rxryrz");
	CHECK_STR(traced('b', 0, 0), "BxByBz");
	CHECK_STR(traced('b', 0, 1), "BxBz");
	CHECK_STR(traced('b', 1, 2), "BxBy");
	CHECK_STR(traced('a', 2, 2), "AzAyAx");
	CHECK_STR(traced('a', 2, 1), "AzAx");
	CHECK_STR(traced('a', 1, 2), "AzAyAx");
	CHECK_STR(traced('a', 1, 0), "AzAy");
	CHECK_STR(traced('c', 0, 0), "cxcycz");
	CHECK_STR(traced('c', 0, 1), "cxcz");
	CHECK_STR(traced('c', 1, 0), "cxcycz");
}

static void
push_other(weft_loop *loop, struct probe *p)
{
	push(loop, p->other);
}

TEST(a_hook_pushed_by_a_hook_is_called_from_the_next_hook_point_on)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "rba"), y = probe('y', "rba"), z = probe('z', "rba");

	x.act = y.act = push_other;
	x.at = 'r';
	x.other = &y;
	y.at = 'b';
	y.other = &z;
	push(loop, &x);
	turn(loop);
	CHECK_STR(trace, "rxBxByAyAx"); /* z was pushed too late for this wait */
	trace[0] = '\0';
	turn(loop);
	CHECK_STR(trace, "rxryrzBxByBzAzAyAx");
	OK(weft_loop_free(loop));
}

static void
change_places(weft_loop *loop, struct probe *p)
{
	weft_loop_drop_hook(loop, &p->hook);
	push(loop, p);
}

TEST(a_hook_may_move_itself_to_the_end_of_the_list)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "r"), y = probe('y', "r");

	x.at = 'r';
	x.act = change_places;
	x.more = 1; /* returned by a hook that was dropped: not counted */
	push(loop, &x);
	push(loop, &y);
	turn(loop);
	turn(loop);
	CHECK_STR(trace, "rxryryrx");
	OK(weft_loop_free(loop));
}

TEST(a_hook_dropped_with_more_to_do_does_not_keep_the_loop_running)
{
	weft_loop *loop = weft_loop_new(NULL);
	struct probe x = probe('x', "r");

	trace[0] = '\0';
	x.more = 1000;
	push(loop, &x);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NEVER), 1);
	weft_loop_drop_hook(loop, &x.hook);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "rx");
	OK(weft_loop_free(loop));
}

TEST(a_loop_that_is_stopped_or_freed_drops_its_hooks)
{
	weft_loop *loop = make(), *other = make(), *third = make();
	struct probe x = probe('x', "r");

	push(loop, &x);
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	push(other, &x);
	OK(weft_loop_free(other));
	push(third, &x);
	turn(third);
	CHECK_STR(trace, "rx");
	OK(weft_loop_free(third));
	OK(weft_loop_free(loop));
}

TEST(a_loop_stops_when_its_hooks_have_done_their_work)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "r");

	x.more = 3;
	push(loop, &x);
	turn(loop);
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPING);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "rxrxrxrx");
	OK(weft_loop_free(loop));
}

/* --- next_changed ------------------------------------------------------- */

static void
on_op(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	(void)result;
	(void)arg;
}

TEST(next_changed_is_called_between_iterations_once_per_change)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "n");
	weft_timer early = WEFT_INIT, late = WEFT_INIT;
	uint64_t due = weft_after(HOUR);

	push(loop, &x);
	CHECK(weft_loop_next(loop) == WEFT_NEVER);
	OK(weft_timer_start(loop, &late, due, 0, on_timer, NULL));
	CHECK_STR(trace, "nx");
	CHECK_EQ(weft_loop_next(loop), due);
	OK(weft_timer_start(loop, &early, due + 1, 0, on_timer, NULL));
	CHECK_STR(trace, "nx");
	OK(weft_timer_start(loop, &early, due - 1, 0, on_timer, NULL));
	CHECK_STR(trace, "nxnx");
	CHECK_EQ(weft_loop_next(loop), due - 1);
	CHECK_EQ(weft_timer_stop(&early), 1);
	CHECK_EQ(weft_timer_stop(&late), 1);
	CHECK_EQ(weft_loop_next(loop), WEFT_NEVER);
	CHECK_STR(trace, "nxnxnx");
	OK(weft_loop_free(loop));
}

TEST(next_changed_is_called_for_what_only_the_loops_thread_may_add)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "n");
	weft_node last = { .fn = note_mark, .arg = MARK('l') };
	weft_op op;

	push(loop, &x);
	CHECK_EQ(weft_loop_next(loop), WEFT_NEVER);
	OK(weft_schedule_microtask(loop, note_mark, MARK('m')));
	CHECK_EQ(weft_loop_next(loop), WEFT_NOWAIT);
	(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	CHECK_EQ(weft_loop_next(loop), WEFT_NEVER);
	OK(weft_loop_post_before_wait(loop, &last));
	CHECK_EQ(weft_loop_next(loop), WEFT_NOWAIT);
	(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	CHECK_EQ(weft_loop_next(loop), WEFT_NEVER);
	CHECK_STR(trace, "mnxl");
	OK(weft_op_init(&op, loop, on_op, NULL));
	OK(weft_op_sleep(&op, weft_after(HOUR)));
	CHECK_STR(trace, "mnxlnx");
	weft_op_cancel(&op);
	CHECK_STR(trace, "mnxlnxnx");
	CHECK_EQ(weft_loop_next(loop), WEFT_NOWAIT);
	(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	CHECK_STR(trace, "mnxlnxnx");
	OK(weft_loop_free(loop));
}

static void
start_timer(void *arg)
{
	struct probe *p = arg;

	OK(weft_timer_start(NULL, &p->timer, weft_after(HOUR), 0, on_timer, NULL));
}

TEST(next_changed_is_not_called_inside_an_iteration)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "n");

	push(loop, &x);
	CHECK_EQ(weft_loop_next(loop), WEFT_NEVER);
	OK(weft_loop_post(loop, start_timer, &x));
	(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	CHECK_STR(trace, "");
	CHECK_EQ(weft_loop_next(loop), x.timer.due_ns);
	OK(weft_loop_free(loop));
}

static void
tick(weft_loop *loop, struct probe *p)
{
	(void)p;
	OK(weft_schedule_tick(loop, note_mark, MARK('t')));
}

TEST(a_change_made_by_next_changed_is_reported_after_all_hooks_were_called)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "n"), y = probe('y', "n");
	weft_timer timer = WEFT_INIT;

	x.at = 'n';
	x.act = tick;
	push(loop, &x);
	push(loop, &y);
	CHECK_EQ(weft_loop_next(loop), WEFT_NEVER);
	OK(weft_timer_start(loop, &timer, weft_after(HOUR), 0, on_timer, NULL));
	CHECK_STR(trace, "nxnynxny");
	(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	OK(weft_loop_free(loop));
}

/* --- misuse ------------------------------------------------------------- */

static void *
push_elsewhere(void *arg)
{
	struct probe x = probe('x', "r");

	CHECK_MISUSE(weft_loop_push_hook(arg, &x.hook), WEFT_EWRONGLOOP);
	return NULL;
}

static void
try_elsewhere(void *arg)
{
	pthread_t thread;

	OK(pthread_create(&thread, NULL, push_elsewhere, arg));
	OK(pthread_join(thread, NULL));
}

TEST(misuse_of_hooks_is_refused)
{
	weft_loop *loop = make();
	struct probe x = probe('x', "r"), y = probe('y', "r");

	CHECK_MISUSE(weft_loop_push_hook(loop, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_push_hook(NULL, &x.hook), WEFT_EINVAL);
	push(loop, &x);
	CHECK_MISUSE(weft_loop_push_hook(loop, &x.hook), WEFT_EBUSY);
	weft_loop_drop_hook(loop, NULL);
	weft_loop_drop_hook(loop, &y.hook);
	weft_loop_drop_hook(NULL, &x.hook);
	OK(weft_loop_post(loop, try_elsewhere, loop));
	turn(loop);
	CHECK_STR(trace, "rx");
	weft_loop_drop_hook(loop, &x.hook);
	weft_loop_drop_hook(loop, &x.hook);
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_push_hook(loop, &x.hook), WEFT_ESHUTDOWN);
	OK(weft_loop_free(loop));
}
