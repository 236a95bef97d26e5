/* weft/admin.h - the admin endpoint: dashboard, metrics and debugging over HTTP.
 *
 * One call serves a live dashboard and its data: /metrics for Prometheus, /debug/loops,
 * /debug/threadlets, /debug/dag, /debug/trace and /events.  All of it only reads.
 *
 *   1. Without a token only peers on the loopback and on Unix sockets are answered, and only
 *      under the host names localhost, *.localhost, 127.x.x.x and [::1]: for these alone
 *      browsers report which site sends the request.  With a token every request must present
 *      it, from any peer: as "Authorization: Bearer TOKEN", or once as ?token=TOKEN, for which
 *      a browser gets a cookie.
 *   2. Requests that a browser sends for another site are refused with 403 and the reason,
 *      except for links to the dashboard.
 *   3. Without readers the endpoint has no timer and observes nothing.  With readers of /events
 *      it makes each update once for all of them, and observes loops and graphs
 *      (weft_loop_observe(), weft_dag_observe()) until some seconds after the last reader has
 *      gone.
 *   4. Everything is limited: connections, readers, the length of lists, the time a peer may
 *      take.  A reader of events that has not read for five seconds is dropped.  Threadlets are
 *      listed 64 at a time, with a loop iteration between.
 *
 * A token is required behind a proxy, because every proxied request appears to come from this
 * machine.  Without a token, requests with a proxy's header (Forwarded, X-Forwarded-For, Via,
 * ...) are refused, but not every proxy adds one.  Browsers send a cookie to every port of the
 * host that set it: a server on another port can read the token.
 *
 * /debug/threadlets is the text of weft_dump(), with ?format=json the same as JSON; q=TEXT
 * selects entries that contain TEXT, loop=N those of a loop, sort=since|stack|name orders them,
 * max=N (default 1000, at most 20,000) limits them.  /debug/trace?seconds=N (1 to 60) records
 * that long, or until its reader disconnects; until it has been sent, others get 409.
 * /events?ms=N (250 to 10,000) sets the period; default one second.
 *
 * /metrics has the counters of struct weft_loop_stats as weft_loop_turns_total,
 * weft_loop_posts_refused_total and so on, with labels loop and name.  Observed loops also have
 * weft_loop_turn_seconds and weft_loop_lag_seconds (label stat: p50, p99, max, ...) and
 * weft_loop_phase_seconds_total.
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
	const char *title;           /* of the dashboard; copied; default: the program's name */
	uint32_t    connections_max; /* readers of events; default 32; 8 for other requests */
	size_t      trace_max;       /* of a trace, in bytes; default 64 MiB */
	uint64_t    spare[4];
} weft_admin_opts;

/* Serve the admin endpoint at `address` ("tcp://127.0.0.1:7070", "unix:/run/x.sock"; NULL: only
 * where it is mounted), as background work, until it is closed or the loop stops.  A connected
 * peer counts as work of the loop that serves it.  A dead socket at a Unix path is replaced.
 * The endpoint references its loop until it is closed.
 * Returns 0 and fills `out`, WEFT_EPERM for a non-local address without a token,
 * WEFT_EADDRINUSE, ...; weft_detail() has the reason.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_open(const char *address, const weft_admin_opts *opts,
                             weft_admin **out);

/* Add the same routes below `prefix` ("", "/admin") to the program's own server, whatever loops
 * it serves on.  That server's limits of connections and time apply to them.
 * Returns 0, WEFT_EEXIST, WEFT_EINVAL, WEFT_ENOMEM, WEFT_EBUSY while it serves.
 * Thread: any, before serving.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_mount(weft_admin *admin, weft_http_server *server,
                              const char *prefix);

/* Add a metric of the program to the dashboard and to /metrics; `fn` reads it on the endpoint's
 * loop.  `name` must be a Prometheus name; one that ends in _total is a counter, others are
 * gauges.  Copies `name` and `help`.
 * Returns 0, WEFT_EEXIST, WEFT_EINVAL, WEFT_ENOMEM.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_add_metric(weft_admin *admin, const char *name, const char *help,
                            double (*fn)(void *arg), void *arg);

/* Add a panel of the program to the dashboard, after those that are there: `html`, which may
 * contain a <style>, and `script`, which may be NULL.  The texts are borrowed as long as the
 * endpoint exists, and are trusted: only the title is escaped.
 * Returns 0, WEFT_EINVAL, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_add_panel(weft_admin *admin, const char *title,
                              const char *html, const char *script);

/* Protect a route of the program like the routes of the endpoint.  With `writes` the request
 * must also be a POST that, according to the browser, comes from the dashboard itself (Origin
 * or Sec-Fetch-Site), or that has the token in its Authorization header.
 * Returns 0; WEFT_EPERM if it has refused the request and sent the reply, and the handler must
 * return 0; or as weft_http_reply().
 * Thread: loop of `http`.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_admin_authorize(weft_admin *admin, weft_http *http, bool writes);

/* Get the address where the endpoint listens, with the port that the system chose.
 * Returns 0, WEFT_ENOENT if it does not listen.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_local(weft_admin *admin, weft_addr *out);

/* Close the endpoint: event streams end, and replies in progress get five seconds.  Servers
 * that it is mounted on must no longer serve, and no handler may call it.  Functions of
 * weft_admin_add_metric() are not called after it has returned.  Takes the endpoint; accepts
 * NULL; not cancelable.  On another loop the call does nothing; weft_detail() then has the
 * message of WEFT_EWRONGLOOP.
 * Thread: the endpoint's loop.  Blocks: suspends in a threadlet, else no.  Since: 0.1. */
WEFT_API void weft_admin_close(weft_admin *admin);

WEFT_END
#endif
