/* switch.h - switch from one stack to another.
 *
 * A context is a suspended flow of control: a stack pointer that points to the saved
 * callee-saved registers and floating-point control words.  x86_64.S and aarch64.S do the switch
 * with a balanced call and return.  annotate.h notifies the sanitizers and valgrind, and costs
 * nothing without them.
 *
 *   1. A context is resumed at most once for each time it was suspended.
 *   2. The first function of a context ends by returning the context to continue with; or it
 *      never returns, and switches away for good.
 *   3. A stack outlives its context: weft__context_fini() comes before the stack is reused.
 *   4. A context is finished only while it is suspended, by another context.
 *
 * Needs: nothing.  Thread: a context may change threads while suspended.
 */
#ifndef WEFT_BASE_SWITCH_SWITCH_H
#define WEFT_BASE_SWITCH_SWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft__context {
	void       *sp;          /* while suspended */
	const void *stack;       /* lowest address; NULL: a thread's own stack */
	size_t      stack_bytes;
	struct weft__context *(*fn)(void *arg);
	void       *arg;
	void       *asan_fake;   /* ASan's fake stack while suspended */
	void       *tsan_fiber;
	uint32_t    valgrind_id;
	bool        fresh;       /* it has not begun to run */
	bool        dead;        /* caller's: set it before switching away for good,
	                          * so that ASan releases the fake stack */
};

/* Make a context of the stack on which the caller runs, usually its thread's own, for
 * weft__switch() to save into. */
void weft__context_init(struct weft__context *context);

/* Make a context that will call fn(arg) on the stack whose lowest address is `stack`.  The
 * function begins with the rounding and exception modes of the caller.  The struct must not
 * move before weft__context_fini(). */
void weft__context_make(struct weft__context *context, void *stack,
                        size_t stack_bytes,
                        struct weft__context *(*fn)(void *arg), void *arg);

/* Finish a context made with weft__context_make(), whether its function has ended or not.  What
 * its frames own is not released. */
void weft__context_fini(struct weft__context *context);

/* Suspend the caller into `from` and continue in `to`. */
void weft__switch(struct weft__context *from, struct weft__context *to);

/* The assembly part.  weft__stack_switch() suspends the caller, writes its stack pointer to
 * *save and continues where `load` was saved.  weft__stack_start() does the same for a stack
 * that has not begun.  weft__stack_make() prepares the words below `top` so that either can
 * start fn(arg), and returns the stack pointer for that.  weft__stack_entry, where unwinding
 * ends, calls fn, which returns the stack pointer to continue with.  The modes are
 * floating-point modes (rounding, exceptions), as weft__modes() reads them. */
void  weft__stack_switch(void **save, void *load);
void  weft__stack_start(void **save, void *load);
void  weft__stack_entry(void);

#if defined(__x86_64__)
static inline uint64_t
weft__modes(void)
{
	uint32_t words[2] = { 0, 0 };

	__asm__ volatile("stmxcsr %0" : "=m"(words[0]));
	__asm__ volatile("fnstcw %0" : "+m"(words[1]));
	return (uint64_t)words[1] << 32 | words[0];
}

static inline void *
weft__stack_make(void *top, void *(*fn)(void *arg), void *arg, uint64_t modes)
{
	uintptr_t *words = (uintptr_t *)(((uintptr_t)top - 64) & -(uintptr_t)16);

	words[0] = modes;
	words[3] = (uintptr_t)arg; /* r13 */
	words[4] = (uintptr_t)fn;  /* r12 */
	words[6] = 0;              /* rbp: ends the chain of frames */
	words[7] = (uintptr_t)weft__stack_entry;
	return words;
}
#else
static inline uint64_t
weft__modes(void)
{
	uint64_t modes;

	__asm__ volatile("mrs %0, fpcr" : "=r"(modes));
	return modes;
}

void *weft__stack_make(void *top, void *(*fn)(void *arg), void *arg, uint64_t modes);
#endif

/* The first function of every context; it calls the context's own. */
void *weft__context_main(void *context);

/* The function of a context has returned, or has not begun: let it begin again, with `modes`
 * of weft__modes(). */
static inline void
weft__context_renew(struct weft__context *context, uint64_t modes)
{
	char *top = (char *)(uintptr_t)context->stack + context->stack_bytes;

	context->sp = weft__stack_make(top, weft__context_main, context, modes);
	context->fresh = true;
	context->dead = false;
}

#endif
