/* promise_scenarios.c - promises under faults: every chained handler runs, every value is
 * dropped.
 *
 *   1. Each chained handler is called exactly once, even without memory for its job.  The
 *      handlers of one promise are called in the order in which they were chained.
 *   2. Settling cannot fail, and each promise settles, with an error at worst.
 *   3. Each value is dropped exactly once.
 */
#include "fault.h"
#include "scenarios.h"

enum { STARS = 80, LINKS = 3, LATE = LINKS - 1, NEXT = 10, ODDS = 12 };

struct play;

/* A promise and the handlers chained to it. */
struct star {
	struct play *play;
	weft_promise *promise;
	int last; /* number of the handler that was called last */
	struct link {
		struct star *star;
		int number;
	} links[LINKS];
};

struct play {
	struct world world;
	struct star stars[STARS];
	weft_promise *odds[ODDS]; /* promises of all other kinds */
	int odd_count;
	int left;   /* handlers that were chained and not called */
	int values; /* values that were not dropped */
};

/* --- values --------------------------------------------------------------- */

static void
drop_value(void *ptr)
{
	struct play *play = ptr;

	EXPECT(play->values > 0);
	play->values--;
}

static void
share_value(void *ptr)
{
	struct play *play = ptr;

	play->values++;
}

static int
settle_at_once(void *ptr, weft_promise *into)
{
	(void)ptr;
	EXPECT(weft_promise_resolve(into, weft_value_integer(1)) == 0);
	return 0;
}

static const weft_type type_counted = { .name = "counted",
	                                .drop = drop_value,
	                                .share = share_value };
static const weft_type type_thenable = { .name = "thenable",
	                                 .drop = drop_value,
	                                 .then = settle_at_once };

static weft_value
value_of(struct play *play, const weft_type *type)
{
	play->values++;
	return weft_value_ptr(type, play);
}

/* --- stars: so many handlers at once that the job queue must grow ----------- */

static void chain(struct star *star, int number);

static int
on_link(const weft_value *in, weft_value *out, void *arg)
{
	struct link *link = arg;
	struct star *star = link->star;
	struct play *play = star->play;
	long which = star - play->stars;

	EXPECT(in != NULL);
	EXPECT(link->number > star->last);
	star->last = link->number;
	play->left--;
	*out = value_of(play, &type_counted);
	if (link->number == 0) /* its promise is settled by now */
		chain(&play->stars[(which + NEXT) % STARS], LATE);
	return 0;
}

static void
chain(struct star *star, int number)
{
	struct link *link = &star->links[number];
	weft_promise *next;

	*link = (struct link){ star, number };
	if (!star->promise)
		return;
	star->play->left++;
	next = weft_promise_then(weft_promise_ref(star->promise), on_link, on_link, link);
	EXPECT(next || fault_hits() > 0);
	if (!next)
		star->play->left--;
	(void)weft_promise_unref(next);
}

static void
make_stars(struct play *play)
{
	for (int i = 0; i < STARS; i++) {
		struct star *star = &play->stars[i];

		*star = (struct star){ .play = play, .last = -1 };
		star->promise = weft_promise_new(play->world.loop);
		EXPECT(star->promise || fault_hits() > 0);
		for (int k = 0; k < LATE; k++)
			chain(star, k);
	}
	for (int i = 0; i < STARS; i++)
		if (play->stars[i].promise)
			EXPECT(weft_promise_resolve(play->stars[i].promise,
			                            value_of(play, &type_counted))
			       == 0);
}

/* --- odds: every other way to create a promise ------------------------------ */

static void
keep(struct play *play, weft_promise *promise)
{
	EXPECT(promise || fault_hits() > 0);
	if (promise)
		play->odds[play->odd_count++] = promise;
}

static int
make_value(const weft_value *in, weft_value *out, void *arg)
{
	EXPECT(!in);
	*out = value_of(arg, &type_counted);
	return 0;
}

static int
sleep_first(const weft_value *in, weft_value *out, void *arg)
{
	int rc = weft_sleep_until(weft_after(WEFT_US));

	EXPECT(rc == 0 || fault_hits() > 0);
	return rc < 0 ? rc : make_value(in, out, arg);
}

static int
fail_after_all(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	(void)out;
	(void)arg;
	return weft_fail(WEFT_EPROTO, "after all");
}

