/* tls_share_test.c - contexts that are used, reloaded and closed by several threads. */
#include <pthread.h>
#include "base/atomic.h"
#include "pair.h"

#define THREADS  4
#define SESSIONS (BULK_MIB * 2)

static struct basics b;
static weft__a32 running;

static void
carry(struct weft__session *from, struct weft__session *to)
{
	const void *bytes;
	size_t size = weft__session_output(from, &bytes);

	if (size > 0)
		weft__session_sent(from, (size_t)weft__session_feed(to, bytes, size));
}

/* Connects and sends a byte.  Returns 0 if all of it worked. */
static int
talk(void)
{
	struct weft__session *c = NULL, *s = NULL;
	int rc = weft__session_open(b.client, WEFT_TLS_CLIENT, "example.org", &c);
	char byte = 0;

	if (rc == 0)
		rc = weft__session_open(b.server, WEFT_TLS_SERVER, NULL, &s);
	for (int i = 0; i < 10 && rc == 0; i++) {
		int rc_c = weft__session_handshake(c), rc_s;

		carry(c, s);
		rc_s = weft__session_handshake(s);
		carry(s, c);
		rc = rc_c == WEFT_EAGAIN || rc_c == 0 ? 0 : rc_c;
		if (rc == 0 && rc_s != WEFT_EAGAIN)
			rc = rc_s;
	}
	if (rc == 0 && weft__session_write(s, "x", 1) == 1) {
		carry(s, c);
		rc = weft__session_read(c, &byte, 1) == 1 && byte == 'x' ? 0 : -1;
	}
	weft__session_close(c);
	weft__session_close(s);
	return rc;
}

static void *
talk_often(void *failures)
{
	for (int i = 0; i < SESSIONS; i++)
		*(int *)failures += talk() != 0;
	(void)weft__add(&running, UINT32_MAX, WEFT__RELEASE);
	return NULL;
}

TEST(tls_contexts_are_shared_by_threads_and_reloaded_meanwhile)
{
	pthread_t threads[THREADS];
	int failures[THREADS] = { 0 }, reloads = 0;

	basics_open(&b);
	weft__store(&running, THREADS, WEFT__RELAXED);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, talk_often, &failures[i]), 0);
	while (weft__load(&running, WEFT__ACQUIRE) > 0) {
		CHECK_EQ(weft_tls_reload(reloads % 2 ? b.client : b.server), 0);
		reloads++;
	}
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
		CHECK_EQ(failures[i], 0);
	}
	CHECK(reloads > 0);
	basics_close(&b);
}

static void *
reload_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < 10; i++)
		(void)weft_tls_reload(b.client);
	weft_tls_close(b.client);
	return NULL;
}

TEST(tls_context_is_freed_by_the_last_thread_that_closes_it)
{
	pthread_t threads[THREADS];

	basics_open(&b);
	for (int i = 0; i < THREADS; i++) {
		CHECK(weft__tls_ref(b.client) == b.client);
		CHECK_EQ(pthread_create(&threads[i], NULL, reload_often, NULL), 0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	basics_close(&b);
}
