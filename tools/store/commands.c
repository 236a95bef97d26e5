/* commands.c - the table of commands, and the lookup by name.
 *
 * A name of up to 16 bytes is loaded into two 64-bit words; setting one bit of each byte makes
 * it lower case.  A multiplicative hash of the two selects a slot in a table that is filled
 * before main(); collisions use the next slot.
 */
#include <stdio.h>
#include "command.h"
#include "say.h"

#define SLOTS          1024u
#define NAME_MAX_BYTES 16u

#define X(name_, words_, flags_, first_, last_, step_) \
	{ #name_, do_##name_, (words_), (flags_), (first_), (last_), (step_) },
static const struct command commands[] = { COMMANDS(X) };
#undef X

#define COUNT (sizeof(commands) / sizeof(commands[0]))

struct name {
	uint64_t low, high;
};

static struct slot {
	struct name name;
	size_t size;
	const struct command *command;
} slots[SLOTS];

/* Loads all bytes of a name, some possibly twice.  Letters become lower case.  Other bytes
 * change, too, but none becomes a letter, and names contain only letters. */
static struct name
fold(struct word word)
{
	const uint64_t small = UINT64_C(0x2020202020202020);
	struct name name = { 0, 0 };

	if (word.size >= 8) {
		memcpy(&name.low, word.data, 8);
		memcpy(&name.high, word.data + word.size - 8, 8);
	} else if (word.size >= 4) {
		uint32_t first, last;

		memcpy(&first, word.data, 4);
		memcpy(&last, word.data + word.size - 4, 4);
		name.low = first | (uint64_t)last << 32;
	} else if (word.size > 0) {
		const unsigned char *at = (const unsigned char *)word.data;

		name.low = at[0] | (uint64_t)at[word.size / 2] << 8
		           | (uint64_t)at[word.size - 1] << 16;
	}
	name.low |= small;
	name.high |= small;
	return name;
}

static uint32_t
slot_of(struct name name)
{
	return (uint32_t)(((name.low * UINT64_C(0x9e3779b97f4a7c15))
	                   ^ (name.high * UINT64_C(0xd6e8feb86659fd93)))
	                  >> 54);
}

/* Runs before main(), so no thread sees it half filled. */
__attribute__((constructor)) static void
fill(void)
{
	for (size_t i = 0; i < COUNT; i++) {
		const struct command *command = &commands[i];
		struct name name = fold((struct word){ command->name, strlen(command->name) });
		uint32_t at = slot_of(name);

		while (slots[at].command)
			at = (at + 1) % SLOTS;
		slots[at] = (struct slot){ name, strlen(command->name), command };
	}
}

const struct command *
command_find(struct word word)
{
	struct name name;

	if (word.size > NAME_MAX_BYTES)
		return NULL;
	name = fold(word);
	for (uint32_t at = slot_of(name); slots[at].command; at = (at + 1) % SLOTS)
		if (slots[at].name.low == name.low && slots[at].name.high == name.high
		    && slots[at].size == word.size)
			return slots[at].command;
	return NULL;
}

const struct command *
command_all(size_t *count)
{
	*count = COUNT;
	return commands;
}

void
command_run_part(struct client *client, const struct command *parts, size_t part_count,
                 const struct word *words, size_t count)
{
	char upper[32] = "";

	for (size_t i = 0; i < part_count; i++) {
		if (!word_is(words[1], parts[i].name))
			continue;
		if (command_takes(&parts[i], count))
			parts[i].run(client, words, count);
		else
			say_error(client, "ERR wrong number of arguments for '%s|%s' command",
			          client->command->name, parts[i].name);
		return;
	}
	for (size_t i = 0; client->command->name[i]; i++)
		upper[i] = (char)(client->command->name[i] & ~0x20);
	say_unknown_part(client, upper, words[1]);
}

/* --- arguments -------------------------------------------------------------- */

bool
arg_number(struct client *client, struct word word, int64_t *out)
{
	if (number_read(word, out))
		return true;
	say_error(client, "ERR value is not an integer or out of range");
	return false;
}

bool
arg_real(struct client *client, struct word word, double *out)
{
	if (real_read(word, out))
		return true;
	say_error(client, "ERR value is not a valid float");
	return false;
}
