/* pool_models.c - a pool of threads: waking workers, taking and revoking work, freeing.
 *
 * The source of the pool is included in this file, so that a planted bug can be one of its
 * functions with a step missing; everything else is the real library.  The pool's threads are
 * model threads that wait to be started.  Small models call and wait without a loop; larger
 * ones run a loop and ops, with a bound on preemptions.
 */
#include "loop/core/loop.h"
#include "models.h"
#include "work/pool.h"

int push_as_it_is(weft_pool *pool, struct weft__op *op);
bool revoke_as_it_is(weft_pool *pool, struct weft__op *op, int why);
void leave_as_it_is(weft_pool *pool);

#define weft__pool_push   push_as_it_is
#define weft__pool_revoke revoke_as_it_is
#define weft__pool_leave  leave_as_it_is
#include "work/pool.c"
#undef weft__pool_push
#undef weft__pool_revoke
#undef weft__pool_leave

enum bug {
	NO_BUG,
	NO_RING,      /* takes a worker off the idle list and does not wake it */
	NO_CALL,      /* queues, and wakes no worker if there is a thread */
	EARLY_SEARCH, /* checks for an idle worker before it takes the lock */
	LATE_IDLE,    /* a worker gives the lock back, then enters the idle list */
	LATE_SLEEP,   /* ends its spin without checking the futex word */
	DEAF,         /* a worker that timed out ends, although it was called */
	UNDEAD,       /* a worker takes one more op after it has retired */
	NO_OWNER,     /* revokes an op that a worker has taken */
	NO_LOCK,      /* revokes without the lock */
	EARLY_LEAVE,  /* an op leaves the pool before its result is reported */
	LATE_START,   /* starts a thread although the pool is ending */
	NO_JOIN,      /* the pool is freed while a thread is ending */
};

struct world {
	weft_pool *pool;
	weft_loop *loop;
	weft_op op;
	weft_node node;
	weft__a32 begun;               /* 1: the work has begun */
	struct weft__op first, second; /* ops without a loop */
	uint32_t ran[2];               /* how often each function ran */
	uint32_t posted;
	int rc[2];
	int64_t result;
	int results;
	int post_rc;
	bool stops; /* the work stops the loop; otherwise the loop's thread does */
};

static int left_early; /* ops that have left the pool but are not finished yet */

/* --- planted bugs ------------------------------------------------------- */

static int
push_wrongly(weft_pool *pool, struct weft__op *op)
{
	struct weft__worker *asleep = NULL, *left;
	int rc = 0;

	if (planted == EARLY_SEARCH)
		(void)call_idle(pool, &asleep);
	weft__lock_take(&pool->lock);
	if (planted == NO_RING)
		(void)call_idle(pool, &left);
	if (weft__get(pool->threads) == 0 || planted == LATE_START)
		rc = start_thread(pool);
	work_pool_append(pool, op);
	weft__lock_give(&pool->lock);
	wake(asleep);
	return rc;
}

int
weft__pool_push(weft_pool *pool, struct weft__op *op)
{
	return planted == NO_RING || planted == NO_CALL || planted == EARLY_SEARCH
	                       || planted == LATE_START
	               ? push_wrongly(pool, op)
	               : push_as_it_is(pool, op);
}

bool
weft__pool_revoke(weft_pool *pool, struct weft__op *op, int why)
{
	if (planted == NO_LOCK) {
		if (!weft__get(op->queued))
			return false;
		work_pool_take_out(pool, op);
		return true;
	}
	return revoke_as_it_is(pool, op, why) || planted == NO_OWNER;
}

void
weft__pool_leave(weft_pool *pool)
{
	if (left_early > 0)
		left_early--;
	else
		leave_as_it_is(pool);
}

