/* stream_play.h - random talks over streams, judged.
 *
 * Needs: oracle.h.  Thread: the first simulated one.
 */
#ifndef WEFT_SIM_STREAM_PLAY_H
#define WEFT_SIM_STREAM_PLAY_H

/* What is done wrong on purpose, once, as if the library did it. */
enum spoil {
	SPOIL_NOTHING,
	SPOIL_BYTE,  /* one is lost */
	SPOIL_END,   /* the end is told though there is more */
	SPOIL_CLOSE, /* a close is told twice */
	SPOIL_ERROR, /* an error that nothing has caused */
	SPOIL_WAKE,  /* who waits is not told */
	SPOIL_CONNECT, /* fails for another reason than it has */
	SPOIL_ACCEPT,
	SPOIL_ORDER,  /* on_close before the last write has ended */
	SPOIL_INSIDE, /* on_close inside the close */
};

void stream_play(enum spoil spoil);

/* Streams of a loop that stops; only SPOIL_ORDER and SPOIL_INSIDE are for it. */
void stream_stop_play(enum spoil spoil);

#endif
