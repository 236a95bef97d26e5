/* redis_cache.c - cached replies, valid until the server reports that their keys have changed.
 *
 * An entry is a command that reads one key, and its reply.  It is found by the encoded command,
 * and dropped by the key.  While its reply is on the way, all equal commands wait at the entry.
 * The entry has a command of its own that fetches the reply, so a caller that gives up does not
 * affect the others.
 *
 *   1. Only a connection with tracking fills entries, and they are dropped when it ends.
 *   2. An invalidation arrives on that connection, after the replies that it is about.
 *   3. The invalidation caused by a command of this client arrives after the command's reply,
 *      maybe in another read.  Therefore the reply itself drops all entries of keys that the
 *      command names, so that a caller reads its own writes.
 *   4. Entries with a reply are in the list by last use, and their total size is limited.
 */
#include "redis_client.h"

#define WORDS_MAX 512 /* bytes of a command that can be cached */
#define BUCKETS   64  /* initially; a power of 2 */

struct entry {
	struct entry *next, *next_by_key; /* in the buckets */
	uint64_t hash, key_hash;
	struct weft__link by_use;
	struct weft__link behind; /* commands that wait for the reply */
	weft_redis *redis;
	weft_redis_reply *reply; /* NULL: the reply is being fetched */
	struct weft__redis_command fetch;
	size_t cost;
	char bytes[];
};

struct weft__redis_cache {
	struct entry **by_command, **by_key;
	size_t mask, count;
	struct weft__link by_use; /* latest first */
	size_t bytes;
};

static uint64_t
hash_of(const void *data, size_t size)
{
	const unsigned char *bytes = data;
	uint64_t hash = size * 0x9e3779b97f4a7c15u;

	for (; size >= 8; size -= 8, bytes += 8) {
		uint64_t word;

		memcpy(&word, bytes, 8);
		hash = (hash ^ word) * 0xff51afd7ed558ccdu;
		hash ^= hash >> 32;
	}
	for (; size > 0; size--)
		hash = (hash ^ *bytes++) * 0x100000001b3u;
	return hash ^ hash >> 29;
}

/* --- the tables ---------------------------------------------------------------- */

static int
make_tables(struct weft__redis_cache *cache, size_t buckets)
{
	size_t size = buckets * sizeof(*cache->by_command);
	struct entry **tables = weft_alloc(2 * size);

	if (!tables)
		return WEFT_ENOMEM;
	memset(tables, 0, 2 * size);
	cache->by_command = tables;
	cache->by_key = tables + buckets;
	cache->mask = buckets - 1;
	return 0;
}

static void
link_entry(struct weft__redis_cache *cache, struct entry *entry)
{
	struct entry **args = &cache->by_command[entry->hash & cache->mask];
	struct entry **key = &cache->by_key[entry->key_hash & cache->mask];

	entry->next = *args;
	*args = entry;
	entry->next_by_key = *key;
	*key = entry;
}

/* Without memory for more buckets, the chains get longer. */
static void
cache_grow(struct weft__redis_cache *cache)
{
	struct weft__redis_cache old = *cache;

	if (cache->count <= cache->mask || make_tables(cache, 2 * (cache->mask + 1)) < 0)
		return;
	for (size_t i = 0; i <= old.mask; i++) {
		while (old.by_command[i]) {
			struct entry *entry = old.by_command[i];

			old.by_command[i] = entry->next;
			link_entry(cache, entry);
		}
	}
	weft_release(old.by_command);
}

static void
unlink_entry(struct weft__redis_cache *cache, struct entry *entry)
{
	struct entry **at = &cache->by_command[entry->hash & cache->mask];

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	at = &cache->by_key[entry->key_hash & cache->mask];
	while (*at != entry)
		at = &(*at)->next_by_key;
	*at = entry->next_by_key;
	cache->count--;
}

static struct entry *
cache_find(const struct weft__redis_cache *cache, const char *bytes, size_t size)
{
	uint64_t hash = hash_of(bytes, size);
	struct entry *entry = cache->by_command[hash & cache->mask];

	while (entry
	       && (entry->hash != hash || entry->fetch.size != size
	           || memcmp(entry->bytes, bytes, size) != 0))
		entry = entry->next;
	return entry;
}

