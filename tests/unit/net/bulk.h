/* bulk.h - many bytes pass over a stream, in pieces of all sizes, and arrive complete.
 *
 * With WEFT_BULK=all in the environment, a test transfers 1 GiB uncut and 8 MiB cut to single
 * bytes.  Otherwise it transfers less in the same way.
 */
#ifndef WEFT_TESTS_BULK_H
#define WEFT_TESTS_BULK_H

#include <stdlib.h>
#include "cut.h"
#include "lines.h"

#define BULK_PATTERN 1048573u /* a prime: lost or repeated bytes show */
#define BULK_PIECE   ((size_t)262144)

struct bulk {
	struct ends ends;
	enum cut cut;
	bool passes;    /* the reader could also receive descriptors */
	bool little;    /* only three bytes */
	uint64_t size, got;
	int end;        /* what a read returns after the last byte */
	weft_tls *server, *client; /* NULL: without TLS */
};

static char bulk_pattern[BULK_PATTERN + BULK_PIECE];

static inline void
bulk_begin(enum cut how)
{
	for (size_t i = 0; i < sizeof(bulk_pattern); i++)
		bulk_pattern[i] = byte_at(i % BULK_PATTERN);
	cut_begin(how);
}

static inline uint64_t
bulk_size(enum cut how)
{
	const char *much = getenv("WEFT_BULK");
	bool all = much && strcmp(much, "all") == 0;

	if (how == CUT_TO_BYTES)
		return all ? (uint64_t)8 << 20 : 8000;
	return all && how == CUT_NOT ? (uint64_t)1 << 30 : (uint64_t)8 << 20;
}

/* How much a call gets.  Cut to single bytes: little, or with TLS one record. */
static inline size_t
bulk_piece(const struct bulk *bulk, bool reads)
{
	if (bulk->cut == CUT_NOT)
		return BULK_PIECE;
	if (bulk->cut == CUT_TO_BYTES)
		return reads ? 1 + cut_chance() % 16 : bulk->client ? 1000 : 3;
	return 1 + cut_chance() % BULK_PIECE;
}

static inline int
bulk_say(void *arg)
{
	struct bulk *bulk = arg;
	weft_stream *stream = bulk->ends.a;
	char byte;

	if (bulk->client)
		OK(weft_tls_start(stream, bulk->client, WEFT_TLS_CLIENT,
		                  "localhost", WEFT_NEVER));
	for (uint64_t at = 0; at < bulk->size;) {
		size_t n = bulk_piece(bulk, false);

		n = n < bulk->size - at ? n : (size_t)(bulk->size - at);
		CHECK_EQ(weft_stream_write(stream,
		                    bulk_pattern + at % BULK_PATTERN, n,
		                    WEFT_NEVER),
		         n);
		at += n;
	}
	/* If the client does not wait, the server's session tickets may cause a reset. */
	if (bulk->client) {
		OK(weft_stream_shutdown(stream, WEFT_NEVER));
		CHECK_EQ(weft_stream_read(stream, &byte, 1, WEFT_NEVER), 0);
	}
	weft_stream_close(stream);
	return 0;
}

static inline int
bulk_hear(void *arg)
{
	static char buf[BULK_PIECE];
	struct bulk *bulk = arg;
	weft_stream *stream = bulk->ends.b;
	ssize_t n;
	int fd;

	if (bulk->server)
		OK(weft_tls_start(stream, bulk->server, WEFT_TLS_SERVER, NULL,
		                  WEFT_NEVER));
	if (bulk->passes)
		CHECK(weft_stream_recv_fd(stream, &fd, WEFT_NOWAIT) < 0);
	while ((n = weft_stream_read(stream, buf, bulk_piece(bulk, true), WEFT_NEVER))
	       > 0) {
		if (memcmp(buf, bulk_pattern + bulk->got % BULK_PATTERN,
		           (size_t)n)
		    != 0)
			CHECK_EQ(bulk->got, -1);
		bulk->got += (uint64_t)n;
	}
	CHECK_EQ(n, bulk->end);
	weft_stream_close(stream);
	return 0;
}

