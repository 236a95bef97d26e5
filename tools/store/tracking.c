/* tracking.c - records which clients have read which keys, to notify them of changes.
 *
 * A name is in the table from the first read by a tracking client until the next change, which
 * is reported once to each client that has read it.
 *
 *   1. A `reading` represents one client that has read one name.  It is in the table `readings`,
 *      in the list of its name and in the list of its client.  So neither a read, nor a change,
 *      nor the end of a client iterates over readings of others.
 *   2. A name has at least one reading, and is removed with the last one.
 *   3. All of this uses at most tracking_max bytes.  Beyond that, names are reported as if they
 *      had changed, and forgotten.
 */
#include "command.h"
#include "say.h"

#define TRACKED_MAX 1000000u /* names */

struct tracked {
	struct node node;
	struct reading *readings; /* by `next` */
	char name[];
};

struct reading {
	struct node node;
	struct client *client;
	struct reading *next, **link;         /* list of the name */
	struct reading *next_own, **link_own; /* list of the client */
	struct reading_key {
		struct tracked *tracked;
		struct client *client;
	} key; /* the key of the hash table */
};

static void
init_tables(struct weft_store *store)
{
	if (store->tracked.heap)
		return;
	table_init(&store->tracked, &store->heap, offsetof(struct tracked, name));
	table_init(&store->readings, &store->heap, offsetof(struct reading, key));
}

static struct tracked *
tracked_find(struct weft_store *store, struct word name)
{
	return (struct tracked *)(void *)table_find(&store->tracked, name);
}

static struct tracked *
tracked_add(struct weft_store *store, struct word name)
{
	size_t size = sizeof(struct tracked) + name.size;
	struct tracked *tracked = heap_new(&store->heap, size);

	memcpy(tracked->name, name.data, name.size);
	table_add(&store->tracked, &tracked->node, name.size);
	store->tracking_used += size;
	return tracked;
}

/* Called when it has no readings. */
static void
tracked_drop(struct weft_store *store, struct tracked *tracked)
{
	size_t size = sizeof(*tracked) + tracked->node.size;

	table_remove(&store->tracked, &tracked->node);
	store->tracking_used -= size;
	heap_give(&store->heap, tracked, size);
}

static void
reading_add(struct client *client, struct tracked *tracked)
{
	struct weft_store *store = client->store;
	struct reading_key key = { tracked, client };
	struct reading *reading;

	if (table_find(&store->readings, (struct word){ (const char *)&key, sizeof(key) }))
		return;
	reading = heap_new(&store->heap, sizeof(*reading));
	reading->client = client;
	reading->key = key;
	table_add(&store->readings, &reading->node, sizeof(key));
	reading->next = tracked->readings;
	reading->link = &tracked->readings;
	if (reading->next)
		reading->next->link = &reading->next;
	tracked->readings = reading;
	reading->next_own = client->readings;
	reading->link_own = &client->readings;
	if (reading->next_own)
		reading->next_own->link_own = &reading->next_own;
	client->readings = reading;
	store->tracking_used += sizeof(*reading);
}

static void
reading_drop(struct weft_store *store, struct reading *reading)
{
	table_remove(&store->readings, &reading->node);
	*reading->link = reading->next;
	if (reading->next)
		reading->next->link = reading->link;
	*reading->link_own = reading->next_own;
	if (reading->next_own)
		reading->next_own->link_own = reading->link_own;
	store->tracking_used -= sizeof(*reading);
	heap_give(&store->heap, reading, sizeof(*reading));
}

void
tracking_forget(struct client *client)
{
	while (client->readings) {
		struct tracked *tracked = client->readings->key.tracked;

		reading_drop(client->store, client->readings);
		if (!tracked->readings)
			tracked_drop(client->store, tracked);
	}
}

/* --- notifications ---------------------------------------------------------- */

