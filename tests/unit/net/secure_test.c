/* secure_test.c - streams with TLS: handshakes, data, and the end of a connection. */
#include <errno.h>
#include <weft/metrics.h>
#include "unit/net/lines.h"
#include "unit/net/secure_world.h"

/* --- over a socket pair --------------------------------------------------- */

struct line {
	weft_stream *a, *b;
	int result;     /* of the server, */
	char text[200]; /* and the detail text of its failure; */
	int write;      /* result of one more write after it, */
	char write_text[200];
	size_t bytes;
};

static int
be_server(void *arg)
{
	struct line *line = arg;
	char buf[3000];
	ssize_t n;

	line->result = weft_tls_start(line->b, world.server, WEFT_TLS_SERVER, NULL,
	                              weft_after(HOUR));
	if (line->result < 0) {
		(void)snprintf(line->text, sizeof(line->text), "%s", weft_detail());
		weft_stream_close(line->b);
		return 0;
	}
	while ((n = weft_stream_read(line->b, buf, sizeof(buf), WEFT_NEVER)) > 0)
		CHECK_EQ(weft_stream_write(line->b, buf, (size_t)n, WEFT_NEVER), n);
	line->result = (int)n;
	if (n < 0) {
		(void)snprintf(line->text, sizeof(line->text), "%s", weft_detail());
		line->write = (int)weft_stream_write(line->b, "x", 1, WEFT_NEVER);
		(void)snprintf(line->write_text, sizeof(line->write_text), "%s", weft_detail());
	}
	weft_stream_close(line->b);
	return 0;
}

static void
run_ends(weft_threadlet_fn client, struct line *line)
{
	weft_loop *loop;

	make_world();
	loop = make();
	(void)go_on(loop, be_server, line);
	(void)go_on(loop, client, line);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
	drop_world();
}

static void
run_line(weft_threadlet_fn client, struct line *line)
{
	OK(open_stream_pair(&line->a, &line->b));
	run_ends(client, line);
}

