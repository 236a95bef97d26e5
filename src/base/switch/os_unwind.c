/* os_unwind.c - the call chain on a suspended stack, by the unwind tables of the code.
 *
 * The C library's backtrace() walks the frames of its own callers.  The function that calls it
 * here has unwind tables that name the suspended stack as its caller, so backtrace() walks that
 * stack.  Not for signal handlers: backtrace() takes locks, and its first call allocates.
 */
#include <execinfo.h>
#include "base/switch/frames.h"

#define FOUND_MAX 24 /* some are between here and the suspended stack */

/* The assembly part: call inspect(out, max) as if the suspended stack `saved` had called it. */
int
weft__stack_inspect(const void *saved, int (*inspect)(void **out, int max), void **out, int max);

static bool
is_here(const void *pc)
{
	uintptr_t at = (uintptr_t)pc, here = (uintptr_t)weft__stack_inspect;

	return at >= here && at < here + 32;
}

size_t
weft__os_unwind(const void *saved, const void **out, size_t max)
{
	void *found[FOUND_MAX];
	int all = weft__stack_inspect(saved, backtrace, found, FOUND_MAX), at = 0;
	size_t count = 0;

	while (at < all && !is_here(found[at]))
		at++;
	while (++at < all && count < max && !weft__is_root(found[at]))
		out[count++] = found[at];
	return at < all || all == FOUND_MAX ? count : 0;
}
