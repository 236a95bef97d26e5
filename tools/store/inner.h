/* inner.h - the store and its clients, as its files see them.
 *
 *   1. All runs on one thread.  A client's requests run in their order, one at a time; those of
 *      several clients take turns by what has arrived from each.
 *   2. Replies go to client->out, which is written when the loop is about to wait: one write for
 *      all that a client has asked for meanwhile.  Who does not read is not answered further, and
 *      is dropped at output_max.
 *   3. A client that is to go is marked CLIENT_DOOMED and goes at the next flush, never inside of
 *      a command: so a command may tell any client anything.
 *   4. Keys are never freed under a command: what expires does so when it is looked up by name.
 */
#ifndef STORE_INNER_H
#define STORE_INNER_H

#include <weft/listener.h>
#include <weft/timer.h>
#include "keys.h"
#include "reader.h"
#include "store.h"
#include "topic.h"

enum {
	CLIENT_KNOWN    = 1 << 0,  /* has authenticated, or need not */
	CLIENT_MULTI    = 1 << 1,  /* requests are queued */
	CLIENT_BROKEN   = 1 << 2,  /* one of those was refused */
	CLIENT_TOUCHED  = 1 << 3,  /* a watched key was changed */
	CLIENT_EXEC     = 1 << 4,  /* queued requests run: nothing blocks */
	CLIENT_BLOCKED  = 1 << 5,  /* waits for a key */
	CLIENT_RETRY    = 1 << 6,  /* its request is tried again */
	CLIENT_LAST     = 1 << 7,  /* goes when what was said is written */
	CLIENT_DOOMED   = 1 << 8,  /* goes at once */
	CLIENT_TRACKS   = 1 << 9,  /* is told when what it has read changes */
	CLIENT_NOLOOP   = 1 << 10, /* ... but not by itself */
	CLIENT_OPTIN    = 1 << 11, /* ... if it said CACHING YES just before */
	CLIENT_OPTOUT   = 1 << 12, /* ... if it did not say CACHING NO just before */
	CLIENT_CACHING  = 1 << 13, /* it said so */
	CLIENT_SILENT   = 1 << 14, /* REPLY OFF */
	CLIENT_SKIP     = 1 << 15, /* REPLY SKIP: this one */
	CLIENT_SKIPS    = 1 << 16, /* ... the next one */
	CLIENT_DIRTY    = 1 << 17, /* in store->dirty */
	CLIENT_PAUSED   = 1 << 18, /* its stream is not read */
	CLIENT_READS    = 1 << 19, /* the command that runs only reads: it is tracked */
	CLIENT_WRITES   = 1 << 20, /* client->flying is being written */
	CLIENT_ENDED    = 1 << 21, /* it says no more, and hears what it has asked for */
	CLIENT_RESUMES  = 1 << 22, /* in store->resumed */
};

struct buffer {
	char  *data;
	size_t size, room;
};

struct request;

struct client {
	struct weft_store *store;
	struct base       *base;
	uint32_t           flags;
	uint8_t            protocol; /* 2 or 3 */
	bool               served;   /* a request that waited has found its key */
	uint64_t           id;
	struct buffer      out, flying; /* said, and being written */
	struct reader      reader;
	struct buffer      in;     /* of a request that came in pieces; or waits */
	const struct command *command; /* that runs */
	struct request    *queued; /* by MULTI, the first of them */
	struct request   **queued_end;
	uint32_t           queued_count;
	struct request    *waiting; /* the request of one who is blocked */
	struct table       channels, patterns, watches, waits; /* interests */
	weft_timer         timer;   /* of one who is blocked */
	uint64_t           redirect; /* client that is told instead, by id; 0: none */
	struct reading    *readings; /* of tracking.c */
	struct text       *name, *library, *library_version;
	int64_t            since_ms, active_ms;
	weft_stream       *stream; /* NULL: only bytes, for tests */
	weft_op            write;
	weft_span          span; /* that is being written */
	struct node       *by_id;
	struct client     *next, *before; /* all */
	struct client     *next_dirty, *next_resumed;
};

struct listening {
	struct weft_store *store;
	weft_listener     *listener;
	struct listening  *next;
};

struct store_stats {
	uint64_t connections, commands, hits, misses, expired, rejected;
	uint64_t in_bytes, out_bytes;
};

