/* inner.h - the store and its clients, as seen by its files.
 *
 *   1. Everything runs on one thread.  A client's requests run in order, one at a time; requests
 *      of several clients are interleaved in the order in which data arrives.
 *   2. Replies are collected in client->out, which is written when the loop is about to wait:
 *      one write for all replies to a client.  A client that does not read gets no further
 *      replies, and is dropped at output_max.
 *   3. A client that is to be dropped is marked CLIENT_DOOMED, and dropped at the next flush,
 *      never inside a command.  So a command may write to any client.
 *   4. A command never loses a key that it uses: a key expires only when it is looked up by
 *      name.
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
	CLIENT_MULTI    = 1 << 1,  /* inside MULTI: requests are queued */
	CLIENT_BROKEN   = 1 << 2,  /* a queued request was rejected */
	CLIENT_TOUCHED  = 1 << 3,  /* a watched key was changed */
	CLIENT_EXEC     = 1 << 4,  /* EXEC is running the queue: nothing blocks */
	CLIENT_BLOCKED  = 1 << 5,  /* waits for a key */
	CLIENT_RETRY    = 1 << 6,  /* its blocked request is being retried */
	CLIENT_LAST     = 1 << 7,  /* close after the output is written */
	CLIENT_DOOMED   = 1 << 8,  /* drop at once */
	CLIENT_TRACKS   = 1 << 9,  /* is notified when a key it has read changes */
	CLIENT_NOLOOP   = 1 << 10, /* ... but not of its own changes */
	CLIENT_OPTIN    = 1 << 11, /* ... only after CACHING YES */
	CLIENT_OPTOUT   = 1 << 12, /* ... unless after CACHING NO */
	CLIENT_CACHING  = 1 << 13, /* CACHING was sent just before */
	CLIENT_SILENT   = 1 << 14, /* REPLY OFF */
	CLIENT_SKIP     = 1 << 15, /* REPLY SKIP: no reply to this request */
	CLIENT_SKIPS    = 1 << 16, /* ... nor to the next one */
	CLIENT_DIRTY    = 1 << 17, /* in store->dirty */
	CLIENT_PAUSED   = 1 << 18, /* reading from its stream is stopped */
	CLIENT_READS    = 1 << 19, /* the current command only reads: its keys are tracked */
	CLIENT_WRITES   = 1 << 20, /* client->flying is being written */
	CLIENT_ENDED    = 1 << 21, /* the peer closed its sending side; replies are still written */
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
	bool               served;   /* a blocked request has found its key */
	uint64_t           id;
	struct buffer      out, flying; /* replies to write, and being written */
	struct reader      reader;
	struct buffer      in;     /* an incomplete request, or requests that wait */
	const struct command *command; /* the one that is running */
	struct request    *queued; /* the first request queued by MULTI */
	struct request   **queued_end;
	uint32_t           queued_count;
	struct request    *waiting; /* the request of a blocked client */
	struct table       channels, patterns, watches, waits; /* tables of struct interest */
	weft_timer         timer;   /* timeout of a blocked client */
	uint64_t           redirect; /* ID of the client to notify instead; 0: none */
	struct reading    *readings; /* see tracking.c */
	struct text       *name, *library, *library_version;
	int64_t            since_ms, active_ms;
	weft_stream       *stream; /* NULL: no connection, for tests */
	weft_op            write;
	weft_span          span; /* what is being written */
	struct node       *by_id;
	struct client     *next, *before; /* list of all clients */
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
	struct heap          heap;    /* for data and client state */
	struct heap          traffic; /* for requests and replies */
	weft_store_opts      opts;
	struct reader_limits limits;
	struct text         *password;
	weft_loop           *loop;
	struct base          bases[BASES];
	int64_t              now_ms; /* wall clock, read once for each batch of input */
	int64_t            (*clock_ms)(void);
	int64_t              start_ms;
	struct client       *clients, *dirty;
	struct client       *resumed, **resumed_end; /* unblocked, with requests to run */
	uint32_t             client_count, blocked_count;
	uint64_t             last_id;
	struct table         ids; /* clients by ID */
	struct table         channels, patterns; /* topics */
	struct table         watched, blocked;   /* topics: names of keys */
	struct table         tracked, readings;  /* keys that clients have read; see tracking.c */
	size_t               tracking_used;      /* bytes used by those */
	struct text        **ready; /* keys that have appeared, and that clients wait for */
	uint32_t             ready_count, ready_room;
	struct text        **own;   /* keys to report to the running client after its reply */
	uint32_t             own_count, own_room;
	struct client       *runs;  /* the client that has a command running */
	weft_node            flush;
	weft_timer           expiry;
	bool                 expires;  /* that timer is armed */
	bool                 lazy;     /* DEBUG SET-ACTIVE-EXPIRE 0 */
	bool                 closing;
	bool                 flushes;  /* `flush` is queued */
	struct listening    *listening;
	struct buffer        spare[64]; /* output buffers */
	uint32_t             spare_count;
	uint32_t             held;      /* references: open store, clients, listeners */
	weft_store_closed_fn on_closed;
	void                *closed_arg;
	struct store_stats   stats;
};

