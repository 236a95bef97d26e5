/* keys.h - databases: names, what they hold, and when that expires.
 *
 *   1. A key that holds a list, set, sorted set or hash holds at least one element.
 *   2. A key with a time to expire stands in its database's array `mortal`, at key->mortal_at.
 *   3. Nobody sees a key whose time has come: who looks for it removes it.
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
	int64_t     expires_ms; /* of the wall clock; 0: never */
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
void base_clear(struct base *base); /* of keys */
void base_fini(struct base *base);

const char *kind_name(int kind);

/* Look a key up, to read it or to change it: NULL if it is not there. */
struct key *keys_read(struct client *client, struct word name);
struct key *keys_write(struct client *client, struct word name);

/* The same of a kind.  Whether it is not there (then `*out` is NULL) or of that kind; else the
 * client was told. */
bool keys_read_kind(struct client *client, struct word name, int kind, struct key **out);
bool keys_write_kind(struct client *client, struct word name, int kind, struct key **out);

/* The same without expiring, remembering or telling, for who looks at many. */
struct key *keys_peek(struct weft_store *store, struct base *base, struct word name);

/* Add a key that is not there, with an empty container, or a NULL text. */
struct key *keys_add(struct base *base, struct word name, int kind);

/* Drop what a key holds and have it hold nothing of another kind. */
void keys_renew(struct base *base, struct key *key, int kind);

void keys_drop(struct base *base, struct key *key);

/* Drop a key if its container is empty. */
void keys_drop_empty(struct base *base, struct key *key);

/* How many elements a container has. */
size_t key_count(const struct key *key);

/* 0: never. */
void keys_expire_at(struct base *base, struct key *key, int64_t at_ms);

/* The same, and have somebody look after it. */
void keys_mortal(struct client *client, struct base *base, struct key *key, int64_t at_ms);

/* A key was changed, added or dropped: who watches or tracks it is told. */
void keys_changed(struct client *client, struct base *base, struct word name);

/* Remove some keys whose time has come.  Returns whether there may be many more. */
bool keys_expire_some(struct weft_store *store);

/* A whole copy of what a key holds, for another. */
void keys_copy(struct base *base, struct key *to, const struct key *from);

/* --- elements --------------------------------------------------------------- */

struct table *members_new(struct heap *heap);
bool          members_add(struct table *set, struct word name); /* whether it was not there */
bool          members_remove(struct table *set, struct word name);
void          members_free(struct table *set);

struct table *fields_new(struct heap *heap);
struct field *fields_find(const struct table *hash, struct word name);
bool          fields_set(struct table *hash, struct word name, struct word value);
void          fields_remove(struct table *hash, struct field *field);
void          fields_free(struct table *hash);

#endif
