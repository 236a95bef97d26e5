/* pubsub.c - topics: which clients are interested in a name; and publish/subscribe. */
#include "store/commands/commands.h"

/* --- topics ----------------------------------------------------------------- */

void
topic_release(struct topic *topic)
{
	if (!topic->first && !topic->is_ready)
		map_remove(topic->topics, topic);
}

void
topic_join(struct client *client, struct map *interests, struct map *topics, struct slice name)
{
	struct topic *topic = map_find(topics, name);
	struct interest *interest;

	if (map_find(interests, name))
		return;
	if (!topic)
		topic = map_add(topics, name);
	topic->topics = topics;
	interest = map_add(interests, name);
	interest->client = client;
	interest->topic = topic;
	interest->previous = topic->last;
	*(topic->last ? &topic->last->next : &topic->first) = interest;
	topic->last = interest;
}

static void
interest_remove(struct map *interests, struct interest *interest)
{
	struct topic *topic = interest->topic;

	*(interest->previous ? &interest->previous->next : &topic->first) = interest->next;
	*(interest->next ? &interest->next->previous : &topic->last) = interest->previous;
	topic_release(topic);
	map_remove(interests, interest);
}

void
topic_leave_all(struct map *interests)
{
	while (map_count(interests) > 0)
		interest_remove(interests, map_at(interests, 0));
}

/* --- subscriptions ----------------------------------------------------------- */

static void
reply_subscription(struct client *client, const struct slice *name)
{
	reply_many(client, '>', 3);
	reply_text(client, client->command->name);
	if (name)
		reply_bulk(client, *name);
	else
		reply_null(client);
	reply_integer(client, (int64_t)client_subscriptions(client));
}

/* SUBSCRIBE, PSUBSCRIBE */
COMMAND(subscribe)
{
	struct weft_store *store = client->store;
	bool pattern = client->command->variant == PATTERNS;

	for (size_t i = 1; i < client->argc; i++) {
		topic_join(client, pattern ? &client->patterns : &client->channels,
		           pattern ? &store->patterns : &store->channels, client->argv[i]);
		reply_subscription(client, &client->argv[i]);
	}
}

static void
unsubscribe(struct client *client, struct map *interests, struct slice name)
{
	struct interest *interest = map_find(interests, name);

	if (interest)
		interest_remove(interests, interest);
	reply_subscription(client, &name);
}

/* UNSUBSCRIBE, PUNSUBSCRIBE.  Without names: from all.  There is one reply for each of them. */
COMMAND(unsubscribe)
{
	struct map *interests = client->command->variant == PATTERNS ? &client->patterns
	                                                             : &client->channels;
	struct memory *memory = interests->memory;

	for (size_t i = 1; i < client->argc; i++)
		unsubscribe(client, interests, client->argv[i]);
	if (client->argc > 1)
		return;
	if (map_count(interests) == 0)
		reply_subscription(client, NULL);
	while (map_count(interests) > 0) {
		struct string *name = string_new(memory, map_name(interests, map_at(interests, 0)));

		unsubscribe(client, interests, string_slice(name));
		memory_free(memory, name);
	}
}

/* Sends a message to the clients of a channel, or of a pattern.  Returns how many they are. */
static int64_t
send_message(const struct topic *topic, const struct slice *pattern, const struct slice *message)
{
	int64_t sent = 0;

	for (const struct interest *i = topic->first; i; i = i->next, sent++) {
		reply_many(i->client, '>', pattern ? 4 : 3);
		reply_text(i->client, pattern ? "pmessage" : "message");
		if (pattern)
			reply_bulk(i->client, *pattern);
		reply_bulk(i->client, message[0]);
		reply_bulk(i->client, message[1]);
	}
	return sent;
}

COMMAND(publish)
{
	const struct slice *message = &client->argv[1]; /* the channel, and the message */
	const struct map *patterns = &client->store->patterns;
	const struct topic *topic = map_find(&client->store->channels, *message);
	int64_t sent = topic ? send_message(topic, NULL, message) : 0;

	for (size_t i = 0; i < map_count(patterns); i++) {
		struct slice pattern;

		topic = map_at(patterns, i);
		pattern = map_name(patterns, topic);

		if (slice_matches(pattern, *message))
			sent += send_message(topic, &pattern, message);
	}
	reply_integer(client, sent);
}
