/* relay.c - a server with callbacks: what one peer sends goes to all others. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#define PEERS 100

struct letter { /* a piece of text, on its way to one peer */
	weft_op op;
	weft_span span;
	char text[];
};

static weft_stream *peers[PEERS];

static void
on_sent(weft_op *op, int64_t result, void *letter)
{
	(void)op, (void)result; /* on_data reports a lost peer, too */
	free(letter);
}

static void
send_copy(weft_stream *to, const void *data, size_t size)
{
	struct letter *letter = malloc(sizeof *letter + size);

	if (!letter)
		return;
	memcpy(letter->text, data, size);
	letter->span = (weft_span){ letter->text, size };
	weft_op_init(&letter->op, NULL, on_sent, letter);
	if (weft_stream_write_op(to, &letter->span, 1, &letter->op, WEFT_NEVER)
	    < 0)
		free(letter); /* refused: no result follows */
}

static void
on_data(weft_stream *stream, const void *data, ssize_t size, void *slot)
{
	if (size <= 0) /* the end, an error, or the loop stops */
		return weft_stream_close(stream);
	for (weft_stream **to = peers; to < peers + PEERS; to++)
		if (*to && to != slot)
			send_copy(*to, data, (size_t)size);
	weft_stream_skip(stream, (size_t)size);
}

static void
on_close(void *slot)
{
	*(weft_stream **)slot = NULL;
}

static void
on_accept(weft_listener *listener, weft_stream *stream, int error, void *arg)
{
	static const weft_stream_events events = { .on_data = on_data,
		                                   .on_close = on_close };
	weft_stream **slot = peers;

	(void)listener, (void)error, (void)arg;
	while (slot < peers + PEERS && *slot)
		slot++;
	if (!stream || slot == peers + PEERS)
		return weft_stream_reset(stream); /* accepts NULL */
	*slot = stream;
	weft_stream_set(stream, "write_max", 1 << 20); /* for slow readers */
	weft_stream_start(stream, NULL, &events, slot);
}

static void
on_signal(weft_watch *watch, int signo, void *loop)
{
	(void)watch, (void)signo;
	weft_loop_shutdown(loop);
}

int
main(int argc, char **argv)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_watch term = WEFT_INIT;
	weft_listener *listener;

	if (argc < 2 || weft_listener_open(argv[1], NULL, &listener) < 0
	    || weft_watch_start_signal(loop, &term, SIGTERM, on_signal, loop)
	               < 0
	    || weft_listener_start(listener, loop, on_accept, NULL) < 0
	    || weft_loop_run(loop) < 0)
		return 1;
	weft_listener_close(listener);
	return weft_loop_free(loop) < 0;
}
