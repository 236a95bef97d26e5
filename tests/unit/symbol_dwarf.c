/* symbol_dwarf.c - a function whose place is looked for by symbol_test.c.
 *
 * It is compiled once for each version of DWARF.  The call must stay in its line. */
#include <stddef.h>

const void *PLACE(void);

static __attribute__((noinline)) const void *
return_place(void)
{
	const void *place = __builtin_return_address(0);

	__asm__ volatile("" : "+r"(place));
	return place;
}

const void *
PLACE(void)
{
	const void *place = return_place();

	__asm__ volatile("" : "+r"(place));
	return place;
}
