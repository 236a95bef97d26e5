/* weft/admin.h - the window into a running program.
 *
 * One call serves the live page and what it shows: /metrics for Prometheus,
 * /debug/loops, /debug/threadlets, /debug/dag, /debug/trace and /events.  It only reads.
 *
 *   1. Without a token only peers on the loopback and on Unix sockets are answered, and
 *      only by the names localhost, *.localhost, 127.x.x.x and [::1]: browsers say for these
 *      alone which site asks.  With
 *      a token whoever shows it is answered, from anywhere, and nobody else: as
 *      "Authorization: Bearer TOKEN", or once as ?token=TOKEN, for which a browser gets a
 *      cookie.  Behind a proxy there must be one: all whom it lets in come from this machine
 *      then.  What says that it was passed on (Forwarded, X-Forwarded-For, Via, ...) is
 *      refused without, but not every proxy says it.  Browsers send a cookie to every port of
 *      the host that has set it: what listens on another one can read the token.
 *   2. What a browser asks for on behalf of another site is refused, by 403 with the reason,
 *      but for links to the page.
 *   3. While nobody looks there is nothing to be done: no timer, nothing is observed.  With
 *      readers of /events what they are told is put together once for all of them, and
 *      loops and graphs are observed (weft_loop_observe(), weft_dag_observe()) until some
 *      seconds after the last has gone.
 *   4. All is bounded: connections, readers, what is listed, how long a peer may take.  A
 *      reader of events that has not taken one for five seconds is dropped; threadlets are
 *      listed 64 at a time, with a turn of the loop between.
 *
 * Threadlets: /debug/threadlets is the text of weft_dump(); ?format=json the same as JSON,
 * q=TEXT those in which it stands, loop=N those of a loop, sort=since|stack|name, max=N (1000,
 * at most 20,000).  /debug/trace?seconds=N (1 to 60) records that long, or until its reader
 * goes; one at a time until it has been sent, others are answered 409.  /events?ms=N (250 to
 * 10,000) has another period than a second.
 *
 * Metrics: what struct weft_loop_stats counts is weft_loop_turns_total,
 * weft_loop_posts_refused_total and so on, with labels loop and name; for loops that are
 * observed there are weft_loop_turn_seconds and weft_loop_lag_seconds (label stat: p50, p99,
 * max, ...) and weft_loop_phase_seconds_total.
 *
 * Link with weft_admin, weft_http and weft.
 */
#ifndef WEFT_ADMIN_H
#define WEFT_ADMIN_H

#include <weft/addr.h>
#include <weft/base.h>
#include <weft/http.h>

WEFT_BEGIN

typedef struct weft_admin weft_admin;

typedef struct weft_admin_opts {
	weft_loop  *loop;            /* default: the caller's */
	const char *token;           /* copied; see 1 */
	const char *title;           /* of the page; copied; default: the program's name */
	uint32_t    connections_max; /* of readers of events; default 32; 8 for others */
	size_t      trace_max;       /* bytes; default 64 MiB */
	uint64_t    spare[4];
} weft_admin_opts;

/* Serve the window at `address` ("tcp://127.0.0.1:7070", "unix:/run/x.sock"; NULL: only
 * where it is mounted), in the background, until closed or the loop stops.  A connected
 * peer counts as work of the loop that it is served on.  A dead socket at a Unix path
 * is replaced.  The window refers to its loop until it is closed.
 * Returns 0 and fills `out`, WEFT_EPERM for an open address without a token,
 * WEFT_EADDRINUSE, ...; weft_detail() says more.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_open(const char *address, const weft_admin_opts *opts,
                             weft_admin **out);

/* Add the same routes below `prefix` ("", "/admin") to a server of the program's own,
 * whatever loops it serves on.  Its bounds of connections and time count for them.
 * Returns 0, WEFT_EEXIST, WEFT_EINVAL, WEFT_ENOMEM, WEFT_EBUSY while it serves.
 * Thread: any, before serving.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_mount(weft_admin *admin, weft_http_server *server,
                              const char *prefix);

/* Add a number of the program's own to page and /metrics; `fn` reads it on the
 * admin's loop.  `name`, copied as `help` is, is one of Prometheus; ending in _total it is
 * a counter, else a gauge.
 * Returns 0, WEFT_EEXIST, WEFT_EINVAL, WEFT_ENOMEM.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_add_metric(weft_admin *admin, const char *name, const char *help,
                            double (*fn)(void *arg), void *arg);

/* Put a panel of the program's own on the page, after those that are there: `html`, in
 * which a <style> may stand, and `script`, which may be NULL.  The texts are borrowed as
 * long as there is the window, and trusted: only the title is escaped.
 * Returns 0, WEFT_EINVAL, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_add_panel(weft_admin *admin, const char *title,
                              const char *html, const char *script);

/* Guard a route of the program's own as those of the window are; with `writes` the
 * request must also be a POST that a browser says to come from the page itself (Origin or
 * Sec-Fetch-Site), or that shows the token in its header.
 * Returns 0; or has answered the request, and returns WEFT_EPERM: the handler then returns
 * 0.  Or as weft_http_reply().
 * Thread: loop of `http`.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_admin_authorize(weft_admin *admin, weft_http *http, bool writes);

/* Where it listens, with the port that the system chose.
 * Returns 0, WEFT_ENOENT if it does not.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_local(weft_admin *admin, weft_addr *out);

/* Close it: streams of events end, and replies in progress have five seconds to.  Servers that
 * it is mounted on must not serve any more, nor a handler call it.  No function of
 * weft_admin_add_metric() is called once it has returned.  Takes it; accepts NULL; not cancellable.
 * On another loop that is WEFT_EWRONGLOOP, told by weft_detail() alone, and does nothing.
 * Thread: the window's loop.  Blocks: suspends in a threadlet, else no.  Since: 0.1. */
WEFT_API void weft_admin_close(weft_admin *admin);

WEFT_END
#endif
