/* clients.c - CLIENT and its subcommands. */
#include <stdio.h>
#include "command.h"
#include "say.h"

static bool
clients_is_plain(struct word word)
{
	for (size_t i = 0; i < word.size; i++)
		if (word.data[i] < '!' || word.data[i] > '~')
			return false;
	return true;
}

static void
set_text(struct client *client, struct text **text, struct word word)
{
	text_free(&client->store->heap, *text);
	*text = word.size > 0 ? text_new(&client->store->heap, word) : NULL;
}

bool
client_rename(struct client *client, struct word name)
{
	if (!clients_is_plain(name)) {
		say_error(client, "ERR Client names cannot contain spaces, "
		                  "newlines or special characters.");
		return false;
	}
	set_text(client, &client->name, name);
	return true;
}

static void
do_setname(struct client *client, const struct word *words, size_t count)
{
	(void)count;
	if (client_rename(client, words[2]))
		say_ok(client);
}

static void
do_getname(struct client *client, const struct word *words, size_t count)
{
	(void)words, (void)count;
	if (client->name)
		say_bulk(client, text_word(client->name));
	else
		say_null(client);
}

static void
do_id(struct client *client, const struct word *words, size_t count)
{
	(void)words, (void)count;
	say_number(client, (int64_t)client->id);
}

static void
do_setinfo(struct client *client, const struct word *words, size_t count)
{
	bool version = word_is(words[2], "lib-ver");

	(void)count;
	if (!version && !word_is(words[2], "lib-name"))
		say_error(client, "ERR Unrecognized option '%.*s'",
		          (int)(words[2].size < 128 ? words[2].size : 128), words[2].data);
	else if (!clients_is_plain(words[3]))
		say_error(client, "ERR %s cannot contain spaces, newlines or special characters.",
		          version ? "lib-ver" : "lib-name");
	else {
		set_text(client, version ? &client->library_version : &client->library, words[3]);
		say_ok(client);
	}
}

static void
do_switch(struct client *client, const struct word *words, size_t count)
{
	(void)count;
	if (word_is(words[2], "on") || word_is(words[2], "off"))
		say_ok(client);
	else
		say_syntax(client);
}

/* --- lists ------------------------------------------------------------------ */

static void
address_of(const struct client *client, char *out, size_t room)
{
	weft_addr addr;

	if (!client->stream || weft_stream_peer(client->stream, &addr) < 0
	    || weft_addr_format(&addr, out, room) < 0)
		(void)snprintf(out, room, "?");
	if (strncmp(out, "tcp://", 6) == 0)
		memmove(out, out + 6, strlen(out + 6) + 1);
}

static size_t
clients_describe(const struct client *client, char *out, size_t room)
{
	const struct weft_store *store = client->store;
	char address[WEFT_ADDR_TEXT_MAX];
	int size;

	address_of(client, address, sizeof(address));
	size = snprintf(out, room,
	                "id=%llu addr=%s name=%.*s age=%lld idle=%lld flags=%s db=%u "
	                "sub=%zu psub=%zu multi=%d qbuf=%zu omem=%zu cmd=%s "
	                "resp=%d lib-name=%.*s lib-ver=%.*s\n",
	                (unsigned long long)client->id, address,
	                client->name ? (int)client->name->size : 0,
	                client->name ? client->name->bytes : "",
	                (long long)(store->now_ms - client->since_ms) / 1000,
	                (long long)(store->now_ms - client->active_ms) / 1000,
	                client->flags & CLIENT_BLOCKED ? "b" : "N", client->base->number,
	                table_count(&client->channels), table_count(&client->patterns),
	                client->flags & CLIENT_MULTI ? (int)client->queued_count : -1,
	                client->in.size, client->out.size + client->flying.size,
	                client->command ? client->command->name : "NULL", client->protocol,
	                client->library ? (int)client->library->size : 0,
	                client->library ? client->library->bytes : "",
	                client->library_version ? (int)client->library_version->size : 0,
	                client->library_version ? client->library_version->bytes : "");
	return (size_t)size < room ? (size_t)size : room - 1;
}

static void
do_info_of(struct client *client, const struct word *words, size_t count)
{
	char line[1024];

	(void)words, (void)count;
	say_verbatim(client, (struct word){ line, clients_describe(client, line, sizeof(line)) });
}

