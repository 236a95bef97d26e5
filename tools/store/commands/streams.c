/* streams.c - the commands for streams and their groups of consumers.
 *
 * An entry is a field.  Its name is its ID, as 16 bytes that are in the order of the IDs; its value
 * is the number of its arguments, and each argument after its size.  The groups of a stream are in
 * key->more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "store/commands/commands.h"

#define ID(ms, seq) ((stream_id)(ms) << 64 | (seq))
#define ID_MAX      ID(UINT64_MAX, UINT64_MAX)
#define ID_BYTES    16
#define ID_TEXT     48
#define NODE_SIZE   100 /* redis-server trims approximately by whole nodes of this size */
#define NO_GROUP    "NOGROUP No such key '%.*s' or consumer group '%.*s'"

struct group {
	struct node node;
	struct map consumers, pending;
	stream_id last; /* delivered */
	char name[];
};

struct consumer {
	struct node node;
	int64_t pending; /* entries */
	char name[];
};

/* An entry that was delivered and not acknowledged.  It has the name of the entry. */
struct pending {
	struct node node;
	struct consumer *consumer;
	int64_t delivered_ms, deliveries;
	char name[];
};

/* --- IDs -------------------------------------------------------------------- */

static struct slice
id_name(stream_id id, char out[ID_BYTES])
{
	bytes_put(out, (uint64_t)(id >> 64));
	bytes_put(out + 8, (uint64_t)id);
	return (struct slice){ out, ID_BYTES };
}

static stream_id
id_of(const char *name)
{
	return ID(bytes_get(name), bytes_get(name + 8));
}

/* The number of names before an ID. */
static size_t
id_before(const struct map *map, stream_id id, bool or_equal)
{
	char name[ID_BYTES];

	return map_before(map, id_name(id, name), or_equal);
}

static void *
id_find(const struct map *map, stream_id id)
{
	char name[ID_BYTES];

	return map_find(map, id_name(id, name));
}

static struct slice
id_format(stream_id id, char out[ID_TEXT])
{
	int size = snprintf(out, ID_TEXT, "%llu-%llu", (unsigned long long)(id >> 64),
	                    (unsigned long long)id);

	return (struct slice){ out, (size_t)size };
}

static void
reply_id(struct client *client, stream_id id)
{
	char text[ID_TEXT];

	reply_bulk(client, id_format(id, text));
}

static bool
parse_part(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0;
}

/* Parses argv[at].  The sequence number is `seq` if it is missing.  It may be "*" only where
 * `any_seq` is not NULL. */
static bool
parse_id(struct client *client, size_t at, uint64_t seq, stream_id *out, bool *any_seq)
{
	struct slice arg = client->argv[at];
	char text[64], *dash;
	uint64_t ms = 0;

	(void)snprintf(text, sizeof(text), "%.*s", (int)(arg.size < 64 ? arg.size : 0), arg.data);
	dash = strchr(text, '-');
	if (dash)
		*dash++ = '\0';
	if (dash && any_seq && strcmp(dash, "*") == 0) {
		*any_seq = true;
		dash = NULL;
	}
	*out = 0;
	if (!parse_part(text, &ms) || (dash && !parse_part(dash, &seq)))
		return reply_error(client,
		                   "ERR Invalid stream ID specified as stream command argument");
	*out = ID(ms, seq);
	return true;
}

static bool
arg_id(struct client *client, size_t at, stream_id *out)
{
	return parse_id(client, at, 0, out, NULL);
}

/* Parses argv[at] as an end of a range: "-" and "+" are the ends of all IDs, "(" excludes. */
static bool
arg_bound(struct client *client, size_t at, bool is_end, stream_id *out)
{
	struct slice *arg = &client->argv[at];
	bool open = arg->size > 1 && arg->data[0] == '(';

	arg->data += open;
	arg->size -= open;
	if (!open && (slice_is(*arg, "-") || slice_is(*arg, "+")))
		*out = arg->data[0] == '-' ? 0 : ID_MAX;
	else if (!parse_id(client, at, is_end ? UINT64_MAX : 0, out, NULL))
		return false;
	if (open && *out == (is_end ? 0 : ID_MAX))
		return reply_error(client, SYNTAX);
	*out += !open ? 0 : is_end ? ID_MAX : 1;
	return true;
}

