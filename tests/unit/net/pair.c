/* pair.c - an in-memory TLS client and server. */
#include "pair.h"

#define ROUNDS_MAX 1000000

void
pair_open(struct pair *pair, weft_tls *client, weft_tls *server, const char *host)
{
	CHECK_EQ(weft__session_open(client, WEFT_TLS_CLIENT, host, &pair->client.session), 0);
	CHECK_EQ(weft__session_open(server, WEFT_TLS_SERVER, NULL, &pair->server.session), 0);
	pair->client.rc = pair->server.rc = WEFT_EAGAIN;
	pair->client.text[0] = pair->server.text[0] = '\0';
}

void
pair_close(struct pair *pair)
{
	weft__session_close(pair->client.session);
	weft__session_close(pair->server.session);
	pair->client.session = pair->server.session = NULL;
}

static size_t
put_in_room(struct weft__session *to, const void *bytes, size_t size)
{
	void *room;
	size_t n = weft__session_room(to, &room);

	if (n == 0)
		return 0;
	n = n < size ? n : size;
	memcpy(room, bytes, n);
	weft__session_came(to, n);
	return n;
}

size_t
pair_carry(struct pair *pair, struct weft__session *from, struct weft__session *to)
{
	const void *bytes;
	size_t size = weft__session_output(from, &bytes);
	size_t step = pair->step ? pair->step : 1 + test_random(&pair->chance) % 20000;
	size_t n = size < step ? size : step;

	if (n == 0)
		return 0;
	if (test_random(&pair->chance) % 2)
		n = put_in_room(to, bytes, n);
	else
		n = (size_t)weft__session_feed(to, bytes, n);
	weft__session_sent(from, n);
	return n;
}

void
pair_carry_all(struct pair *pair)
{
	while (pair_carry(pair, pair->client.session, pair->server.session)
	       + pair_carry(pair, pair->server.session, pair->client.session))
		;
}

static void
shake(struct end *end)
{
	if (end->rc != WEFT_EAGAIN)
		return;
	end->rc = weft__session_handshake(end->session);
	if (end->rc < 0 && end->rc != WEFT_EAGAIN)
		(void)snprintf(end->text, sizeof(end->text), "%s", weft_detail());
}

/* Once a side has failed and has no output left, the other side sees the end of the stream. */
static void
pass_end(struct end *from, struct end *to)
{
	const void *bytes;

	if (from->rc < 0 && from->rc != WEFT_EAGAIN
	    && weft__session_output(from->session, &bytes) == 0)
		weft__session_ended(to->session);
}

void
pair_handshake(struct pair *pair)
{
	struct end *c = &pair->client, *s = &pair->server;
	size_t idle = 0;

	for (size_t i = 0; i < ROUNDS_MAX && idle < 3; i++) {
		size_t n;

		shake(c);
		n = pair_carry(pair, c->session, s->session);
		pass_end(c, s);
		shake(s);
		n += pair_carry(pair, s->session, c->session);
		pass_end(s, c);
		idle = n == 0 ? idle + 1 : 0;
		if (c->rc != WEFT_EAGAIN && s->rc != WEFT_EAGAIN)
			return;
	}
}

void
pair_shake_hands(struct pair *pair)
{
	char byte;

	pair_handshake(pair);
	if (pair->client.rc || pair->server.rc)
		test_fail(__FILE__, __LINE__, "handshake: %s, %s", pair->client.text,
		          pair->server.text);
	pair_carry_all(pair);
	CHECK_EQ(weft__session_read(pair->client.session, &byte, 1), WEFT_EAGAIN);
	CHECK_EQ(weft__session_read(pair->server.session, &byte, 1), WEFT_EAGAIN);
	pair_carry_all(pair);
}

void
pair_send(struct pair *pair, struct weft__session *from, struct weft__session *to,
          const void *bytes, size_t size)
{
	size_t put = 0, got = 0;
	char *seen = malloc(size);

	CHECK(seen);
	while (got < size) {
		size_t step = 1 + test_random(&pair->chance) % 40000;
		int64_t n = 0;

		if (put < size)
			n = weft__session_write(from, (const char *)bytes + put,
			                        step < size - put ? step : size - put);
		CHECK(n >= 0 || n == WEFT_EAGAIN);
		put += n > 0 ? (size_t)n : 0;
		(void)pair_carry(pair, from, to);
		n = weft__session_read(to, seen + got, size - got);
		CHECK(n > 0 || n == WEFT_EAGAIN);
		got += n > 0 ? (size_t)n : 0;
	}
	CHECK(memcmp(seen, bytes, size) == 0);
	free(seen);
}

weft_tls *
pair_open_tls(const weft_tls_opts *opts)
{
	weft_tls *tls = NULL;

	if (weft_tls_open(opts, &tls) < 0)
		test_fail(__FILE__, __LINE__, "%s", weft_detail());
	return tls;
}

weft_tls *
pair_server(const char *chain_file, const char *key_file)
{
	weft_tls_cert cert = { NULL, chain_file, key_file };

	return pair_open_tls(&(weft_tls_opts){ .certs = &cert, .cert_count = 1 });
}

weft_tls *
pair_client(const char *ca_file)
{
	return pair_open_tls(&(weft_tls_opts){ .ca_file = ca_file });
}

void
check_words(const char *text, const char *words, const char *what)
{
	if (!strstr(text, words))
		test_fail(__FILE__, __LINE__, "%s: \"%s\" is not in \"%s\"", what, words, text);
}

void
basics_open(struct basics *b)
{
	b->ca = cert_ca("Basic CA");
	b->leaf = cert_leaf("basic", "DNS:example.org,IP:127.0.0.1", &b->ca);
	b->ca_file = cert_file("basic-ca.pem", (const struct cert *[]){ &b->ca, NULL });
	b->chain_file = cert_file("basic.pem", (const struct cert *[]){ &b->leaf, NULL });
	b->key_file = cert_key_file("basic-key.pem", &b->leaf, NULL);
	b->client = pair_client(b->ca_file);
	b->server = pair_server(b->chain_file, b->key_file);
}

void
basics_close(struct basics *b)
{
	weft_tls_close(b->client);
	weft_tls_close(b->server);
	cert_drop(&b->ca);
	cert_drop(&b->leaf);
}
