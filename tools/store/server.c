/* server.c - CONFIG, COMMAND, DEBUG, TIME, and stubs for commands that clients expect. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "command.h"
#include "say.h"

/* --- CONFIG ----------------------------------------------------------------- */

struct setting {
	const char *name;
	char value[NUMBER_MAX];
};

static void
number_setting(struct setting *setting, size_t value)
{
	setting->value[number_write(setting->value, (int64_t)value)] = '\0';
}

static bool
is_asked(const struct word *patterns, size_t count, const char *name)
{
	char lower[64];

	for (size_t i = 0; i < count; i++) {
		size_t size = patterns[i].size;

		if (size >= sizeof(lower))
			continue;
		for (size_t j = 0; j < size; j++) {
			char c = patterns[i].data[j];

			lower[j] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
		}
		if (word_matches((struct word){ lower, size }, (struct word){ name, strlen(name) }))
			return true;
	}
	return false;
}

static void
do_config_get(struct client *client, const struct word *words, size_t count)
{
	const weft_store_opts *opts = &client->store->opts;
	struct setting settings[] = {
		{ "save", "" },
		{ "appendonly", "no" },
		{ "databases", "16" },
		{ "maxmemory", "0" },
		{ "maxmemory-policy", "noeviction" },
		{ "maxclients", "" },
		{ "proto-max-bulk-len", "" },
		{ "timeout", "0" },
	};
	size_t place = say_later(client), shown = 0;

	number_setting(&settings[3], opts->memory_max);
	number_setting(&settings[5], opts->clients_max);
	number_setting(&settings[6], opts->bulk_max);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (!is_asked(words + 2, count - 2, settings[i].name))
			continue;
		say_text(client, settings[i].name);
		say_text(client, settings[i].value);
		shown++;
	}
	say_count(client, place, '%', shown);
}

/* Only maxmemory can be changed. */
static void
do_config_set(struct client *client, const struct word *words, size_t count)
{
	int64_t bytes = 0;

	if (count % 2 != 0) {
		say_error(client, "ERR wrong number of arguments for 'config|set' command");
		return;
	}
	for (size_t i = 2; i < count; i += 2)
		if (!word_is(words[i], "maxmemory") || !number_read(words[i + 1], &bytes)
		    || bytes < 0) {
			say_error(client,
			          "ERR Unknown option or number of arguments "
			          "for CONFIG SET - '%.*s'",
			          (int)(words[i].size < 128 ? words[i].size : 128), words[i].data);
			return;
		}
	client->store->opts.memory_max = (size_t)bytes;
	say_ok(client);
}

static void
do_config_resetstat(struct client *client, const struct word *words, size_t count)
{
	(void)words, (void)count;
	client->store->stats = (struct store_stats){ 0 };
	say_ok(client);
}

COMMAND(config)
{
	static const struct command parts[] = {
		{ .name = "get", .run = do_config_get, .words = -3 },
		{ .name = "set", .run = do_config_set, .words = -4 },
		{ .name = "resetstat", .run = do_config_resetstat, .words = 2 },
	};

	command_run_part(client, parts, sizeof(parts) / sizeof(parts[0]), words, count);
}

/* --- COMMAND ---------------------------------------------------------------- */

static void
say_command(struct client *client, const struct command *command)
{
	static const struct {
		uint16_t flag;
		const char *name;
	} flags[] = { { COMMAND_WRITE, "write" },
		      { COMMAND_GROWS, "denyoom" },
		      { COMMAND_READ, "readonly" },
		      { COMMAND_ADMIN, "admin" },
		      { COMMAND_OPEN, "no_auth" } };
	size_t place, shown = 0;

	say_array(client, 10);
	say_text(client, command->name);
	say_number(client, command->words);
	place = say_later(client);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (command->flags & flags[i].flag) {
			say_status(client, flags[i].name);
			shown++;
		}
	say_count(client, place, '~', shown);
	say_number(client, command->first);
	say_number(client, command->last);
	say_number(client, command->step);
	say_set(client, 0);   /* categories */
	say_array(client, 0); /* tips */
	say_array(client, 0); /* key specifications */
	say_array(client, 0); /* subcommands */
}

