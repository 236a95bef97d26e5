/* keys.h - keys: names, values, and expiry.
 *
 *   1. A list, set, sorted set or hash has at least one field; a stream may have none.
 *   2. An expired key is never visible: a lookup removes it.
 */
#ifndef STORE_KEYS_H
#define STORE_KEYS_H

#include "store/data/map.h"

struct client;
struct weft_store;

enum key_type { TYPE_NONE, TYPE_STRING, TYPE_LIST, TYPE_SET, TYPE_SORTED, TYPE_HASH, TYPE_STREAM };

typedef unsigned __int128 stream_id; /* milliseconds, and a sequence number */

/* An element of a value:
 *   of a set         a member; no value
 *   of a hash        a field and its value
 *   of a list        its position, as ordered bytes; the element
 *   of a sorted set  a member; its score, as ordered bytes, and the member again.  The map `more`
 *                    has the latter as names.
 *   of a stream      an ID, as ordered bytes; its fields and values.  The map `more` has the
 *                    groups of the stream. */
struct field {
	struct node    node;
	struct string *value; /* NULL: none */
	char           name[];
};

struct key {
	struct node    node;
	enum key_type  type;
	int64_t        expires_ms;  /* wall clock; INT64_MAX: never */
	struct string *string;
	struct map     fields, more;
	uint64_t       left, right; /* of a list: the next positions at its ends */
	stream_id      last_id;     /* of a stream */
	char           name[];
};

static inline struct slice
key_name(const struct key *key)
{
	return (struct slice){ key->name, key->node.size };
}

/* Remove all keys. */
void keys_clear(struct weft_store *store);

/* Look up a key.  Returns NULL if it does not exist. */
struct key *key_find(struct client *client, struct slice name);

/* Add a key that does not exist, without fields or a string.  The caller uses no other key: some
 * that have expired are removed. */
struct key *key_add(struct client *client, struct slice name, enum key_type type);

/* Set the string of a key. */
void key_set_string(struct client *client, struct key *key, struct slice value);

/* Delete a key. */
void key_remove(struct weft_store *store, struct key *key);

/* A value was changed: delete the key if it is empty, and serve clients that wait for it. */
void key_modified(struct client *client, struct key *key);

/* Set a field, which is added if needed.  Returns whether it was added. */
bool field_set(struct map *fields, struct slice name, const struct slice *value);

/* Remove a field; accepts NULL.  Returns whether there was one. */
bool field_remove(struct map *fields, struct field *field);

/* Free what a group of a stream has. */
void group_fini(void *group, struct memory *memory);

#endif