/* The entry must not be being fetched. */
static void
cache_drop(struct weft__redis_cache *cache, struct entry *entry)
{
	unlink_entry(cache, entry);
	weft__link_remove(&entry->by_use);
	cache->bytes -= entry->cost;
	weft_redis_reply_free(entry->reply);
	weft_release(entry->fetch.text);
	weft_release(entry);
}

int
weft__redis_cache_open(weft_redis *redis)
{
	struct weft__redis_cache *cache = weft_alloc(sizeof(*cache));

	if (!cache)
		return weft_fail(WEFT_ENOMEM, "weft_redis_open: out of memory");
	*cache = (struct weft__redis_cache){ 0 };
	weft__link_init(&cache->by_use);
	redis->cache = cache;
	if (make_tables(cache, BUCKETS) < 0)
		return weft_fail(WEFT_ENOMEM, "weft_redis_open: out of memory");
	return 0;
}

void
weft__redis_cache_clear(weft_redis *redis)
{
	struct weft__redis_cache *cache = redis->cache;

	while (cache && !weft__list_is_empty(&cache->by_use))
		cache_drop(cache, WEFT__LINK_OF(entry, by_use, cache->by_use.next));
}

void
weft__redis_cache_close(weft_redis *redis)
{
	if (!redis->cache)
		return;
	weft__redis_cache_clear(redis);
	weft_release(redis->cache->by_command);
	weft_release(redis->cache);
}

size_t
weft__redis_cache_bytes(const weft_redis *redis)
{
	return redis->cache ? redis->cache->bytes : 0;
}

static bool
is_tracked(const weft_redis *redis)
{
	return redis->shared.conn && redis->shared.conn->tracks;
}

/* --- fetching ------------------------------------------------------------------ */

static void
answer_one(struct entry *entry, struct weft__redis_command *command, int rc)
{
	const struct weft__redis_command *fetch = &entry->fetch;

	weft__link_remove(&command->link);
	command->state = WEFT__REDIS_NOWHERE;
	if (fetch->reply)
		weft__redis_answer(entry->redis, command, weft__resp_ref(fetch->reply));
	else
		weft__redis_end(entry->redis, command, rc, fetch->text);
}

/* Invariants 1 and 4. */
static void
cache_keep(struct weft__redis_cache *cache, struct entry *entry)
{
	weft_redis *redis = entry->redis;

	entry->reply = entry->fetch.reply;
	entry->cost = sizeof(*entry) + entry->fetch.size + weft__resp_bytes(entry->reply);
	cache->bytes += entry->cost;
	weft__link_before(cache->by_use.next, &entry->by_use);
	while (cache->bytes > redis->cache_bytes)
		cache_drop(cache, WEFT__LINK_OF(entry, by_use, cache->by_use.prev));
}

static void
on_fetched(struct weft__redis_command *fetch, int rc)
{
	struct entry *entry = WEFT__LINK_OF(entry, fetch, fetch);
	struct weft__redis_cache *cache = entry->redis->cache;

	while (!weft__list_is_empty(&entry->behind))
		answer_one(entry, WEFT__LINK_OF(weft__redis_command, link, entry->behind.next), rc);
	if (rc == 0 && is_tracked(entry->redis)) {
		cache_keep(cache, entry);
		return;
	}
	unlink_entry(cache, entry);
	weft_redis_reply_free(fetch->reply);
	weft_release(fetch->text);
	weft_release(entry);
}

static struct entry *
make_entry(weft_redis *redis, const struct weft__redis_command *command, const char *bytes,
           size_t size)
{
	struct weft__redis_cache *cache = redis->cache;
	struct entry *entry = weft_alloc(sizeof(*entry) + size);

	if (!entry)
		return NULL;
	*entry = (struct entry){ .redis = redis };
	memcpy(entry->bytes, bytes, size);
	entry->hash = hash_of(bytes, size);
	entry->key_hash = hash_of(command->key.data, command->key.size);
	weft__link_init(&entry->by_use);
	weft__link_init(&entry->behind);
	entry->fetch = (struct weft__redis_command){
		.bytes = entry->bytes,
		.size = size,
		.name = weft__redis_arg(entry->bytes, 0, command->name.size),
		.replies = 1,
		.flags = command->flags,
		.fetches = true,
		.done = on_fetched,
	};
	cache->count++;
	link_entry(cache, entry);
	cache_grow(cache);
	return entry;
}

