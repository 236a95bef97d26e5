/* topic.c - which clients are interested in a name. */
#include <assert.h>
#include "inner.h"

void
topics_init(struct table *topics, struct heap *heap)
{
	table_init(topics, heap, offsetof(struct topic, name));
}

void
interests_init(struct table *interests, struct heap *heap)
{
	table_init(interests, heap, offsetof(struct interest, name));
}

struct topic *
topic_find(const struct table *topics, struct word name)
{
	return (struct topic *)(void *)table_find(topics, name);
}

static struct topic *
new_topic(struct table *topics, struct word name)
{
	struct topic *topic = heap_new(topics->heap, sizeof(*topic) + name.size);

	memcpy(topic->name, name.data, name.size);
	table_add(topics, &topic->node, name.size);
	return topic;
}

static void
add_client(struct heap *heap, struct topic *topic, struct client *client)
{
	if (topic->count == topic->room) {
		uint32_t room = topic->room ? topic->room * 2 : 2;

		topic->clients = heap_resize(heap, topic->clients,
		                             topic->room * sizeof(struct client *),
		                             room * sizeof(struct client *));
		topic->room = room;
	}
	topic->clients[topic->count++] = client;
}

/* The others keep their order; a topic without clients is freed. */
static void
remove_client(struct table *topics, struct topic *topic, struct client *client)
{
	uint32_t at = 0;

	while (topic->clients[at] != client)
		at++;
	assert(at < topic->count);
	topic->count--;
	memmove(topic->clients + at, topic->clients + at + 1,
	        (topic->count - at) * sizeof(struct client *));
	if (topic->count > 0)
		return;
	table_remove(topics, &topic->node);
	heap_give(topics->heap, topic->clients, topic->room * sizeof(struct client *));
	heap_give(topics->heap, topic, sizeof(*topic) + topic->node.size);
}

bool
interest_add(struct client *client, struct table *interests, struct table *topics, struct word name)
{
	struct heap *heap = topics->heap;
	struct interest *interest;
	struct topic *topic;

	if (table_find(interests, name))
		return false;
	topic = topic_find(topics, name);
	if (!topic)
		topic = new_topic(topics, name);
	add_client(heap, topic, client);
	interest = heap_take(heap, sizeof(*interest) + name.size);
	interest->topics = topics;
	interest->topic = topic;
	memcpy(interest->name, name.data, name.size);
	table_add(interests, &interest->node, name.size);
	return true;
}

static void
end_interest(struct client *client, struct interest *interest)
{
	struct heap *heap = interest->topics->heap;

	remove_client(interest->topics, interest->topic, client);
	heap_give(heap, interest, sizeof(*interest) + interest->node.size);
}

bool
interest_drop(struct client *client, struct table *interests, struct word name)
{
	struct node *node = table_find(interests, name);

	if (!node)
		return false;
	table_remove(interests, node);
	end_interest(client, (struct interest *)(void *)node);
	return true;
}

static void
drop_node(struct node *node, void *client)
{
	end_interest(client, (struct interest *)(void *)node);
}

void
interest_drop_all(struct client *client, struct table *interests)
{
	table_clear(interests, drop_node, client);
}
