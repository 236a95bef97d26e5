/* clock.h - virtual time, and a queue of events.
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
	uint64_t read_ns;  /* cost of reading the clock */
};

extern struct sim_clock sim_clock;

/* A function to be called at a time, if `*version` still equals `wanted` then.  So an event
 * that was meant for an object's earlier state has no effect. */
struct sim_event {
	uint64_t        at_ns;
	uint64_t        order;   /* private: orders events with equal times */
	void          (*fn)(void *object, uint64_t arg);
	void           *object;
	uint64_t        arg;
	const uint64_t *version; /* in memory that lives until the run ends */
	uint64_t        wanted;
};

void sim_clock_reset(void);
void sim_event_add(const struct sim_event *event);

/* Run the events that are due. */
void sim_clock_run_due(void);

/* Advance to the next event and run it; false if there is none. */
bool sim_clock_skip(void);

static inline void
sim_clock_pass(uint64_t ns)
{
	sim_clock.now_ns += ns;
	if (sim_clock.now_ns >= sim_clock.next_ns)
		sim_clock_run_due();
}

#endif