static bool
idle_wrongly(struct weft__worker *worker)
{
	weft_pool *pool = worker->pool;
	uint64_t deadline_ns = end_of_idling(pool);
	int rc = 0;

	if (planted == LATE_IDLE) {
		weft__lock_give(&pool->lock);
		weft__lock_take(&pool->lock);
	}
	weft__put(worker->below, weft__get(pool->idle));
	weft__put(pool->idle, worker);
	weft__store(&worker->futex,
	            planted == LATE_SLEEP ? WEFT__WORKER_SPINS : WEFT__WORKER_SLEEPS,
	            WEFT__RELAXED);
	weft__lock_give(&pool->lock);
	if (planted == LATE_SLEEP)
		weft__store(&worker->futex, WEFT__WORKER_SLEEPS, WEFT__RELAXED);
	while (weft__load(&worker->futex, WEFT__RELAXED) == WEFT__WORKER_SLEEPS && rc != -ETIMEDOUT)
		rc = weft__sys->park(&worker->futex, WEFT__WORKER_SLEEPS, deadline_ns);
	weft__lock_take(&pool->lock);
	if (!leave_idle(worker) && (planted != DEAF || rc != -ETIMEDOUT))
		return true;
	retire(worker);
	return planted == UNDEAD && weft__get(pool->first);
}

static struct weft__op *
next_wrongly(struct weft__worker *worker)
{
	weft_pool *pool = worker->pool;
	struct weft__op *op;

	weft__lock_take(&pool->lock);
	while (!(op = weft__get(pool->first))) {
		bool ending = weft__get(pool->ending);

		if (ending)
			retire(worker);
		if (ending || !idle_wrongly(worker))
			break;
	}
	if (op) {
		work_pool_take_out(pool, op);
		weft__put(worker->op, op);
	}
	weft__lock_give(&pool->lock);
	return op;
}

static void
be_wrong_worker(void *arg)
{
	struct weft__worker *worker = arg;
	struct weft__op *op;

	weft__thread_self()->worker = worker;
	while ((op = planted >= LATE_IDLE && planted <= UNDEAD ? next_wrongly(worker)
	                                                       : next_work(worker))) {
		weft_pool *pool = worker->pool;

		int result = weft__op_do_work(op);

		if (planted == EARLY_LEAVE) {
			left_early++;
			leave_as_it_is(pool);
		}
		weft__work_finish(op, result);
	}
}

static struct weft__sys wrong_sys;
static const struct weft__sys *right_sys;

static int
start_wrongly(const struct weft__thread_opts *opts, uint64_t *out)
{
	struct weft__thread_opts wrong = *opts;

	wrong.fn = be_wrong_worker;
	return right_sys->thread_start(&wrong, out);
}

static int
join_nothing(uint64_t thread)
{
	(void)thread;
	return 0;
}

/* The explorer sets its own table before each run. */
static void
plant(void)
{
	left_early = 0;
	if (planted == NO_BUG)
		return;
	if (weft__sys != &wrong_sys)
		right_sys = weft__sys;
	wrong_sys = *right_sys;
	wrong_sys.thread_start = start_wrongly;
	if (planted == NO_JOIN)
		wrong_sys.thread_join = join_nothing;
	weft__sys = &wrong_sys;
}

/* --- calls that wait ---------------------------------------------------- */

static void
setup(void *state)
{
	struct world *w = state;
	weft_pool_opts opts = { .threads_max = 1, .idle_ns = WEFT_S };

	plant();
	w->pool = weft_pool_new(&opts);
}

/* Its thread stays, so a timeout does not hide a lost wake. */
static void
setup_staying(void *state)
{
	struct world *w = state;

	setup(w);
	w->pool->set.threads_min = 1;
}

/* With two threads that end as soon as they are idle. */
static void
setup_two(void *state)
{
	struct world *w = state;

	setup(w);
	w->pool->set.threads_max = 2;
	w->pool->set.idle_ns = 0;
	EXPLORE_CHECK(start_thread(w->pool) == 0);
	EXPLORE_CHECK(start_thread(w->pool) == 0);
}

/* With room for a second thread. */
static void
setup_more(void *state)
{
	struct world *w = state;

	setup(w);
	w->pool->set.threads_max = 2;
}

static int
count_first(void *arg)
{
	struct world *w = arg;

	weft__put(w->ran[0], weft__get(w->ran[0]) + 1);
	return 1;
}

