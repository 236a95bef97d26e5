/* work_test.c - thread pools: what runs, what is refused, and what ends early.
 *
 * The work of these tests waits at gates, which the tests open.  So a test knows what is queued
 * and what runs.  To wait for another thread, a test yields until that thread has arrived.  How
 * loops and pools end together is tested in work_end_test.c.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/sys.h"
#include "unit/runtime/job.h"

/* --- running ------------------------------------------------------------ */

static pthread_t ran_on;

static int
note_thread(void *arg)
{
	ran_on = pthread_self();
	return arg ? *(int *)arg : 0;
}

TEST(work_runs_on_another_thread_and_its_return_value_is_the_result)
{
	weft_loop *loop = make();
	weft_pool *pool = make_pool(1, 0);
	static int results[] = { 0, 7, WEFT_EPROTO, INT32_MAX };

	for (int i = 0; i < 4; i++) {
		struct probe p = { 0 };

		init(loop, &p);
		OK(weft_work_op(pool, note_thread, &results[i], &p.op,
		                i % 2 ? WEFT_NEVER : weft_after(HOUR)));
		CHECK(p.op.pending);
		OK(weft_loop_run(loop)); /* the work keeps the loop alive */
		CHECK_ENDED(&p, results[i]);
		CHECK(!pthread_equal(ran_on, pthread_self()));
	}
	OK(weft_pool_free(pool));
	OK(weft_loop_free(loop));
}

static weft__a32 running, most;

/* Counts how many run at the same time. */
static int
count_running(void *arg)
{
	uint32_t now = weft__add(&running, 1, WEFT__RELAXED) + 1;
	uint32_t seen = weft__load(&most, WEFT__RELAXED);

	while (now > seen && !weft__cas(&most, &seen, now, WEFT__RELAXED))
		;
	sched_yield();
	(void)weft__add(&running, UINT32_MAX, WEFT__RELAXED);
	(void)weft__add((weft__a32 *)arg, 1, WEFT__RELAXED);
	return 1;
}

TEST(all_work_runs_once_on_at_most_threads_max_threads)
{
	enum { COUNT = 2000 };
	static struct probe probes[COUNT];
	static weft__a32 ran[COUNT];
	weft_loop *loop = make();
	weft_pool *pool = make_pool(3, 0);

	weft__store(&most, 0, WEFT__RELAXED);
	for (int i = 0; i < COUNT; i++) {
		init(loop, &probes[i]);
		OK(weft_work_op(pool, count_running, &ran[i], &probes[i].op, WEFT_NEVER));
	}
	OK(weft_loop_run(loop));
	for (int i = 0; i < COUNT; i++) {
		CHECK_ENDED(&probes[i], 1);
		CHECK_EQ(weft__load(&ran[i], WEFT__RELAXED), 1);
	}
	CHECK(weft__load(&most, WEFT__RELAXED) <= 3);
	CHECK(threads_of(pool) <= 3);
	OK(weft_pool_free(pool));
	OK(weft_loop_free(loop));
}

TEST(work_starts_in_the_order_it_was_queued)
{
	weft_loop *loop = make();
	weft_pool *pool = make_pool(1, 0);
	struct job gate, jobs[5];

	push_job(loop, pool, &gate);
	for (int i = 0; i < 5; i++)
		push_open_job(loop, pool, &jobs[i]);
	open_gate(&gate);
	OK(weft_loop_run(loop));
	for (int i = 1; i < 5; i++)
		CHECK(jobs[i - 1].number < jobs[i].number);
	OK(weft_pool_free(pool));
	OK(weft_loop_free(loop));
}

