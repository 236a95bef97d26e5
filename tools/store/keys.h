/* keys.h - databases: names, values, and expiry.
 *
 *   1. A list, set, sorted set or hash has at least one element.
 *   2. A key that expires is in the array `mortal` of its database, at key->mortal_at.
 *   3. An expired key is never visible: a lookup removes it.
 */
#ifndef STORE_KEYS_H
#define STORE_KEYS_H

#include "deque.h"
#include "sorted.h"
#include "table.h"

#define BASES 16

enum key_kind { KIND_STRING, KIND_LIST, KIND_SET, KIND_SORTED, KIND_HASH, KIND_ANY };

struct key {
	struct node node;
	int64_t     expires_ms; /* wall clock; 0: never */
	uint32_t    mortal_at;
	uint8_t     kind;
	union {
		struct text   *text;
		struct deque  *list;
		struct table  *set; /* of struct member */
		struct table  *hash; /* of struct field */
		struct sorted *sorted;
	};
	char name[];
};

struct member {
	struct node node;
	char        name[];
};

struct field {
	struct node  node;
	struct text *value;
	char         name[];
};

struct base {
	struct table keys;
	struct key **mortal;
	uint32_t     mortal_count, mortal_room;
	uint32_t     number;
};

struct client;
struct weft_store;

static inline struct word
key_word(const struct key *key)
{
	return (struct word){ key->name, key->node.size };
}

void base_init(struct base *base, struct heap *heap, uint32_t number);
void base_clear(struct base *base); /* removes all keys */
void base_fini(struct base *base);

const char *kind_name(int kind);

/* Look up a key for reading or for writing.  Returns NULL if it does not exist. */
struct key *keys_read(struct client *client, struct word name);
struct key *keys_write(struct client *client, struct word name);

/* The same for a type.  Returns true if the key does not exist (then `*out` is NULL) or has that
 * type; otherwise false, after replying with an error. */
bool keys_read_kind(struct client *client, struct word name, int kind, struct key **out);
bool keys_write_kind(struct client *client, struct word name, int kind, struct key **out);

/* A lookup without expiring, tracking or replying, for callers that inspect many keys. */
struct key *keys_peek(struct weft_store *store, struct base *base, struct word name);

/* Add a key that does not exist, with an empty container or a NULL text. */
struct key *keys_add(struct base *base, struct word name, int kind);

/* Free the value of a key, and make it an empty value of another type. */
void keys_renew(struct base *base, struct key *key, int kind);

void keys_drop(struct base *base, struct key *key);

/* Delete a key if its container is empty. */
void keys_drop_empty(struct base *base, struct key *key);

/* The number of elements of a container; of a string, its size. */
size_t key_count(const struct key *key);

/* Set the expiry time; 0: never. */
void keys_expire_at(struct base *base, struct key *key, int64_t at_ms);

/* The same, and start the expiry timer. */
void keys_mortal(struct client *client, struct base *base, struct key *key, int64_t at_ms);

/* A key was changed, added or deleted: notify the clients that watch or track it. */
void keys_changed(struct client *client, struct base *base, struct word name);

/* Remove some expired keys.  Returns whether there may be many more. */
bool keys_expire_some(struct weft_store *store);

/* Copy the value of a key to another key. */
void keys_copy(struct base *base, struct key *to, const struct key *from);

/* --- elements --------------------------------------------------------------- */

struct table *members_new(struct heap *heap);
bool          members_add(struct table *set, struct word name); /* false if it exists */
bool          members_remove(struct table *set, struct word name);
void          members_free(struct table *set);

struct table *fields_new(struct heap *heap);
struct field *fields_find(const struct table *hash, struct word name);
bool          fields_set(struct table *hash, struct word name, struct word value);
void          fields_remove(struct table *hash, struct field *field);
void          fields_free(struct table *hash);

#endif
