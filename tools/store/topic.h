/* topic.h - which clients are interested in a name: channels, patterns, watched and awaited
 * keys.
 *
 * A topic is in a table of the store, with its clients in the order in which they were added.
 * Each client has its own table of names, so that it can leave all of them.  The name of a key
 * is prefixed with the number of its database, as one byte.
 */
#ifndef STORE_TOPIC_H
#define STORE_TOPIC_H

#include "table.h"

struct client;

struct topic {
	struct node     node;
	struct client **clients;
	uint32_t        count, room;
	char            name[];
};

/* An entry of the client's table. */
struct interest {
	struct node   node;
	struct table *topics;
	struct topic *topic;
	char          name[];
};

void topics_init(struct table *topics, struct heap *heap);
void interests_init(struct table *interests, struct heap *heap);

struct topic *topic_find(const struct table *topics, struct word name);

/* Add or remove an interest.  Return false if it existed already, or did not exist. */
bool interest_add(struct client *client, struct table *interests, struct table *topics,
                  struct word name);
bool interest_drop(struct client *client, struct table *interests, struct word name);
void interest_drop_all(struct client *client, struct table *interests);

#endif
