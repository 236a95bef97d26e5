/* http_fetch_play.h - random fetches by an HTTP client, checked.
 *
 * Needs: http_world.h.  Thread: the first simulated one.
 */
#ifndef WEFT_SIM_HTTP_FETCH_PLAY_H
#define WEFT_SIM_HTTP_FETCH_PLAY_H

/* A bug that is planted once, as if the client had it. */
enum http_fetch_spoil {
	HTTP_FETCH_SPOIL_NOTHING,
	HTTP_FETCH_SPOIL_BYTE,  /* a byte of a reply is changed */
	HTTP_FETCH_SPOIL_END,   /* a reply that was cut off ends as if it were complete */
	HTTP_FETCH_SPOIL_TWICE, /* a request ends twice */
	HTTP_FETCH_SPOIL_AGAIN, /* a request that must not be repeated is sent again */
	HTTP_FETCH_SPOIL_ERROR, /* a request fails without a cause */
	HTTP_FETCH_SPOIL_MUTE,  /* an error has no text */
	HTTP_FETCH_SPOIL_KEEP,  /* an exchange is not closed */
	HTTP_FETCH_SPOIL_POOL,  /* connections are not reused */
	HTTP_FETCH_SPOIL_WAKE,  /* a waiter is not woken */
};

void http_fetch_play(enum http_fetch_spoil spoil);

#endif
