/* commands.h - the commands.
 *
 * COMMANDS lists their names and functions; the number of arguments, the name included (negative:
 * the minimum); flags; a variant, because commands that differ little share a function; the type
 * that the key argv[1] must have; and what to reply if the key does not exist.  The functions rely
 * on that: client->key is the key, or NULL if they are to run without it.  They write one reply,
 * or block the client.
 */
#ifndef STORE_COMMANDS_H
#define STORE_COMMANDS_H

#include "store/connection/client.h"

/* Flags. */
enum {
	WRITES = 1 << 1, /* changes the key: it is deleted if it is empty then */
	GROWS  = 1 << 2, /* uses memory: rejected at the limit */
	MAKES  = 1 << 3 | WRITES | GROWS, /* a key that does not exist is added first */
	PUBSUB = 1 << 4, /* allowed while subscribed, in RESP2 */
	OPEN   = 1 << 5, /* allowed before AUTH */
};

/* Variants. */
enum { LEFT, RIGHT, NEITHER };
enum { NAMES = 1, VALUES = 2, BOTH = 3 };
enum { CHANNELS, PATTERNS };
enum { MS = 1, DATE = 2, POSITIVE = 4 };           /* of times; else seconds, from now */
enum { SCORE = 1, REVERSE = 2, ANY = 4, REMOVE = 8 }; /* of ranges; else by rank */

struct command {
	const char   *name; /* lower case */
	void        (*run)(struct client *client);
	int16_t       arity, flags, variant;
	enum key_type type;
	char          missing; /* ':' 0; '_' null; '*' '%' '~' an empty one; 0: run without it */
};

