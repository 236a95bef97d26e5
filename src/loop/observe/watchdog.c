/* watchdog.c - a thread that detects blocked loops.
 *
 * A loop counts its iterations, and in each the threadlet switches that are left; both with
 * plain stores, which it makes anyway.  The watchdog reads the two counts now and then.  If neither
 * has changed for the loop's limit, while the loop runs and does not sleep, then a callback or a
 * threadlet blocks the loop.  Only the loop's thread knows which one, so the watchdog sends that
 * thread a signal: the handler records the running threadlet and its stack frames.
 *
 *   1. There is one such thread in the process while there are loops to watch: it is started
 *      with the first and ended with the last, under the lock.
 *   2. The thread visits every loop that it checks (registry.c), so no loop is freed meanwhile.
 *   3. There is one answer: free, requested, being written, or complete (enum below).  One
 *      thread at a time requests it, under `request_lock`.  The signal handler on the thread
 *      that runs the loop claims the right to write it (W); a handler that comes too late finds
 *      that no request is pending.
 *   4. A blocked loop is reported once, and not again before the loop has continued.
 */
#include "base/os.h"
#include "loop/core/loop.h"
#include "base/switch/frames.h"

#define PERIOD_MIN (WEFT_MS / 2)
#define ANSWER_NS  (100 * WEFT_MS)
#define TEXT_BYTES 4096

enum { FREE, REQUESTED, WRITING, THERE };

static struct {
	struct weft__lock lock;
	uint32_t loops;
	uint64_t thread;
	weft__a32 wake_word; /* futex word where the thread parks; odd: it must end */
	bool catches;        /* the signal handler is installed; never undone */
} dog;

static struct {
	struct weft__lock request_lock;
	weft__a32 state;
	weft_loop *loop;
	struct weft__holder holder;
} answer;

/* --- on the loop's thread ----------------------------------------------- */

static void
write_down(const struct weft__moment *moment)
{
	weft_loop *loop = answer.loop;
	struct weft__holder *holder = &answer.holder;
	struct weft__frame frame = {
		.pc = moment->pc, .fp = moment->fp, .low = moment->sp, .high = loop->stack_end
	};

	*holder = (struct weft__holder){ 0 };
	if (weft__loop_sched(loop))
		weft__loop_sched(loop)->describe_holder(loop, holder);
	if (holder->id)
		frame.high = holder->high;
	if (moment->sp < holder->low || moment->sp > frame.high)
		frame.high = frame.low = NULL; /* in the middle of a switch between two stacks */
	(void)weft__frames_walk(frame, holder->frames, 16);
}

static bool
on_thread_signal(const struct weft__moment *moment)
{
	uint32_t expected = REQUESTED;

	if (weft__load(&answer.state, WEFT__ACQUIRE) != REQUESTED
	    || weft__load(&answer.loop->runner, WEFT__RELAXED) != (uintptr_t)weft__thread_here()
	    || !weft__cas(&answer.state, &expected, WRITING, WEFT__ACQ_REL)) /* W */
		return false;
	write_down(moment);
	weft__store(&answer.state, THERE, WEFT__RELEASE);
	weft__sys->unpark(&answer.state);
	return true;
}

void
weft__watchdog_begin(weft_loop *loop)
{
	weft__store(&loop->signals_to, weft__os_allow_thread_signal(), WEFT__RELEASE);
}

void
weft__watchdog_end(weft_loop *loop)
{
	weft__store(&loop->signals_to, 0, WEFT__RELEASE);
}

/* --- on the requesting thread ------------------------------------------- */

/* The caller holds the lock `request_lock`.  True if the answer is complete. */
static bool
request_locked(weft_loop *loop)
{
	uint64_t until_ns = weft_after(ANSWER_NS);
	uint32_t state = REQUESTED;
	int rc;

	answer.loop = loop;
	weft__store(&answer.state, REQUESTED, WEFT__RELEASE);
	rc = weft__os_signal_thread(&loop->signals_to);
	while (rc == 0 && state != THERE && weft__sys->now() < until_ns) {
		(void)weft__sys->park(&answer.state, state, until_ns);
		state = weft__load(&answer.state, WEFT__ACQUIRE);
	}
	state = REQUESTED;
	if (weft__cas(&answer.state, &state, FREE, WEFT__ACQUIRE))
		return false;
	while (weft__load(&answer.state, WEFT__ACQUIRE) != THERE)
		weft__sys->yield();
	weft__store(&answer.state, FREE, WEFT__RELAXED);
	return true;
}

/* Under `request_lock`, because the first request may come from another caller than the watchdog.
 * 0, or an error. */
static int
catch_thread_signal(void)
{
	int rc = 0;

	weft__lock_take(&answer.request_lock);
	if (!dog.catches)
		rc = weft__os_catch_thread_signal(on_thread_signal);
	dog.catches = rc == 0;
	weft__lock_give(&answer.request_lock);
	return rc;
}

bool
weft__loop_holder(weft_loop *loop, struct weft__holder *out)
{
	bool known;

	if (catch_thread_signal() < 0)
		return false;
	weft__lock_take(&answer.request_lock);
	known = request_locked(loop);
	if (known)
		*out = answer.holder;
	weft__lock_give(&answer.request_lock);
	return known;
}

/* --- on the watchdog's thread ------------------------------------------- */