static int
count_second(void *arg)
{
	struct world *w = arg;

	weft__put(w->ran[1], weft__get(w->ran[1]) + 1);
	return 1;
}

/* Free the pool as soon as that is allowed; calls that are still inside are about to return. */
static void
free_pool(struct world *w)
{
	int rc;

	while ((rc = weft_pool_free(w->pool)) == WEFT_EBUSY)
		weft__sys->yield();
	EXPLORE_CHECK(rc == 0);
	explore_dismiss();
}

static void
call_and_free(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_work(w->pool, count_first, w, WEFT_NEVER) == 1);
	EXPLORE_CHECK(weft__get(w->ran[0]) == 1);
	free_pool(w);
}

static void
call_twice_and_free(void *state)
{
	struct world *w = state;

	for (uint32_t i = 1; i <= 2; i++) {
		EXPLORE_CHECK(weft_work(w->pool, count_first, w, WEFT_NEVER) == 1);
		EXPLORE_CHECK(weft__get(w->ran[0]) == i);
	}
	free_pool(w);
}

/* Another thread frees the pool as soon as it may, which can be at any time. */
static int
count_and_tell(void *arg)
{
	struct world *w = arg;

	weft__store(&w->begun, 1, WEFT__RELEASE);
	return count_first(arg);
}

static void
call_and_go(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_work(w->pool, count_and_tell, w, WEFT_NEVER) == 1);
}

static void
free_soon(void *state)
{
	struct world *w = state;

	while (!weft__load(&w->begun, WEFT__ACQUIRE))
		weft__sys->yield();
	free_pool(w);
}

/* A deadline that may pass at any time: the work has run, or the call has timed out. */
static void
give_up_and_free(void *state)
{
	struct world *w = state;
	int rc = weft_work(w->pool, count_first, w, weft_after(WEFT_MS));

	EXPLORE_CHECK(rc == 1 || rc == WEFT_ETIMEDOUT);
	EXPLORE_CHECK(weft__get(w->ran[0]) == (rc == 1));
	EXPLORE_CHECK(weft_work(w->pool, count_second, w, WEFT_NEVER) == 1);
	free_pool(w);
}

/* A loop ends its pool after the results of its work are reported; a thread of the pool may
 * then still be submitting more. */
static void
on_second(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	(void)result;
	(void)arg;
}

static int
put_in_more(void *arg)
{
	struct world *w = arg;

	weft__store(&w->begun, 1, WEFT__RELEASE);
	w->second.on_done = on_second;
	weft__op_set_work(&w->second, count_second, w);
	EXPLORE_CHECK(weft__pool_push(w->pool, &w->second) == 0);
	return 1;
}

static void
end_soon(void *state)
{
	struct world *w = state;

	w->first.on_done = on_second;
	weft__op_set_work(&w->first, put_in_more, w);
	EXPLORE_CHECK(weft__pool_push(w->pool, &w->first) == 0);
	while (!weft__load(&w->begun, WEFT__ACQUIRE))
		weft__sys->yield();
	weft__pool_end(w->pool);
	EXPLORE_CHECK(weft__get(w->ran[1]) == 1);
	explore_dismiss();
}

static void
nothing(void *state)
{
	(void)state;
}

/* --- ops of a loop ------------------------------------------------------ */

static void
on_done(weft_op *op, int64_t result, void *arg)
{
	struct world *w = arg;

	(void)op;
	w->result = result;
	w->results++;
}

/* The callback frees the pool: nothing is left in it. */
static void
on_done_free(weft_op *op, int64_t result, void *arg)
{
	struct world *w = arg;

	on_done(op, result, arg);
	EXPLORE_CHECK(weft_pool_free(w->pool) == 0);
	explore_dismiss();
}

static void
make_loop(struct world *w, uint32_t flags)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_NO_SPIN | flags };

	setup(w);
	w->loop = weft_loop_new(&opts);
}

static void
setup_loop(void *state)
{
	make_loop(state, 0);
}

static void
setup_kept_loop(void *state)
{
	make_loop(state, WEFT_LOOP_KEEP);
}