/* clang-format off */
#define COMMANDS(X) \
	/* session.c */ \
	X(auth, auth, -2, OPEN, 0, NONE, 0) X(client, client, -2, 0, 0, NONE, 0) \
	X(command, command, -1, 0, 0, NONE, 0) \
	X(echo, echo, 2, 0, 0, NONE, 0) X(hello, hello, -1, OPEN, 0, NONE, 0) \
	X(info, info, -1, 0, 0, NONE, 0) X(ping, ping, -1, PUBSUB, 0, NONE, 0) \
	X(quit, quit, -1, OPEN | PUBSUB, 0, NONE, 0) X(reset, reset, 1, OPEN | PUBSUB, 0, NONE, 0) \
	X(select, select, 2, 0, 0, NONE, 0) \
	/* keys.c */ \
	X(dbsize, dbsize, 1, 0, 0, NONE, 0) X(del, del, -2, 0, 0, NONE, 0) \
	X(exists, exists, -2, 0, 0, NONE, 0) X(expire, expire, 3, 0, 0, NONE, 0) \
	X(expireat, expire, 3, 0, DATE, NONE, 0) X(flushall, flush, 1, 0, 0, NONE, 0) \
	X(flushdb, flush, 1, 0, 0, NONE, 0) X(keys, keys, 2, 0, 0, NONE, 0) \
	X(persist, persist, 2, 0, 0, NONE, 0) X(pexpire, expire, 3, 0, MS, NONE, 0) \
	X(pexpireat, expire, 3, 0, MS | DATE, NONE, 0) X(pttl, ttl, 2, 0, MS, NONE, 0) \
	X(ttl, ttl, 2, 0, 0, NONE, 0) X(type, type, 2, 0, 0, NONE, 0) \
	X(unlink, del, -2, 0, 0, NONE, 0) \
	/* strings.c */ \
	X(decr, incr, 2, MAKES, -1, STRING, 0) X(decrby, incr, 3, MAKES, -1, STRING, 0) \
	X(get, get, 2, 0, 0, STRING, '_') X(incr, incr, 2, MAKES, 1, STRING, 0) \
	X(incrby, incr, 3, MAKES, 1, STRING, 0) X(mget, mget, -2, 0, 0, NONE, 0) \
	X(mset, mset, -3, GROWS, 0, NONE, 0) X(set, set, -3, GROWS, 0, NONE, 0) \
	X(psetex, setex, 4, GROWS, MS | POSITIVE, NONE, 0) \
	X(setex, setex, 4, GROWS, POSITIVE, NONE, 0) X(strlen, length, 2, 0, 0, STRING, ':') \
	/* hashes.c */ \
	X(hdel, hdel, -3, WRITES, 0, HASH, ':') X(hexists, hexists, 3, 0, 0, HASH, ':') \
	X(hget, hget, 3, 0, 0, HASH, '_') X(hgetall, hgetall, 2, 0, BOTH, HASH, '%') \
	X(hincrby, hincrby, 4, MAKES, 0, HASH, 0) X(hkeys, hgetall, 2, 0, NAMES, HASH, '*') \
	X(hlen, length, 2, 0, 0, HASH, ':') X(hmget, hmget, -3, 0, 0, HASH, 0) \
	X(hset, hset, -4, MAKES, 0, HASH, 0) X(hvals, hgetall, 2, 0, VALUES, HASH, '*') \
	X(sadd, sadd, -3, MAKES, 0, SET, 0) X(scard, length, 2, 0, 0, SET, ':') \
	X(sismember, hexists, 3, 0, 0, SET, ':') X(smembers, hgetall, 2, 0, NAMES, SET, '~') \
	X(srem, hdel, -3, WRITES, 0, SET, ':') \
	/* lists.c */ \
	X(blpop, blpop, -3, 0, LEFT, NONE, 0) X(brpop, blpop, -3, 0, RIGHT, NONE, 0) \
	X(llen, length, 2, 0, 0, LIST, ':') X(lpop, pop, 2, WRITES, LEFT, LIST, '_') \
	X(lpush, push, -3, MAKES, LEFT, LIST, 0) X(lrange, lrange, 4, 0, 0, LIST, 0) \
	X(ltrim, lrange, 4, WRITES, REMOVE, LIST, 0) X(rpop, pop, 2, WRITES, RIGHT, LIST, '_') \
	X(rpush, push, -3, MAKES, RIGHT, LIST, 0) \
	/* sorted.c */ \
	X(zadd, zadd, -4, MAKES, 0, SORTED, 0) X(zcard, length, 2, 0, 0, SORTED, ':') \
	X(zcount, zrange_size, 4, 0, SCORE, SORTED, 0) X(zincrby, zincrby, 4, MAKES, 0, SORTED, 0) \
	X(zpopmax, zpop, 2, WRITES, RIGHT, SORTED, '*') \
	X(zpopmin, zpop, 2, WRITES, LEFT, SORTED, '*') X(zrange, zrange, -4, 0, ANY, SORTED, 0) \
	X(zrangebyscore, zrange, -4, 0, SCORE, SORTED, 0) \
	X(zrank, zscore, 3, 0, LEFT, SORTED, '_') X(zrem, zrem, -3, WRITES, 0, SORTED, ':') \
	X(zremrangebyrank, zrange_size, 4, WRITES, REMOVE, SORTED, 0) \
	X(zremrangebyscore, zrange_size, 4, WRITES, REMOVE | SCORE, SORTED, 0) \
	X(zrevrange, zrange, -4, 0, REVERSE, SORTED, 0) \
	X(zrevrangebyscore, zrange, -4, 0, REVERSE | SCORE, SORTED, 0) \
	X(zrevrank, zscore, 3, 0, RIGHT, SORTED, '_') \
	X(zscore, zscore, 3, 0, NEITHER, SORTED, '_') \
	/* streams.c */ \
	X(xack, xdel, -4, 0, 1, STREAM, ':') X(xadd, xadd, -5, GROWS | WRITES, 0, STREAM, 0) \
	X(xautoclaim, xautoclaim, -6, 0, 0, STREAM, 0) X(xdel, xdel, -3, 0, 0, STREAM, ':') \
	X(xgroup, xgroup, -2, GROWS, 0, NONE, 0) X(xlen, length, 2, 0, 0, STREAM, ':') \
	X(xpending, xpending, -3, 0, 0, STREAM, 0) X(xrange, xrange, -4, 0, 0, STREAM, 0) \
	X(xread, xread, -4, 0, 0, NONE, 0) X(xreadgroup, xread, -7, 0, 1, NONE, 0) \
	X(xrevrange, xrange, -4, 0, REVERSE, STREAM, 0) X(xtrim, xtrim, -4, 0, 0, STREAM, 0) \
	/* pubsub.c */ \
	X(psubscribe, subscribe, -2, PUBSUB | GROWS, PATTERNS, NONE, 0) \
	X(publish, publish, 3, 0, 0, NONE, 0) \
	X(punsubscribe, unsubscribe, -1, PUBSUB, PATTERNS, NONE, 0) \
	X(subscribe, subscribe, -2, PUBSUB | GROWS, CHANNELS, NONE, 0) \
	X(unsubscribe, unsubscribe, -1, PUBSUB, CHANNELS, NONE, 0)
