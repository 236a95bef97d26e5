/* redis_table.c - properties of commands, by their names.
 *
 * A command that is not listed here may change something, so it is never repeated.  Each
 * endpoint has a hash table of names, which holds indexes of the entries below.
 */
#include "redis_client.h"

#define READS  WEFT__REDIS_READS
#define BLOCKS WEFT__REDIS_BLOCKS
#define STATE  WEFT__REDIS_STATE
#define NEVER  WEFT__REDIS_NEVER
#define KEYED  (WEFT__REDIS_READS | WEFT__REDIS_KEYED)

struct entry {
	char name[24];
	uint8_t flags;
};

static const struct entry entries[] = {
	{ "BITCOUNT", KEYED },
	{ "BITFIELD_RO", KEYED },
	{ "BITPOS", KEYED },
	{ "DBSIZE", READS },
	{ "DUMP", KEYED },
	{ "ECHO", READS },
	{ "EVALSHA_RO", READS },
	{ "EVAL_RO", READS },
	{ "EXISTS", READS },
	{ "EXPIRETIME", READS },
	{ "FCALL_RO", READS },
	{ "GEODIST", KEYED },
	{ "GEOHASH", KEYED },
	{ "GEOPOS", KEYED },
	{ "GEORADIUSBYMEMBER_RO", READS },
	{ "GEORADIUS_RO", READS },
	{ "GEOSEARCH", KEYED },
	{ "GET", KEYED },
	{ "GETBIT", KEYED },
	{ "GETRANGE", KEYED },
	{ "HEXISTS", KEYED },
	{ "HGET", KEYED },
	{ "HGETALL", KEYED },
	{ "HKEYS", KEYED },
	{ "HLEN", KEYED },
	{ "HMGET", KEYED },
	{ "HRANDFIELD", READS },
	{ "HSCAN", READS },
	{ "HSTRLEN", KEYED },
	{ "HVALS", KEYED },
	{ "INFO", READS },
	{ "KEYS", READS },
	{ "LASTSAVE", READS },
	{ "LCS", READS },
	{ "LINDEX", KEYED },
	{ "LLEN", KEYED },
	{ "LOLWUT", READS },
	{ "LPOS", KEYED },
	{ "LRANGE", KEYED },
	{ "MGET", READS },
	{ "PEXPIRETIME", READS },
	{ "PFCOUNT", READS },
	{ "PING", READS },
	{ "PTTL", READS },
	{ "RANDOMKEY", READS },
	{ "ROLE", READS },
	{ "SCAN", READS },
	{ "SCARD", KEYED },
	{ "SDIFF", READS },
	{ "SINTER", READS },
	{ "SINTERCARD", READS },
	{ "SISMEMBER", KEYED },
	{ "SMEMBERS", KEYED },
	{ "SMISMEMBER", KEYED },
	{ "SORT_RO", READS },
	{ "SRANDMEMBER", READS },
	{ "SSCAN", READS },
	{ "STRLEN", KEYED },
	{ "SUBSTR", KEYED },
	{ "SUNION", READS },
	{ "TIME", READS },
	{ "TTL", READS },
	{ "TYPE", KEYED },
	{ "XINFO", READS },
	{ "XLEN", KEYED },
	{ "XPENDING", READS },
	{ "XRANGE", KEYED },
	{ "XREAD", READS | WEFT__REDIS_MAYBE },
	{ "XREADGROUP", WEFT__REDIS_MAYBE },
	{ "XREVRANGE", KEYED },
	{ "ZCARD", KEYED },
	{ "ZCOUNT", KEYED },
	{ "ZDIFF", READS },
	{ "ZINTER", READS },
	{ "ZINTERCARD", READS },
	{ "ZLEXCOUNT", KEYED },
	{ "ZMSCORE", KEYED },
	{ "ZRANDMEMBER", READS },
	{ "ZRANGE", KEYED },
	{ "ZRANGEBYLEX", KEYED },
	{ "ZRANGEBYSCORE", KEYED },
	{ "ZRANK", KEYED },
	{ "ZREVRANGE", KEYED },
	{ "ZREVRANGEBYLEX", KEYED },
	{ "ZREVRANGEBYSCORE", KEYED },
	{ "ZREVRANK", KEYED },
	{ "ZSCAN", READS },
	{ "ZSCORE", KEYED },
	{ "ZUNION", READS },
	/* block at the server */
	{ "BLMOVE", BLOCKS },
	{ "BLMPOP", BLOCKS },
	{ "BLPOP", BLOCKS },
	{ "BRPOP", BLOCKS },
	{ "BRPOPLPUSH", BLOCKS },
	{ "BZMPOP", BLOCKS },
	{ "BZPOPMAX", BLOCKS },
	{ "BZPOPMIN", BLOCKS },
	{ "WAIT", STATE | BLOCKS },    /* for the writes of its connection */
	{ "WAITAOF", STATE | BLOCKS }, /* the same */
	/* change the state of the connection */
	{ "ASKING", STATE },
	{ "AUTH", STATE },
	{ "CLIENT", WEFT__REDIS_CLIENT },
	{ "DISCARD", STATE },
	{ "EXEC", STATE },
	{ "HELLO", STATE },
	{ "MULTI", STATE },
	{ "QUIT", STATE },
	{ "READONLY", STATE },
	{ "READWRITE", STATE },
	{ "RESET", STATE },
	{ "SELECT", STATE },
	{ "UNWATCH", STATE },
	{ "WATCH", STATE },
	/* do not have exactly one reply */
	{ "MONITOR", NEVER },
	{ "PSUBSCRIBE", NEVER },
	{ "PSYNC", NEVER },
	{ "PUNSUBSCRIBE", NEVER },
	{ "REPLCONF", NEVER },
	{ "SSUBSCRIBE", NEVER },
	{ "SUBSCRIBE", NEVER },
	{ "SUNSUBSCRIBE", NEVER },
	{ "SYNC", NEVER },
	{ "UNSUBSCRIBE", NEVER },
};

