/* schedule.c - simulated threads: the seed chooses which one runs.
 *
 * A simulated thread is a stack from the pool and a struct weft__thread.  It runs until it
 * sleeps, ends, or reaches a scheduling point at which the seed ends its time slice.  Every
 * atomic operation of the library is a scheduling point, and every call of the sys table.  The
 * number of points in a time slice is drawn for each slice, around a mean that is drawn for the
 * seed.  If no thread can run, the clock moves to the next event; if there is no event either,
 * it is a deadlock, and the run fails.
 *
 *   1. Exactly one thread is `current`, or none outside of sim_sched_run().
 *   2. ready[] holds the threads that can run.  It includes the current one, unless that is
 *      about to sleep or has ended.
 *   3. A thread's `version` changes when it begins to sleep and when it wakes, so an event for
 *      an earlier sleep has no effect.
 *   4. weft__thread_ptr belongs to the current thread.
 *   5. A thread may be suspended on a stack that is not its own, for example while it runs a
 *      threadlet.  So `resume` is a context of the stack it was on.
 *
 * Memory is sequentially consistent here.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "sim/kernel/clock.h"
#include "sim/run/fault.h"
#include "sim/run/rng.h"
#include "sim/kernel/signal.h"
#include "sim/kernel/thread.h"
#include "sim/run/trace.h"

static struct {
	struct sim_thread threads[SIM_THREADS_MAX];
	uint32_t used; /* threads[] from here on were never used */
	uint32_t started;
	struct sim_thread *current;
	struct sim_thread *ready[SIM_THREADS_MAX];
	uint32_t ready_count;
	struct weft__context host;
	uint64_t steps, steps_max;
	uint64_t step_ns;  /* cost of an atomic operation */
	uint64_t call_ns;  /* cost of a call, at most */
	uint64_t slack_ns; /* how late a timeout is, at most */
	uint32_t mean;     /* points in a time slice */
	uint32_t patience; /* points left in this time slice */
	bool biased;       /* threads have weights */
} sched;

void
sim_sched_reset(uint64_t steps_max)
{
	static const uint32_t means[] = { 3, 6, 12, 24, 48, 64 };

	assert(!sched.current);
	memset(sched.threads, 0, sched.used * sizeof(sched.threads[0]));
	sched.used = 0;
	sched.started = 0;
	sched.ready_count = 0;
	sched.steps = 0;
	sched.steps_max = steps_max;
	sched.step_ns = sim_scaled(SIM_DRAW_SETUP, 1, 100);
	sched.call_ns = sim_scaled(SIM_DRAW_SETUP, 20, 4000);
	sched.slack_ns = sim_scaled(SIM_DRAW_SETUP, 1, 200000);
	sched.mean = means[sim_below(SIM_DRAW_SETUP, 6)];
	sched.biased = sim_below(SIM_DRAW_SETUP, 2) == 0;
	sched.patience = sched.mean;
}

/* --- threads that can run --------------------------------------------- */

void
sim_thread_ready(struct sim_thread *thread)
{
	thread->state = SIM_THREAD_READY;
	thread->ready_at = sched.ready_count;
	sched.ready[sched.ready_count++] = thread;
}

static void
ready_drop(struct sim_thread *thread)
{
	struct sim_thread *last = sched.ready[--sched.ready_count];

	assert(sched.ready[thread->ready_at] == thread);
	sched.ready[thread->ready_at] = last;
	last->ready_at = thread->ready_at;
}

static struct sim_thread *
choose(void)
{
	uint64_t sum = 0, at;

	if (sched.ready_count == 1)
		return sched.ready[0];
	for (uint32_t i = 0; i < sched.ready_count; i++)
		sum += sched.ready[i]->weight;
	at = sim_below(SIM_DRAW_THREAD, sum);
	for (uint32_t i = 0;; i++) {
		if (at < sched.ready[i]->weight)
			return sched.ready[i];
		at -= sched.ready[i]->weight;
	}
}

static __attribute__((noinline)) void
fail_deadlock(void)
{
	char text[SIM_TEXT_BYTES / 2];

	sim_sched_dump(text, sizeof(text));
	sim_fail("deadlock: nobody can run and nothing will happen\n%s", text);
}

static __attribute__((noinline)) void
fail_endless(void)
{
	char text[SIM_TEXT_BYTES / 2];

	sim_sched_dump(text, sizeof(text));
	sim_fail("does not end: %llu steps\n%s", (unsigned long long)sched.steps_max, text);
}

/* Choose the next thread when the current one cannot run.  If no thread can, advance the clock
 * until one can. */
static struct sim_thread *
next_ready(void)
{
	while (sched.ready_count == 0) {
		if (!sim_clock_skip())
			fail_deadlock();
	}
	return choose();
}

/* The number of points in the next time slice.  A fourth of the slices are short regardless of
 * the mean: many bugs need two thread switches in quick succession. */