static void
do_command_info(struct client *client, const struct word *words, size_t count)
{
	if (count == 2) {
		do_command(client, words, 1);
		return;
	}
	say_array(client, count - 2);
	for (size_t i = 2; i < count; i++) {
		const struct command *command = command_find(words[i]);

		if (command)
			say_command(client, command);
		else
			say_null_array(client);
	}
}

static void
do_command_count(struct client *client, const struct word *words, size_t count)
{
	size_t all;

	(void)words, (void)count, (void)command_all(&all);
	say_number(client, (int64_t)all);
}

static void
do_command_list(struct client *client, const struct word *words, size_t count)
{
	size_t all;
	const struct command *list = command_all(&all);

	(void)words, (void)count;
	say_array(client, all);
	for (size_t i = 0; i < all; i++)
		say_text(client, list[i].name);
}

/* There is no documentation. */
static void
do_command_docs(struct client *client, const struct word *words, size_t count)
{
	(void)words, (void)count;
	say_map(client, 0);
}

COMMAND(command)
{
	static const struct command parts[] = {
		{ .name = "count", .run = do_command_count, .words = 2 },
		{ .name = "docs", .run = do_command_docs, .words = -2 },
		{ .name = "info", .run = do_command_info, .words = -2 },
		{ .name = "list", .run = do_command_list, .words = -2 },
	};
	const struct command *list;
	size_t all;

	if (count > 1) {
		command_run_part(client, parts, sizeof(parts) / sizeof(parts[0]), words, count);
		return;
	}
	list = command_all(&all);
	say_array(client, all);
	for (size_t i = 0; i < all; i++)
		say_command(client, &list[i]);
}

/* --- DEBUG ------------------------------------------------------------------ */

/* Blocks the whole loop, as intended. */
static void
do_debug_sleep(struct client *client, const struct word *words, size_t count)
{
	struct timespec pause;
	double seconds;

	(void)count;
	if (!arg_real(client, words[2], &seconds))
		return;
	if (seconds < 0 || seconds > 3600)
		seconds = 0;
	pause.tv_sec = (time_t)seconds;
	pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
	(void)nanosleep(&pause, NULL);
	client->store->now_ms = client->store->clock_ms();
	say_ok(client);
}

static void
do_debug_expire(struct client *client, const struct word *words, size_t count)
{
	(void)count;
	client->store->lazy = word_is(words[2], "0");
	say_ok(client);
}

COMMAND(debug)
{
	static const struct command parts[] = {
		{ .name = "sleep", .run = do_debug_sleep, .words = 3 },
		{ .name = "set-active-expire", .run = do_debug_expire, .words = 3 },
	};

	if (!client->store->opts.debug)
		say_error(client, "ERR DEBUG command not allowed.");
	else
		command_run_part(client, parts, sizeof(parts) / sizeof(parts[0]), words, count);
}

/* --- other commands --------------------------------------------------------- */

COMMAND(time)
{
	struct timespec now;
	char text[NUMBER_MAX];

	(void)words, (void)count;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	say_array(client, 2);
	say_bulk(client, (struct word){ text, number_write(text, now.tv_sec) });
	say_bulk(client, (struct word){ text, number_write(text, now.tv_nsec / 1000) });
}

COMMAND(lastsave)
{
	(void)words, (void)count;
	say_number(client, client->store->start_ms / 1000);
}

/* There are no replicas to wait for. */
COMMAND(wait)
{
	int64_t number;

	(void)count;
	if (arg_number(client, words[1], &number) && arg_number(client, words[2], &number))
		say_number(client, 0);
}

static void
say_no_scripts(struct client *client)
{
	say_error(client, "ERR weft store does not support scripts: '%s' needs redis-server",
	          client->command->name);
}

COMMAND(eval)
{
	(void)words, (void)count;
	say_no_scripts(client);
}

COMMAND(evalsha)
{
	(void)words, (void)count;
	say_no_scripts(client);
}

COMMAND(script)
{
	(void)words, (void)count;
	say_no_scripts(client);
}

COMMAND(function)
{
	(void)words, (void)count;
	say_no_scripts(client);
}
