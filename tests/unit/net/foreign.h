/* foreign.h - a peer that is OpenSSL alone, without our settings, and may be bad. */
#ifndef WEFT_TESTS_FOREIGN_H
#define WEFT_TESTS_FOREIGN_H

#include "pair.h"

struct foreign {
	SSL_CTX *ctx; /* to be changed before the first handshake */
	SSL     *ssl; /* the same */
	BIO     *in, *out;
	int      rc;  /* of its handshake: 1 done, 0 going on, -1 failed */
};

/* Takes any key and any signature, and verifies nothing.  Shows `chain`, up to a NULL, if
 * that is not NULL. */
void foreign_open(struct foreign *f, int role, const struct cert *const *chain);
void foreign_close(struct foreign *f);

/* Carry all bytes both ways, once. */
size_t foreign_carry(struct foreign *f, struct weft__session *session);

/* Handshake with a session, until both are done, one has failed, or nothing moves. */
void foreign_handshake(struct foreign *f, struct end *end);

#endif