static uint32_t
draw_patience(void)
{
	uint64_t most = sim_below(SIM_DRAW_THREAD, 4) ? 2 * sched.mean : 5;

	return 1 + (uint32_t)sim_below(SIM_DRAW_THREAD, most);
}

static void
set_current(struct sim_thread *thread)
{
	sched.current = thread;
	sched.patience = draw_patience();
	weft__thread_ptr = thread && thread->has_self ? &thread->self : NULL;
	if (thread)
		sim_trace(SIM_CALL_turn, thread->id, 0, (int64_t)sched.steps);
}

/* Not inlined: `here` must be in its own frame while the thread is suspended, and not in the
 * caller's. */
static __attribute__((noinline)) void
go_to(struct sim_thread *next)
{
	struct weft__context here;

	if (next == sched.current)
		return;
	weft__context_init(&here);
	sched.current->resume = &here;
	set_current(next);
	weft__switch(&here, next->resume);
}

void
sim_point(uint32_t weight)
{
	if (++sched.steps > sched.steps_max)
		fail_endless();
	sim_clock_pass(weight == 1 ? sched.step_ns : 1 + sched.steps * 7919 % sched.call_ns);
	if (sched.patience > weight) {
		sched.patience -= weight;
		return;
	}
	sched.patience = draw_patience();
	if (sched.ready_count > 1)
		go_to(choose());
	if (sim_signals_pending)
		sim_signals_deliver();
}

/* --- sleeping and waking ---------------------------------------------- */

void
sim_thread_wake(struct sim_thread *thread, int result)
{
	assert(thread->state == SIM_THREAD_ASLEEP);
	thread->version++;
	thread->wait.channel = NULL;
	thread->result = result;
	sim_thread_ready(thread);
}

static void
on_time(void *object, uint64_t arg)
{
	sim_thread_wake(object, -(int)arg);
}

void
sim_thread_wake_at(struct sim_thread *thread, uint64_t at_ns, int error)
{
	if (at_ns == WEFT_NEVER)
		return;
	sim_event_add(&(struct sim_event){
		.at_ns = at_ns,
		.fn = on_time,
		.object = thread,
		.arg = (uint64_t)error,
		.version = &thread->version,
		.wanted = thread->version,
	});
}

/* Kernel timers are never early, and always a little late. */
static uint64_t
with_slack(uint64_t deadline_ns)
{
	uint64_t late_ns = sim_below(SIM_DRAW_ORDER, sched.slack_ns);
	struct sim_fault *hit;

	if (deadline_ns == WEFT_NEVER)
		return WEFT_NEVER;
	hit = sim_fault(SIM_LATE, SIM_CALL_event);
	if (hit)
		late_ns += sim_fault_delay_ns(hit, WEFT_S);
	if (deadline_ns < sim_clock.now_ns)
		deadline_ns = sim_clock.now_ns;
	return late_ns < WEFT_NEVER - deadline_ns ? deadline_ns + late_ns : WEFT_NEVER;
}

int
sim_wait(const struct sim_wait *wait)
{
	struct sim_thread *self = sched.current;

	assert(self && self->state == SIM_THREAD_READY);
	ready_drop(self);
	self->state = SIM_THREAD_ASLEEP;
	self->version++;
	self->wait = *wait;
	sim_thread_wake_at(self, with_slack(wait->deadline_ns), ETIMEDOUT);
	sim_thread_wake_at(self, wait->interrupt_ns, EINTR);
	sim_thread_wake_at(self, wait->spurious_ns, 0);
	go_to(next_ready());
	return self->result;
}

void
sim_wake_all(const void *channel, int result)
{
	for (uint32_t i = 0; i < sched.used; i++) {
		struct sim_thread *thread = &sched.threads[i];

		if (thread->state == SIM_THREAD_ASLEEP && thread->wait.channel == channel)
			sim_thread_wake(thread, result);
	}
}

struct sim_thread *
sim_thread_asleep(const void *channel)
{
	struct sim_thread *found = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i < sched.used; i++) {
		struct sim_thread *thread = &sched.threads[i];

		if (thread->state != SIM_THREAD_ASLEEP || thread->wait.channel != channel)
			continue;
		if (sim_below(SIM_DRAW_THREAD, ++count) == 0)
			found = thread;
	}
	return found;
}

/* --- for thread.c ----------------------------------------------------- */

struct sim_thread *
sim_thread_current(void)
{
	return sched.current;
}

struct sim_thread *
sim_thread_take(void)
{
	static const uint8_t weights[] = { 1, 1, 4, 16 };
	struct sim_thread *thread;
	uint32_t slot = 0;

	while (slot < sched.used && sched.threads[slot].state != SIM_THREAD_FREE)
		slot++;
	if (slot == SIM_THREADS_MAX)
		return NULL;
	if (slot == sched.used)
		sched.used++;
	thread = &sched.threads[slot];
	*thread = (struct sim_thread){
		.slot = slot,
		.id = sched.started++,
		.weight = sched.biased ? weights[sim_below(SIM_DRAW_THREAD, 4)] : 1,
		.version = thread->version + 1, /* rule 3, also for the slot's next thread */
	};
	return thread;
}

