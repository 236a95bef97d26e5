/* secure_world.h - TLS contexts for the stream tests, and a TLS echo server.
 *
 * There is one CA, one server, one client that trusts the CA, and one (`stranger`) that does
 * not.
 */
#ifndef WEFT_TESTS_SECURE_WORLD_H
#define WEFT_TESTS_SECURE_WORLD_H

#include <string.h>
#include "unit/net/certs.h"
#include "unit/threadlet/sched.h"

static struct {
	struct cert ca;
	weft_tls   *server, *client, *stranger;
} world;

/* Writes a new certificate for `cn` to the server's files.  A context that has already read the
 * files keeps the old one until it is reloaded. */
static inline weft_tls_cert
issue(const char *cn)
{
	struct cert leaf = cert_leaf(cn, "DNS:localhost,IP:127.0.0.1", &world.ca);
	const struct cert *chain[] = { &leaf, NULL };
	weft_tls_cert files = { .chain_file = cert_file("leaf.pem", chain),
		                .key_file = cert_key_file("leaf.key", &leaf, NULL) };

	cert_drop(&leaf);
	return files;
}

static inline void
make_world(void)
{
	struct cert other = cert_ca("somebody else");
	const struct cert *root[] = { &world.ca, NULL }, *alone[] = { &other, NULL };
	weft_tls_cert files;
	weft_tls_opts server = { .certs = &files, .cert_count = 1 }, client = { 0 },
		      stranger = { 0 };

	world.ca = cert_ca("weft test");
	files = issue("localhost");
	client.ca_file = cert_file("ca.pem", root);
	stranger.ca_file = cert_file("other.pem", alone);
	OK(weft_tls_open(&server, &world.server));
	OK(weft_tls_open(&client, &world.client));
	OK(weft_tls_open(&stranger, &world.stranger));
	cert_drop(&other);
}

static inline void
drop_world(void)
{
	weft_tls_close(world.server);
	weft_tls_close(world.client);
	weft_tls_close(world.stranger);
	cert_drop(&world.ca);
}

/* --- an echo server ------------------------------------------------------- */

struct house {
	weft_listener *listener;
	char           address[WEFT_ADDR_TEXT_MAX]; /* with tls:// */
	char           plain[WEFT_ADDR_TEXT_MAX];   /* the same address with tcp:// */
	int            served, ended;
};

static inline struct house
open_house(uint64_t handshake_ns)
{
	weft_listener_opts opts = { .tls = world.server, .handshake_ns = handshake_ns };
	struct house house = { .served = 0 };
	weft_addr addr;

	OK(weft_listener_open("tls://127.0.0.1:0", &opts, &house.listener));
	OK(weft_listener_local(house.listener, &addr));
	CHECK(weft_addr_format(&addr, house.plain, sizeof(house.plain)) > 0);
	memcpy(house.address, house.plain, sizeof(house.address));
	memcpy(house.address, "tls", 3);
	return house;
}

static inline int
echo(weft_stream *peer, void *arg)
{
	struct house *house = arg;
	char buf[64];
	ssize_t n;

	house->served++;
	while ((n = weft_stream_read(peer, buf, sizeof(buf), WEFT_NEVER)) > 0)
		CHECK_EQ(weft_stream_write(peer, buf, (size_t)n, WEFT_NEVER), n);
	weft_stream_close(peer);
	return (int)n;
}

static inline int
serve(void *arg)
{
	struct house *house = arg;

	house->ended = weft_listener_serve(house->listener, NULL, echo, house, WEFT_NEVER);
	return 0;
}

/* Sends a word and expects it back. */
static inline void
exchange(weft_stream *stream)
{
	char buf[8];

	CHECK_EQ(weft_stream_write(stream, "word", 4, WEFT_NEVER), 4);
	CHECK_EQ(weft_stream_read_exact(stream, buf, 4, WEFT_NEVER), 4);
	CHECK(memcmp(buf, "word", 4) == 0);
}

#endif
