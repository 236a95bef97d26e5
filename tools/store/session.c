/* session.c - HELLO, AUTH, PING, ECHO, QUIT, RESET, SELECT. */
#include <stdio.h>
#include "command.h"
#include "say.h"
#include "version.h"

/* Compares in a time that does not depend on how much of the password is right. */
static bool
is_password(const struct weft_store *store, struct word word)
{
	unsigned difference;

	if (!store->password)
		return true;
	difference = word.size != store->password->size;
	for (size_t i = 0; i < word.size && i < store->password->size; i++)
		difference |= (unsigned)(word.data[i] ^ store->password->bytes[i]);
	return difference == 0;
}

static bool
authenticate(struct client *client, struct word user, struct word password)
{
	if (!word_equal(user, WORD("default")) || !is_password(client->store, password)) {
		say_error(client, "WRONGPASS invalid username-password pair or user is disabled.");
		return false;
	}
	client->flags |= CLIENT_KNOWN;
	client->reader.is_stranger = false;
	return true;
}

COMMAND(auth)
{
	struct word user = count == 3 ? words[1] : WORD("default");

	if (count > 3) {
		say_syntax(client);
		return;
	}
	if (count == 2 && !client->store->password) {
		say_error(client, "ERR AUTH <password> called without any password "
		                  "configured for the default user. Are you sure your "
		                  "configuration is correct?");
		return;
	}
	if (authenticate(client, user, words[count - 1]))
		say_ok(client);
}

/* --- HELLO ------------------------------------------------------------------ */

static void
say_hello(struct client *client)
{
	say_map(client, 7);
	say_text(client, "server");
	say_text(client, "redis");
	say_text(client, "version");
	say_text(client, STORE_SPEAKS);
	say_text(client, "proto");
	say_number(client, client->protocol);
	say_text(client, "id");
	say_number(client, (int64_t)client->id);
	say_text(client, "mode");
	say_text(client, "standalone");
	say_text(client, "role");
	say_text(client, "master");
	say_text(client, "modules");
	say_array(client, 0);
}

struct hello {
	int64_t protocol; /* 0: unchanged */
	const struct word *user, *name;
};

static bool
read_hello(struct client *client, const struct word *words, size_t count, struct hello *out)
{
	if (count > 1 && !number_read(words[1], &out->protocol)) {
		say_error(client, "ERR Protocol version is not an integer or out of range");
		return false;
	}
	if (count > 1 && (out->protocol < 2 || out->protocol > 3)) {
		say_error(client, "NOPROTO unsupported protocol version");
		return false;
	}
	for (size_t i = 2; i < count; i++) {
		if (word_is(words[i], "auth") && count - i > 2) {
			out->user = &words[i + 1];
			i += 2;
		} else if (word_is(words[i], "setname") && count - i > 1) {
			out->name = &words[++i];
		} else {
			say_error(client, "ERR Syntax error in HELLO option '%.*s'",
			          (int)(words[i].size < 128 ? words[i].size : 128), words[i].data);
			return false;
		}
	}
	return true;
}

COMMAND(hello)
{
	struct hello hello = { 0 };

	if (!read_hello(client, words, count, &hello))
		return;
	if (hello.user && !authenticate(client, hello.user[0], hello.user[1]))
		return;
	if (!(client->flags & CLIENT_KNOWN)) {
		say_error(client, "NOAUTH HELLO must be called with the client already "
		                  "authenticated, otherwise the HELLO <proto> AUTH "
		                  "<user> <pass> option can be used to authenticate "
		                  "the client and select the RESP protocol version at "
		                  "the same time");
		return;
	}
	if (hello.name && !client_rename(client, *hello.name))
		return;
	if (hello.protocol)
		client->protocol = (uint8_t)hello.protocol;
	say_hello(client);
}

/* --- other commands --------------------------------------------------------- */

COMMAND(ping)
{
	bool subscribed = table_count(&client->channels) + table_count(&client->patterns) > 0;

	if (count > 2) {
		say_error(client, "ERR wrong number of arguments for 'ping' command");
		return;
	}
	if (client->protocol == 2 && subscribed) {
		say_array(client, 2);
		say_text(client, "pong");
		say_bulk(client, count == 2 ? words[1] : WORD(""));
	} else if (count == 2) {
		say_bulk(client, words[1]);
	} else {
		say_raw(client, "+PONG\r\n", 7);
	}
}

COMMAND(echo)
{
	(void)count;
	say_bulk(client, words[1]);
}

COMMAND(quit)
{
	(void)words, (void)count;
	say_ok(client);
	client->flags |= CLIENT_LAST;
	client_dirty(client);
}

COMMAND(reset)
{
	(void)words, (void)count;
	client_reset(client);
	say_status(client, "RESET");
}

COMMAND(select)
{
	int64_t number;

	(void)count;
	if (!arg_number(client, words[1], &number))
		return;
	if (number < 0 || number >= BASES) {
		say_error(client, "ERR DB index is out of range");
		return;
	}
	client->base = &client->store->bases[number];
	say_ok(client);
}