static void
run_work_and_free(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_op_init(&w->op, w->loop, on_done_free, w) == 0);
	EXPLORE_CHECK(weft_work_op(w->pool, count_first, w, &w->op, WEFT_NEVER) == 0);
	EXPLORE_CHECK(weft_loop_run(w->loop) == 0);
	EXPLORE_CHECK(w->results == 1 && w->result == 1);
	EXPLORE_CHECK(weft__get(w->ran[0]) == 1);
	EXPLORE_CHECK(weft_loop_free(w->loop) == 0);
}

static void
cancel_work_and_free(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_op_init(&w->op, w->loop, on_done_free, w) == 0);
	EXPLORE_CHECK(weft_work_op(w->pool, count_first, w, &w->op, WEFT_NEVER) == 0);
	weft_op_cancel(&w->op);
	EXPLORE_CHECK(weft_loop_run(w->loop) == 0);
	EXPLORE_CHECK(w->results == 1);
	EXPLORE_CHECK(w->result == 1 || w->result == WEFT_ECANCELED);
	EXPLORE_CHECK(weft__get(w->ran[0]) == (w->result == 1));
	EXPLORE_CHECK(weft_loop_free(w->loop) == 0);
}

/* A loop submits work and cancels it, while another thread frees the pool. */
static void
cancel_work(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(weft_op_init(&w->op, w->loop, on_done, w) == 0);
	EXPLORE_CHECK(weft_work_op(w->pool, count_and_tell, w, &w->op, WEFT_NEVER) == 0);
	weft_op_cancel(&w->op);
	EXPLORE_CHECK(weft_loop_run(w->loop) == 0);
	EXPLORE_CHECK(w->results == 1);
	weft__store(&w->begun, 1, WEFT__RELEASE); /* in case it did not run */
	EXPLORE_CHECK(weft_loop_free(w->loop) == 0);
}

static void
on_node(void *arg)
{
	((struct world *)arg)->posted++;
}

/* Work that posts to its loop, which may be stopping, or which the work stops. */
static int
post_back(void *arg)
{
	struct world *w = arg;

	if (w->stops)
		weft_loop_shutdown(w->loop);
	w->post_rc = weft_loop_post_node(w->loop, &w->node);
	return count_first(arg);
}

static void
work_and_stop(struct world *w)
{
	w->node = (weft_node){ .fn = on_node, .arg = w };
	EXPLORE_CHECK(weft_op_init(&w->op, w->loop, on_done, w) == 0);
	EXPLORE_CHECK(weft_work_op(w->pool, post_back, w, &w->op, WEFT_NEVER) == 0);
	if (!w->stops)
		weft_loop_shutdown(w->loop);
	EXPLORE_CHECK(weft_loop_run(w->loop) == 0);
	EXPLORE_CHECK(weft_loop_state(w->loop) == WEFT_STOPPED);
	EXPLORE_CHECK(w->results == 1);
	EXPLORE_CHECK(w->result == 1 || w->result == WEFT_ESHUTDOWN);
	EXPLORE_CHECK(weft__get(w->ran[0]) == (w->result == 1));
	EXPLORE_CHECK(w->posted == (w->ran[0] && w->post_rc == 0));
	/* Nothing uses the pool or the loop any longer. */
	EXPLORE_CHECK(weft_pool_free(w->pool) == 0);
	EXPLORE_CHECK(weft_loop_free(w->loop) == 0);
	explore_dismiss();
}

static void
work_and_stop_meanwhile(void *state)
{
	work_and_stop(state);
}

static void
work_that_stops(void *state)
{
	((struct world *)state)->stops = true;
	work_and_stop(state);
}

/* --- the run ------------------------------------------------------------ */

#define MODEL(name_, setup_, check_, ...)                                           \
	{                                                                           \
		.name = name_, .state_size = sizeof(struct world), .setup = setup_, \
		.check = check_, .steps_max = 4000, __VA_ARGS__                     \
	}

