/* weft/redis.h - Redis: many callers, few connections, no mixed-up replies.
 *
 * A weft_redis is an endpoint with its connections.  Any number of threadlets and
 * threads call it at once; commands are pipelined on one connection and sent once per
 * turn.  Those that block at the server (BLPOP, XREAD with BLOCK, ...) have each a
 * connection of its own while they last.  Idle connections are background.
 *
 *   1. A deadline or a cancel gives up the command's slot, never the connection: the
 *      reply is thrown away when it comes.  Only a command that blocks at the server
 *      takes its connection along, or it could still take something there.
 *   2. After a lost connection a command is repeated if it had not been sent, or only
 *      reads; everything else ends with WEFT_EPIPE, since it may have been done.  It
 *      connects again by itself, at once and then with growing pauses.
 *   3. What would change the shared connection (MULTI, WATCH, SELECT, AUTH, SUBSCRIBE,
 *      ...) is refused with WEFT_EINVAL: there are calls for it below, and options.
 *      With `session` it is allowed: then there is one connection, and nothing is
 *      repeated.
 *
 * The protocol is RESP3, or RESP2 if the server has no other.
 */
#ifndef WEFT_REDIS_H
#define WEFT_REDIS_H

#include <weft/base.h>
#include <weft/op.h>
#include <weft/promise.h>
#include <weft/value.h>

WEFT_BEGIN

typedef struct weft_redis       weft_redis;
typedef struct weft_redis_reply weft_redis_reply;
typedef struct weft_redis_subscription  weft_redis_subscription;

typedef struct weft_redis_opts {
	weft_loop  *loop;            /* that its connections live on; default: the caller's */
	weft_tls   *tls;             /* for rediss://; default: as weft_stream_connect() */
	const char *user, *password; /* default: from the address */
	uint32_t    inflight_max;    /* commands; then first come, first served; 4,096 */
	uint32_t    queue_max;       /* that wait for that, then WEFT_EAGAIN; 65,536 */
	uint32_t    connections_max; /* in all; default 8 */
	bool        session;         /* one connection, with a state of the caller's */
	size_t      reply_max;       /* bytes; default 64 MiB */
	size_t      cache_bytes;     /* client-side caching by tracking; default off */
	uint64_t    connect_ns;      /* for connecting and AUTH; default 5 s */
	uint64_t    backoff_max_ns;  /* between reconnects; default 2 s */
	uint64_t    spare[4];
} weft_redis_opts;

/* Open the endpoint "redis://user:password@host:port/db", also rediss:// and
 * redis+unix:/path; port 6379, host 127.0.0.1 and database 0 may be left out.  Connects
 * when first used.  Copies all but loop and tls, which it borrows until it is closed.
 * Returns 0 and fills `out`, WEFT_EINVAL, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_redis_open(const char *address, const weft_redis_opts *opts,
                             weft_redis **out);

/* Close: commands in flight end with WEFT_ESHUTDOWN.  Takes it; accepts NULL.  Feeds
 * are closed before.
 * Thread: loop.  Blocks: suspends in a threadlet, else no.  Since: 0.1. */
WEFT_API void weft_redis_close(weft_redis *redis);

