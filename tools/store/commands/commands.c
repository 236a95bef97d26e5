/* commands.c - finds, checks and runs the command of a request. */
#include "store/commands/commands.h"

#define X(name_, function_, arity_, flags_, variant_, type_, missing_) \
	{ #name_, command_##function_, arity_, flags_, variant_, TYPE_##type_, missing_ },
static const struct command commands[] = { COMMANDS(X) };
#undef X

#define COUNT (sizeof(commands) / sizeof(commands[0]))

/* A client often repeats its last command. */
static const struct command *
find_command(const struct client *client, struct slice name)
{
	if (client->command && slice_is(name, client->command->name))
		return client->command;
	for (size_t i = 0; i < COUNT; i++)
		if (slice_is(name, commands[i].name))
			return &commands[i];
	return NULL;
}

static bool
has_arity(const struct command *command, size_t argc)
{
	return command->arity >= 0 ? argc == (size_t)command->arity
	                           : argc >= (size_t)-command->arity;
}

/* A web page can make a browser send a request to any port, with commands in the body.  Every HTTP
 * request has a Host header before its body.  So a client that sends HTTP is dropped. */
void
commands_run(struct client *client, struct slice *argv, size_t argc)
{
	struct weft_store *store = client->store;
	const struct command *command;

	if (argc == 0)
		return;
	command = find_command(client, argv[0]);
	store->commands++;
	if (slice_is(argv[0], "post") || slice_is(argv[0], "host:"))
		client_drop(client);
	else if (!command)
		reply_error(client, "ERR unknown command '%.*s'", SHOWN(argv[0]));
	else if (!has_arity(command, argc))
		reply_error(client, WRONG_ARITY, command->name);
	else if (!(client->flags & CLIENT_AUTHENTICATED) && !(command->flags & OPEN))
		reply_error(client, "NOAUTH Authentication required.");
	else if (command->flags & GROWS && store->opts.memory_max
	         && store->memory.used > store->opts.memory_max)
		reply_error(client, "OOM command not allowed when used memory > 'maxmemory'.");
	else if (client->protocol == 2 && client_subscriptions(client) > 0
	         && !(command->flags & PUBSUB))
		reply_error(client,
		            "ERR Can't execute '%s': only (P|S)SUBSCRIBE / "
		            "(P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
		            command->name);
	else
		command_run(client, command, argv, argc);
	block_serve(store);
}

void
command_run(struct client *client, const struct command *command, struct slice *argv, size_t argc)
{
	bool makes = (command->flags & MAKES) == MAKES;

	client->command = command;
	client->argv = argv;
	client->argc = argc;
	client->key = command->type == TYPE_NONE ? NULL : key_find(client, argv[1]);
	if (client->key && client->key->type != command->type) {
		reply_error(client, WRONG_TYPE);
		return;
	}
	if (!client->key && makes)
		client->key = key_add(client, argv[1], command->type);
	if (client->key || !command->missing)
		command->run(client);
	else if (command->missing == ':')
		reply_integer(client, 0);
	else if (command->missing == '_')
		reply_null(client);
	else
		reply_many(client, command->missing, 0);
	if (client->key && command->flags & WRITES)
		key_modified(client, client->key);
}

/* --- arguments -------------------------------------------------------------- */

bool
arg_integer(struct client *client, size_t at, int64_t *out)
{
	return integer_parse(client->argv[at], out) || reply_error(client, NOT_INTEGER);
}

bool
arg_double(struct client *client, size_t at, double *out)
{
	return double_parse(client->argv[at], out)
	       || reply_error(client, "ERR value is not a valid float");
}

bool
arg_range(struct client *client, size_t count, int64_t *begin, int64_t *end)
{
	int64_t all = (int64_t)count;

	if (!arg_integer(client, 2, begin) || !arg_integer(client, 3, end))
		return false;
	*begin += *begin < 0 ? all : 0;
	*begin = *begin < 0 ? 0 : *begin;
	*end += *end < 0 ? all : 0;
	*end = *end >= all ? all : *end + 1;
	if (*begin >= *end)
		*begin = *end = 0;
	return true;
}
