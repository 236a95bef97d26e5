/* http_server.h - the server, shared by its files.  Private.
 *
 * The files: http_server.c (creating, serving, draining), route.c (choosing the handler), conn.c
 * (one connection, exchange after exchange), answer.c (one exchange on it), http_reply.c (replies),
 * http_event.c (server-sent events), http_file.c and open_files.c (static files).
 *
 *   1. A connection is a threadlet of its own, and an entry in the list of its service.  It
 *      leaves the list before it closes its stream.  After weft_http_upgrade() the handler owns
 *      the stream, and the connection, still in the list, is WEFT__HTTP_TAKEN.
 *   2. A service lives until weft_listener_serve() returns, so longer than its connections.
 *   3. A drain interrupts a stream only while the state of its connection is
 *      WEFT__HTTP_IDLE, and a connection checks for a drain after it has set that state.  The
 *      interrupt is sent under the lock, after the state was set to WEFT__HTTP_NOTIFIED.  So a
 *      connection that is no longer idle either was not interrupted and will not be, or sees
 *      WEFT__HTTP_NOTIFIED and clears an interrupt that its last wait has not consumed.
 *   4. In the list, connections that were notified of a drain are behind those that were not.
 *      So the list can be notified one by one, and the lock is released after each.  No
 *      threadlet is canceled under the lock.
 *   5. With idle_max, a connection is in one of two waiting lists while no request of it is in
 *      progress: while it waits for a head, and while it waits for its peer to close.  The
 *      first of a list has waited longest.  To evict a connection, another one removes it from
 *      its list and cancels its threadlet.
 *
 * Thread: a connection belongs to its loop; a service and the counters are shared by all
 * threads.
 */
#ifndef WEFT_HTTP_SERVER_H
#define WEFT_HTTP_SERVER_H

#include "http/message/exchange.h"
#include <weft/scope.h>
#include <weft/threadlet.h>
#include <weft/timer.h>
#include "base/proto_list.h"
#include "base/proto_lock.h"
#include "base/proto_refs.h"

/* --- routes ------------------------------------------------------------------- */

struct weft__http_route {
	struct weft__http_route *next;
	weft_http_fn             fn;
	void                    *arg;
	const char              *method; /* "" for all methods; in memory behind the struct */
	const char              *names[WEFT__HTTP_PARAMS]; /* of parameters; likewise */
	uint32_t                 method_size;
	uint32_t                 count;  /* number of names */
};

/* A segment of patterns, and the segments that may follow. */
struct weft__http_node {
	struct weft__http_node  *next;     /* another segment after the same prefix */
	struct weft__http_node  *literals; /* literal segments that follow */
	struct weft__http_node  *param;    /* the {x} that follows, or NULL */
	struct weft__http_route *here;     /* patterns that end here */
	struct weft__http_route *rest;     /* patterns that end with {x...} */
	uint32_t                 size;
	char                     text[];
};

int  weft__http_route_add(struct weft__http_node *root, const char *pattern,
                          weft_http_fn fn, void *arg);
void weft__http_routes_free(struct weft__http_node *root);

/* Find the route of a request, whose path was decoded, and store the parameters in `http`.
 * NULL if there is none. */
const struct weft__http_route *weft__http_route_find(const struct weft__http_node *root,
                                                     weft_http *http);

/* The methods that the routes of a path support, as "GET, HEAD, OPTIONS"; those of all paths if
 * the path is "*".  "" if there is no such path, NULL without memory. */
const char *weft__http_route_methods(const struct weft__http_node *root, weft_http *http);

/* --- servers ------------------------------------------------------------------ */

/* Counters, written by any thread. */
struct weft__http_counts {
	uint64_t connections, requests, failed;
	uint64_t bad_requests, rejected_503, timed_out, idle_closed;
	uint32_t open, active, serving;
};

struct weft_http_server {
	struct weft__http_node      *root;
	struct weft__http_limits     limits;
	weft_http_server_opts        opts;   /* with defaults; times are at most 292 years, so
	                                      * that they can be added to a time */
	struct weft__http_counts     counts;
	struct weft__http_files     *files;  /* cache of open files, or NULL */
};

#define weft__http_count(counter, number) \
	((void)__atomic_fetch_add((counter), (number), __ATOMIC_RELAXED))

/* --- connections -------------------------------------------------------------- */

/* What a drain does to a connection. */
enum weft__http_state {
	WEFT__HTTP_BUSY,  /* nothing: it checks by itself */
	WEFT__HTTP_IDLE,  /* interrupt its stream */
	WEFT__HTTP_NOTIFIED,  /* nothing: it was interrupted */
	WEFT__HTTP_TAKEN, /* cancel it: its handler has no deadline, and no op watches its stream */
};

