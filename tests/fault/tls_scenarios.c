/* tls_scenarios.c - TLS streams, while a call fails: a handshake in both roles over a pair,
 * data in both directions, both closes; and a client that connects by address.
 *
 * Whatever fails, every call returns and every threadlet ends.  The data that is read is a
 * prefix of the data that was written, and all of it if every call on both ends succeeded.  An
 * end that fails closes its stream, so that the other end does not wait until its deadline.
 */
#include <string.h>
#include "fault.h"
#include "scenarios.h"
#include "stream_pair.h"
#include "tls_world.h"

enum { MUCH = 6000, PART = 2000 };

struct end {
	struct wire *wire;
	struct end *other;
	weft_stream *stream;
	weft_tls *tls;
	int role;
	size_t said, heard; /* bytes; those in `said` may not have been sent */
	bool done;          /* every step succeeded */
	int left;
};

struct wire {
	struct world world;
	struct end client, server;
	weft_listener *listener; /* NULL: closed */
	char address[WEFT_ADDR_TEXT_MAX];
	int play_left, serve_left;
	char bytes[MUCH];
};

/* --- the steps of each end ------------------------------------------------ */

static bool
shake_hands(struct end *end)
{
	const char *name = end->role == WEFT_TLS_CLIENT ? TLS_HOST : NULL;
	weft_tls_info info;

	return went_in_time(weft_tls_start(end->stream, end->tls, end->role, name, soon()), 0)
	       && went_in_time(weft_stream_tls(end->stream, &info), 0);
}

static bool
say(struct end *end, size_t size)
{
	const char *at = end->wire->bytes + end->said;

	end->said += size;
	return went_in_time(weft_stream_write(end->stream, at, size, soon()), (int64_t)size);
}

static ssize_t
hear_some(struct end *end)
{
	char buf[PART];
	ssize_t n = weft_stream_read(end->stream, buf, sizeof(buf), soon());

	if (n <= 0)
		return n;
	EXPECT(end->heard + (size_t)n <= end->other->said);
	if (end->heard + (size_t)n <= MUCH)
		EXPECT(memcmp(buf, end->wire->bytes + end->heard, (size_t)n) == 0);
	end->heard += (size_t)n;
	return 1;
}

static bool
hear(struct end *end, size_t size)
{
	for (size_t until = end->heard + size; end->heard < until;)
		if (!went_in_time(hear_some(end), 1))
			return false;
	return true;
}

static bool
send_half_close(struct end *end)
{
	return went_in_time(weft_stream_shutdown(end->stream, soon()), 0);
}

static bool
hear_last(struct end *end)
{
	return went_in_time(hear_some(end), 0);
}

/* The client sends much data, the server a little, and both half-close. */
static int
be_client(void *arg)
{
	struct end *end = arg;

	end->done = shake_hands(end) && say(end, MUCH / 2) && say(end, MUCH / 2) && hear(end, 3)
	            && send_half_close(end) && hear_last(end);
	weft_stream_close(end->stream);
	end->left = 0;
	return 0;
}

static int
be_server(void *arg)
{
	struct end *end = arg;

	end->done = shake_hands(end) && hear(end, MUCH) && say(end, 3) && hear_last(end)
	            && send_half_close(end);
	weft_stream_close(end->stream);
	end->left = 0;
	return 0;
}

/* --- over a pair ---------------------------------------------------------- */

static bool
open_contexts(struct wire *wire)
{
	weft_tls_opts server = tls_world_server(), client = tls_world_client();

	return went_in_time(weft_tls_open(&server, &wire->server.tls), 0)
	       && went_in_time(weft_tls_open(&client, &wire->client.tls), 0);
}

static void
start_end(struct end *end, weft_threadlet_fn fn)
{
	end->left = start_on(&end->wire->world, fn, end);
	if (!end->left)
		weft_stream_close(end->stream);
}