static void
add_holder(struct weft__text *text, const struct weft__holder *holder)
{
	if (holder->id) {
		weft__text_add(text, " by threadlet ");
		weft__text_number(text, holder->id);
		weft__text_add(text, " (");
		if (holder->name[0])
			weft__text_add(text, holder->name);
		else
			weft__os_add_symbol(text, holder->fn);
		weft__text_add(text, "), started at ");
		weft__os_add_symbol(text, holder->spawned_at);
	} else {
		weft__text_add(text, " by a callback");
	}
	weft__text_add(text, "\n");
	for (int i = 0; i < 16 && holder->frames[i]; i++) {
		weft__text_add(text, "    #");
		weft__text_number(text, i);
		weft__text_add(text, " ");
		weft__os_add_symbol(text, holder->frames[i]);
		weft__text_add(text, "\n");
	}
}

static void
watchdog_report(weft_loop *loop, uint64_t held_ns)
{
	char buf[TEXT_BYTES];
	struct weft__text text = weft__text_begin(buf, sizeof(buf));
	struct weft__holder holder;
	weft_report about = {
		.kind = WEFT_REPORT_BLOCKED,
		.level = 1,
		.loop = loop,
		.name = loop->name,
		.text = buf,
	};

	weft__text_add(&text, "the loop has been blocked for ");
	weft__text_seconds(&text, held_ns);
	if (weft__loop_holder(loop, &holder)) {
		add_holder(&text, &holder);
		about.threadlet = holder.id;
		if (about.threadlet)
			about.name = holder.name;
	} else {
		weft__text_add(&text, "; its thread did not answer, so the cause is unknown");
	}
	weft__text_end_line(&text);
	weft__loop_report(&about);
}

/* A thread runs the loop and does not sleep.  The low bit of `runner` marks a claim that is
 * about to be given back; `runner` is the loop itself while its thread is being started. */
static bool
is_held(const weft_loop *loop)
{
	uintptr_t runner = weft__load(&loop->runner, WEFT__RELAXED);

	return runner && !(runner & 1) && runner != (uintptr_t)loop
	       && !weft__inbox_is_asleep(&loop->inbox);
}

bool
weft__watchdog_check(weft_loop *loop, uint64_t now_ns)
{
	struct weft__watched *watched = &loop->watched;
	uint64_t turns = weft__count_get(&loop->counts.turns);
	uint32_t left = weft__count_get(&loop->left);

	if (!is_held(loop) || !watched->since_ns || turns != watched->turns
	    || left != watched->left) {
		*watched = (struct weft__watched){
			.turns = turns,
			.left = left,
			.since_ns = is_held(loop) ? now_ns : 0,
		};
		return false;
	}
	if (watched->reported || now_ns - watched->since_ns < loop->watchdog_ns)
		return false;
	watched->reported = true; /* invariant 4 */
	return true;
}

/* Check all loops.  Returns when to do it again. */
static uint64_t
check_all(void)
{
	uint64_t after = 0, period_ns = WEFT_S;
	weft_loop *loop;

	while ((loop = weft__registry_next(&after))) {
		uint64_t now_ns = weft__sys->now();

		if (loop->watchdog_ns && weft__watchdog_check(loop, now_ns))
			watchdog_report(loop, now_ns - loop->watched.since_ns);
		if (loop->watchdog_ns && loop->watchdog_ns / 2 < period_ns)
			period_ns = loop->watchdog_ns / 2;
		weft__loop_exit(loop);
	}
	return weft_after(period_ns < PERIOD_MIN ? PERIOD_MIN : period_ns);
}

static void
dog_main(void *arg)
{
	uint32_t wake_word;

	(void)arg;
	while (!((wake_word = weft__load(&dog.wake_word, WEFT__ACQUIRE)) & 1))
		(void)weft__sys->park(&dog.wake_word, wake_word, check_all());
}

/* Make the thread check now (2), or end (1). */
static void
wake_up(uint32_t by)
{
	(void)weft__add(&dog.wake_word, by, WEFT__RELEASE);
	weft__sys->unpark(&dog.wake_word);
}

/* --- start and end ------------------------------------------------------ */

/* Invariant 1; the caller holds the lock. */
static int
watchdog_start(void)
{
	struct weft__thread_opts opts = { .name = "weft watchdog", .fn = dog_main };
	int rc = catch_thread_signal();

	if (rc < 0)
		return rc;
	weft__store(&dog.wake_word, 0, WEFT__RELAXED);
	return weft__sys->thread_start(&opts, &dog.thread);
}

int
weft__watchdog_add(weft_loop *loop)
{
	int rc = 0;

	weft__lock_take(&dog.lock);
	if (dog.loops == 0)
		rc = watchdog_start();
	if (rc == 0) {
		dog.loops++;
		weft__registry_add(loop);
		wake_up(2); /* its limit may be shorter than the others' */
	}
	weft__lock_give(&dog.lock);
	return rc;
}

void
weft__watchdog_remove(weft_loop *loop)
{
	(void)loop;
	weft__lock_take(&dog.lock);
	weft__assert(dog.loops > 0); /* invariant 1 */
	if (--dog.loops == 0) {
		wake_up(1);
		(void)weft__sys->thread_join(dog.thread);
	}
	weft__lock_give(&dog.lock);
}

void
weft__watchdog_forget(void)
{
	dog.lock = (struct weft__lock){ 0 };
	dog.loops = 0;
	answer.request_lock = (struct weft__lock){ 0 };
	weft__os_forget_thread_signal();
	weft__store(&answer.state, FREE, WEFT__RELAXED);
}