/* --- entries ---------------------------------------------------------------- */

static void
add_entry(struct key *key, stream_id id, const struct slice *args, size_t count)
{
	char name[ID_BYTES], *at;
	struct string *value;
	size_t size = 8;

	for (size_t i = 0; i < count; i++)
		size += 8 + args[i].size;
	value = memory_alloc(key->fields.memory, sizeof(*value) + size);
	value->size = size;
	bytes_put(value->bytes, count);
	at = value->bytes + 8;
	for (size_t i = 0; i < count; i++) {
		bytes_put(at, args[i].size);
		memcpy(at + 8, args[i].data, args[i].size);
		at += 8 + args[i].size;
	}
	((struct field *)map_add(&key->fields, id_name(id, name)))->value = value;
	key->last_id = id;
}

static void
reply_entry(struct client *client, const struct field *entry)
{
	const char *at = entry->value->bytes + 8;
	uint64_t count = bytes_get(at - 8);

	reply_many(client, '*', 2);
	reply_id(client, id_of(entry->name));
	reply_many(client, '*', count);
	for (; count > 0; count--) {
		reply_bulk(client, (struct slice){ at + 8, bytes_get(at) });
		at += 8 + bytes_get(at);
	}
}

struct trim {
	enum { TRIM_NONE, TRIM_COUNT, TRIM_ID } by;
	bool is_rough;
	int64_t most;
	stream_id least;
};

/* Parses the options of XADD and XTRIM from argv[2] on.  Returns the position after them; 0 after
 * replying with an error. */
static size_t
read_trim(struct client *client, struct trim *trim)
{
	struct slice *argv = client->argv;
	size_t at = 2;

	for (; at + 1 < client->argc; at++) {
		bool by_count = slice_is(argv[at], "maxlen"), more = at + 2 < client->argc;

		if (!by_count && !slice_is(argv[at], "minid"))
			break;
		if (trim->by != TRIM_NONE)
			return reply_error(client, SYNTAX);
		trim->by = by_count ? TRIM_COUNT : TRIM_ID;
		trim->is_rough = more && slice_is(argv[at + 1], "~");
		at += 1 + (more && (trim->is_rough || slice_is(argv[at + 1], "=")));
		if (by_count ? !arg_integer(client, at, &trim->most)
		             : !arg_id(client, at, &trim->least))
			return 0;
		if (trim->most < 0)
			return reply_error(client, SYNTAX);
	}
	return at;
}

/* Returns how many entries were removed. */
static int64_t
trim_stream(struct key *key, const struct trim *trim)
{
	size_t count = map_count(&key->fields), excess = 0;

	if (trim->by == TRIM_ID)
		excess = id_before(&key->fields, trim->least, false);
	else if (trim->by == TRIM_COUNT && count > (size_t)trim->most)
		excess = count - (size_t)trim->most;
	excess -= trim->is_rough && excess < count ? excess % NODE_SIZE : 0;
	for (size_t i = 0; i < excess; i++)
		(void)field_remove(&key->fields, map_at(&key->fields, 0));
	return (int64_t)excess;
}

COMMAND(xadd)
{
	struct trim trim = { 0 };
	size_t at = read_trim(client, &trim);
	bool any_ms = at && at < client->argc && slice_is(client->argv[at], "*"), any_seq = false;
	stream_id last = client->key ? client->key->last_id : 0;
	stream_id id = ID((uint64_t)client->store->now_ms, 0);

	if (!at || (at < client->argc && !any_ms && !parse_id(client, at, 0, &id, &any_seq)))
		return;
	if (client->argc < at + 3 || (client->argc - at) % 2 == 0) {
		reply_error(client, WRONG_ARITY, "xadd");
		return;
	}
	if ((any_ms && id <= last) || (any_seq && id >> 64 == last >> 64))
		id = last + ((any_ms && last != ID_MAX) || (uint64_t)last != UINT64_MAX);
	if (id == 0 && !any_seq)
		reply_error(client, "ERR The ID specified in XADD must be greater than 0-0");
	else if (id <= last)
		reply_error(client, "ERR The ID specified in XADD is equal or smaller than the "
		                    "target stream top item");
	else {
		if (!client->key)
			client->key = key_add(client, client->argv[1], TYPE_STREAM);
		add_entry(client->key, id, &client->argv[at + 1], client->argc - at - 1);
		reply_id(client, id);
		(void)trim_stream(client->key, &trim);
	}
}

