/* http_play.h - random talks with an HTTP server, judged.
 *
 * http_site.c has the handlers and what they must see; http_play.c has the clients and
 * what they must.  A request is known to both by its number.
 *
 * Needs: http_world.h.  Thread: the first simulated one.
 */
#ifndef WEFT_SIM_HTTP_PLAY_H
#define WEFT_SIM_HTTP_PLAY_H

#include "sim/scenarios/http_world.h"

/* What is done wrong on purpose, once, as if the server did it. */
enum http_spoil {
	HTTP_SPOIL_NOTHING,
	HTTP_SPOIL_BYTE,   /* of a reply is another */
	HTTP_SPOIL_ORDER,  /* a reply is that to another request */
	HTTP_SPOIL_TWICE,  /* a handler is called again */
	HTTP_SPOIL_BAD,    /* what is refused comes to a handler */
	HTTP_SPOIL_FORGET, /* no reply is sent */
	HTTP_SPOIL_CUT,    /* a reply ends in order in its middle */
	HTTP_SPOIL_LIMIT,  /* more requests at once than may be */
	HTTP_SPOIL_MANY,
};

/* What is asked for. */
enum http_ask {
	HTTP_ASK_WHOLE,   /* a reply of some size */
	HTTP_ASK_HEAD,    /* without its body */
	HTTP_ASK_ECHO,    /* the body back, by its length or in chunks */
	HTTP_ASK_EXPECT,  /* may it be sent? */
	HTTP_ASK_PIECES,  /* a reply in chunks */
	HTTP_ASK_LENGTH,  /* in pieces, of a told length */
	HTTP_ASK_EVENTS,  /* some of them */
	HTTP_ASK_SLOW,
	HTTP_ASK_IGNORE,  /* the body is not read */
	HTTP_ASK_FAIL,
	HTTP_ASK_MUTE,    /* nobody replies */
	HTTP_ASK_NOWHERE,
	HTTP_ASK_METHOD,  /* that is not there */
	HTTP_ASK_OPTIONS,
	HTTP_ASK_LAST,    /* from here on the connection ends by it */
	HTTP_ASK_OLD,     /* HTTP/1.0, in pieces */
	HTTP_ASK_BAD_BODY,
	HTTP_ASK_BAD,
	HTTP_ASK_ENDLESS, /* events */
	HTTP_ASK_UPGRADE,
	HTTP_ASKS,
};

struct http_client;

/* What a client does besides asking. */
enum http_manner {
	HTTP_POLITE,
	HTTP_DEAF,   /* does not read for a while */
	HTTP_HALF,   /* ends its side when it has asked */
	HTTP_IDLE,   /* stays when all was answered */
	HTTP_CHOP,   /* ends its side somewhere; all from here on are bad */
	HTTP_VANISH, /* closes */
	HTTP_BREAK,  /* is cut off */
	HTTP_STALL,  /* sends no more */
	HTTP_MANNERS,
};

struct http_request {
	enum http_ask ask;
	uint32_t id;
	uint32_t bad;       /* which */
	size_t size;        /* of its body, or the reply's */
	size_t head_end;    /* where in what its client sends */
	size_t end;
	bool reachable;     /* nothing before it ends the connection */
	uint32_t handled;   /* times */
	uint64_t ended_ns;  /* its handler has */
	struct http_client *client;
};

enum { HTTP_REQUESTS = 128 };

struct http_site {
	struct http_world world;
	struct http_request requests[HTTP_REQUESTS];
	uint32_t requests_used;
	bool harsh;    /* what cannot be helped may happen */
	bool tight;    /* limits are so that anybody may exceed them */
	bool sheds;    /* there may be more requests than it takes */
	bool closing;  /* it drains, or will in a moment */
	bool forced;   /* after some seconds what it has in hand is cancelled */
	uint32_t requests_max;
	weft__a32 inside; /* handlers */
	enum http_spoil spoil;
};

extern struct http_site http_site;

extern const struct http_route http_routes[];

/* Is it time to do that one thing wrong? */
bool http_spoils(enum http_spoil spoil);

/* Put a request of a kind behind what the client has to send. */
enum { HTTP_OUT_MAX = 24576 };
struct http_text {
	char bytes[HTTP_OUT_MAX];
	size_t size;
};
void http_compose(struct http_request *request, struct http_text *text);

/* The status that it is answered with, if all goes well. */
int http_status_of(const struct http_request *request);

/* The bytes of a request's body and of its reply. */
unsigned char http_byte(uint32_t id, size_t at);

/* Can its client be blamed for whatever it gets? */
bool http_client_is_bad(const struct http_client *client);

/* When it left; 0: it is there. */
uint64_t http_client_left_ns(const struct http_client *client);

void http_play(enum http_spoil spoil);

#endif
