/* udp_uv.c - the UDP echo server on libuv, which receives in batches of twenty.
 *
 * It sends directly, without send requests: many messages in one call if libuv supports that
 * (1.50), otherwise one by one, which is cheaper than send requests.
 */
#include "bench.h"
#include <uv.h>

#define BATCH 20 /* what libuv receives at a time */

static uv_loop_t loop;
static uv_udp_t udp;
static char space[BATCH * 65536];

static void
on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	(void)handle;
	(void)size;
	*buf = uv_buf_init(space, sizeof(space));
}

#if UV_VERSION_HEX >= ((1 << 16) | (50 << 8))
static uv_buf_t spans[BATCH];
static struct sockaddr_storage names[BATCH];
static unsigned waiting;

static void
flush(void)
{
	struct sockaddr *to[BATCH];
	unsigned lens[BATCH];
	uv_buf_t *bufs[BATCH];

	for (unsigned i = 0; i < waiting; i++) {
		to[i] = (struct sockaddr *)&names[i];
		bufs[i] = &spans[i];
		lens[i] = 1;
	}
	if (waiting > 0)
		BENCH_CHECK(uv_udp_try_send2(&udp, waiting, bufs, lens, to, 0) == (int)waiting);
	waiting = 0;
}

static void
echo(uv_buf_t out, const struct sockaddr *from)
{
	spans[waiting] = out;
	memcpy(&names[waiting++], from, sizeof(struct sockaddr_in));
	if (waiting == BATCH)
		flush();
}
#else
static void
flush(void)
{
}

static void
echo(uv_buf_t out, const struct sockaddr *from)
{
	BENCH_CHECK(uv_udp_try_send(&udp, &out, 1, from) >= 0);
}
#endif

static void
on_recv(uv_udp_t *handle, ssize_t size, const uv_buf_t *buf, const struct sockaddr *from,
        unsigned flags)
{
	(void)handle;
	(void)flags;
	BENCH_CHECK(size >= 0);
	if (!from) { /* the batch has ended, or was empty */
		flush();
		return;
	}
	echo(uv_buf_init(buf->base, (unsigned)size), from);
	if (size == 0) {
		flush();
		(void)uv_udp_recv_stop(&udp);
		uv_stop(&loop);
	}
}

static void
udp_open(int fd)
{
	BENCH_CHECK(uv_loop_init(&loop) == 0);
	BENCH_CHECK(uv_udp_init_ex(&loop, &udp, UV_UDP_RECVMMSG) == 0);
	BENCH_CHECK(uv_udp_open(&udp, fd) == 0);
	BENCH_CHECK(uv_udp_recv_start(&udp, on_alloc, on_recv) == 0);
}

static void
udp_run(void)
{
	(void)uv_run(&loop, UV_RUN_DEFAULT);
}

#include "udp_bench.h"
