/* spin.c - spinning on a word for a bounded time. */
#include "base/spin.h"

bool
weft__spin_on(const weft__a32 *word, uint32_t value, uint64_t for_ns)
{
	uint64_t end_ns = weft__sys->now() + for_ns;

	do
		for (int i = 0; i < WEFT__SPINS; i++) {
			if (weft__load(word, WEFT__RELAXED) != value)
				return true;
			weft__pause();
		}
	while (WEFT__SPINS > 1 && weft__sys->now() < end_ns);
	return false;
}