/* Starts the message, to the client it is redirected to.  Returns the recipient, or NULL. */
static struct client *
begin_message(struct client *client)
{
	struct client *to = client;

	if (client->redirect)
		to = client_by_id(client->store, client->redirect);
	if (!to)
		return NULL;
	if (to->protocol >= 3) {
		say_push(to, 2);
		say_text(to, "invalidate");
		return to;
	}
	if (!client->redirect || !table_find(&to->channels, WORD("__redis__:invalidate")))
		return NULL;
	say_array(to, 3);
	say_text(to, "message");
	say_text(to, "__redis__:invalidate");
	return to;
}

/* NULL: all keys. */
static void
tracking_notify(struct client *client, const struct word *name)
{
	struct client *to = begin_message(client);

	if (!to)
		return;
	if (!name) {
		say_null_array(to);
		return;
	}
	say_array(to, 1);
	say_bulk(to, *name);
}

/* The client with the running command is notified after its reply. */
static void
tell_later(struct weft_store *store, const struct word *name)
{
	if (store->own_count == store->own_room) {
		uint32_t room = store->own_room ? store->own_room * 2 : 8;

		store->own = heap_resize(&store->heap, store->own,
		                         store->own_room * sizeof(*store->own),
		                         room * sizeof(*store->own));
		store->own_room = room;
	}
	store->own[store->own_count++] = name ? text_new(&store->heap, *name) : NULL;
}

void
tracking_tell_own(struct weft_store *store)
{
	for (uint32_t i = 0; i < store->own_count; i++) {
		struct text *own = store->own[i];
		struct word name = own ? text_word(own) : WORD("");

		if (store->runs)
			tracking_notify(store->runs, own ? &name : NULL);
		text_free(&store->heap, own);
	}
	store->own_count = 0;
}

/* Report a name to the clients that have read it, and forget it. */
static void
invalidate(struct weft_store *store, struct tracked *tracked, const struct client *changer)
{
	struct word name = { tracked->name, tracked->node.size };

	while (tracked->readings) {
		struct client *client = tracked->readings->client;

		reading_drop(store, tracked->readings);
		if (!(client->flags & CLIENT_TRACKS)
		    || (client == changer && (client->flags & CLIENT_NOLOOP)))
			continue;
		if (client == store->runs)
			tell_later(store, &name);
		else
			tracking_notify(client, &name);
	}
	tracked_drop(store, tracked);
}

static bool
tracking_is_wanted(const struct client *client)
{
	if (client->flags & CLIENT_OPTIN)
		return client->flags & CLIENT_CACHING;
	if (client->flags & CLIENT_OPTOUT)
		return !(client->flags & CLIENT_CACHING);
	return true;
}

void
tracking_remember(struct client *client, struct word name)
{
	struct weft_store *store = client->store;
	struct tracked *tracked;

	if (!tracking_is_wanted(client))
		return;
	init_tables(store);
	tracked = tracked_find(store, name);
	reading_add(client, tracked ? tracked : tracked_add(store, name));
	while (store->tracking_used > store->opts.tracking_max
	       || table_count(&store->tracked) > TRACKED_MAX)
		invalidate(store, (struct tracked *)(void *)table_any(&store->tracked), NULL);
}

void
tracking_changed(struct weft_store *store, struct client *changer, struct word name)
{
	struct tracked *tracked;

	if (table_count(&store->tracked) == 0)
		return;
	tracked = tracked_find(store, name);
	if (tracked)
		invalidate(store, tracked, changer);
}

/* Forgets all names, without notifications. */
static void
forget_all(struct weft_store *store)
{
	for (struct client *client = store->clients; client; client = client->next)
		tracking_forget(client);
}

/* All keys are gone: reported by one message per client. */
void
tracking_flushed(struct weft_store *store)
{
	for (struct client *client = store->clients; client; client = client->next) {
		if (!(client->flags & CLIENT_TRACKS))
			continue;
		if (client == store->runs)
			tell_later(store, NULL);
		else
			tracking_notify(client, NULL);
	}
	forget_all(store);
}