static void
do_list(struct client *client, const struct word *words, size_t count)
{
	struct heap *heap = &client->store->heap;
	struct text *all = text_new(heap, WORD(""));

	(void)words, (void)count;
	for (struct client *other = client->store->clients; other; other = other->next) {
		char line[1024];
		size_t size = clients_describe(other, line, sizeof(line));

		all = text_reserve(heap, all, all->size + size);
		memcpy(all->bytes + all->size, line, size);
		all->size += (uint32_t)size;
	}
	say_verbatim(client, text_word(all));
	text_free(heap, all);
}

/* --- unblocking and closing ------------------------------------------------- */

static void
do_unblock(struct client *client, const struct word *words, size_t count)
{
	bool error = count == 4 && word_is(words[3], "error");
	struct client *other;
	int64_t id;

	if (count > 4 || (count == 4 && !error && !word_is(words[3], "timeout"))) {
		say_error(client, "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
		return;
	}
	if (!arg_number(client, words[2], &id))
		return;
	other = client_by_id(client->store, (uint64_t)id);
	if (!other || !(other->flags & CLIENT_BLOCKED)) {
		say_number(client, 0);
		return;
	}
	if (error)
		say_error(other, "UNBLOCKED client unblocked via CLIENT UNBLOCK");
	client_time_out(other, !error);
	say_number(client, 1);
}

static void
end_client(struct client *client, struct client *other)
{
	other->flags |= other == client ? CLIENT_LAST : CLIENT_DOOMED;
	client_dirty(other);
}

/* By ID, or by address in the old form. */
static void
do_kill(struct client *client, const struct word *words, size_t count)
{
	char address[WEFT_ADDR_TEXT_MAX];
	struct client *other = NULL;
	int64_t id;

	if (count == 4 && word_is(words[2], "id")) {
		if (!arg_number(client, words[3], &id))
			return;
		other = client_by_id(client->store, (uint64_t)id);
		if (other)
			end_client(client, other);
		say_number(client, other != NULL);
		return;
	}
	if (count != 3) {
		say_syntax(client);
		return;
	}
	for (other = client->store->clients; other; other = other->next) {
		address_of(other, address, sizeof(address));
		if (word_is(words[2], address))
			break;
	}
	if (!other) {
		say_error(client, "ERR No such client");
		return;
	}
	end_client(client, other);
	say_ok(client);
}

static void
do_reply(struct client *client, const struct word *words, size_t count)
{
	(void)count;
	if (word_is(words[2], "on")) {
		client->flags &= ~(uint32_t)(CLIENT_SILENT | CLIENT_SKIP);
		say_ok(client);
	} else if (word_is(words[2], "off")) {
		client->flags |= CLIENT_SILENT;
	} else if (word_is(words[2], "skip")) {
		if (!(client->flags & CLIENT_SILENT))
			client->flags |= CLIENT_SKIPS;
	} else {
		say_syntax(client);
	}
}

/* --- the table of subcommands ----------------------------------------------- */

static const struct command parts[] = {
	{ .name = "caching", .run = do_client_caching, .words = 3 },
	{ .name = "getname", .run = do_getname, .words = 2 },
	{ .name = "getredir", .run = do_client_getredir, .words = 2 },
	{ .name = "id", .run = do_id, .words = 2 },
	{ .name = "info", .run = do_info_of, .words = 2 },
	{ .name = "kill", .run = do_kill, .words = -3 },
	{ .name = "list", .run = do_list, .words = -2 },
	{ .name = "no-evict", .run = do_switch, .words = 3 },
	{ .name = "no-touch", .run = do_switch, .words = 3 },
	{ .name = "reply", .run = do_reply, .words = 3 },
	{ .name = "setinfo", .run = do_setinfo, .words = 4 },
	{ .name = "setname", .run = do_setname, .words = 3 },
	{ .name = "tracking", .run = do_client_tracking, .words = -3 },
	{ .name = "unblock", .run = do_unblock, .words = -3 },
};

COMMAND(client)
{
	command_run_part(client, parts, sizeof(parts) / sizeof(parts[0]), words, count);
}
