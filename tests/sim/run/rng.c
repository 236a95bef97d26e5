/* rng.c - numbered draws from one seed.
 *
 * The mixing is splitmix64's output function, applied to the key and then to the ordinal.  The
 * only state is one counter per stream.
 *
 *   1. A draw depends only on (seed, stream, ordinal).
 *
 * It is not suitable for secrets.
 */
#include <assert.h>
#include <string.h>
#include "sim/run/rng.h"

static struct {
	uint64_t seed;
	uint64_t next[SIM_DRAWS]; /* ordinal of each stream's next draw */
} rng;

static uint64_t
scramble(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t
sim_mix(uint64_t a, uint64_t b)
{
	return scramble(a + UINT64_C(0x9e3779b97f4a7c15) * (b + 1));
}

void
sim_rng_reset(uint64_t seed)
{
	memset(&rng, 0, sizeof(rng));
	rng.seed = scramble(seed + UINT64_C(0x632be59bd9b4e019));
}

uint64_t
sim_draw_at(uint64_t key, uint64_t ordinal)
{
	return sim_mix(sim_mix(rng.seed, key), ordinal);
}

uint64_t
sim_draw(enum sim_stream stream)
{
	assert(stream < SIM_DRAWS);
	return sim_draw_at((uint64_t)stream, rng.next[stream]++);
}

uint64_t
sim_below(enum sim_stream stream, uint64_t n)
{
	assert(n > 0);
	return sim_draw(stream) % n; /* the bias of % is below 2^-32 for n < 2^32 */
}

uint64_t
sim_between(enum sim_stream stream, uint64_t low, uint64_t high)
{
	assert(low <= high);
	return low + sim_below(stream, high - low + 1);
}

uint64_t
sim_scaled(enum sim_stream stream, uint64_t low, uint64_t high)
{
	uint64_t span = high - low, bits = 0;

	assert(low <= high);
	while (bits < 64 && span >> bits)
		bits++;
	if (bits == 0)
		return low;
	bits = sim_between(stream, 1, bits);
	span = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	if (span > high - low)
		span = high - low;
	return low + (span == UINT64_MAX ? sim_draw(stream) : sim_below(stream, span + 1));
}
