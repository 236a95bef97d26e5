/* redis_client.h - the Redis client's internals: commands and connections.  Private.
 *
 * A command is what a caller waits for.  A connection slot (struct weft__redis_conn_slot) has a
 * queue of commands and at most one connection, which it makes again when the connection is lost.
 * All ordinary commands share one slot, each command that blocks at the server has a dedicated
 * one, and one is for subscriptions.  A connection (struct weft__redis_conn) lasts from its
 * handshake to its end.  It has a pending entry (struct weft__redis_pending) for each command that
 * was sent.
 *
 *   1. All of this belongs to the endpoint's loop.  Other threads and loops post remote
 *      requests to it (redis_remote.c).
 *   2. A command is in one place at a time, and `state` names the place: in a queue, in a
 *      pending entry of a connection, waiting for a cache entry, leaving with a connection, or
 *      nowhere.
 *   3. Replies pair with pending entries, oldest first, and with nothing else.  A command that
 *      is given up leaves its entry, which stays until its reply has arrived.
 *   4. done() is called once for each command, and calls no user code.  So the caller of done()
 *      sees nothing change but the command.
 *   5. Byte counts show whether the server may have received a command: pending->begin is the
 *      offset of its first byte in everything that was put on the connection, conn->given is
 *      the number of bytes handed to the stream.  A command with begin >= given was not sent.
 *   6. After a lost connection a command is sent again if it was not sent, or if it only reads
 *      and has not been repeated TRIES times; on a session, never.
 *   7. A reported error has a text: `text`, that of the reply, or the general text of its number.
 *   8. A connection is freed when its stream is closed, its write has finished and its flush
 *      has run; a slot when it was closed and is not connecting; the endpoint when it was closed
 *      and no connection, attempt to connect, subscription, remote request or script call is left
 *      (`refs`).  The shared slot is part of the endpoint.
 */
#ifndef WEFT_REDIS_CLIENT_H
#define WEFT_REDIS_CLIENT_H

#include <weft/loop.h>
#include <weft/stream.h>
#include <weft/sync.h>
#include <weft/timer.h>
#include "base/proto_buffer.h"
#include "base/proto_list.h"
#include "resp.h"

#define WEFT__REDIS_TRIES 2 /* repetitions of a command that only reads */

/* --- commands ---------------------------------------------------------------- */

/* Properties of a command, by its name (redis_table.c). */
enum {
	WEFT__REDIS_READS  = 1 << 0, /* changes nothing, and may be repeated */
	WEFT__REDIS_BLOCKS = 1 << 1, /* waits at the server */
	WEFT__REDIS_STATE  = 1 << 2, /* changes the state of the connection */
	WEFT__REDIS_NEVER  = 1 << 3, /* its replies cannot be paired */
	WEFT__REDIS_KEYED  = 1 << 4, /* reads one key, its first argument: can be cached */
	WEFT__REDIS_MAYBE  = 1 << 5, /* blocks if one of its arguments is BLOCK */
	WEFT__REDIS_CLIENT = 1 << 6, /* the subcommand decides */
};

enum weft__redis_state {
	WEFT__REDIS_NOWHERE, WEFT__REDIS_QUEUED, WEFT__REDIS_SENT, WEFT__REDIS_AWAITS_CACHE,
	WEFT__REDIS_LEAVING, /* together with its connection */
};

struct weft__redis_command {
	struct weft__link  link;    /* in a queue, or of a cache entry */
	struct weft__redis_conn_slot *slot; /* whose queue or connection it is in */
	const weft_span         *args;    /* borrowed; not used if `bytes` is set */
	size_t                   count;
	const char              *bytes;   /* encoded, or NULL: `args` are encoded */
	size_t                   size;    /* of bytes */
	weft_span                name;    /* for error texts */
	weft_span                key;     /* of a KEYED one */
	uint64_t                 pending;    /* number of its pending entry, once it was sent */
	uint32_t                 replies; /* expected; 1 except for a transaction */
	uint8_t                  flags, state, tries;
	bool                     fetches; /* for the cache, not for a caller */
	weft_redis_reply        *reply;
	char                    *text;    /* error text of weft_alloc(), or NULL */
	void                   (*done)(struct weft__redis_command *command, int rc);
	weft_op                 *op;      /* finished by done(); or */
	weft_event               over;    /* set by done(), */
	int                      rc;      /* with this result, */
	bool                     is_over; /* and this flag */
	weft_redis              *redis;   /* for a command that blocks and is waited for on this
	                                   * loop */
};