static inline void
bulk_run_one(struct bulk *bulk, enum line_kind kind)
{
	weft_loop *loop;

	bulk_begin(bulk->cut);
	loop = make();
	bulk->ends = open_ends(kind);
	bulk->size = bulk->little ? 3 : bulk_size(bulk->cut);
	bulk->got = 0;
	bulk->end = line_end(kind);
	cut_ends(weft_stream_fd(bulk->ends.a), weft_stream_fd(bulk->ends.b),
	         kind == LINE_TCP);
	(void)go_on(loop, bulk_say, bulk);
	(void)go_on(loop, bulk_hear, bulk);
	OK(weft_loop_run(loop));
	CHECK_EQ(bulk->got, bulk->size);
	OK(weft_loop_free(loop));
	cut_end();
}

/* Runs over each kind of stream. */
static inline void
bulk_run(enum cut how)
{
	struct bulk bulk = { .cut = how };

	for (int kind = 0; kind < LINE_KINDS; kind++)
		bulk_run_one(&bulk, kind);
	bulk.passes = true;
	bulk_run_one(&bulk, LINE_PAIR);
}

/* Runs over each kind of stream that can carry TLS. */
static inline void
bulk_run_secure(const struct bulk *which)
{
	struct bulk bulk = *which;

	for (int kind = 0; kind < LINE_PIPE; kind++)
		bulk_run_one(&bulk, kind);
}

/* --- half-closed --------------------------------------------------------- */

#define BULK_REST ((uint64_t)10 << 20)

/* Half-closes without sending, then receives everything. */
static inline int
bulk_end_first(void *arg)
{
	static char buf[65536];
	struct bulk *bulk = arg;
	ssize_t n;

	if (bulk->client)
		OK(weft_tls_start(bulk->ends.a, bulk->client, WEFT_TLS_CLIENT,
		                  "localhost", WEFT_NEVER));
	OK(weft_stream_shutdown(bulk->ends.a, WEFT_NEVER));
	while ((n = weft_stream_read(bulk->ends.a, buf, sizeof(buf), WEFT_NEVER))
	       > 0) {
		CHECK(memcmp(buf,
		             bulk_pattern + bulk->got % BULK_PATTERN,
		             (size_t)n)
		      == 0);
		bulk->got += (uint64_t)n;
	}
	CHECK_EQ(n, 0);
	weft_stream_close(bulk->ends.a);
	return 0;
}

static inline int
bulk_go_on(void *arg)
{
	struct bulk *bulk = arg;
	char byte;

	if (bulk->server)
		OK(weft_tls_start(bulk->ends.b, bulk->server, WEFT_TLS_SERVER,
		                  NULL, WEFT_NEVER));
	CHECK_EQ(weft_stream_read(bulk->ends.b, &byte, 1, WEFT_NEVER), 0);
	for (uint64_t at = 0; at < BULK_REST; at += BULK_PIECE)
		CHECK_EQ(weft_stream_write(bulk->ends.b,
		                    bulk_pattern + at % BULK_PATTERN,
		                    BULK_PIECE, WEFT_NEVER),
		         BULK_PIECE);
	weft_stream_close(bulk->ends.b);
	return 0;
}

static inline void
bulk_run_half(weft_tls *server, weft_tls *client)
{
	for (int kind = 0; kind < LINE_PIPE; kind++) {
		weft_loop *loop;
		struct bulk bulk = { .server = server, .client = client };

		bulk_begin(CUT_NOT);
		loop = make();
		bulk.ends = open_ends(kind);
		(void)go_on(loop, bulk_end_first, &bulk);
		(void)go_on(loop, bulk_go_on, &bulk);
		OK(weft_loop_run(loop));
		CHECK_EQ(bulk.got, BULK_REST);
		OK(weft_loop_free(loop));
		cut_end();
	}
}

#endif