struct sim_thread *
sim_thread_find(uint64_t id)
{
	for (uint32_t i = 0; i < sched.used; i++)
		if (sched.threads[i].state != SIM_THREAD_FREE && sched.threads[i].id == id)
			return &sched.threads[i];
	return NULL;
}

void
sim_thread_pass(void)
{
	struct sim_thread *self = sched.current;

	if (sched.ready_count == 1) {
		sim_clock_pass(1 + sim_below(SIM_DRAW_THREAD, 4000));
		return;
	}
	ready_drop(self); /* moves to the end; then any of the others is chosen */
	sim_thread_ready(self);
	go_to(sched.ready[sim_below(SIM_DRAW_THREAD, sched.ready_count - 1)]);
}

_Noreturn void
sim_thread_end(struct sim_thread *thread)
{
	struct sim_thread *next;

	thread->state = SIM_THREAD_ENDED;
	thread->version++;
	ready_drop(thread);
	sim_wake_all(thread, 0);
	sim_trace(SIM_CALL_end, thread->id, 0, 0);
	next = thread->id == 0 ? NULL : next_ready();
	thread->context.dead = 1;
	thread->resume = NULL;
	set_current(next);
	weft__switch(&thread->context, next ? next->resume : &sched.host);
	__builtin_unreachable();
}

/* --- the run ---------------------------------------------------------- */

void
sim_sched_run(void (*fn)(void *arg), void *arg)
{
	struct sim_thread *first = sim_thread_make(
		&(struct weft__thread_opts){ .name = "main", .fn = fn, .arg = arg });

	weft__context_init(&sched.host);
	set_current(first);
	weft__switch(&sched.host, first->resume);
	assert(!sched.current);
	weft__thread_ptr = NULL;
}

/* Not a local variable: ASan may keep locals in its fake stack, which this switch gives up. */
static struct weft__context left;

void
sim_sched_leave(void)
{
	assert(sched.current);
	weft__context_init(&left);
	left.dead = 1; /* this stack is abandoned */
	sched.current->resume = NULL;
	set_current(NULL);
	weft__switch(&left, &sched.host);
	__builtin_unreachable();
}

static void
drop_thread(struct sim_thread *thread)
{
	/* If the thread sleeps on its own stack, `resume` has its ASan fake stack. */
	if (thread->resume && thread->resume->stack == thread->context.stack)
		thread->context.asan_fake = thread->resume->asan_fake;
	weft__context_fini(&thread->context);
	thread->state = SIM_THREAD_FREE;
	thread->version++;
}

int
sim_sched_fini(void)
{
	int count = 0;

	assert(!sched.current);
	for (uint32_t i = 0; i < sched.used; i++) {
		struct sim_thread *thread = &sched.threads[i];

		if (thread->state == SIM_THREAD_FREE)
			continue;
		count += thread->id != 0;
		drop_thread(thread);
	}
	sched.ready_count = 0;
	return count;
}

void
sim_sched_dump(char *text, size_t size)
{
	static const char *const states[] = { "", "can run", "waits for",
		                              "has ended, is not joined" };
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < sched.used && at + 1 < size; i++) {
		struct sim_thread *thread = &sched.threads[i];
		bool asleep = thread->state == SIM_THREAD_ASLEEP;
		int n;

		if (thread->state == SIM_THREAD_FREE
		    || (thread->state == SIM_THREAD_ENDED && !thread->id))
			continue;
		n = snprintf(text + at, size - at, "  thread %u %s: %s", thread->id, thread->name,
		             states[thread->state]);
		at += n > 0 ? (size_t)n : 0;
		if (asleep && at < size) {
			n = snprintf(text + at, size - at, " %s %lld", thread->wait.what,
			             (long long)thread->wait.what_arg);
			at += n > 0 ? (size_t)n : 0;
		}
		if (at + 1 < size) {
			text[at++] = '\n';
			text[at] = '\0';
		}
	}
}

/* --- queries ---------------------------------------------------------- */

uint32_t
sim_thread_id(void)
{
	return sched.current ? sched.current->id : 0;
}

const char *
sim_thread_name(void)
{
	return sched.current ? sched.current->name : "-";
}

uint32_t
sim_thread_masked(void)
{
	return sched.current ? sched.current->masked : 0;
}

uint32_t
sim_mask(uint32_t masked)
{
	uint32_t before = sched.current->masked;

	sched.current->masked = masked;
	return before;
}

uint64_t
sim_steps(void)
{
	return sched.steps;
}
