/* redis_play.h - random commands by a Redis client, judged.
 *
 * Needs: oracle.h.  Thread: the first simulated one.
 */
#ifndef WEFT_SIM_REDIS_PLAY_H
#define WEFT_SIM_REDIS_PLAY_H

/* What is done wrong on purpose, once, as if the client did it. */
enum redis_spoil {
	REDIS_SPOIL_NOTHING,
	REDIS_SPOIL_PAIR,  /* a reply is another's */
	REDIS_SPOIL_AGAIN, /* a command is repeated that must not be */
	REDIS_SPOIL_ERROR, /* one fails for no reason */
	REDIS_SPOIL_TWICE, /* one has two ends */
	REDIS_SPOIL_WAKE,  /* who waits is not told */
};

void redis_play(enum redis_spoil spoil);

#endif