/* Initialize a command from its arguments.  weft__redis_flags() returns only its properties. */
int  weft__redis_command_init(const weft_redis *redis, struct weft__redis_command *command,
                              const weft_span *args, size_t count);
/* Argument `index` (0 is the name), of `size` bytes, of an encoded command. */
weft_span weft__redis_arg(const char *bytes, size_t index, size_t size);
uint32_t weft__redis_flags(const weft_redis *redis, const weft_span *args, size_t count);
/* Fill the hash table of command names (WEFT__REDIS_TABLE bytes). */
void weft__redis_table_make(uint8_t *table);

/* Whether a command can be accepted.  Returns 0, WEFT_EINVAL, WEFT_EAGAIN, WEFT_ESHUTDOWN.
 * _check() depends only on the command and can be called on any thread. */
int  weft__redis_check(const weft_redis *redis, const struct weft__redis_command *command);
int  weft__redis_admit(weft_redis *redis, const struct weft__redis_command *command);
/* Accept a command: done() will be called. */
void weft__redis_submit(weft_redis *redis, struct weft__redis_command *command);
/* Give up a command; `why` is passed to done(). */
void weft__redis_give_up(weft_redis *redis, struct weft__redis_command *command, int why);
/* Give up a command that is in no queue and no pending entry. */
void weft__redis_end_early(weft_redis *redis, struct weft__redis_command *command,
                           int why);
/* End a command; `text` (may be NULL) is copied. */
void weft__redis_end(weft_redis *redis, struct weft__redis_command *command, int rc,
                     const char *text);
/* Complete a command with its reply, which is taken. */
void weft__redis_answer(weft_redis *redis, struct weft__redis_command *command,
                        weft_redis_reply *reply);
/* Report the result to the caller: its text in weft_detail(), the reply in `out` (may be NULL). */
int  weft__redis_report(struct weft__redis_command *command, int rc, weft_redis_reply **out);
/* Run a command and wait, on any thread; _remote() if the endpoint's loop does not run there. */
int  weft__redis_run(weft_redis *redis, struct weft__redis_command *command,
                     weft_redis_reply **out, uint64_t deadline_ns);
int  weft__redis_run_remote(weft_redis *redis, struct weft__redis_command *command,
                          weft_redis_reply **out, uint64_t deadline_ns);
/* Returns 0 if the caller can wait and is not canceled, else an error. */
int  weft__redis_may_wait(void);

/* --- connections ------------------------------------------------------------- */

struct weft__redis_pending {
	struct weft__redis_command *command; /* NULL: given up, or a handshake */
	uint64_t begin;                      /* invariant 5 */
	uint32_t left;                       /* replies to come */
	uint8_t  handshake;                   /* enum handshake of redis_handshake.c, or 0 */
};

struct weft__redis_conn {
	weft_redis              *redis;
	struct weft__redis_conn_slot *slot; /* NULL: it has ended */
	weft_stream             *stream;
	weft_op                  write;     /* writes `sending` */
	weft_span                write_span;
	weft_node                flush, closer;
	bool                     flush_queued, gone; /* gone: the stream is closed */
	bool                     is_resp3, tracks, fell_back; /* tracks: CLIENT TRACKING is on;
	                                                       * fell_back: HELLO has failed */
	uint8_t                  handshakes; /* handshake replies to come */
	struct weft__buffer out, sending, in;
	uint64_t                 put, given; /* bytes; invariant 5 */
	uint64_t                 seen;       /* `put` at the last attempt to flush */
	uint8_t                  turns_waited; /* loop iterations that the flush was delayed */
	struct weft__redis_pending *pending;
	uint32_t                 pending_mask;
	uint64_t                 head, tail; /* numbers of the pending entries */
	struct weft__resp_scan   scan;
	struct weft__redis_command *leaving; /* ends when the connection is closed */
	int                      leaving_why;
};

static inline uint64_t
weft__redis_inflight(const struct weft__redis_conn *conn)
{
	return conn->tail - conn->head;
}

