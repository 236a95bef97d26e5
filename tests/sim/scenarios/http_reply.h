/* http_reply.h - replies as a client sees them, read without the library.
 *
 * Needs: sim.h.  Thread: any.
 */
#ifndef WEFT_SIM_HTTP_REPLY_H
#define WEFT_SIM_HTTP_REPLY_H

#include "sim/run/sim.h"

enum { HTTP_BODY_MAX = 32768 };

struct http_reply {
	int      status;
	bool     close;       /* it is said to be the last */
	bool     chunked;
	bool     has_length;
	size_t   length;      /* that is told */
	uint32_t id;          /* X-Id; UINT32_MAX: none */
	size_t   used;        /* bytes that it is */
	size_t   head_used;   /* of them for the head; 0: not seen whole */
	size_t   size;        /* of the body */
	unsigned char body[HTTP_BODY_MAX];
};

/* How the body of the reply to be read ends, if it does not say it itself. */
enum http_body {
	HTTP_BODY_TOLD,
	HTTP_BODY_NONE, /* of HEAD */
};

/* Read one at the front of `data`; fails on what is none.  `ended` is whether that is all
 * that comes.  False: more is needed. */
bool http_reply_read(const char *data, size_t size, enum http_body body, bool ended,
                     struct http_reply *out);

#endif
