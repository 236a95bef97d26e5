/* echo_uv.c - the echo server on libuv: read, uv_try_write(), close. */
#include "bench.h"
#include <uv.h>

struct peer {
	uv_tcp_t tcp;
	char buf[65536]; /* one per connection, so that no read waits for another */
};

static uv_loop_t loop;
static uv_tcp_t listener;
static int open_peers;

static void
on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	struct peer *peer = (struct peer *)handle;

	(void)size;
	*buf = uv_buf_init(peer->buf, sizeof(peer->buf));
}

static void
on_closed(uv_handle_t *handle)
{
	free(handle);
	if (--open_peers == 0)
		uv_close((uv_handle_t *)&listener, NULL);
}

static void
on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
	uv_buf_t out = uv_buf_init(buf->base, size > 0 ? (unsigned)size : 0);

	if (size < 0)
		uv_close((uv_handle_t *)stream, on_closed);
	else if (size > 0) /* the cheapest way: no write request is made */
		(void)uv_try_write(stream, &out, 1);
}

static void
on_connection(uv_stream_t *server, int status)
{
	struct peer *peer = calloc(1, sizeof(*peer));

	BENCH_CHECK(status == 0 && peer);
	BENCH_CHECK(uv_tcp_init(&loop, &peer->tcp) == 0);
	BENCH_CHECK(uv_accept(server, (uv_stream_t *)&peer->tcp) == 0);
	open_peers++;
	BENCH_CHECK(uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read) == 0);
}

static void
echo_open(int fd, const char *backend)
{
	(void)backend; /* libuv has only one */
	BENCH_CHECK(uv_loop_init(&loop) == 0);
	BENCH_CHECK(uv_tcp_init(&loop, &listener) == 0);
	BENCH_CHECK(uv_tcp_open(&listener, fd) == 0);
	BENCH_CHECK(uv_listen((uv_stream_t *)&listener, 1024, on_connection) == 0);
}

static void
echo_run(void)
{
	BENCH_CHECK(uv_run(&loop, UV_RUN_DEFAULT) == 0);
}

#include "echo_bench.h"