COMMAND(xtrim)
{
	struct trim trim = { 0 };
	size_t at = read_trim(client, &trim);

	if (at && (at < client->argc || trim.by == TRIM_NONE))
		reply_error(client, SYNTAX);
	else if (at)
		reply_integer(client, client->key ? trim_stream(client->key, &trim) : 0);
}

/* XRANGE, XREVRANGE */
COMMAND(xrange)
{
	bool reverse = client->command->variant == REVERSE, limited = client->argc == 6;
	size_t begin = 0, end = 0;
	int64_t count = INT64_MAX;
	stream_id first, last;

	if (!arg_bound(client, 2 + reverse, false, &first)
	    || !arg_bound(client, 3 - reverse, true, &last))
		return;
	if (client->argc > 4 && (!limited || !slice_is(client->argv[4], "count"))) {
		reply_error(client, SYNTAX);
		return;
	}
	if (limited && !arg_integer(client, 5, &count))
		return;
	if (client->key && count <= 0) {
		reply_null_array(client);
		return;
	}
	if (client->key) {
		begin = id_before(&client->key->fields, first, false);
		end = id_before(&client->key->fields, last, true);
	}
	end = end < begin ? begin : end;
	if (end - begin > (size_t)count && reverse)
		begin = end - (size_t)count;
	else if (end - begin > (size_t)count)
		end = begin + (size_t)count;
	reply_many(client, '*', end - begin);
	for (size_t i = begin; i < end; i++)
		reply_entry(client,
		            map_at(&client->key->fields, reverse ? begin + end - 1 - i : i));
}

/* --- groups ----------------------------------------------------------------- */

void
group_fini(void *node, struct memory *memory)
{
	struct group *group = node;

	(void)memory;
	map_clear(&group->consumers, NULL);
	map_clear(&group->pending, NULL);
}

/* The group argv[2] of the stream argv[1].  Returns NULL after replying with an error. */
static struct group *
find_group(struct client *client)
{
	struct group *group = client->key ? map_find(&client->key->more, client->argv[2]) : NULL;

	if (!group)
		reply_error(client, NO_GROUP, SHOWN(client->argv[1]), SHOWN(client->argv[2]));
	return group;
}

static struct consumer *
make_consumer(struct group *group, struct slice name)
{
	struct consumer *consumer = map_find(&group->consumers, name);

	return consumer ? consumer : map_add(&group->consumers, name);
}

/* Returns whether there was an entry; accepts NULL. */
static bool
pending_remove(struct group *group, struct pending *pending)
{
	if (!pending)
		return false;
	pending->consumer->pending--;
	map_remove(&group->pending, pending);
	return true;
}

/* Gives an entry to a consumer. */
static void
pending_deliver(struct client *client, struct pending *pending, struct consumer *consumer)
{
	pending->consumer = consumer;
	consumer->pending++;
	pending->delivered_ms = client->store->now_ms;
	pending->deliveries++;
}

/* XGROUP CREATE key group ID [MKSTREAM] */
static void
xgroup_create(struct client *client, struct key *key)
{
	bool newest = slice_is(client->argv[4], "$");
	stream_id last = key && newest ? key->last_id : 0;
	struct group *group;

	if (!newest && !arg_id(client, 4, &last))
		return;
	if (!key)
		key = key_add(client, client->argv[2], TYPE_STREAM);
	key->more.offset = offsetof(struct group, name);
	if (map_find(&key->more, client->argv[3])) {
		reply_error(client, "BUSYGROUP Consumer Group name already exists");
		return;
	}
	group = map_add(&key->more, client->argv[3]);
	group->last = last;
	map_init(&group->consumers, key->more.memory, offsetof(struct consumer, name));
	map_init(&group->pending, key->more.memory, offsetof(struct pending, name));
	reply_ok(client);
}

/* XGROUP DESTROY key group */
static void
xgroup_destroy(struct client *client, struct key *key)
{
	struct group *group = map_find(&key->more, client->argv[3]);

	reply_integer(client, group != NULL);
	if (!group)
		return;
	group_fini(group, key->more.memory);
	map_remove(&key->more, group);
	key_modified(client, key);
}

