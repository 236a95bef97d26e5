/* op_test.c - ops in general: how they start, wait, are canceled, and end exactly once.
 *
 * Every probe counts its results and checks what must hold at each one.  So a superfluous
 * result fails a test, and a missing one makes it hang or miss a count.  Ops on descriptors are
 * in op_fd_test.c.
 */
#include <sched.h>
#include "unit/probe.h"

static void
start_sleep(weft_loop *loop, struct probe *p, uint64_t deadline_ns)
{
	init(loop, p);
	OK(weft_op_sleep(&p->op, deadline_ns));
	CHECK(p->op.pending);
}

static void
begin(weft_loop *loop, struct probe *p, uint64_t deadline_ns)
{
	init(loop, p);
	OK(weft_op_begin(&p->op, on_cancel, p, deadline_ns));
	CHECK(p->op.pending);
}

/* --- sleeping ----------------------------------------------------------- */

TEST(a_sleep_finishes_with_0_once_and_not_before_its_deadline)
{
	weft_loop *loop = make();
	struct probe p = { .not_before_ns = weft_after(2 * WEFT_MS) };

	start_sleep(loop, &p, p.not_before_ns);
	CHECK_EQ(p.results, 0);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, 0);
	OK(weft_loop_run(loop));
	CHECK_EQ(p.results, 1);
	OK(weft_loop_free(loop));
}

TEST(sleeps_finish_in_order_of_deadline_then_of_start)
{
	weft_loop *loop = make();
	struct probe p[6] = { { .name = 'a' }, { .name = 'b' }, { .name = 'c' },
		              { .name = 'd' }, { .name = 'e' }, { .name = 'f' } };
	uint64_t now = weft_now();

	start_sleep(loop, &p[4], now + 2 * WEFT_MS);
	start_sleep(loop, &p[1], now - 20);
	start_sleep(loop, &p[3], now + WEFT_MS);
	start_sleep(loop, &p[2], now - 20);
	start_sleep(loop, &p[0], WEFT_NOWAIT);
	start_sleep(loop, &p[5], now + 2 * WEFT_MS);
	CHECK_STR(trace, "");
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "abcdef");
	OK(weft_loop_free(loop));
}

TEST(a_sleep_without_a_deadline_ends_when_it_is_canceled)
{
	weft_loop *loop = make();
	struct probe p = { 0 };

	start_sleep(loop, &p, WEFT_NEVER);
	CHECK_EQ(weft_loop_run_once(loop, weft_after(WEFT_MS)), 1);
	CHECK_EQ(p.results, 0);
	weft_op_cancel(&p.op);
	CHECK(p.op.pending); /* until its callback */
	CHECK_EQ(p.results, 0);
	CHECK_MISUSE(weft_op_sleep(&p.op, WEFT_NOWAIT), WEFT_EBUSY);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, WEFT_ECANCELED);
	OK(weft_loop_free(loop));
}

static int again_left;

static void
sleep_again(struct probe *p)
{
	if (again_left-- > 0)
		OK(weft_op_sleep(&p->op, WEFT_NOWAIT));
	else
		free(p);
}

TEST(an_op_may_be_restarted_or_freed_by_its_own_callback)
{
	weft_loop *loop = make();
	struct probe *p = calloc(1, sizeof(*p));

	again_left = 1000;
	p->act = sleep_again;
	start_sleep(loop, p, WEFT_NOWAIT);
	OK(weft_loop_run(loop));
	CHECK_EQ(again_left, -1);
	OK(weft_loop_free(loop));
}

TEST(each_of_many_ops_that_end_together_ends_once)
{
	enum { COUNT = 5000 };
	static struct probe probes[COUNT];
	weft_loop *loop = make();

	for (int i = 0; i < COUNT; i++)
		start_sleep(loop, &probes[i], WEFT_NEVER);
	for (int i = 0; i < COUNT; i++)
		weft_op_cancel(&probes[i].op);
	OK(weft_loop_run(loop));
	for (int i = 0; i < COUNT; i++)
		CHECK_ENDED(&probes[i], WEFT_ECANCELED);
	OK(weft_loop_free(loop));
}

/* --- custom ops --------------------------------------------------------- */

TEST(finish_queues_the_callback_and_does_not_call_it)
{
	weft_loop *loop = make();
	struct probe p = { 0 };

	begin(loop, &p, WEFT_NEVER);
	OK(weft_op_finish(&p.op, INT64_C(0x123456789abcdef)));
	CHECK_EQ(p.results, 0);
	CHECK(p.op.pending);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, INT64_C(0x123456789abcdef));
	CHECK_EQ(p.cancels, 0);
	OK(weft_loop_free(loop));
}

