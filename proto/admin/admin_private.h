/* admin_private.h - shared by the files of the admin endpoint.  Private.
 *
 *   1. A handler runs on the loop of its connection, which need not be the owner loop.  Each
 *      running handler holds a reference to the admin endpoint; so do the threadlet that serves
 *      the endpoint's own server, and the program until weft_admin_close().  The last release
 *      frees the endpoint.
 *   2. Options, panels and mounts are written once and only read afterwards.  Metrics of the
 *      program belong to the owner loop; other loops request them from it (admin_owner.c).
 *   3. One of the readers of events makes each snapshot, under `broadcast`, and all readers
 *      share it.
 */
#ifndef WEFT_ADMIN_PRIVATE_H
#define WEFT_ADMIN_PRIVATE_H

#include <weft/admin.h>
#include <weft/metrics.h>
#include <weft/sync.h>
#include <weft/threadlet.h>
#include "admin_text.h"
#include "base/proto_lock.h"
#include "base/proto_refs.h"

#define WEFT__ADMIN_LOOPS_MAX   1024u /* limit of loops that are listed */
#define WEFT__ADMIN_SLICE       64u   /* threadlets listed without a break */
#define WEFT__ADMIN_TAKE_NS     (5 * WEFT_S) /* for a peer to accept an event */

/* A metric of the program. */
struct weft__admin_value {
	struct weft__admin_value *next;
	weft_admin_metric         metric; /* its name and help are in `name` */
	char                      name[];
};

struct weft__admin_panel {
	struct weft__admin_panel *next; /* atomic */
	const char               *title, *html, *script;
};

/* One place where the routes were added. */
struct weft__admin_mount {
	weft_admin               *admin;
	struct weft__admin_mount *next;
	char                      prefix[];
};

/* A snapshot, sent to the readers of events. */
struct weft__admin_snapshot {
	struct weft__refs refs;
	uint64_t    made_ns;
	const char *event;  /* the name of the event */
	char        text[];
};

struct weft_admin {
	weft_loop                *loop;      /* the owner loop; referenced */
	weft_http_server         *server;    /* NULL: only mounted */
	weft_listener            *listener;  /* until closed */
	weft_threadlet            serving;   /* threadlet of `server`; 0: only mounted */
	weft_addr                 addr;
	char                     *token;     /* NULL: none */
	char                     *title;
	uint32_t                  connections_max;
	size_t                    trace_max;
	uint64_t                  secret[2]; /* key for the numbers shown instead of addresses */
	struct weft__admin_value *values;    /* owner loop only */
	struct weft__admin_panel *panels;    /* atomic */
	struct weft__admin_mount *mounts;    /* under `lock` */
	struct weft__spin         lock;      /* for writing panels and mounts */
	struct weft__refs         refs;
	uint32_t                  readers;   /* of events; atomic */
	uint32_t                  dumps;     /* listings of threadlets in progress; atomic */
	weft_event                closing;   /* set when the endpoint begins to close */
	weft_event               *gone;      /* for a waiting weft_admin_close(); or NULL */
	weft_mutex                broadcast;
	struct weft__admin_snapshot *snapshot; /* under `broadcast` */
	uint64_t                  made;      /* number of snapshots; under `broadcast` */
};

/* --- access control and replies ------------------------------------------------ */

/* Take and release a reference: rule 1. */
void weft__admin_ref(weft_admin *admin);
void weft__admin_unref(weft_admin *admin);
bool weft__admin_is_closing(weft_admin *admin);

/* Add the routes below mount->prefix.  Returns 0 or an error. */
int weft__admin_routes(struct weft__admin_mount *mount, weft_http_server *server);

/* The purpose of a request. */
enum weft__admin_use {
	WEFT__ADMIN_READS,
	WEFT__ADMIN_WRITES,
	WEFT__ADMIN_VISITS, /* the page itself, which other sites may link to */
};

/* Check whether the request may be handled.  Returns 0 if so; WEFT_EPERM after a reply that
 * refuses the request; or an error. */
int weft__admin_guard(weft_admin *admin, weft_http *http, enum weft__admin_use use);

/* Handle ?token=.  Returns 0 if the request has none or none is required; 1 if the call has
 * replied; or an error. */
int weft__admin_token_login(weft_admin *admin, weft_http *http);

/* Whether the request has the token: in Authorization or in a cookie; _bearer: in Authorization. */
bool weft__admin_shows_token(weft_admin *admin, weft_http *http);
bool weft__admin_shows_bearer(weft_admin *admin, weft_http *http);

/* Set the headers that all replies have.  `policy` is the Content-Security-Policy; NULL: one by
 * which nothing may be loaded or run. */
int weft__admin_headers(weft_http *http, const char *policy);

/* Reply with a line of text.  Returns as weft_http_reply(). */
int weft__admin_reply_line(weft_http *http, int status, const char *line);

/* Reply with the text, which is freed.  Returns the text's error if it has one, or as
 * weft_http_reply(). */
int weft__admin_reply(weft_http *http, const char *type, struct weft__admin_text *text);

/* Send the text as a piece of a reply that has begun, if it has `min` bytes or more.  Returns 0
 * or an error. */
int weft__admin_flush(weft_http *http, struct weft__admin_text *text, size_t min);

/* Read a number of the query, within `range`, into *out, which stays unchanged if there is no
 * such parameter.  False: it is not a number, or out of range. */
bool weft__admin_query(weft_http *http, const char *name, uint64_t range[2], uint64_t *out);

/* --- content -------------------------------------------------------------------- */

/* One counter or gauge of a loop. */
struct weft__admin_count {
	const char *name, *help;
	size_t      offset; /* in struct weft_loop_stats */
	bool        grows;
};
extern const struct weft__admin_count weft__admin_counts[]; /* the last has no name */
extern const char *const weft__admin_phases[WEFT_PHASES];

/* Let `write` add to the text on the owner loop.  If that loop does not begin with it in time,
 * nothing is added. */
void weft__admin_on_owner(weft_admin *admin,
                         void (*write)(weft_admin *admin, struct weft__admin_text *text),
                         struct weft__admin_text *text);

/* The JSON of /debug/loops. */
void weft__admin_write_loops(weft_admin *admin, struct weft__admin_text *text);

/* Read a metric of the program that is not a histogram, on the owner loop. */
double weft__admin_read(const struct weft__admin_value *value);

/* The names of a metric's type and unit, as in JSON; that of the type also as in /metrics. */
const char *weft__admin_type_name(weft_admin_type type);
const char *weft__admin_unit_name(weft_admin_unit unit);

/* Handlers. */
int weft__admin_page(weft_http *http, weft_admin *admin);
int weft__admin_metrics(weft_http *http, weft_admin *admin);
int weft__admin_loops(weft_http *http, weft_admin *admin);
int weft__admin_threadlets(weft_http *http, weft_admin *admin);
int weft__admin_dag(weft_http *http, weft_admin *admin);
int weft__admin_trace(weft_http *http, weft_admin *admin);
int weft__admin_events(weft_http *http, weft_admin *admin);
void weft__admin_snapshot_drop(struct weft__admin_snapshot *snapshot);

#endif