static void
play_pair(struct wire *wire)
{
	struct end *client = &wire->client, *server = &wire->server;

	if (!went_in_time(open_stream_pair(&client->stream, &server->stream), 0))
		return;
	(void)went_in_time(weft_stream_set(client->stream, "sndbuf", 2000), 0);
	start_end(client, be_client);
	start_end(server, be_server);
	await_zero(&wire->world, &client->left);
	await_zero(&wire->world, &server->left);
	EXPECT(!client->done || (client->heard == 3 && server->heard == MUCH));
	EXPECT((client->done && server->done) || fault_hits() > 0);
}

static struct wire *
make_wire(const char *backend)
{
	static struct wire wire;

	if (!tls_is_there)
		return NULL;
	wire = (struct wire){
		.client = { .wire = &wire, .other = &wire.server, .role = WEFT_TLS_CLIENT },
		.server = { .wire = &wire, .other = &wire.client, .role = WEFT_TLS_SERVER }
	};
	for (int i = 0; i < MUCH; i++)
		wire.bytes[i] = (char)(i * 7 % 251);
	return make_world(&wire.world, backend, 0) ? &wire : NULL;
}

static void
end_wire(struct wire *wire)
{
	weft_tls_close(wire->client.tls);
	weft_tls_close(wire->server.tls);
	check_works(&wire->world);
	end_world(&wire->world);
}

void
run_tls(const char *backend)
{
	struct wire *wire = make_wire(backend);

	if (!wire)
		return;
	if (open_contexts(wire))
		play_pair(wire);
	end_wire(wire);
}

/* --- by address ----------------------------------------------------------- */

static int
echo(weft_stream *peer, void *arg)
{
	char buf[16];
	ssize_t n;

	(void)arg;
	while ((n = weft_stream_read(peer, buf, sizeof(buf), soon())) > 0)
		if (!went_in_time(weft_stream_write(peer, buf, (size_t)n, soon()), n))
			break;
	(void)went_in_time(n > 0 ? 0 : n, 0);
	weft_stream_close(peer);
	return 0;
}

static void
close_door(struct wire *wire)
{
	weft_listener *listener = wire->listener;

	wire->listener = NULL;
	weft_listener_close(listener);
}

static int
serve(void *arg)
{
	struct wire *wire = arg;

	if (wire->listener /* it may be closed before this threadlet runs */
	    && !went_in_time(weft_listener_serve(wire->listener, NULL, echo, wire, WEFT_NEVER),
	                     WEFT_ESHUTDOWN))
		close_door(wire);
	wire->serve_left = 0;
	return 0;
}

static void
visit(struct wire *wire)
{
	weft_stream_connect_opts opts = { .tls = wire->client.tls };
	weft_stream *stream;
	char buf[4];
	ssize_t n;

	if (!wire->listener
	    || !went_in_time(weft_stream_connect(wire->address, &opts, &stream, soon()), 0))
		return;
	n = weft_stream_write(stream, "word", 4, soon());
	if (n == 4)
		n = weft_stream_read_exact(stream, buf, 4, soon());
	if (went_in_time(n, 4))
		EXPECT(memcmp(buf, "word", 4) == 0);
	weft_stream_close(stream);
}

static int
play_client(void *arg)
{
	struct wire *wire = arg;
	weft_listener_opts opts = { .tls = wire->server.tls };
	weft_addr addr;

	if (went_in_time(weft_listener_open("tls://127.0.0.1:0", &opts, &wire->listener), 0)) {
		EXPECT(weft_listener_local(wire->listener, &addr) == 0);
		EXPECT(weft_addr_format(&addr, wire->address, sizeof(wire->address)) > 0);
		memcpy(wire->address, "tls", 3);
		wire->serve_left = start_on(&wire->world, serve, wire);
		if (wire->serve_left)
			visit(wire);
		close_door(wire);
	}
	wire->play_left = 0;
	return 0;
}

void
run_tls_client(const char *backend)
{
	struct wire *wire = make_wire(backend);

	if (!wire)
		return;
	if (open_contexts(wire)) {
		wire->play_left = start_on(&wire->world, play_client, wire);
		await_zero(&wire->world, &wire->play_left);
		await_zero(&wire->world, &wire->serve_left);
	}
	end_wire(wire);
}
