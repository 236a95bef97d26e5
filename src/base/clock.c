/* clock.c - the clock of the public API, and conversion of deadlines to timeouts. */
#include "base/sys.h"

uint64_t
weft_now(void)
{
	return weft__sys->now();
}

uint64_t
weft_after(uint64_t delay_ns)
{
	uint64_t now_ns = weft__sys->now();

	return delay_ns > WEFT_NEVER - now_ns ? WEFT_NEVER : now_ns + delay_ns;
}

int64_t
weft__timeout_of(uint64_t deadline_ns)
{
	uint64_t now_ns;

	if (deadline_ns == WEFT_NEVER || deadline_ns == WEFT_NOWAIT)
		return deadline_ns == WEFT_NOWAIT ? 0 : -1;
	now_ns = weft__sys->now();
	if (deadline_ns <= now_ns)
		return 0;
	return deadline_ns - now_ns > INT64_MAX ? INT64_MAX : (int64_t)(deadline_ns - now_ns);
}
