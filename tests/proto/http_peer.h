/* http_peer.h - a scripted server for tests of the HTTP client.
 *
 * Each accepted connection, in order, plays one script, on a threadlet of the loop under test.
 * The request headers that it receives are kept as text.
 */
#ifndef WEFT_TESTS_HTTP_PEER_H
#define WEFT_TESTS_HTTP_PEER_H

#include "unit/threadlet/sched.h"

enum act {
	PLAYED,   /* end of the script: close */
	HEAR,     /* read a header section; it must begin with the text */
	TAKE,     /* read as many bytes of a body; they must be the text */
	SAY,      /* send the text; %P is the port, %Q that of `other` */
	DRIP,     /* the same, byte by byte, each in its own write */
	FLOOD,    /* send `count` bytes 'x' */
	SINK,     /* read and discard `count` bytes */
	WAIT,     /* wait for the end of the stream */
	HOLD,     /* wait for peer_go_on() */
	RESET,    /* reset the connection */
};

struct step {
	enum act    act;
	const char *text;
	size_t      count;
};

#define SCRIPT(name, ...) \
	static const struct step name[] = { __VA_ARGS__, { PLAYED, NULL, 0 } }

struct peer {
	/* set by the test */
	const struct step *const *scripts; /* ends with NULL */
	weft_tls    *tls;
	struct peer *other;
	/* read-only */
	weft_listener *listener;
	unsigned       port;
	int            accepted; /* accepted connections */
	int            ended;    /* connections whose script was played to its end */
	int            open;     /* connections that are neither closed nor reset */
	char           heard[16384];
	/* private */
	weft_event     go_on;
};

/* Listen, and serve on a threadlet that does not keep the loop alive; stop listening; end HOLD. */
void peer_open(struct peer *peer, weft_loop *loop);
void peer_close(struct peer *peer);

void peer_go_on(struct peer *peer);

/* The URL of `path` at this peer, in one of four static buffers in turn. */
const char *peer_url(const struct peer *peer, const char *path);

/* How many times `text` was received. */
int peer_heard(const struct peer *peer, const char *text);

#endif
