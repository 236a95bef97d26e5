/* server.h - the server, as its files share it.  Private.
 *
 * The files: server.c (making, serving, draining), route.c (who answers), conn.c (one
 * connection, exchange after exchange), answer.c (one exchange on it), reply.c (replies),
 * event.c (server-sent events), file.c and open_files.c (static files).
 *
 *   1. A connection is a threadlet of its own, and an entry in the list of its service,
 *      which it leaves before its stream is closed or given away.
 *   2. A service lives until its last connection has left: holders is 0, and `ended` is
 *      finished by whoever made it so, who does not look at it any more.
 *   3. Who drains interrupts a stream only while its connection says that it may be
 *      (WEFT__HTTP_IDLE), and a connection looks for the drain after it has said so.  He
 *      does it under the lock, and notes it first (WEFT__HTTP_TOLD): so a connection that
 *      is not idle any more either was not interrupted and will not be, or knows of it,
 *      and takes back what was not meant for its next wait.
 *   4. Who was told of a drain stands behind who was not: the list can be told in slices,
 *      and the lock is held for one.
 *   5. With idle_max a connection is in one of two lists while no request of it is under way:
 *      while it waits for a header section, and for its peer to close.  The first of a list
 *      has waited longest.  A connection that is taken out to be closed is cancelled.
 *
 * Thread: a connection is its loop's; a service and the counters are everybody's.
 */
#ifndef WEFT_HTTP_SERVER_H
#define WEFT_HTTP_SERVER_H

#include "exchange.h"
#include <weft/scope.h>
#include <weft/threadlet.h>
#include <weft/timer.h>

/* --- routes ------------------------------------------------------------------- */

struct weft__http_route {
	struct weft__http_route *next;
	weft_http_fn             fn;
	void                    *arg;
	const char              *method; /* "" for all; its memory and that of the names */
	const char              *names[WEFT__HTTP_PARAMS]; /* is behind the struct */
	uint32_t                 method_size;
	uint32_t                 count;  /* of names */
};

/* A segment of patterns, and what may follow. */
struct weft__http_node {
	struct weft__http_node  *next;     /* another with the same front */
	struct weft__http_node  *literals; /* that follow */
	struct weft__http_node  *param;    /* {x} that follows, or NULL */
	struct weft__http_route *here;     /* patterns that end here */
	struct weft__http_route *rest;     /* patterns that end with {x...} */
	uint32_t                 size;
	char                     text[];
};

int  weft__http_route_add(struct weft__http_node *root, const char *pattern,
                          weft_http_fn fn, void *arg);
void weft__http_routes_free(struct weft__http_node *root);

/* Who answers the request, its parameters being put into `http`; NULL: nobody.  The path
 * was decoded. */
const struct weft__http_route *weft__http_route_find(const struct weft__http_node *root,
                                                     weft_http *http);

/* The methods that its path is answered for, "GET, HEAD, OPTIONS", of all paths if that is
 * "*"; "" if there is no such path, NULL without memory. */
const char *weft__http_route_methods(const struct weft__http_node *root, weft_http *http);

/* --- servers ------------------------------------------------------------------ */

/* What is counted, by any thread. */
struct weft__http_counts {
	uint64_t connections, requests, faults, shed, slow, idle, failed;
	uint32_t open, active, serving;
};

struct weft_http_server {
	struct weft__http_node      *root;
	struct weft__http_limits     limits;
	weft_http_server_opts        opts;   /* defaults filled in, times of at most 292
	                                      * years: they can be added to a time */
	struct weft__http_counts     counts;
	struct weft__http_files     *files;  /* open ones, or NULL */
};

#define weft__http_count(counter, number) \
	((void)__atomic_fetch_add((counter), (number), __ATOMIC_RELAXED))

/* --- connections -------------------------------------------------------------- */

/* What who drains may do to a connection. */
enum weft__http_state {
	WEFT__HTTP_BUSY,  /* nothing: it looks by itself */
	WEFT__HTTP_IDLE,  /* interrupt its stream */
	WEFT__HTTP_TOLD,  /* nothing: that was done */
	WEFT__HTTP_TAKEN, /* cancel it: it has no end of its own */
};

