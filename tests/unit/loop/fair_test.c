/* fair_test.c - how long a ready source waits on a loop that others flood.
 *
 * The bound: a ready source waits no longer than one loop iteration in which every budget is
 * used up, and a descriptor no longer than the poll interval.  Sources of each kind flood the
 * loop, alone and all together, so the loop always has work.  At random moments one more source
 * becomes ready.  The tests measure its wait in callbacks and in iterations (a callback that
 * runs last in each iteration counts them), so the speed of the machine does not matter.  The
 * build sets the number of trials (TRIALS): fewer under sanitizers.
 */
#include <weft/embed.h>
#include "unit/probe.h"

#define BUDGET     1024 /* callbacks of one kind per iteration */
#define POLL_TURNS 61   /* iterations of a busy loop between two polls */
#define EVENTS     256  /* descriptors reported by one poll */
#define WIDEST     3000
#define PAIRS      300
#define WARM_TURNS 16 /* iterations until all that was set up on the idle loop has arrived */

enum source { POST, TIMER, IMMEDIATE, WATCH, FLOODS, OP = FLOODS, SOURCES };

static const char *const names[SOURCES] = {
	"post", "timer", "immediate", "watch", "op",
};

struct flooder {
	enum source kind;
	weft_timer timer;
	struct watcher watcher;
	struct pair pair;
};

/* The source that waits among the others. */
struct quiet {
	enum source kind;
	bool waits;
	int64_t delay; /* callbacks until it becomes ready */
	int64_t turn, call;
	int64_t turns_max, calls_max;
	int left; /* trials */
	weft_timer timer;
	struct watcher watcher;
	struct probe op;
	struct pair pair;
};

static struct flooder floods[FLOODS][WIDEST];
static struct quiet quiet;
static weft_loop *loop;
static weft_node last;
static int64_t turn_count, call_count;
static uint64_t seed;
static bool over;

/* --- the waiting source ------------------------------------------------- */

static void
be_run(void *arg)
{
	int64_t turns_taken = turn_count - quiet.turn;
	int64_t calls_taken = call_count - quiet.call;

	(void)arg;
	if (over)
		return;
	CHECK(quiet.waits);
	quiet.waits = false;
	quiet.delay = (int64_t)(test_random(&seed) % WIDEST);
	if (turns_taken > quiet.turns_max)
		quiet.turns_max = turns_taken;
	if (calls_taken > quiet.calls_max)
		quiet.calls_max = calls_taken;
	if (--quiet.left == 0) {
		over = true;
		weft_loop_break(loop);
	}
}

static void
be_fired(weft_timer *timer, void *arg)
{
	(void)timer;
	be_run(arg);
}

static void
note_call(struct watcher *w)
{
	if (w->ends)
		return;
	take(w->fd);
	be_run(NULL);
}

static void
be_done(struct probe *p)
{
	if (p->result < 0)
		return;
	be_run(NULL);
	OK(try_start(p, RECV, p->fd, WEFT_NEVER));
}

static void
become_ready(void)
{
	quiet.waits = true;
	quiet.turn = turn_count;
	quiet.call = call_count;
	if (quiet.kind == POST)
		OK(weft_loop_post(loop, be_run, NULL));
	else if (quiet.kind == TIMER)
		OK(weft_timer_start(loop, &quiet.timer, weft_loop_now(loop), 0, be_fired, NULL));
	else if (quiet.kind == IMMEDIATE)
		CHECK(weft_schedule_immediate(loop, be_run, NULL) > 0);
	else
		put(quiet.pair.peer, "x");
}

/* --- the flood ---------------------------------------------------------- */

/* Every callback of the flood calls this.  Returns true while the flood continues. */
static bool
is_called(void)
{
	call_count++;
	if (!over && !quiet.waits && turn_count >= WARM_TURNS && quiet.delay-- <= 0)
		become_ready();
	return !over;
}

static void
post_again(void *arg)
{
	if (is_called())
		OK(weft_loop_post(loop, post_again, arg));
}

static void
set_again(void *arg)
{
	if (is_called())
		CHECK(weft_schedule_immediate(loop, set_again, arg) > 0);
}

static void
arm_again(weft_timer *timer, void *arg)
{
	if (is_called())
		OK(weft_timer_start(loop, timer, WEFT_NOWAIT, 0, arm_again, arg));
}

static void
stay_ready(struct watcher *w)
{
	(void)w;
	(void)is_called();
}

static void
count_turn(void *arg)
{
	turn_count++;
	if (!over)
		OK(weft_loop_post_before_wait(loop, arg));
}

static int
width_of(enum source kind, int width)
{
	return kind == WATCH && width > PAIRS ? PAIRS : width;
}

