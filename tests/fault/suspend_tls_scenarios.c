/* suspend_tls_scenarios.c - TLS streams, disturbed at each of their suspensions.
 *
 * A disturbed handshake has failed, and every later call reports that.  A disturbed read has
 * taken nothing; a disturbed write may have sent a part.  An end that stops closes its stream.
 * The other end gets the end of the stream, or an error if the TLS close is missing.
 */
#include <string.h>
#include "fault.h"
#include "stream_pair.h"
#include "suspend.h"
#include "tls_world.h"

enum { MUCH = 40000, PART = 5000 };

struct wire;

struct end {
	struct wire *wire;
	struct end *other;
	weft_stream *stream; /* NULL: closed */
	weft_tls *tls;
	int role;
	size_t said, heard; /* bytes; those in `said` may not have been sent */
	bool done;          /* every step succeeded */
	bool gone;          /* it has closed its stream */
};

struct wire {
	struct end client, server;
	char bytes[MUCH];
};

static void
leave(struct end *end)
{
	weft_stream *stream = end->stream;

	end->gone = true;
	end->stream = NULL;
	weft_stream_close(stream);
}

/* The errors that an end gets whose peer closed without a TLS close. */
static bool
is_cut(int64_t rc)
{
	return rc == WEFT_ETRUNCATED || rc == WEFT_ECONNRESET || rc == WEFT_EPIPE;
}

static enum went
how_here(const struct end *end, int64_t rc, int64_t want)
{
	if (rc != want && end->other->gone && (rc == 0 || is_cut(rc)))
		return DISTURBED;
	return how(rc, want);
}

/* --- the steps of each end ------------------------------------------------ */

static enum went
shake_hands(struct end *end)
{
	const char *name = end->role == WEFT_TLS_CLIENT ? TLS_HOST : NULL;
	bool begins = weft_check_canceled() == 0;
	int rc = weft_tls_start(end->stream, end->tls, end->role, name, WEFT_NEVER);
	weft_tls_info info;
	char byte;

	if (rc == 0) {
		EXPECT(weft_stream_tls(end->stream, &info) == 0);
		return WELL;
	}
	EXPECT(weft_stream_tls(end->stream, &info) == WEFT_EINVAL);
	if (begins) {
		EXPECT(weft_stream_read(end->stream, &byte, 1, WEFT_NOWAIT) == rc);
		EXPECT(weft_stream_write(end->stream, "x", 1, WEFT_NOWAIT) == rc);
	}
	(void)how_here(end, rc, 0);
	return DISTURBED;
}

static enum went
say(struct end *end, size_t size)
{
	ssize_t n;

	end->said += size;
	n = weft_stream_write(end->stream, end->wire->bytes + end->said - size, size, WEFT_NEVER);
	/* A part may have been sent, so this end cannot continue. */
	return how_here(end, n, (int64_t)size) == WELL ? WELL : DISTURBED;
}

static ssize_t
hear_some(struct end *end)
{
	char buf[PART];
	ssize_t n = weft_stream_read(end->stream, buf, sizeof(buf), WEFT_NEVER);

	if (n > 0) {
		EXPECT(end->heard + (size_t)n <= end->other->said);
		EXPECT(memcmp(buf, end->wire->bytes + end->heard, (size_t)n) == 0);
		end->heard += (size_t)n;
	}
	return n > 0 ? 1 : n;
}

static enum went
hear(struct end *end, size_t size)
{
	enum went went = WELL;

	for (size_t until = end->heard + size; went != DISTURBED && end->heard < until;)
		went = how_here(end, hear_some(end), 1);
	return went == DISTURBED ? DISTURBED : WELL;
}

static enum went
send_half_close(struct end *end)
{
	enum went went;

	RETRY(went, how_here(end, weft_stream_shutdown(end->stream, WEFT_NEVER), 0));
	return went;
}

static enum went
hear_last(struct end *end)
{
	enum went went;

	RETRY(went, how_here(end, hear_some(end), 0));
	return went;
}

/* The client sends much data, the server a little, and both half-close. */
static int
be_client(void *arg)
{
	struct end *end = arg;

	end->done = shake_hands(end) == WELL && say(end, MUCH) == WELL && hear(end, 3) == WELL
	            && send_half_close(end) == WELL && hear_last(end) == WELL;
	leave(end);
	return 0;
}

static int
be_server(void *arg)
{
	struct end *end = arg;

	end->done = shake_hands(end) == WELL && hear(end, MUCH) == WELL && say(end, 3) == WELL
	            && hear_last(end) == WELL;
	if (end->done)
		end->done = send_half_close(end) == WELL;
	leave(end);
	return 0;
}

/* --- over a pair ---------------------------------------------------------- */