/* --- client.c --------------------------------------------------------------- */

struct client *client_new(struct weft_store *store);
void           client_free(struct client *client);
struct client *client_by_id(const struct weft_store *store, uint64_t id);

/* Run all complete requests in `data`, which is borrowed. */
void client_feed(struct client *client, const char *data, size_t size);

/* Continue with the requests in client->in. */
void client_go_on(struct client *client);

/* Whether its requests must wait. */
bool client_waits(const struct client *client);

/* Whether replies to it are written at all. */
static inline bool
client_hears(const struct client *client)
{
	return !(client->flags & (CLIENT_SILENT | CLIENT_SKIP | CLIENT_DOOMED));
}

/* Reset the state of the client, as RESET does. */
void client_reset(struct client *client);

/* Set the client's name.  Returns false after replying with an error if it is not valid. */
bool client_rename(struct client *client, struct word name);

/* --- run.c ------------------------------------------------------------------ */

/* Run one request. */
void run_request(struct client *client, const struct word *words, size_t count);

/* Run a command that was looked up and is allowed. */
void run_command(struct client *client, const struct command *command, const struct word *words,
                 size_t count);

/* --- request.c: copies of requests ------------------------------------------- */

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

/* Have the output of the client written before the loop waits. */
void client_dirty(struct client *client);

/* Start reading its stream again, unless requests must wait. */
void client_read_on(struct client *client);

void store_flush(void *store);
int  store_accept(struct weft_store *store, weft_stream *stream);
void store_leave(struct weft_store *store); /* drops a reference */
void store_end(struct weft_store *store);   /* the last one is gone: free it, call on_closed */

/* --- store.c ----------------------------------------------------------------- */

/* Some keys expire: start the expiry timer. */
void store_expires(struct weft_store *store);

/* Free it now, including clients that have no stream.  Returns the number of bytes leaked. */
size_t store_free(struct weft_store *store);

/* --- waiting.c ---------------------------------------------------------------- */

/* Block a client until one of `count` keys appears.  `timeout_ms` 0: no timeout. */
void client_wait(struct client *client, const struct word *keys, size_t count,
                 int64_t timeout_ms);
void client_wait_end(struct client *client);

/* Unblock a client, and reply with null if `tell`. */
void client_time_out(struct client *client, bool tell);

/* A list or sorted set was created or has grown: clients that wait for it are retried after the
 * command. */
void keys_ready(struct client *client, struct word name);
void serve_ready(struct weft_store *store);

/* Run the requests that clients sent while they were blocked. */
void store_resume(struct weft_store *store);
void client_resume_end(struct client *client); /* removes it from that list */

/* --- multi.c ------------------------------------------------------------------ */

void multi_end(struct client *client);
void watch_touch(struct weft_store *store, struct base *base, struct word name);
void watch_touch_all(struct weft_store *store, struct base *base); /* NULL: all databases */

/* --- tracking.c --------------------------------------------------------------- */

void tracking_remember(struct client *client, struct word name);
void tracking_forget(struct client *client); /* it is about to be freed */
void tracking_changed(struct weft_store *store, struct client *changer, struct word name);
void tracking_flushed(struct weft_store *store);
void tracking_tell_own(struct weft_store *store);
void tracking_fini(struct weft_store *store);

/* --- names of keys with a database number as prefix --------------------------- */

struct text *scoped_name(struct weft_store *store, const struct base *base, struct word name);

#endif
