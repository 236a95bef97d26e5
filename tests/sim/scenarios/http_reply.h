/* http_reply.h - a parser of replies for simulated clients, independent of the library.
 *
 * Needs: sim.h.  Thread: any.
 */
#ifndef WEFT_SIM_HTTP_REPLY_H
#define WEFT_SIM_HTTP_REPLY_H

#include "sim/run/sim.h"

enum { HTTP_BODY_MAX = 32768 };

struct http_reply {
	int      status;
	bool     close;       /* has "Connection: close" */
	bool     chunked;
	bool     has_length;
	size_t   length;      /* its Content-Length */
	uint32_t id;          /* X-Id; UINT32_MAX: none */
	size_t   used;        /* bytes of the whole reply */
	size_t   head_used;   /* of them the header section; 0: incomplete */
	size_t   size;        /* of the body */
	unsigned char body[HTTP_BODY_MAX];
};

/* Does the reply have a body?  TOLD: as its headers say. */
enum http_body {
	HTTP_BODY_TOLD,
	HTTP_BODY_NONE, /* a reply to HEAD */
};

/* Parse a reply at the start of `data`; the run fails if it is malformed.  `ended`: no more
 * data will come.  False: more data is needed. */
bool http_reply_read(const char *data, size_t size, enum http_body body, bool ended,
                     struct http_reply *out);

#endif
