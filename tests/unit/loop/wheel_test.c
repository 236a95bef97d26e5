/* wheel_test.c - the timer wheel on its own, with an explicit clock.
 *
 * Examples check the rules, and so does a model: an array of armed timers that is searched for
 * the next one in order of (deadline, start).  The model is also run on wheels with a planted
 * bug and must detect each bug.
 */
#include "test.h"
#include "timer/sort.h"

struct probe {
	weft_timer timer;
	weft_wheel *wheel;
	int fired;
	int order;
	void (*act)(struct probe *probe);
	struct probe *other;
};

static int order;

static void
on_fire(weft_timer *timer, void *arg)
{
	struct probe *p = arg;

	CHECK(timer == &p->timer);
	p->fired++;
	p->order = ++order;
	if (p->act)
		p->act(p);
}

static void
start(weft_wheel *wheel, struct probe *p, uint64_t due, uint64_t every)
{
	p->wheel = wheel;
	CHECK_EQ(weft_wheel_start(wheel, &p->timer, due, every, on_fire, p), 0);
}

TEST(a_timer_fires_once_at_its_deadline_and_not_before)
{
	weft_wheel *wheel = weft_wheel_new(1000);
	struct probe p = { 0 };

	start(wheel, &p, 5000000, 0);
	CHECK_EQ(weft_wheel_next(wheel), 5000000);
	CHECK_EQ(weft_wheel_count(wheel), 1);
	CHECK_EQ(weft_wheel_advance(wheel, 4999999), 0);
	CHECK_EQ(weft_wheel_advance(wheel, 5000000), 1);
	CHECK_EQ(p.fired, 1);
	CHECK_EQ(weft_wheel_advance(wheel, 6000000), 0);
	CHECK_EQ(weft_wheel_count(wheel), 0);
	CHECK(weft_wheel_next(wheel) == WEFT_NEVER);
	weft_wheel_free(wheel);
}

TEST(timers_fire_in_order_of_deadline_then_of_start)
{
	weft_wheel *wheel = weft_wheel_new(0);
	struct probe p[5] = { 0 };

	order = 0;
	start(wheel, &p[0], 700, 0);
	start(wheel, &p[1], 300, 0);
	start(wheel, &p[2], 700, 0);
	start(wheel, &p[3], 90000000, 0);
	start(wheel, &p[4], 300, 0);
	CHECK_EQ(weft_wheel_advance(wheel, WEFT_S), 5);
	CHECK_EQ(p[1].order, 1);
	CHECK_EQ(p[4].order, 2);
	CHECK_EQ(p[0].order, 3);
	CHECK_EQ(p[2].order, 4);
	CHECK_EQ(p[3].order, 5);
	weft_wheel_free(wheel);
}

TEST(stopping_the_only_timer_leaves_nothing_to_wait_for)
{
	weft_wheel *wheel = weft_wheel_new(0);
	struct probe p = { 0 };

	start(wheel, &p, 1000, 0);
	CHECK_EQ(weft_wheel_stop(wheel, &p.timer), 1);
	CHECK_EQ(weft_wheel_stop(wheel, &p.timer), 0);
	CHECK(weft_wheel_next(wheel) == WEFT_NEVER);
	CHECK_EQ(weft_wheel_advance(wheel, 2000), 0);
	CHECK_EQ(p.fired, 0);
	weft_wheel_free(wheel);
}

TEST(starting_an_armed_timer_moves_it)
{
	weft_wheel *wheel = weft_wheel_new(0);
	struct probe p = { 0 };

	start(wheel, &p, 1000, 0);
	start(wheel, &p, 9000, 0);
	CHECK_EQ(weft_wheel_count(wheel), 1);
	CHECK_EQ(weft_wheel_advance(wheel, 8999), 0);
	start(wheel, &p, 9001, 0);
	CHECK_EQ(weft_wheel_advance(wheel, 9001), 1);
	weft_wheel_free(wheel);
}

static void
start_again_now(struct probe *p)
{
	start(p->wheel, p, 0, 0);
}

