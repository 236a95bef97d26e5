/* rng.h - all random choices of a simulated run, drawn from its seed.
 *
 * Draws are numbered, and number n of a stream is a hash of (seed, stream, n).  So additional
 * draws from one stream do not change the draws of another.
 *
 * Needs: nothing.
 */
#ifndef WEFT_SIM_RNG_H
#define WEFT_SIM_RNG_H

#include <stdint.h>

enum sim_stream {
	SIM_DRAW_SETUP,    /* properties of this seed's world */
	SIM_DRAW_THREAD,   /* which thread runs next, and for how long */
	SIM_DRAW_NET,      /* latencies and buffer sizes */
	SIM_DRAW_ORDER,    /* order of reported events, and slack of timers */
	SIM_DRAW_BYTES,    /* sys->random() */
	SIM_DRAW_SCENARIO, /* sim_random() */
	SIM_DRAWS,
};

void     sim_rng_reset(uint64_t seed);

/* Mix two numbers into one. */
uint64_t sim_mix(uint64_t a, uint64_t b);

/* Number `ordinal` of the draws named `key`; advances no stream. */
uint64_t sim_draw_at(uint64_t key, uint64_t ordinal);

/* The next draw: all 64 bits; below `n`; from `low` to `high`; and from `low` to `high` with
 * each power of two equally likely. */
uint64_t sim_draw(enum sim_stream stream);
uint64_t sim_below(enum sim_stream stream, uint64_t n);
uint64_t sim_between(enum sim_stream stream, uint64_t low, uint64_t high);
uint64_t sim_scaled(enum sim_stream stream, uint64_t low, uint64_t high);

#endif
