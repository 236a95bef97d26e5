/* redis_play.h - random commands by a Redis client, checked.
 *
 * Needs: oracle.h.  Thread: the first simulated one.
 */
#ifndef WEFT_SIM_REDIS_PLAY_H
#define WEFT_SIM_REDIS_PLAY_H

/* A bug that is planted once, as if the client had it. */
enum redis_spoil {
	REDIS_SPOIL_NOTHING,
	REDIS_SPOIL_PAIR,  /* a reply belongs to another command */
	REDIS_SPOIL_AGAIN, /* a command that must not be repeated is repeated */
	REDIS_SPOIL_ERROR, /* a command fails without a cause */
	REDIS_SPOIL_TWICE, /* a command ends twice */
	REDIS_SPOIL_WAKE,  /* a waiter is not woken */
};

void redis_play(enum redis_spoil spoil);

#endif
