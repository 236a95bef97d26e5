/* pair.h - an in-memory TLS client and server, and functions that carry bytes between them. */
#ifndef WEFT_TESTS_PAIR_H
#define WEFT_TESTS_PAIR_H

#include "net/tls/tls.h"
#include "certs.h"
#include "test.h"

struct end {
	struct weft__session *session;
	int  rc;         /* of the handshake: 0 done, WEFT_EAGAIN, or an error */
	char text[1024]; /* the detail text of that error */
};

struct pair {
	struct end client, server;
	uint64_t   chance; /* state of test_random() */
	size_t     step;   /* bytes carried at a time; 0: random */
};

/* Opens a session on each context.  The client expects the server's name to be `host`. */
void pair_open(struct pair *pair, weft_tls *client, weft_tls *server,
               const char *host);
void pair_close(struct pair *pair);

/* Carries pending output of `from` to `to`, once.  Uses weft__session_feed() or the session's
 * own buffer, at random.  Returns the number of bytes carried. */
size_t pair_carry(struct pair *pair, struct weft__session *from,
                  struct weft__session *to);
void   pair_carry_all(struct pair *pair); /* until neither side has output */

/* Runs the handshake until both sides are done or have failed, or nothing moves.  When one side
 * has failed and its output is carried, the other side sees the end of the stream. */
void pair_handshake(struct pair *pair);

/* Like pair_handshake(), but both sides must succeed.  Also delivers the session tickets. */
void pair_shake_hands(struct pair *pair);

/* Writes all of it on one side, reads it on the other, and compares. */
void pair_send(struct pair *pair, struct weft__session *from,
               struct weft__session *to, const void *bytes, size_t size);

/* Open contexts; the test fails if they do not open. */
weft_tls *pair_server(const char *chain_file, const char *key_file);
weft_tls *pair_client(const char *ca_file);
weft_tls *pair_open_tls(const weft_tls_opts *opts);

/* Fails the test unless `text` contains `words`. */
void check_words(const char *text, const char *words, const char *what);

/* A CA, and a server certificate for "example.org" and 127.0.0.1, with their files and
 * contexts. */
struct basics {
	struct cert ca, leaf;
	const char *ca_file, *chain_file, *key_file;
	weft_tls   *client, *server;
};
void basics_open(struct basics *b);
void basics_close(struct basics *b);

#endif