TEST(a_second_finish_is_refused_and_changes_nothing)
{
	weft_loop *loop = make();
	struct probe p = { 0 };

	for (int round = 0; round < 2; round++) {
		begin(loop, &p, weft_after(HOUR));
		OK(weft_op_finish(&p.op, 7));
		CHECK_EQ(weft_op_finish(&p.op, 8), WEFT_EALREADY);
		OK(weft_loop_run(loop));
		CHECK_EQ(p.result, 7);
		CHECK_EQ(p.ends, round + 1);
		CHECK_EQ(weft_op_finish(&p.op, 9), WEFT_EALREADY);
		OK(weft_loop_run(loop));
		CHECK_EQ(p.results, round + 1);
	}
	OK(weft_loop_free(loop));
}

static void
finish_other(struct probe *p)
{
	OK(weft_op_finish(&p->other->op, 5));
	CHECK_EQ(p->other->results, 0);
}

static void
finish_from_post(void *arg)
{
	OK(weft_op_finish(arg, 6));
}

TEST(a_callback_may_finish_another_op_that_ends_after_it)
{
	weft_loop *loop = make();
	struct probe b = { .name = 'b' }, c = { 0 };
	struct probe a = { .name = 'a', .act = finish_other, .other = &b };

	begin(loop, &b, WEFT_NEVER);
	start_sleep(loop, &a, WEFT_NOWAIT);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "ab");
	CHECK_ENDED(&b, 5);
	begin(loop, &c, WEFT_NEVER);
	OK(weft_loop_post(loop, finish_from_post, &c.op));
	OK(weft_loop_run(loop));
	CHECK_ENDED(&c, 6);
	OK(weft_loop_free(loop));
}

#define THREADS 3
#define OWN     2000

static struct probe own[OWN];
static weft__a32 slept;

static void *
finish_all(void *arg)
{
	weft_loop *loop = arg;
	int64_t won = 0;

	while (!weft__load(&slept, WEFT__RELAXED) && weft_loop_state(loop) != WEFT_SLEEPING)
		sched_yield(); /* so that the first finish has to wake the loop */
	weft__store(&slept, 1, WEFT__RELAXED);
	for (int i = 0; i < OWN; i++)
		won += weft_op_finish(&own[i].op, i) == 0;
	return (void *)(intptr_t)won;
}

TEST(only_one_of_many_threads_finishes_an_op_and_wakes_its_loop)
{
	weft_loop *loop = make();
	pthread_t threads[THREADS];
	int64_t won = 0;
	void *part;

	for (int i = 0; i < OWN; i++)
		begin(loop, &own[i], i % 2 ? weft_after(HOUR) : WEFT_NEVER);
	for (int i = 0; i < THREADS; i++)
		OK(pthread_create(&threads[i], NULL, finish_all, loop));
	while (weft_loop_run_once(loop, WEFT_NEVER) == 1)
		;
	for (int i = 0; i < THREADS; i++) {
		OK(pthread_join(threads[i], &part));
		won += (intptr_t)part;
	}
	CHECK_EQ(won, OWN);
	for (int i = 0; i < OWN; i++)
		CHECK_ENDED(&own[i], i);
	OK(weft_loop_free(loop));
}

#define FREED 30000

static weft__aptr mail; /* the op to finish next, or 0 */
static int freed;

static void *
finish_mail(void *arg)
{
	for (int left = FREED; left > 0;) {
		uintptr_t op = weft__exchange(&mail, 0, WEFT__ACQUIRE);

		if (!op)
			continue;
		OK(weft_op_finish((weft_op *)op, left--));
	}
	return arg;
}

/* Free the op at once, and let the other thread finish a new one. */
static void
free_and_go_on(weft_op *op, int64_t result, void *arg)
{
	CHECK_EQ(result, FREED - freed);
	free(op);
	if (++freed == FREED)
		return;
	op = malloc(sizeof(*op));
	OK(weft_op_init(op, NULL, free_and_go_on, arg));
	OK(weft_op_begin(op, on_cancel, NULL, WEFT_NEVER));
	weft__store(&mail, (uintptr_t)op, WEFT__RELEASE);
}