static inline struct weft__redis_pending *
weft__redis_pending_at(const struct weft__redis_conn *conn, uint64_t number)
{
	return &conn->pending[number & conn->pending_mask];
}

/* Make a connection of `slot` over `stream`, which is taken.  Returns 0 or an error. */
int  weft__redis_conn_open(struct weft__redis_conn_slot *slot, weft_stream *stream);
/* Separate a connection from its slot.  The connection then closes and frees itself; `at_once`: by
 * a reset, without sending queued commands. */
void weft__redis_conn_detach(struct weft__redis_conn *conn, bool at_once);
/* Queue a command's bytes, with a pending entry for the replies.  Returns the entry, or NULL
 * without memory. */
struct weft__redis_pending *weft__redis_conn_put(struct weft__redis_conn *conn,
                                              const struct weft__redis_command *command);
/* Process bytes that have arrived. */
void weft__redis_conn_read(struct weft__redis_conn *conn, const char *data, size_t size);

/* --- connection slots -------------------------------------------------------- */

enum weft__redis_conn_slot_kind {
	WEFT__REDIS_SHARED, WEFT__REDIS_DEDICATED, WEFT__REDIS_SUBSCRIPTIONS,
};

enum weft__redis_conn_slot_state {
	WEFT__REDIS_DISCONNECTED, /* no command waits, or the next attempt is about to begin */
	WEFT__REDIS_PAUSED,       /* the timer of the pause before the next attempt runs */
	WEFT__REDIS_CONNECTING, WEFT__REDIS_HANDSHAKE, WEFT__REDIS_READY,
};

struct weft__redis_conn_slot {
	weft_redis              *redis;
	struct weft__link  of_redis;    /* if dedicated */
	enum weft__redis_conn_slot_kind  kind;
	enum weft__redis_conn_slot_state state;
	bool                     dead;        /* closed; freed once it is no longer connecting */
	struct weft__redis_conn *conn;        /* during the handshake and when ready */
	struct weft__link  queue;
	uint32_t                 queued;
	weft_op                  connect;
	weft_stream             *connected;   /* result of `connect` */
	weft_timer               timer;       /* ends a pause, or a handshake that takes too long */
	uint64_t                 handshake_by_ns;
};

void weft__redis_conn_slot_init(weft_redis *redis, struct weft__redis_conn_slot *slot,
                                enum weft__redis_conn_slot_kind kind);
void weft__redis_conn_slot_submit(struct weft__redis_conn_slot *slot,
                                  struct weft__redis_command *command);
/* The queue of a slot: insert before `before`; remove the first command; end all commands. */
void weft__redis_queue_push(struct weft__redis_conn_slot *slot, struct weft__link *before,
                            struct weft__redis_command *command);
struct weft__redis_command *weft__redis_queue_pop(struct weft__redis_conn_slot *slot);
void weft__redis_queue_end(struct weft__redis_conn_slot *slot, int error, const char *text);
/* How long to wait before the next attempt; partly random. */
uint64_t weft__redis_pause(weft_redis *redis);
/* Begin to connect, after the pause if there is one. */
void weft__redis_conn_slot_start(struct weft__redis_conn_slot *slot);
/* Send queued commands, as many as inflight_max allows. */
void weft__redis_conn_slot_pump(struct weft__redis_conn_slot *slot);
/* The handshake has succeeded; or the attempt to connect has failed. */
void weft__redis_conn_slot_ready(struct weft__redis_conn_slot *slot);
void weft__redis_conn_slot_failed(struct weft__redis_conn_slot *slot, int error, const char *text);
/* The connection is unusable; weft_detail() has the reason. */
void weft__redis_conn_slot_lost(struct weft__redis_conn_slot *slot, int error);
/* Replies have arrived, so pending entries may be free. */
void weft__redis_conn_slot_answered(struct weft__redis_conn_slot *slot);
/* Close a slot and end all its commands.  Takes the slot if it was allocated. */
void weft__redis_conn_slot_close(struct weft__redis_conn_slot *slot, int why);
void weft__redis_conn_slot_free(struct weft__redis_conn_slot *slot);

/* Begin the handshake; and process a reply to it (taken). */
int  weft__redis_handshake_start(struct weft__redis_conn *conn);
void weft__redis_handshake_reply(struct weft__redis_conn *conn, unsigned which,
                         weft_redis_reply *reply);

