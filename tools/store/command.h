/* command.h - the commands, and how they are found.
 *
 * A command gets its arguments, its own name first.  It writes exactly one reply, or blocks its
 * client.  The number of arguments has been checked.
 */
#ifndef STORE_COMMAND_H
#define STORE_COMMAND_H

#include "inner.h"

enum {
	COMMAND_WRITE  = 1 << 0, /* changes keys */
	COMMAND_GROWS  = 1 << 1, /* uses memory: rejected when the limit is reached */
	COMMAND_READ   = 1 << 2, /* reads keys, which are then tracked */
	COMMAND_PUBSUB = 1 << 3, /* allowed while subscribed, in RESP2 */
	COMMAND_OPEN   = 1 << 4, /* allowed before AUTH */
	COMMAND_DIRECT = 1 << 5, /* runs even inside MULTI, where others are queued */
	COMMAND_ADMIN  = 1 << 6,
};

typedef void (*command_fn)(struct client *client, const struct word *words, size_t count);

struct command {
	const char *name; /* lower case */
	command_fn  run;
	int16_t     words; /* including the name; negative: minimum */
	uint16_t    flags;
	int8_t      first, last, step; /* positions of the keys */
};

/* NULL if there is no such command. */
const struct command *command_find(struct word name);

/* All commands, and their number. */
const struct command *command_all(size_t *count);

/* Run the subcommand that words[1] names.  Replies with an error if it is unknown, or the number
 * of arguments is wrong. */
void command_run_part(struct client *client, const struct command *parts, size_t part_count,
                      const struct word *words, size_t count);

/* Whether the command accepts this number of arguments. */
static inline bool
command_takes(const struct command *command, size_t words)
{
	return command->words >= 0 ? words == (size_t)command->words
	                           : words >= (size_t)-command->words;
}

/* Every command: do_NAME.  The table is in commands.c. */
#define COMMAND(name) \
	void do_##name(struct client *client, const struct word *words, size_t count)

#include "commands.h"

/* --- shared by families ------------------------------------------------------ */

/* Parse an argument.  Returns false after replying with an error if it is not valid. */
bool arg_number(struct client *client, struct word word, int64_t *out);
bool arg_real(struct client *client, struct word word, double *out);

/* Store a set or sorted set as the result at `name`; an empty result deletes the key.  Takes
 * ownership of it, and replies with its size. */
void store_set_result(struct client *client, struct word name, struct table *set);
void store_sorted_result(struct client *client, struct word name, struct sorted *sorted);

/* Parse LIMIT, if present from `at` on. */
bool limit_read(struct client *client, const struct word *words, size_t count, size_t at,
                int64_t *out);

/* Parse an expiry time: in seconds or milliseconds, relative or absolute. */
struct expiry_unit {
	int64_t scale;   /* milliseconds */
	bool    is_date;
};
bool expiry_read(struct client *client, struct word word, struct expiry_unit unit,
                 int64_t *out_ms);

#endif
