/* pipeline.c - pipelined requests, sixteen at a time, by a client that is cheaper than servers.
 *
 *     pipeline PORT PATH
 *
 * One batch is in flight on each of 64 connections.  All replies have the size of the first one,
 * so bytes are counted and not parsed; a piece that begins with a reply must begin with a
 * status of 200.  It prints the number of replies per second.
 */
#include "bench.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 64
#define DEEP        16
#define WARM_NS     BENCH_S
#define MEASURE_NS  (2 * BENCH_S)

struct connection {
	int fd;
	size_t left; /* bytes to receive of this batch */
};

static struct sockaddr_in addr = { .sin_family = AF_INET };
static char batch[DEEP * 256], buf[65536];
static size_t request_size, reply_size;
static uint64_t replies;

static int
start(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	BENCH_CHECK(fd >= 0);
	BENCH_CHECK(connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void
learn_size(void)
{
	int fd = start();
	ssize_t n;

	BENCH_CHECK(send(fd, batch, request_size, 0) == (ssize_t)request_size);
	n = recv(fd, buf, sizeof(buf), 0); /* short: one recv() gets it */
	BENCH_CHECK(n > 12 && memcmp(buf, "HTTP/1.1 200", 12) == 0);
	reply_size = (size_t)n;
	(void)close(fd);
}

static void
ask(struct connection *c)
{
	size_t size = DEEP * request_size;

	BENCH_CHECK(send(c->fd, batch, size, 0) == (ssize_t)size);
	c->left = DEEP * reply_size;
}

static void
hear(struct connection *c)
{
	ssize_t n = recv(c->fd, buf, sizeof(buf), 0);

	BENCH_CHECK(n > 0 && (size_t)n <= c->left);
	BENCH_CHECK(c->left % reply_size != 0 || n < 12 || memcmp(buf, "HTTP/1.1 200", 12) == 0);
	c->left -= (size_t)n;
	if (c->left == 0) {
		replies += DEEP;
		ask(c);
	}
}

static void
run(int poller, uint64_t duration_ns)
{
	struct epoll_event events[CONNECTIONS];
	uint64_t end = bench_wall_ns() + duration_ns;

	while (bench_wall_ns() < end) {
		int n = epoll_wait(poller, events, CONNECTIONS, 100);

		for (int i = 0; i < n; i++)
			hear(events[i].data.ptr);
	}
}

int
main(int argc, char **argv)
{
	static struct connection all[CONNECTIONS];
	int poller = epoll_create1(0);
	uint64_t begin;

	if (argc != 3)
		bench_die("usage: %s PORT PATH", argv[0]);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons((uint16_t)strtol(argv[1], NULL, 10));
	for (int i = 0; i < DEEP; i++)
		request_size = (size_t)snprintf(batch + (size_t)i * request_size, 256,
		                                "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
		                                argv[2]);
	learn_size();
	for (int i = 0; i < CONNECTIONS; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = &all[i] };

		all[i].fd = start();
		BENCH_CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, all[i].fd, &event) == 0);
		ask(&all[i]);
	}
	run(poller, WARM_NS);
	begin = bench_wall_ns();
	replies = 0;
	run(poller, MEASURE_NS);
	(void)printf("%.1f\n", (double)replies * BENCH_S / (double)(bench_wall_ns() - begin));
	return 0;
}
