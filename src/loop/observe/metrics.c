/* metrics.c - reading what a loop has counted and sampled, from any thread.
 *
 * The loop continues meanwhile.  Counters are read one by one, each untorn and never less than
 * at the last reading by the same thread.  The window is read as sampler.c describes.
 */
#include <weft/metrics.h>
#include "base/text.h"
#include "loop/core/loop.h"

/* Sums and maxima over the window. */
struct window {
	uint64_t turns, calls;
	uint64_t inbox_max, internal_max, tasks_max;
};

static uint64_t
greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Whether a slice with this mark is in a window of `count` slices that ends with slice `last`. */
static bool
is_inside(uint64_t mark, uint64_t last, unsigned count)
{
	return mark != 0 && mark - 1 <= last && last - (mark - 1) < count;
}

/* The slice was not reused since its mark was read. */
static bool
is_same(weft__slice_mark *at, uint64_t mark)
{
	return weft__add(at, 0, WEFT__RELEASE) == mark; /* A */
}

/* Add up a histogram, which is at `offset` in each slice; false if a slice was reused meanwhile. */
static bool
add_times(struct weft__sampler *sampler, uint64_t last, size_t offset,
          struct weft__histogram_sum *out)
{
	__builtin_memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i <= WEFT__TIMES; i++) {
		struct weft__times *times = &sampler->all_times[i];
		uint64_t mark = weft__load(&times->mark, WEFT__ACQUIRE); /* S */

		if (!is_inside(mark, last, WEFT__TIMES))
			continue;
		weft__histogram_sum(
			(const weft_histogram *)(const void *)((const char *)times + offset), out);
		if (!is_same(&times->mark, mark))
			return false;
	}
	return true;
}

static void
read_times(struct weft__sampler *sampler, size_t offset, struct weft__histogram_sum *out)
{
	while (!add_times(sampler, weft__sys->now() / WEFT__TIMES_NS, offset, out))
		;
}

/* The same for the counts and depths. */
static bool
add_rates(struct weft__sampler *sampler, uint64_t last, struct window *out)
{
	*out = (struct window){ 0 };
	for (unsigned i = 0; i <= WEFT__RATES; i++) {
		struct weft__rates *rates = &sampler->all_rates[i];
		uint64_t mark = weft__load(&rates->mark, WEFT__ACQUIRE); /* S */

		if (!is_inside(mark, last, WEFT__RATES))
			continue;
		out->turns += weft__count_get(&rates->turns);
		out->calls += weft__count_get(&rates->calls);
		out->inbox_max = greater(out->inbox_max, weft__count_get(&rates->inbox_max));
		out->internal_max = greater(out->internal_max,
		                            weft__count_get(&rates->internal_max));
		out->tasks_max = greater(out->tasks_max, weft__count_get(&rates->tasks_max));
		if (!is_same(&rates->mark, mark))
			return false;
	}
	return true;
}

/* Fill `out`; returns the end of the window. */
static uint64_t
read_rates(struct weft__sampler *sampler, struct window *out)
{
	uint64_t now_ns;

	do {
		now_ns = weft__sys->now();
	} while (!add_rates(sampler, now_ns / WEFT__RATES_NS, out));
	return now_ns;
}

/* Events per second.  A new loop's window is only as long as the loop has been sampled. */
static double
rate_of(const struct weft__sampler *sampler, uint64_t count, uint64_t now_ns)
{
	uint64_t last = now_ns / WEFT__RATES_NS;
	uint64_t begin_ns = last < WEFT__RATES ? 0 : (last - (WEFT__RATES - 1)) * WEFT__RATES_NS;

	begin_ns = greater(begin_ns, weft__count_get(&sampler->born_ns));
	return now_ns > begin_ns ? (double)count * (double)WEFT_S / (double)(now_ns - begin_ns) : 0;
}

static weft_depth
depth_of(const struct weft__gauge *gauge, uint64_t now, uint64_t max)
{
	return (weft_depth){
		.now = now,
		.max = greater(now, max),
		.average = (double)weft__count_get(&gauge->average) / 65536,
	};
}

static void
read_sampler(struct weft__sampler *sampler, uint64_t queued, uint64_t internal,
             struct weft_loop_stats *out)
{
	struct weft__histogram_sum sum;
	struct window window;
	uint64_t now_ns = read_rates(sampler, &window);

