/* serve_weft.c - the echo server with threadlets on streams: read, write, close. */
#include "bench.h"
#include <stdio.h>
#include <weft/listener.h>
#include <weft/loop.h>
#include <weft/scope.h>
#include <weft/threadlet.h>

static weft_loop *loop;
static weft_listener *listener;
static int open_peers;

static int
serve(weft_stream *peer, void *arg)
{
	char buf[4096];
	ssize_t n;

	(void)arg;
	open_peers++;
	while ((n = weft_stream_read(peer, buf, sizeof(buf), WEFT_NEVER)) > 0)
		if (weft_stream_write(peer, buf, (size_t)n, WEFT_NEVER) < 0)
			break;
	weft_stream_close(peer);
	if (--open_peers == 0)
		weft_listener_close(listener);
	return 0;
}

static int
serve_all(void *arg)
{
	(void)arg;
	(void)weft_listener_serve(listener, NULL, serve, NULL, WEFT_NEVER);
	return 0;
}

static void
echo_open(int fd, const char *backend)
{
	weft_loop_opts opts = { .backend = backend };
	weft_go_opts go = { 0 };
	char address[32];

	(void)snprintf(address, sizeof(address), "fd:%d", fd);
	loop = go.loop = weft_loop_new(&opts);
	BENCH_CHECK(loop);
	BENCH_CHECK(weft_listener_open(address, NULL, &listener) == 0);
	BENCH_CHECK(weft_go_with(&go, serve_all, NULL) > 0);
}

static void
echo_run(void)
{
	BENCH_CHECK(weft_loop_run(loop) == 0);
}

#include "echo_bench.h"
