/* weft/redis.h - Redis client: many callers share few connections.
 *
 * A weft_redis is an endpoint with its connections.  Any number of threadlets and threads may
 * call it at once.  Commands are pipelined on one connection and sent once per loop iteration.
 * A command that blocks at the server (BLPOP, XREAD with BLOCK, ...) has a connection of its
 * own until its reply has arrived.  Idle connections are background work.
 *
 *   1. When a call reaches its deadline or is canceled, the client abandons the command, not the
 *      connection, and discards the reply when it arrives.  But if the command blocks at the
 *      server, the client closes the command's own connection, because the command could still
 *      take an item there.
 *   2. After a lost connection the client repeats a command if it had not been sent, or if it
 *      only reads.  All other commands end with WEFT_EPIPE, because the server may have executed
 *      them.  The client reconnects by itself, at once and then with growing delays.
 *   3. Commands that would change the shared connection (MULTI, WATCH, SELECT, AUTH, SUBSCRIBE,
 *      ...) are refused with WEFT_EINVAL; use the calls below and the options instead.  With
 *      `session` they are allowed: the client then has only one connection, and never repeats a
 *      command.
 *
 * The protocol is RESP3, or RESP2 if the server supports no other.
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
typedef struct weft_redis_subscription weft_redis_subscription;

typedef struct weft_redis_opts {
	weft_loop  *loop;            /* the loop of its connections; default: the caller's */
	weft_tls   *tls;             /* for rediss://; default: as weft_stream_connect() */
	const char *user, *password; /* default: from the address */
	uint32_t    inflight_max;    /* commands in flight; others wait in order; default 4,096 */
	uint32_t    queue_max;       /* commands waiting, then WEFT_EAGAIN; default 65,536 */
	uint32_t    connections_max; /* connections in all; default 8 */
	bool        session;         /* one connection, whose state the caller may change */
	size_t      reply_max;       /* bytes; default 64 MiB */
	size_t      cache_bytes;     /* size of the client-side cache (tracking); default off */
	uint64_t    connect_ns;      /* time to connect and AUTH; default 5 s */
	uint64_t    backoff_max_ns;  /* longest delay between reconnects; default 2 s */
	uint64_t    spare[4];        /* must be zero: room for later versions */
} weft_redis_opts;

/* Open the endpoint "redis://user:password@host:port/db", also rediss:// and redis+unix:/path.
 * The defaults are port 6379, host 127.0.0.1 and database 0.  The endpoint connects when it is
 * first used.  It copies all options but loop and tls, which it borrows until it is closed.
 * Returns 0 and fills `out`, WEFT_EINVAL, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_redis_open(const char *address, const weft_redis_opts *opts,
                             weft_redis **out);

/* Close an endpoint: commands in flight end with WEFT_ESHUTDOWN.  Takes it; accepts NULL.
 * Close its subscriptions first.
 * Thread: loop.  Blocks: suspends in a threadlet, else no.  Since: 0.1. */
WEFT_API void weft_redis_close(weft_redis *redis);

/* Send a command of `count` arguments, borrowed, and wait for its reply.  With WEFT_NOWAIT the
 * call sends nothing, and returns only a reply that is in the cache.  From another thread or
 * loop, the endpoint's loop decides whether the reply or the deadline came first: if that loop
 * is late, the call returns up to one second after its deadline.
 * Returns 0 and fills `out` (NULL: not wanted), even if the reply is nil; WEFT_EREPLY with the
 * server's text in weft_detail(); WEFT_EPIPE if the connection was lost and the command is not
 * repeated (invariant 2); if the client cannot connect, the error of connecting; WEFT_EAGAIN if
 * queue_max commands wait, WEFT_EINVAL for a command that is refused (invariant 3),
 * WEFT_EMSGSIZE if the reply is above reply_max, WEFT_EPROTO.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_redis_call(weft_redis *redis, const weft_span *args,
                             size_t count, weft_redis_reply **out,
                             uint64_t deadline_ns);

/* Send a command given by a format.  Spaces in the format separate the arguments of the command.
 * %s is a C string; %b is bytes, given as a pointer and a size_t; %d %i %u %x %f %g with their
 * length modifiers are as in printf(3); %% is a percent sign.  A value that contains spaces is
 * not split.
 * Returns as weft_redis_call(), WEFT_EINVAL for a wrong format.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_redis_callf(weft_redis *redis, weft_redis_reply **out,
                              uint64_t deadline_ns, const char *format, ...);

/* Send a command as an op, which may belong to any loop.  The op fills `out` (NULL: not wanted)
 * before it finishes with 0.  Copies the arguments.
 * Returns as every start (weft/op.h), WEFT_EAGAIN, WEFT_EINVAL.
 * Thread: loop of `op`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_redis_call_op(weft_redis *redis, const weft_span *args,
                                size_t count, weft_redis_reply **out,
                                weft_op *op, uint64_t deadline_ns);

/* Send a command and make a promise of its reply (weft_type_redis), on the caller's loop.
 * Returns the promise; NULL if memory is exhausted.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_redis_call_promise(weft_redis *redis,
                                               const weft_span *args,
                                               size_t count, uint64_t deadline_ns);

typedef struct weft_redis_command {
	const weft_span *args;
	size_t           count;
} weft_redis_command;

/* Send `commands` as one transaction, between MULTI and EXEC.  The reply is that of EXEC: a list
 * of the replies to the commands, some of which may be errors.
 * Returns as weft_redis_call(), WEFT_EAGAIN if a WATCH failed (in a session).
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_redis_multi(weft_redis *redis,
                              const weft_redis_command *commands, size_t count,
                              weft_redis_reply **out, uint64_t deadline_ns);

/* Run the Lua `script` by its hash; its text is sent only if the server does not know the hash.
 * `args` are the number of keys, the keys, and the arguments.
 * Returns as weft_redis_call().
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_redis_script(weft_redis *redis, const char *script,
                               const weft_span *args, size_t count,
                               weft_redis_reply **out, uint64_t deadline_ns);

struct weft_redis_stats {
	uint64_t calls;      /* calls accepted */
	uint64_t replies;    /* replies delivered to a caller */
	uint64_t late;       /* replies whose caller no longer waited */
	uint64_t repeated;   /* commands repeated after a lost connection */
	uint64_t lost;       /* commands that ended with WEFT_EPIPE */
	uint64_t connects;   /* successful connects */
	uint64_t hits;       /* replies from the cache, counted in `replies`, too */
	uint64_t invalidated; /* cached keys that the server invalidated */
	uint64_t pushes;     /* messages that were not replies */
	uint64_t bytes_in, bytes_out;
	uint32_t inflight, waiting, connections; /* now: commands, commands, connections */
	uint64_t cached_bytes;                   /* now */
	uint64_t spare[4];                       /* room for later versions */
};

