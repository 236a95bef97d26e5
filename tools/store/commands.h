/* commands.h - the list of commands: name, number of arguments, flags, and positions of keys.
 *
 * The declarations of the functions and the table in commands.c are generated from it.
 */
#ifndef STORE_COMMANDS_H
#define STORE_COMMANDS_H

#define NEWW  (COMMAND_WRITE | COMMAND_GROWS)
#define WRITE COMMAND_WRITE
#define READ  COMMAND_READ
#define OPEN  (COMMAND_OPEN | COMMAND_PUBSUB)
#define HEARS (COMMAND_PUBSUB | COMMAND_GROWS)

/* clang-format off */
#define COMMANDS(X) \
	X(append, 3, NEWW, 1, 1, 1) X(auth, -2, COMMAND_OPEN, 0, 0, 0) \
	X(bitcount, -2, READ, 1, 1, 1) \
	X(blmove, 6, NEWW, 1, 2, 1) X(blpop, -3, WRITE, 1, -2, 1) \
	X(brpop, -3, WRITE, 1, -2, 1) X(brpoplpush, 4, NEWW, 1, 2, 1) \
	X(bzpopmax, -3, WRITE, 1, -2, 1) X(bzpopmin, -3, WRITE, 1, -2, 1) \
	X(client, -2, 0, 0, 0, 0) X(command, -1, 0, 0, 0, 0) X(config, -2, COMMAND_ADMIN, 0, 0, 0) \
	X(copy, -3, NEWW, 1, 2, 1) X(dbsize, 1, 0, 0, 0, 0) X(debug, -2, COMMAND_ADMIN, 0, 0, 0) \
	X(decr, 2, NEWW, 1, 1, 1) X(decrby, 3, NEWW, 1, 1, 1) X(del, -2, WRITE, 1, -1, 1) \
	X(discard, 1, COMMAND_DIRECT, 0, 0, 0) X(echo, 2, 0, 0, 0, 0) \
	X(eval, -3, 0, 0, 0, 0) X(evalsha, -3, 0, 0, 0, 0) \
	X(exec, 1, COMMAND_DIRECT, 0, 0, 0) X(exists, -2, READ, 1, -1, 1) \
	X(expire, -3, WRITE, 1, 1, 1) X(expireat, -3, WRITE, 1, 1, 1) \
	X(expiretime, 2, READ, 1, 1, 1) X(flushall, -1, WRITE, 0, 0, 0) \
	X(flushdb, -1, WRITE, 0, 0, 0) X(function, -2, 0, 0, 0, 0) \
	X(get, 2, READ, 1, 1, 1) X(getbit, 3, READ, 1, 1, 1) \
	X(getdel, 2, WRITE, 1, 1, 1) X(getex, -2, WRITE, 1, 1, 1) X(getrange, 4, READ, 1, 1, 1) \
	X(getset, 3, NEWW, 1, 1, 1) X(hdel, -3, WRITE, 1, 1, 1) \
	X(hello, -1, COMMAND_OPEN, 0, 0, 0) X(hexists, 3, READ, 1, 1, 1) \
	X(hget, 3, READ, 1, 1, 1) X(hgetall, 2, READ, 1, 1, 1) X(hincrby, 4, NEWW, 1, 1, 1) \
	X(hincrbyfloat, 4, NEWW, 1, 1, 1) X(hkeys, 2, READ, 1, 1, 1) X(hlen, 2, READ, 1, 1, 1) \
	X(hmget, -3, READ, 1, 1, 1) X(hmset, -4, NEWW, 1, 1, 1) X(hrandfield, -2, READ, 1, 1, 1) \
	X(hscan, -3, READ, 1, 1, 1) X(hset, -4, NEWW, 1, 1, 1) X(hsetnx, 4, NEWW, 1, 1, 1) \
	X(hstrlen, 3, READ, 1, 1, 1) X(hvals, 2, READ, 1, 1, 1) X(incr, 2, NEWW, 1, 1, 1) \
	X(incrby, 3, NEWW, 1, 1, 1) X(incrbyfloat, 3, NEWW, 1, 1, 1) X(info, -1, 0, 0, 0, 0) \
	X(keys, 2, 0, 0, 0, 0) X(lastsave, 1, 0, 0, 0, 0) X(lindex, 3, READ, 1, 1, 1) \
	X(linsert, 5, NEWW, 1, 1, 1) X(llen, 2, READ, 1, 1, 1) X(lmove, 5, NEWW, 1, 2, 1) \
	X(lmpop, -4, WRITE, 0, 0, 0) X(lpop, -2, WRITE, 1, 1, 1) X(lpos, -3, READ, 1, 1, 1) \
	X(lpush, -3, NEWW, 1, 1, 1) X(lpushx, -3, NEWW, 1, 1, 1) X(lrange, 4, READ, 1, 1, 1) \
	X(lrem, 4, WRITE, 1, 1, 1) X(lset, 4, NEWW, 1, 1, 1) X(ltrim, 4, WRITE, 1, 1, 1) \
	X(mget, -2, READ, 1, -1, 1) X(move, 3, WRITE, 1, 1, 1) X(mset, -3, NEWW, 1, -1, 2) \
	X(msetnx, -3, NEWW, 1, -1, 2) X(multi, 1, COMMAND_DIRECT, 0, 0, 0) \
	X(persist, 2, WRITE, 1, 1, 1) X(pexpire, -3, WRITE, 1, 1, 1) \
	X(pexpireat, -3, WRITE, 1, 1, 1) X(pexpiretime, 2, READ, 1, 1, 1) \
	X(ping, -1, COMMAND_PUBSUB, 0, 0, 0) X(psetex, 4, NEWW, 1, 1, 1) \
	X(psubscribe, -2, HEARS, 0, 0, 0) X(pttl, 2, READ, 1, 1, 1) \
	X(publish, 3, 0, 0, 0, 0) X(pubsub, -2, 0, 0, 0, 0) \
	X(punsubscribe, -1, COMMAND_PUBSUB, 0, 0, 0) X(quit, -1, OPEN | COMMAND_DIRECT, 0, 0, 0) \
	X(randomkey, 1, 0, 0, 0, 0) X(rename, 3, WRITE, 1, 2, 1) X(renamenx, 3, WRITE, 1, 2, 1) \
	X(reset, 1, OPEN | COMMAND_DIRECT, 0, 0, 0) X(rpop, -2, WRITE, 1, 1, 1) \
	X(rpoplpush, 3, NEWW, 1, 2, 1) X(rpush, -3, NEWW, 1, 1, 1) X(rpushx, -3, NEWW, 1, 1, 1) \
	X(sadd, -3, NEWW, 1, 1, 1) X(scan, -2, 0, 0, 0, 0) X(scard, 2, READ, 1, 1, 1) \
	X(script, -2, 0, 0, 0, 0) \
	X(sdiff, -2, READ, 1, -1, 1) X(sdiffstore, -3, NEWW, 1, -1, 1) X(select, 2, 0, 0, 0, 0) \
	X(set, -3, NEWW, 1, 1, 1) X(setbit, 4, NEWW, 1, 1, 1) X(setex, 4, NEWW, 1, 1, 1) \
	X(setnx, 3, NEWW, 1, 1, 1) X(setrange, 4, NEWW, 1, 1, 1) X(sinter, -2, READ, 1, -1, 1) \
	X(sintercard, -3, READ, 0, 0, 0) X(sinterstore, -3, NEWW, 1, -1, 1) \
	X(sismember, 3, READ, 1, 1, 1) X(smembers, 2, READ, 1, 1, 1) \
	X(smismember, -3, READ, 1, 1, 1) X(smove, 4, WRITE, 1, 2, 1) X(spop, -2, WRITE, 1, 1, 1) \
	X(srandmember, -2, READ, 1, 1, 1) X(srem, -3, WRITE, 1, 1, 1) X(sscan, -3, READ, 1, 1, 1) \
	X(strlen, 2, READ, 1, 1, 1) X(subscribe, -2, HEARS, 0, 0, 0) \
	X(substr, 4, READ, 1, 1, 1) \
	X(sunion, -2, READ, 1, -1, 1) X(sunionstore, -3, NEWW, 1, -1, 1) X(time, 1, 0, 0, 0, 0) \
	X(touch, -2, READ, 1, -1, 1) X(ttl, 2, READ, 1, 1, 1) X(type, 2, READ, 1, 1, 1) \
	X(unlink, -2, WRITE, 1, -1, 1) X(unsubscribe, -1, COMMAND_PUBSUB, 0, 0, 0) \
	X(unwatch, 1, 0, 0, 0, 0) X(wait, 3, 0, 0, 0, 0) \
	X(watch, -2, COMMAND_DIRECT | COMMAND_GROWS, 1, -1, 1) X(zadd, -4, NEWW, 1, 1, 1) \
	X(zcard, 2, READ, 1, 1, 1) X(zcount, 4, READ, 1, 1, 1) X(zdiff, -3, READ, 0, 0, 0) \
	X(zdiffstore, -4, NEWW, 1, 1, 1) X(zincrby, 4, NEWW, 1, 1, 1) \
	X(zinter, -3, READ, 0, 0, 0) \
	X(zintercard, -3, READ, 0, 0, 0) X(zinterstore, -4, NEWW, 1, 1, 1) \
	X(zlexcount, 4, READ, 1, 1, 1) X(zmscore, -3, READ, 1, 1, 1) \
	X(zpopmax, -2, WRITE, 1, 1, 1) \
	X(zpopmin, -2, WRITE, 1, 1, 1) X(zrandmember, -2, READ, 1, 1, 1) \
	X(zrange, -4, READ, 1, 1, 1) X(zrangebylex, -4, READ, 1, 1, 1) \
	X(zrangebyscore, -4, READ, 1, 1, 1) X(zrangestore, -5, NEWW, 1, 2, 1) \
	X(zrank, 3, READ, 1, 1, 1) X(zrem, -3, WRITE, 1, 1, 1) \
	X(zremrangebylex, 4, WRITE, 1, 1, 1) X(zremrangebyrank, 4, WRITE, 1, 1, 1) \
	X(zremrangebyscore, 4, WRITE, 1, 1, 1) X(zrevrange, -4, READ, 1, 1, 1) \
	X(zrevrangebylex, -4, READ, 1, 1, 1) X(zrevrangebyscore, -4, READ, 1, 1, 1) \
	X(zrevrank, 3, READ, 1, 1, 1) X(zscan, -3, READ, 1, 1, 1) X(zscore, 3, READ, 1, 1, 1) \
	X(zunion, -3, READ, 0, 0, 0) X(zunionstore, -4, NEWW, 1, 1, 1)
/* clang-format on */

#define X(name, ...) COMMAND(name);
COMMANDS(X)
#undef X

/* Subcommands of CLIENT for tracking. */
COMMAND(client_tracking);
COMMAND(client_caching);
COMMAND(client_getredir);

#endif
