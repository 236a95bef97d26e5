/* keys.c - databases: names, values, and expiry. */
#include <assert.h>
#include "command.h"
#include "say.h"

#define SAMPLE 20u   /* keys checked per round */
#define ROUNDS 1000u /* rounds before the loop continues with other work */

void
base_init(struct base *base, struct heap *heap, uint32_t number)
{
	*base = (struct base){ .number = number };
	table_init(&base->keys, heap, offsetof(struct key, name));
}

const char *
kind_name(int kind)
{
	static const char *const names[] = { "string", "list", "set", "zset", "hash" };

	return names[kind];
}

/* --- values ----------------------------------------------------------------- */

static void
empty_key(struct heap *heap, struct key *key)
{
	switch (key->kind) {
	case KIND_STRING:
		text_free(heap, key->text);
		break;
	case KIND_LIST:
		deque_free(key->list);
		break;
	case KIND_SET:
		members_free(key->set);
		break;
	case KIND_SORTED:
		sorted_free(key->sorted);
		break;
	default:
		fields_free(key->hash);
		break;
	}
}

static void
fill_key(struct heap *heap, struct key *key, int kind)
{
	key->kind = (uint8_t)kind;
	switch (kind) {
	case KIND_STRING:
		key->text = NULL;
		break;
	case KIND_LIST:
		key->list = deque_new(heap);
		break;
	case KIND_SET:
		key->set = members_new(heap);
		break;
	case KIND_SORTED:
		key->sorted = sorted_new(heap);
		break;
	default:
		key->hash = fields_new(heap);
		break;
	}
}

size_t
key_count(const struct key *key)
{
	switch (key->kind) {
	case KIND_STRING:
		return key->text->size;
	case KIND_LIST:
		return key->list->count;
	case KIND_SORTED:
		return sorted_count(key->sorted);
	default:
		return table_count(key->set);
	}
}

struct key *
keys_add(struct base *base, struct word name, int kind)
{
	struct heap *heap = base->keys.heap;
	struct key *key = heap_take(heap, sizeof(*key) + name.size);

	key->expires_ms = 0;
	memcpy(key->name, name.data, name.size);
	fill_key(heap, key, kind);
	table_add(&base->keys, &key->node, name.size);
	return key;
}

void
keys_renew(struct base *base, struct key *key, int kind)
{
	empty_key(base->keys.heap, key);
	fill_key(base->keys.heap, key, kind);
}

static void
free_key(struct node *node, void *heap)
{
	struct key *key = (struct key *)(void *)node;

	empty_key(heap, key);
	heap_give(heap, key, sizeof(*key) + node->size);
}

void
keys_drop(struct base *base, struct key *key)
{
	keys_expire_at(base, key, 0);
	table_remove(&base->keys, &key->node);
	free_key(&key->node, base->keys.heap);
}

void
keys_drop_empty(struct base *base, struct key *key)
{
	if (key->kind != KIND_STRING && key_count(key) == 0)
		keys_drop(base, key);
}

void
base_clear(struct base *base)
{
	struct heap *heap = base->keys.heap;

	table_clear(&base->keys, free_key, heap);
	heap_give(heap, base->mortal, base->mortal_room * sizeof(*base->mortal));
	base->mortal = NULL;
	base->mortal_count = base->mortal_room = 0;
}

void
base_fini(struct base *base)
{
	base_clear(base);
}

void
keys_copy(struct base *base, struct key *to, const struct key *from)
{
	struct walk walk;
	struct node *node;

	keys_renew(base, to, from->kind);
	if (from->kind == KIND_STRING) {
		to->text = text_new(base->keys.heap, text_word(from->text));
		return;
	}
	if (from->kind == KIND_LIST) {
		for (size_t i = 0; i < from->list->count; i++)
			deque_insert(
				to->list, i,
				text_new(base->keys.heap, text_word(*deque_at(from->list, i))));
		return;
	}
	walk = table_walk(from->kind == KIND_SORTED ? &from->sorted->table : from->set);
	while ((node = walk_next(&walk)) != NULL) {
		struct word name = table_name(walk.table, node);

		if (from->kind == KIND_SORTED)
			sorted_add(to->sorted, name, ((struct item *)(void *)node)->score);
		else if (from->kind == KIND_SET)
			members_add(to->set, name);
		else
			fields_set(to->hash, name,
			           text_word(((struct field *)(void *)node)->value));
	}
}

/* --- expiry ----------------------------------------------------------------- */