/* --- dedicated connections --------------------------------------------------- */

void weft__redis_dedicated_submit(weft_redis *redis, struct weft__redis_command *command);
/* A dedicated slot has nothing to do. */
void weft__redis_dedicated_idle(struct weft__redis_conn_slot *slot);
/* Close a dedicated slot that has nothing to do, if there is one. */
bool weft__redis_dedicated_drop(weft_redis *redis);
/* A dedicated slot is being closed: a command that waits for one may get a new slot. */
void weft__redis_dedicated_ended(struct weft__redis_conn_slot *slot);
/* An attempt to connect has failed: ends all commands that wait for a dedicated slot. */
void weft__redis_dedicated_failed(struct weft__redis_conn_slot *slot, int error, const char *text);

/* --- pushes, cache, subscriptions -------------------------------------------- */

/* A message that is not a reply (taken). */
void weft__redis_pushed(struct weft__redis_conn *conn, weft_redis_reply *push);

struct weft__redis_cache;
int  weft__redis_cache_open(weft_redis *redis);
void weft__redis_cache_close(weft_redis *redis);
/* The cached reply for this encoded command, with a reference for the caller; or NULL. */
weft_redis_reply *weft__redis_cache_find(weft_redis *redis, const char *bytes, size_t size);
/* Let a command that the cache may answer wait for its cache entry.  False: it is sent as
 * usual. */
bool weft__redis_cache_join(weft_redis *redis, struct weft__redis_command *command);
void weft__redis_cache_invalidate(weft_redis *redis, const weft_redis_reply *keys);
/* A command has completed that may have changed the keys it names. */
void weft__redis_cache_wrote(weft_redis *redis, const struct weft__redis_command *command);
void weft__redis_cache_clear(weft_redis *redis);
size_t weft__redis_cache_bytes(const weft_redis *redis);

/* For the slot of subscriptions: a message has arrived; the slot is ready; an attempt to
 * connect has failed; all subscriptions end. */
void weft__redis_subscription_message(weft_redis *redis, const weft_redis_reply *message);
void weft__redis_subscription_ready(weft_redis *redis);
void weft__redis_subscription_failed(weft_redis *redis, int error, const char *text);
void weft__redis_subscription_end(weft_redis *redis);

/* --- the endpoint ------------------------------------------------------------ */

#define WEFT__REDIS_TABLE 1024 /* entries for names of commands, a power of 2 */

struct weft_redis {
	weft_loop        *loop;     /* referenced */
	struct weft__refs refs;     /* invariant 8, and remote requests */
	bool              closed;
	bool              session;
	char             *address;  /* for weft_stream_connect(), and for error texts */
	char             *user, *password;
	char              database[12]; /* "": none is selected */
	weft_stream_connect_opts connect;
	struct weft__resp_limits limits;
	uint32_t          inflight_max, queue_max, connections_max;
	size_t            cache_bytes;
	uint64_t          connect_ns, backoff_max_ns;
	uint64_t          random;   /* state of the jitter */
	uint64_t          retry_ns; /* no attempt to connect before that time */
	uint32_t          failures; /* in a row, without a reply in between */
	struct weft__redis_conn_slot shared;
	struct weft__link dedicated;     /* slots */
	uint32_t          dedicated_count;
	struct weft__link blocked;    /* commands that wait for a dedicated slot */
	uint32_t          blocked_count;
	struct weft__redis_cache *cache;
	struct weft__redis_conn_slot *subscription_slot;
	struct weft__link   subscriptions, channels;
	uint32_t          connections;    /* in the handshake or ready */
	struct weft_redis_stats  stats;
	uint8_t           table[WEFT__REDIS_TABLE];
};

weft_redis *weft__redis_ref(weft_redis *redis);
void weft__redis_unref(weft_redis *redis);

/* Fill address, user, password and database from the text.  Returns 0 or an error. */
int  weft__redis_address(weft_redis *redis, const char *text);

/* A copy of memory, ended by NUL; or NULL. */
char *weft__redis_copy(const char *text, size_t size);

/* SHA-1 of `size` bytes, in 40 hexadecimal digits and a NUL. */
void weft__redis_sha1(const void *data, size_t size, char *out);

#endif