/* clang-format on */

#define COMMAND(function) void command_##function(struct client *client)

#define X(name, function, ...) COMMAND(function);
COMMANDS(X)
#undef X

/* Run one request, and serve clients that wait for keys that it has changed. */
void commands_run(struct client *client, struct slice *argv, size_t argc);

/* Run a command that is allowed. */
void command_run(struct client *client, const struct command *command, struct slice *argv,
                 size_t argc);

/* --- store_reply.c: replies, in the protocol that the client has chosen ------------ */

void reply_ok(struct client *client);
void reply_status(struct client *client, const char *text);
bool reply_error(struct client *client, const char *format, ...) /* returns false */
	__attribute__((format(printf, 2, 3)));
void reply_integer(struct client *client, int64_t number);
void reply_bulk(struct client *client, struct slice slice);
void reply_text(struct client *client, const char *text);
void reply_string(struct client *client, const struct string *string); /* NULL: null */
void reply_double(struct client *client, double number);
void reply_null(struct client *client);
void reply_null_array(struct client *client);

/* Start an aggregate: '*' an array, '%' a map of `count` pairs, '~' a set, '>' a push message. */
void reply_many(struct client *client, char kind, size_t count);

/* Start an aggregate of unknown size: reply_later() returns the position to pass to
 * reply_count(), which inserts the header afterwards. */
size_t reply_later(const struct client *client);
void   reply_count(struct client *client, size_t position, char kind, size_t count);

/* Texts of errors that several commands have. */
#define SYNTAX      "ERR syntax error"
#define WRONG_TYPE  "WRONGTYPE Operation against a key holding the wrong kind of value"
#define WRONG_ARITY "ERR wrong number of arguments for '%s' command"
#define UNKNOWN_PART "ERR unknown subcommand or wrong number of arguments for '%.*s'"
#define NOT_INTEGER "ERR value is not an integer or out of range"
#define OVERFLOW    "ERR increment or decrement would overflow"

/* The part of an argument that an error text shows, for "%.*s". */
#define SHOWN(slice) (int)((slice).size < 128 ? (slice).size : 128), (slice).data

/* --- arguments -------------------------------------------------------------- */

/* Parse argv[at].  Return false after replying with an error if it is not valid. */
bool arg_integer(struct client *client, size_t at, int64_t *out);
bool arg_double(struct client *client, size_t at, double *out);

/* Parse argv[at] as a time, of a variant; the result is a date. */
bool arg_expiry(struct client *client, size_t at, int variant, int64_t *out_ms);

/* Parse argv[2] and argv[3] as positions among `count` elements, inclusive; negative ones count
 * from the end.  The result is a range with an exclusive end; 0 and 0 if it is empty. */
bool arg_range(struct client *client, size_t count, int64_t *begin, int64_t *end);

#endif
