/* context.c - making, switching and finishing contexts, and notifying the tools.
 *
 * The work is in x86_64.S and aarch64.S.  Here is what all architectures share: which
 * annotation comes before the switch, and which after it, on the other stack.
 *
 *   1. What weft__switch() does after the switch is for the context that called it, now
 *      resumed.  Which context resumed it is not known, and not needed.
 *   2. A new context does the same in weft__context_main().
 *
 * This layer does not allocate stacks, does not grow them and has no list of contexts.
 */
#include "base/sys.h"
#include "base/switch/annotate.h"

#include <stddef.h>

/* Not instrumented: it returns after the tools were notified that another context runs. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) void *
weft__context_main(void *arg)
{
	struct weft__context *self = arg, *next;

	weft__asan_enter(self);
	next = self->fn(self->arg);
	weft__assert(next && !next->dead); /* invariant 2 of switch.h */
	self->dead = true;
	next->fresh = false; /* entered by a return; see x86_64.S */
	weft__asan_leave(self, next);
	weft__tsan_leave(next->tsan_fiber);
	return next->sp;
}

void
weft__context_init(struct weft__context *context)
{
	*context = (struct weft__context){ .tsan_fiber = weft__tsan_self() };
	weft__asan_init(context);
}

void
weft__context_make(struct weft__context *context, void *stack, size_t stack_bytes,
                   struct weft__context *(*fn)(void *arg), void *arg)
{
	*context = (struct weft__context){
		.sp = weft__stack_make((char *)stack + stack_bytes, weft__context_main, context,
		                       weft__modes()),
		.stack = stack,
		.stack_bytes = stack_bytes,
		.fn = fn,
		.arg = arg,
		.tsan_fiber = weft__tsan_make(),
		.valgrind_id = weft__valgrind_make(stack, stack_bytes),
		.fresh = true,
	};
}

/* The caller is on the stack of `context`. */
static bool
is_running(const struct weft__context *context)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return here - (uintptr_t)context->stack < context->stack_bytes;
}

void
weft__context_fini(struct weft__context *context)
{
	weft__assert(context->sp && !is_running(context)); /* invariant 4 of switch.h */
	weft__asan_fini(context);
	weft__tsan_fini(context->tsan_fiber);
	weft__valgrind_fini(context->valgrind_id);
	context->sp = NULL;
}

void
weft__switch(struct weft__context *from, struct weft__context *to)
{
	weft__asan_leave(from, to);
	weft__tsan_leave(to->tsan_fiber);
	if (to->fresh) {
		to->fresh = false;
		weft__stack_start(&from->sp, to->sp);
	} else {
		weft__stack_switch(&from->sp, to->sp);
	}
	weft__asan_enter(from);
}
