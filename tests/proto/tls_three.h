/* tls_three.h - TLS contexts of a server, of a client that trusts it, and of one that does not.
 *
 * Included by tests of protocols over TLS, each of which is its own program.
 */
#ifndef WEFT_TESTS_TLS_THREE_H
#define WEFT_TESTS_TLS_THREE_H

#include "unit/net/certs.h"

static struct {
	weft_tls *server, *client, *stranger;
} tls;

static void
make_tls(void)
{
	struct cert ca = cert_ca("weft test"), other = cert_ca("somebody");
	struct cert leaf = cert_leaf("h", "IP:127.0.0.1", &ca);
	const struct cert *chain[] = { &leaf, NULL }, *root[] = { &ca, NULL };
	const struct cert *alone[] = { &other, NULL };
	weft_tls_cert cert = { .chain_file = cert_file("leaf.pem", chain),
		               .key_file = cert_key_file("leaf.key", &leaf,
		                                         NULL) };
	weft_tls_opts server = { .certs = &cert, .cert_count = 1 };
	weft_tls_opts client = { .ca_file = cert_file("ca.pem", root) };
	weft_tls_opts stranger = { .ca_file = cert_file("other.pem", alone) };

	OK(weft_tls_open(&server, &tls.server));
	OK(weft_tls_open(&client, &tls.client));
	OK(weft_tls_open(&stranger, &tls.stranger));
	cert_drop(&leaf);
	cert_drop(&ca);
	cert_drop(&other);
}

static void
drop_tls(void)
{
	weft_tls_close(tls.server);
	weft_tls_close(tls.client);
	weft_tls_close(tls.stranger);
}

#endif