static int
talk(void *arg)
{
	struct line *line = arg;
	weft_tls_info info;
	char buf[32];
	const void *seen;

	CHECK_EQ(weft_stream_tls(line->a, &info), WEFT_EINVAL);
	OK(weft_tls_start(line->a, world.client, WEFT_TLS_CLIENT, "localhost", WEFT_NEVER));
	OK(weft_stream_tls(line->a, &info));
	CHECK_STR(info.version, "TLSv1.3");
	CHECK_EQ(weft_tls_start(line->a, world.client, WEFT_TLS_CLIENT, "localhost", WEFT_NEVER),
	         WEFT_EBUSY);
	CHECK_EQ(weft_stream_write(line->a, "one\ntwo\n", 8, WEFT_NEVER), 8);
	CHECK_EQ(weft_stream_read_until(line->a, "\n", buf, sizeof(buf), WEFT_NEVER), 4);
	CHECK(weft_stream_peek(line->a, 4, &seen, WEFT_NEVER) == 4);
	CHECK(memcmp(seen, "two\n", 4) == 0);
	OK(weft_stream_skip(line->a, 4));
	CHECK_EQ(weft_stream_read(line->a, buf, 8, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	/* Half-close, then read the peer's echo. */
	CHECK_EQ(weft_stream_write(line->a, "end", 3, WEFT_NEVER), 3);
	OK(weft_stream_shutdown(line->a, WEFT_NEVER));
	CHECK_EQ(weft_stream_read_exact(line->a, buf, 3, WEFT_NEVER), 3);
	CHECK_EQ(weft_stream_read(line->a, buf, 8, WEFT_NEVER), 0);
	CHECK_EQ(weft_stream_write(line->a, "x", 1, WEFT_NEVER), WEFT_EPIPE);
	weft_stream_close(line->a);
	return 0;
}

TEST(tls_stream_is_read_and_written_like_any_other)
{
	struct line line = { .result = 0 };

	run_line(talk, &line);
	CHECK_EQ(line.result, 0);
}

#define BULK ((size_t)4 << 20)

static int
send_all(void *arg)
{
	struct line *line = arg;
	static char buf[50000];

	for (size_t sent = 0; sent < BULK; sent += sizeof(buf)) {
		for (size_t i = 0; i < sizeof(buf); i++)
			buf[i] = (char)((sent + i) * 31 >> 3);
		CHECK_EQ(weft_stream_write(line->a, buf, sizeof(buf), WEFT_NEVER),
		         (ssize_t)sizeof(buf));
		line->bytes += sizeof(buf);
	}
	OK(weft_stream_shutdown(line->a, WEFT_NEVER));
	return 0;
}

static int
send_and_check(void *arg)
{
	struct line *line = arg;
	static char buf[30000];
	size_t all = 0;
	ssize_t n;

	OK(weft_tls_start(line->a, world.client, WEFT_TLS_CLIENT, "localhost", WEFT_NEVER));
	CHECK(weft_go(send_all, line) > 0);
	while ((n = weft_stream_read(line->a, buf, sizeof(buf), WEFT_NEVER)) > 0)
		for (ssize_t i = 0; i < n; i++, all++)
			if (buf[i] != (char)(all * 31 >> 3))
				CHECK_EQ(i, -1);
	CHECK_EQ(n, 0);
	CHECK_EQ(all, line->bytes);
	CHECK(all >= BULK);
	weft_stream_close(line->a);
	return 0;
}

TEST(bulk_data_goes_both_ways_at_once_over_tls)
{
	struct line line = { .result = 0 };

	run_line(send_and_check, &line);
	CHECK_EQ(line.result, 0);
}

static int
trust_nobody(void *arg)
{
	struct line *line = arg;
	char byte;

	CHECK_EQ(weft_tls_start(line->a, world.stranger, WEFT_TLS_CLIENT, "localhost", WEFT_NEVER),
	         WEFT_ECERT);
	CHECK_STR(weft_detail(),
	          "tls with \"localhost\": the certificate of \"localhost\" "
	          "has an issuer that is neither trusted nor sent by the peer: \"weft test\"");
	CHECK_EQ(weft_stream_read(line->a, &byte, 1, WEFT_NEVER), WEFT_ECERT);
	CHECK_EQ(weft_stream_write(line->a, "x", 1, WEFT_NEVER), WEFT_ECERT);
	weft_stream_close(line->a);
	return 0;
}

TEST(untrusted_server_is_refused_and_both_sides_get_an_error)
{
	struct line line = { .result = 0 };

	run_line(trust_nobody, &line);
	CHECK_EQ(line.result, WEFT_ECERT);
	CHECK_STR(line.text, "tls with a client: the peer ended the session: it does not "
	                     "trust the authority of our certificate (alert 48)");
}

static int
cut_off(void *arg)
{
	struct line *line = arg;
	char byte;

	OK(weft_tls_start(line->a, world.client, WEFT_TLS_CLIENT, "localhost", WEFT_NEVER));
	CHECK_EQ(weft_stream_write(line->a, "x", 1, WEFT_NEVER), 1);
	CHECK_EQ(weft_stream_read(line->a, &byte, 1, WEFT_NEVER), 1);
	weft_stream_reset(line->a);
	return 0;
}

TEST(end_without_close_notify_is_reported_as_truncation)
{
	struct line line = { .result = 0 };

	run_line(cut_off, &line);
	CHECK_EQ(line.result, WEFT_ETRUNCATED);
	CHECK_STR(line.text, "tls with a client: the connection ended without a close_notify");
}

/* TCP itself reports a reset. */
TEST(connection_reset_under_tls_is_reported_as_a_reset)
{
	struct ends ends = open_ends(LINE_TCP);
	struct line line = { ends.a, ends.b, .result = 0 };

	run_ends(cut_off, &line);
	CHECK_EQ(line.result, WEFT_ECONNRESET);
	CHECK(strncmp(line.text, "weft_stream_read tcp://127.0.0.1:", 33) == 0);
	CHECK_EQ(line.write, WEFT_EPIPE);
	CHECK(strncmp(line.write_text, "weft_stream_write tcp://127.0.0.1:", 34) == 0);
}

/* Shuts down only our sending direction, so that the peer's close_notify can still be sent. */
static int
fall_silent(void *arg)
{
	struct line *line = arg;
	char byte;

	OK(weft_tls_start(line->a, world.client, WEFT_TLS_CLIENT, "localhost", WEFT_NEVER));
	CHECK_EQ(weft_stream_write(line->a, "x", 1, WEFT_NEVER), 1);
	CHECK_EQ(weft_stream_read(line->a, &byte, 1, WEFT_NEVER), 1);
	CHECK_EQ(shutdown(weft_stream_fd(line->a), SHUT_WR), 0);
	CHECK(weft_stream_read(line->a, &byte, 1, WEFT_NEVER) <= 0);
	weft_stream_close(line->a);
	return 0;
}

TEST(close_after_the_peer_ended_without_close_notify_closes_once)
{
	struct line line = { .result = 0 };

	run_line(fall_silent, &line);
	CHECK_EQ(line.result, WEFT_ETRUNCATED);
	CHECK_EQ(line.write, WEFT_ETRUNCATED); /* the session has ended */
	CHECK_STR(line.write_text,
	          "tls with a client: the connection ended without a close_notify");
}

/* A read that does not wait detects the end of the connection. */
static int
check_the_end(void *arg)
{
	struct line *line = arg;
	ssize_t n = WEFT_ETIMEDOUT;
	char byte;

	OK(weft_tls_start(line->a, world.client, WEFT_TLS_CLIENT, "localhost", WEFT_NEVER));
	CHECK_EQ(weft_stream_write(line->a, "x", 1, WEFT_NEVER), 1);
	CHECK_EQ(weft_stream_read(line->a, &byte, 1, WEFT_NEVER), 1);
	OK(shutdown(weft_stream_fd(line->a), SHUT_RD));
	while (n == WEFT_ETIMEDOUT) {
		n = weft_stream_read(line->a, &byte, 1, WEFT_NOWAIT);
		OK(weft_yield());
	}
	CHECK_EQ(n, WEFT_ETRUNCATED);
	CHECK_EQ(weft_stream_read(line->a, &byte, 1, WEFT_NEVER), WEFT_ETRUNCATED);
	weft_stream_close(line->a);
	return 0;
}

TEST(truncation_is_reported_to_a_nonwaiting_read)
{
	struct line line = { .result = 0 };

	run_line(check_the_end, &line);
}

static int
count_handshakes(void *arg)
{
	struct line *line = arg;
	struct weft_loop_stats stats;

	OK(weft_tls_start(line->a, world.client, WEFT_TLS_CLIENT, "localhost", WEFT_NEVER));
	weft_stream_close(line->a);
	OK(open_stream_pair(&line->a, &line->b));
	CHECK(weft_go(be_server, line) > 0);
	CHECK(weft_tls_start(line->a, world.stranger, WEFT_TLS_CLIENT, "localhost", WEFT_NEVER)
	      < 0);
	weft_stream_close(line->a);
	while (line->result >= 0)
		OK(weft_yield());
	OK(weft_loop_stats(weft_loop_current(), &stats));
	CHECK_EQ(stats.handshakes, 2);
	CHECK_EQ(stats.handshakes_failed, 2);
	return 0;
}

TEST(handshakes_are_counted_in_the_metrics)
{
	struct line line = { .result = 0 };

	run_line(count_handshakes, &line);
}

static int
send_plain_first(void *arg)
{
	struct line *line = arg;
	const void *seen;

	CHECK_EQ(weft_stream_write(line->b, "STARTTLS plain", 14, WEFT_NEVER), 14);
	CHECK(weft_stream_peek(line->a, 8, &seen, WEFT_NEVER) >= 8);
	OK(weft_stream_skip(line->a, 8));
	CHECK_EQ(weft_tls_start(line->a, world.client, WEFT_TLS_CLIENT, "localhost", WEFT_NEVER),
	         WEFT_EPROTO);
	weft_stream_close(line->a);
	weft_stream_close(line->b);
	return 0;
}

TEST(plain_bytes_where_tls_begins_are_refused)
{
	struct line line = { .result = 0 };

	make_world();
	OK(open_stream_pair(&line.a, &line.b));
	run_threadlet(send_plain_first, &line);
	drop_world();
}

static int
wait_for_silence(void *arg)
{
	struct line *line = arg;

	CHECK_EQ(weft_tls_start(line->a, world.client, WEFT_TLS_CLIENT, "localhost",
	                        weft_after(WEFT_MS)),
	         WEFT_ETIMEDOUT);
	weft_stream_close(line->a);
	weft_stream_close(line->b);
	return 0;
}

TEST(handshake_ends_at_its_deadline)
{
	struct line line = { .result = 0 };

	make_world();
	OK(open_stream_pair(&line.a, &line.b));
	run_threadlet(wait_for_silence, &line);
	drop_world();
}

/* --- by address ----------------------------------------------------------- */

static void
visit(const struct house *house, weft_tls *tls, int expected)
{
	weft_stream_connect_opts opts = { .tls = tls };
	weft_stream *stream;

	CHECK_EQ(weft_stream_connect(house->address, &opts, &stream, weft_after(HOUR)), expected);
	if (expected < 0) {
		CHECK(strstr(weft_detail(), house->address) != NULL);
		return;
	}
	exchange(stream);
	weft_stream_close(stream);
}

static int
visit_service(void *arg)
{
	struct house *house = arg;

	CHECK(weft_go(serve, house) > 0);
	for (int i = 0; i < 3; i++)
		visit(house, world.client, 0);
	visit(house, world.stranger, WEFT_ECERT);
	weft_listener_close(house->listener);
	return 0;
}

TEST(tls_service_is_reached_by_its_address)
{
	struct house house;

	make_world();
	CHECK_EQ(weft_listener_open("tls://127.0.0.1:0", NULL, &house.listener), WEFT_EINVAL);
	house = open_house(HOUR);
	run_threadlet(visit_service, &house);
	CHECK_EQ(house.served, 3);
	CHECK_EQ(house.ended, WEFT_ESHUTDOWN);
	drop_world();
}

/* One client is served; another is connected and sends nothing. */
static int
leave_silent(void *arg)
{
	struct house *house = arg;
	weft_stream_connect_opts opts = { .tls = world.client };
	weft_stream *served, *silent;
	char byte;
	ssize_t n;

	CHECK(weft_go(serve, house) > 0);
	OK(weft_stream_connect(house->plain, NULL, &silent, WEFT_NEVER));
	OK(weft_stream_connect(house->address, &opts, &served, WEFT_NEVER));
	while (house->served == 0)
		OK(weft_yield());
	weft_listener_close(house->listener);
	n = weft_stream_read(silent, &byte, 1, weft_after(HOUR));
	CHECK(n == 0 || n == WEFT_ECONNRESET);
	CHECK_EQ(house->ended, 0);
	CHECK_EQ(weft_stream_write(served, "x", 1, WEFT_NEVER), 1);
	CHECK_EQ(weft_stream_read_exact(served, &byte, 1, WEFT_NEVER), 1);
	weft_stream_close(served);
	weft_stream_close(silent);
	return 0;
}

TEST(closing_service_does_not_wait_for_handshakes)
{
	struct house house;

	make_world();
	house = open_house(HOUR);
	run_threadlet(leave_silent, &house);
	CHECK_EQ(house.served, 1);
	CHECK_EQ(house.ended, WEFT_ESHUTDOWN);
	drop_world();
}

static int
visit_twice(void *arg)
{
	visit(arg, world.stranger, WEFT_ECERT);
	visit(arg, world.client, 0);
	return 0;
}

static int
accept_one(void *arg)
{
	struct house *house = arg;
	weft_stream *peer;

	CHECK(weft_go(visit_twice, house) > 0);
	OK(weft_listener_accept(house->listener, &peer, WEFT_NEVER));
	(void)echo(peer, house);
	weft_listener_close(house->listener);
	return 0;
}

TEST(peer_that_fails_the_handshake_is_not_accepted)
{
	struct house house;

	make_world();
	house = open_house(HOUR);
	run_threadlet(accept_one, &house);
	CHECK_EQ(house.served, 1);
	drop_world();
}

static weft_stream *accepted;

static void
on_client(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	struct house *house = arg;

	(void)listener;
	if (!peer) {
		house->ended = error;
		return;
	}
	house->served++;
	accepted = peer;
}

static int
knock(void *arg)
{
	struct house *house = arg;
	weft_stream_connect_opts opts = { .tls = world.client };
	weft_stream *stream;
	char byte;

	OK(weft_stream_connect(house->address, &opts, &stream, WEFT_NEVER));
	while (house->served == 0)
		OK(weft_yield());
	weft_stream_close(accepted);
	CHECK_EQ(weft_stream_read(stream, &byte, 1, WEFT_NEVER), 0);
	weft_stream_close(stream);
	weft_listener_close(house->listener);
	return 0;
}

TEST(callback_gets_connections_after_their_handshake)
{
	weft_loop *loop;
	struct house house;

	make_world();
	house = open_house(HOUR);
	loop = make();
	OK(weft_listener_start(house.listener, loop, on_client, &house));
	(void)go_on(loop, knock, &house);
	OK(weft_loop_run(loop));
	CHECK_EQ(house.served, 1);
	CHECK_EQ(house.ended, WEFT_ESHUTDOWN);
	OK(weft_loop_free(loop));
	drop_world();
}
