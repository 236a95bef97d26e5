/* tls_cache.c - the tickets by which a client resumes sessions, one for each host.
 *
 *   1. A ticket is used for the host under whose name it was got, and no other: when a
 *      session is resumed no certificate is looked at.
 *   2. At most WEFT__TLS_CACHE_MAX hosts; the one used longest ago makes room.
 *   3. A ticket of TLS 1.3 is used once, so that connections cannot be told to be of the
 *      same client by it.
 *
 * Places are searched one by one: there are few, beside what a handshake costs.
 */
#include <string.h>
#include "net/tls/tls_set.h"

static void
clear_place(struct weft__ticket *place)
{
	SSL_SESSION_free(place->session);
	weft__sys->release(place->name);
	*place = (struct weft__ticket){ 0 };
}

static struct weft__ticket *
find(struct weft__tickets *t, const char *name)
{
	for (size_t i = 0; i < WEFT__TLS_CACHE_MAX; i++)
		if (t->places[i].name && weft__tls_same_name(t->places[i].name, name))
			return &t->places[i];
	return NULL;
}

/* A free one, or that of invariant 2. */
static struct weft__ticket *
oldest(struct weft__tickets *t)
{
	struct weft__ticket *place = &t->places[0];

	for (size_t i = 1; i < WEFT__TLS_CACHE_MAX; i++)
		if (t->places[i].used < place->used)
			place = &t->places[i];
	return place;
}

bool
weft__tickets_put(struct weft__tickets *t, const char *name, SSL_SESSION *session)
{
	char *copy = weft__tls_text_copy(name);
	struct weft__ticket *place, before;

	if (!copy)
		return false;
	weft__lock_take(&t->lock);
	place = find(t, name);
	if (!place)
		place = oldest(t);
	before = *place;
	*place = (struct weft__ticket){ copy, session, ++t->count };
	weft__lock_give(&t->lock);
	clear_place(&before);
	return true;
}

SSL_SESSION *
weft__tickets_take(struct weft__tickets *t, const char *name)
{
	SSL_SESSION *session = NULL;
	struct weft__ticket *place, spent = { 0 };

	weft__lock_take(&t->lock);
	place = find(t, name);
	if (place) {
		session = place->session;
		(void)SSL_SESSION_up_ref(session);
		place->used = ++t->count;
	}
	if (place && SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION) {
		spent = *place;
		*place = (struct weft__ticket){ 0 };
	}
	weft__lock_give(&t->lock);
	clear_place(&spent);
	return session;
}

void
weft__tickets_fini(struct weft__tickets *t)
{
	for (size_t i = 0; i < WEFT__TLS_CACHE_MAX; i++)
		clear_place(&t->places[i]);
}

/* Called in a handshake, or while reading; those of a server are not kept. */
int
weft__tls_on_ticket(SSL *ssl, SSL_SESSION *session)
{
	struct weft__session *s = SSL_get_app_data(ssl);

	return s && s->name && !SSL_is_server(ssl) && SSL_SESSION_is_resumable(session)
	       && weft__tickets_put(&s->set->tickets, s->name, session);
}
