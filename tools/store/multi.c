/* multi.c - MULTI, EXEC, DISCARD, WATCH, UNWATCH. */
#include "command.h"
#include "say.h"

static void
drop_queue(struct client *client)
{
	while (client->queued) {
		struct request *request = client->queued;

		client->queued = request->next;
		request_free(&client->store->heap, request);
	}
	client->queued_end = &client->queued;
	client->queued_count = 0;
}

/* Ends the transaction, if there is one, and all watches. */
void
multi_end(struct client *client)
{
	drop_queue(client);
	interest_drop_all(client, &client->watches);
	client->flags &= ~(uint32_t)(CLIENT_MULTI | CLIENT_BROKEN | CLIENT_TOUCHED | CLIENT_EXEC);
}

COMMAND(multi)
{
	(void)words, (void)count;
	if (client->flags & CLIENT_MULTI) {
		say_error(client, "ERR MULTI calls can not be nested");
		return;
	}
	client->flags |= CLIENT_MULTI;
	say_ok(client);
}

COMMAND(discard)
{
	(void)words, (void)count;
	if (!(client->flags & CLIENT_MULTI)) {
		say_error(client, "ERR DISCARD without MULTI");
		return;
	}
	multi_end(client);
	say_ok(client);
}

/* Whether a watched key has expired without having been looked up. */
static bool
has_expired(struct client *client)
{
	struct walk walk = table_walk(&client->watches);
	struct node *node;
	bool over = false;

	while ((node = walk_next(&walk)) != NULL) {
		struct word name = table_name(walk.table, node);
		struct base *base = &client->store->bases[(int)name.data[0]];
		struct word key = { name.data + 1, name.size - 1 };

		over |= table_find(&base->keys, key) && !keys_peek(client->store, base, key);
	}
	return over;
}

static void
run_queue(struct client *client)
{
	struct request *request = client->queued;

	say_array(client, client->queued_count);
	client->flags &= ~(uint32_t)CLIENT_MULTI;
	client->flags |= CLIENT_EXEC;
	interest_drop_all(client, &client->watches);
	for (; request && (client->flags & CLIENT_EXEC); request = request->next)
		run_command(client, request->command, request->words, request->count);
}

COMMAND(exec)
{
	(void)words, (void)count;
	if (!(client->flags & CLIENT_MULTI)) {
		say_error(client, "ERR EXEC without MULTI");
		return;
	}
	if (client->flags & CLIENT_BROKEN)
		say_error(client, "EXECABORT Transaction discarded because of previous errors.");
	else if ((client->flags & CLIENT_TOUCHED) || has_expired(client))
		say_null_array(client);
	else
		run_queue(client);
	multi_end(client);
}

/* --- watching --------------------------------------------------------------- */

COMMAND(watch)
{
	struct weft_store *store = client->store;

	if (client->flags & CLIENT_MULTI) {
		say_error(client, "ERR WATCH inside MULTI is not allowed");
		return;
	}
	for (size_t i = 1; i < count && !(client->flags & CLIENT_TOUCHED); i++) {
		struct text *name;

		(void)keys_write(client, words[i]); /* remove it if it has expired */
		name = scoped_name(store, client->base, words[i]);
		(void)interest_add(client, &client->watches, &store->watched, text_word(name));
		text_free(&store->heap, name);
	}
	say_ok(client);
}

COMMAND(unwatch)
{
	(void)words, (void)count;
	interest_drop_all(client, &client->watches);
	client->flags &= ~(uint32_t)CLIENT_TOUCHED;
	say_ok(client);
}

static void
touch(const struct topic *topic)
{
	for (uint32_t i = 0; i < topic->count; i++)
		topic->clients[i]->flags |= CLIENT_TOUCHED;
}

void
watch_touch(struct weft_store *store, struct base *base, struct word name)
{
	struct text *scoped;
	struct topic *topic;

	if (table_count(&store->watched) == 0)
		return;
	scoped = scoped_name(store, base, name);
	topic = topic_find(&store->watched, text_word(scoped));
	if (topic)
		touch(topic);
	text_free(&store->heap, scoped);
}

/* Touches only keys that exist: a key that does not exist is not changed by a flush. */
void
watch_touch_all(struct weft_store *store, struct base *base)
{
	struct walk walk = table_walk(&store->watched);
	struct node *node;

	while ((node = walk_next(&walk)) != NULL) {
		struct word name = table_name(walk.table, node);
		struct base *own = &store->bases[(int)name.data[0]];
		struct word key = { name.data + 1, name.size - 1 };

		if ((!base || own == base) && table_find(&own->keys, key))
			touch((struct topic *)(void *)node);
	}
}
