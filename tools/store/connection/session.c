/* session.c - the commands for connections, and about the server. */
#include <stdio.h>
#include <unistd.h>
#include "store/commands/commands.h"

#define REDIS_VERSION "7.0.15" /* the release of redis-server that the store behaves like */

/* --- AUTH and HELLO ----------------------------------------------------------- */

/* Compares in a time that does not depend on how much of the password is right. */
static bool
authenticate(struct client *client, struct slice user, struct slice password)
{
	const struct string *expected = client->store->password;
	bool wrong = expected && expected->size != password.size;

	for (size_t i = 0; expected && i < password.size && i < expected->size; i++)
		wrong |= password.data[i] != expected->bytes[i];
	if (wrong || !slice_equal(user, SLICE("default")))
		return reply_error(client, "WRONGPASS invalid username-password pair or user is "
		                           "disabled.");
	client->flags |= CLIENT_AUTHENTICATED;
	client->reader.unauthenticated = false;
	return true;
}

COMMAND(auth)
{
	struct slice user = client->argc == 3 ? client->argv[1] : SLICE("default");

	if (client->argc > 3)
		reply_error(client, SYNTAX);
	else if (client->argc == 2 && !client->store->password)
		reply_error(client, "ERR AUTH <password> called without any password configured");
	else if (authenticate(client, user, client->argv[client->argc - 1]))
		reply_ok(client);
}

static void
reply_hello(struct client *client)
{
	static const char *const texts[] = { "server", "redis",      "version", REDIS_VERSION,
		                             "mode",   "standalone", "role",    "master" };

	reply_many(client, '%', 7);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		reply_text(client, texts[i]);
	reply_text(client, "proto");
	reply_integer(client, client->protocol);
	reply_text(client, "id");
	reply_integer(client, (int64_t)bytes_get(client->id));
	reply_text(client, "modules");
	reply_many(client, '*', 0);
}

/* HELLO [protocol [AUTH user password] [SETNAME name]] */
COMMAND(hello)
{
	struct slice *argv = client->argv;
	int64_t protocol = client->protocol;

	if (client->argc > 1
	    && (!integer_parse(argv[1], &protocol) || protocol < 2 || protocol > 3)) {
		reply_error(client, "NOPROTO unsupported protocol version");
		return;
	}
	for (size_t i = 2; i < client->argc; i++) {
		size_t more = client->argc - i - 1;

		if (more > 1 && slice_is(argv[i], "auth")) {
			if (!authenticate(client, argv[i + 1], argv[i + 2]))
				return;
			i += 2;
		} else if (more == 0 || !slice_is(argv[i++], "setname")) {
			reply_error(client, SYNTAX);
			return;
		}
	}
	if (!(client->flags & CLIENT_AUTHENTICATED)) {
		reply_error(client, "NOAUTH HELLO needs AUTH <user> <password> first");
		return;
	}
	client->protocol = (uint8_t)protocol;
	reply_hello(client);
}

/* Names of clients, and of their libraries, are accepted and not kept. */
COMMAND(client)
{
	struct slice part = client->argv[1];

	if (client->argc == 2 && slice_is(part, "id"))
		reply_integer(client, (int64_t)bytes_get(client->id));
	else if ((client->argc == 3 && slice_is(part, "setname"))
	         || (client->argc == 4 && slice_is(part, "setinfo")))
		reply_ok(client);
	else
		reply_error(client, UNKNOWN_PART, SHOWN(part));
}

/* --- about the server -------------------------------------------------------- */

/* Clients ask for descriptions of the commands.  There are none. */
COMMAND(command)
{
	reply_many(client, client->argc > 1 && slice_is(client->argv[1], "docs") ? '%' : '*', 0);
}

COMMAND(info)
{
	const struct weft_store *store = client->store;
	char text[1024];
	int size = snprintf(
		text, sizeof(text),
		"# Server\r\nredis_version:" REDIS_VERSION "\r\nserver_name:weft store\r\n"
		"weft_version:%s\r\nredis_mode:standalone\r\nprocess_id:%lld\r\n"
		"uptime_in_seconds:%lld\r\n# Clients\r\nconnected_clients:%zu\r\n"
		"blocked_clients:%zu\r\n# Memory\r\nused_memory:%zu\r\nused_memory_peak:%zu\r\n"
		"maxmemory:%zu\r\nmem_clients_normal:%zu\r\n# Persistence\r\nin_memory_only:1\r\n"
		"# Stats\r\ntotal_connections_received:%llu\r\ntotal_commands_processed:%zu\r\n"
		"# Replication\r\nrole:master\r\nconnected_slaves:0\r\n",
		weft_version(), (long long)getpid(),
		(long long)(store->now_ms - store->start_ms) / 1000, map_count(&store->clients),
		store->blocked_count, store->memory.used, store->memory.peak,
		store->opts.memory_max, store->traffic.used, (unsigned long long)store->last_id,
		store->commands);

	reply_bulk(client, (struct slice){ text, (size_t)size });
}

/* --- other commands --------------------------------------------------------- */

COMMAND(echo)
{
	reply_bulk(client, client->argv[1]);
}

COMMAND(ping)
{
	if (client->argc > 2) {
		reply_error(client, WRONG_ARITY, "ping");
	} else if (client->protocol == 2 && client_subscriptions(client) > 0) {
		reply_many(client, '*', 2);
		reply_text(client, "pong");
		reply_bulk(client, client->argc == 2 ? client->argv[1] : SLICE(""));
	} else if (client->argc == 2) {
		reply_bulk(client, client->argv[1]);
	} else {
		reply_status(client, "PONG");
	}
}

COMMAND(quit)
{
	reply_ok(client);
	client->flags |= CLIENT_LAST;
}

COMMAND(reset)
{
	client_reset(client);
	reply_status(client, "RESET");
}

/* There is one database. */
COMMAND(select)
{
	if (slice_equal(client->argv[1], SLICE("0")))
		reply_ok(client);
	else
		reply_error(client, "ERR DB index is out of range");
}
