/* stolen_scenarios.c - descriptors that are closed without the library's knowledge.
 *
 * Ops and watches wait on the ends of socket pairs.  Occasionally an end is closed by close(2)
 * while they wait; its number is reused by another pair at once, on which other waiters start.
 *
 *   1. A waiter gets events of the file that it was started on, never of the next one with the
 *      same number.
 *   2. A new waiter is refused only if there is a waiter for the same file.
 *   3. Once a new waiter has started on a number, the waiters of the number's former file end,
 *      with WEFT_EBADF.
 */
#include <string.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/scenarios.h"

enum { PAIRS = 3, WAITERS = 12, THEFTS = 60 };

/* A socket pair.  Every byte sent through it is its tag. */
struct two {
	int ends[2];
	unsigned char tag;
};

struct waiter {
	weft_op op;
	weft_watch watch;
	struct once once;
	enum { IDLE, POLLS, RECEIVES, WATCHES } what;
	int at;            /* index of its pair */
	unsigned char tag; /* of its file */
	unsigned char buf[8];
};

static struct {
	struct host host;
	struct two pairs[PAIRS];
	struct waiter waiters[WAITERS];
	weft_timer timer;
	unsigned char tags;
	int left;
	bool ending;
	weft__a32 done;
} thief;

static bool
is_stale(const struct waiter *w)
{
	return w->tag != thief.pairs[w->at].tag;
}

static void
check_tags(const struct waiter *w, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		owner_check(w->tag, w->buf[i]);
}

/* --- waiters ---------------------------------------------------------- */

static void
end_waiter(struct waiter *w, int64_t result)
{
	if (is_stale(w) && result != WEFT_EBADF && !thief.ending)
		sim_fail("a waiter of a closed file has result %lld", (long long)result);
	if (!is_stale(w))
		sim_check(result != WEFT_EBADF);
	once_end(&w->once);
	w->what = IDLE;
}

static void
on_waiter_done(weft_op *op, int64_t result, void *arg)
{
	struct waiter *w = arg;

	sim_check(op == &w->op && !op->more);
	if (result != WEFT_EBADF)
		result_check(w->what == POLLS ? OP_POLL : OP_RECV, result, sizeof(w->buf));
	if (w->what == RECEIVES)
		check_tags(w, result);
	end_waiter(w, result);
}

static void
on_waiter_ready(weft_watch *watch, int what, void *arg)
{
	struct waiter *w = arg;
	int64_t rc;

	sim_check(watch == &w->watch && w->what == WATCHES);
	if (what < 0) {
		end_waiter(w, what);
		return;
	}
	if (is_stale(w))
		sim_fail("a watch of a closed file hears of another");
	rc = weft__sys->recv(thief.pairs[w->at].ends[0], w->buf, sizeof(w->buf), 0);
	check_tags(w, rc);
}

static int
start_waiter(struct waiter *w, int fd)
{
	switch (w->what) {
	case POLLS:
		return weft_op_poll(&w->op, fd, WEFT_READABLE, WEFT_NEVER);
	case RECEIVES:
		return weft_op_recv(&w->op, fd, w->buf, sizeof(w->buf), 0, WEFT_NEVER);
	default:
		return weft_watch_start(NULL, &w->watch, fd, WEFT_READABLE, on_waiter_ready, w);
	}
}

static bool
has_live_waiter(int at)
{
	for (int i = 0; i < WAITERS; i++) {
		const struct waiter *w = &thief.waiters[i];

		if (w->what != IDLE && w->at == at && !is_stale(w))
			return true;
	}
	return false;
}

/* The first waiter also opens the backend, for which any call may fail. */
static void
check_refused(int rc, int at)
{
	if (rc == WEFT_EBUSY && !has_live_waiter(at) && !sim_has_failed(SIM_ERRNO))
		sim_fail("refused where only waiters of a closed file are");
	sim_check(rc == WEFT_EBUSY || sim_has_failed(SIM_ERRNO) || sim_has_failed(SIM_ALLOC));
}

