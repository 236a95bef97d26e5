/* work_end_test.c - how loops and pools end together.
 *
 * A loop that stops waits for its own work, which may post to it meanwhile.  A pool may be
 * freed as soon as its last result was delivered.  The tests under load stop at random moments,
 * many times; their counts must add up each time.
 */
#include "unit/runtime/job.h"

/* --- stopping ----------------------------------------------------------- */

TEST(loop_stop_ends_queued_work_and_waits_for_running_work)
{
	weft_loop *loop = make();
	weft_pool *pool = make_pool(1, 0);
	struct job runs, queued, late;

	init_job(loop, &runs);
	runs.until_asked = true;
	OK(weft_work_op(pool, run_job, &runs, &runs.p.op, WEFT_NEVER));
	await_running(&runs);
	push_open_job(loop, pool, &queued);
	weft_loop_shutdown(loop);
	CHECK(weft_loop_state(loop) != WEFT_STOPPED);
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
	init_job(loop, &late);
	CHECK_EQ(weft_work_op(pool, run_job, &late, &late.p.op, WEFT_NEVER), WEFT_ESHUTDOWN);
	OK(weft_loop_run(loop));
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	CHECK_ENDED(&runs.p, 1);
	CHECK_EQ(runs.asked, WEFT_ESHUTDOWN);
	CHECK_ENDED(&queued.p, WEFT_ESHUTDOWN);
	CHECK_EQ(queued.number, 0);
	CHECK_EQ(weft_work_op(pool, run_job, &late, &late.p.op, WEFT_NEVER), WEFT_ESHUTDOWN);
	OK(weft_pool_free(pool)); /* before or after its loops */
	OK(weft_loop_free(loop));
}

static weft_loop *target;
static int post_rc[2];

static void
on_post(void *arg)
{
	(*(int *)arg)++;
}

/* Posts before the loop stops, waits for the cancellation, posts again. */
static int
post_around_stop(void *arg)
{
	post_rc[0] = weft_loop_post(target, on_post, arg);
	while (!weft_check_canceled())
		sched_yield();
	post_rc[1] = weft_loop_post(target, on_post, arg);
	return 5;
}

TEST(post_from_work_to_a_stopping_loop_is_refused)
{
	struct probe p = { 0 };
	int posts = 0;

	target = make();
	init(target, &p);
	OK(weft_work_op(WEFT_BLOCKING, post_around_stop, &posts, &p.op, WEFT_NEVER));
	while (posts == 0)
		turn(target);
	weft_loop_shutdown(target);
	OK(weft_loop_run(target));
	CHECK_ENDED(&p, 5);
	OK(post_rc[0]);
	CHECK_EQ(post_rc[1], WEFT_ESHUTDOWN);
	CHECK_EQ(posts, 1);
	OK(weft_loop_free(target));
}

TEST(background_work_does_not_keep_the_loop_alive_but_delays_its_stop)
{
	weft_loop *loop = make();
	weft_pool *pool = make_pool(1, 0);
	struct job job;

	push_job(loop, pool, &job);
	weft_op_set_background(&job.p.op, true);
	OK(weft_loop_run(loop));
	CHECK_EQ(job.p.results, 0);
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
	await_running(&job);
	open_gate(&job);
	stop_idle(loop);
	CHECK_ENDED(&job.p, 1);
	OK(weft_pool_free(pool));
}

/* --- freeing ------------------------------------------------------------ */

static weft_pool *last_pool;
static int free_rc;

static void
free_last_pool(struct probe *p)
{
	(void)p;
	free_rc = weft_pool_free(last_pool);
}

TEST(pool_may_be_freed_by_the_callback_of_its_last_work)
{
	for (int i = 0; i < 500; i++) {
		weft_loop *loop = make();
		struct job job;

		last_pool = make_pool(1, i % 2);
		init_job(loop, &job);
		open_gate(&job);
		job.p.act = free_last_pool;
		free_rc = 1;
		OK(weft_work_op(last_pool, run_job, &job, &job.p.op, WEFT_NEVER));
		OK(weft_loop_run(loop));
		OK(free_rc);
		OK(weft_loop_free(loop));
	}
}

TEST(pool_may_be_freed_in_a_callback_after_its_work_was_canceled)
{
	weft_loop *loop = make();
	struct job gate, job;

	last_pool = make_pool(1, 0);
	push_job(loop, last_pool, &gate);
	await_running(&gate);
	push_open_job(loop, last_pool, &job);
	weft_op_cancel(&job.p.op);
	turns(loop, 2);
	CHECK_ENDED(&job.p, WEFT_ECANCELED);
	CHECK_EQ(weft_pool_free(last_pool), WEFT_EBUSY);
	gate.p.act = free_last_pool;
	open_gate(&gate);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&gate.p, 1);
	OK(free_rc);
	OK(weft_loop_free(loop));
}

static weft__a32 freer_goes;

/* Tries to free the pool until that succeeds. */
static void *
insist_on_freeing(void *arg)
{
	int rc;

	while (!weft__load(&freer_goes, WEFT__ACQUIRE))
		;
	do
		rc = weft_pool_free(arg);
	while (rc == WEFT_EBUSY);
	CHECK_EQ(rc, 0);
	return NULL;
}

