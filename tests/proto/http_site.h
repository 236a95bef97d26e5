/* http_site.h - a server on the loopback, and a visitor that speaks bytes with it.
 *
 * Both are threadlets of one loop.  When the visitor has returned, the listener is
 * closed; the server must then drain, and nothing may be left.
 */
#ifndef WEFT_TEST_HTTP_SITE_H
#define WEFT_TEST_HTTP_SITE_H

#include <weft/http.h>
#include "proto/bad_requests.h"
#include "unit/threadlet/crew.h"

struct site {
	weft_http_server *server;
	weft_listener    *listener; /* NULL once it was closed */
	weft_tls         *tls;      /* NULL: plain */
	char              address[WEFT_ADDR_TEXT_MAX];
	void            (*visit)(struct site *site);
	weft_threadlet    serving;
	uint64_t          until_ns; /* the deadline of serving */
	int               served;   /* what that returned; 1: not yet */
	int               calls;    /* the test's: of handlers */
	void             *arg;      /* the test's */
};

/* Serve with those options, after `prepare` has set the routes, and visit. */
void site_run(const weft_http_server_opts *opts, void (*prepare)(struct site *site),
              void (*visit)(struct site *site));

/* The same over TLS; the address is that of TCP. */
void site_run_tls(weft_tls *tls, void (*prepare)(struct site *site),
                  void (*visit)(struct site *site));

/* The same on a runtime of several loops, the visitor beside those who serve; no handler
 * may use the test's own fields without care. */
void site_run_loops(uint32_t loops, void (*prepare)(struct site *site),
                    void (*visit)(struct site *site));

/* Close the listener now. */
void site_close(struct site *site);

/* Let the caller's loop go on for a few turns: all that is due happens. */
void turn_often(void);

/* --- visitors ---------------------------------------------------------------- */

weft_stream *site_enter(struct site *site);

void say(weft_stream *stream, const char *text, size_t size);

/* What comes next, up to and with `end`; all of it, up to the end of the stream,
 * which is a proper one.  Without lines of Date.  Ended by NUL, in memory that the next call
 * uses again. */
const char *hear(weft_stream *stream, const char *end);
const char *hear_all(weft_stream *stream);

/* Whether what comes ends by a reset. */
bool hear_break(weft_stream *stream);

/* Enter, say that, say no more, hear everything, leave. */
const char *ask(struct site *site, const char *text, size_t size);

#define ASK(site, text) ask((site), (text), sizeof(text) - 1)
#define SAY(stream, text) say((stream), (text), sizeof(text) - 1)

/* The status of the first reply in what was heard. */
int status_of(const char *reply);

/* How often `part` stands in `text`. */
int count_of(const char *text, const char *part);

struct weft_http_server_stats stats_of(struct site *site);

#endif
