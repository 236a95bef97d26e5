/* symbol_dwarf.c - a function whose address symbol_test.c resolves to a line.
 *
 * It is compiled once for each version of DWARF.  The call must stay in line 20. */
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
