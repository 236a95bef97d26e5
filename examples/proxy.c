/* proxy.c - a TCP proxy: both directions at once, each may end first. */
#include <stdio.h>
#include <weft/weft.h>

struct way {
	weft_stream *from, *to;
};

static int
pump(void *arg)
{
	struct way *way = arg;
	const void *data;
	ssize_t n, sent;

	while ((n = weft_stream_peek(way->from, 1, &data,
	                             weft_after(60 * WEFT_S)))
	       > 0) {
		sent = weft_stream_write(way->to, data, (size_t)n,
		                         weft_after(10 * WEFT_S));
		if (sent < 0)
			return (int)sent;
		weft_stream_skip(way->from, (size_t)n);
	}
	return n < 0 ? (int)n
	             : weft_stream_shutdown(way->to, weft_after(WEFT_S));
}

static int
serve(weft_stream *client, void *target)
{
	weft_stream *server;
	weft_scope scope;
	int rc = weft_stream_connect(target, NULL, &server,
	                             weft_after(3 * WEFT_S));

	if (rc < 0) {
		fprintf(stderr, "%s\n", weft_detail());
		weft_stream_close(client);
		return rc;
	}
	struct way up = { client, server }, down = { server, client };

	weft_scope_open(&scope, WEFT_FAIL_FAST, WEFT_NEVER);
	weft_scope_go(&scope, pump, &up);
	weft_scope_go(&scope, pump, &down);
	rc = weft_scope_close(&scope);
	weft_stream_close(server);
	weft_stream_close(client);
	return rc;
}

int
main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s LISTEN TARGET\n", argv[0]);
		return 2;
	}
	return weft_serve(argv[1], serve, argv[2]);
}
