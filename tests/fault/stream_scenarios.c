/* stream_scenarios.c - streams and listeners with threadlets: a pair to which more is written
 * than fits, and TCP clients that are served.
 *
 * Whatever fails, every call returns and every threadlet ends.  The data that is read is a
 * prefix of the data that was written, and all of it if every call on both ends succeeded.  An
 * end that fails closes its stream, so that the other end gets the end of the stream or an
 * error and does not wait until its deadline.
 */
#include <string.h>
#include "fault.h"
#include "scenarios.h"
#include "stream_pair.h"

enum { MUCH = 8000, SOME = 1500, ALL = MUCH + 2 * SOME };

struct talk {
	struct world world;
	weft_stream *a, *b;
	weft_listener *listener; /* NULL: closed */
	char address[WEFT_ADDR_TEXT_MAX];
	char bytes[ALL];
	size_t heard;
	bool said; /* everything was written, and the stream is half-closed */
	int hear_left, serve_left, play_left;
};

/* --- two ends of a pair --------------------------------------------------- */

static void
heard(struct talk *talk, const void *bytes, ssize_t size)
{
	if (size <= 0)
		return;
	EXPECT(talk->heard + (size_t)size <= ALL);
	if (talk->heard + (size_t)size <= ALL)
		EXPECT(memcmp(bytes, talk->bytes + talk->heard, (size_t)size) == 0);
	talk->heard += (size_t)size;
}

static int
hear(void *arg)
{
	struct talk *talk = arg;
	const void *seen;
	char buf[2048];
	ssize_t n = weft_stream_peek(talk->b, 4, &seen, soon());

	if (n >= 4) {
		heard(talk, seen, 4);
		EXPECT(weft_stream_skip(talk->b, 4) == 0);
		n = weft_stream_read_exact(talk->b, buf, 300, soon());
	}
	while (n > 0) {
		heard(talk, buf, n);
		n = weft_stream_read(talk->b, buf, sizeof(buf), soon());
	}
	if (went_in_time(n, 0))
		EXPECT(talk->heard == ALL || !talk->said);
	weft_stream_close(talk->b);
	talk->hear_left = 0;
	return 0;
}

/* Two queued writes, and a half-close behind them. */
static bool
say_rest(struct talk *talk)
{
	weft_span spans[2];
	weft_op ops[2];
	bool well[2] = { false, false };

	for (int i = 0; i < 2; i++) {
		spans[i] = (weft_span){ talk->bytes + MUCH + i * SOME, SOME };
		EXPECT(weft_op_init(&ops[i], NULL, NULL, NULL) == 0);
		well[i] = went_in_time(
			weft_stream_write_op(talk->a, &spans[i], 1, &ops[i], WEFT_NEVER), 0);
		if (!well[i])
			break;
	}
	if (well[0] && well[1])
		talk->said = went_in_time(weft_stream_shutdown(talk->a, soon()), 0);
	if (well[0])
		well[1] = well[1] && went_in_time(weft_op_wait(&ops[1], soon()), SOME);
	if (well[0])
		well[0] = went_in_time(weft_op_wait(&ops[0], soon()), SOME);
	return well[0] && well[1];
}

static void
play_pair(struct talk *talk)
{
	if (!went_in_time(open_stream_pair(&talk->a, &talk->b), 0))
		return;
	(void)went_in_time(weft_stream_set(talk->a, "sndbuf", 2000), 0);
	talk->hear_left = start_on(&talk->world, hear, talk);
	if (!talk->hear_left)
		weft_stream_close(talk->b);
	if (went_in_time(weft_stream_write(talk->a, talk->bytes, MUCH, soon()), MUCH)
	    && !say_rest(talk))
		talk->said = false;
	weft_stream_close(talk->a);
}

/* --- connections ---------------------------------------------------------- */

static int
echo(weft_stream *peer, void *arg)
{
	char line[16];
	ssize_t n;

	(void)arg;
	while ((n = weft_stream_read_until(peer, "\n", line, sizeof(line), soon())) > 0)
		if (!went_in_time(weft_stream_write(peer, line, (size_t)n, soon()), n))
			break;
	EXPECT(n >= 0 || n == WEFT_ECONNRESET || fault_hits() > 0);
	weft_stream_close(peer);
	return 0;
}

static int
serve(void *arg)
{
	struct talk *talk = arg;
	weft_listener *listener = talk->listener;

	if (listener /* it may be closed before this threadlet runs */
	    && !went_in_time(weft_listener_serve(listener, NULL, echo, talk, WEFT_NEVER),
	                     WEFT_ESHUTDOWN)
	    && talk->listener) {
		talk->listener = NULL;
		weft_listener_close(listener);
	}
	talk->serve_left = 0;
	return 0;
}

static bool
say_hello(weft_stream *stream)
{
	char line[16];
	ssize_t n;

	if (!went_in_time(weft_stream_write(stream, "hello\n", 6, soon()), 6))
		return false;
	n = weft_stream_read_until(stream, "\n", line, sizeof(line), soon());
	if (n > 0)
		EXPECT(n == 6 && memcmp(line, "hello\n", 6) == 0);
	return went_in_time(n, 6);
}

static void
visit(struct talk *talk, bool rudely)
{
	weft_stream *stream;

	if (!talk->listener
	    || !went_in_time(weft_stream_connect(talk->address, NULL, &stream, soon()), 0))
		return;
	(void)say_hello(stream);
	if (rudely)
		weft_stream_reset(stream);
	else
		weft_stream_close(stream);
}

static void
play_clients(struct talk *talk)
{
	weft_listener *listener;
	weft_addr addr;

	if (!went_in_time(weft_listener_open("tcp://127.0.0.1:0", NULL, &talk->listener), 0))
		return;
	EXPECT(weft_listener_local(talk->listener, &addr) == 0);
	EXPECT(weft_addr_format(&addr, talk->address, sizeof(talk->address)) > 0);
	talk->serve_left = start_on(&talk->world, serve, talk);
	if (talk->serve_left) {
		visit(talk, false);
		visit(talk, true);
	}
	listener = talk->listener;
	talk->listener = NULL;
	weft_listener_close(listener);
}

static int
play(void *arg)
{
	struct talk *talk = arg;

	play_pair(talk);
	play_clients(talk);
	talk->play_left = 0;
	return 0;
}

void
run_streams(const char *backend)
{
	struct talk talk = { .heard = 0 };

	for (int i = 0; i < ALL; i++)
		talk.bytes[i] = (char)(i * 7 % 251);
	if (!make_world(&talk.world, backend, 0))
		return;
	talk.play_left = start_on(&talk.world, play, &talk);
	await_zero(&talk.world, &talk.play_left);
	await_zero(&talk.world, &talk.hear_left);
	await_zero(&talk.world, &talk.serve_left);
	check_works(&talk.world);
	end_world(&talk.world);
}
