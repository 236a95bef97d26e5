/* ranges.c - parts of strings: APPEND, SETRANGE, GETRANGE, STRLEN, and bits. */
#include "command.h"
#include "say.h"

/* Returns the string at `name`, created if needed, and padded with zeros to at least `size`
 * bytes.  Returns NULL after replying with an error if it is not a string. */
static struct text *
string_of(struct client *client, struct word name, size_t size)
{
	struct heap *heap = &client->store->heap;
	struct key *key;

	if (!keys_write_kind(client, name, KIND_STRING, &key))
		return NULL;
	if (!key) {
		key = keys_add(client->base, name, KIND_STRING);
		key->text = text_new(heap, WORD(""));
	}
	key->text = text_reserve(heap, key->text, size);
	if (key->text->size < size) {
		memset(key->text->bytes + key->text->size, 0, size - key->text->size);
		key->text->size = (uint32_t)size;
	}
	return key->text;
}

static bool
is_too_long(struct client *client, size_t at, size_t size)
{
	if (at + size <= client->store->limits.bulk_max)
		return false;
	say_error(client, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
	return true;
}

COMMAND(append)
{
	struct key *key;
	struct text *text;
	size_t size;

	(void)count;
	if (!keys_write_kind(client, words[1], KIND_STRING, &key))
		return;
	size = key ? key->text->size : 0;
	if (is_too_long(client, size, words[2].size))
		return;
	text = string_of(client, words[1], size + words[2].size);
	memcpy(text->bytes + size, words[2].data, words[2].size);
	keys_changed(client, client->base, words[1]);
	say_number(client, text->size);
}

COMMAND(strlen)
{
	struct key *key;

	(void)count;
	if (keys_read_kind(client, words[1], KIND_STRING, &key))
		say_number(client, key ? key->text->size : 0);
}

COMMAND(setrange)
{
	struct key *key;
	struct text *text;
	int64_t at;

	(void)count;
	if (!arg_number(client, words[2], &at))
		return;
	if (at < 0) {
		say_error(client, "ERR offset is out of range");
		return;
	}
	if (!keys_write_kind(client, words[1], KIND_STRING, &key))
		return;
	if (words[3].size == 0) {
		say_number(client, key ? key->text->size : 0);
		return;
	}
	if (at > (int64_t)TEXT_MAX) /* otherwise the sum could overflow */
		at = (int64_t)TEXT_MAX;
	if (is_too_long(client, (size_t)at, words[3].size))
		return;
	text = string_of(client, words[1], (size_t)at + words[3].size);
	memcpy(text->bytes + at, words[3].data, words[3].size);
	keys_changed(client, client->base, words[1]);
	say_number(client, text->size);
}

/* Negative positions count from the end; the range is limited to the string.  Returns false if
 * it is empty. */
static bool
cut_range(int64_t *begin, int64_t *end, int64_t size)
{
	if (*begin < 0 && *end < 0 && *begin > *end)
		return false;
	if (*begin < 0)
		*begin += size;
	if (*end < 0)
		*end += size;
	if (*begin < 0)
		*begin = 0;
	if (*end < 0)
		*end = 0;
	if (*end >= size)
		*end = size - 1;
	return *begin <= *end && size > 0;
}

COMMAND(getrange)
{
	struct key *key;
	int64_t begin, end;

	(void)count;
	if (!arg_number(client, words[2], &begin) || !arg_number(client, words[3], &end)
	    || !keys_read_kind(client, words[1], KIND_STRING, &key))
		return;
	if (!key || !cut_range(&begin, &end, key->text->size)) {
		say_bulk(client, WORD(""));
		return;
	}
	say_bulk(client, (struct word){ key->text->bytes + begin, (size_t)(end - begin + 1) });
}

COMMAND(substr)
{
	do_getrange(client, words, count);
}

/* --- bits ------------------------------------------------------------------- */

static bool
bit_offset(struct client *client, struct word word, int64_t *out)
{
	if (number_read(word, out) && *out >= 0
	    && (size_t)*out / 8 < client->store->limits.bulk_max)
		return true;
	say_error(client, "ERR bit offset is not an integer or out of range");
	return false;
}

COMMAND(setbit)
{
	struct text *text;
	int64_t at, bit;
	unsigned char *byte, mask;

	(void)count;
	if (!bit_offset(client, words[2], &at))
		return;
	if (!number_read(words[3], &bit) || bit < 0 || bit > 1) {
		say_error(client, "ERR bit is not an integer or out of range");
		return;
	}
	text = string_of(client, words[1], (size_t)at / 8 + 1);
	if (!text)
		return;
	byte = (unsigned char *)text->bytes + at / 8;
	mask = (unsigned char)(0x80 >> (at % 8));
	say_number(client, (*byte & mask) != 0);
	*byte = (unsigned char)(bit ? *byte | mask : *byte & ~mask);
	keys_changed(client, client->base, words[1]);
}

COMMAND(getbit)
{
	struct key *key;
	int64_t at;

	(void)count;
	if (!bit_offset(client, words[2], &at)
	    || !keys_read_kind(client, words[1], KIND_STRING, &key))
		return;
	say_number(client, key && (size_t)at / 8 < key->text->size
	                           && (key->text->bytes[at / 8] & 0x80 >> (at % 8)));
}

static bool
bit_of(const struct text *text, int64_t at)
{
	return text->bytes[at / 8] & 0x80 >> (at % 8);
}

struct bit_range {
	int64_t begin, end; /* inclusive */
	int64_t scale;      /* bits per unit */
};

static bool
read_bit_range(struct client *client, const struct word *words, size_t count, struct bit_range *out)
{
	if (count == 2)
		return true;
	if (count == 3 || count > 5) {
		say_syntax(client);
		return false;
	}
	if (!arg_number(client, words[2], &out->begin) || !arg_number(client, words[3], &out->end))
		return false;
	if (out->begin < 0 && out->end < 0 && out->begin > out->end) {
		say_number(client, 0); /* regardless of the unit */
		return false;
	}
	if (count == 5 && word_is(words[4], "bit")) {
		out->scale = 1;
	} else if (count == 5 && !word_is(words[4], "byte")) {
		say_syntax(client);
		return false;
	}
	return true;
}

COMMAND(bitcount)
{
	struct bit_range range = { 0, -1, 8 };
	int64_t found = 0, at;
	struct key *key;

	if (!keys_read_kind(client, words[1], KIND_STRING, &key))
		return;
	if (!key) {
		say_number(client, 0);
		return;
	}
	if (!read_bit_range(client, words, count, &range))
		return;
	if (cut_range(&range.begin, &range.end, key->text->size * (8 / range.scale)))
		for (at = range.begin * range.scale; at < (range.end + 1) * range.scale; at++)
			found += bit_of(key->text, at);
	say_number(client, found);
}
