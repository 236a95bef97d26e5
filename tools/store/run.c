/* run.c - runs, queues or rejects one request. */
#include <stdio.h>
#include "command.h"
#include "say.h"

static void
refuse_unknown(struct client *client, const struct word *words, size_t count)
{
	char args[160];
	size_t size = 0;

	args[0] = '\0';
	for (size_t i = 1; i < count && size < 128; i++) {
		size_t most = 128 - size;

		if (most > words[i].size)
			most = words[i].size;
		size += (size_t)snprintf(args + size, sizeof(args) - size, "'%.*s' ", (int)most,
		                         words[i].data);
	}
	say_error(client, "ERR unknown command '%.*s', with args beginning with: %s",
	          (int)(words[0].size < 128 ? words[0].size : 128), words[0].data, args);
}

static bool
is_subscribed(const struct client *client)
{
	return table_count(&client->channels) + table_count(&client->patterns) > 0;
}

/* Whether the store uses more memory than allowed. */
static bool
is_full(const struct weft_store *store)
{
	return store->opts.memory_max && store->heap.used > store->opts.memory_max;
}

static void
say_full(struct client *client)
{
	say_error(client, "OOM command not allowed when used memory > 'maxmemory'.");
}

/* A rejected EXEC discards its transaction. */
static const char *
error_of(const struct command *command)
{
	return command->run == do_exec ? "EXECABORT Transaction discarded because of:" : "ERR";
}

/* Whether the command was rejected; if so, an error was replied. */
static bool
refused(struct client *client, const struct command *command, const struct word *words,
        size_t count)
{
	if (!command)
		refuse_unknown(client, words, count);
	else if (!command_takes(command, count))
		say_error(client, "%s wrong number of arguments for '%s' command",
		          error_of(command), command->name);
	else if (!(client->flags & CLIENT_KNOWN) && !(command->flags & COMMAND_OPEN))
		say_error(client, "NOAUTH Authentication required.");
	else if ((command->flags & COMMAND_GROWS) && is_full(client->store))
		say_full(client);
	else if (client->protocol == 2 && is_subscribed(client)
	         && !(command->flags & COMMAND_PUBSUB))
		say_error(client,
		          "%s Can't execute '%s': only (P|S)SUBSCRIBE / "
		          "(P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
		          error_of(command), command->name);
	else
		return false;
	if (command && command->run == do_exec)
		multi_end(client);
	else if (client->flags & CLIENT_MULTI)
		client->flags |= CLIENT_BROKEN;
	return true;
}

static void
queue(struct client *client, const struct command *command, const struct word *words, size_t count)
{
	struct request *request;

	if (is_full(client->store)) {
		say_full(client);
		client->flags |= CLIENT_BROKEN;
		return;
	}
	request = request_keep(&client->store->heap, command, words, count);
	*client->queued_end = request;
	client->queued_end = &request->next;
	client->queued_count++;
	say_raw(client, "+QUEUED\r\n", 9);
}

void
run_command(struct client *client, const struct command *command, const struct word *words,
            size_t count)
{
	client->command = command;
	if (command->flags & COMMAND_READ)
		client->flags |= CLIENT_READS;
	else
		client->flags &= ~(uint32_t)CLIENT_READS;
	command->run(client, words, count);
}

/* Performs what must follow a command's reply: notifications and blocked clients. */
static void
store_run_finish(struct client *client, uint32_t before)
{
	struct weft_store *store = client->store;

	if (before & CLIENT_SKIP)
		client->flags &= ~(uint32_t)CLIENT_SKIP;
	if (client->flags & CLIENT_SKIPS) {
		client->flags &= ~(uint32_t)CLIENT_SKIPS;
		client->flags |= CLIENT_SKIP;
	}
	if (before & CLIENT_CACHING)
		client->flags &= ~(uint32_t)CLIENT_CACHING;
	if (store->own_count > 0)
		tracking_tell_own(store);
	if (store->ready_count > 0)
		serve_ready(store);
}

/* Detects HTTP.  A web page can make a browser send a request to any port, with commands in the
 * body.  Every HTTP request has a Host header before its body. */
static bool
is_http(struct word word)
{
	return word_is(word, "post") || word_is(word, "host:");
}

void
run_request(struct client *client, const struct word *words, size_t count)
{
	const struct command *command;
	uint32_t before = client->flags;

	if (count == 0)
		return;
	if (is_http(words[0])) {
		client->flags |= CLIENT_DOOMED;
		client_dirty(client);
		return;
	}
	command = command_find(words[0]);
	client->store->stats.commands++;
	client->store->runs = client;
	if (!refused(client, command, words, count)) {
		if ((client->flags & CLIENT_MULTI) && !(command->flags & COMMAND_DIRECT))
			queue(client, command, words, count);
		else
			run_command(client, command, words, count);
	}
	store_run_finish(client, before);
	client->store->runs = NULL;
}
