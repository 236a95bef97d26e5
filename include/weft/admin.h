/* weft/admin.h - the admin endpoint: dashboard, metrics and debugging over HTTP.
 *
 * One call serves a live dashboard and its data: /metrics for Prometheus, /debug/loops,
 * /debug/threadlets, /debug/dag, /debug/trace and /events.  All of it only reads.
 *
 *   1. Without a token the endpoint answers only peers on Unix sockets and on the loopback, and
 *      the latter only under the host names localhost, *.localhost, 127.x.x.x and [::1]: another
 *      site can make any other name refer to this machine (DNS rebinding).  With a token it
 *      answers any peer, but every request must present the token: as "Authorization: Bearer
 *      TOKEN", or as ?token=TOKEN.  A browser that sends ?token=TOKEN once gets a cookie and
 *      needs no token after that.
 *   2. Requests that a browser sends for another site are refused with 403 and the reason,
 *      except for links to the dashboard.
 *   3. A reader is a peer that receives /events.  Without readers the endpoint has no timer and
 *      observes nothing.  With readers it makes each update once for all of them, and observes
 *      loops and graphs (weft_loop_observe(), weft_dag_observe()) until some seconds after the
 *      last reader has gone.
 *   4. Everything is limited: connections, readers, the length of lists, the time a peer may
 *      take.  The endpoint drops a reader that has not read for five seconds.  It lists
 *      threadlets 64 at a time, and lets a loop iteration pass in between.
 *
 * A token is required behind a proxy, because every proxied request appears to come from this
 * machine.  Without a token, requests with a proxy's header (Forwarded, X-Forwarded-For, Via,
 * ...) are refused, but not every proxy adds one.  Browsers send a cookie to every port of the
 * host that set it: a server on another port can read the token.
 *
 * /debug/threadlets is the text of weft_dump(); ?format=json gives the same as JSON.  q=TEXT
 * selects entries that contain TEXT, loop=N selects those of one loop, sort=since|stack|name
 * orders them, and max=N (default 1000 as JSON, else 20,000; at most 20,000) limits their number.
 * /debug/trace?seconds=N (1 to 60) records a trace for that time, or until its reader
 * disconnects.  Until that trace has been sent, other requests for a trace get 409.
 * /events?ms=N (250 to 10,000) sets the period of updates; the default is one second.
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
#include <weft/histogram.h>
#include <weft/http.h>

WEFT_BEGIN

typedef struct weft_admin weft_admin;

typedef struct weft_admin_opts {
	weft_loop  *loop;            /* default: the caller's */
	const char *token;           /* copied; see 1 */
	const char *title;           /* of the dashboard; copied; default: the program's name */
	uint32_t    connections_max; /* limit of readers of /events; default 32.  For other requests
	                              * there are at least 8 connections more. */
	size_t      trace_max;       /* limit of a trace, in bytes; default 64 MiB */
	uint64_t    spare[4];        /* must be zero: room for later versions */
} weft_admin_opts;

/* Serve the admin endpoint at `address` ("tcp://127.0.0.1:7070", "unix:/run/x.sock") until the
 * endpoint is closed or the loop stops.  With NULL it has no address of its own and serves only
 * where weft_admin_mount() adds it.  The endpoint is background work, but a connected peer keeps
 * the loop that serves it alive.  A Unix socket at that path which no process uses is replaced.
 * The endpoint references its loop until it is closed.
 * Returns 0 and fills `out`, WEFT_EPERM for a non-local address without a token,
 * WEFT_EADDRINUSE, ...; weft_detail() has the reason.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_open(const char *address, const weft_admin_opts *opts,
                             weft_admin **out);

/* Add the same routes below `prefix` ("", "/admin") to the program's own server, which may serve
 * on any loops.  The limits of that server apply to these routes.
 * Returns 0, WEFT_EEXIST, WEFT_EINVAL, WEFT_ENOMEM, WEFT_EBUSY while it serves.
 * Thread: any, before serving.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_mount(weft_admin *admin, weft_http_server *server,
                              const char *prefix);

typedef enum weft_admin_type {
	WEFT_ADMIN_GAUGE,   /* goes up and down */
	WEFT_ADMIN_COUNTER, /* only grows; the dashboard shows its rate, too */
	WEFT_ADMIN_HISTOGRAM, /* a weft_histogram; a histogram of Prometheus, too */
} weft_admin_type;

/* How the dashboard shows a value.  A histogram has buckets from 1 us to 100 s if its unit is
 * WEFT_ADMIN_SECONDS, else from 1 to 10^9. */
typedef enum weft_admin_unit {
	WEFT_ADMIN_NUMBER,  /* as a plain number */
	WEFT_ADMIN_SECONDS, /* the values in a histogram are nanoseconds */
	WEFT_ADMIN_BYTES,
} weft_admin_unit;

/* A metric of the program.  Exactly one of `read`, `value` and `histogram` must be set. */
typedef struct weft_admin_metric {
	const char     *name; /* a Prometheus name, copied; must end in _total for a counter, and
	                       * only for a counter.  /metrics has a histogram as NAME_bucket,
	                       * NAME_sum, NAME_count. */
	const char     *help; /* one sentence, copied; default: the name */
	weft_admin_type type;
	weft_admin_unit unit;
	double        (*read)(void *arg); /* returns the value; called on the endpoint's loop */
	void           *arg;
	const uint64_t *value;    /* borrowed; the endpoint reads it by an atomic load */
	const weft_histogram *histogram; /* borrowed */
	uint64_t        spare[4]; /* must be zero: room for later versions */
} weft_admin_metric;

/* Add a metric of the program to the dashboard and to /metrics.  Copies `metric`.
 * Returns 0, WEFT_EEXIST, WEFT_EINVAL, WEFT_ENOMEM.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_add_metric(weft_admin *admin, const weft_admin_metric *metric);

/* Add a panel of the program to the dashboard, after the existing panels: `html`, which may
 * contain a <style>, and `script`, which may be NULL.  The texts are borrowed as long as the
 * endpoint exists, and are trusted: only the title is escaped.
 * Returns 0, WEFT_EINVAL, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_add_panel(weft_admin *admin, const char *title,
                              const char *html, const char *script);

/* Protect a route of the program like the routes of the endpoint.  With `writes` the request
 * must also be a POST, and either have the token in its Authorization header or, according to
 * the browser (Origin or Sec-Fetch-Site), come from the dashboard itself.
 * Returns 0 if the request is allowed; WEFT_EPERM if it is not: the call has sent the reply
 * then, and the handler must return 0; or an error as weft_http_reply().
 * Thread: loop of `http`.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_admin_authorize(weft_admin *admin, weft_http *http, bool writes);

/* Get the address where the endpoint listens, with the port that the system chose.
 * Returns 0, WEFT_ENOENT if it does not listen.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_admin_local(weft_admin *admin, weft_addr *out);

/* Close the endpoint: event streams end, and replies in progress get five seconds.  Before this,
 * servers on which the endpoint is mounted must have ended.  A handler must not close the
 * endpoint.  Metrics of the program are not read after this has returned.  Takes the endpoint;
 * accepts NULL; not cancelable.  On another loop the call does nothing, and weft_detail() then
 * has the message of WEFT_EWRONGLOOP.
 * Thread: the endpoint's loop.  Blocks: suspends in a threadlet, else no.  Since: 0.1. */
WEFT_API void weft_admin_close(weft_admin *admin);

WEFT_END
#endif
