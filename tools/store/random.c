/* random.c - random fields of hashes and members of sorted sets. */
#include "command.h"
#include "say.h"

struct draw {
	int64_t count;        /* negative: repetition is allowed */
	bool has_count, both; /* both: with values or scores */
	int kind;
	const struct table *table;
};

static bool
read_draw(struct client *client, const struct word *words, size_t count, struct draw *out)
{
	const char *with = out->kind == KIND_HASH ? "withvalues" : "withscores";

	out->count = 1;
	out->has_count = count > 2;
	out->both = count == 4;
	if (count > 2 && !arg_number(client, words[2], &out->count))
		return false;
	if (count > 4 || (count == 4 && !word_is(words[3], with))) {
		say_syntax(client);
		return false;
	}
	if (out->count < -(INT64_MAX / 2)) {
		say_error(client, "ERR value is out of range");
		return false;
	}
	return true;
}

static void
say_drawn(struct client *client, const struct draw *draw, const struct node *node)
{
	if (draw->both && client->protocol >= 3)
		say_array(client, 2);
	say_bulk(client, table_name(draw->table, node));
	if (!draw->both)
		return;
	if (draw->kind == KIND_HASH)
		say_bulk(client, text_word(((const struct field *)(const void *)node)->value));
	else
		say_double(client, ((const struct item *)(const void *)node)->score);
}

static void
say_draws(struct client *client, const struct draw *draw)
{
	size_t left = table_count(draw->table), most;
	struct walk walk = table_walk(draw->table);
	struct node *node;

	for (int64_t i = draw->count; i < 0; i++) {
		if (!client_hears(client))
			return;
		say_drawn(client, draw, table_any(draw->table));
	}
	most = draw->count > 0 ? (size_t)draw->count : 0;
	while (most > 0 && (node = walk_next(&walk)) != NULL) {
		if (heap_below(draw->table->heap, left--) >= most)
			continue;
		say_drawn(client, draw, node);
		most--;
	}
}

static void
draw_some(struct client *client, const struct word *words, size_t count, int kind)
{
	struct draw draw = { .kind = kind };
	struct key *key;
	size_t shown;

	if (!read_draw(client, words, count, &draw)
	    || !keys_read_kind(client, words[1], kind, &key))
		return;
	if (!key) {
		if (draw.has_count)
			say_array(client, 0);
		else
			say_null(client);
		return;
	}
	draw.table = kind == KIND_HASH ? key->hash : &key->sorted->table;
	if (draw.count > (int64_t)key_count(key))
		draw.count = (int64_t)key_count(key);
	shown = (size_t)(draw.count < 0 ? -draw.count : draw.count);
	if (draw.has_count)
		say_array(client, shown * (draw.both && client->protocol < 3 ? 2 : 1));
	say_draws(client, &draw);
}

COMMAND(hrandfield)
{
	draw_some(client, words, count, KIND_HASH);
}

COMMAND(zrandmember)
{
	draw_some(client, words, count, KIND_SORTED);
}