COMMAND(xgroup)
{
	bool make = client->argc == 6 && slice_is(client->argv[5], "mkstream");
	bool create = client->argc >= 5 && slice_is(client->argv[1], "create");
	struct key *key = client->argc > 2 ? key_find(client, client->argv[2]) : NULL;

	if (create ? client->argc > 5 && !make
	           : client->argc != 4 || !slice_is(client->argv[1], "destroy"))
		reply_error(client, UNKNOWN_PART, SHOWN(client->argv[1]));
	else if (key && key->type != TYPE_STREAM)
		reply_error(client, WRONG_TYPE);
	else if (!key && !make)
		reply_error(client, "ERR The XGROUP subcommand requires the key to exist");
	else
		(create ? xgroup_create : xgroup_destroy)(client, key);
}

/* XDEL, XACK.  Nothing is removed if one of the IDs is not valid. */
COMMAND(xdel)
{
	bool is_ack = client->command->variant;
	struct map *entries = &client->key->fields;
	struct group *group = is_ack ? map_find(&client->key->more, client->argv[2]) : NULL;
	size_t first = is_ack ? 3 : 2;
	int64_t removed = 0;
	stream_id id;

	for (size_t i = first; (group || !is_ack) && i < client->argc; i++)
		if (!arg_id(client, i, &id))
			return;
	for (size_t i = first; (group || !is_ack) && i < client->argc; i++) {
		(void)arg_id(client, i, &id);
		removed += is_ack ? pending_remove(group, id_find(&group->pending, id))
		                  : field_remove(entries, id_find(entries, id));
	}
	reply_integer(client, removed);
}

/* --- pending entries ---------------------------------------------------------- */

static void
reply_summary(struct client *client, const struct group *group)
{
	size_t count = map_count(&group->pending), position, shown = 0;
	char text[INTEGER_MAX];

	reply_many(client, '*', 4);
	reply_integer(client, (int64_t)count);
	if (count == 0) {
		reply_null(client);
		reply_null(client);
		reply_null_array(client);
		return;
	}
	reply_id(client, id_of(map_name(&group->pending, map_at(&group->pending, 0)).data));
	reply_id(client, id_of(map_name(&group->pending, map_at(&group->pending, count - 1)).data));
	position = reply_later(client);
	for (size_t i = 0; i < map_count(&group->consumers); i++) {
		const struct consumer *consumer = map_at(&group->consumers, i);

		if (consumer->pending == 0)
			continue;
		reply_many(client, '*', 2);
		reply_bulk(client, map_name(&group->consumers, consumer));
		reply_bulk(client, integer_format(text, consumer->pending));
		shown++;
	}
	reply_count(client, position, '*', shown);
}

/* XPENDING key group [start end count [consumer]] */
COMMAND(xpending)
{
	size_t position, shown = 0;
	int64_t count = 0;
	stream_id first, last;
	struct consumer *only = NULL;
	struct group *group;

	if (client->argc != 3 && (client->argc < 6 || client->argc > 7)) {
		reply_error(client, SYNTAX);
		return;
	}
	if (client->argc > 3
	    && (!arg_integer(client, 5, &count) || !arg_bound(client, 3, false, &first)
	        || !arg_bound(client, 4, true, &last)))
		return;
	group = find_group(client);
	if (group && client->argc == 3)
		reply_summary(client, group);
	if (!group || client->argc == 3)
		return;
	if (client->argc == 7) {
		only = map_find(&group->consumers, client->argv[6]);
		count = only ? count : 0;
	}
	position = reply_later(client);
	for (size_t i = id_before(&group->pending, first, false); count > 0; i++) {
		const struct pending *pending = map_at(&group->pending, i);

		if (!pending || id_of(pending->name) > last)
			break;
		if (only && pending->consumer != only)
			continue;
		reply_many(client, '*', 4);
		reply_id(client, id_of(pending->name));
		reply_bulk(client, map_name(&group->consumers, pending->consumer));
		reply_integer(client, client->store->now_ms - pending->delivered_ms);
		reply_integer(client, pending->deliveries);
		shown++;
		count--;
	}
	reply_count(client, position, '*', shown);
}