TEST(pool_freed_by_another_thread_exists_until_its_work_was_delivered)
{
	uint64_t seed = test_seed();

	for (int i = 0; i < 1000; i++) {
		weft_loop *loop = make();
		weft_pool *pool = make_pool(2, 0);
		struct job jobs[3];
		pthread_t freer;

		weft__store(&freer_goes, 0, WEFT__RELAXED);
		freer = thread(insist_on_freeing, pool);
		for (int k = 0; k < 3; k++)
			push_open_job(loop, pool, &jobs[k]);
		weft__store(&freer_goes, 1, WEFT__RELEASE);
		for (int k = 0; k < 3; k++)
			if (test_random(&seed) % 2)
				weft_op_cancel(&jobs[k].p.op);
		OK(weft_loop_run(loop));
		OK(pthread_join(freer, NULL));
		for (int k = 0; k < 3; k++)
			CHECK(jobs[k].p.result == 1 || jobs[k].p.result == WEFT_ECANCELED);
		OK(weft_loop_free(loop));
	}
}

/* --- both at once, under load ------------------------------------------- */

enum { CHAINS = 16 };

/* Each callback of a chain starts its next work, forever. */
struct chain {
	weft_op op;
	weft_pool *pool;
	weft__a32 ran;              /* incremented by the pool */
	uint32_t started, accepted; /* work items; posts made by them */
	uint32_t values, errors;    /* results */
	uint32_t posted;            /* posts that ran */
	int last;                   /* result of the last start */
	bool cancels;
};

static void
on_chain_post(void *arg)
{
	((struct chain *)arg)->posted++;
}

static int
work_chain(void *arg)
{
	struct chain *c = arg;

	(void)weft__add(&c->ran, 1, WEFT__RELAXED);
	if (weft_loop_post(c->op.loop, on_chain_post, c) == 0)
		c->accepted++; /* only one work item of a chain runs at a time */
	return 1;
}

static void
start_chain(struct chain *c)
{
	c->last = weft_work_op(c->pool, work_chain, c, &c->op, WEFT_NEVER);
	c->started += c->last == 0;
	if (c->last == 0 && c->cancels && c->started % 3 == 0)
		weft_op_cancel(&c->op);
}

static void
on_chain(weft_op *op, int64_t result, void *arg)
{
	struct chain *c = arg;

	CHECK(op == &c->op);
	c->values += result == 1;
	c->errors += result < 0;
	CHECK(result == 1 || result == WEFT_ECANCELED || result == WEFT_ESHUTDOWN);
	start_chain(c);
}

static void
start_chains(void *arg)
{
	struct chain *chains = arg;

	for (int i = 0; i < CHAINS; i++)
		start_chain(&chains[i]);
}

static void
check_chain(struct chain *c)
{
	CHECK(!c->op.pending);
	CHECK_EQ(c->last, WEFT_ESHUTDOWN);
	CHECK_EQ(c->values + c->errors, c->started);
	CHECK_EQ(weft__load(&c->ran, WEFT__RELAXED), c->values);
	CHECK_EQ(c->posted, c->accepted);
}

TEST(stop_under_load_ends_all_work_and_all_posts_made_by_work)
{
	uint64_t seed = test_seed();

	for (int round = 0; round < 300; round++) {
		struct chain chains[CHAINS];
		weft_loop *loop = make_started();
		weft_pool *pool = make_pool(2, (uint32_t)round % 3);
		uint64_t end_ns;

		memset(chains, 0, sizeof(chains));
		for (int i = 0; i < CHAINS; i++) {
			chains[i].pool = round % 4 ? pool : WEFT_CPU;
			chains[i].cancels = i % 2;
			OK(weft_op_init(&chains[i].op, loop, on_chain, &chains[i]));
		}
		OK(weft_loop_post(loop, start_chains, chains));
		end_ns = weft_after(test_random(&seed) % (300 * WEFT_US));
		while (weft_now() < end_ns)
			;
		weft_loop_shutdown(loop);
		OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
		/* No work is left, so the pool is not in use. */
		OK(weft_pool_free(pool));
		for (int i = 0; i < CHAINS; i++)
			check_chain(&chains[i]);
		OK(weft_loop_free(loop));
	}
}

struct user {
	weft_pool *pool;
	weft__a32 *ran;
	int64_t done;
};

static int
count_run(void *arg)
{
	(void)weft__add((weft__a32 *)arg, 1, WEFT__RELAXED);
	return 1;
}

/* Makes calls that wait.  Some of them time out. */
static void *
call_often(void *arg)
{
	struct user *user = arg;

	for (int i = 0; i < 2000; i++) {
		uint64_t until_ns = i % 4 ? WEFT_NEVER : weft_after(20 * WEFT_US);
		int rc = weft_work(user->pool, count_run, user->ran, until_ns);

		CHECK(rc == 1 || rc == WEFT_ETIMEDOUT);
		user->done += rc == 1;
	}
	return NULL;
}

TEST(no_work_is_lost_while_pool_threads_start_and_end)
{
	enum { USERS = 4 };
	weft_pool_opts opts = { .threads_max = 3, .idle_ns = 10 * WEFT_US };
	weft_pool *pool = weft_pool_new(&opts);
	weft__a32 ran = { 0 };
	struct user users[USERS];
	pthread_t threads[USERS];
	int64_t done = 0;

	for (int i = 0; i < USERS; i++) {
		users[i] = (struct user){ .pool = pool, .ran = &ran };
		threads[i] = thread(call_often, &users[i]);
	}
	for (int i = 0; i < USERS; i++) {
		OK(pthread_join(threads[i], NULL));
		done += users[i].done;
	}
	CHECK_EQ(weft__load(&ran, WEFT__RELAXED), done);
	OK(weft_pool_free(pool));
}
