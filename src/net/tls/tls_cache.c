/* tls_cache.c - the tickets with which a client resumes sessions, one for each host.
 *
 *   1. A ticket is used only for the host name that it was received for, because a resumed
 *      session checks no certificate.
 *   2. At most WEFT__TLS_CACHE_MAX hosts; the least recently used is replaced.
 *   3. A ticket of TLS 1.3 is used once, so that an observer cannot link connections of one
 *      client by the ticket.
 *
 * The entries are searched one by one, which is cheap compared with a handshake.
 */
#include <string.h>
#include "net/tls/tls_set.h"

static void
clear_entry(struct weft__ticket *entry)
{
	SSL_SESSION_free(entry->session);
	weft__sys->release(entry->name);
	*entry = (struct weft__ticket){ 0 };
}

static struct weft__ticket *
tls_cache_find(struct weft__tickets *t, const char *name)
{
	for (size_t i = 0; i < WEFT__TLS_CACHE_MAX; i++)
		if (t->entries[i].name && weft__tls_same_name(t->entries[i].name, name))
			return &t->entries[i];
	return NULL;
}

/* A free entry, or the least recently used (invariant 2). */
static struct weft__ticket *
oldest(struct weft__tickets *t)
{
	struct weft__ticket *entry = &t->entries[0];

	for (size_t i = 1; i < WEFT__TLS_CACHE_MAX; i++)
		if (t->entries[i].used < entry->used)
			entry = &t->entries[i];
	return entry;
}

bool
weft__tickets_put(struct weft__tickets *t, const char *name, SSL_SESSION *session)
{
	char *copy = weft__tls_text_copy(name);
	struct weft__ticket *entry, before;

	if (!copy)
		return false;
	weft__lock_take(&t->lock);
	entry = tls_cache_find(t, name);
	if (!entry)
		entry = oldest(t);
	before = *entry;
	*entry = (struct weft__ticket){ copy, session, ++t->count };
	weft__lock_give(&t->lock);
	clear_entry(&before);
	return true;
}

SSL_SESSION *
weft__tickets_take(struct weft__tickets *t, const char *name)
{
	SSL_SESSION *session = NULL;
	struct weft__ticket *entry, spent = { 0 };

	weft__lock_take(&t->lock);
	entry = tls_cache_find(t, name);
	if (entry) {
		session = entry->session;
		(void)SSL_SESSION_up_ref(session);
		entry->used = ++t->count;
	}
	if (entry && SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION) {
		spent = *entry;
		*entry = (struct weft__ticket){ 0 };
	}
	weft__lock_give(&t->lock);
	clear_entry(&spent);
	return session;
}

void
weft__tickets_fini(struct weft__tickets *t)
{
	for (size_t i = 0; i < WEFT__TLS_CACHE_MAX; i++)
		clear_entry(&t->entries[i]);
}

/* Called in a handshake, or while reading.  A server keeps none. */
int
weft__tls_on_ticket(SSL *ssl, SSL_SESSION *session)
{
	struct weft__session *s = SSL_get_app_data(ssl);

	return s && s->name && !SSL_is_server(ssl) && SSL_SESSION_is_resumable(session)
	       && weft__tickets_put(&s->set->tickets, s->name, session);
}
