/* annotate.h - notify ASan, TSan and valgrind which stack runs.
 *
 * ASan must know the bounds of the running stack.  To find uses after return, it also has a fake
 * stack for each.  It is notified before and after each switch.  TSan has a history for each stack
 * and is notified before the switch; with flags 0, everything before the switch also happens before
 * everything after it.  Valgrind only needs to know the memory.  Without the tool, each function
 * here is empty; for valgrind that means without its header, or with NVALGRIND.
 *
 *   1. Everything is inlined into the caller.  TSan's record of calls belongs to the stack; a
 *      function that is entered on one stack and left on another breaks it.
 *
 * Needs: switch.h.  Thread: as weft__switch().
 */
#ifndef WEFT_BASE_SWITCH_ANNOTATE_H
#define WEFT_BASE_SWITCH_ANNOTATE_H

#include "base/valgrind.h"
#include "base/switch/switch.h"

#if defined(__has_feature)
#define WEFT__HAS_FEATURE(name) __has_feature(name)
#else
#define WEFT__HAS_FEATURE(name) 0
#endif

#define WEFT__ANNOTATE static inline __attribute__((always_inline)) void

/* For functions that read stacks word by word: ASan may have poisoned a word, and TSan may not
 * know how the stack was suspended. */
#define WEFT__INSPECTS_STACKS \
	__attribute__((no_sanitize("address", "thread"), noinline))

#if defined(__SANITIZE_ADDRESS__) || WEFT__HAS_FEATURE(address_sanitizer)

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

WEFT__ANNOTATE
weft__asan_leave(struct weft__context *from, const struct weft__context *to)
{
	__sanitizer_start_switch_fiber(from->dead ? NULL : &from->asan_fake,
	                               to->stack, to->stack_bytes);
}

WEFT__ANNOTATE
weft__asan_enter(struct weft__context *self)
{
	__sanitizer_finish_switch_fiber(self->asan_fake, NULL, NULL);
	self->asan_fake = NULL;
}

/* Learn the bounds of the running stack: the end of a switch reports the bounds of the stack that
 * was left.  So pretend to switch to another stack, and back. */
WEFT__ANNOTATE
weft__asan_init(struct weft__context *self)
{
	void *fake = NULL;

	__sanitizer_start_switch_fiber(&fake, self, sizeof *self);
	__sanitizer_finish_switch_fiber(fake, &self->stack, &self->stack_bytes);
	__sanitizer_start_switch_fiber(&fake, self->stack, self->stack_bytes);
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
}

/* ASan releases a fake stack only when its owner leaves for good.  Become the owner for a
 * moment, on behalf of a context that will never run again. */
WEFT__ANNOTATE
weft__asan_fini(struct weft__context *context)
{
	void *mine = NULL;
	const void *stack;
	size_t bytes;

	__asan_unpoison_memory_region(context->stack, context->stack_bytes);
	if (!context->asan_fake)
		return;
	__sanitizer_start_switch_fiber(&mine, context->stack, context->stack_bytes);
	__sanitizer_finish_switch_fiber(context->asan_fake, &stack, &bytes);
	__sanitizer_start_switch_fiber(NULL, stack, bytes);
	__sanitizer_finish_switch_fiber(mine, NULL, NULL);
	context->asan_fake = NULL;
}

#else

WEFT__ANNOTATE
weft__asan_leave(struct weft__context *from, const struct weft__context *to)
{
	(void)from;
	(void)to;
}

WEFT__ANNOTATE
weft__asan_enter(struct weft__context *self)
{
	(void)self;
}

WEFT__ANNOTATE
weft__asan_init(struct weft__context *self)
{
	(void)self;
}

WEFT__ANNOTATE
weft__asan_fini(struct weft__context *context)
{
	(void)context;
}

#endif

#if defined(__SANITIZE_THREAD__) || WEFT__HAS_FEATURE(thread_sanitizer)

#include <sanitizer/tsan_interface.h>
#include <signal.h>

#define weft__tsan_self()      __tsan_get_current_fiber()
#define weft__tsan_make()      __tsan_create_fiber(0)
#define weft__tsan_fini(fiber) __tsan_destroy_fiber(fiber)

/* TSan keeps an arriving signal with the current fiber until that fiber calls an intercepted
 * function.  A threadlet that suspends first may never do so: its thread would miss the signal.
 * pthread_sigmask() is intercepted: the first call runs the handlers of what has arrived, and
 * what arrives from then on belongs to the next fiber. */
WEFT__ANNOTATE
weft__tsan_leave(void *fiber)
{
	sigset_t every, before;

	(void)sigfillset(&every);
	(void)pthread_sigmask(SIG_BLOCK, &every, &before);
	__tsan_switch_to_fiber(fiber, 0);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

#else

#define weft__tsan_self()       NULL
#define weft__tsan_make()       NULL
#define weft__tsan_fini(fiber)  ((void)(fiber))
#define weft__tsan_leave(fiber) ((void)(fiber))

#endif

#ifdef VALGRIND_STACK_REGISTER

static inline uint32_t
weft__valgrind_make(const void *stack, size_t bytes)
{
	const char *last = (const char *)stack + bytes - 1; /* the last byte that belongs to it */

	return weft__on_valgrind ? (uint32_t)VALGRIND_STACK_REGISTER(stack, last) : 0;
}

WEFT__ANNOTATE
weft__valgrind_fini(uint32_t id)
{
	if (weft__on_valgrind)
		VALGRIND_STACK_DEREGISTER(id);
}

#else

#define weft__valgrind_make(stack, bytes) 0
#define weft__valgrind_fini(id)           ((void)(id))

#endif

#endif
