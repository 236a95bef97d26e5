/* foreign.h - a TLS peer made of plain OpenSSL without our settings, which may misbehave. */
#ifndef WEFT_TESTS_FOREIGN_H
#define WEFT_TESTS_FOREIGN_H

#include "pair.h"

struct foreign {
	SSL_CTX *ctx; /* may be changed before the first handshake */
	SSL     *ssl; /* created by the first handshake */
	BIO     *in, *out;
	int      rc;  /* of its handshake: 1 done, 0 in progress, -1 failed */
};

/* Accepts any key and any signature, and verifies nothing.  If `chain` is not NULL, it presents
 * the certificates in it, up to a NULL. */
void foreign_open(struct foreign *f, int role, const struct cert *const *chain);
void foreign_close(struct foreign *f);

/* Carries all pending bytes in both directions, once.  Returns how many. */
size_t foreign_carry(struct foreign *f, struct weft__session *session);

/* Runs the handshake with a session until nothing moves: both are done, or one has failed or
 * waits. */
void foreign_handshake(struct foreign *f, struct end *end);

#endif
