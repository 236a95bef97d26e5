/* time_scenarios.c - timers, timer IDs, ticks and microtasks, each checked against a model.
 *
 *   1. Nothing is early according to the virtual clock, however the clock jumps.
 *   2. Timers due in one loop iteration run in order of (deadline, start).
 *   3. A timer ID either runs or is cleared, never both, never neither.
 */
#include <string.h>
#include <weft/embed.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/scenarios.h"

/* From 0 to a few seconds, each power of two equally likely. */
static uint64_t
draw_ns(void)
{
	return sim_random_below(UINT64_C(1) << sim_random_below(32));
}

/* --- timers ----------------------------------------------------------- */

enum { TIMERS = 24, CHANGES = 400 };

struct entry {
	weft_timer timer;
	uint64_t due_ns, every_ns, seq;
	bool armed;
};

static struct {
	weft_loop *loop;
	struct entry entries[TIMERS];
	uint64_t seq;
	uint64_t turn_ns, last_due_ns, last_seq;
	int left; /* changes still to be made */
} clockwork;

static void change_timer(void);

static void
check_order(const struct entry *entry)
{
	uint64_t turn_ns = weft_loop_now(NULL);

	if (turn_ns == clockwork.turn_ns
	    && (entry->due_ns < clockwork.last_due_ns
	        || (entry->due_ns == clockwork.last_due_ns && entry->seq < clockwork.last_seq)))
		sim_fail("timers of one turn are out of order");
	clockwork.turn_ns = turn_ns;
	clockwork.last_due_ns = entry->due_ns;
	clockwork.last_seq = entry->seq;
}

static void
fire(weft_timer *timer, void *arg)
{
	struct entry *entry = arg;

	sim_check(timer == &entry->timer && entry->armed);
	time_check(entry->due_ns);
	check_order(entry);
	if (entry->every_ns) {
		sim_check(timer->due_ns > entry->due_ns);
		sim_check((timer->due_ns - entry->due_ns) % entry->every_ns == 0);
		entry->due_ns = timer->due_ns;
		entry->seq = clockwork.seq++;
	} else {
		entry->armed = false;
	}
	for (uint64_t i = sim_random_below(4); i > 0; i--)
		change_timer();
	if (clockwork.left == 0 && entry->armed && entry->every_ns) {
		sim_check(weft_timer_stop(timer) == 1);
		entry->armed = false;
	}
}

static void
arm_entry(struct entry *entry)
{
	uint64_t how = sim_random_below(8), every_ns = 0, due_ns;
	int rc;

	due_ns = how < 3   ? weft_after(draw_ns())
	         : how < 7 ? weft_loop_now(clockwork.loop) + draw_ns()
	                   : sim_random_below(sim_time());
	if (sim_random_below(4) == 0)
		every_ns = 1 + draw_ns();
	rc = weft_timer_start(clockwork.loop, &entry->timer, due_ns, every_ns, fire, entry);
	sim_check(rc == 0 || rc == WEFT_ENOMEM);
	if (rc < 0)
		return;
	entry->armed = true;
	entry->due_ns = due_ns;
	entry->every_ns = every_ns;
	entry->seq = clockwork.seq++;
}

static void
change_timer(void)
{
	struct entry *entry = &clockwork.entries[sim_random_below(TIMERS)];

	if (clockwork.left == 0)
		return;
	if (--clockwork.left == 0)
		sim_heal();
	if (sim_random_below(4)) {
		arm_entry(entry);
		return;
	}
	sim_check(weft_timer_stop(&entry->timer) == entry->armed);
	entry->armed = false;
}

static void
change_by_post(void *arg)
{
	(void)arg;
	change_timer();
}

/* Another thread wakes the loop or posts to it at random. */
static void
disturb(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		if (sim_random_below(2))
			weft_loop_wake(clockwork.loop);
		else
			(void)weft_loop_post(clockwork.loop, change_by_post, NULL);
		pause_ns(sim_random_below(2 * WEFT_MS));
	}
}

static void
run_timers(void *arg)
{
	weft_loop_opts opts = WEFT_INIT;
	uint64_t thread;

	(void)arg;
	memset(&clockwork, 0, sizeof(clockwork));
	clockwork.left = CHANGES;
	clockwork.loop = loop_make(&opts);
	thread = thread_start("disturber", disturb, NULL);
	while (clockwork.left > 0) {
		change_timer();
		sim_check(weft_loop_run(clockwork.loop) == 0);
	}
	thread_join(thread);
	sim_check(weft_loop_run(clockwork.loop) == 0);
	for (int i = 0; i < TIMERS; i++)
		sim_check(!clockwork.entries[i].armed);
	weft_loop_shutdown(clockwork.loop);
	sim_check(weft_loop_free(clockwork.loop) == 0);
}

const struct sim_scenario sim_scenario_timers = { .name = "loop_timers", .run = run_timers };

