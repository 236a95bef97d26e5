/* http_play.h - random conversations with an HTTP server, checked.
 *
 * http_site.c has the handlers and checks what they see; http_play.c has the clients and checks
 * what they receive.  Both know a request by its number.
 *
 * Needs: http_world.h.  Thread: the first simulated one.
 */
#ifndef WEFT_SIM_HTTP_PLAY_H
#define WEFT_SIM_HTTP_PLAY_H

#include "sim/scenarios/http_world.h"

/* A bug that is planted once, as if the server had it. */
enum http_spoil {
	HTTP_SPOIL_NOTHING,
	HTTP_SPOIL_BYTE,   /* a byte of a reply is changed */
	HTTP_SPOIL_ORDER,  /* a reply belongs to another request */
	HTTP_SPOIL_TWICE,  /* a handler is called again */
	HTTP_SPOIL_BAD,    /* a bad request reaches a handler */
	HTTP_SPOIL_FORGET, /* no reply is sent */
	HTTP_SPOIL_CUT,    /* a reply is cut off, but the connection ends in order */
	HTTP_SPOIL_LIMIT,  /* more requests at once than allowed */
	HTTP_SPOIL_MANY,
};

/* Kinds of requests. */
enum http_ask {
	HTTP_ASK_WHOLE,   /* a reply of some size */
	HTTP_ASK_HEAD,    /* the same without its body */
	HTTP_ASK_ECHO,    /* the body is sent back, with a length or in chunks */
	HTTP_ASK_EXPECT,  /* with Expect: 100-continue */
	HTTP_ASK_PIECES,  /* a reply in chunks */
	HTTP_ASK_LENGTH,  /* in pieces, with a Content-Length */
	HTTP_ASK_EVENTS,  /* a few events */
	HTTP_ASK_SLOW,
	HTTP_ASK_IGNORE,  /* the body is not read */
	HTTP_ASK_FAIL,
	HTTP_ASK_MUTE,    /* the handler does not reply */
	HTTP_ASK_NOWHERE,
	HTTP_ASK_METHOD,  /* a method that the path does not have */
	HTTP_ASK_OPTIONS,
	HTTP_ASK_LAST,    /* from here on the request ends the connection */
	HTTP_ASK_OLD,     /* HTTP/1.0, in pieces */
	HTTP_ASK_BAD_BODY,
	HTTP_ASK_BAD,
	HTTP_ASK_ENDLESS, /* events without an end */
	HTTP_ASK_UPGRADE,
	HTTP_ASKS,
};

struct http_client;

/* How a client behaves besides sending requests. */
enum http_manner {
	HTTP_POLITE,
	HTTP_DEAF,   /* does not read for a while */
	HTTP_HALF,   /* half-closes after its last request */
	HTTP_IDLE,   /* stays when all requests are answered */
	HTTP_CHOP,   /* half-closes anywhere; clients from here on are bad */
	HTTP_VANISH, /* closes */
	HTTP_BREAK,  /* its connection is broken */
	HTTP_STALL,  /* stops sending */
	HTTP_MANNERS,
};

struct http_request {
	enum http_ask ask;
	uint32_t id;
	uint32_t bad;       /* index of the bad text */
	size_t size;        /* of its body, or the reply's */
	size_t head_end;    /* offset in what its client sends */
	size_t end;
	bool reachable;     /* nothing before it ends the connection */
	uint32_t handled;   /* number of calls of a handler */
	uint64_t ended_ns;  /* when its handler ended */
	struct http_client *client;
};

enum { HTTP_REQUESTS = 128 };

struct http_site {
	struct http_world world;
	struct http_request requests[HTTP_REQUESTS];
	uint32_t requests_used;
	bool harsh;    /* faults that the library cannot hide are on */
	bool tight;    /* limits are so tight that any client may exceed them */
	bool sheds;    /* there may be more requests than the server accepts */
	bool closing;  /* the server drains, or is about to */
	bool forced;   /* requests in progress are canceled after some seconds */
	uint32_t requests_max;
	weft__a32 inside; /* handlers that run */
	enum http_spoil spoil;
};

extern struct http_site http_site;

extern const struct http_route http_routes[];

/* Plant that bug now?  True at most once. */
bool http_spoils(enum http_spoil spoil);

/* Append a request of its kind to what the client has to send. */
enum { HTTP_OUT_MAX = 24576 };
struct http_text {
	char bytes[HTTP_OUT_MAX];
	size_t size;
};
void http_compose(struct http_request *request, struct http_text *text);

/* The status of the reply if all goes well. */
int http_status_of(const struct http_request *request);

/* The bytes of a request's body and of its reply. */
unsigned char http_byte(uint32_t id, size_t at);

/* Can the client's own behavior explain any result? */
bool http_client_is_bad(const struct http_client *client);

/* When the client left; 0: it has not. */
uint64_t http_client_left_ns(const struct http_client *client);

void http_play(enum http_spoil spoil);

#endif
