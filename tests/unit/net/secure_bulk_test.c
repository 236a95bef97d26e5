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
	weft_tls_opts server = { .certs = &cert, .cert_count = 1 },
		      client = { 0 };

	ca = cert_ca("weft test");
	leaf = cert_leaf("localhost", "DNS:localhost", &ca);
	cert = (weft_tls_cert){ .chain_file = cert_file("leaf.pem", chain),
		                .key_file = cert_key_file("leaf.key", &leaf,
		                                          NULL) };
	client.ca_file = cert_file("ca.pem", root);
	OK(weft_tls_open(&server, &world.server));
	OK(weft_tls_open(&client, &world.client));
	cert_drop(&leaf);
	cert_drop(&ca);
}

static void
run(int counts)
{
	make_world();
	bulk_run(counts, LINE_PAIR, world.server, world.client);
	weft_tls_close(world.server);
	weft_tls_close(world.client);
}

TEST(much_comes_whole_with_tls_at_full_counts)
{
	run(BULK_FULL);
}

TEST(much_comes_whole_with_tls_at_counts_by_chance)
{
	run(BULK_MIXED);
}

TEST(all_comes_whole_with_tls_byte_by_byte)
{
	run(BULK_BYTES);
}

TEST(much_comes_with_tls_after_the_last_word_of_the_other_side)
{
	make_world();
	bulk_run_half(world.server, world.client);
	weft_tls_close(world.server);
	weft_tls_close(world.client);
}
