/* pair.h - a client and a server in memory, and what carries bytes between them. */
#ifndef WEFT_TESTS_PAIR_H
#define WEFT_TESTS_PAIR_H

#include "net/tls/tls.h"
#include "certs.h"
#include "test.h"

struct end {
	struct weft__session *session;
	int  rc;         /* of the handshake: 0 done, WEFT_EAGAIN, or an error */
	char text[1024]; /* of that error */
};

struct pair {
	struct end client, server;
	uint64_t   chance; /* state of test_random() */
	size_t     step;   /* bytes carried at a time; 0: by chance */
};

/* Sessions of these contexts; the client asks for `host`. */
void pair_open(struct pair *pair, weft_tls *client, weft_tls *server,
               const char *host);
void pair_close(struct pair *pair);

/* Carry what one has to send to the other, once, by feeding or into its room. */
size_t pair_carry(struct pair *pair, struct weft__session *from,
                  struct weft__session *to);
void   pair_carry_all(struct pair *pair); /* until nothing is left */

/* Until both have ended it or wait for ever; then whoever has failed has ended. */
void pair_handshake(struct pair *pair);

/* The same, for those who must be done; then tickets have gone over, too. */
void pair_shake_hands(struct pair *pair);

/* Write all of it on one side, read it on the other, and compare. */
void pair_send(struct pair *pair, struct weft__session *from,
               struct weft__session *to, const void *bytes, size_t size);

/* Contexts; they must open. */
weft_tls *pair_server(const char *chain_file, const char *key_file);
weft_tls *pair_client(const char *ca_file);
weft_tls *pair_open_tls(const weft_tls_opts *opts);

/* Fails the test unless `text` has `words` in it. */
void check_words(const char *text, const char *words, const char *what);

/* A CA, and a server for "example.org" and 127.0.0.1: files that every test needs. */
struct basics {
	struct cert ca, leaf;
	const char *ca_file, *chain_file, *key_file;
	weft_tls   *client, *server;
};
void basics_open(struct basics *b);
void basics_close(struct basics *b);

#endif