/* --- timer IDs -------------------------------------------------------- */

enum { SETTERS = 3, CELLS = 100, TIMEOUT = 0, IMMEDIATE };

struct cell {
	weft__a64 id; /* 0: not known yet */
	uint64_t kind;
	uint64_t due_ns;
	weft__a32 runs, cleared;
};

static struct {
	struct host host;
	struct cell cells[CELLS];
	weft__a32 taken, settled;
	bool ended;
} numbers;

static void
clear_cell(struct cell *cell)
{
	int64_t id = (int64_t)weft__load(&cell->id, WEFT__ACQUIRE);
	void *out = NULL;
	int rc;

	if (id == 0)
		return;
	rc = weft_schedule_clear(numbers.host.loop, id, &out);
	sim_check(rc == 0 || rc == WEFT_ENOENT);
	if (rc < 0)
		return;
	sim_check(out == cell);
	if (weft__exchange(&cell->cleared, 1, WEFT__ACQ_REL))
		sim_fail("one number cleared twice");
	count_up(&numbers.settled);
}

static void
run_cell(void *arg)
{
	struct cell *cell = arg;

	if (numbers.ended)
		sim_fail("runs after the end");
	if (weft__load(&cell->cleared, WEFT__ACQUIRE))
		sim_fail("runs after it was cleared");
	time_check(cell->due_ns);
	if (weft__add(&cell->runs, 1, WEFT__ACQ_REL))
		sim_fail("runs twice");
	count_up(&numbers.settled);
}

static void
set_cell(struct cell *cell)
{
	uint64_t delay_ns = sim_random_below(2000) * WEFT_US;
	weft_loop *loop = numbers.host.loop;
	int64_t id;

	cell->kind = sim_random_below(2);
	cell->due_ns = sim_time() + (cell->kind == IMMEDIATE ? 0 : delay_ns);
	if (cell->kind == TIMEOUT)
		id = weft_schedule_timeout(loop, delay_ns, run_cell, cell);
	else
		id = weft_schedule_immediate(loop, run_cell, cell);
	sim_check(id > 0 || id == WEFT_ENOMEM || id == WEFT_ESHUTDOWN);
	if (id < 0)
		return;
	weft__store(&cell->id, (uint64_t)id, WEFT__RELEASE);
}

static void
set_numbers(void *arg)
{
	uint32_t index;

	(void)arg;
	while ((index = weft__add(&numbers.taken, 1, WEFT__RELAXED)) < CELLS) {
		set_cell(&numbers.cells[index]);
		for (uint64_t i = sim_random_below(3); i > 0; i--)
			clear_cell(&numbers.cells[sim_random_below(index + 1)]);
		if (sim_random_below(3) == 0)
			pause_ns(sim_random_below(400) * WEFT_US);
	}
}

static void
check_numbers(bool stopped)
{
	for (int i = 0; i < CELLS; i++) {
		struct cell *cell = &numbers.cells[i];
		uint32_t runs = count_of(&cell->runs);
		uint32_t ends = count_of(&cell->cleared) + runs;
		uint64_t id = weft__load(&cell->id, WEFT__RELAXED);

		if (!id && runs > 0)
			sim_fail("a refused number runs");
		if (ends > 1 || (!stopped && id && ends == 0))
			sim_fail("a number has ended %u times", ends);
		for (int k = 0; id && k < i; k++)
			sim_check(weft__load(&numbers.cells[k].id, WEFT__RELAXED) != id);
	}
}

static void
await_numbers(void)
{
	uint32_t expected = 0;

	for (int i = 0; i < CELLS; i++)
		expected += weft__load(&numbers.cells[i].id, WEFT__RELAXED) != 0;
	await_count(&numbers.settled, expected);
}

static void
run_numbers(void *arg)
{
	uint64_t threads[SETTERS];
	bool early = sim_random_below(4) == 0;

	(void)arg;
	memset(&numbers, 0, sizeof(numbers));
	host_make(&numbers.host);
	host_run(&numbers.host);
	for (int i = 0; i < SETTERS; i++)
		threads[i] = thread_start("setter", set_numbers, NULL);
	if (early) {
		pause_ns(sim_random_below(3000) * WEFT_US);
		host_stop(&numbers.host);
		numbers.ended = true;
	}
	for (int i = 0; i < SETTERS; i++)
		thread_join(threads[i]);
	sim_heal();
	if (!early)
		await_numbers();
	host_end(&numbers.host);
	check_numbers(early);
}

const struct sim_scenario sim_scenario_numbers = { .name = "loop_numbers", .run = run_numbers };

/* --- ticks and microtasks --------------------------------------------- */

enum { CALLBACKS = 150 };

