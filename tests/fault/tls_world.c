/* tls_world.c - certificates for the sweeps. */
#include "tls_world.h"
#include "unit/net/certs.h"

const bool tls_is_there = true;

static const char *ca_file;
static weft_tls_cert files;

static void
make_files(void)
{
	struct cert ca, leaf;
	const struct cert *root[] = { &ca, NULL }, *chain[] = { &leaf, NULL };

	if (ca_file)
		return;
	ca = cert_ca("sweep");
	leaf = cert_leaf(TLS_HOST, "DNS:" TLS_HOST ",IP:127.0.0.1", &ca);
	ca_file = cert_file("ca.pem", root);
	files = (weft_tls_cert){ .chain_file = cert_file("leaf.pem", chain),
		                 .key_file = cert_key_file("leaf.key", &leaf, NULL) };
	cert_drop(&leaf);
	cert_drop(&ca);
}

weft_tls_opts
tls_world_server(void)
{
	make_files();
	/* The server requests no client certificate, but loading the system's CA store takes
	 * long. */
	return (weft_tls_opts){ .certs = &files, .cert_count = 1, .ca_file = ca_file };
}

weft_tls_opts
tls_world_client(void)
{
	make_files();
	return (weft_tls_opts){ .ca_file = ca_file };
}