/* Send the command of `count` words, borrowed, and wait for its reply.
 * Returns 0 and fills `out` (NULL: not wanted), also for nil; WEFT_EREPLY with the
 * server's text in weft_detail(); WEFT_EPIPE if the connection was lost and it is not
 * repeated, or why there is none (invariant 2), WEFT_EAGAIN (queue_max), WEFT_EINVAL
 * (invariant 3), WEFT_EMSGSIZE if the reply is above reply_max, WEFT_EPROTO.
 * From another thread or loop, the endpoint's loop decides whether the reply or the
 * deadline came first: if that loop is late, the call returns up to one second after its
 * deadline.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_redis_call(weft_redis *redis, const weft_span *words,
                             size_t count, weft_redis_reply **out,
                             uint64_t deadline_ns);

/* The same by a format: words between spaces, in which %s is a C string, %b bytes (a
 * pointer and a size_t), %d %i %u %x %f %g with their lengths as printf(3) writes them,
 * %% a percent sign.  A value is never split, whatever is in it.
 * Returns as weft_redis_call(), WEFT_EINVAL for a wrong format.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_redis_callf(weft_redis *redis, weft_redis_reply **out,
                              uint64_t deadline_ns, const char *format, ...);

/* The same as an op, of any loop, which fills `out` (NULL: not wanted) before it
 * finishes with 0.  Copies words.
 * Returns as every start (weft/op.h), WEFT_EAGAIN, WEFT_EINVAL.
 * Thread: loop of `op`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_redis_call_op(weft_redis *redis, const weft_span *words,
                                size_t count, weft_redis_reply **out,
                                weft_op *op, uint64_t deadline_ns);

/* The same as a promise of a reply (weft_type_redis), on the caller's loop.
 * Returns it, or NULL without memory.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_redis_call_promise(weft_redis *redis,
                                               const weft_span *words,
                                               size_t count, uint64_t deadline_ns);

typedef struct weft_redis_command {
	const weft_span *words;
	size_t           count;
} weft_redis_command;

/* Send `commands` between MULTI and EXEC as one unit; the reply is EXEC's, a list in
 * which single commands may have failed.
 * Returns as weft_redis_call(), WEFT_EAGAIN if a WATCH failed (of a session).
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_redis_multi(weft_redis *redis,
                              const weft_redis_command *commands, size_t count,
                              weft_redis_reply **out, uint64_t deadline_ns);

/* Run the Lua `script` by its hash, sending its text only if the server lacks it;
 * `words` are the number of keys, the keys, the arguments.
 * Returns as weft_redis_call().
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_redis_script(weft_redis *redis, const char *script,
                               const weft_span *words, size_t count,
                               weft_redis_reply **out, uint64_t deadline_ns);

struct weft_redis_stats {
	uint64_t calls;      /* accepted */
	uint64_t replies;    /* that somebody got */
	uint64_t late;       /* that nobody waited for any more */
	uint64_t repeated;   /* commands, after a lost connection */
	uint64_t lost;       /* commands that ended with WEFT_EPIPE */
	uint64_t connects;   /* that succeeded */
	uint64_t hits;       /* replies of the cache, counted in `replies` too */
	uint64_t invalidated; /* keys that the server had taken out of the cache */
	uint64_t pushes;     /* messages that were no reply */
	uint64_t bytes_in, bytes_out;
	uint32_t inflight, waiting, connections; /* now */
	uint64_t cached_bytes;                   /* now */
	uint64_t spare[4];
};

/* What has happened since it was opened.
 * Returns 0 and fills `out`, WEFT_EINVAL.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_redis_stats(weft_redis *redis, struct weft_redis_stats *out);

/* --- replies: a tree of views into one buffer ------------------------------ */

WEFT_API extern const weft_type weft_type_redis; /* as.ptr, const weft_redis_reply * */

typedef enum weft_redis_type {
	WEFT_REDIS_NIL, WEFT_REDIS_TEXT, WEFT_REDIS_INTEGER, WEFT_REDIS_NUMBER,
	WEFT_REDIS_BOOL, WEFT_REDIS_ERROR, WEFT_REDIS_LIST, WEFT_REDIS_MAP,
	WEFT_REDIS_SET, WEFT_REDIS_PUSH,
} weft_redis_type;

/* The kind (of NULL: nil); of a list, map (twice its pairs), set or push the number of
 * items, else 0; one of them, NULL past the last, borrowed from the reply.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_redis_type weft_redis_reply_type(const weft_redis_reply *reply);
WEFT_API size_t weft_redis_count(const weft_redis_reply *reply);
WEFT_API const weft_redis_reply *weft_redis_item(const weft_redis_reply *reply,
                                                 size_t index);

/* The bytes, also of an error, borrowed from the reply, and followed by a NUL; the whole
 * number, also of a bool (1, 0) and of a text that is one; the number, also of an
 * integer and of a text that is one.
 * Return 0, WEFT_ENOENT for nil, WEFT_EINVAL for another kind, with weft_detail().
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_redis_text(const weft_redis_reply *reply, weft_span *out);
WEFT_API int weft_redis_integer(const weft_redis_reply *reply, int64_t *out);
WEFT_API int weft_redis_number(const weft_redis_reply *reply, double *out);

/* The value of `key` in a map, or in a list of keys and values, as RESP2 has maps.
 * Returns it, borrowed from the reply, or NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API const weft_redis_reply *weft_redis_field(const weft_redis_reply *reply,
                                                  const char *key);

/* Free a reply with all its items; not one of its items.  Accepts NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_redis_reply_free(weft_redis_reply *reply);

/* --- publish and subscribe -------------------------------------------------- */

/* Subscribe to `channels` (NULL-terminated; with * ? or [ patterns).  All feeds of an
 * endpoint share one connection.  Survives reconnects; what was published meanwhile is
 * lost.
 * Returns 0 and fills `out`, or as weft_redis_call().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_redis_subscribe(weft_redis *redis, const char *const *channels,
                                  weft_redis_subscription **out, uint64_t deadline_ns);

/* The next message, a list of channel and text.  A reader that falls behind by
 * 1,024 messages loses the oldest and gets WEFT_ENOBUFS once.
 * Returns 0 and fills `out`.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_redis_subscription_recv(weft_redis_subscription *feed, weft_redis_reply **out,
                                  uint64_t deadline_ns);

/* Unsubscribe; who waits for a message ends with WEFT_ESHUTDOWN.  Takes it; accepts NULL.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_redis_subscription_close(weft_redis_subscription *feed);

WEFT_END
#endif
