/* secure_life_test.c - a TLS record that arrives in two parts, and a service with a new
 * certificate. */
#include "unit/net/lines.h"
#include "unit/net/secure_world.h"

/* --- half a record -------------------------------------------------------- */

/* The client's bytes pass through a relay, which can stop in the middle of a record. */
struct relayed {
	struct ends near, far; /* client to relay, relay to server */
	bool stops;            /* after the first bytes that come back */
	weft_event stopped, resumed, done;
	weft_event there; /* the relay has seen the client's end */
	int result;       /* of the server */
};

static void
pass(weft_stream *to, const char *bytes, size_t size)
{
	CHECK_EQ(weft_stream_write(to, bytes, size, WEFT_NEVER), (ssize_t)size);
}

static int
relay_there(void *arg)
{
	struct relayed *h = arg;
	char buf[4096];
	ssize_t n;

	while ((n = weft_stream_read(h->near.b, buf, sizeof(buf), WEFT_NEVER)) > 0)
		pass(h->far.a, buf, (size_t)n);
	CHECK_EQ(n, 0);
	OK(weft_stream_shutdown(h->far.a, WEFT_NEVER));
	weft_event_set(&h->there);
	return 0;
}

static int
relay_back(void *arg)
{
	struct relayed *h = arg;
	char buf[4096];
	ssize_t n;

	while ((n = weft_stream_read(h->far.a, buf, sizeof(buf), WEFT_NEVER)) > 0) {
		size_t first = h->stops ? 9 : (size_t)n;

		pass(h->near.b, buf, first);
		if (!h->stops)
			continue;
		h->stops = false;
		weft_event_set(&h->stopped);
		OK(weft_event_wait(&h->resumed, WEFT_NEVER));
		pass(h->near.b, buf + first, (size_t)n - first);
	}
	CHECK_EQ(n, 0);
	OK(weft_stream_shutdown(h->near.b, WEFT_NEVER));
	OK(weft_event_wait(&h->done, WEFT_NEVER));
	OK(weft_event_wait(&h->there, WEFT_NEVER));
	weft_stream_close(h->near.b);
	weft_stream_close(h->far.a);
	return 0;
}

static int
echo_far(void *arg)
{
	struct relayed *h = arg;
	char buf[64];
	ssize_t n;

	OK(weft_tls_start(h->far.b, world.server, WEFT_TLS_SERVER, NULL, WEFT_NEVER));
	while ((n = weft_stream_read(h->far.b, buf, sizeof(buf), WEFT_NEVER)) > 0)
		pass(h->far.b, buf, (size_t)n);
	h->result = (int)n;
	weft_stream_close(h->far.b);
	return 0;
}

static void
read_the_rest(struct relayed *h)
{
	weft_stream *stream = h->near.a;
	weft_tls_info info;
	char buf[8];

	CHECK_EQ(weft_stream_read_exact(stream, buf, 4, WEFT_NEVER), 4);
	CHECK(memcmp(buf, "bcde", 4) == 0);
	OK(weft_stream_tls(stream, &info));
	CHECK_STR(info.version, "TLSv1.3");
	exchange(stream);
	OK(weft_stream_shutdown(stream, WEFT_NEVER));
	CHECK_EQ(weft_stream_read(stream, buf, 8, WEFT_NEVER), 0);
	weft_stream_close(stream);
	weft_event_set(&h->done);
}

static int
read_half(void *arg)
{
	struct relayed *h = arg;
	weft_stream *stream = h->near.a;
	const void *seen;

	OK(weft_tls_start(stream, world.client, WEFT_TLS_CLIENT, "localhost", WEFT_NEVER));
	pass(stream, "abc", 3);
	CHECK_EQ(weft_stream_peek(stream, 3, &seen, WEFT_NEVER), 3);
	OK(weft_stream_skip(stream, 1));
	h->stops = true;
	pass(stream, "de", 2);
	OK(weft_event_wait(&h->stopped, WEFT_NEVER));
	CHECK_EQ(weft_stream_peek(stream, 3, &seen, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	weft_event_set(&h->resumed);
	read_the_rest(h);
	return 0;
}

TEST(tls_stream_keeps_half_a_record_until_the_rest_arrives)
{
	static const enum line_kind kinds[] = { LINE_TCP, LINE_PAIR };

	make_world();
	for (int i = 0; i < 2; i++) {
		struct relayed h = { .near = open_ends(kinds[i]), .far = open_ends(kinds[i]) };
		weft_loop *loop = make();

		(void)go_on(loop, relay_there, &h);
		(void)go_on(loop, relay_back, &h);
		(void)go_on(loop, echo_far, &h);
		(void)go_on(loop, read_half, &h);
		OK(weft_loop_run(loop));
		CHECK_EQ(h.result, 0);
		OK(weft_loop_free(loop));
	}
	drop_world();
}

/* --- new certificates ----------------------------------------------------- */

/* Connects.  The server must present a certificate with this subject. */
static weft_stream *
visit(const struct house *house, const char *subject, bool resumed)
{
	weft_stream_connect_opts opts = { .tls = world.client };
	weft_stream *stream;
	weft_tls_info info;

	OK(weft_stream_connect(house->address, &opts, &stream, WEFT_NEVER));
	OK(weft_stream_tls(stream, &info));
	CHECK_STR(info.peer_subject, subject);
	CHECK_EQ(info.resumed, resumed);
	exchange(stream);
	return stream;
}

static int
renew(void *arg)
{
	struct house *house = arg;
	weft_stream *first, *second, *third;

	CHECK(weft_go(serve, house) > 0);
	first = visit(house, "CN = localhost", false);
	second = visit(house, "CN = localhost", true);
	(void)issue("renewed");
	OK(weft_tls_reload(world.server));
	third = visit(house, "CN = renewed", false); /* no old ticket is accepted */
	exchange(first);
	exchange(second);
	exchange(third);
	weft_stream_close(first);
	weft_stream_close(third);
	/* Files that cannot be used change nothing. */
	(void)cert_text_file("leaf.key", "no key");
	CHECK_EQ(weft_tls_reload(world.server), WEFT_EINVAL);
	third = visit(house, "CN = renewed", true);
	exchange(second);
	weft_stream_close(second);
	weft_stream_close(third);
	weft_listener_close(house->listener);
	return 0;
}

TEST(service_uses_a_reloaded_certificate_for_new_peers)
{
	struct house house;

	make_world();
	house = open_house(HOUR);
	run_threadlet(renew, &house);
	CHECK_EQ(house.served, 4);
	CHECK_EQ(house.ended, WEFT_ESHUTDOWN);
	drop_world();
}
