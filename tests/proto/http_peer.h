/* http_peer.h - a peer for the HTTP client that does what a script says.
 *
 * Each connection to it, in the order in which they are accepted, plays one script, on a
 * threadlet of the loop under test.  What it hears is kept, as text.
 */
#ifndef WEFT_TESTS_HTTP_PEER_H
#define WEFT_TESTS_HTTP_PEER_H

#include "unit/threadlet/crew.h"

enum act {
	PLAYED,   /* the end of the script: close */
	HEAR,     /* a head; it must begin with the text */
	TAKE,     /* so many bytes of a body, which must be the text */
	SAY,      /* the text, in which %P is the port, %Q that of `other` */
	DRIP,     /* the same, byte by byte, each on its own */
	FLOOD,    /* `count` bytes 'x' */
	SINK,     /* read `count` bytes of whatever */
	WAIT,     /* until the other side ends */
	HOLD,     /* until peer_go_on() */
	RESET,    /* the connection */
};

struct step {
	enum act    act;
	const char *text;
	size_t      count;
};

#define SCRIPT(name, ...) \
	static const struct step name[] = { __VA_ARGS__, { PLAYED, NULL, 0 } }

struct peer {
	/* of the test */
	const struct step *const *scripts; /* up to a NULL */
	weft_tls    *tls;
	struct peer *other;
	/* read-only */
	weft_listener *listener;
	unsigned       port;
	int            accepted; /* connections */
	int            ended;    /* of them, those whose script was played to its end */
	int            open;     /* that are neither closed nor broken */
	char           heard[16384];
	/* private */
	weft_event     go_on;
};

/* Listen, and serve from a threadlet that does not keep the loop; and end that. */
void peer_open(struct peer *peer, weft_loop *loop);
void peer_close(struct peer *peer);

void peer_go_on(struct peer *peer);

/* The URL of `path` at this peer: one of four texts, in turn. */
const char *peer_url(const struct peer *peer, const char *path);

/* How often `text` was heard. */
int peer_heard(const struct peer *peer, const char *text);

#endif
