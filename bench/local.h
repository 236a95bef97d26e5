/* local.h - plain loopback sockets. */
#ifndef WEFT_BENCH_LOCAL_H
#define WEFT_BENCH_LOCAL_H

#include "bench.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* Disable Nagle's algorithm. */
static inline void
local_hurry(int fd)
{
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static inline struct sockaddr_in
local_address(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons((uint16_t)port) };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

/* A socket that listens on a free port; fills `port`. */
static inline int
local_listen(int *port)
{
	struct sockaddr_in address = local_address(0);
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	BENCH_CHECK(fd >= 0);
	BENCH_CHECK(bind(fd, (struct sockaddr *)&address, size) == 0);
	BENCH_CHECK(listen(fd, 128) == 0);
	BENCH_CHECK(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
	*port = ntohs(address.sin_port);
	return fd;
}

/* A connection to the port, or -1. */
static inline int
local_try(int port)
{
	struct sockaddr_in address = local_address(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	BENCH_CHECK(fd >= 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
		local_hurry(fd);
		return fd;
	}
	(void)close(fd);
	return -1;
}

static inline int
local_connect(int port)
{
	int fd = local_try(port);

	BENCH_CHECK(fd >= 0);
	return fd;
}

#endif