void
tracking_fini(struct weft_store *store)
{
	for (uint32_t i = 0; i < store->own_count; i++)
		text_free(&store->heap, store->own[i]);
	store->own_count = 0;
	forget_all(store);
	if (store->tracked.heap) {
		table_clear(&store->tracked, NULL, NULL);
		table_clear(&store->readings, NULL, NULL);
	}
}

/* --- CLIENT TRACKING and related commands ------------------------------------ */

struct wish {
	uint32_t flags;
	int64_t redirect;
};

static bool
read_wish(struct client *client, const struct word *words, size_t count, struct wish *wish)
{
	for (size_t i = 3; i < count; i++) {
		if (word_is(words[i], "redirect") && i + 1 < count) {
			if (!arg_number(client, words[++i], &wish->redirect))
				return false;
		} else if (word_is(words[i], "noloop")) {
			wish->flags |= CLIENT_NOLOOP;
		} else if (word_is(words[i], "optin")) {
			wish->flags |= CLIENT_OPTIN;
		} else if (word_is(words[i], "optout")) {
			wish->flags |= CLIENT_OPTOUT;
		} else if (word_is(words[i], "bcast") || word_is(words[i], "prefix")) {
			say_error(client,
			          "ERR weft store does not support tracking by prefix (BCAST)");
			return false;
		} else {
			say_syntax(client);
			return false;
		}
	}
	return true;
}

static bool
check_wish(struct client *client, const struct wish *wish)
{
	const uint32_t both = CLIENT_OPTIN | CLIENT_OPTOUT;

	if (wish->redirect && !client_by_id(client->store, (uint64_t)wish->redirect))
		say_error(client, "ERR The client ID you want redirect to does not exist");
	else if ((wish->flags & both) == both)
		say_error(client, "ERR You can't specify both OPTIN mode and OPTOUT mode");
	else
		return true;
	return false;
}

void
do_client_tracking(struct client *client, const struct word *words, size_t count)
{
	const uint32_t all = CLIENT_TRACKS | CLIENT_NOLOOP | CLIENT_OPTIN | CLIENT_OPTOUT
	                     | CLIENT_CACHING;
	struct wish wish = { 0 };

	if (!read_wish(client, words, count, &wish))
		return;
	if (word_is(words[2], "on")) {
		if (!check_wish(client, &wish))
			return;
		client->flags &= ~all;
		client->flags |= CLIENT_TRACKS | wish.flags;
		client->redirect = (uint64_t)wish.redirect;
	} else if (word_is(words[2], "off")) {
		client->flags &= ~all;
		client->redirect = 0;
	} else {
		say_syntax(client);
		return;
	}
	say_ok(client);
}

void
do_client_caching(struct client *client, const struct word *words, size_t count)
{
	bool yes = word_is(words[2], "yes");

	(void)count;
	if (!(client->flags & CLIENT_TRACKS))
		say_error(client, "ERR CLIENT CACHING can be called only when "
		                  "the client is in tracking mode with OPTIN or "
		                  "OPTOUT mode enabled");
	else if (!yes && !word_is(words[2], "no"))
		say_syntax(client);
	else if (!(client->flags & (yes ? CLIENT_OPTIN : CLIENT_OPTOUT)))
		say_error(client,
		          "ERR CLIENT CACHING %s is only valid when tracking "
		          "is enabled in %s mode.",
		          yes ? "YES" : "NO", yes ? "OPTIN" : "OPTOUT");
	else {
		client->flags |= CLIENT_CACHING;
		say_ok(client);
	}
}

void
do_client_getredir(struct client *client, const struct word *words, size_t count)
{
	(void)words, (void)count;
	if (client->flags & CLIENT_TRACKS)
		say_number(client, (int64_t)client->redirect);
	else
		say_number(client, -1);
}