static struct {
	weft_loop *loop;
	uint64_t made[2], run[2]; /* ticks, microtasks */
	int last;                 /* kind of the last task, since a callback */
	int left;                 /* callbacks still to come */
	weft_timer timer;
	weft_node last_node;
	weft_op op;
	weft_watch watch;
	int pair[2];
} tasks;

static void queue_tasks(void);

static void
run_task(int which, void *arg)
{
	if ((uint64_t)(uintptr_t)arg != tasks.run[which])
		sim_fail("a task is out of order");
	if (tasks.last == 1 - which && tasks.run[1 - which] != tasks.made[1 - which])
		sim_fail("a task runs between tasks of the other kind");
	if (which == 1 && tasks.last < 0 && tasks.run[0] != tasks.made[0])
		sim_fail("a microtask runs before the ticks");
	tasks.run[which]++;
	tasks.last = which;
	if (sim_random_below(3) == 0)
		queue_tasks();
}

static void
run_tick(void *arg)
{
	run_task(0, arg);
}

static void
run_microtask(void *arg)
{
	run_task(1, arg);
}

static void
queue_tasks(void)
{
	for (uint64_t i = sim_random_below(4); i > 0; i--) {
		bool micro = sim_random_below(2);
		void *arg = (void *)(uintptr_t)tasks.made[micro];
		int rc = micro ? weft_schedule_microtask(tasks.loop, run_microtask, arg)
		               : weft_schedule_tick(tasks.loop, run_tick, arg);

		sim_check(rc == 0 || rc == WEFT_ENOMEM);
		tasks.made[micro] += rc == 0;
	}
}

static void ask_for_callback(void);

/* Called first in every kind of callback. */
static void
enter_callback(void)
{
	sim_check(weft_loop_current() == tasks.loop);
	for (int i = 0; i < 2; i++)
		if (tasks.made[i] != tasks.run[i])
			sim_fail("a callback before all tasks have run");
	tasks.last = -1;
	queue_tasks();
	if (tasks.left > 0 && --tasks.left == 0)
		sim_heal();
	ask_for_callback();
	if (sim_random_below(3) == 0)
		ask_for_callback();
}

static void
on_call(void *arg)
{
	(void)arg;
	enter_callback();
}

static void
on_timer(weft_timer *timer, void *arg)
{
	(void)timer, (void)arg;
	enter_callback();
}

static void
on_op(weft_op *op, int64_t result, void *arg)
{
	(void)op, (void)arg;
	sim_check(result == 0);
	enter_callback();
}

static void
on_watch(weft_watch *watch, int what, void *arg)
{
	(void)arg;
	sim_check(what & WEFT_WRITABLE);
	sim_check(weft_watch_stop(watch) == 1);
	enter_callback();
}

static void
ask_for_callback(void)
{
	uint64_t soon_ns = sim_random_below(100) * WEFT_US;

	if (tasks.left == 0)
		return;
	switch (sim_random_below(8)) {
	case 0:
	case 1:
		(void)weft_loop_post(tasks.loop, on_call, NULL);
		break;
	case 2:
		(void)weft_loop_post_before_wait(tasks.loop, &tasks.last_node);
		break;
	case 3:
		(void)weft_timer_start(tasks.loop, &tasks.timer, weft_after(soon_ns), 0, on_timer,
		                       NULL);
		break;
	case 4:
		(void)weft_schedule_timeout(tasks.loop, soon_ns, on_call, NULL);
		break;
	case 5:
		(void)weft_schedule_immediate(tasks.loop, on_call, NULL);
		break;
	case 6:
		if (!tasks.op.pending)
			(void)weft_op_sleep(&tasks.op, weft_after(soon_ns));
		break;
	default:
		(void)weft_watch_start(tasks.loop, &tasks.watch, tasks.pair[0], WEFT_WRITABLE,
		                       on_watch, NULL);
		break;
	}
}

static void
run_tasks(void *arg)
{
	weft_loop_opts opts = WEFT_INIT;

	(void)arg;
	memset(&tasks, 0, sizeof(tasks));
	tasks.left = CALLBACKS;
	tasks.last = -1;
	tasks.loop = loop_make(&opts);
	tasks.last_node.fn = on_call;
	while (sim_socketpair(tasks.pair) < 0)
		continue;
	sim_check(weft_op_init(&tasks.op, tasks.loop, on_op, NULL) == 0);
	while (tasks.left > 0) {
		ask_for_callback();
		sim_check(weft_loop_run(tasks.loop) == 0);
	}
	sim_check(tasks.made[0] == tasks.run[0]);
	sim_check(tasks.made[1] == tasks.run[1]);
	weft_loop_shutdown(tasks.loop);
	sim_check(weft_loop_free(tasks.loop) == 0);
	(void)weft__sys->close(tasks.pair[0]);
	(void)weft__sys->close(tasks.pair[1]);
}

const struct sim_scenario sim_scenario_tasks = { .name = "loop_tasks", .run = run_tasks };