/* Resolved with a thenable, and with another promise. */
static void
settle_odds(struct play *play)
{
	weft_promise *one = weft_promise_new(play->world.loop);
	weft_promise *two = weft_promise_new(play->world.loop);

	if (one)
		EXPECT(weft_promise_resolve(one, value_of(play, &type_thenable)) == 0
		       || fault_hits() > 0);
	if (one && two)
		EXPECT(weft_promise_resolve(two, weft_value_promise(weft_promise_ref(one))) == 0);
	else if (two)
		EXPECT(weft_promise_reject(two, weft_value_text("odd")) == 0);
	keep(play, one);
	keep(play, weft_promise_then(two, fail_after_all, fail_after_all, NULL));
}

static void
sleep_by_op(struct play *play)
{
	weft_op *op;
	weft_promise *promise = weft_promise_new_op(play->world.loop, &op);
	int rc = promise ? weft_op_sleep(op, weft_after(WEFT_US)) : 0;

	EXPECT(rc == 0 || fault_hits() > 0);
	if (rc < 0) { /* nothing else would settle it */
		EXPECT(weft_promise_reject(promise, weft_value_error(rc)) == 0);
	}
	keep(play, promise);
}

static void
combine_odds(struct play *play)
{
	static weft_promise *(*const combine[])(weft_promise *const *, size_t) = {
		weft_promise_all, weft_promise_all_settled, weft_promise_any, weft_promise_race
	};
	size_t count = (size_t)play->odd_count;

	for (int i = 0; count > 0 && i < 4; i++) {
		for (size_t k = 0; k < count; k++)
			(void)weft_promise_ref(play->odds[k]);
		keep(play, combine[i](play->odds, count));
	}
}

static void
make_odds(struct play *play)
{
	play->odd_count = 0;
	settle_odds(play);
	keep(play, weft_promise_go(play->world.loop, sleep_first, play));
	sleep_by_op(play);
	combine_odds(play);
}

/* --- the run -------------------------------------------------------------- */

static void
make_all(void *arg)
{
	struct play *play = arg;

	make_stars(play);
	make_odds(play);
	play->world.left--;
}

/* A threadlet awaits each of them. */
static int
await_all(void *arg)
{
	struct play *play = arg;

	for (int i = 0; i < play->odd_count; i++)
		EXPECT(weft_await(play->odds[i], NULL, soon()) != WEFT_ETIMEDOUT);
	play->world.left--;
	return 0;
}

static int
pending_of(struct play *play)
{
	int count = 0;

	for (int i = 0; i < play->odd_count; i++)
		count += weft_promise_state(play->odds[i], NULL) == WEFT_PENDING;
	return count;
}

/* If the threadlet could not be started, run the loop until all of them have settled. */
static void
settle_all(struct play *play)
{
	uint64_t deadline_ns = weft_after(50 * WAIT_NS);

	for (int steps = 0; pending_of(play) > 0 && (steps < STEPS_MIN || weft_now() < deadline_ns);
	     steps++)
		(void)weft_loop_run_once(play->world.loop, weft_after(WEFT_MS));
	EXPECT(pending_of(play) == 0);
}

static void
let_go(struct play *play)
{
	for (int i = 0; i < STARS; i++)
		(void)weft_promise_unref(play->stars[i].promise);
	for (int i = 0; i < play->odd_count; i++)
		(void)weft_promise_unref(play->odds[i]);
}

/* `inside`: the promises are created in a callback; otherwise while the loop does not run. */
static void
run_play(struct play *play, bool inside)
{
	play->world.left = 1;
	play->odd_count = 0;
	for (int i = 0; i < STARS; i++)
		play->stars[i].promise = NULL;
	if (!inside)
		make_all(play);
	else if (weft_loop_post(play->world.loop, make_all, play) < 0)
		play->world.left = 0;
	await_zero(&play->world, &play->world.left);
	play->world.left += start_on(&play->world, await_all, play);
	await_zero(&play->world, &play->world.left);
	await_zero(&play->world, &play->left);
	settle_all(play);
	let_go(play);
	turn(play->world.loop);
	EXPECT(play->values == 0);
}

void
run_promise(const char *backend)
{
	struct play play = { 0 };

	if (!make_world(&play.world, backend, 0))
		return;
	run_play(&play, true);
	run_play(&play, false);
	if (fault_hits() > 0) {
		fault_heal();
		run_play(&play, true);
	}
	end_world(&play.world);
}
