/* command.h - what commands there are, and how they are found.
 *
 * A command gets its words, its own name first, and says exactly one reply, or has its client
 * wait.  The number of words was checked.
 */
#ifndef STORE_COMMAND_H
#define STORE_COMMAND_H

#include "inner.h"

enum {
	COMMAND_WRITE  = 1 << 0, /* changes keys */
	COMMAND_GROWS  = 1 << 1, /* takes memory: refused when there is none */
	COMMAND_READ   = 1 << 2, /* reads keys: they are tracked */
	COMMAND_PUBSUB = 1 << 3, /* also while subscribed, in RESP2 */
	COMMAND_OPEN   = 1 << 4, /* also before AUTH */
	COMMAND_DIRECT = 1 << 5, /* runs also where others are queued */
	COMMAND_ADMIN  = 1 << 6,
};

typedef void (*command_fn)(struct client *client, const struct word *words, size_t count);

struct command {
	const char *name; /* lower case */
	command_fn  run;
	int16_t     words; /* with the name; negative: at least */
	uint16_t    flags;
	int8_t      first, last, step; /* where the keys are */
};

/* NULL if there is no such command. */
const struct command *command_find(struct word name);

/* All of them, and how many. */
const struct command *command_all(size_t *count);

/* Run the part of the command that words[1] names; a part that is none, or has too few or too many
 * words, is told. */
void command_run_part(struct client *client, const struct command *parts, size_t part_count,
                      const struct word *words, size_t count);

/* Whether the command has this many words. */
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

/* Read an argument; whether it is good, else the client was told. */
bool arg_number(struct client *client, struct word word, int64_t *out);
bool arg_real(struct client *client, struct word word, double *out);

/* Store a set or sorted set as a result at `name`; an empty one drops the key.  Takes it. */
void store_set_result(struct client *client, struct word name, struct table *set);
void store_sorted_result(struct client *client, struct word name, struct sorted *sorted);

/* Read LIMIT, if it stands at `at`. */
bool limit_read(struct client *client, const struct word *words, size_t count, size_t at,
                int64_t *out);

/* Read a time to expire: seconds or milliseconds, from now or as a date. */
struct expiry_unit {
	int64_t scale;   /* milliseconds */
	bool    is_date;
};
bool expiry_read(struct client *client, struct word word, struct expiry_unit unit,
                 int64_t *out_ms);

#endif
