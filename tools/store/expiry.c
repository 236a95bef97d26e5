/* expiry.c - expiry of keys: EXPIRE, TTL, PERSIST and related commands. */
#include "command.h"
#include "say.h"

static bool
say_bad_time(struct client *client)
{
	say_error(client, "ERR invalid expire time in '%s' command", client->command->name);
	return false;
}

static bool
to_date(struct client *client, int64_t time, struct expiry_unit unit, int64_t *out_ms)
{
	int64_t base = unit.is_date ? 0 : client->store->now_ms;

	if (__builtin_mul_overflow(time, unit.scale, &time)
	    || __builtin_add_overflow(time, base, out_ms))
		return say_bad_time(client);
	return true;
}

bool
expiry_read(struct client *client, struct word word, struct expiry_unit unit, int64_t *out_ms)
{
	int64_t time;

	if (!arg_number(client, word, &time))
		return false;
	if (time <= 0)
		return say_bad_time(client);
	return to_date(client, time, unit, out_ms);
}

/* --- EXPIRE ----------------------------------------------------------------- */

enum {
	IF_NONE = 1 << 0,    /* NX */
	IF_SOME = 1 << 1,    /* XX */
	IF_LATER = 1 << 2,   /* GT */
	IF_EARLIER = 1 << 3, /* LT */
};

static bool
read_condition(struct client *client, const struct word *words, size_t count, unsigned *out)
{
	for (size_t i = 3; i < count; i++) {
		if (word_is(words[i], "nx"))
			*out |= IF_NONE;
		else if (word_is(words[i], "xx"))
			*out |= IF_SOME;
		else if (word_is(words[i], "gt"))
			*out |= IF_LATER;
		else if (word_is(words[i], "lt"))
			*out |= IF_EARLIER;
		else {
			say_error(client, "ERR Unsupported option %.*s",
			          (int)(words[i].size < 128 ? words[i].size : 128), words[i].data);
			return false;
		}
	}
	if ((*out & IF_NONE) && (*out & ~(unsigned)IF_NONE)) {
		say_error(client, "ERR NX and XX, GT or LT options at the same "
		                  "time are not compatible");
		return false;
	}
	if ((*out & IF_LATER) && (*out & IF_EARLIER)) {
		say_error(client, "ERR GT and LT options at the same time are not compatible");
		return false;
	}
	return true;
}

/* A key without expiry counts as expiring later than any other. */
static bool
is_met(unsigned condition, int64_t now_ms, int64_t at_ms)
{
	if ((condition & IF_NONE) && now_ms != 0)
		return false;
	if ((condition & IF_SOME) && now_ms == 0)
		return false;
	if ((condition & IF_LATER) && (now_ms == 0 || at_ms <= now_ms))
		return false;
	return !(condition & IF_EARLIER) || now_ms == 0 || at_ms < now_ms;
}

static void
expire(struct client *client, const struct word *words, size_t count, struct expiry_unit unit)
{
	unsigned condition = 0;
	int64_t at_ms;
	struct key *key;

	if (!read_condition(client, words, count, &condition)
	    || !arg_number(client, words[2], &at_ms) || !to_date(client, at_ms, unit, &at_ms))
		return;
	key = keys_write(client, words[1]);
	if (!key || !is_met(condition, key->expires_ms, at_ms)) {
		say_number(client, 0);
		return;
	}
	if (at_ms <= client->store->now_ms)
		keys_drop(client->base, key);
	else
		keys_mortal(client, client->base, key, at_ms);
	keys_changed(client, client->base, words[1]);
	say_number(client, 1);
}

COMMAND(expire)
{
	expire(client, words, count, (struct expiry_unit){ 1000, false });
}

COMMAND(pexpire)
{
	expire(client, words, count, (struct expiry_unit){ 1, false });
}

COMMAND(expireat)
{
	expire(client, words, count, (struct expiry_unit){ 1000, true });
}

COMMAND(pexpireat)
{
	expire(client, words, count, (struct expiry_unit){ 1, true });
}

COMMAND(persist)
{
	struct key *key = keys_write(client, words[1]);
	bool was_mortal = key && key->expires_ms != 0;

	(void)count;
	if (was_mortal) {
		keys_expire_at(client->base, key, 0);
		keys_changed(client, client->base, words[1]);
	}
	say_number(client, was_mortal);
}

/* --- TTL -------------------------------------------------------------------- */

static void
say_time(struct client *client, struct word name, struct expiry_unit unit)
{
	struct key *key = keys_read(client, name);
	int64_t time;

	if (!key || key->expires_ms == 0) {
		say_number(client, key ? -1 : -2);
		return;
	}
	time = key->expires_ms - (unit.is_date ? 0 : client->store->now_ms);
	if (time < 0)
		time = 0;
	say_number(client, (time + unit.scale / 2) / unit.scale);
}

COMMAND(ttl)
{
	(void)count;
	say_time(client, words[1], (struct expiry_unit){ 1000, false });
}

COMMAND(pttl)
{
	(void)count;
	say_time(client, words[1], (struct expiry_unit){ 1, false });
}

COMMAND(expiretime)
{
	(void)count;
	say_time(client, words[1], (struct expiry_unit){ 1000, true });
}

COMMAND(pexpiretime)
{
	(void)count;
	say_time(client, words[1], (struct expiry_unit){ 1, true });
}
