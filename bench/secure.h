/* secure.h - TLS of the clients: version 1.3 with one cipher and one group, so that all servers
 * use the same. */
#ifndef WEFT_BENCH_SECURE_H
#define WEFT_BENCH_SECURE_H

#include "bench.h"
#include <openssl/ssl.h>

static inline SSL_CTX *
secure_context(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());

	BENCH_CHECK(context);
	BENCH_CHECK(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION));
	BENCH_CHECK(
		SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256"));
	BENCH_CHECK(SSL_CTX_set1_groups_list(context, "X25519"));
	SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
	(void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	return context;
}

#endif
