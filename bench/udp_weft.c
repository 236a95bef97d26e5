/* udp_weft.c - the UDP echo server with a threadlet: receive a batch, send it. */
#include "bench.h"
#include <weft/dgram.h>
#include <weft/loop.h>
#include <weft/threadlet.h>

#define BATCH      64
#define SPACE_EACH 2048

static weft_loop *loop;
static weft_dgram *dgram;

static int
serve(void *arg)
{
	static char bytes[BATCH][SPACE_EACH];
	static weft_message batch[BATCH];
	int n, sent;

	(void)arg;
	do {
		for (int i = 0; i < BATCH; i++) {
			batch[i].data = bytes[i];
			batch[i].size = SPACE_EACH;
		}
		n = weft_dgram_recv(dgram, batch, BATCH, WEFT_NEVER);
		for (int i = 0; i < n; i += sent) {
			sent = weft_dgram_send(dgram, batch + i, (size_t)(n - i), WEFT_NEVER);
			BENCH_CHECK(sent > 0);
		}
	} while (n > 0 && batch[n - 1].size > 0);
	weft_dgram_close(dgram);
	return n;
}

static void
udp_open(int fd)
{
	weft_go_opts go = { .loop = weft_loop_new(NULL) };
	char address[32];

	(void)snprintf(address, sizeof(address), "fd:%d", fd);
	loop = go.loop;
	BENCH_CHECK(loop);
	BENCH_CHECK(weft_dgram_open(address, NULL, &dgram) == 0);
	BENCH_CHECK(weft_go_with(&go, serve, NULL) > 0);
}

static void
udp_run(void)
{
	BENCH_CHECK(weft_loop_run(loop) == 0);
}

#include "udp_bench.h"
