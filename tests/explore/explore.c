/* explore.c - the executions of a model: its threads, their stacks, the hook.
 *
 * Model threads are contexts on one OS thread, each with its own struct weft__thread.  One more
 * context runs setup, starts the threads, and runs check when all have ended.  The threads
 * switch directly to each other, as search.c decides.  The explorer itself continues when an
 * execution is over, whether that was completed or abandoned.
 *
 *   1. A context whose function has ended waits at its beginning (rested) and is used again.
 *      A context that was abandoned in the middle is made again.
 *   2. Between executions, the library sees the real sys table and atomics.
 *   3. A failed execution is run again with tracing; it must fail in the same way.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "internal.h"

enum { STACK_BYTES = 256 * 1024, FAILURE_BYTES = 1024 };

struct explore__run explore__run;

static struct {
	_Alignas(64) unsigned char stacks[EXPLORE__SLOTS][STACK_BYTES];
	char failure[FAILURE_BYTES];
} own;

bool
explore__on_stack(uintptr_t addr, int *slot)
{
	uintptr_t at = addr - (uintptr_t)own.stacks;

	if (at >= sizeof own.stacks)
		return false;
	if (slot)
		*slot = (int)(at / STACK_BYTES);
	return true;
}

/* --- switching ---------------------------------------------------------- */

static void
go_home(enum explore__outcome outcome)
{
	explore__run.outcome = outcome;
	explore__run.active = false;
	weft__switch(&explore__self()->context, &explore__run.home);
}

void
explore__stop(enum explore__outcome outcome)
{
	explore__self()->rested = false;
	go_home(outcome);
	abort(); /* an abandoned context is never resumed */
}

void
explore__go(int slot)
{
	struct weft__context *from = explore__run.active ? &explore__self()->context
	                                                 : &explore__run.home;

	explore__run.active = true;
	explore__run.current = slot;
	weft__thread_ptr = &explore__run.slots[slot].thread;
	weft__switch(from, &explore__run.slots[slot].context);
}

void
explore_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(own.failure, sizeof own.failure, format, args);
	va_end(args);
	if (!explore__run.active) {
		fprintf(stderr, "explore: outside of a model: %s\n", own.failure);
		abort();
	}
	if (explore__run.tracing)
		explore__trace(EXPLORE__NOTE, explore__self()->last, "FAILS: %s", own.failure);
	explore__stop(EXPLORE__FAILED);
}

/* --- the hook ----------------------------------------------------------- */

static uint64_t
hook(const struct weft__atomic_call *call)
{
	struct explore__slot *self = explore__self();
	struct weft__atomic_call done = *call;
	struct explore__op op;

	if (!explore__run.active)
		return weft__atomic_do(call);
	explore__enter();
	self->last = (struct explore__place){ call->file, call->line };
	if (call->kind == WEFT__READ || call->kind == WEFT__WRITE) {
		explore__plain(call);
		return 0;
	}
	explore__weaken(&done);
	op = (struct explore__op){ .kind = done.kind,
		                   .order = done.order,
		                   .failed = done.failed,
		                   .addr = (uintptr_t)call->addr };
	if (explore__run.current != EXPLORE__MAIN) {
		explore__heap_check(op.addr, call->size, self->last);
		(void)explore__atom_get(op.addr, call->size);
		if (self->spin_count >= EXPLORE__REPEATS_MAX && explore__spin_same(call))
			explore__spin();
		explore__point(&op);
	}
	return explore__atomic(&done);
}

/* --- one execution ------------------------------------------------------ */

static void
run_thread(int index)
{
	struct explore__slot *self = explore__self();

	self->rested = false;
	explore__run.model->thread[index](explore__run.state);
	weft__thread_end(&self->thread);
	self->state = EXPLORE__ENDED;
	self->rested = true;
	self->edge = UINTPTR_MAX;
	if (explore__run.tracing)
		explore__trace(EXPLORE__NOTE, self->last, "ends");
	explore__block();
}

/* Everything in setup happens before everything in the threads. */
static void
threads_start(void)
{
	struct explore__slot *main_slot = explore__self();

	for (int i = 0; i < explore__run.model->threads; i++) {
		struct explore__slot *slot = &explore__run.slots[i];

		slot->view = main_slot->view;
		slot->view.clock[i] = 1;
	}
	main_slot->view.clock[EXPLORE__MAIN]++;
}

static void
threads_join(void)
{
	for (int i = 0; i < explore__run.model->threads; i++)
		explore__view_join(&explore__self()->view, &explore__run.slots[i].view);
}

static void
run_main(void)
{
	const struct explore_model *model = explore__run.model;
	struct explore__slot *self = explore__self();

	self->rested = false;
	self->view.clock[EXPLORE__MAIN] = 1;
	explore__run.state = explore__heap_alloc(model->state_size);
	memset(explore__run.state, 0, model->state_size);
	if (model->setup)
		model->setup(explore__run.state);
	threads_start();
	explore__block();
	threads_join();
	if (model->check)
		model->check(explore__run.state);
	weft__thread_end(&self->thread);
	explore__heap_end();
	self->rested = true;
	go_home(EXPLORE__DONE);
}

