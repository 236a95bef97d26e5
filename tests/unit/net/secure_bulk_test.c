/* secure_bulk_test.c - bulk data with TLS over each kind of stream, in pieces of all sizes. */
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

TEST(bulk_data_arrives_complete_with_tls)
{
	run(CUT_NOT);
}

TEST(bulk_data_arrives_complete_with_tls_when_transfers_are_cut_at_random)
{
	run(CUT_BY_CHANCE);
}

TEST(data_arrives_complete_with_tls_when_transfers_are_cut_to_single_bytes)
{
	run(CUT_TO_BYTES);
}

/* The client half-closes while the server still sends the end of the handshake. */
TEST(data_arrives_complete_from_a_client_that_ends_before_the_tickets_are_sent)
{
	run_with((struct bulk){ .cut = CUT_TO_BYTES, .little = true });
}

TEST(bulk_data_arrives_with_tls_after_the_receiver_has_half_closed)
{
	make_world();
	bulk_run_half(world.server, world.client);
	weft_tls_close(world.server);
	weft_tls_close(world.client);
}