weft_redis_reply *
weft__redis_cache_find(weft_redis *redis, const char *bytes, size_t size)
{
	struct weft__redis_cache *cache = redis->cache;
	struct entry *entry = cache_find(cache, bytes, size);

	if (!entry || !entry->reply)
		return NULL;
	weft__link_remove(&entry->by_use);
	weft__link_before(cache->by_use.next, &entry->by_use);
	redis->stats.hits++;
	return weft__resp_ref(entry->reply);
}

bool
weft__redis_cache_join(weft_redis *redis, struct weft__redis_command *command)
{
	char room[WORDS_MAX];
	const char *bytes = command->bytes ? command->bytes : room;
	size_t size = command->bytes ? command->size
	                             : weft__resp_size(command->args, command->count);
	weft_redis_reply *reply;
	struct entry *entry;
	bool is_new;

	if (size > WORDS_MAX
	    || (redis->shared.conn && !is_tracked(redis)
	        && redis->shared.state == WEFT__REDIS_READY))
		return false;
	if (!command->bytes)
		(void)weft__resp_put(room, command->args, command->count);
	reply = weft__redis_cache_find(redis, bytes, size);
	if (reply) {
		weft__redis_answer(redis, command, reply);
		return true;
	}
	entry = cache_find(redis->cache, bytes, size);
	is_new = !entry;
	if (is_new)
		entry = make_entry(redis, command, bytes, size);
	if (!entry)
		return false;
	command->state = WEFT__REDIS_AWAITS_CACHE;
	weft__link_before(&entry->behind, &command->link);
	if (is_new)
		weft__redis_submit(redis, &entry->fetch);
	return true;
}

/* --- invalidation -------------------------------------------------------------- */

/* The key is the first argument: "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n". */
static bool
has_key(const struct entry *entry, weft_span key)
{
	const char *end = entry->bytes + entry->fetch.size;
	const char *at = weft__redis_arg(entry->bytes, 1, 0).data;

	return (size_t)(end - at) >= key.size + 2 && memcmp(at, key.data, key.size) == 0
	       && at[key.size] == '\r';
}

static void
drop_key(struct weft__redis_cache *cache, weft_span key)
{
	uint64_t hash = hash_of(key.data, key.size);
	struct entry *entry = cache->by_key[hash & cache->mask], *next;

	for (; entry; entry = next) {
		next = entry->next_by_key;
		if (entry->reply && entry->key_hash == hash && has_key(entry, key))
			cache_drop(cache, entry);
	}
}

void
weft__redis_cache_invalidate(weft_redis *redis, const weft_redis_reply *keys)
{
	weft_span key;

	if (!redis->cache)
		return;
	if (weft_redis_reply_type(keys) == WEFT_REDIS_NIL)
		weft__redis_cache_clear(redis);
	for (size_t i = 0; i < weft_redis_count(keys); i++) {
		if (weft_redis_text(weft_redis_item(keys, i), &key) < 0)
			continue;
		redis->stats.invalidated++;
		drop_key(redis->cache, key);
	}
}

/* Drop the entries of all arguments of an encoded command or transaction.  Each argument is a
 * line with its size, followed by its bytes. */
static void
drop_bytes(struct weft__redis_cache *cache, const char *at, const char *end)
{
	while (at < end) {
		size_t size = 0;
		char kind = *at++;

		for (; *at != '\r'; at++)
			size = size * 10 + (size_t)(*at - '0');
		at += 2;
		if (kind != '$')
			continue;
		drop_key(cache, (weft_span){ at, size });
		at += size + 2;
	}
}

/* Invariant 3. */
void
weft__redis_cache_wrote(weft_redis *redis, const struct weft__redis_command *command)
{
	struct weft__redis_cache *cache = redis->cache;

	if (weft__list_is_empty(&cache->by_use))
		return;
	if (command->bytes)
		drop_bytes(cache, command->bytes, command->bytes + command->size);
	else
		for (size_t i = 1; i < command->count; i++)
			drop_key(cache, command->args[i]);
}