/* Read the counters of an endpoint.
 * Returns 0 and fills `out`, WEFT_EINVAL.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_redis_stats(weft_redis *redis, struct weft_redis_stats *out);

/* --- replies: a tree of views of one buffer --------------------------------- */

WEFT_API extern const weft_type weft_type_redis; /* as.ptr, const weft_redis_reply * */

typedef enum weft_redis_type {
	WEFT_REDIS_NIL, WEFT_REDIS_TEXT, WEFT_REDIS_INTEGER, WEFT_REDIS_NUMBER,
	WEFT_REDIS_BOOL, WEFT_REDIS_ERROR, WEFT_REDIS_LIST, WEFT_REDIS_MAP,
	WEFT_REDIS_SET, WEFT_REDIS_PUSH,
} weft_redis_type;

/* reply_type: get the type of a reply; that of NULL is nil.  count: get the number of items of a
 * list, set or push, for a map twice the number of its pairs, else 0.  item: get an item, borrowed
 * from the reply; NULL past the last.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_redis_type weft_redis_reply_type(const weft_redis_reply *reply);
WEFT_API size_t weft_redis_count(const weft_redis_reply *reply);
WEFT_API const weft_redis_reply *weft_redis_item(const weft_redis_reply *reply,
                                                 size_t index);

/* text: get the bytes of a text or error, borrowed from the reply and followed by a NUL.
 * integer: get an integer, a bool as 1 or 0, or a text that is an integer.  number: get a number,
 * an integer, or a text that is a number.
 * Return 0, WEFT_ENOENT for nil, WEFT_EINVAL for another type, with weft_detail().
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_redis_text(const weft_redis_reply *reply, weft_span *out);
WEFT_API int weft_redis_integer(const weft_redis_reply *reply, int64_t *out);
WEFT_API int weft_redis_number(const weft_redis_reply *reply, double *out);

/* Get the value of `key` in a map, or in a list of alternating keys and values, as RESP2
 * represents maps.
 * Returns the value, borrowed from the reply, or NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API const weft_redis_reply *weft_redis_field(const weft_redis_reply *reply,
                                                  const char *key);

/* Free a reply with all its items.  Do not call this for an item of a reply.  Accepts NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_redis_reply_free(weft_redis_reply *reply);

/* --- publish and subscribe -------------------------------------------------- */

/* Subscribe to `channels` (NULL-terminated; those with * ? or [ are patterns).  All
 * subscriptions of an endpoint share one connection.  A subscription survives reconnects, but
 * messages published while there is no connection are lost.
 * Not available with `session`.
 * Returns 0 and fills `out`, or as weft_redis_call().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_redis_subscribe(weft_redis *redis, const char *const *channels,
                                  weft_redis_subscription **out, uint64_t deadline_ns);

/* Receive the next message, a list of channel and text.  A reader that falls behind by 1,024
 * messages loses the oldest and gets WEFT_ENOBUFS once.
 * Returns 0 and fills `out`.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_redis_subscription_recv(weft_redis_subscription *subscription,
                                          weft_redis_reply **out, uint64_t deadline_ns);

/* Unsubscribe; a caller that waits for a message gets WEFT_ESHUTDOWN.  Takes the subscription;
 * accepts NULL.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_redis_subscription_close(weft_redis_subscription *subscription);

WEFT_END
#endif