TEST(pool_starts_a_thread_only_if_none_is_idle)
{
	weft_loop *loop = make();
	weft_pool *pool = make_pool(4, 0);
	struct job a, b;

	CHECK_EQ(threads_of(pool), 0);
	for (int i = 0; i < 3; i++) {
		push_open_job(loop, pool, &a);
		OK(weft_loop_run(loop));
		await_idle(pool, 1);
		CHECK_EQ(threads_of(pool), 1);
	}
	push_job(loop, pool, &a);
	push_job(loop, pool, &b);
	CHECK_EQ(threads_of(pool), 2);
	await_running(&a);
	await_running(&b);
	open_gate(&a);
	open_gate(&b);
	OK(weft_loop_run(loop));
	await_idle(pool, 2);
	OK(weft_pool_free(pool));
	OK(weft_loop_free(loop));
}

static int
add_one(void *arg)
{
	return ++*(int *)arg; /* sees what the previous work has written */
}

TEST(work_queued_after_the_last_has_ended_runs_on_the_same_thread)
{
	weft_pool *pool = make_pool(4, 0);
	int sum = 0;

	for (int i = 1; i <= 2000; i++) {
		await_idle(pool, i > 1);
		CHECK_EQ(weft_work(pool, add_one, &sum, WEFT_NEVER), i);
	}
	CHECK_EQ(threads_of(pool), 1);
	OK(weft_pool_free(pool));
}

/* Whether the threads of a loop's CPU pool may spin. */
static bool
loops_may_look(uint32_t flags)
{
	weft_loop *loop = weft_loop_new(&(weft_loop_opts){ .flags = flags });
	bool may = weft__loop_pool(loop, WEFT_CPU)->set.may_spin;

	OK(weft_loop_free(loop));
	return may;
}

TEST(pool_threads_spin_before_they_sleep_unless_disabled_or_on_one_cpu)
{
	weft_pool *quiet = weft_pool_new(&(weft_pool_opts){ .no_spin = true });
	weft_pool *pool = weft_pool_new(NULL);

	CHECK(!quiet->set.may_spin);
	CHECK_EQ(pool->set.may_spin, weft__sys->cpus() > 1);
	CHECK(!loops_may_look(WEFT_LOOP_NO_SPIN));
	CHECK_EQ(loops_may_look(0), weft__sys->cpus() > 1);
	OK(weft_pool_free(quiet));
	OK(weft_pool_free(pool));
}

TEST(idle_threads_end_down_to_threads_min_and_are_started_again)
{
	for (uint32_t least = 0; least < 3; least += 2) {
		weft_pool_opts opts = { .threads_min = least,
			                .threads_max = 4,
			                .idle_ns = 200 * WEFT_US };
		weft_loop *loop = make();
		weft_pool *pool = weft_pool_new(&opts);

		for (int round = 0; round < 3; round++) {
			struct job jobs[4];

			for (int i = 0; i < 4; i++)
				push_job(loop, pool, &jobs[i]);
			for (int i = 0; i < 4; i++)
				await_running(&jobs[i]);
			CHECK_EQ(threads_of(pool), 4);
			for (int i = 0; i < 4; i++)
				open_gate(&jobs[i]);
			OK(weft_loop_run(loop));
			while (threads_of(pool) > least)
				sched_yield();
		}
		await_idle(pool, least);
		CHECK_EQ(threads_of(pool), least);
		OK(weft_pool_free(pool));
		OK(weft_loop_free(loop));
	}
}

static char name_seen[16];

static int
see_name(void *arg)
{
	(void)arg;
	OK(pthread_getname_np(pthread_self(), name_seen, sizeof(name_seen)));
	return 0;
}

TEST(pool_threads_have_the_name_of_their_pool)
{
	static const struct {
		const char *name, *seen;
	} cases[] = { { NULL, "weft-pool" },
		      { "", "" },
		      { "crunch", "crunch" },
		      { "a name of 20 bytes..", "a name of 20 by" } };

	for (int i = 0; i < 4; i++) {
		weft_pool_opts opts = { .name = cases[i].name };
		weft_pool *pool = weft_pool_new(&opts);

		OK(weft_work(pool, see_name, NULL, WEFT_NEVER));
		if (cases[i].seen[0])
			CHECK_STR(name_seen, cases[i].seen);
		OK(weft_pool_free(pool));
	}
}

