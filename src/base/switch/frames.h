/* frames.h - the call chain on a stack.
 *
 * The chain is found by frame pointers.  Code without frame pointers ends the chain early, or
 * hides callers.  Every pointer is checked against the bounds of the stack, so nothing else is ever
 * read.  For suspended stacks the unwind tables of the code may be available, too; they give all
 * callers.  All functions may be called in a signal handler, except weft__frames_of() and
 * weft__os_unwind(), which use the tables.
 *
 * Needs: switch.h.  Thread: any that keeps the stack from running.
 */
#ifndef WEFT_BASE_SWITCH_FRAMES_H
#define WEFT_BASE_SWITCH_FRAMES_H

#include "base/switch/switch.h"

struct weft__frame {
	const void *pc; /* where it continues */
	const void *fp; /* its frame pointer */
	const char *low, *high; /* the bounds within which fp must be, on the frame's stack */
};

/* The offsets of fp and pc in the saved registers of a suspended stack, in words. */
#if defined(__x86_64__)
#define WEFT__SAVED_FP 6
#define WEFT__SAVED_PC 7
#else
#define WEFT__SAVED_FP 0
#define WEFT__SAVED_PC 1
#endif

/* A return address without its signature (arm64). */
static inline const void *
weft__code_at(const void *pc)
{
#if defined(__aarch64__)
	register const void *link __asm__("x30") = pc;

	__asm__("hint #7" : "+r"(link)); /* xpaclri */
	return link;
#else
	return pc;
#endif
}

/* The innermost frame of a suspended context that has its own stack. */
struct weft__frame weft__frame_of(const struct weft__context *context);

/* The frame of the caller, on the stack that runs; `high_` is the stack's upper bound. */
#define weft__frame_here(high_)                                                \
	((struct weft__frame){ .fp = __builtin_frame_address(0),               \
	                       .pc = NULL,                                     \
	                       .low = (const char *)__builtin_frame_address(0),\
	                       .high = (const char *)(high_) })

/* Write the addresses from `frame` outwards, at most `max` of them, followed by NULLs.  The
 * root of the stack is left out.  Returns how many there are, which may be more than `max`. */
size_t weft__frames_walk(struct weft__frame frame, const void **out, size_t max);

/* The same for a suspended context, by the best method available here; returns at most `max`.
 * Not for signal handlers. */
size_t weft__frames_of(const struct weft__context *context, const void **out,
                       size_t max);

/* Whether `pc` is in weft__stack_entry(), where a stack begins. */
bool weft__is_root(const void *pc);

/* --- os_unwind.c, or os_no_unwind.c ------------------------------------- */

/* Write the addresses from a suspended stack outwards, by unwind tables; `saved` is its
 * stack pointer.  Returns how many, at most `max`; 0 if they do not lead to the root. */
size_t weft__os_unwind(const void *saved, const void **out, size_t max);

#endif
