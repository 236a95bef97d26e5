/* window.h - what the files of the window share.  Private.
 *
 *   1. Handlers run on whatever loop has accepted their peer, also on those of servers
 *      that the window is mounted on.  Each holds the window while it runs; so do its
 *      server, and the owner until weft_admin_close().  The last to let go frees it.
 *   2. Options, panels and what is mounted are written once and then only read.  Numbers of
 *      the program are the home loop's: others ask it (home.c).
 *   3. What readers of events are told is made by one of them, under `fan`, and shared.
 */
#ifndef WEFT_ADMIN_WINDOW_H
#define WEFT_ADMIN_WINDOW_H

#include <weft/admin.h>
#include <weft/metrics.h>
#include <weft/sync.h>
#include <weft/threadlet.h>
#include "text.h"

#define WEFT__ADMIN_LOOPS_MAX   1024u /* that are told of */
#define WEFT__ADMIN_SLICE       64u   /* threadlets looked at without a break */
#define WEFT__ADMIN_TAKE_NS     (5 * WEFT_S) /* for a peer to take an event */

/* A number of the program's own. */
struct weft__admin_value {
	struct weft__admin_value *next;
	double                  (*fn)(void *arg);
	void                     *arg;
	const char               *help;
	char                      name[];
};

struct weft__admin_panel {
	struct weft__admin_panel *next; /* atomic */
	const char               *title, *html, *script;
};

/* Where the routes are. */
struct weft__admin_mount {
	weft_admin               *admin;
	struct weft__admin_mount *next;
	char                      prefix[];
};

/* What readers of events are told. */
struct weft__admin_news {
	uint32_t    owners; /* atomic */
	uint64_t    made_ns;
	const char *event;  /* its name */
	char        text[];
};

struct weft_admin {
	weft_loop                *loop;      /* its home; referenced */
	weft_http_server         *server;    /* NULL: only mounted */
	weft_listener            *listener;  /* until closed */
	weft_threadlet            serving;   /* on `server`; 0: only mounted */
	weft_addr                 addr;
	char                     *token;     /* NULL: none */
	char                     *title;
	uint32_t                  connections_max;
	size_t                    trace_max;
	uint64_t                  secret[2]; /* of numbers that stand for objects */
	struct weft__admin_value *values;    /* the home loop's */
	struct weft__admin_panel *panels;    /* atomic */
	struct weft__admin_mount *mounts;    /* under `lock` */
	uint32_t                  lock;      /* of the two lists, to write them */
	uint32_t                  holders;   /* atomic */
	uint32_t                  readers;   /* of events; atomic */
	uint32_t                  dumps;     /* of threadlets under way; atomic */
	weft_event                closing;   /* set: come to an end */
	weft_event               *gone;      /* for who closes it; or NULL */
	weft_mutex                fan;
	struct weft__admin_news  *news;      /* under `fan` */
	uint64_t                  made;      /* how often; under `fan` */
};

/* --- who may, and how it is answered ------------------------------------------- */

/* Hold and let go: rule 1. */
void weft__admin_hold(weft_admin *admin);
void weft__admin_drop(weft_admin *admin);
bool weft__admin_is_closing(weft_admin *admin);

/* Add the routes below mount->prefix.  Returns 0 or an error. */
int weft__admin_routes(struct weft__admin_mount *mount, weft_http_server *server);

/* What a request is for. */
enum weft__admin_use {
	WEFT__ADMIN_READS,
	WEFT__ADMIN_WRITES,
	WEFT__ADMIN_VISITS, /* the page itself, where a link of others may lead */
};

/* Whether the request may be answered.  Returns 0; or has answered: WEFT_EPERM, or an
 * error of that. */
int weft__admin_guard(weft_admin *admin, weft_http *http, enum weft__admin_use use);

/* Deal with ?token=.  Returns 0 if there is none; 1 if it was answered; or an error. */
int weft__admin_greet(weft_admin *admin, weft_http *http);
bool weft__admin_shows_token(weft_admin *admin, weft_http *http);
bool weft__admin_shows_bearer(weft_admin *admin, weft_http *http);

/* Headers of every answer; `policy` NULL: nothing may be loaded or run. */
int weft__admin_headers(weft_http *http, const char *policy);

/* Answer with a line of text; returns as weft_http_reply(). */
int weft__admin_say(weft_http *http, int status, const char *line);

/* Answer with the text, which is ended; or say its error. */
int weft__admin_reply(weft_http *http, const char *type, struct weft__admin_text *text);

/* Send what the text has, if that is `min` bytes or more, as a piece of a reply that has
 * begun.  Returns 0 or an error. */
int weft__admin_flush(weft_http *http, struct weft__admin_text *text, size_t min);

/* A number of the query, within bounds; `fallback` if it is not there.  False: it is no
 * number, or out of bounds. */
bool weft__admin_query(weft_http *http, const char *name, uint64_t range[2], uint64_t *out);

/* --- what is told --------------------------------------------------------------- */

/* One counter or gauge of a loop. */
struct weft__admin_count {
	const char *name, *help;
	size_t      offset; /* in weft_loop_stats */
	bool        grows;
};
extern const struct weft__admin_count weft__admin_counts[]; /* the last has no name */
extern const char *const weft__admin_phases[WEFT_PHASES];

/* Make `write` add to the text on the home loop, with a bound on how long that may take:
 * without an answer nothing is added. */
void weft__admin_at_home(weft_admin *admin,
                         void (*write)(weft_admin *admin, struct weft__admin_text *text),
                         struct weft__admin_text *text);

/* The JSON of /debug/loops. */
void weft__admin_write_loops(weft_admin *admin, struct weft__admin_text *text);

/* Whether a name is one of /metrics already. */
bool weft__admin_is_metric(const char *name);

/* Handlers; arg is the window. */
int weft__admin_page(weft_http *http, weft_admin *admin);
int weft__admin_metrics(weft_http *http, weft_admin *admin);
int weft__admin_loops(weft_http *http, weft_admin *admin);
int weft__admin_threadlets(weft_http *http, weft_admin *admin);
int weft__admin_dag(weft_http *http, weft_admin *admin);
int weft__admin_trace(weft_http *http, weft_admin *admin);
int weft__admin_events(weft_http *http, weft_admin *admin);
void weft__admin_news_drop(struct weft__admin_news *news);

#endif