static cpu_set_t cpus_seen;

static int
see_cpus(void *arg)
{
	(void)arg;
	OK(sched_getaffinity(0, sizeof(cpus_seen), &cpus_seen));
	return 0;
}

TEST(pool_threads_run_on_the_cpus_of_their_pool)
{
	weft_pool_opts opts = { .stack_bytes = 100000 };
	weft_pool *pool;
	char text[64];
	int cpu = 0;

	(void)see_cpus(NULL);
	while (!CPU_ISSET(cpu, &cpus_seen))
		cpu++;
	(void)snprintf(text, sizeof(text), "%d-%d,%d", cpu, cpu, cpu);
	opts.cpus = text;
	pool = weft_pool_new(&opts);
	if (weft__sys->set_cpus(NULL) < 0) {
		CHECK(pool == NULL);
		return;
	}
	OK(weft_work(pool, see_cpus, NULL, WEFT_NEVER));
	CHECK_EQ(CPU_COUNT(&cpus_seen), 1);
	CHECK(CPU_ISSET(cpu, &cpus_seen));
	OK(weft_pool_free(pool));
	opts.cpus = "1023"; /* no such CPU: the thread runs unbound */
	pool = weft_pool_new(&opts);
	OK(weft_work(pool, see_cpus, NULL, WEFT_NEVER));
	OK(weft_pool_free(pool));
}

TEST(steady_work_does_not_allocate)
{
	weft_loop *loop;
	weft_pool *pool;
	struct job jobs[64];
	int64_t before = 0;

	count_calls(); /* before any thread uses the sys table that is replaced */
	loop = make();
	pool = make_pool(1, 0);
	for (int round = 0; round < 20; round++) {
		if (round == 2)
			before = counted(&calls.allocs);
		for (int i = 0; i < 64; i++)
			push_open_job(loop, pool, &jobs[i]);
		OK(weft_loop_run(loop));
	}
	CHECK(before > 0);
	CHECK_EQ(counted(&calls.allocs), before);
	OK(weft_pool_free(pool));
	OK(weft_loop_free(loop));
	count_no_more();
}

/* --- refused work ------------------------------------------------------- */

TEST(full_queue_refuses_work_until_there_is_room)
{
	weft_pool_opts opts = { .threads_max = 1, .queue_max = 2 };
	weft_loop *loop = make();
	weft_pool *pool = weft_pool_new(&opts);
	struct job gate, jobs[2], more;

	push_job(loop, pool, &gate);
	await_running(&gate); /* running work is not in the queue */
	push_open_job(loop, pool, &jobs[0]);
	push_open_job(loop, pool, &jobs[1]);
	init_job(loop, &more);
	CHECK_EQ(weft_work_op(pool, run_job, &more, &more.p.op, WEFT_NEVER), WEFT_EAGAIN);
	CHECK_EQ(weft_work(pool, run_job, &more, WEFT_NEVER), WEFT_EAGAIN);
	CHECK(!more.p.op.pending);
	open_gate(&gate);
	OK(weft_loop_run(loop));
	OK(weft_work_op(pool, run_job, &more, &more.p.op, WEFT_NEVER));
	open_gate(&more);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&jobs[0].p, 1);
	CHECK_ENDED(&jobs[1].p, 1);
	CHECK_ENDED(&more.p, 1);
	OK(weft_pool_free(pool));
	OK(weft_loop_free(loop));
}

static struct weft__sys scarce;
static const struct weft__sys *plenty;
static int threads_left;

static int
start_some(const struct weft__thread_opts *opts, uint64_t *out)
{
	return threads_left-- > 0 ? plenty->thread_start(opts, out) : -EAGAIN;
}

/* From now on only `count` threads can be started. */
static void
have_threads(int count)
{
	plenty = weft__sys;
	scarce = *plenty;
	scarce.thread_start = start_some;
	threads_left = count;
	weft__sys = &scarce;
}

