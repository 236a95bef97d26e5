/* counters.c - counters in strings and in fields of hashes. */
#include <math.h>
#include "command.h"
#include "say.h"

static bool
add_numbers(struct client *client, int64_t a, int64_t b, int64_t *out)
{
	if (!__builtin_add_overflow(a, b, out))
		return true;
	say_error(client, "ERR increment or decrement would overflow");
	return false;
}

static void
counters_put_text(struct client *client, struct text **text, struct word word)
{
	struct heap *heap = &client->store->heap;

	if (*text && (*text)->room >= word.size) {
		memcpy((*text)->bytes, word.data, word.size);
		(*text)->size = (uint32_t)word.size;
		return;
	}
	text_free(heap, *text);
	*text = text_new(heap, word);
}

/* --- strings ---------------------------------------------------------------- */

static void
increment(struct client *client, struct word name, int64_t by)
{
	char text[NUMBER_MAX];
	int64_t number = 0;
	struct key *key;

	if (!keys_write_kind(client, name, KIND_STRING, &key)
	    || (key && !arg_number(client, text_word(key->text), &number))
	    || !add_numbers(client, number, by, &number))
		return;
	if (!key)
		key = keys_add(client->base, name, KIND_STRING);
	counters_put_text(client, &key->text, (struct word){ text, number_write(text, number) });
	keys_changed(client, client->base, name);
	say_number(client, number);
}

COMMAND(incr)
{
	(void)count;
	increment(client, words[1], 1);
}

COMMAND(decr)
{
	(void)count;
	increment(client, words[1], -1);
}

COMMAND(incrby)
{
	int64_t by;

	(void)count;
	if (arg_number(client, words[2], &by))
		increment(client, words[1], by);
}

COMMAND(decrby)
{
	int64_t by;

	(void)count;
	if (!arg_number(client, words[2], &by))
		return;
	if (by == INT64_MIN)
		say_error(client, "ERR decrement would overflow");
	else
		increment(client, words[1], -by);
}

/* Formats the sum.  Returns its size; 0 after replying with an error. */
static size_t
add_reals(struct client *client, long double a, long double b, char out[REAL_WIDE_MAX])
{
	long double sum = a + b;

	if (isnan(sum) || isinf(sum)) {
		say_error(client, "ERR increment would produce NaN or Infinity");
		return 0;
	}
	return real_write_wide(out, sum);
}

static bool
wide_arg(struct client *client, struct word word, const char *wrong, long double *out)
{
	if (real_read_wide(word, out))
		return true;
	say_error(client, "ERR %s", wrong);
	return false;
}

COMMAND(incrbyfloat)
{
	const char *wrong = "value is not a valid float";
	long double number = 0, by;
	char text[REAL_WIDE_MAX];
	struct key *key;
	size_t size;

	(void)count;
	if (!keys_write_kind(client, words[1], KIND_STRING, &key)
	    || (key && !wide_arg(client, text_word(key->text), wrong, &number))
	    || !wide_arg(client, words[2], wrong, &by))
		return;
	size = add_reals(client, number, by, text);
	if (size == 0)
		return;
	if (!key)
		key = keys_add(client->base, words[1], KIND_STRING);
	counters_put_text(client, &key->text, (struct word){ text, size });
	keys_changed(client, client->base, words[1]);
	say_bulk(client, text_word(key->text));
}

/* --- fields ----------------------------------------------------------------- */

static void
set_field(struct client *client, const struct word *words, struct word value)
{
	struct key *key = keys_write(client, words[1]);

	if (!key)
		key = keys_add(client->base, words[1], KIND_HASH);
	(void)fields_set(key->hash, words[2], value);
	keys_changed(client, client->base, words[1]);
}

/* The value of a field; NULL if there is none. */
static struct text *
value_of(const struct key *key, struct word name)
{
	struct field *field = key ? fields_find(key->hash, name) : NULL;

	return field ? field->value : NULL;
}

COMMAND(hincrby)
{
	char text[NUMBER_MAX];
	int64_t number = 0, by;
	struct text *old;
	struct key *key;

	(void)count;
	if (!arg_number(client, words[3], &by)
	    || !keys_write_kind(client, words[1], KIND_HASH, &key))
		return;
	old = value_of(key, words[2]);
	if (old && !number_read(text_word(old), &number)) {
		say_error(client, "ERR hash value is not an integer");
		return;
	}
	if (!add_numbers(client, number, by, &number))
		return;
	set_field(client, words, (struct word){ text, number_write(text, number) });
	say_number(client, number);
}

COMMAND(hincrbyfloat)
{
	long double number = 0, by;
	char text[REAL_WIDE_MAX];
	struct text *old;
	struct key *key;
	size_t size;

	(void)count;
	if (!wide_arg(client, words[3], "value is not a valid float", &by))
		return;
	if (isinf(by)) {
		say_error(client, "ERR value is NaN or Infinity");
		return;
	}
	if (!keys_write_kind(client, words[1], KIND_HASH, &key))
		return;
	old = value_of(key, words[2]);
	if (old && !wide_arg(client, text_word(old), "hash value is not a float", &number))
		return;
	size = add_reals(client, number, by, text);
	if (size == 0)
		return;
	set_field(client, words, (struct word){ text, size });
	say_bulk(client, (struct word){ text, size });
}
