/* late_run.c - runs a case of the table of waiting calls, under the test's clock. */
#include "base/sys.h"
#include "late/late.h"

static const struct weft__sys *real_sys;
static struct weft__sys late_sys;
static uint64_t ahead_ns; /* offset to the real clock; read by any thread */

static uint64_t
late_now(void)
{
	return real_sys->now() + __atomic_load_n(&ahead_ns, __ATOMIC_RELAXED);
}

/* The kernel sleeps by the real clock. */
static int
late_park(weft__a32 *word, uint32_t value, uint64_t deadline_ns)
{
	uint64_t ahead = __atomic_load_n(&ahead_ns, __ATOMIC_RELAXED);

	if (deadline_ns != WEFT_NEVER)
		deadline_ns = deadline_ns > ahead ? deadline_ns - ahead : 0;
	return real_sys->park(word, value, deadline_ns);
}

/* Move the clock past the common deadline. */
static void
pass_deadline(const struct stage *stage)
{
	uint64_t now_ns = weft_now(), then_ns = stage->deadline_ns + 10 * WEFT_MS;

	CHECK(now_ns < stage->deadline_ns);
	__atomic_add_fetch(&ahead_ns, then_ns - now_ns, __ATOMIC_RELAXED);
}

void
late_on_thread(void *(*fn)(void *arg), void *arg)
{
	OK(pthread_join(thread(fn, arg), NULL));
}

static int
run_waiter(void *arg)
{
	struct waiter *w = arg;
	struct stage *stage = w->stage;
	const struct row *row = stage->row;

	if (row->prepare)
		row->prepare(w);
	stage->prepared++;
	OK(weft_event_wait(&stage->go, WEFT_NEVER));
	w->result = row->call_it(w, stage->deadline_ns);
	if (row->finish)
		row->finish(w);
	if (++stage->ended == stage->count)
		OK(weft_event_set(&stage->all_ended));
	return 0;
}

static void
wait_a_little(struct stage *stage)
{
	if (stage->row->pump)
		stage->row->pump(stage);
	OK(weft_sleep_until(weft_after(50 * WEFT_US)));
}

static void
start_waiters(struct stage *stage)
{
	for (uint32_t i = 0; i < stage->count; i++) {
		struct waiter *w = &stage->waiters[i];

		w->stage = stage;
		w->fd = w->peer = -1;
		w->id = weft_go(run_waiter, w);
		CHECK(w->id > 0);
	}
	while (stage->prepared < stage->count)
		wait_a_little(stage);
	for (uint32_t i = 0; stage->row->seize && i < stage->count; i++)
		stage->row->seize(&stage->waiters[i]);
	OK(weft_event_set(&stage->go));
	OK(weft_yield()); /* each waiter has run when this returns */
}

static void
wait_for_waiters(struct stage *stage)
{
	for (uint32_t i = 0; stage->row->is_waiting && i < stage->count; i++)
		while (!stage->row->is_waiting(&stage->waiters[i]))
			wait_a_little(stage);
	for (int i = 0; i < 20 && !stage->row->at_once; i++)
		OK(weft_yield());
}

static void
feed(struct stage *stage)
{
	for (uint32_t i = 0; stage->row->feed && i < stage->count; i++)
		stage->row->feed(&stage->waiters[i]);
	if (stage->row->feed_all)
		stage->row->feed_all(stage);
}

static bool
check_results(const struct stage *stage)
{
	uint32_t late = 0, wrong = 0;
	int64_t last = 0;

	for (uint32_t i = 0; i < stage->count; i++) {
		int64_t result = stage->waiters[i].result;

		late += result == WEFT_ETIMEDOUT;
		wrong += result < 0 && result != WEFT_ETIMEDOUT;
		if (result < 0 && result != WEFT_ETIMEDOUT)
			last = result;
	}
	if (late == (stage->fed ? 0 : stage->count) && wrong == 0)
		return true;
	printf("%s, %u waiters, %s, %s: %u timed out, %u failed (%s)\n", stage->row->call,
	       stage->count, stage->fed ? "fed" : "not fed", stage->busy ? "busy" : "idle", late,
	       wrong, weft_errname((int)last));
	return false;
}

/* While this runs, the loop handles nothing else. */
static void
hold(void *arg)
{
	struct stage *stage = arg;

	if (stage->fed)
		feed(stage);
	pass_deadline(stage);
	OK(weft_event_set(&stage->held));
}

/* The director threadlet. */
static int
direct(void *arg)
{
	struct stage *stage = arg;

	if (stage->row->open)
		stage->row->open(stage);
	stage->deadline_ns = weft_after(HOUR);
	start_waiters(stage);
	wait_for_waiters(stage);
	if (stage->row->at_once || stage->row->by_director)
		hold(stage);
	else
		CHECK(weft_schedule_immediate(stage->loop, hold, stage) > 0);
	OK(weft_event_wait(&stage->held, WEFT_NEVER));
	while (stage->busy && stage->ended < stage->count)
		OK(weft_yield());
	OK(weft_event_wait(&stage->all_ended, WEFT_NEVER));
	if (stage->row->close)
		stage->row->close(stage);
	return 0;
}

static void
begin_time(void)
{
	if (weft__sys != &late_sys) /* otherwise a failed test has left it installed */
		real_sys = weft__sys;
	late_sys = *real_sys;
	late_sys.now = late_now;
	late_sys.park = late_park;
	weft__sys = &late_sys;
}

bool
late_run(const struct row *row, uint32_t count, bool fed, bool busy)
{
	bool good;
	struct stage stage = { .row = row, .count = count, .fed = fed, .busy = busy, .fd = -1 };

	begin_time();
	stage.waiters = calloc(count, sizeof(*stage.waiters));
	CHECK(stage.waiters != NULL);
	stage.loop = make();
	(void)go_on(stage.loop, direct, &stage);
	OK(weft_loop_run(stage.loop));
	good = check_results(&stage);
	OK(weft_loop_free(stage.loop));
	free(stage.waiters);
	weft__sys = real_sys;
	return good;
}