TEST(a_timer_started_by_a_callback_fires_at_a_later_advance)
{
	weft_wheel *wheel = weft_wheel_new(0);
	struct probe p = { .act = start_again_now }, old = { 0 };

	start(wheel, &p, 5, 0);
	start(wheel, &old, 10, 0);
	CHECK_EQ(weft_wheel_advance(wheel, 10), 2); /* `old` is not delayed */
	CHECK_EQ(weft_wheel_advance(wheel, 10), 1);
	CHECK_EQ(weft_wheel_advance(wheel, 11), 1);
	CHECK_EQ(p.fired, 3);
	weft_wheel_free(wheel);
}

static void
stop_other(struct probe *p)
{
	CHECK_EQ(weft_wheel_stop(p->wheel, &p->other->timer), 1);
}

TEST(a_timer_stopped_by_an_earlier_one_of_the_same_advance_does_not_fire)
{
	weft_wheel *wheel = weft_wheel_new(0);
	struct probe a = { .act = stop_other }, b = { 0 }, c = { 0 };

	a.other = &b;
	start(wheel, &a, 100, 0);
	start(wheel, &b, 100, 0);
	start(wheel, &c, 100, 0);
	CHECK_EQ(weft_wheel_advance(wheel, 100), 2);
	CHECK_EQ(b.fired, 0);
	CHECK_EQ(c.fired, 1);
	weft_wheel_free(wheel);
}

static void
move_other(struct probe *p)
{
	start(p->wheel, p->other, 200, 0);
}

TEST(a_due_timer_moved_by_an_earlier_one_fires_only_at_its_new_time)
{
	weft_wheel *wheel = weft_wheel_new(0);
	struct probe a = { .act = move_other }, b = { 0 };

	a.other = &b;
	start(wheel, &a, 100, 0);
	start(wheel, &b, 100, 0);
	CHECK_EQ(weft_wheel_advance(wheel, 150), 1);
	CHECK_EQ(weft_wheel_next(wheel), 200);
	CHECK_EQ(weft_wheel_advance(wheel, 200), 1);
	CHECK_EQ(b.fired, 1);
	weft_wheel_free(wheel);
}

TEST(a_repeating_timer_keeps_its_grid_however_late_it_runs)
{
	weft_wheel *wheel = weft_wheel_new(0);
	struct probe p = { 0 };

	start(wheel, &p, 1000, 1000);
	CHECK_EQ(weft_wheel_advance(wheel, 1900), 1);
	CHECK_EQ(weft_wheel_next(wheel), 2000);
	CHECK_EQ(weft_wheel_advance(wheel, 5500), 1); /* 3000 to 5000 are missed */
	CHECK_EQ(weft_wheel_next(wheel), 6000);
	CHECK_EQ(p.timer.due_ns, 6000);
	CHECK_EQ(weft_wheel_stop(wheel, &p.timer), 1);
	weft_wheel_free(wheel);
}

static void
stop_self(struct probe *p)
{
	CHECK_EQ(weft_wheel_stop(p->wheel, &p->timer), 1);
}

TEST(a_repeating_timer_may_stop_itself)
{
	weft_wheel *wheel = weft_wheel_new(0);
	struct probe p = { .act = stop_self };

	start(wheel, &p, 1000, 1000);
	CHECK_EQ(weft_wheel_advance(wheel, 9000), 1);
	CHECK_EQ(weft_wheel_count(wheel), 0);
	weft_wheel_free(wheel);
}

static void
free_self(weft_timer *timer, void *arg)
{
	(void)arg;
	memset(timer, 0xff, sizeof(*timer));
	free(timer);
}

TEST(a_one_shot_timer_may_free_itself)
{
	weft_wheel *wheel = weft_wheel_new(0);

	for (int i = 0; i < 100; i++) {
		weft_timer *timer = calloc(1, sizeof(*timer));

		CHECK_EQ(weft_wheel_start(wheel, timer, 10, 0, free_self, NULL), 0);
	}
	CHECK_EQ(weft_wheel_advance(wheel, 10), 100);
	weft_wheel_free(wheel);
}

static void
free_wheel(struct probe *p)
{
	weft_wheel_free(p->wheel);
}

TEST(a_callback_may_free_the_wheel_which_stops_all_armed_timers)
{
	weft_wheel *wheel = weft_wheel_new(0);
	struct probe a = { .act = free_wheel }, b = { 0 }, c = { 0 };

	start(wheel, &a, 10, 5);
	start(wheel, &b, 11, 0);
	start(wheel, &c, WEFT_S, 0);
	CHECK_EQ(weft_wheel_advance(wheel, 20), 1);
	CHECK_EQ(b.fired + c.fired, 0);
	CHECK(!a.timer.block && !b.timer.block && !c.timer.block);
}

