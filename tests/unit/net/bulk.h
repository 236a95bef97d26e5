/* bulk.h - much goes over a stream, at counts of all sizes, and comes whole.
 *
 * The environment WEFT_BULK=all asks for all of it: 1 GiB at full counts and 8 MiB at
 * counts of one byte.  Else it is less, in the same way.
 */
#ifndef WEFT_TESTS_BULK_H
#define WEFT_TESTS_BULK_H

#include <stdlib.h>
#include "base/sys.h"
#include "lines.h"

enum { BULK_FULL, BULK_MIXED, BULK_BYTES, BULK_COUNTS };

#define BULK_PATTERN 1048573u /* a prime: what is lost or doubled shows */
#define BULK_PIECE   ((size_t)262144)

struct bulk {
	struct ends ends;
	int counts;     /* BULK_* */
	uint64_t size, got;
	weft_tls *server, *client; /* or NULL: plain */
};

static struct {
	const struct weft__sys *before;
	struct weft__sys table;
	int counts;
	uint32_t chance;
	char pattern[BULK_PATTERN + BULK_PIECE];
} bulk_world;

static inline uint32_t
bulk_chance(void)
{
	bulk_world.chance = bulk_world.chance * 1664525u + 1013904223u;
	return bulk_world.chance >> 8;
}

static inline size_t
bulk_cut(size_t size)
{
	if (bulk_world.counts == BULK_FULL || size < 2)
		return size;
	return bulk_world.counts == BULK_BYTES ? 1 : 1 + bulk_chance() % size;
}

/* The kernel takes less than it is given. */
static inline int64_t
bulk_send(int fd, const void *buf, size_t size, int flags)
{
	return weft__sys_real.send(fd, buf, bulk_cut(size), flags);
}

static inline int64_t
bulk_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return bulk_world.counts == BULK_FULL
	               ? weft__sys_real.sendmsg(fd, msg, flags)
	               : bulk_send(fd, msg->msg_iov->iov_base,
	                           msg->msg_iov->iov_len, flags);
}

static inline int64_t
bulk_write(int fd, const void *buf, size_t size)
{
	return weft__sys_real.write_quiet(fd, buf, bulk_cut(size));
}

static inline void
bulk_begin(int counts)
{
	for (size_t i = 0; i < sizeof(bulk_world.pattern); i++)
		bulk_world.pattern[i] = byte_at(i % BULK_PATTERN);
	bulk_world.counts = counts;
	bulk_world.chance = 1;
	bulk_world.before = weft__sys;
	bulk_world.table = *weft__sys;
	bulk_world.table.send = bulk_send;
	bulk_world.table.sendmsg = bulk_sendmsg;
	bulk_world.table.write_quiet = bulk_write;
	weft__sys = &bulk_world.table;
}

static inline void
bulk_end(void)
{
	weft__sys = bulk_world.before;
}

static inline uint64_t
bulk_size(int counts)
{
	const char *how = getenv("WEFT_BULK");
	bool all = how && strcmp(how, "all") == 0;

	if (counts == BULK_BYTES)
		return all ? (uint64_t)8 << 20 : 30000;
	return all && counts == BULK_FULL ? (uint64_t)1 << 30
	                                  : (uint64_t)8 << 20;
}

/* How much is given to a call: with counts of a byte so little that each is one, or of
 * TLS one record. */
static inline size_t
bulk_piece(const struct bulk *bulk, bool reads)
{
	if (bulk->counts == BULK_FULL)
		return BULK_PIECE;
	if (bulk->counts == BULK_BYTES)
		return reads ? 1 : bulk->client ? 1000 : 3;
	return 1 + bulk_chance() % BULK_PIECE;
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
		CHECK_EQ(weft_write(stream,
		                    bulk_world.pattern + at % BULK_PATTERN, n,
		                    WEFT_NEVER),
		         n);
		at += n;
	}
	/* A client that does not wait may be reset by the tickets of its server. */
	if (bulk->client) {
		OK(weft_stream_shutdown(stream, WEFT_NEVER));
		CHECK_EQ(weft_read(stream, &byte, 1, WEFT_NEVER), 0);
	}
	weft_close(stream);
	return 0;
}

static inline int
bulk_hear(void *arg)
{
	static char buf[BULK_PIECE];
	struct bulk *bulk = arg;
	weft_stream *stream = bulk->ends.b;
	ssize_t n;

	if (bulk->server)
		OK(weft_tls_start(stream, bulk->server, WEFT_TLS_SERVER, NULL,
		                  WEFT_NEVER));
	while ((n = weft_read(stream, buf, bulk_piece(bulk, true), WEFT_NEVER))
	       > 0) {
		if (memcmp(buf, bulk_world.pattern + bulk->got % BULK_PATTERN,
		           (size_t)n)
		    != 0)
			CHECK_EQ(bulk->got, -1);
		bulk->got += (uint64_t)n;
	}
	CHECK_EQ(n, 0);
	weft_close(stream);
	return 0;
}

/* Over each kind of stream up to `last`. */
static inline void
bulk_run(int counts, int last, weft_tls *server, weft_tls *client)
{
	for (int kind = 0; kind <= last; kind++) {
		weft_loop *loop;
		struct bulk bulk = { .counts = counts,
			             .size = bulk_size(counts),
			             .server = server,
			             .client = client };

		bulk_begin(counts);
		loop = make();
		bulk.ends = open_ends(kind);
		(void)go_on(loop, bulk_say, &bulk);
		(void)go_on(loop, bulk_hear, &bulk);
		OK(weft_loop_run(loop));
		CHECK_EQ(bulk.got, bulk.size);
		OK(weft_loop_free(loop));
		bulk_end();
	}
}

/* --- half-closed --------------------------------------------------------- */

#define BULK_REST ((uint64_t)10 << 20)

/* Says nothing but the last word, and hears all. */
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
	while ((n = weft_read(bulk->ends.a, buf, sizeof(buf), WEFT_NEVER))
	       > 0) {
		CHECK(memcmp(buf,
		             bulk_world.pattern + bulk->got % BULK_PATTERN,
		             (size_t)n)
		      == 0);
		bulk->got += (uint64_t)n;
	}
	CHECK_EQ(n, 0);
	weft_close(bulk->ends.a);
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
	CHECK_EQ(weft_read(bulk->ends.b, &byte, 1, WEFT_NEVER), 0);
	for (uint64_t at = 0; at < BULK_REST; at += BULK_PIECE)
		CHECK_EQ(weft_write(bulk->ends.b,
		                    bulk_world.pattern + at % BULK_PATTERN,
		                    BULK_PIECE, WEFT_NEVER),
		         BULK_PIECE);
	weft_close(bulk->ends.b);
	return 0;
}

static inline void
bulk_run_half(weft_tls *server, weft_tls *client)
{
	for (int kind = 0; kind < LINE_PIPE; kind++) {
		weft_loop *loop;
		struct bulk bulk = { .server = server, .client = client };

		bulk_begin(BULK_FULL);
		loop = make();
		bulk.ends = open_ends(kind);
		(void)go_on(loop, bulk_end_first, &bulk);
		(void)go_on(loop, bulk_go_on, &bulk);
		OK(weft_loop_run(loop));
		CHECK_EQ(bulk.got, BULK_REST);
		OK(weft_loop_free(loop));
		bulk_end();
	}
}

#endif