struct weft__http_conn {
	struct weft__http_conn    *prev, *next;
	struct weft__http_conn    *wait_prev, *wait_next; /* while it waits; rule 5 */
	struct weft__http_wire     wire;
	struct weft__http_service *service;
	weft_http_server          *server;
	weft_loop                 *loop;
	weft_threadlet             self;
	uint64_t                   since_ns; /* it began */
	uint32_t                   state;    /* enum weft__http_state, atomic */
	uint32_t                   round;    /* of telling that has come by; the list's lock */
	weft_scope                 scope;    /* of handlers */
	uint64_t                   scope_since_ns;
	struct weft__http_watch   *watch;    /* of an event stream, or NULL */
	uint32_t                   requests; /* not yet counted */
	bool  scoped;  /* the scope is open */
	bool  endless; /* its deadline was lifted */
	bool  active;  /* counted as such */
	bool  shed;    /* there were too many */
	bool  used;    /* had an exchange */
	bool  taken;   /* the stream is another's */
	bool  cut;     /* to be ended by a reset */
	bool  linger;  /* the peer may still be sending */
	bool  gone;    /* the peer of an event stream is, or has to be */
	bool  proven;  /* it was answered below 400 */
	bool  waits;   /* it is in a list of those that wait; the lock's */
	bool  evicted; /* it was taken out to be closed; the lock's */
};

/* One call of weft_http_serve(). */
struct weft__http_service {
	weft_http_server       *server;
	uint32_t                draining; /* atomic */
	uint64_t                drained_ns; /* when that began; written before it is set */
	uint32_t                holders;  /* atomic: connections, and who serves */
	uint32_t                lock;     /* of the list */
	uint32_t                round;    /* of telling it */
	struct weft__http_conn *first, *last;
	struct weft__http_line {
		struct weft__http_conn *first, *last;
	} waiting[2];                     /* not proven, proven */
	uint32_t                waiting_count;
	weft_op                 ended;
	weft_timer              force;    /* until those who are left are cancelled */
	uint64_t                force_ns; /* its end, or WEFT_NEVER */
};

/* Begin a connection on a threadlet of its own; takes `peer`. */
int weft__http_conn_start(struct weft__http_service *service, weft_stream *peer);

/* Be in the list; and leave it. */
void weft__http_service_enter(struct weft__http_conn *conn);
void weft__http_service_leave(struct weft__http_conn *conn);

/* The connection begins to wait; and has ended to: false if it is to be closed.  Rule 5. */
void weft__http_wait_begin(struct weft__http_conn *conn);
bool weft__http_wait_end(struct weft__http_conn *conn);

/* One connection less, or who serves. */
void weft__http_service_drop(struct weft__http_service *service);

static inline bool
weft__http_draining(const struct weft__http_conn *conn)
{
	return __atomic_load_n(&conn->service->draining, __ATOMIC_SEQ_CST);
}

/* It is busy again: who drains lets go of its stream. */
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

/* The head of an exchange has come, or not: answer.  True: the connection goes on. */
bool weft__http_answer(struct weft__http_conn *conn, weft_http *http);
bool weft__http_answer_fault(struct weft__http_conn *conn, weft_http *http, int error);

/* Bytes have moved on the wire of a connection: its handler has request_ns again. */
void weft__http_conn_progress(struct weft__http_wire *wire);

/* --- reply.c, event.c ------------------------------------------------------------ */

/* Reply with a short page that says the status. */
int weft__http_reply_status(weft_http *http, int status, uint64_t deadline_ns);

/* The handler needs no deadline from now on: it ends when it will. */
void weft__http_lift(struct weft__http_conn *conn);

/* Have the handler's scope cancelled when the peer is gone, or the server drains, and drop
 * what is left of the body of `http`, which lives until it is stopped; and no
 * longer: 0, or an error after which nobody may read. */
int weft__http_watch_start(struct weft__http_conn *conn, weft_http *http);
int weft__http_watch_stop(struct weft__http_conn *conn);

/* --- open_files.c -------------------------------------------------------------- */

void weft__http_files_free(struct weft__http_files *files);

#endif