	out->turns_per_s = rate_of(sampler, window.turns, now_ns);
	out->callbacks_per_s = rate_of(sampler, window.calls, now_ns);
	read_times(sampler, offsetof(struct weft__times, turn), &sum);
	out->turn = weft__histogram_quantiles(&sum);
	read_times(sampler, offsetof(struct weft__times, lag), &sum);
	out->lag = weft__histogram_quantiles(&sum);
	out->inbox = depth_of(&sampler->inbox, queued, window.inbox_max);
	out->internal = depth_of(&sampler->internal, internal, window.internal_max);
	out->microtasks = depth_of(&sampler->tasks, weft__count_get(&sampler->tasks.now),
	                           window.tasks_max);
	for (int i = 0; i < WEFT_PHASES; i++)
		out->phase_ns[i] = weft__count_get(&sampler->phase_ns[i]);
}

static void
read_backend(const struct weft__backend_counters *counters, struct weft_loop_stats *out)
{
	const char *name = (const char *)weft__load(&counters->name, WEFT__ACQUIRE); /* B */

	out->backend = name ? name : "";
	out->backend_reason = name ? (const char *)weft__load(&counters->reason, WEFT__ACQUIRE)
	                           : "not opened yet";
	out->syscalls = weft__count_get(&counters->syscalls);
	out->fds = weft__count_get(&counters->fds);
}

static void
read_counts(const weft_loop *loop, struct weft_loop_stats *out)
{
	const struct weft__counts *counts = &loop->counts;

	out->turns = weft__count_get(&counts->turns);
	out->wakes = weft__count_get(&loop->inbox.wakes_owed);
	out->polls_skipped = weft__count_get(&counts->polls_skipped);
	out->posts_refused = weft__load(&counts->refused, WEFT__RELAXED);
	out->ops_finished = weft__count_get(&counts->ops_finished);
	out->ops_started = weft__count_get(&counts->ops_started);
	out->timers_fired = weft__count_get(&counts->timers_fired);
	out->accepted = weft__count_get(&counts->accepted);
	out->accepts_paused = weft__count_get(&counts->accepts_paused);
	out->accepts_shed = weft__count_get(&counts->accepts_shed);
	out->connected = weft__count_get(&counts->connected);
	out->connects_failed = weft__count_get(&counts->connects_failed);
	out->handshakes = weft__count_get(&counts->handshakes);
	out->handshakes_failed = weft__count_get(&counts->handshakes_failed);
	out->peers_dropped = weft__count_get(&counts->peers_dropped);
	out->alive = weft__loop_alive(loop);
	if (out->alive > INT64_MAX) /* its parts were read at different times */
		out->alive = 0;
}

static void
read_loop(weft_loop *loop, struct weft_loop_stats *out)
{
	const struct weft__counts *counts = &loop->counts;
	struct weft__sampler *sampler = (struct weft__sampler *)weft__load(
		&loop->sampling, WEFT__ACQUIRE); /* K, in observe.c */
	uint64_t run, taken;

	run = weft__count_get(&counts->calls[WEFT_PHASE_INBOX]);
	taken = weft__count_get(&counts->taken);
	if (run > taken) /* read in another order than written */
		run = taken;
	*out = (struct weft_loop_stats){ .posts_accepted = taken, .posts_executed = run };
	read_counts(loop, out);
	read_backend(&loop->backend_counters, out);
	if (sampler)
		read_sampler(sampler, taken - run + weft__producers_depth(&loop->inbox),
		             weft__count_get(&counts->internal), out);
}

int
weft_loop_stats(weft_loop *loop, struct weft_loop_stats *out)
{
	loop = weft__loop_or_current(loop);
	if (!loop || !out)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_loop_stats: there is no loop, or out is NULL");
	if (weft__loop_is_forked(loop))
		return weft__misuse(WEFT_EWRONGLOOP,
		                    "weft_loop_stats: the loop was made by a parent process");
	read_loop(loop, out);
	return 0;
}

static void
copy_text(char *out, size_t room, const char *text)
{
	struct weft__text copy = weft__text_begin(out, room);

	weft__text_add(&copy, text);
}

int
weft_loop_list(uint64_t *cursor, weft_loop_info *out)
{
	weft_loop *loop;

	if (!cursor || !out)
		return weft__misuse(WEFT_EINVAL, "weft_loop_list: cursor or out is NULL");
	loop = weft__registry_next(cursor);
	if (!loop)
		return 0;
	*out = (weft_loop_info){
		.id = *cursor,
		.state = (weft_state)weft__load(&loop->state, WEFT__RELAXED),
		.threadlets = weft__count_get(&loop->threadlets),
	};
	copy_text(out->name, sizeof(out->name), loop->name);
	read_loop(loop, &out->stats);
	copy_text(out->backend, sizeof(out->backend), out->stats.backend);
	copy_text(out->backend_reason, sizeof(out->backend_reason), out->stats.backend_reason);
	out->stats.backend = out->stats.backend_reason = NULL;
	weft__loop_exit(loop);
	return 1;
}
