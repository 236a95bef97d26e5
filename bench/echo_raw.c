/* echo_raw.c - a hand-written echo server on epoll: wait, receive, send. */
#include "bench.h"
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int ep, listening, open_peers;

static void
add(int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	BENCH_CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event) == 0);
}

static void
echo_open(int listener, const char *backend)
{
	(void)backend;
	listening = listener;
	ep = epoll_create1(0);
	BENCH_CHECK(ep >= 0);
	add(listener);
}

static void
serve(int fd)
{
	char buf[4096];
	ssize_t n;

	if (fd == listening) {
		int peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK);

		if (peer >= 0) {
			open_peers++;
			add(peer);
		}
		return;
	}
	n = recv(fd, buf, sizeof(buf), 0);
	if (n > 0) {
		BENCH_CHECK(send(fd, buf, (size_t)n, MSG_NOSIGNAL) == n);
	} else {
		(void)close(fd);
		open_peers--;
	}
}

static void
echo_run(void)
{
	struct epoll_event events[256];

	do {
		int count = epoll_wait(ep, events, 256, -1);

		for (int i = 0; i < count; i++)
			serve(events[i].data.fd);
	} while (open_peers > 0);
}

#include "echo_bench.h"
