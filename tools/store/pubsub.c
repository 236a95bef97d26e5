/* pubsub.c - SUBSCRIBE, PSUBSCRIBE, their opposites, PUBLISH, PUBSUB. */
#include "command.h"
#include "say.h"

static size_t
subscriptions(const struct client *client)
{
	return table_count(&client->channels) + table_count(&client->patterns);
}

static void
say_subscription(struct client *client, const char *what, const struct word *name)
{
	say_push(client, 3);
	say_text(client, what);
	if (name)
		say_bulk(client, *name);
	else
		say_null(client);
	say_number(client, (int64_t)subscriptions(client));
}

COMMAND(subscribe)
{
	for (size_t i = 1; i < count; i++) {
		(void)interest_add(client, &client->channels, &client->store->channels, words[i]);
		say_subscription(client, "subscribe", &words[i]);
	}
}

COMMAND(psubscribe)
{
	for (size_t i = 1; i < count; i++) {
		(void)interest_add(client, &client->patterns, &client->store->patterns, words[i]);
		say_subscription(client, "psubscribe", &words[i]);
	}
}

/* Replies once for each subscription. */
static void
leave_all(struct client *client, struct table *interests, const char *what)
{
	struct node *node;

	if (table_count(interests) == 0)
		say_subscription(client, what, NULL);
	while ((node = table_any(interests)) != NULL) {
		struct text *name = text_new(&client->store->heap, table_name(interests, node));
		struct word word = text_word(name);

		(void)interest_drop(client, interests, word);
		say_subscription(client, what, &word);
		text_free(&client->store->heap, name);
	}
}

static void
pubsub_leave(struct client *client, struct table *interests, const char *what,
             const struct word *words, size_t count)
{
	if (count == 1)
		leave_all(client, interests, what);
	for (size_t i = 1; i < count; i++) {
		(void)interest_drop(client, interests, words[i]);
		say_subscription(client, what, &words[i]);
	}
}

COMMAND(unsubscribe)
{
	pubsub_leave(client, &client->channels, "unsubscribe", words, count);
}

COMMAND(punsubscribe)
{
	pubsub_leave(client, &client->patterns, "punsubscribe", words, count);
}

/* --- publishing ------------------------------------------------------------- */

static size_t
tell_channel(const struct topic *topic, struct word channel, struct word message)
{
	for (uint32_t i = 0; i < topic->count; i++) {
		struct client *to = topic->clients[i];

		say_push(to, 3);
		say_text(to, "message");
		say_bulk(to, channel);
		say_bulk(to, message);
	}
	return topic->count;
}

static size_t
tell_pattern(const struct topic *topic, struct word pattern, struct word channel,
             struct word message)
{
	for (uint32_t i = 0; i < topic->count; i++) {
		struct client *to = topic->clients[i];

		say_push(to, 4);
		say_text(to, "pmessage");
		say_bulk(to, pattern);
		say_bulk(to, channel);
		say_bulk(to, message);
	}
	return topic->count;
}

COMMAND(publish)
{
	struct weft_store *store = client->store;
	struct topic *topic = topic_find(&store->channels, words[1]);
	struct walk walk = table_walk(&store->patterns);
	struct node *node;
	size_t told = topic ? tell_channel(topic, words[1], words[2]) : 0;

	(void)count;
	while ((node = walk_next(&walk)) != NULL) {
		struct word pattern = table_name(walk.table, node);

		if (word_matches(pattern, words[1]))
			told += tell_pattern((struct topic *)(void *)node, pattern, words[1],
			                     words[2]);
	}
	say_number(client, (int64_t)told);
}

/* --- PUBSUB ----------------------------------------------------------------- */

static void
say_channels(struct client *client, const struct word *pattern)
{
	struct walk walk = table_walk(&client->store->channels);
	size_t place = say_later(client), shown = 0;
	struct node *node;

	while ((node = walk_next(&walk)) != NULL) {
		struct word name = table_name(walk.table, node);

		if (pattern && !word_matches(*pattern, name))
			continue;
		say_bulk(client, name);
		shown++;
	}
	say_count(client, place, '*', shown);
}

static void
say_subscribers(struct client *client, const struct word *words, size_t count)
{
	say_array(client, 2 * count);
	for (size_t i = 0; i < count; i++) {
		struct topic *topic = topic_find(&client->store->channels, words[i]);

		say_bulk(client, words[i]);
		say_number(client, topic ? topic->count : 0);
	}
}

COMMAND(pubsub)
{
	if (word_is(words[1], "channels") && count <= 3)
		say_channels(client, count == 3 ? &words[2] : NULL);
	else if (word_is(words[1], "numsub"))
		say_subscribers(client, words + 2, count - 2);
	else if (word_is(words[1], "numpat") && count == 2)
		say_number(client, (int64_t)table_count(&client->store->patterns));
	else
		say_unknown_part(client, "PUBSUB", words[1]);
}
