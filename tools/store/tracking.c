/* tracking.c - who has read which keys, so that those who keep copies are told of changes.
 *
 * A name is in the table from the first read by a client that tracks to the next change; then all
 * who have read it are told once.  Clients are kept by number: one that has gone is not found.
 */
#include "command.h"
#include "say.h"

#define TRACKED_MAX 1000000u /* names */

struct tracked {
	struct node node;
	uint64_t *ids;
	uint32_t count, room;
	char name[];
};

static struct table *
table_of(struct weft_store *store)
{
	if (!store->tracked.heap)
		table_init(&store->tracked, &store->heap,
		           offsetof(struct tracked, name));
	return &store->tracked;
}

static bool
knows(const struct tracked *tracked, uint64_t id)
{
	for (uint32_t i = 0; i < tracked->count; i++)
		if (tracked->ids[i] == id)
			return true;
	return false;
}

/* Of what would be too much, one name is told as if it had changed, and forgotten. */
static void
make_place(struct weft_store *store)
{
	struct table *table = &store->tracked;
	struct text *name;

	if (table_count(table) < TRACKED_MAX)
		return;
	name = text_new(&store->heap, table_name(table, table_any(table)));
	tracking_changed(store, NULL, text_word(name));
	text_free(&store->heap, name);
}

static bool
is_wanted(const struct client *client)
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
	struct heap *heap = &client->store->heap;
	struct table *table = table_of(client->store);
	struct tracked *tracked;

	if (!is_wanted(client))
		return;
	tracked = (struct tracked *)(void *)table_find(table, name);
	if (!tracked) {
		make_place(client->store);
		tracked = heap_new(heap, sizeof(*tracked) + name.size);
		memcpy(tracked->name, name.data, name.size);
		table_add(table, &tracked->node, name.size);
	}
	if (knows(tracked, client->id))
		return;
	if (tracked->count == tracked->room) {
		uint32_t room = tracked->room ? tracked->room * 2 : 2;

		tracked->ids = heap_resize(heap, tracked->ids,
		                           tracked->room * sizeof(uint64_t),
		                           room * sizeof(uint64_t));
		tracked->room = room;
	}
	tracked->ids[tracked->count++] = client->id;
}

static void
drop_tracked(struct node *node, void *heap)
{
	struct tracked *tracked = (struct tracked *)(void *)node;

	heap_give(heap, tracked->ids, tracked->room * sizeof(uint64_t));
	heap_give(heap, tracked, sizeof(*tracked) + node->size);
}

/* --- telling ---------------------------------------------------------------- */

/* Begin the message, to whom it is redirected.  Returns who hears it, or NULL. */
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
	if (!client->redirect
	    || !table_find(&to->channels, WORD("__redis__:invalidate")))
		return NULL;
	say_array(to, 3);
	say_text(to, "message");
	say_text(to, "__redis__:invalidate");
	return to;
}

/* NULL: all of them. */
static void
tell(struct client *client, const struct word *name)
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

/* The one whose command runs is told after its reply. */
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
	store->own[store->own_count++] = name ? text_new(&store->heap, *name)
	                                      : NULL;
}

void
tracking_tell_own(struct weft_store *store)
{
	for (uint32_t i = 0; i < store->own_count; i++) {
		struct text *own = store->own[i];
		struct word name = own ? text_word(own) : WORD("");

		if (store->runs)
			tell(store->runs, own ? &name : NULL);
		text_free(&store->heap, own);
	}
	store->own_count = 0;
}

void
tracking_changed(struct weft_store *store, struct client *changer,
                 struct word name)
{
	struct tracked *tracked;

	if (table_count(&store->tracked) == 0)
		return;
	tracked = (struct tracked *)(void *)table_find(&store->tracked, name);
	if (!tracked)
		return;
	table_remove(&store->tracked, &tracked->node);
	for (uint32_t i = 0; i < tracked->count; i++) {
		struct client *client = client_by_id(store, tracked->ids[i]);

		if (!client || !(client->flags & CLIENT_TRACKS)
		    || (client == changer && (client->flags & CLIENT_NOLOOP)))
			continue;
		if (client == store->runs)
			tell_later(store, &name);
		else
			tell(client, &name);
	}
	drop_tracked(&tracked->node, &store->heap);
}

/* Everything is gone: one message says so. */
void
tracking_flushed(struct weft_store *store)
{
	for (struct client *client = store->clients; client;
	     client = client->next) {
		if (!(client->flags & CLIENT_TRACKS))
			continue;
		if (client == store->runs)
			tell_later(store, NULL);
		else
			tell(client, NULL);
	}
	if (store->tracked.heap)
		table_clear(&store->tracked, drop_tracked, &store->heap);
}

void
tracking_fini(struct weft_store *store)
{
	for (uint32_t i = 0; i < store->own_count; i++)
		text_free(&store->heap, store->own[i]);
	store->own_count = 0;
	if (store->tracked.heap)
		table_clear(&store->tracked, drop_tracked, &store->heap);
}

/* --- CLIENT TRACKING and its kin --------------------------------------------- */

struct wish {
	uint32_t flags;
	int64_t redirect;
};

static bool
read_wish(struct client *client, const struct word *words, size_t count,
          struct wish *wish)
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
		} else if (word_is(words[i], "bcast")
		           || word_is(words[i], "prefix")) {
			say_error(client, "ERR weft store has no tracking "
			                  "by prefix (BCAST)");
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

	if (wish->redirect
	    && !client_by_id(client->store, (uint64_t)wish->redirect))
		say_error(client, "ERR The client ID you want redirect to does "
		                  "not exist");
	else if ((wish->flags & both) == both)
		say_error(client, "ERR You can't specify both OPTIN mode and "
		                  "OPTOUT mode");
	else
		return true;
	return false;
}

void
do_client_tracking(struct client *client, const struct word *words,
                   size_t count)
{
	const uint32_t all = CLIENT_TRACKS | CLIENT_NOLOOP | CLIENT_OPTIN
	                     | CLIENT_OPTOUT | CLIENT_CACHING;
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
		say_error(client,
		          "ERR CLIENT CACHING can be called only when "
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
do_client_getredir(struct client *client, const struct word *words,
                   size_t count)
{
	(void)words, (void)count;
	if (client->flags & CLIENT_TRACKS)
		say_number(client, (int64_t)client->redirect);
	else
		say_number(client, -1);
}