TEST(work_fails_without_any_thread_and_waits_if_there_are_too_few)
{
	weft_loop *loop = make();
	weft_pool *pool = make_pool(4, 0);
	struct job a, b;

	have_threads(0);
	push_open_job(loop, pool, &a);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&a.p, WEFT_EAGAIN);
	CHECK_EQ(a.number, 0);
	CHECK_EQ(weft_work(pool, run_job, &a, WEFT_NEVER), WEFT_EAGAIN);
	threads_left = 1;
	push_job(loop, pool, &a);
	await_running(&a);
	push_open_job(loop, pool, &b);
	open_gate(&a);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&a.p, 1);
	CHECK_ENDED(&b.p, 1);
	CHECK_EQ(threads_of(pool), 1);
	OK(weft_pool_free(pool)); /* then no thread uses the table */
	weft__sys = plenty;
	OK(weft_loop_free(loop));
}

TEST(invalid_pool_options_are_refused_with_a_reason)
{
	static const char *const cpus[] = { "",   "x",  "1,",   ",1",           "3-1", "1-",
		                            "-1", "1 ", "1024", "0-9999999999", "1--2" };
	weft_pool_opts opts = { .threads_min = 3, .threads_max = 2 };

	CHECK(weft_pool_new(&opts) == NULL);
	CHECK(strstr(weft_detail(), "threads_min") != NULL);
	opts = (weft_pool_opts){ .threads_max = UINT32_MAX };
	CHECK(weft_pool_new(&opts) == NULL);
	for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++) {
		opts = (weft_pool_opts){ .cpus = cpus[i] };
		CHECK(weft_pool_new(&opts) == NULL);
		CHECK(strstr(weft_detail(), "cpus") || strstr(weft_detail(), "CPUs"));
	}
}

TEST(pool_has_one_thread_per_cpu_by_default)
{
	weft_pool_opts opts = { .threads_min = 1000 };
	weft_pool *pool = weft_pool_new(NULL);
	int cpus = weft__sys->cpus();

	CHECK_EQ(pool->set.threads_max, cpus < 1 ? 1 : cpus);
	CHECK_EQ(pool->set.queue_max, 65536);
	OK(weft_pool_free(pool));
	pool = weft_pool_new(&opts);
	CHECK_EQ(pool->set.threads_max, 1000);
	OK(weft_pool_free(pool));
	OK(weft_pool_free(NULL));
}

