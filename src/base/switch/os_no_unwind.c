/* os_no_unwind.c - for platforms where unwind tables are not read. */
#include "base/switch/frames.h"

size_t
weft__os_unwind(const void *saved, const void **out, size_t max)
{
	(void)saved;
	(void)out;
	(void)max;
	return 0;
}
