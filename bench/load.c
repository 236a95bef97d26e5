/* load.c - requests at a given rate, whether they are answered or not (open loop).
 *
 *     load PORT PATH RATE
 *
 * Sends RATE requests per second, each on an idle connection; a request that finds no idle
 * connection is not sent.  With RATE 0, it sends the next request when one is answered, on 64
 * connections (closed loop).  It prints how many requests per second were answered with 200
 * within a second.
 */
#include "bench.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 1000
#define CLOSED_LOOP 64
#define WARM_NS     (BENCH_S / 2)
#define MEASURE_NS  (2 * BENCH_S)
#define PATIENCE_NS BENCH_S

struct connection {
	int fd;
	uint64_t asked; /* time of the request in flight; 0: none */
};

static struct sockaddr_in addr = { .sin_family = AF_INET };
static struct connection all[CONNECTIONS], *idle[CONNECTIONS];
static int poller, count = CONNECTIONS, idle_count;
static char request[256];
static uint64_t begin, good;

static void
put_idle(struct connection *c)
{
	c->asked = 0;
	idle[idle_count++] = c;
}

static void
reopen(struct connection *c)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
	int on = 1;

	if (c->fd > 0)
		(void)close(c->fd);
	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	BENCH_CHECK(c->fd >= 0);
	BENCH_CHECK(connect(c->fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	BENCH_CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event) == 0);
}

/* Use the connection that became idle last. */
static void
ask(uint64_t now)
{
	struct connection *c = idle[--idle_count];

	c->asked = now;
	if (send(c->fd, request, strlen(request), MSG_NOSIGNAL) < 0) {
		reopen(c);
		put_idle(c);
	}
}

/* A reply is short, so one recv() gets all of it. */
static void
hear(struct connection *c, uint64_t now)
{
	char buf[4096];
	ssize_t n = recv(c->fd, buf, sizeof(buf) - 1, MSG_DONTWAIT);
	bool was_asked = c->asked != 0;

	buf[n > 0 ? n : 0] = '\0';
	if (n > 12 && was_asked && memcmp(buf + 9, "200", 3) == 0 && now - c->asked < PATIENCE_NS
	    && now >= begin + WARM_NS)
		good++;
	if (n <= 0 || strcasestr(buf, "connection: close"))
		reopen(c);
	if (was_asked)
		put_idle(c);
}

/* How many requests should have been sent by now. */
static uint64_t
due(uint64_t now, double rate, uint64_t asked)
{
	if (rate == 0)
		return asked + (uint64_t)idle_count;
	return (uint64_t)((double)(now - begin) * rate / (double)BENCH_S);
}

static void
run(double rate)
{
	struct epoll_event events[256];
	uint64_t now = begin = bench_wall_ns(), asked = 0;

	while (now < begin + WARM_NS + MEASURE_NS) {
		int n = epoll_wait(poller, events, 256, rate == 0 ? 100 : 0);

		now = bench_wall_ns();
		for (int i = 0; i < n; i++)
			hear(events[i].data.ptr, now);
		for (uint64_t end = due(now, rate, asked); asked < end; asked++)
			if (idle_count > 0)
				ask(now);
	}
}

int
main(int argc, char **argv)
{
	double rate;

	if (argc != 4)
		bench_die("usage: %s PORT PATH RATE", argv[0]);
	rate = strtod(argv[3], NULL);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons((uint16_t)strtol(argv[1], NULL, 10));
	(void)snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
	               argv[2]);
	poller = epoll_create1(0);
	if (rate == 0)
		count = CLOSED_LOOP;
	for (int i = 0; i < count; i++) {
		reopen(&all[i]);
		put_idle(&all[i]);
	}
	run(rate);
	(void)printf("%.1f\n", (double)good * BENCH_S / MEASURE_NS);
	return 0;
}