TEST(misuse_of_pools_is_reported)
{
	weft_loop *loop = make();
	weft_pool *pool = make_pool(1, 0);
	struct job job;
	weft_op blank = WEFT_INIT;

	init_job(loop, &job);
	CHECK_MISUSE(weft_work_op(NULL, run_job, NULL, &job.p.op, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE(weft_work_op(pool, NULL, NULL, &job.p.op, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE(weft_work_op(pool, run_job, NULL, NULL, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE(weft_work_op(pool, run_job, NULL, &blank, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE(weft_work(NULL, run_job, NULL, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE(weft_work(pool, NULL, NULL, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE(weft_work(WEFT_CPU, run_job, NULL, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_pool_free(WEFT_CPU), WEFT_EBUSY);
	CHECK_EQ(weft_pool_free(WEFT_BLOCKING), WEFT_EBUSY);
	OK(weft_work_op(pool, run_job, &job, &job.p.op, WEFT_NEVER));
	await_running(&job);
	CHECK_MISUSE(weft_work_op(pool, run_job, &job, &job.p.op, WEFT_NEVER), WEFT_EBUSY);
	CHECK_EQ(weft_pool_free(pool), WEFT_EBUSY);
	open_gate(&job);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&job.p, 1);
	OK(weft_pool_free(pool));
	OK(weft_loop_free(loop));
}

/* --- work that ends early ----------------------------------------------- */

TEST(canceled_or_late_queued_work_ends_at_once_and_never_runs)
{
	weft_loop *loop = make();
	weft_pool *pool = make_pool(1, 0);
	struct job gate, jobs[5];

	push_job(loop, pool, &gate);
	await_running(&gate);
	for (int i = 0; i < 5; i++) {
		init_job(loop, &jobs[i]);
		open_gate(&jobs[i]);
		OK(weft_work_op(pool, run_job, &jobs[i], &jobs[i].p.op,
		                i == 2 ? WEFT_NOWAIT : weft_after(HOUR)));
	}
	weft_op_cancel(&jobs[0].p.op); /* the first */
	weft_op_cancel(&jobs[4].p.op); /* and the last; the one between is late */
	turns(loop, 2);
	CHECK_ENDED(&jobs[0].p, WEFT_ECANCELED);
	CHECK_ENDED(&jobs[2].p, WEFT_ETIMEDOUT);
	CHECK_ENDED(&jobs[4].p, WEFT_ECANCELED);
	CHECK_EQ(jobs[1].p.results + jobs[3].p.results, 0);
	open_gate(&gate);
	OK(weft_loop_run(loop));
	for (int i = 0; i < 5; i++)
		CHECK_EQ(jobs[i].number != 0, i % 2);
	CHECK_ENDED(&jobs[1].p, 1);
	CHECK_ENDED(&jobs[3].p, 1);
	OK(weft_pool_free(pool));
	OK(weft_loop_free(loop));
}

TEST(running_work_that_is_canceled_is_waited_for_and_its_result_counts)
{
	static const int why[] = { WEFT_ECANCELED, WEFT_ETIMEDOUT };
	weft_loop *loop = make();
	weft_pool *pool = make_pool(2, 0);

	for (int i = 0; i < 2; i++) {
		struct job job, other;

		push_job(loop, pool, &other);
		await_running(&other);
		init_job(loop, &job);
		job.until_asked = true;
		OK(weft_work_op(pool, run_job, &job, &job.p.op,
		                i ? weft_after(WEFT_MS) : WEFT_NEVER));
		await_running(&job);
		if (i == 0)
			weft_op_cancel(&job.p.op);
		while (job.p.op.pending)
			(void)weft_loop_run_once(loop, WEFT_NEVER);
		CHECK_ENDED(&job.p, 1);
		CHECK_EQ(job.asked, why[i]);
		open_gate(&other); /* its own op was not canceled */
		OK(weft_loop_run(loop));
		CHECK_ENDED(&other.p, 1);
		CHECK_EQ(other.asked, 0);
	}
	/* The next work of the same threads is not canceled. */
	for (int i = 0; i < 4; i++) {
		struct job job;

		push_open_job(loop, pool, &job);
		OK(weft_loop_run(loop));
		CHECK_EQ(job.asked, 0);
	}
	CHECK_EQ(weft_check_canceled(), 0); /* this is not a pool thread */
	OK(weft_pool_free(pool));
	OK(weft_loop_free(loop));
}

TEST(result_of_work_that_has_returned_beats_a_later_cancel)
{
	weft_loop *loop = make();
	weft_pool *pool = make_pool(1, 0);
	struct job job;

	push_open_job(loop, pool, &job);
	await_idle(pool, 1); /* the result is in flight */
	weft_op_cancel(&job.p.op);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&job.p, 1);
	OK(weft_pool_free(pool));
	OK(weft_loop_free(loop));
}

/* --- from plain threads ------------------------------------------------- */

struct caller {
	struct job job;
	weft_pool *pool;
	uint64_t deadline_ns;
	int rc;
};

static void *
call(void *arg)
{
	struct caller *c = arg;

	c->rc = weft_work(c->pool, run_job, &c->job, c->deadline_ns);
	return NULL;
}

TEST(plain_thread_waits_for_its_work)
{
	weft_pool *pool = make_pool(1, 0);
	struct caller callers[3] = { 0 };
	pthread_t threads[3];
	struct job job = { .gate = { 1 } };

	CHECK_EQ(weft_work(pool, run_job, &job, WEFT_NEVER), 1);
	CHECK_EQ(weft_work(pool, run_job, &job, weft_after(HOUR)), 1);
	CHECK_EQ(weft_work(pool, run_job, &job, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	for (int i = 0; i < 3; i++) {
		callers[i].pool = pool;
		callers[i].deadline_ns = WEFT_NEVER;
		threads[i] = thread(call, &callers[i]);
	}
	for (int i = 0; i < 3; i++)
		open_gate(&callers[i].job);
	for (int i = 0; i < 3; i++) {
		OK(pthread_join(threads[i], NULL));
		CHECK_EQ(callers[i].rc, 1);
	}
	OK(weft_pool_free(pool));
}

TEST(plain_thread_leaves_the_queue_at_its_deadline_but_waits_for_running_work)
{
	weft_pool *pool = make_pool(1, 0);
	struct caller runs = { .pool = pool }, waits = { .pool = pool };
	pthread_t thread_;

	runs.job.until_asked = true;
	runs.deadline_ns = weft_after(WEFT_MS);
	thread_ = thread(call, &runs);
	OK(pthread_join(thread_, NULL));
	/* The work may have begun by then or not. */
	CHECK(runs.rc == WEFT_ETIMEDOUT || runs.rc == 1);
	CHECK_EQ(runs.rc == 1, runs.job.asked == WEFT_ETIMEDOUT);
	runs = (struct caller){ .pool = pool, .deadline_ns = WEFT_NEVER };
	thread_ = thread(call, &runs);
	await_running(&runs.job);
	waits.deadline_ns = weft_after(WEFT_MS);
	(void)call(&waits);
	CHECK_EQ(waits.rc, WEFT_ETIMEDOUT);
	CHECK(weft_now() >= waits.deadline_ns);
	open_gate(&runs.job);
	OK(pthread_join(thread_, NULL));
	CHECK_EQ(runs.rc, 1);
	CHECK_EQ(waits.job.number, 0);
	OK(weft_pool_free(pool));
}

static weft_pool *inner;
static int inner_rc[3];

static int
call_own_pool(void *arg)
{
	inner_rc[0] = weft_work(inner, run_job, arg, WEFT_NEVER);
	inner_rc[1] = weft_pool_free(inner);
	return 3;
}

static void
call_in_callback(void *arg)
{
	inner_rc[2] = weft_work(inner, run_job, arg, WEFT_NEVER);
}

TEST(weft_work_that_would_wait_for_itself_is_refused)
{
	weft_loop *loop = make();

	inner = make_pool(4, 0);
	CHECK_EQ(weft_work(inner, call_own_pool, NULL, WEFT_NEVER), 3);
	CHECK_EQ(inner_rc[0], WEFT_EDEADLK);
	CHECK_EQ(inner_rc[1], WEFT_EDEADLK);
	OK(weft_loop_post(loop, call_in_callback, NULL));
	OK(weft_loop_run(loop));
	CHECK_EQ(inner_rc[2], WEFT_ENOSUSPEND);
	OK(weft_pool_free(inner));
	OK(weft_loop_free(loop));
}

static int
call_other_pool(void *arg)
{
	return weft_work(inner, run_job, arg, WEFT_NEVER);
}

TEST(work_may_wait_for_work_of_another_pool)
{
	weft_pool *pool = make_pool(1, 0);
	struct job job = { .gate = { 1 } };

	inner = make_pool(1, 0);
	CHECK_EQ(weft_work(pool, call_other_pool, &job, WEFT_NEVER), 1);
	OK(weft_pool_free(inner));
	OK(weft_pool_free(pool));
}

/* --- the pools of a loop ------------------------------------------------ */

TEST(loop_has_a_cpu_pool_and_a_blocking_pool)
{
	weft_loop *loop = make();
	struct probe p = { 0 }, q = { 0 };

	init(loop, &p);
	OK(weft_work_op(WEFT_CPU, see_name, NULL, &p.op, WEFT_NEVER));
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, 0);
	CHECK_STR(name_seen, "weft-cpu");
	init(loop, &q);
	OK(weft_work_op(WEFT_BLOCKING, see_name, NULL, &q.op, WEFT_NEVER));
	OK(weft_loop_run(loop));
	CHECK_ENDED(&q, 0);
	CHECK_STR(name_seen, "weft-blocking");
	OK(weft_loop_free(loop)); /* ends their threads */
}

TEST(blocking_pool_grows_to_64_threads)
{
	enum { COUNT = 70 };
	static struct job jobs[COUNT];
	weft_loop *loop = make();

	for (int i = 0; i < COUNT; i++)
		push_job(loop, WEFT_BLOCKING, &jobs[i]);
	for (int i = 0; i < 64; i++)
		await_running(&jobs[i]);
	for (int i = 0; i < COUNT; i++)
		open_gate(&jobs[i]);
	OK(weft_loop_run(loop));
	for (int i = 0; i < COUNT; i++)
		CHECK_ENDED(&jobs[i].p, 1);
	stop_idle(loop);
}

TEST(pools_shared_by_loops_are_in_use_until_the_loops_are_freed)
{
	weft_loop *loops[2] = { make(), make() };
	weft_pool *cpu = make_pool(1, 0), *blocking = make_pool(1, 0);
	struct job jobs[2];

	for (int i = 0; i < 2; i++) {
		OK(weft__loop_set_pools(loops[i], cpu, blocking));
		CHECK_EQ(weft__loop_set_pools(loops[i], cpu, cpu), WEFT_EBUSY);
		push_open_job(loops[i], i ? WEFT_CPU : WEFT_BLOCKING, &jobs[i]);
		OK(weft_loop_run(loops[i]));
		CHECK_ENDED(&jobs[i].p, 1);
	}
	CHECK_EQ(threads_of(cpu) + threads_of(blocking), 2);
	CHECK_EQ(weft_pool_free(cpu), WEFT_EBUSY);
	OK(weft_loop_free(loops[0]));
	CHECK_EQ(weft_pool_free(blocking), WEFT_EBUSY);
	OK(weft_loop_free(loops[1]));
	OK(weft_pool_free(cpu));
	OK(weft_pool_free(blocking));
}

/* --- after a fork ------------------------------------------------------- */

TEST(forked_child_can_only_free_the_memory_of_a_pool)
{
	weft_loop *loop = make();
	weft_pool *pool = make_pool(2, 0);
	struct job job, own;
	int status;
	pid_t pid;

	push_open_job(loop, WEFT_CPU, &own);
	push_job(loop, pool, &job);
	await_running(&job);
	pid = test_fork();
	if (pid == 0) {
		weft_loop *mine = weft_loop_new(NULL);
		int rc = WEFT_EWRONGLOOP;

		if (!test_misuse_aborts) {
			init_job(mine, &own);
			rc = weft_work_op(pool, run_job, &own, &own.p.op, WEFT_NEVER);
			if (rc == WEFT_EWRONGLOOP)
				rc = weft_work(pool, run_job, &own, WEFT_NEVER);
		}
		test_child_exit(rc != WEFT_EWRONGLOOP || weft_pool_free(pool) != 0
		                || weft_loop_free(loop) != 0 || weft_loop_free(mine) != 0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	open_gate(&job);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&job.p, 1);
	OK(weft_pool_free(pool));
	OK(weft_loop_free(loop));
}

static int
fork_in_work(void *arg)
{
	int status;
	pid_t pid = test_fork();

	(void)arg;
	if (pid == 0)
		test_child_exit(weft_pool_free(inner) != 0 || weft_check_canceled() != 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status == 0;
}

TEST(child_forked_by_work_belongs_to_no_pool_once_it_is_freed)
{
	inner = make_pool(1, 0);
	CHECK_EQ(weft_work(inner, fork_in_work, NULL, WEFT_NEVER), 1);
	OK(weft_pool_free(inner));
}