static void
add_mortal(struct base *base, struct key *key)
{
	if (base->mortal_count == base->mortal_room) {
		uint32_t room = base->mortal_room ? base->mortal_room * 2 : 16;

		base->mortal = heap_resize(base->keys.heap, base->mortal,
		                           base->mortal_room * sizeof(struct key *),
		                           room * sizeof(struct key *));
		base->mortal_room = room;
	}
	key->mortal_at = base->mortal_count;
	base->mortal[base->mortal_count++] = key;
}

/* The last element takes its position. */
static void
remove_mortal(struct base *base, struct key *key)
{
	struct key *last = base->mortal[--base->mortal_count];

	assert(base->mortal[key->mortal_at] == key);
	base->mortal[key->mortal_at] = last;
	last->mortal_at = key->mortal_at;
}

void
keys_expire_at(struct base *base, struct key *key, int64_t at_ms)
{
	if (at_ms != 0 && key->expires_ms == 0)
		add_mortal(base, key);
	else if (at_ms == 0 && key->expires_ms != 0)
		remove_mortal(base, key);
	key->expires_ms = at_ms;
}

void
keys_mortal(struct client *client, struct base *base, struct key *key, int64_t at_ms)
{
	keys_expire_at(base, key, at_ms);
	if (at_ms != 0)
		store_expires(client->store);
}

static bool
is_over(const struct weft_store *store, const struct key *key)
{
	return key->expires_ms != 0 && key->expires_ms <= store->now_ms;
}

static void
expire(struct weft_store *store, struct base *base, struct key *key)
{
	struct text *name = text_new(&store->heap, key_word(key));

	keys_drop(base, key);
	store->stats.expired++;
	watch_touch(store, base, text_word(name));
	tracking_changed(store, NULL, text_word(name));
	text_free(&store->heap, name);
}

static uint32_t
expire_sample(struct weft_store *store, struct base *base)
{
	uint32_t over = 0;

	for (uint32_t i = 0; i < SAMPLE && base->mortal_count > 0; i++) {
		struct key *key = base->mortal[heap_below(&store->heap, base->mortal_count)];

		if (is_over(store, key)) {
			expire(store, base, key);
			over++;
		}
	}
	return over;
}

/* A database is sampled again while more than a quarter of the sample has expired. */
bool
keys_expire_some(struct weft_store *store)
{
	uint32_t rounds = ROUNDS;

	for (uint32_t i = 0; i < BASES; i++)
		while (expire_sample(store, &store->bases[i]) > SAMPLE / 4)
			if (--rounds == 0)
				return true;
	return false;
}

/* --- lookups ---------------------------------------------------------------- */

struct key *
keys_peek(struct weft_store *store, struct base *base, struct word name)
{
	struct key *key = (struct key *)(void *)table_find(&base->keys, name);

	return key && is_over(store, key) ? NULL : key;
}

struct key *
keys_write(struct client *client, struct word name)
{
	struct base *base = client->base;
	struct key *key = (struct key *)(void *)table_find(&base->keys, name);

	if (base->keys.old.slots)
		table_step(&base->keys);
	if (key && is_over(client->store, key)) {
		expire(client->store, base, key);
		return NULL;
	}
	return key;
}

struct key *
keys_read(struct client *client, struct word name)
{
	struct key *key = keys_write(client, name);

	if (key)
		client->store->stats.hits++;
	else
		client->store->stats.misses++;
	if ((client->flags & (CLIENT_TRACKS | CLIENT_READS)) == (CLIENT_TRACKS | CLIENT_READS))
		tracking_remember(client, name);
	return key;
}

static bool
is_kind(struct client *client, const struct key *key, int kind)
{
	if (!key || key->kind == kind)
		return true;
	say_wrong_kind(client);
	return false;
}

bool
keys_read_kind(struct client *client, struct word name, int kind, struct key **out)
{
	*out = keys_read(client, name);
	return is_kind(client, *out, kind);
}

bool
keys_write_kind(struct client *client, struct word name, int kind, struct key **out)
{
	*out = keys_write(client, name);
	return is_kind(client, *out, kind);
}

/* --- notifications ---------------------------------------------------------- */

struct text *
scoped_name(struct weft_store *store, const struct base *base, struct word name)
{
	char number = (char)base->number;
	struct text *text = text_new(&store->heap, (struct word){ &number, 1 });

	text = text_reserve(&store->heap, text, name.size + 1);
	memcpy(text->bytes + 1, name.data, name.size);
	text->size = (uint32_t)name.size + 1;
	return text;
}

void
keys_changed(struct client *client, struct base *base, struct word name)
{
	if (table_count(&client->store->watched) > 0)
		watch_touch(client->store, base, name);
	if (table_count(&client->store->tracked) > 0)
		tracking_changed(client->store, client, name);
}
