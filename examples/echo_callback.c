/* echo_callback.c - an echo server with callbacks: one struct per peer.
 *
 * While PEERS are connected it does not accept: others wait in the backlog.
 */
#include <stdlib.h>
#include <weft/weft.h>

#define PEERS 100

static weft_listener *listener;
static int count; /* of peers */

struct peer {
	weft_stream *stream;
	weft_op write;
	weft_span span; /* being written */
};

static void
on_written(weft_op *op, int64_t result, void *arg)
{
	struct peer *peer = arg;

	(void)op, peer->span.size = 0;
	if (result < 0 || weft_stream_skip(peer->stream, (size_t)result) < 0)
		weft_stream_reset(peer->stream);
}

static void
on_data(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct peer *peer = arg;

	if (size <= 0)
		return weft_stream_close(stream);
	if (peer->span.size == 0) { /* else on_data comes again */
		peer->span = (weft_span){ data, (size_t)size };
		weft_stream_write_op(stream, &peer->span, 1, &peer->write,
		                     weft_after(5 * WEFT_S));
	}
}

static void on_accept(weft_listener *, weft_stream *, int error, void *arg);

static void
on_close(void *arg)
{
	struct peer *peer = arg;

	if (count-- == PEERS)
		weft_listener_start(listener, peer->write.loop, on_accept,
		                    NULL);
	free(peer);
}

static void
on_accept(weft_listener *from, weft_stream *stream, int error, void *arg)
{
	static const weft_stream_events events = { .on_data = on_data,
		                                   .on_close = on_close };
	struct peer *peer = stream ? calloc(1, sizeof *peer) : NULL;

	(void)error, (void)arg;
	if (!peer)
		return weft_stream_reset(stream); /* accepts NULL */
	if (++count == PEERS)
		weft_listener_stop(from);
	peer->stream = stream;
	weft_op_init(&peer->write, NULL, on_written, peer);
	weft_stream_start(stream, NULL, &events, peer);
}

int
main(int argc, char **argv)
{
	weft_loop *loop = weft_loop_new(NULL);

	return argc < 2 || weft_listener_open(argv[1], NULL, &listener) < 0
	       || weft_listener_start(listener, loop, on_accept, NULL) < 0
	       || weft_loop_run(loop) < 0;
}