/* XAUTOCLAIM key group consumer idle-ms start [COUNT count] */
COMMAND(xautoclaim)
{
	int64_t idle_ms, count = 100, now_ms = client->store->now_ms;
	size_t claimed = 0, gone = 0, room, at;
	struct pending *pending = NULL;
	struct group *group;
	stream_id first, *ids;

	if (!arg_integer(client, 4, &idle_ms) || !arg_bound(client, 5, false, &first))
		return;
	if (client->argc > 6 && (client->argc != 8 || !slice_is(client->argv[6], "count"))) {
		reply_error(client, SYNTAX);
		return;
	}
	if (client->argc == 8 && !arg_integer(client, 7, &count))
		return;
	if (count < 1 || count > INT64_MAX / 16) {
		reply_error(client, "ERR COUNT must be > 0");
		return;
	}
	group = find_group(client);
	if (!group)
		return;
	/* IDs of claimed entries, and at the end of the array those of entries that are gone. */
	room = map_count(&group->pending);
	room = room < (size_t)count ? room : (size_t)count;
	ids = memory_alloc(&client->store->memory, room * sizeof(*ids));
	at = id_before(&group->pending, first, false);
	for (count *= 10; count > 0 && claimed + gone < room; count--) {
		pending = map_at(&group->pending, at);
		if (!pending)
			break;
		if (!id_find(&client->key->fields, id_of(pending->name))) {
			ids[room - ++gone] = id_of(pending->name);
			pending_remove(group, pending);
			continue;
		}
		at++;
		if (now_ms - pending->delivered_ms < idle_ms)
			continue;
		pending->consumer->pending--;
		pending_deliver(client, pending, make_consumer(group, client->argv[3]));
		ids[claimed++] = id_of(pending->name);
	}
	pending = map_at(&group->pending, at);
	reply_many(client, '*', 3);
	reply_id(client, pending ? id_of(pending->name) : 0);
	reply_many(client, '*', claimed);
	for (size_t i = 0; i < claimed; i++)
		reply_entry(client, id_find(&client->key->fields, ids[i]));
	reply_many(client, '*', gone);
	while (gone-- > 0)
		reply_id(client, ids[--room]);
	memory_free(&client->store->memory, ids);
}

/* --- XREAD and XREADGROUP ----------------------------------------------------- */

struct reading {
	int64_t block_ms, count;              /* block_ms < 0: do not block */
	const struct slice *group, *consumer; /* NULL: XREAD */
	bool no_ack;
	size_t streams, first; /* how many, and where the first one is in argv */
};

static bool
read_options(struct client *client, struct reading *reading)
{
	bool grouped = client->command->variant;
	struct slice *argv = client->argv;
	size_t i = 1, argc = client->argc;

	for (; i < argc && !slice_is(argv[i], "streams"); i++) {
		if (i + 1 < argc && slice_is(argv[i], "block")) {
			if (!arg_integer(client, ++i, &reading->block_ms))
				return false;
			if (reading->block_ms < 0)
				return reply_error(client, "ERR timeout is negative");
		} else if (i + 1 < argc && slice_is(argv[i], "count")) {
			if (!arg_integer(client, ++i, &reading->count))
				return false;
		} else if (grouped && i + 2 < argc && slice_is(argv[i], "group")) {
			reading->group = &argv[++i];
			reading->consumer = &argv[++i];
		} else if (grouped && slice_is(argv[i], "noack")) {
			reading->no_ack = true;
		} else {
			return reply_error(client, SYNTAX);
		}
	}
	reading->first = i + 1;
	if (i + 1 >= argc || (argc - i - 1) % 2 != 0 || grouped != (reading->group != NULL))
		return reply_error(client, SYNTAX);
	reading->streams = (argc - i - 1) / 2;
	if (reading->count <= 0)
		reading->count = INT64_MAX;
	return true;
}

/* Parses the ID of a stream, which is ID_MAX for new entries of a group.  Replaces "$", which is
 * meant when the request arrives, and not when it is retried. */
