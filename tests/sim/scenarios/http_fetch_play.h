/* http_fetch_play.h - random fetches by an HTTP client, judged.
 *
 * Needs: http_world.h.  Thread: the first simulated one.
 */
#ifndef WEFT_SIM_HTTP_FETCH_PLAY_H
#define WEFT_SIM_HTTP_FETCH_PLAY_H

/* What is done wrong on purpose, once, as if the client did it. */
enum http_fetch_spoil {
	HTTP_FETCH_SPOIL_NOTHING,
	HTTP_FETCH_SPOIL_BYTE,  /* of a reply is another */
	HTTP_FETCH_SPOIL_END,   /* a reply ends in its middle as if it were whole */
	HTTP_FETCH_SPOIL_TWICE, /* a request has two ends */
	HTTP_FETCH_SPOIL_AGAIN, /* one is sent again that must not be */
	HTTP_FETCH_SPOIL_ERROR, /* one fails for no reason */
	HTTP_FETCH_SPOIL_MUTE,  /* or does not say why */
	HTTP_FETCH_SPOIL_KEEP,  /* an exchange is not given back */
	HTTP_FETCH_SPOIL_POOL,  /* connections are not used again */
	HTTP_FETCH_SPOIL_WAKE,  /* who waits is not told */
};

void http_fetch_play(enum http_fetch_spoil spoil);

#endif
