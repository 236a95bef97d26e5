/* secure_bulk_test.c - much over TLS over each kind of stream, at counts of all sizes. */
#include "bulk.h"
#include "certs.h"

static struct {
	weft_tls *server, *client;
} world;

static void
make_world(void)
{
	static struct cert ca, leaf;
	const struct cert *chain[] = { &leaf, NULL }, *root[] = { &ca, NULL };
	weft_tls_cert cert;
	weft_tls_opts server = { .certs = &cert, .cert_count = 1 }, client = { 0 };

	ca = cert_ca("weft test");
	leaf = cert_leaf("localhost", "DNS:localhost", &ca);
	cert = (weft_tls_cert){ .chain_file = cert_file("leaf.pem", chain),
		                .key_file = cert_key_file("leaf.key", &leaf, NULL) };
	client.ca_file = cert_file("ca.pem", root);
	OK(weft_tls_open(&server, &world.server));
	OK(weft_tls_open(&client, &world.client));
	cert_drop(&leaf);
	cert_drop(&ca);
}

static void
run_with(struct bulk bulk)
{
	make_world();
	bulk.server = world.server;
	bulk.client = world.client;
	bulk_run_secure(&bulk);
	weft_tls_close(world.server);
	weft_tls_close(world.client);
}

static void
run(enum cut how)
{
	run_with((struct bulk){ .cut = how });
}

TEST(much_comes_whole_with_tls_at_full_counts)
{
	run(CUT_NOT);
}

TEST(much_comes_whole_with_tls_at_counts_by_chance)
{
	run(CUT_BY_CHANCE);
}

TEST(all_comes_whole_with_tls_byte_by_byte)
{
	run(CUT_TO_BYTES);
}

/* It says its last while the server still sends what ends the handshake. */
TEST(little_comes_whole_with_tls_from_one_that_ends_before_the_tickets_are_sent)
{
	run_with((struct bulk){ .cut = CUT_TO_BYTES, .little = true });
}

TEST(much_comes_with_tls_after_the_last_word_of_the_other_side)
{
	make_world();
	bulk_run_half(world.server, world.client);
	weft_tls_close(world.server);
	weft_tls_close(world.client);
}
