/* os_unwind.c - who called whom on a suspended stack, by the unwind tables of the code.
 *
 * The C library's backtrace() looks for its own callers.  It is called by a function whose
 * table says that it was called by the suspended stack, and so finds those.  Not for signal
 * handlers: it takes locks, and at its first call memory.
 */
#include <execinfo.h>
#include "threadlet/switch/frames.h"

#define FOUND_MAX 24 /* some of which are between here and the suspended stack */

/* The assembly half: call look(out, max) as if `saved` had. */
int weft__stack_look(const void *saved, int (*look)(void **out, int max), void **out, int max);

static bool
is_here(const void *pc)
{
	uintptr_t at = (uintptr_t)pc, here = (uintptr_t)weft__stack_look;

	return at >= here && at < here + 32;
}

size_t
weft__os_unwind(const void *saved, const void **out, size_t max)
{
	void *found[FOUND_MAX];
	int all = weft__stack_look(saved, backtrace, found, FOUND_MAX), at = 0;
	size_t count = 0;

	while (at < all && !is_here(found[at]))
		at++;
	while (++at < all && count < max && !weft__is_root(found[at]))
		out[count++] = found[at];
	return at < all || all == FOUND_MAX ? count : 0;
}