static bool
read_stream(struct client *client, const struct reading *reading, size_t i, stream_id *id,
            char text[ID_TEXT])
{
	struct slice name = client->argv[reading->first + i];
	size_t at = reading->first + reading->streams + i;
	struct key *key = key_find(client, name);
	bool retry = client->flags & CLIENT_RETRY;

	if (retry && reading->group && (!key || key->type != TYPE_STREAM))
		return reply_error(client, "UNBLOCKED the stream key no longer exists");
	if (!retry && key && key->type != TYPE_STREAM)
		return reply_error(client, WRONG_TYPE);
	if (reading->group && (!key || !map_find(&key->more, *reading->group)))
		return retry ? reply_error(client, "NOGROUP the consumer group this client was "
		                                   "blocked on no longer exists")
		             : reply_error(client, NO_GROUP " in XREADGROUP with GROUP option",
		                           SHOWN(name), SHOWN(*reading->group));
	if (!reading->group && slice_is(client->argv[at], "$")) {
		*id = key ? key->last_id : 0;
		client->argv[at] = id_format(*id, text);
		return true;
	}
	*id = ID_MAX;
	return (reading->group && slice_is(client->argv[at], ">")) || arg_id(client, at, id);
}

/* Replies with the entries after an ID that are pending for a consumer. */
static void
reply_history(struct client *client, const struct reading *reading, struct key *key,
              struct group *group, stream_id after)
{
	struct consumer *consumer = make_consumer(group, *reading->consumer);
	size_t position = reply_later(client), shown = 0;

	for (size_t i = id_before(&group->pending, after, true); shown < (size_t)reading->count;
	     i++) {
		struct pending *pending = map_at(&group->pending, i);
		struct field *entry = pending ? id_find(&key->fields, id_of(pending->name)) : NULL;

		if (!pending)
			break;
		if (pending->consumer != consumer)
			continue;
		if (entry) {
			reply_entry(client, entry);
			pending->delivered_ms = client->store->now_ms;
			pending->deliveries++;
		} else {
			reply_many(client, '*', 2);
			reply_id(client, id_of(pending->name));
			reply_null_array(client);
		}
		shown++;
	}
	reply_count(client, position, '*', shown);
}

static void
deliver(struct client *client, const struct reading *reading, struct group *group,
        const struct field *entry)
{
	struct pending *pending;

	group->last = id_of(entry->name);
	if (reading->no_ack)
		return;
	pending = map_add(&group->pending, (struct slice){ entry->name, ID_BYTES });
	pending_deliver(client, pending, make_consumer(group, *reading->consumer));
}

/* Replies with the entries of one stream.  Returns false if there are none. */
static bool
reply_stream(struct client *client, const struct reading *reading, size_t i, stream_id after)
{
	struct slice name = client->argv[reading->first + i];
	struct key *key = map_find(&client->store->keys, name);
	struct group *group = reading->group ? map_find(&key->more, *reading->group) : NULL;
	bool history = group && after != ID_MAX;
	size_t begin, count;

	if (!key || key->type != TYPE_STREAM)
		return false;
	begin = id_before(&key->fields, group ? group->last : after, true);
	count = map_count(&key->fields) - begin;
	if (count == 0 && !history)
		return false;
	if (client->protocol < 3)
		reply_many(client, '*', 2);
	reply_bulk(client, name);
	if (history) {
		reply_history(client, reading, key, group, after);
		return true;
	}
	count = count > (size_t)reading->count ? (size_t)reading->count : count;
	reply_many(client, '*', count);
	for (; count > 0; count--, begin++) {
		reply_entry(client, map_at(&key->fields, begin));
		if (group)
			deliver(client, reading, group, map_at(&key->fields, begin));
	}
	return true;
}

/* XREAD, XREADGROUP */
COMMAND(xread)
{
	struct reading reading = { .block_ms = -1 };
	size_t position = reply_later(client), shown = 0, i = 0;
	struct {
		stream_id id;
		char text[ID_TEXT];
	} * after;

	if (!read_options(client, &reading))
		return;
	after = memory_alloc(&client->store->memory, reading.streams * sizeof(*after));
	while (i < reading.streams && read_stream(client, &reading, i, &after[i].id, after[i].text))
		i++;
	if (i == reading.streams) {
		for (i = 0; i < reading.streams; i++)
			shown += reply_stream(client, &reading, i, after[i].id);
		if (shown > 0)
			reply_count(client, position, client->protocol < 3 ? '*' : '%', shown);
		else if (reading.block_ms >= 0)
			client_block(client, reading.first, reading.streams, reading.block_ms);
		else
			reply_null_array(client);
	}
	memory_free(&client->store->memory, after);
}
