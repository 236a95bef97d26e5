/* threadlet_play.h - random programs of threadlets, checked by threadlet_oracle.h.
 *
 * Needs: threadlet_oracle.h.  Thread: any simulated one; begin, stop and end only the first.
 */
#ifndef WEFT_SIM_THREADLET_PLAY_H
#define WEFT_SIM_THREADLET_PLAY_H

#include "sim/scenarios/threadlet_oracle.h"

enum { ACTORS = 96, PAIRS = 2 };

extern struct play {
	struct host  hosts[LOOPS];
	struct actor actors[ACTORS];
	uint32_t     used;
	uint32_t     starting[LOOPS]; /* calls that are starting an actor there */
	bool         gone[LOOPS];     /* no more starts there */
	int          pairs[LOOPS][PAIRS][2];
	bool         bounded;         /* all actors end by themselves */
	weft__a32    started, ended, over;
} play;

/* Start two loops, and some actors.  At the end, check that all actors have ended. */
void play_begin(bool bounded);
void play_end(void);

/* Start an actor in the scope of a level, or with NULL in none.  NULL: no actor is left. */
struct actor *play_start(struct level *home, uint32_t where);

/* Stop a loop.  Stop both loops, so that no actor waits for one that is not canceled, and wait. */
void play_stop(uint32_t where);
void play_stop_all(void);

/* No actor is started there from now on, so the loop can be freed. */
void play_avoid(uint32_t where);

/* Thread functions that run until `over`: one cancels, interrupts and starts actors; one uses
 * the other ends of the connections. */
void play_meddle(void *arg);
void play_move_bytes(void *arg);

#endif