static struct weft__context *
slot_main(void *arg)
{
	int index = (int)(intptr_t)arg;

	for (;;)
		if (index == EXPLORE__MAIN)
			run_main();
		else
			run_thread(index);
	return NULL;
}

static void
slot_begin(int index)
{
	struct explore__slot *slot = &explore__run.slots[index];
	struct weft__context context;

	if (!slot->rested) {
		if (slot->context.sp)
			weft__context_fini(&slot->context);
		weft__context_make(&slot->context, own.stacks[index], STACK_BYTES, slot_main,
		                   (void *)(intptr_t)index);
	}
	context = slot->context;
	memset(slot, 0, sizeof *slot);
	slot->context = context;
	slot->rested = true;
	slot->deadline_ns = WEFT_NEVER;
	slot->round = 1;
}

static enum explore__outcome
execute(void)
{
	explore__memory_begin();
	explore__plain_begin();
	explore__heap_begin();
	explore__world_begin();
	explore__search_rewind();
	explore__run.writes = 0;
	for (int i = 0; i < explore__run.model->threads; i++)
		slot_begin(i);
	slot_begin(EXPLORE__MAIN);
	explore__go(EXPLORE__MAIN);
	explore__plain_restore();
	explore__atoms_restore();
	return explore__run.outcome;
}

/* --- a run -------------------------------------------------------------- */

/* An abort of the library is a failure of the model.  The handler runs on the stack of the
 * aborting thread and does not return. */
static void
on_signal(int number)
{
	if (explore__run.active)
		explore_fail("%s after %s:%d: %s", explore__slot_name(explore__run.current),
		             explore__base_name(explore__self()->last.file),
		             explore__self()->last.line,
		             number == SIGABRT ? "abort" : "invalid address");
	_exit(128 + number);
}

struct saved {
	const struct weft__sys *sys;
	weft__atomic_fn hook;
	struct weft__thread *thread;
	struct sigaction on_abort;
	struct sigaction on_fault;
};

static void
world_enter(struct saved *saved)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_NODEFER };

	saved->sys = weft__sys;
	saved->hook = weft__atomic_hook;
	saved->thread = weft__thread_ptr;
	sigaction(SIGABRT, &action, &saved->on_abort);
	sigaction(SIGSEGV, &action, &saved->on_fault);
	weft__sys = explore__sys();
	weft__atomic_hook = hook;
	weft__context_init(&explore__run.home);
}

static void
world_leave(const struct saved *saved)
{
	weft__sys = saved->sys;
	weft__atomic_hook = saved->hook;
	weft__thread_ptr = saved->thread;
	sigaction(SIGABRT, &saved->on_abort, NULL);
	sigaction(SIGSEGV, &saved->on_fault, NULL);
}

/* Rule 3. */
static void
failure_trace(struct explore_result *out)
{
	static char failure[FAILURE_BYTES];

	memcpy(failure, own.failure, sizeof failure);
	explore__trace_begin();
	explore__run.tracing = true;
	if (execute() != EXPLORE__FAILED || strcmp(failure, own.failure) != 0)
		snprintf(failure, sizeof failure,
		         "the model is not deterministic: a replay ended otherwise "
		         "than with: %.800s",
		         own.failure);
	explore__run.tracing = false;
	out->failure = failure;
	out->schedule = explore__trace_text();
}

static double
seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void
explore_all(const struct explore_model *model, struct explore_result *out)
{
	bool more = true;

	while (more && !out->failure) {
		switch (execute()) {
		case EXPLORE__PRUNED:
			out->pruned++;
			break;
		case EXPLORE__REDUNDANT:
			out->redundant++;
			break;
		case EXPLORE__FAILED:
			out->executions++;
			failure_trace(out);
			break;
		default:
			out->executions++;
		}
		if (out->depth_max < explore__search_depth())
			out->depth_max = explore__search_depth();
		more = explore__search_next();
		if (model->executions_max
		    && out->executions + out->redundant >= model->executions_max)
			break;
	}
	out->complete = !more && !out->failure && out->pruned == 0;
}

int
explore_run(const struct explore_model *model, struct explore_result *out)
{
	struct saved saved;

	if (explore__run.model) {
		fprintf(stderr, "explore: a run within a run\n");
		abort();
	}
	*out = (struct explore_result){ 0 };
	explore__run.model = model;
	world_enter(&saved);
	explore__search_begin();
	out->seconds = -seconds_now();
	explore_all(model, out);
	out->seconds += seconds_now();
	world_leave(&saved);
	explore__run.model = NULL;
	return out->failure ? -1 : 0;
}

int
explore_report(const struct explore_model *model, bool expected, struct explore_result *out)
{
	int result = explore_run(model, out);

	printf("%s: %llu executions, %llu redundant, %llu pruned, depth %u, %.3f s: %s\n",
	       model->name, (unsigned long long)out->executions, (unsigned long long)out->redundant,
	       (unsigned long long)out->pruned, out->depth_max, out->seconds,
	       out->failure    ? out->failure
	       : out->complete ? "no failure"
	                       : "no failure, but INCOMPLETE");
	if (out->failure && !expected)
		printf("%s", out->schedule);
	return result;
}

int
explore_choose(int options)
{
	return explore__choose(options);
}

int
explore_thread(void)
{
	return explore__run.current;
}