TEST(an_op_that_another_thread_finishes_may_be_freed_by_its_callback)
{
	weft_loop *loop = make();
	weft_op *op = malloc(sizeof(*op));
	pthread_t finisher;

	freed = 0;
	OK(weft_op_init(op, loop, free_and_go_on, NULL));
	OK(weft_op_begin(op, on_cancel, NULL, WEFT_NEVER));
	weft__store(&mail, (uintptr_t)op, WEFT__RELEASE);
	finisher = thread(finish_mail, NULL);
	OK(weft_loop_run(loop));
	CHECK_EQ(freed, FREED);
	OK(pthread_join(finisher, NULL));
	OK(weft_loop_free(loop));
}

#define TEXTS 300

static struct probe failed[THREADS * TEXTS];

static int
number_of(const struct probe *p)
{
	return (int)(p - failed);
}

static void *
fail_some(void *arg)
{
	struct probe *some = arg;

	for (struct probe *p = some; p < some + TEXTS; p++)
		OK(weft_op_finish(&p->op, weft_fail(WEFT_EPROTO, "%d", number_of(p))));
	return NULL;
}

static void
check_text(struct probe *p)
{
	char expected[32];

	(void)snprintf(expected, sizeof(expected), "%d", number_of(p));
	CHECK_STR(weft_detail(), expected);
}

TEST(an_error_text_travels_with_its_op_also_between_threads)
{
	weft_loop *loop = make();
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS * TEXTS; i++) {
		failed[i] = (struct probe){ .act = check_text };
		begin(loop, &failed[i], WEFT_NEVER);
	}
	(void)fail_some(failed); /* before the loop runs, and while it runs */
	for (int i = 1; i < THREADS; i++)
		threads[i] = thread(fail_some, &failed[i * TEXTS]);
	OK(weft_loop_run(loop));
	for (int i = 1; i < THREADS; i++)
		OK(pthread_join(threads[i], NULL));
	for (int i = 0; i < THREADS * TEXTS; i++)
		CHECK_ENDED(&failed[i], WEFT_EPROTO);
	OK(weft_loop_free(loop));
}

static void
check_last_words(struct probe *p)
{
	CHECK_STR(weft_detail(), p->name == 'o' ? "of this one" : "later");
	(void)weft_fail(WEFT_EINVAL, "later");
}

TEST(an_error_text_travels_once_and_only_with_its_own_error)
{
	weft_loop *loop = make();
	struct probe of = { .name = 'o', .act = check_last_words };
	struct probe same = { .name = 's', .act = check_last_words };
	struct probe other = { .name = 'x', .act = check_last_words };

	begin(loop, &of, WEFT_NEVER);
	begin(loop, &same, WEFT_NEVER);
	begin(loop, &other, WEFT_NEVER);
	(void)weft_fail(WEFT_EPROTO, "of this one");
	OK(weft_op_finish(&of.op, WEFT_EPROTO));
	OK(weft_op_finish(&same.op, WEFT_EPROTO));
	OK(weft_op_finish(&other.op, WEFT_EPIPE));
	OK(weft_loop_run(loop));
	CHECK_ENDED(&of, WEFT_EPROTO);
	CHECK_ENDED(&same, WEFT_EPROTO);
	CHECK_ENDED(&other, WEFT_EPIPE);
	OK(weft_loop_free(loop));
}

TEST(a_custom_op_may_finish_with_a_value_after_a_cancel_request)
{
	weft_loop *loop = make();
	struct probe p = { .lazy = true };

	begin(loop, &p, WEFT_NEVER);
	weft_op_cancel(&p.op);
	weft_op_cancel(&p.op);
	turn(loop);
	turn(loop);
	CHECK_EQ(p.cancels, 1);
	CHECK_EQ(p.why, WEFT_ECANCELED);
	CHECK_EQ(p.results, 0);
	CHECK(p.op.pending);
	weft_op_cancel(&p.op); /* a second cancel has no effect */
	turn(loop);
	CHECK_EQ(p.cancels, 1);
	OK(weft_op_finish(&p.op, 42));
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, 42);
	OK(weft_loop_free(loop));
}

TEST(a_custom_op_gets_one_cancel_request_at_its_deadline_and_not_before)
{
	weft_loop *loop = make();
	struct probe p = { .lazy = true, .not_before_ns = weft_after(WEFT_MS) };

	begin(loop, &p, p.not_before_ns);
	while (p.cancels == 0)
		(void)weft_loop_run_once(loop, p.not_before_ns);
	CHECK(weft_now() >= p.not_before_ns);
	CHECK_EQ(p.why, WEFT_ETIMEDOUT);
	weft_op_cancel(&p.op);
	turn(loop);
	CHECK_EQ(p.cancels, 1);
	OK(weft_op_finish(&p.op, p.why));
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, WEFT_ETIMEDOUT);
	OK(weft_loop_free(loop));
}

