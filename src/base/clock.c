/* clock.c - the clock, as the public API has it. */
#include "base/sys.h"

uint64_t
weft_now(void)
{
	return weft__sys->now();
}

uint64_t
weft_in(uint64_t delay_ns)
{
	uint64_t now_ns = weft__sys->now();

	return delay_ns > WEFT_NEVER - now_ns ? WEFT_NEVER : now_ns + delay_ns;
}