TEST(deadlines_near_the_largest_time_work)
{
	weft_wheel *wheel = weft_wheel_new(0);
	struct probe last = { 0 }, before = { 0 };

	start(wheel, &last, WEFT_NEVER - 1, WEFT_S);
	start(wheel, &before, WEFT_NEVER - 2, 0);
	CHECK(weft_wheel_next(wheel) == WEFT_NEVER - 2);
	CHECK_EQ(weft_wheel_advance(wheel, WEFT_NEVER - 3), 0);
	CHECK_EQ(weft_wheel_advance(wheel, WEFT_NEVER - 2), 1);
	CHECK_EQ(weft_wheel_advance(wheel, WEFT_NEVER - 1), 1);
	CHECK_EQ(weft_wheel_advance(wheel, WEFT_NEVER), 1); /* its last deadline again */
	CHECK_EQ(last.fired, 2);
	weft_wheel_free(wheel);
}

TEST(a_jump_of_a_day_fires_all_due_timers_in_order)
{
	enum { N = 2000 };
	static struct probe p[N];
	weft_wheel *wheel = weft_wheel_new(123456789);
	uint64_t day = 86400 * WEFT_S;

	order = 0;
	memset(p, 0, sizeof(p));
	for (int i = 0; i < N; i++)
		start(wheel, &p[i], 123456789 + day * (uint64_t)(N - i) / N, 0);
	CHECK_EQ(weft_wheel_advance(wheel, 123456789 + day), N);
	for (int i = 0; i < N; i++)
		CHECK_EQ(p[i].order, N - i);
	weft_wheel_free(wheel);
}

TEST(many_timers_of_one_deadline_fire_in_the_order_they_were_started)
{
	enum { N = 100000 };
	struct probe *p = calloc(N, sizeof(*p));
	weft_wheel *wheel = weft_wheel_new(0);

	order = 0;
	for (int i = 0; i < N; i++)
		start(wheel, &p[i], 30 * WEFT_S, 0);
	for (int i = 0; i < N; i += 3) /* moves entries around */
		CHECK_EQ(weft_wheel_stop(wheel, &p[i].timer), 1);
	CHECK_EQ(weft_wheel_advance(wheel, 30 * WEFT_S), N - (N + 2) / 3);
	for (int i = 0, want = 0; i < N; i++)
		CHECK_EQ(p[i].order, i % 3 ? ++want : 0);
	weft_wheel_free(wheel);
	free(p);
}

static void
advance_inside(struct probe *p)
{
	CHECK_MISUSE(weft_wheel_advance(p->wheel, 3000), WEFT_EBUSY);
}

TEST(invalid_arguments_are_refused)
{
	weft_wheel *wheel = weft_wheel_new(1000), *other = weft_wheel_new(0);
	struct probe p = { .act = advance_inside };
	weft_timer t = WEFT_INIT;

	CHECK_MISUSE(weft_wheel_start(NULL, &t, 5, 0, on_fire, &p), WEFT_EINVAL);
	CHECK_MISUSE(weft_wheel_start(wheel, NULL, 5, 0, on_fire, &p), WEFT_EINVAL);
	CHECK_MISUSE(weft_wheel_start(wheel, &t, 5, 0, NULL, &p), WEFT_EINVAL);
	CHECK_MISUSE(weft_wheel_start(wheel, &t, WEFT_NEVER, 0, on_fire, &p), WEFT_EINVAL);
	CHECK_MISUSE(weft_wheel_advance(wheel, 999), WEFT_EINVAL);
	CHECK_MISUSE(weft_wheel_advance(NULL, 999), WEFT_EINVAL);
	start(wheel, &p, 2000, 0);
	CHECK_MISUSE(weft_wheel_start(other, &p.timer, 5, 0, on_fire, &p), WEFT_EINVAL);
	CHECK_EQ(weft_wheel_stop(other, &p.timer), 0);
	CHECK_EQ(weft_wheel_stop(NULL, NULL), 0);
	CHECK_EQ(weft_wheel_advance(wheel, 2000), 1);
	CHECK(weft_wheel_next(NULL) == WEFT_NEVER);
	CHECK_EQ(weft_wheel_count(NULL), 0);
	weft_wheel_free(NULL);
	weft_wheel_free(other);
	weft_wheel_free(wheel);
}

