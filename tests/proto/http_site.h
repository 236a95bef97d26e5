/* http_site.h - an HTTP server on loopback, and a visitor that exchanges raw bytes with it.
 *
 * Both are threadlets of one loop.  When the visitor has returned, the listener is closed.  The
 * server must then drain, and nothing may be left.
 */
#ifndef WEFT_TEST_HTTP_SITE_H
#define WEFT_TEST_HTTP_SITE_H

#include <weft/http.h>
#include "proto/bad_requests.h"
#include "unit/threadlet/sched.h"

struct site {
	weft_http_server *server;
	weft_listener    *listener; /* NULL after it was closed */
	weft_tls         *tls;      /* NULL: plain */
	char              address[WEFT_ADDR_TEXT_MAX];
	void            (*visit)(struct site *site);
	weft_threadlet    serving;
	uint64_t          until_ns; /* the deadline of weft_http_serve() */
	int               served;   /* what weft_http_serve() returned; 1: nothing yet */
	int               calls;    /* for the test: calls of handlers */
	void             *arg;      /* for the test */
};

/* Let `prepare` set the routes, then serve with those options, and run `visit`. */
void site_run(const weft_http_server_opts *opts, void (*prepare)(struct site *site),
              void (*visit)(struct site *site));

/* The same over TLS.  The address has the scheme tcp. */
void site_run_tls(weft_tls *tls, void (*prepare)(struct site *site),
                  void (*visit)(struct site *site));

/* The same on a runtime of several loops.  The visitor runs beside the handlers, so a handler
 * must not use the test's own fields without synchronization. */
void site_run_loops(uint32_t loops, void (*prepare)(struct site *site),
                    void (*visit)(struct site *site));

/* Close the listener now. */
void site_close(struct site *site);

/* Let the current loop run for a few iterations, so that everything that is due happens. */
void turn_often(void);

/* --- visitors ---------------------------------------------------------------- */

weft_stream *site_enter(struct site *site);

void say(weft_stream *stream, const char *text, size_t size);

/* hear() reads up to and including `end`.  hear_all() reads to the end of the stream, which
 * must not be an error.  Both remove Date lines.  The result is NUL-terminated, in a buffer
 * that the next call overwrites. */
const char *hear(weft_stream *stream, const char *end);
const char *hear_all(weft_stream *stream);

/* Read to the end.  Returns whether it is a reset. */
bool hear_break(weft_stream *stream);

/* Connect, send the text, half-close, read everything, close. */
const char *ask(struct site *site, const char *text, size_t size);

#define ASK(site, text) ask((site), (text), sizeof(text) - 1)
#define SAY(stream, text) say((stream), (text), sizeof(text) - 1)

/* The status of the first reply in a text. */
int status_of(const char *reply);

/* How many times `part` occurs in `text`. */
int count_of(const char *text, const char *part);

struct weft_http_server_stats stats_of(struct site *site);

#endif
