/* clock.h - virtual time, and what is to happen at which time.
 *
 * Needs: rng.h.
 */
#ifndef WEFT_SIM_CLOCK_H
#define WEFT_SIM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct sim_clock {
	uint64_t now_ns;
	uint64_t next_ns;  /* of the first event; UINT64_MAX if there is none */
	uint64_t start_ns;
	uint64_t read_ns;  /* what a reading of the clock costs */
};

extern struct sim_clock sim_clock;

/* Something that happens at a time, if `*version` is still `wanted` then: that
 * is how the past of an object is kept from its future. */
struct sim_event {
	uint64_t        at_ns;
	uint64_t        order;   /* private: of events with equal times */
	void          (*fn)(void *object, uint64_t arg);
	void           *object;
	uint64_t        arg;
	const uint64_t *version; /* in memory that lasts as long as the run */
	uint64_t        wanted;
};

void sim_clock_reset(void);
void sim_event_add(const struct sim_event *event);

/* Let events happen whose time has come. */
void sim_clock_run_due(void);

/* Move to the next event and let it happen; false if there will never be
 * one. */
bool sim_clock_skip(void);

static inline void
sim_clock_pass(uint64_t ns)
{
	sim_clock.now_ns += ns;
	if (sim_clock.now_ns >= sim_clock.next_ns)
		sim_clock_run_due();
}

#endif