/* --- the model ---------------------------------------------------------- */

enum { TIMERS = 64 };

enum bug {
	NO_BUG,
	EARLY,      /* the wheel gets a later time than the model */
	LOST_STOP,  /* some stops do not reach the wheel */
	LIFO_TIES,  /* the model expects equal deadlines in reverse order */
	WRONG_MOVE, /* a restarted timer is off by 1 ns */
	BUGS,
};

struct model {
	weft_wheel *wheel;
	uint64_t seed, now, seq;
	enum bug bug;
	const char *wrong; /* what the model found, or NULL */
	struct {
		weft_timer timer;
		uint64_t due, every, seq; /* due WEFT_NEVER: not armed */
		bool fresh;               /* armed during this advance */
	} t[TIMERS];
	struct model *self;
};

static int
model_next(const struct model *m, uint64_t now)
{
	int best = -1;

	for (int i = 0; i < TIMERS; i++) {
		if (m->t[i].due > now || m->t[i].fresh || m->t[i].due == WEFT_NEVER)
			continue;
		if (best < 0 || m->t[i].due < m->t[best].due
		    || (m->t[i].due == m->t[best].due && m->t[i].seq < m->t[best].seq))
			best = i;
	}
	return best;
}

static void model_fire(weft_timer *timer, void *arg);

/* A mix of near, distant, equal and past deadlines. */
static uint64_t
random_due(struct model *m)
{
	uint64_t r = test_random(&m->seed);
	uint64_t range = UINT64_C(1) << r % 45;

	if (r % 16 == 0)
		return m->now / 2;
	if (r % 4 == 0)
		return (m->now | 0xfff) + 1; /* shared by many */
	return m->now + (r >> 8) % range;
}

static void
model_start(struct model *m, int i, bool fresh)
{
	uint64_t due = random_due(m);
	uint64_t every = test_random(&m->seed) % 4 ? 0 : 1 + due % 100000;
	uint64_t given = due + (m->bug == WRONG_MOVE && m->t[i].due != WEFT_NEVER);

	if (weft_wheel_start(m->wheel, &m->t[i].timer, given, every, model_fire, m))
		m->wrong = "start failed";
	m->t[i].due = due;
	m->t[i].every = every;
	m->t[i].seq = m->bug == LIFO_TIES ? ~m->seq++ : m->seq++;
	m->t[i].fresh = fresh;
}

static void
model_stop(struct model *m, int i)
{
	bool armed = m->t[i].due != WEFT_NEVER;

	m->t[i].due = WEFT_NEVER;
	if (m->bug == LOST_STOP && test_random(&m->seed) % 8 == 0)
		return;
	if (weft_wheel_stop(m->wheel, &m->t[i].timer) != armed)
		m->wrong = "stop tells wrongly whether it was armed";
}

static void
model_fire(weft_timer *timer, void *arg)
{
	struct model *m = arg;
	int i = (int)(((char *)timer - (char *)m->t) / (long)sizeof(m->t[0]));

	if (m->wrong)
		return;
	if (m->t[i].due == WEFT_NEVER)
		m->wrong = "a stopped timer fired";
	else if (m->t[i].due > m->now)
		m->wrong = "a timer fired early";
	else if (model_next(m, m->now) != i)
		m->wrong = "a timer fired out of order";
	if (m->t[i].every) {
		uint64_t late = (m->now - m->t[i].due) / m->t[i].every;

		m->t[i].due += (late + 1) * m->t[i].every;
		m->t[i].seq = m->bug == LIFO_TIES ? ~m->seq++ : m->seq++;
		m->t[i].fresh = true;
	} else {
		m->t[i].due = WEFT_NEVER;
	}
	switch (test_random(&m->seed) % 8) { /* callbacks start and stop timers, too */
	case 0:
		model_start(m, i, true);
		break;
	case 1:
		model_start(m, (int)(test_random(&m->seed) % TIMERS), true);
		break;
	case 2:
		model_stop(m, (int)(test_random(&m->seed) % TIMERS));
		break;
	default:
		break;
	}
}

