/* threadlet_play.h - random programs of threadlets, judged by threadlet_oracle.h.
 *
 * Needs: threadlet_oracle.h.  Thread: of the simulated ones any, but that begin, stop
 * and end are for the first.
 */
#ifndef WEFT_SIM_THREADLET_PLAY_H
#define WEFT_SIM_THREADLET_PLAY_H

#include "sim/scenarios/threadlet_oracle.h"

enum { ACTORS = 96, PAIRS = 2 };

extern struct play {
	struct host  hosts[LOOPS];
	struct actor actors[ACTORS];
	uint32_t     used;
	uint32_t     starting[LOOPS]; /* inside of a start on that loop */
	bool         gone[LOOPS];     /* no more starts there */
	int          pairs[LOOPS][PAIRS][2];
	bool         bounded;         /* all end by themselves */
	weft__a32    started, ended, over;
} play;

/* Two loops that run, and some actors; at the end, of which each has ended. */
void play_begin(bool bounded);
void play_end(void);

/* Start an actor in the scope of a level, or alone; NULL: none is left. */
struct actor *play_start(struct level *home, uint32_t where);

/* Stop a loop; stop both, so that nobody waits for one who is not told, and wait. */
void play_stop(uint32_t where);
void play_stop_all(void);

/* Nobody starts anything there any more: it can be freed. */
void play_avoid(uint32_t where);

/* Threads, until it is over: one that cancels, interrupts and starts; one at the other
 * ends of the connections. */
void play_meddle(void *arg);
void play_move_bytes(void *arg);

#endif