TEST(a_finished_op_gets_no_cancel_request_and_keeps_its_value)
{
	weft_loop *loop = make();
	struct probe p[3] = { { .name = 0 } };

	begin(loop, &p[0], WEFT_NEVER); /* finished, then canceled */
	OK(weft_op_finish(&p[0].op, 1));
	weft_op_cancel(&p[0].op);
	begin(loop, &p[1], WEFT_NOWAIT); /* finished, with a deadline that has passed */
	OK(weft_op_finish(&p[1].op, 2));
	begin(loop, &p[2], WEFT_NEVER); /* canceled, then finished */
	weft_op_cancel(&p[2].op);
	OK(weft_op_finish(&p[2].op, 3));
	OK(weft_loop_run(loop));
	for (int i = 0; i < 3; i++) {
		CHECK_ENDED(&p[i], i + 1);
		CHECK_EQ(p[i].cancels, 0);
	}
	OK(weft_loop_free(loop));
}

/* --- canceling ---------------------------------------------------------- */

static void
cancel_self(struct probe *p)
{
	weft_op_cancel(&p->op);
}

static void
cancel_other(struct probe *p)
{
	weft_op_cancel(&p->other->op);
}

TEST(canceling_an_op_that_is_not_pending_does_nothing)
{
	weft_loop *loop = make();
	struct probe p = { .act = cancel_self };

	init(loop, &p);
	weft_op_cancel(&p.op);
	turn(loop);
	CHECK_EQ(p.results, 0);
	start_sleep(loop, &p, WEFT_NOWAIT); /* and cancels itself when it has ended */
	OK(weft_loop_run(loop));
	weft_op_cancel(&p.op);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, 0);
	OK(weft_loop_free(loop));
}

TEST(an_op_canceled_by_the_callback_of_another_ends_once)
{
	weft_loop *loop = make();
	struct probe far = { .name = 'f' }, due = { .name = 'd' };
	struct probe a = { .name = 'a', .act = cancel_other, .other = &far };
	struct probe b = { .name = 'b', .act = cancel_other, .other = &due };

	start_sleep(loop, &far, weft_after(HOUR));
	start_sleep(loop, &a, WEFT_NOWAIT);
	start_sleep(loop, &b, WEFT_NOWAIT);
	start_sleep(loop, &due, WEFT_NOWAIT); /* ready in the same batch */
	OK(weft_loop_run(loop));
	CHECK_ENDED(&far, WEFT_ECANCELED);
	CHECK_EQ(due.ends, 1);
	CHECK(due.result == 0 || due.result == WEFT_ECANCELED);
	CHECK_EQ(a.ends + b.ends, 2);
	OK(weft_loop_free(loop));
}

/* --- keeping the loop alive --------------------------------------------- */

TEST(background_ops_do_not_keep_the_loop_alive_and_still_finish)
{
	weft_loop *loop = make();
	struct probe a = { 0 }, b = { 0 }, own_kind = { 0 };

	start_sleep(loop, &a, weft_after(HOUR));
	begin(loop, &own_kind, WEFT_NEVER);
	weft_op_set_background(&a.op, true);
	weft_op_set_background(&own_kind.op, true);
	weft_op_set_background(&own_kind.op, true);
	OK(weft_loop_run(loop));
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 0);
	init(loop, &b);
	weft_op_set_background(&b.op, true);
	weft_op_set_background(&b.op, false); /* allowed at any time */
	OK(weft_op_sleep(&b.op, WEFT_NOWAIT));
	OK(weft_loop_run(loop));
	CHECK_EQ(b.ends, 1);
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY); /* ops are still pending */
	weft_op_set_background(&a.op, false);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	weft_op_cancel(&a.op);
	weft_op_cancel(&own_kind.op);
	while (a.ends + own_kind.ends < 2)
		turn(loop);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 0);
	OK(weft_loop_free(loop));
}

static void
stop_loop(struct probe *p)
{
	struct probe late = { 0 };

	weft_loop_shutdown(p->op.loop);
	init(p->op.loop, &late);
	CHECK_EQ(weft_op_sleep(&late.op, WEFT_NOWAIT), WEFT_ESHUTDOWN);
	CHECK_EQ(weft_op_begin(&late.op, on_cancel, &late, WEFT_NEVER), WEFT_ESHUTDOWN);
}

