/* strings.c - strings: SET with all its options, GET, MGET, MSET. */
#include "command.h"
#include "say.h"

/* Sets a key to a string.  Removes an expiry time unless `keep_expiry` is set. */
static struct key *
set_string(struct client *client, struct word name, struct word value, bool keep_expiry)
{
	struct heap *heap = &client->store->heap;
	struct key *key = keys_write(client, name);

	if (!key)
		key = keys_add(client->base, name, KIND_STRING);
	else if (key->kind != KIND_STRING)
		keys_renew(client->base, key, KIND_STRING);
	if (key->text && key->text->room >= value.size && key->text->room <= value.size * 2) {
		memcpy(key->text->bytes, value.data, value.size);
		key->text->size = (uint32_t)value.size;
	} else {
		text_free(heap, key->text);
		key->text = text_new(heap, value);
	}
	if (!keep_expiry && key->expires_ms)
		keys_expire_at(client->base, key, 0);
	keys_changed(client, client->base, name);
	return key;
}

/* --- options ---------------------------------------------------------------- */

enum {
	OPTION_NX = 1 << 0,
	OPTION_XX = 1 << 1,
	OPTION_GET = 1 << 2,
	OPTION_KEEP = 1 << 3,    /* KEEPTTL */
	OPTION_PERSIST = 1 << 4, /* of GETEX */
	OPTION_EXPIRE = 1 << 5,
};

struct options {
	unsigned flags;
	struct expiry_unit unit;
	struct word time;
	int64_t at_ms;
};

static unsigned
option_flag(struct word word, bool is_set)
{
	if (is_set && word_is(word, "nx"))
		return OPTION_NX;
	if (is_set && word_is(word, "xx"))
		return OPTION_XX;
	if (is_set && word_is(word, "get"))
		return OPTION_GET;
	if (is_set && word_is(word, "keepttl"))
		return OPTION_KEEP;
	return !is_set && word_is(word, "persist") ? OPTION_PERSIST : 0;
}

static bool
option_unit(struct word word, struct expiry_unit *out)
{
	static const struct {
		const char *name;
		struct expiry_unit unit;
	} units[] = { { "ex", { 1000, false } },
		      { "px", { 1, false } },
		      { "exat", { 1000, true } },
		      { "pxat", { 1, true } } };

	for (size_t i = 0; i < 4; i++)
		if (word_is(word, units[i].name)) {
			*out = units[i].unit;
			return true;
		}
	return false;
}

/* Whether two options contradict each other. */
static bool
is_conflict(unsigned flags, unsigned more)
{
	const unsigned times = OPTION_KEEP | OPTION_PERSIST | OPTION_EXPIRE;
	const unsigned both = OPTION_NX | OPTION_XX;

	return ((flags & times) && (more & times) && !(flags & more & ~OPTION_EXPIRE))
	       || ((flags | more) & both) == both;
}

static bool
strings_read_options(struct client *client, const struct word *words, size_t count, bool is_set,
                     struct options *out)
{
	for (size_t i = is_set ? 3 : 2; i < count; i++) {
		unsigned more = option_flag(words[i], is_set);

		if (!more && i + 1 < count && option_unit(words[i], &out->unit)) {
			more = OPTION_EXPIRE;
			out->time = words[i + 1];
		}
		if (!more || is_conflict(out->flags, more)) {
			say_syntax(client);
			return false;
		}
		i += more == OPTION_EXPIRE;
		out->flags |= more;
	}
	return true;
}

static bool
read_time(struct client *client, struct options *options)
{
	return !(options->flags & OPTION_EXPIRE)
	       || expiry_read(client, options->time, options->unit, &options->at_ms);
}

/* --- SET -------------------------------------------------------------------- */

static void
say_string(struct client *client, const struct key *key)
{
	if (key)
		say_bulk(client, text_word(key->text));
	else
		say_null(client);
}