struct weft_store {
	struct heap          heap;    /* of data, and what is known of clients */
	struct heap          traffic; /* of requests and replies on their way */
	weft_store_opts      opts;
	struct reader_limits limits;
	struct text         *password;
	weft_loop           *loop;
	struct base          bases[BASES];
	int64_t              now_ms; /* the wall clock, read once for what arrived together */
	int64_t            (*clock_ms)(void);
	int64_t              start_ms;
	struct client       *clients, *dirty;
	struct client       *resumed, **resumed_end; /* who waited, and goes on */
	uint32_t             client_count, blocked_count;
	uint64_t             last_id;
	struct table         ids; /* clients by their id */
	struct table         channels, patterns; /* topics */
	struct table         watched, blocked;   /* topics: names of keys */
	struct table         tracked, readings;  /* what clients have read; tracking.c */
	size_t               tracking_used;      /* bytes of that */
	struct text        **ready; /* keys that somebody waits for, and has come */
	uint32_t             ready_count, ready_room;
	struct text        **own;   /* keys of which the client who runs is told afterwards */
	uint32_t             own_count, own_room;
	struct client       *runs;  /* whose command runs */
	weft_node            flush;
	weft_timer           expiry;
	bool                 expires;  /* that timer is armed */
	bool                 lazy;     /* DEBUG SET-ACTIVE-EXPIRE 0 */
	bool                 closing;
	bool                 flushes;  /* the node `flush` is queued */
	struct listening    *listening;
	struct buffer        spare[64]; /* for output */
	uint32_t             spare_count;
	uint32_t             held;      /* reasons to stay: clients, listeners */
	weft_store_closed_fn on_closed;
	void                *closed_arg;
	struct store_stats   stats;
};

/* --- client.c --------------------------------------------------------------- */

struct client *client_new(struct weft_store *store);
void           client_free(struct client *client);
struct client *client_by_id(const struct weft_store *store, uint64_t id);

/* Run what can be run of bytes that have arrived, which are borrowed. */
void client_feed(struct client *client, const char *data, size_t size);

/* Go on with what waits in client->in. */
void client_go_on(struct client *client);

/* Whether its requests have to wait. */
bool client_waits(const struct client *client);

/* Whether what is said to it goes anywhere. */
static inline bool
client_hears(const struct client *client)
{
	return !(client->flags & (CLIENT_SILENT | CLIENT_SKIP | CLIENT_DOOMED));
}

/* Forget all that it has asked for, as RESET does. */
void client_reset(struct client *client);

/* Whether `name` is good for a client's name, which it has then; else it was told. */
bool client_rename(struct client *client, struct word name);

/* --- run.c ------------------------------------------------------------------ */

/* Run one request. */
void run_request(struct client *client, const struct word *words, size_t count);

/* Run a command that was looked up and may be run. */
void run_command(struct client *client, const struct command *command, const struct word *words,
                 size_t count);

/* --- request.c: requests that are kept --------------------------------------- */

struct request {
	struct request       *next;
	const struct command *command;
	size_t                bytes;
	size_t                count;
	struct word           words[];
};

struct request *request_keep(struct heap *heap, const struct command *command,
                             const struct word *words, size_t count);
void            request_free(struct heap *heap, struct request *request);

/* --- connection.c ------------------------------------------------------------ */

/* Have what was said written before the loop waits. */
void client_dirty(struct client *client);

/* Read its stream again, if nothing has to wait. */
void client_read_on(struct client *client);

void store_flush(void *store);
int  store_accept(struct weft_store *store, weft_stream *stream);
void store_leave(struct weft_store *store); /* one who held it has gone */
void store_end(struct weft_store *store);   /* all have: free it, and tell so */

/* --- store.c ----------------------------------------------------------------- */

/* Some keys expire: look after them from time to time. */
void store_expires(struct weft_store *store);

/* Free it now, with clients that have no stream.  Returns the bytes that were lost. */
size_t store_free(struct weft_store *store);

/* --- waiting.c ---------------------------------------------------------------- */

/* Have a client wait for one of `count` keys.  `timeout_ms` 0: for ever. */
void client_wait(struct client *client, const struct word *keys, size_t count,
                 int64_t timeout_ms);
void client_wait_end(struct client *client);

/* Have it wait no more, and be told that nothing has come, if it is to be told. */
void client_time_out(struct client *client, bool tell);

/* A list or sorted set has come or grown: who waits for it is tried after the command. */
void keys_ready(struct client *client, struct word name);
void serve_ready(struct weft_store *store);

/* Run what clients have asked for while they waited. */
void store_resume(struct weft_store *store);
void client_resume_end(struct client *client); /* it is none of those any more */

/* --- multi.c ------------------------------------------------------------------ */

void multi_end(struct client *client);
void watch_touch(struct weft_store *store, struct base *base, struct word name);
void watch_touch_all(struct weft_store *store, struct base *base); /* NULL: of all */

/* --- tracking.c --------------------------------------------------------------- */

void tracking_remember(struct client *client, struct word name);
void tracking_forget(struct client *client); /* it is about to go */
void tracking_changed(struct weft_store *store, struct client *changer, struct word name);
void tracking_flushed(struct weft_store *store);
void tracking_tell_own(struct weft_store *store);
void tracking_fini(struct weft_store *store);

/* --- names of keys with the number of their database -------------------------- */

struct text *scoped_name(struct weft_store *store, const struct base *base, struct word name);

#endif
