/* secure_start_test.c - starting TLS on a plain stream, and handshakes that are ended from
 * outside. */
#include <errno.h>
#include "unit/net/lines.h"
#include "unit/net/secure_world.h"

/* The kinds of streams that can carry TLS. */
static const enum line_kind kinds[] = { LINE_TCP, LINE_UNIX, LINE_PAIR };
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Runs both on one loop until they have ended. */
static void
run_both(weft_threadlet_fn client, weft_threadlet_fn server, struct ends *ends)
{
	weft_loop *loop = make();

	(void)go_on(loop, server, ends);
	(void)go_on(loop, client, ends);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

/* Runs on each kind of stream, with TLS contexts. */
static void
run_on_all(weft_threadlet_fn client, weft_threadlet_fn server)
{
	make_world();
	for (size_t i = 0; i < KINDS; i++) {
		struct ends ends = open_ends(kinds[i]);

		run_both(client, server, &ends);
	}
	drop_world();
}

static void
say(weft_stream *stream, const char *text)
{
	CHECK_EQ(weft_stream_write(stream, text, strlen(text), WEFT_NEVER), (ssize_t)strlen(text));
}

/* The next line must be this. */
static void
hear(weft_stream *stream, const char *line)
{
	char buf[64];
	ssize_t n = weft_stream_read_until(stream, "\n", buf, sizeof(buf), WEFT_NEVER);

	CHECK_EQ(n, (ssize_t)strlen(line));
	CHECK(memcmp(buf, line, (size_t)n) == 0);
}

static int
start_client(weft_stream *stream)
{
	return weft_tls_start(stream, world.client, WEFT_TLS_CLIENT, "localhost", weft_after(HOUR));
}

static int
start_server(weft_stream *stream)
{
	return weft_tls_start(stream, world.server, WEFT_TLS_SERVER, NULL, weft_after(HOUR));
}

/* --- STARTTLS ------------------------------------------------------------- */

static int
take_mail(void *arg)
{
	struct ends *ends = arg;
	weft_tls_info info;
	char byte;

	say(ends->b, "220 here\n");
	hear(ends->b, "STARTTLS\n");
	say(ends->b, "220 go\n");
	OK(start_server(ends->b));
	OK(weft_stream_tls(ends->b, &info));
	CHECK_STR(info.server_name, "localhost");
	hear(ends->b, "MAIL\n");
	say(ends->b, "250 well\n");
	CHECK_EQ(weft_stream_read(ends->b, &byte, 1, WEFT_NEVER), 0);
	weft_stream_close(ends->b);
	return 0;
}

static int
send_mail(void *arg)
{
	struct ends *ends = arg;
	weft_tls_info info;
	char byte;

	hear(ends->a, "220 here\n");
	say(ends->a, "STARTTLS\n");
	hear(ends->a, "220 go\n");
	CHECK_EQ(weft_stream_tls(ends->a, &info), WEFT_EINVAL);
	OK(start_client(ends->a));
	OK(weft_stream_tls(ends->a, &info));
	CHECK_STR(info.peer_subject, "CN = localhost");
	say(ends->a, "MAIL\n");
	hear(ends->a, "250 well\n");
	OK(weft_stream_shutdown(ends->a, WEFT_NEVER));
	CHECK_EQ(weft_stream_read(ends->a, &byte, 1, WEFT_NEVER), 0);
	weft_stream_close(ends->a);
	return 0;
}

TEST(plain_dialogue_continues_with_tls)
{
	run_on_all(send_mail, take_mail);
}

/* The start of the handshake is in the server's queue before the server calls weft_tls_start(). */
static int
take_hasty_mail(void *arg)
{
	struct ends *ends = arg;
	const void *seen;

	CHECK(weft_stream_peek(ends->b, 9 + 100, &seen, WEFT_NEVER) >= 9 + 100);
	hear(ends->b, "STARTTLS\n");
	OK(start_server(ends->b));
	hear(ends->b, "MAIL\n");
	weft_stream_close(ends->b);
	return 0;
}

static int
send_hasty_mail(void *arg)
{
	struct ends *ends = arg;
	char byte;

	say(ends->a, "STARTTLS\n");
	OK(start_client(ends->a));
	say(ends->a, "MAIL\n");
	CHECK_EQ(weft_stream_read(ends->a, &byte, 1, WEFT_NEVER), 0);
	weft_stream_close(ends->a);
	return 0;
}

TEST(server_may_have_received_the_start_of_the_handshake_already)
{
	run_on_all(send_hasty_mail, take_hasty_mail);
}

/* --- injected bytes ------------------------------------------------------- */

static int
inject_at_once(void *arg)
{
	struct ends *ends = arg;

	hear(ends->b, "STARTTLS\n");
	say(ends->b, "220 go\n250 injected\n");
	hear(ends->b, "plain\n"); /* no TLS byte was sent */
	weft_stream_close(ends->b);
	return 0;
}

static int
refuse_what_is_there(void *arg)
{
	struct ends *ends = arg;
	const void *seen;

	say(ends->a, "STARTTLS\n");
	CHECK_EQ(weft_stream_peek(ends->a, 20, &seen, WEFT_NEVER), 20);
	hear(ends->a, "220 go\n");
	CHECK_EQ(start_client(ends->a), WEFT_EPROTO);
	CHECK_STR(weft_detail(),
	          "weft_tls_start: the peer has sent plain bytes before the handshake");
	/* The stream is still plain. */
	hear(ends->a, "250 injected\n");
	say(ends->a, "plain\n");
	weft_stream_close(ends->a);
	return 0;
}

TEST(client_refuses_to_start_tls_after_injected_plain_bytes)
{
	run_on_all(refuse_what_is_there, inject_at_once);
}

static int
inject_later(void *arg)
{
	struct ends *ends = arg;
	const void *seen;

	CHECK(weft_stream_peek(ends->b, 100, &seen, WEFT_NEVER) >= 100);
	say(ends->b, "250 injected\n");
	OK(weft_stream_shutdown(ends->b, WEFT_NEVER));
	while (weft_stream_peek(ends->b, 1, &seen, WEFT_NEVER) > 0)
		OK(weft_stream_skip(ends->b, 1));
	weft_stream_close(ends->b);
	return 0;
}

static int
refuse_what_comes(void *arg)
{
	struct ends *ends = arg;
	char byte;

	CHECK_EQ(start_client(ends->a), WEFT_EPROTO);
	CHECK_STR(weft_detail(), "tls with \"localhost\": the peer does not "
	                         "speak TLS, or an unknown version of it");
	CHECK_EQ(weft_stream_read(ends->a, &byte, 1, WEFT_NEVER), WEFT_EPROTO);
	CHECK_EQ(weft_stream_write(ends->a, "x", 1, WEFT_NEVER), WEFT_EPROTO);
	weft_stream_close(ends->a);
	return 0;
}

TEST(plain_bytes_during_the_handshake_fail_it)
{
	run_on_all(refuse_what_comes, inject_later);
}

/* Injected commands follow the STARTTLS line.  They must not count as commands of the TLS
 * client. */
static int
inject_commands(void *arg)
{
	struct ends *ends = arg;
	ssize_t n;
	char buf[64];

	say(ends->a, "STARTTLS\nDELETE all\n");
	while ((n = weft_stream_read(ends->a, buf, sizeof(buf), WEFT_NEVER)) > 0)
		CHECK(!memchr(buf, '2', (size_t)n)); /* no reply, at most an alert */
	CHECK_EQ(n, 0);
	weft_stream_close(ends->a);
	return 0;
}

static int
refuse_commands(void *arg)
{
	struct ends *ends = arg;
	const void *seen;
	char byte;

	CHECK_EQ(weft_stream_peek(ends->b, 20, &seen, WEFT_NEVER), 20);
	hear(ends->b, "STARTTLS\n");
	CHECK_EQ(start_server(ends->b), WEFT_EPROTO);
	CHECK_STR(weft_detail(), "tls with a client: the peer does not speak "
	                         "TLS, or an unknown version of it");
	CHECK_EQ(weft_stream_read(ends->b, &byte, 1, WEFT_NEVER), WEFT_EPROTO);
	CHECK_EQ(weft_stream_write(ends->b, "x", 1, WEFT_NEVER), WEFT_EPROTO);
	weft_stream_close(ends->b);
	return 0;
}

TEST(server_does_not_accept_plain_bytes_as_tls)
{
	run_on_all(inject_commands, refuse_commands);
}

/* --- ended from outside --------------------------------------------------- */

struct shaking {
	struct ends ends;
	int result;
};

static int
shake_alone(void *arg)
{
	struct shaking *shaking = arg;

	shaking->result = start_client(shaking->ends.a);
	return 0;
}

static int
close_both(void *arg)
{
	struct shaking *shaking = arg;

	for (int i = 0; i < 3; i++)
		OK(weft_yield());
	weft_stream_close(shaking->ends.a);
	weft_stream_close(shaking->ends.b);
	return 0;
}

TEST(handshake_ends_with_eshutdown_when_the_stream_is_closed)
{
	make_world();
	for (size_t i = 0; i < KINDS; i++) {
		struct shaking shaking = { .ends = open_ends(kinds[i]) };
		weft_loop *loop = make();

		(void)go_on(loop, shake_alone, &shaking);
		(void)go_on(loop, close_both, &shaking);
		OK(weft_loop_run(loop));
		CHECK_EQ(shaking.result, WEFT_ESHUTDOWN);
		OK(weft_loop_free(loop));
	}
	drop_world();
}

/* A threadlet that has not suspended for many calls yields to others.  That may happen within a
 * handshake. */
struct tired {
	struct shaking shaking;
	struct ends spare; /* a byte is there to peek at */
	int calls;         /* that did not suspend */
};

static int
shake_tired(void *arg)
{
	struct tired *tired = arg;
	const void *seen;

	for (int i = 0; i < tired->calls; i++)
		CHECK_EQ(weft_stream_peek(tired->spare.a, 1, &seen, WEFT_NEVER), 1);
	return shake_alone(&tired->shaking);
}

static int
close_at_once(void *arg)
{
	struct tired *tired = arg;

	weft_stream_close(tired->shaking.ends.a);
	weft_stream_close(tired->shaking.ends.b);
	return 0;
}

static int
play_tired(void *arg)
{
	struct tired *tired = arg;
	const void *seen;
	weft_scope scope;

	say(tired->spare.b, "x");
	CHECK_EQ(weft_stream_peek(tired->spare.a, 1, &seen, WEFT_NEVER), 1);
	for (tired->calls = 0; tired->calls < 64; tired->calls++) {
		tired->shaking = (struct shaking){ .ends = open_ends(LINE_PAIR) };
		OK(weft_scope_open(&scope, 0, WEFT_NEVER));
		CHECK(weft_scope_go(&scope, shake_tired, tired) > 0);
		CHECK(weft_scope_go(&scope, close_at_once, tired) > 0);
		OK(weft_scope_close(&scope));
		CHECK_EQ(tired->shaking.result, WEFT_ESHUTDOWN);
	}
	weft_stream_close(tired->spare.a);
	weft_stream_close(tired->spare.b);
	return 0;
}

TEST(stream_may_be_closed_wherever_its_handshake_yields)
{
	struct tired tired = { .spare = open_ends(LINE_PAIR) };

	make_world();
	run_threadlet(play_tired, &tired);
	drop_world();
}

/* Closes the streams when the loop stops.  The stop also ends the handshake. */
static int
close_at_the_end(void *arg)
{
	struct shaking *shaking = arg;

	CHECK(weft_sleep_until(WEFT_NEVER) < 0);
	weft_stream_close(shaking->ends.a);
	weft_stream_close(shaking->ends.b);
	return 0;
}

TEST(stream_may_be_closed_during_its_handshake_while_the_loop_stops)
{
	make_world();
	for (int i = 0; i < 2 * (int)KINDS; i++) {
		struct shaking shaking = { .ends = open_ends(kinds[i / 2]) };
		weft_loop *loop = make();

		(void)go_on(loop, i % 2 ? shake_alone : close_at_the_end, &shaking);
		(void)go_on(loop, i % 2 ? close_at_the_end : shake_alone, &shaking);
		turns(loop, 3);
		stop_idle(loop);
		CHECK(shaking.result < 0);
	}
	drop_world();
}

/* --- a peer that does not read -------------------------------------------- */

static int
write_and_begin(void *arg)
{
	struct ends *ends = arg;

	fill(weft_stream_fd(ends->a));
	(void)weft_stream_write(ends->a, "STARTTLS\n", 9, weft_after(WEFT_MS));
	CHECK_EQ(weft_tls_start(ends->a, world.client, WEFT_TLS_CLIENT, "localhost",
	                        weft_after(5 * WEFT_MS)),
	         WEFT_ETIMEDOUT);
	weft_stream_reset(ends->a);
	weft_stream_close(ends->b);
	return 0;
}

TEST(handshake_ends_at_its_deadline_behind_bytes_that_cannot_be_sent)
{
	make_world();
	for (size_t i = 0; i < KINDS; i++) {
		struct ends ends = open_ends(kinds[i]);

		run_threadlet(write_and_begin, &ends);
	}
	drop_world();
}

/* --- the error text ------------------------------------------------------- */

/* The server closes as soon as it has sent its certificate. */
static int
show_and_leave(void *arg)
{
	struct ends *ends = arg;

	CHECK_EQ(start_server(ends->b), WEFT_ECANCELED);
	weft_stream_close(ends->b);
	return 0;
}

static int
refuse_who_has_left(void *arg)
{
	struct ends *ends = arg;

	CHECK_EQ(weft_tls_start(ends->a, world.stranger, WEFT_TLS_CLIENT, "localhost", WEFT_NEVER),
	         WEFT_ECERT);
	CHECK(strstr(weft_detail(), "neither trusted nor sent by the peer"));
	weft_stream_close(ends->a);
	return 0;
}

TEST(failed_handshake_reports_why_even_if_the_peer_is_gone)
{
	make_world();
	for (size_t i = 0; i < KINDS; i++) {
		struct ends ends = open_ends(kinds[i]);
		weft_loop *here = make(), *there = make();
		weft_threadlet server = go_on(there, show_and_leave, &ends);

		(void)go_on(here, refuse_who_has_left, &ends);
		turns(here, 3);
		turns(there, 20);
		OK(weft_cancel(server));
		OK(weft_loop_run(there));
		OK(weft_loop_run(here));
		OK(weft_loop_free(here));
		OK(weft_loop_free(there));
	}
	drop_world();
}