static void
wait_somewhere(int at)
{
	struct waiter *w = thief.waiters;
	int rc;

	while (w < thief.waiters + WAITERS && w->what != IDLE)
		w++;
	if (w == thief.waiters + WAITERS)
		return;
	w->what = POLLS + (int)sim_random_below(3);
	rc = start_waiter(w, thief.pairs[at].ends[0]);
	if (rc < 0) {
		w->what = IDLE;
		check_refused(rc, at);
		return;
	}
	w->at = at;
	w->tag = thief.pairs[at].tag;
	once_begin(&w->once);
}

/* --- thefts ----------------------------------------------------------- */

/* Gets the lowest free numbers, which were just closed. */
static void
open_two(struct two *two)
{
	while (sim_socketpair(two->ends) < 0)
		continue;
	two->tag = ++thief.tags;
}

static void
steal(struct two *two)
{
	(void)weft__sys->close(two->ends[0]);
	(void)weft__sys->close(two->ends[1]);
	open_two(two);
	if (--thief.left == 0) {
		(void)weft_timer_stop(&thief.timer);
		count_up(&thief.done);
	}
}

static void
on_thief_timer(weft_timer *timer, void *arg)
{
	int at = (int)sim_random_below(PAIRS);
	struct two *two = &thief.pairs[at];
	unsigned char tags[3] = { two->tag, two->tag, two->tag };

	(void)timer, (void)arg;
	switch (sim_random_below(4)) {
	case 0:
		steal(two);
		break;
	case 1:
		(void)weft__sys->send(two->ends[1], tags, sizeof(tags), 0);
		break;
	default:
		wait_somewhere(at);
		break;
	}
}

static void
begin_thief(void *arg)
{
	(void)arg;
	for (int i = 0; i < PAIRS; i++)
		open_two(&thief.pairs[i]);
	for (int i = 0; i < WAITERS; i++)
		sim_check(
			weft_op_init(&thief.waiters[i].op, NULL, on_waiter_done, &thief.waiters[i])
			== 0);
	while (weft_timer_start(NULL, &thief.timer, weft_after(WEFT_US),
	                        1 + sim_random_below(10 * WEFT_US), on_thief_timer, NULL)
	       == WEFT_ENOMEM)
		continue;
}

/* Start a waiter on each number.  It is refused only if its file already has one. */
static void
begin_newcomers(void *arg)
{
	(void)arg;
	for (int i = 0; i < PAIRS; i++)
		wait_somewhere(i);
}

static void
check_newcomers(void *arg)
{
	(void)arg;
	for (int i = 0; i < WAITERS; i++) {
		const struct waiter *w = &thief.waiters[i];

		if (w->what != IDLE && is_stale(w) && has_live_waiter(w->at))
			sim_fail("waits on a closed file although its number is in use");
	}
	thief.ending = true; /* the remaining waiters end with the loop */
}

static void
run_stolen(void *arg)
{
	(void)arg;
	memset(&thief, 0, sizeof(thief));
	thief.left = THEFTS;
	host_make(&thief.host);
	host_run(&thief.host);
	host_call(&thief.host, begin_thief, NULL);
	pause_ns(sim_random_below(20 * WEFT_MS));
	sim_heal();
	await_count(&thief.done, 1);
	host_call(&thief.host, begin_newcomers, NULL);
	pause_ns(WEFT_MS);
	host_call(&thief.host, check_newcomers, NULL);
	host_end(&thief.host);
	for (int i = 0; i < WAITERS; i++)
		once_check(&thief.waiters[i].once);
	for (int i = 0; i < PAIRS; i++) {
		(void)weft__sys->close(thief.pairs[i].ends[0]);
		(void)weft__sys->close(thief.pairs[i].ends[1]);
	}
}

const struct sim_scenario sim_scenario_stolen = { .name = "fd_stolen", .run = run_stolen };