struct weft__http_conn {
	struct weft__link          link;      /* in the list of its service */
	struct weft__link          wait_link; /* in a waiting list; rule 5 */
	struct weft__http_io     io;
	struct weft__http_service *service;
	weft_http_server          *server;
	weft_loop                 *loop;
	weft_threadlet             self;
	uint64_t                   since_ns; /* when it began */
	uint32_t                   state;    /* enum weft__http_state, atomic */
	uint32_t                   round;    /* last round of a drain that notified it; under
	                                      * the lock */
	weft_scope                 scope;    /* for handlers */
	uint64_t                   scope_since_ns; /* when its deadline was last set */
	struct weft__http_watch   *watch;    /* for an event stream, or NULL */
	uint32_t                   requests; /* not yet added to the counters */
	bool  scoped;  /* the scope is open */
	bool  endless; /* the deadline was removed */
	bool  active;  /* counted as active */
	bool  shed;    /* more than requests_max were active */
	bool  used;    /* had an exchange before */
	bool  taken;   /* the stream was handed over */
	bool  cut;     /* to be closed by a reset */
	bool  linger;  /* the peer may still be sending */
	bool  gone;    /* the peer of an event stream is gone, or is to be dropped */
	bool  proven;  /* it had a reply with a status below 400 */
	bool  evicted; /* it is to be closed; under the lock */
};

/* One call of weft_http_serve(). */
struct weft__http_service {
	weft_http_server       *server;
	uint32_t                draining; /* atomic */
	uint64_t                drained_ns; /* when the drain began; written before `draining` */
	struct weft__spin       lock;     /* for the lists and `forced` */
	bool                    forced;   /* connections have been canceled */
	uint32_t                round;    /* number of the last round of notifications */
	struct weft__link       conns;
	struct weft__link       waiting[2]; /* not proven, proven */
	uint32_t                waiting_count;
	weft_timer              force;    /* until the remaining connections are canceled */
	uint64_t                force_ns; /* when it fires, or WEFT_NEVER */
	uint64_t                deadline_ns; /* of the call */
};

/* Run a connection on the calling threadlet; takes `peer`.  `service` is its service. */
int weft__http_conn_run(weft_stream *peer, void *service);

/* Add a connection to the list; and remove it.  _enter() cancels the connection if the others were
 * canceled already. */
void weft__http_service_enter(struct weft__http_conn *conn);
void weft__http_service_leave(struct weft__http_conn *conn);

/* The connection begins to wait; and has stopped waiting.  _end() returns false if the
 * connection is to be closed.  Rule 5. */
void weft__http_wait_begin(struct weft__http_conn *conn);
bool weft__http_wait_end(struct weft__http_conn *conn);

static inline bool
weft__http_draining(const struct weft__http_conn *conn)
{
	return __atomic_load_n(&conn->service->draining, __ATOMIC_SEQ_CST);
}

/* The connection is busy again: after this a drain does not touch its stream. */
void weft__http_conn_busy(struct weft__http_conn *conn);

static inline void
weft__http_conn_state(struct weft__http_conn *conn, enum weft__http_state state)
{
	__atomic_store_n(&conn->state, (uint32_t)state, __ATOMIC_SEQ_CST);
}

static inline struct weft__http_conn *
weft__http_conn_of(weft_http *http)
{
	return http->owner;
}

/* --- answer.c ------------------------------------------------------------------ */

/* Reply to a request, or to a head that could not be received.  True: the connection continues. */
bool weft__http_answer(struct weft__http_conn *conn, weft_http *http);
bool weft__http_answer_fault(struct weft__http_conn *conn, weft_http *http, int error);

/* Bytes have moved on a connection: its handler gets request_ns again. */
void weft__http_conn_progress(struct weft__http_io *io);

/* --- http_reply.c, http_event.c ------------------------------------------------------------ */

/* Reply with a short page that shows the status. */
int weft__http_reply_status(weft_http *http, int status, uint64_t deadline_ns);

/* Remove the handler's deadline. */
void weft__http_lift_deadline(struct weft__http_conn *conn);

/* Watch the connection of an event stream: cancel the handler's scope when the peer is gone or
 * the server drains, and drop the rest of the body of `http`.  `http` must live until the watch
 * is stopped.  _stop() returns 0, or an error after which the connection must not be read. */
int weft__http_watch_start(struct weft__http_conn *conn, weft_http *http);
int weft__http_watch_stop(struct weft__http_conn *conn);

/* --- open_files.c -------------------------------------------------------------- */

void weft__http_files_free(struct weft__http_files *files);

#endif