static void
open_wire(struct wire *wire)
{
	weft_tls_opts server = tls_world_server(), client = tls_world_client();

	*wire = (struct wire){
		.client = { .wire = wire, .other = &wire->server, .role = WEFT_TLS_CLIENT },
		.server = { .wire = wire, .other = &wire->client, .role = WEFT_TLS_SERVER }
	};
	for (int i = 0; i < MUCH; i++)
		wire->bytes[i] = (char)(i * 7 % 251);
	EXPECT(weft_tls_open(&server, &wire->server.tls) == 0);
	EXPECT(weft_tls_open(&client, &wire->client.tls) == 0);
	EXPECT(open_stream_pair(&wire->client.stream, &wire->server.stream) == 0);
	EXPECT(weft_stream_set(wire->client.stream, "sndbuf", 5000) == 0);
}

/* A threadlet that is canceled before it runs has closed nothing. */
static void
close_end(struct end *end)
{
	weft_stream_close(end->stream);
	weft_tls_close(end->tls);
}

int
run_tls(void *arg)
{
	static struct wire wire;
	weft_scope scope;

	(void)arg;
	if (!tls_is_there)
		return 0;
	open_wire(&wire);
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	if (start_in(&scope, NULL, be_client, &wire.client) < 0)
		leave(&wire.client);
	if (start_in(&scope, NULL, be_server, &wire.server) < 0)
		leave(&wire.server);
	EXPECT(weft_scope_close(&scope) == 0);
	if (wire.client.done)
		EXPECT(wire.client.heard == 3 && wire.server.heard == MUCH);
	EXPECT((wire.client.done && wire.server.done) || target());
	close_end(&wire.client);
	close_end(&wire.server);
	return 0;
}

/* --- by address ----------------------------------------------------------- */

struct door {
	weft_listener *listener; /* NULL: closed */
	weft_tls *client;
	char address[WEFT_ADDR_TEXT_MAX];
	bool over; /* no client will connect */
	weft_threadlet acceptor;
};

static void
open_door(struct door *door)
{
	weft_tls_opts server = tls_world_server(), client = tls_world_client();
	weft_listener_opts opts = { 0 };
	weft_addr addr;

	*door = (struct door){ .over = false };
	EXPECT(weft_tls_open(&server, &opts.tls) == 0);
	EXPECT(weft_tls_open(&client, &door->client) == 0);
	EXPECT(weft_listener_open("tls://127.0.0.1:0", &opts, &door->listener) == 0);
	EXPECT(weft_listener_local(door->listener, &addr) == 0);
	EXPECT(weft_addr_format(&addr, door->address, sizeof(door->address)) > 0);
	memcpy(door->address, "tls", 3);
	weft_tls_close(opts.tls);
}

static void
close_door(struct door *door)
{
	weft_listener *listener = door->listener;

	door->listener = NULL;
	weft_listener_close(listener);
}

/* Threadlets of the library do the handshakes.  They are disturbed, too, and then their
 * connection fails. */
static int
visit(void *arg)
{
	struct door *door = arg;
	weft_stream_connect_opts opts = { .tls = door->client };
	weft_stream *stream = NULL;
	char buf[4];
	int rc = weft_stream_connect(door->address, &opts, &stream, WEFT_NEVER);

	EXPECT((rc == 0) == (stream != NULL));
	EXPECT(rc == 0 || target());
	if (rc == 0) {
		ssize_t n = weft_stream_write(stream, "word", 4, WEFT_NEVER);

		if (n == 4)
			n = weft_stream_read_exact(stream, buf, 4, WEFT_NEVER);
		EXPECT(n == 4 || target());
		EXPECT(n != 4 || memcmp(buf, "word", 4) == 0);
		weft_stream_close(stream);
	}
	door->over = true;
	(void)weft_interrupt(door->acceptor);
	return 0;
}

static void
echo(weft_stream *peer)
{
	char buf[8];
	ssize_t n;

	while ((n = weft_stream_read(peer, buf, sizeof(buf), WEFT_NEVER)) > 0)
		if (weft_stream_write(peer, buf, (size_t)n, WEFT_NEVER) != n)
			break;
	EXPECT(n == 0 || target());
	weft_stream_close(peer);
}

static int
let_in(void *arg)
{
	struct door *door = arg;
	weft_stream *peer = NULL;
	int rc;

	do
		rc = weft_listener_accept(door->listener, &peer, WEFT_NEVER);
	while (rc == WEFT_EINTR && !door->over);
	EXPECT((rc == 0) == (peer != NULL));
	EXPECT(rc == 0 || target());
	close_door(door); /* so that a later client does not wait */
	if (rc == 0)
		echo(peer);
	return 0;
}

int
run_tls_connect(void *arg)
{
	struct door door;
	weft_scope scope;

	(void)arg;
	if (!tls_is_there)
		return 0;
	open_door(&door);
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	door.acceptor = start_in(&scope, NULL, let_in, &door);
	if (door.acceptor < 0)
		close_door(&door);
	if (start_in(&scope, NULL, visit, &door) < 0) {
		door.over = true;
		(void)weft_interrupt(door.acceptor);
	}
	EXPECT(weft_scope_close(&scope) == 0);
	close_door(&door);
	weft_tls_close(door.client);
	return 0;
}
