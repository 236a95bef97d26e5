/* overflow.c - which threadlet has overflowed its stack.
 *
 * The stack that overflows is the one that runs, so there is nothing to search for: the calling
 * thread's struct says which threadlet that is, and the guard is below the threadlet's stack.
 * All of this happens in a signal handler, on the signal stack, with no allocation, no lock and
 * no call that needs one.  Functions and lines are read from the program's files, which were
 * listed before (base/os_symbol.c).
 *
 *   1. A fault is an overflow if the stack pointer is near the end of the stack and the address
 *      is in the guard; or if the stack pointer is below the stack, where a frame larger than
 *      the guard puts it.  A stray pointer into a guard is not an overflow.
 */
#include "base/lock.h"
#include "base/os.h"
#include "base/switch/frames.h"
#include "threadlet/threadlet.h"

#define NEAR 4096 /* bytes from the end of a stack: what a call may touch at once */

weft__a32 weft__overflow_is_caught;

static bool
is_overflow(const char *base, const struct weft__moment *moment)
{
	const char *addr = moment->addr;

	if (moment->sp < base)
		return true;
	return moment->sp < base + NEAR && addr < base && addr >= base - WEFT__STACK_GUARD;
}

static void
add_depth(struct weft__text *text, const struct weft__threadlet *t,
          const struct weft__moment *moment)
{
	struct weft__frame frame = {
		.pc = moment->pc, .fp = moment->fp, .low = t->stack->base, .high = (const char *)t
	};

	weft__text_number(text, (int64_t)weft__stack_bytes(t->stack->size_class));
	weft__text_add(text, " bytes, about ");
	weft__text_number(text, (int64_t)weft__frames_walk(frame, NULL, 0));
	weft__text_add(text, " calls deep, in ");
	weft__os_add_symbol_in_handler(text, moment->pc);
}

static void
overflow_report(const struct weft__threadlet *t, const struct weft__moment *moment)
{
	char buf[800];
	struct weft__text text = weft__text_begin(buf, sizeof(buf));
	weft_report about = {
		.kind = WEFT_REPORT_OVERFLOW,
		.loop = t->sched->loop,
		.threadlet = weft__threadlet_id(t),
		.name = t->name,
		.text = buf,
	};

	weft__text_add(&text, "stack overflow in threadlet ");
	weft__text_number(&text, about.threadlet);
	weft__text_add(&text, t->name[0] ? " (" : "");
	weft__text_add(&text, t->name);
	weft__text_add(&text, t->name[0] ? ")" : "");
	weft__text_add(&text, ", started at ");
	weft__os_add_symbol_in_handler(&text, t->spawned_at);
	weft__text_add(&text, " with the function ");
	weft__os_add_symbol_in_handler(&text, (const void *)(uintptr_t)t->fn);
	weft__text_add(&text, ": ");
	add_depth(&text, t, moment);
	weft__loop_report(&about);
}

static bool
overflow_check(const struct weft__moment *moment)
{
	const struct weft__threadlet *self = weft__self();

	if (!self || !is_overflow(self->stack->base, moment))
		return false;
	overflow_report(self, moment);
	return true;
}

void
weft__overflow_prepare(struct weft__thread *self)
{
	/* Without memory for it, an overflow is an ordinary fault. */
	(void)weft__os_signal_stack(self);
}

static struct weft__lock catching;

static void
overflow_forked(void)
{
	catching = (struct weft__lock){ 0 };
}

int
weft_catch_overflow(void)
{
	static weft__a32 registered;
	int rc = weft__os_signal_stack(weft__thread_self());

	weft__os_symbols_prepare();
	/* If this fails, only forked children are at risk, and the next call tries again. */
	(void)weft__fork_handler(&registered, overflow_forked);
	weft__lock_take(&catching);
	if (rc == 0 && !weft__load(&weft__overflow_is_caught, WEFT__RELAXED))
		rc = weft__os_catch_faults(overflow_check);
	if (rc == 0)
		weft__store(&weft__overflow_is_caught, 1, WEFT__RELAXED);
	weft__lock_give(&catching);
	return rc < 0 ? weft__fail(
		       rc,
		       "weft_catch_overflow: cannot set up the signal stack or the fault handler")
	              : 0;
}

/* A program with its own handler may not expect to be called by ours. */
void
weft__overflow_catch_unasked(void)
{
	if (!weft__os_has_fault_handler())
		(void)weft_catch_overflow(); /* on failure an overflow is an ordinary fault */
}
