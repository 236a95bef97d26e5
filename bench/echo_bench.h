/* echo_bench.h - CPU time of an echo server per 64-byte message.
 *
 * The server is this process, on the first core.  The clients are a child process on the
 * second, which keeps one message in flight on each connection.  An implementation defines
 *
 *   echo_open(listener, backend)   start to serve connections of that socket
 *   echo_run()                     run until all connections have ended
 */
#include <errno.h>
#include "child.h"
#include "echo_clients.h"

static int
listen_anywhere(struct sockaddr_in *addr)
{
	socklen_t size = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET };
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	BENCH_CHECK(fd >= 0);
	BENCH_CHECK(bind(fd, (struct sockaddr *)addr, size) == 0);
	BENCH_CHECK(listen(fd, 1024) == 0);
	BENCH_CHECK(getsockname(fd, (struct sockaddr *)addr, &size) == 0);
	return fd;
}

static double
measure_echo(const char *backend, int connections)
{
	struct sockaddr_in addr;
	int fd = listen_anywhere(&addr);
	uint64_t begin;
	pid_t child;

	(void)raise_limit();
	child = child_fork();
	if (child == 0)
		be_clients(&addr, connections);
	echo_open(fd, backend);
	begin = bench_cpu_ns();
	echo_run();
	begin = bench_cpu_ns() - begin;
	child_wait(child);
	return (double)begin / ECHO_MESSAGES;
}

static double
callback_512(void)
{
	return measure_echo(NULL, 512);
}

static double
callback_512_epoll(void)
{
	return measure_echo("epoll", 512);
}

static double
threadlet_64(void)
{
	return measure_echo(NULL, 64);
}

static double
threadlet_1000(void)
{
	return measure_echo(NULL, 1000);
}

static double
threadlet_1000_epoll(void)
{
	return measure_echo("epoll", 1000);
}

/* A peer has one implementation for callbacks and threadlets. */
static const struct bench_row echo_rows[] = {
	{ "echo.callback.cpu.512", callback_512 },
	{ "echo.callback.cpu.512.epoll", callback_512_epoll },
	{ "echo.threadlet.cpu.64", threadlet_64 },
	{ "echo.threadlet.cpu.1000", threadlet_1000 },
	{ "echo.threadlet.cpu.1000.epoll", threadlet_1000_epoll },
};

BENCH_MAIN(echo_rows)