#define COUNT (sizeof(entries) / sizeof(entries[0]))
_Static_assert(COUNT < 255, "an entry's number fits in a byte");
_Static_assert(WEFT__REDIS_TABLE >= 4 * COUNT, "the table is sparse");

static inline unsigned char
upper(unsigned char byte)
{
	return byte >= 'a' && byte <= 'z' ? byte - 32 : byte;
}

/* Ignores case: bit 5 is masked out. */
static uint32_t
hash_name(const unsigned char *name, size_t size)
{
	uint32_t hash = (uint32_t)size;

	for (size_t i = 0; i < size; i++)
		hash = hash * 31 + (name[i] & 0xdfu);
	return hash ^ hash >> 10;
}

static bool
is_name(weft_span word, const char *name)
{
	const unsigned char *bytes = word.data;

	for (size_t i = 0; i < word.size; i++)
		if (upper(bytes[i]) != (unsigned char)name[i])
			return false;
	return name[word.size] == '\0';
}

void
weft__redis_table_make(uint8_t *table)
{
	memset(table, 0, WEFT__REDIS_TABLE);
	for (size_t i = 0; i < COUNT; i++) {
		uint32_t at = hash_name((const unsigned char *)entries[i].name,
		                        strnlen(entries[i].name, sizeof(entries[i].name)));

		while (table[at % WEFT__REDIS_TABLE])
			at++;
		table[at % WEFT__REDIS_TABLE] = (uint8_t)(i + 1);
	}
}

static uint32_t
redis_table_find(const weft_redis *redis, weft_span name)
{
	uint32_t at = hash_name(name.data, name.size);
	uint8_t number;

	if (name.size >= sizeof(entries[0].name))
		return 0;
	while ((number = redis->table[at % WEFT__REDIS_TABLE]) != 0) {
		if (is_name(name, entries[number - 1].name))
			return entries[number - 1].flags;
		at++;
	}
	return 0;
}

static uint32_t
flags_of_client(const weft_span *args, size_t count)
{
	static const char *const states[] = { "CACHING", "NO-EVICT", "NO-TOUCH",
		                              "SETINFO", "SETNAME",  "TRACKING" };

	if (count < 2)
		return 0;
	if (is_name(args[1], "REPLY"))
		return NEVER;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (is_name(args[1], states[i]))
			return STATE;
	return 0;
}

static bool
has_block(const weft_span *args, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (is_name(args[i], "BLOCK"))
			return true;
	return false;
}

uint32_t
weft__redis_flags(const weft_redis *redis, const weft_span *args, size_t count)
{
	uint32_t flags = redis_table_find(redis, args[0]);

	if (flags & WEFT__REDIS_CLIENT)
		return flags_of_client(args, count);
	if (flags & WEFT__REDIS_MAYBE) {
		flags &= ~(uint32_t)WEFT__REDIS_MAYBE;
		if (has_block(args, count))
			flags |= BLOCKS;
	}
	if ((flags & WEFT__REDIS_KEYED) && count < 2)
		flags &= ~(uint32_t)WEFT__REDIS_KEYED;
	return flags;
}