static void
model_advance(struct model *m)
{
	uint64_t r = test_random(&m->seed);
	uint64_t step = (r >> 8) % (UINT64_C(1) << r % 40);

	m->now += r % 1000 == 0 ? 86400 * WEFT_S : step;
	if (weft_wheel_advance(m->wheel, m->now + (m->bug == EARLY ? 3 : 0)) < 0)
		m->wrong = "advance failed";
	if (!m->wrong && model_next(m, m->now) >= 0)
		m->wrong = "a due timer did not fire";
	for (int i = 0; i < TIMERS; i++)
		m->t[i].fresh = false;
}

static void
model_check(struct model *m)
{
	uint64_t first = WEFT_NEVER;
	size_t count = 0;

	for (int i = 0; i < TIMERS; i++) {
		count += m->t[i].due != WEFT_NEVER;
		if (m->t[i].due < first)
			first = m->t[i].due;
	}
	if (m->wrong)
		return;
	if (weft_wheel_count(m->wheel) != count)
		m->wrong = "the count is wrong";
	else if (weft_wheel_next(m->wheel) != first)
		m->wrong = "the next deadline is wrong";
}

/* What the model finds wrong in `steps` random operations, or NULL. */
static const char *
run_model(uint64_t seed, enum bug bug, int steps)
{
	static struct model m;
	uint64_t start = seed % 3 ? seed % WEFT_S : seed;

	memset(&m, 0, sizeof(m));
	m.seed = seed;
	m.bug = bug;
	m.now = start >> 1;
	m.wheel = weft_wheel_new(m.now);
	for (int i = 0; i < TIMERS; i++)
		m.t[i].due = WEFT_NEVER;
	for (int step = 0; step < steps && !m.wrong; step++) {
		int i = (int)(test_random(&m.seed) % TIMERS);

		switch (test_random(&m.seed) % 8) {
		case 0:
		case 1:
		case 2:
		case 3:
			model_start(&m, i, false);
			break;
		case 4:
			model_stop(&m, i);
			break;
		default:
			model_advance(&m);
			break;
		}
		if (!m.wrong)
			model_check(&m);
	}
	weft_wheel_free(m.wheel);
	return m.wrong;
}

TEST(random_operations_behave_like_a_sorted_array)
{
	uint64_t seed = test_seed();

	for (uint64_t i = 0; i < 300; i++) {
		const char *wrong = run_model(seed + i, NO_BUG, 2000);

		if (wrong)
			test_fail(__FILE__, __LINE__, "%s: WEFT_SEED=%llu", wrong,
			          (unsigned long long)(seed + i));
	}
}

TEST(the_model_detects_every_planted_bug)
{
	for (enum bug bug = NO_BUG + 1; bug < BUGS; bug++) {
		uint64_t seed = 1;

		while (seed < 50 && !run_model(seed, bug, 2000))
			seed++;
		CHECK(seed < 50);
	}
}

/* --- the sort ----------------------------------------------------------- */

/* Orders that are hard for a quicksort with median of three. */
static uint64_t
key_of(int shape, size_t i, size_t count, uint64_t *seed)
{
	switch (shape) {
	case 0:
		return i;
	case 1:
		return count - i;
	case 2: /* organ pipe order */
		return i < count / 2 ? i : count - i;
	case 3: /* the median-of-three killer order */
		return i % 2 ? i : count / 2 + i / 2;
	case 4:
		return 7;
	default:
		return test_random(seed) % count;
	}
}

TEST(any_order_of_deadlines_is_sorted)
{
	enum { N = 20000 };
	struct weft__wheel_item *e = calloc(N, sizeof(*e));
	uint64_t seed = test_seed();

	for (int shape = 0; shape < 6; shape++) {
		for (size_t i = 0; i < N; i++)
			e[i] = (struct weft__wheel_item){ .due_ns = key_of(shape, i, N, &seed),
				                          .seq = i };
		weft__wheel_sort(e, N);
		for (size_t i = 1; i < N; i++)
			CHECK(e[i - 1].due_ns < e[i].due_ns
			      || (e[i - 1].due_ns == e[i].due_ns && e[i - 1].seq < e[i].seq));
	}
	free(e);
}
