/* serve_test.c - complete servers with weft_serve(). */
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#include "unit/probe.h"

/* Returns a port that was free a moment ago. */
static void
choose(struct sockaddr_in *addr, char *text, size_t size)
{
	socklen_t length = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET };
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	OK(bind(fd, (struct sockaddr *)addr, length));
	OK(getsockname(fd, (struct sockaddr *)addr, &length));
	OK(close(fd));
	(void)snprintf(text, size, "tcp://127.0.0.1:%d", ntohs(addr->sin_port));
}

static void *
visit(void *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char byte;

	while (connect(fd, arg, sizeof(struct sockaddr_in)) < 0) {
		OK(close(fd));
		(void)sched_yield();
		fd = socket(AF_INET, SOCK_STREAM, 0);
	}
	put(fd, "x");
	CHECK_EQ(recv(fd, &byte, 1, 0), 1);
	OK(kill(getpid(), SIGTERM));
	OK(close(fd));
	return NULL;
}

static int
echo(weft_stream *peer, void *arg)
{
	char byte;

	(void)weft__add((weft__a32 *)arg, 1, WEFT__RELAXED);
	while (weft_stream_read(peer, &byte, 1, WEFT_NEVER) > 0)
		CHECK_EQ(weft_stream_write(peer, &byte, 1, WEFT_NEVER), 1);
	weft_stream_close(peer);
	return 0;
}

TEST(weft_serve_serves_until_sigterm)
{
	struct sockaddr_in addr;
	weft__a32 served = { 0 };
	char address[64];
	pthread_t client;

	choose(&addr, address, sizeof(address));
	client = thread(visit, &addr);
	OK(weft_serve(address, echo, &served));
	OK(pthread_join(client, NULL));
	CHECK_EQ(weft__load(&served, WEFT__RELAXED), 1);
}

TEST(weft_serve_fails_if_it_cannot_listen)
{
	CHECK_EQ(weft_serve("tcp://nowhere", echo, NULL), 1);
}