static void
flood(enum source kind, int width)
{
	for (int i = 0; i < width_of(kind, width); i++) {
		struct flooder *f = &floods[kind][i];

		*f = (struct flooder){ .kind = kind };
		if (kind == POST)
			OK(weft_loop_post(loop, post_again, f));
		if (kind == IMMEDIATE)
			CHECK(weft_schedule_immediate(loop, set_again, f) > 0);
		if (kind == TIMER)
			OK(weft_timer_start(loop, &f->timer, WEFT_NOWAIT, 0, arm_again, f));
		if (kind == WATCH) {
			f->pair = make_pair();
			f->watcher.act = stay_ready;
			put(f->pair.peer, "x");
			watch(loop, &f->watcher, f->pair.fd, WEFT_READABLE);
		}
	}
}

/* --- measuring ---------------------------------------------------------- */

static int64_t
times(int64_t all, int64_t each)
{
	return (all + each - 1) / each;
}

/* Within how many iterations `kind` must run, among `width` others of each kind in the set
 * `kinds`.  Others of its own kind run first if they were ready first. */
static int64_t
bound_of(enum source kind, int kinds, int width)
{
	bool among = kind < FLOODS && (kinds & 1 << kind);
	int64_t all = 1 + (among ? width_of(kind, width) : 0);

	switch (kind) {
	case TIMER: /* first the timers due when the last batch was collected, then these */
		return all <= BUDGET ? 1 : 2 * times(all, BUDGET);
	case POST:
	case IMMEDIATE:
		return times(all, BUDGET) + (all > BUDGET);
	default: /* each poll reports only a part of a flood of descriptors */
		all = 1 + (kinds & 1 << WATCH ? width_of(WATCH, width) : 0);
		return (times(all, EVENTS) + (all > EVENTS)) * POLL_TURNS + 1;
	}
}

static void
begin_quiet(enum source kind)
{
	quiet = (struct quiet){ .kind = kind, .left = TRIALS };
	quiet.pair = make_pair();
	quiet.watcher.act = note_call;
	quiet.op.act = be_done;
	if (kind == WATCH)
		watch(loop, &quiet.watcher, quiet.pair.fd, WEFT_READABLE);
	if (kind == OP)
		start(loop, &quiet.op, RECV, quiet.pair.fd);
}

/* Returns the longest wait of `kind`, in iterations. */
static int64_t
measure(enum source kind, int kinds, int width)
{
	int64_t bound = bound_of(kind, kinds, width), per_turn = 1;

	over = false;
	turn_count = call_count = 0;
	loop = make();
	begin_quiet(kind);
	for (int i = 0; i < FLOODS; i++)
		if (kinds & 1 << i) {
			flood((enum source)i, width);
			per_turn += width < BUDGET ? width : BUDGET;
		}
	last = (weft_node){ .fn = count_turn, .arg = &last };
	OK(weft_loop_post_before_wait(loop, &last));
	OK(weft_loop_run(loop));
	if (quiet.turns_max > bound || quiet.calls_max > (bound + 1) * per_turn)
		printf("%s, flood %#x of %d: %lld turns, %lld callbacks\n", names[kind],
		       (unsigned)kinds, width, (long long)quiet.turns_max,
		       (long long)quiet.calls_max);
	CHECK(quiet.turns_max <= bound);
	CHECK(quiet.calls_max <= (bound + 1) * per_turn);
	stop_idle(loop);
	close_pair(quiet.pair);
	for (int i = 0; (kinds & 1 << WATCH) && i < width_of(WATCH, width); i++)
		close_pair(floods[WATCH][i].pair);
	return quiet.turns_max;
}

/* Measure every kind among a flood of each kind, and of all kinds together. */
static void
measure_all(int width)
{
	for (int kind = 0; kind < SOURCES; kind++) {
		int64_t worst = 0, bound = 0;

		for (int set = 0; set <= FLOODS; set++) {
			int kinds = set < FLOODS ? 1 << set : (1 << FLOODS) - 1;
			int64_t most = measure((enum source)kind, kinds, width);
			int64_t allowed = bound_of((enum source)kind, kinds, width);

			worst = most > worst ? most : worst;
			bound = allowed > bound ? allowed : bound;
		}
		printf("flood of %4d: %-10s waits %3lld turns, bound %lld\n", width, names[kind],
		       (long long)worst, (long long)bound);
	}
}

TEST(a_light_steady_load_delays_no_source_beyond_the_bound)
{
	seed = test_seed();
	measure_all(1);
}

TEST(a_flood_within_the_budgets_delays_no_source_beyond_the_bound)
{
	seed = test_seed();
	measure_all(200);
}

TEST(a_flood_beyond_the_budgets_delays_only_its_own_kind_longer)
{
	seed = test_seed();
	measure_all(WIDEST);
}