COMMAND(set)
{
	struct options options = { 0 };
	struct key *key;

	if (count > 3
	    && (!strings_read_options(client, words, count, true, &options)
	        || !read_time(client, &options)))
		return;
	if (options.flags & (OPTION_GET | OPTION_NX | OPTION_XX)) {
		key = keys_write(client, words[1]);
		if ((options.flags & OPTION_GET) && key && key->kind != KIND_STRING) {
			say_wrong_kind(client);
			return;
		}
		if (options.flags & OPTION_GET)
			say_string(client, key);
		if (((options.flags & OPTION_NX) && key) || ((options.flags & OPTION_XX) && !key)) {
			if (!(options.flags & OPTION_GET))
				say_null(client);
			return;
		}
	}
	key = set_string(client, words[1], words[2], options.flags & OPTION_KEEP);
	if (options.flags & OPTION_EXPIRE)
		keys_mortal(client, client->base, key, options.at_ms);
	if (!(options.flags & OPTION_GET))
		say_ok(client);
}

COMMAND(setnx)
{
	bool there = keys_write(client, words[1]);

	(void)count;
	if (!there)
		set_string(client, words[1], words[2], false);
	say_number(client, !there);
}

static void
set_for(struct client *client, const struct word *words, struct expiry_unit unit)
{
	int64_t at_ms;

	if (!expiry_read(client, words[2], unit, &at_ms))
		return;
	keys_mortal(client, client->base, set_string(client, words[1], words[3], false), at_ms);
	say_ok(client);
}

COMMAND(setex)
{
	(void)count;
	set_for(client, words, (struct expiry_unit){ 1000, false });
}

COMMAND(psetex)
{
	(void)count;
	set_for(client, words, (struct expiry_unit){ 1, false });
}

/* --- GET -------------------------------------------------------------------- */

COMMAND(get)
{
	struct key *key;

	(void)count;
	if (keys_read_kind(client, words[1], KIND_STRING, &key))
		say_string(client, key);
}

COMMAND(getset)
{
	struct key *key;

	(void)count;
	if (!keys_write_kind(client, words[1], KIND_STRING, &key))
		return;
	say_string(client, key);
	set_string(client, words[1], words[2], false);
}

COMMAND(getdel)
{
	struct key *key;

	(void)count;
	if (!keys_write_kind(client, words[1], KIND_STRING, &key))
		return;
	say_string(client, key);
	if (key) {
		keys_drop(client->base, key);
		keys_changed(client, client->base, words[1]);
	}
}

COMMAND(getex)
{
	struct options options = { 0 };
	struct key *key;

	if (!strings_read_options(client, words, count, false, &options)
	    || !keys_write_kind(client, words[1], KIND_STRING, &key))
		return;
	if (!key) {
		say_null(client);
		return;
	}
	if (!read_time(client, &options))
		return;
	say_string(client, key);
	if ((options.flags & OPTION_EXPIRE) && options.at_ms <= client->store->now_ms)
		keys_drop(client->base, key);
	else if (options.flags & OPTION_EXPIRE)
		keys_mortal(client, client->base, key, options.at_ms);
	else if ((options.flags & OPTION_PERSIST) && key->expires_ms)
		keys_expire_at(client->base, key, 0);
	else
		return;
	keys_changed(client, client->base, words[1]);
}

COMMAND(mget)
{
	say_array(client, count - 1);
	for (size_t i = 1; i < count; i++) {
		struct key *key = keys_read(client, words[i]);

		say_string(client, key && key->kind == KIND_STRING ? key : NULL);
	}
}

static bool
are_pairs(struct client *client, size_t count)
{
	if (count % 2 == 1)
		return true;
	say_error(client, "ERR wrong number of arguments for '%s' command", client->command->name);
	return false;
}

COMMAND(mset)
{
	if (!are_pairs(client, count))
		return;
	for (size_t i = 1; i < count; i += 2)
		set_string(client, words[i], words[i + 1], false);
	say_ok(client);
}

COMMAND(msetnx)
{
	if (!are_pairs(client, count))
		return;
	for (size_t i = 1; i < count; i += 2)
		if (keys_write(client, words[i])) {
			say_number(client, 0);
			return;
		}
	for (size_t i = 1; i < count; i += 2)
		set_string(client, words[i], words[i + 1], false);
	say_number(client, 1);
}
