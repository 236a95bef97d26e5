/* stream_play.h - random conversations over streams, checked.
 *
 * Needs: oracle.h.  Thread: the first simulated one.
 */
#ifndef WEFT_SIM_STREAM_PLAY_H
#define WEFT_SIM_STREAM_PLAY_H

/* A bug that is planted once, as if the library had it. */
enum spoil {
	SPOIL_NOTHING,
	SPOIL_BYTE,  /* a byte is lost */
	SPOIL_END,   /* the end is reported although there is more */
	SPOIL_CLOSE, /* a close is reported twice */
	SPOIL_ERROR, /* an error without a cause */
	SPOIL_WAKE,  /* a waiter is not woken */
	SPOIL_CONNECT, /* fails with a wrong error */
	SPOIL_ACCEPT,
	SPOIL_ORDER,  /* on_close before the last write has ended */
	SPOIL_INSIDE, /* on_close inside the close */
};

void stream_play(enum spoil spoil);

/* Streams of a loop that stops; uses only SPOIL_ORDER and SPOIL_INSIDE. */
void stream_stop_play(enum spoil spoil);

#endif