TEST(a_loop_that_stops_ends_every_op_once)
{
	weft_loop *loop = make();
	struct probe s[4] = { { .name = 0 } }, o[4] = { { .name = 0 } };
	struct probe stopper = { .act = stop_loop };

	for (int i = 0; i < 4; i++) {
		start_sleep(loop, &s[i], i % 2 ? weft_after(HOUR) : WEFT_NEVER);
		begin(loop, &o[i], i % 2 ? weft_after(HOUR) : WEFT_NEVER);
	}
	weft_op_set_background(&s[3].op, true);
	weft_op_set_background(&o[3].op, true);
	weft_op_cancel(&s[2].op);
	weft_op_cancel(&o[2].op);
	OK(weft_op_finish(&o[1].op, 11));
	start_sleep(loop, &stopper, WEFT_NOWAIT);
	OK(weft_loop_run(loop));
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	for (int i = 0; i < 4; i++) {
		bool cancelled = i == 2;

		CHECK_ENDED(&s[i], cancelled ? WEFT_ECANCELED : WEFT_ESHUTDOWN);
		CHECK_EQ(o[i].ends, 1);
		CHECK_EQ(o[i].cancels, i != 1);
		CHECK_EQ(o[i].result, i == 1 ? 11 : o[i].why);
	}
	CHECK_EQ(o[0].why, WEFT_ESHUTDOWN);
	OK(weft_loop_free(loop));
}

static void *
finish_late(void *arg)
{
	struct probe *p = arg;

	while (weft_loop_state(p->op.loop) != WEFT_STOPPING)
		sched_yield();
	OK(weft_op_finish(&p->op, 12));
	return NULL;
}

TEST(a_stopping_loop_waits_for_an_op_that_another_thread_finishes_late)
{
	weft_loop *loop = make();
	struct probe p = { .lazy = true };
	pthread_t thread;

	begin(loop, &p, WEFT_NEVER);
	OK(weft_loop_start(loop));
	OK(pthread_create(&thread, NULL, finish_late, &p));
	weft_loop_shutdown(loop);
	OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
	OK(pthread_join(thread, NULL));
	CHECK_ENDED(&p, 12);
	OK(weft_loop_free(loop));
}

TEST(an_idle_loop_with_ops_ends_them_when_it_is_stopped_and_run)
{
	weft_loop *loop = make();
	struct probe s = { 0 }, o = { 0 };

	start_sleep(loop, &s, weft_after(HOUR));
	begin(loop, &o, WEFT_NEVER);
	weft_loop_shutdown(loop);
	if (weft_loop_state(loop) != WEFT_STOPPED)
		OK(weft_loop_run(loop));
	CHECK_ENDED(&s, WEFT_ESHUTDOWN);
	CHECK_ENDED(&o, WEFT_ESHUTDOWN);
	OK(weft_loop_free(loop));
}

/* --- misuse ------------------------------------------------------------- */

static void *
start_elsewhere(void *arg)
{
	struct probe *p = arg;

	CHECK_MISUSE(weft_op_sleep(&p->op, WEFT_NOWAIT), WEFT_EWRONGLOOP);
	CHECK_MISUSE(weft_op_begin(&p->op, on_cancel, p, WEFT_NOWAIT), WEFT_EWRONGLOOP);
	return NULL;
}

static void
start_on_thread(struct probe *p)
{
	pthread_t thread;

	OK(pthread_create(&thread, NULL, start_elsewhere, p->other));
	OK(pthread_join(thread, NULL));
}

TEST(starting_or_finishing_an_op_with_invalid_arguments_is_misuse)
{
	weft_loop *loop = make();
	struct probe p = { 0 }, raw = { 0 };
	struct probe host = { .act = start_on_thread, .other = &p };

	CHECK_MISUSE(weft_op_init(NULL, loop, on_done, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_op_init(&p.op, NULL, on_done, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_op_sleep(NULL, WEFT_NOWAIT), WEFT_EINVAL);
	CHECK_MISUSE(weft_op_sleep(&raw.op, WEFT_NOWAIT), WEFT_EINVAL);
	init(loop, &p);
	CHECK_MISUSE(weft_op_begin(&p.op, NULL, NULL, WEFT_NOWAIT), WEFT_EINVAL);
	CHECK_MISUSE(weft_op_finish(NULL, 0), WEFT_EINVAL);
	start_sleep(loop, &host, WEFT_NOWAIT);
	OK(weft_loop_run(loop));
	CHECK_EQ(p.results, 0);
	OK(weft_op_sleep(&p.op, WEFT_NOWAIT));
	CHECK_MISUSE(weft_op_begin(&p.op, on_cancel, &p, WEFT_NOWAIT), WEFT_EBUSY);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, 0);
	OK(weft_loop_free(loop));
}