enum {
	SLEEP,
	FREER,
	GIVE_UP,
	SHRINK,
	TWO_THREADS,
	LOOP,
	CANCEL,
	CANCEL_FREE,
	END,
	STOP,
	STOPPER,
};

static const struct explore_model models[] = {
	[SLEEP] = MODEL("a thread that goes to sleep misses no work", setup_staying, nothing,
	                .threads = 2, .preemptions = 2,
	                .thread = { call_twice_and_free, explore_started }),
	[FREER] = MODEL("a pool is there until its caller is out of it", setup, nothing,
	                .threads = 3, .preemptions = 1,
	                .thread = { call_and_go, free_soon, explore_started }),
	[GIVE_UP] = MODEL("a call gives up while a thread takes its work", setup, nothing,
	                  .threads = 2, .timeouts = true, .preemptions = 2,
	                  .thread = { give_up_and_free, explore_started }),
	[SHRINK] = MODEL("a thread whose time is up meets new work", setup, nothing, .threads = 2,
	                 .timeouts = true, .preemptions = 2,
	                 .thread = { call_twice_and_free, explore_started }),
	[TWO_THREADS] = MODEL("one of two threads is called, the other ends", setup_two, nothing,
	                      .threads = 3, .preemptions = 1,
	                      .thread = { call_and_free, explore_started, explore_started }),
	[LOOP] = MODEL("the callback of the last work frees the pool", setup_loop, nothing,
	               .threads = 2, .preemptions = 2,
	               .thread = { run_work_and_free, explore_started }),
	[CANCEL] = MODEL("a cancel meets a thread that takes the work", setup_loop, nothing,
	                 .threads = 2, .preemptions = 2,
	                 .thread = { cancel_work_and_free, explore_started }),
	[CANCEL_FREE] = MODEL("a cancel meets the result and who frees", setup_loop, nothing,
	                      .threads = 3, .preemptions = 1,
	                      .thread = { cancel_work, free_soon, explore_started }),
	[END] = MODEL("work that runs puts in more as its pool ends", setup_more, nothing,
	              .threads = 3, .preemptions = 1,
	              .thread = { end_soon, explore_started, explore_started }),
	[STOP] = MODEL("a stop meets work that posts to its loop", setup_kept_loop, nothing,
	               .threads = 2, .preemptions = 1,
	               .thread = { work_and_stop_meanwhile, explore_started }),
	[STOPPER] = MODEL("work stops its loop and posts to it", setup_kept_loop, nothing,
	                  .threads = 2, .preemptions = 1,
	                  .thread = { work_that_stops, explore_started }),
};

static const struct plant plants[] = {
	{ NO_RING, &models[SLEEP], 0, "takes a worker off the list and does not wake it" },
	{ NO_CALL, &models[SLEEP], 0, "queues work and calls nobody" },
	{ EARLY_SEARCH, &models[SLEEP], 0, "searches for an idle worker without the lock" },
	{ LATE_IDLE, &models[SLEEP], 0, "goes to sleep without a last check of the queue" },
	{ LATE_SLEEP, &models[SLEEP], 0, "ends its spin without checking whether it was called" },
	{ DEAF, &models[SHRINK], 0, "ends though it was called" },
	{ UNDEAD, &models[TWO_THREADS], 1, "takes work after it has retired" },
	{ NO_OWNER, &models[GIVE_UP], 0, "takes back what a thread has taken" },
	{ NO_LOCK, &models[GIVE_UP], 0, "takes back without the lock" },
	{ EARLY_LEAVE, &models[CANCEL_FREE], 0, "leaves the pool before it is notified" },
	{ LATE_START, &models[END], 0, "starts a thread though the pool ends" },
	{ NO_JOIN, &models[LOOP], 0, "gives the pool back while a thread ends" },
};

static const struct model_set pool_models = {
	.models = models,
	.plants = plants,
	.model_count = COUNT(models),
	.plant_count = COUNT(plants),
	.as_it_is = true,
	.once = true,
};

int
main(int argc, char **argv)
{
	static const struct model_set *const sets[] = { &pool_models };

	(void)argv;
	return models_run(sets, COUNT(sets), argc);
}
