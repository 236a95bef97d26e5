/* echo_bench.h - CPU time of an echo server per 64-byte message.
 *
 * The server is this process, on the first core; the clients are a child process on
 * the second, which keeps one message under way on each connection.  An
 * implementation supplies
 *
 *   echo_open(listener, backend)   serve connections of that socket
 *   echo_run()                     until all have ended
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ECHO_MAX      1000 /* connections */
#define ECHO_MESSAGES 400000u
#define ECHO_SIZE     64

static void
raise_limit(void)
{
	struct rlimit limit;

	BENCH_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	BENCH_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

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

/* Connect all, keep one message going on each, and close all at the end. */
static void
be_clients(const struct sockaddr_in *addr, int connections)
{
	static struct epoll_event events[ECHO_MAX];
	int fds[ECHO_MAX], ep = epoll_create1(0), on = 1;
	char message[ECHO_SIZE] = { 0 };
	uint64_t done = 0;

	bench_pin(BENCH_OTHER_CORE);
	for (int i = 0; i < connections; i++) {
		struct epoll_event event = { .events = EPOLLIN };

		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		BENCH_CHECK(connect(fds[i], (const struct sockaddr *)addr,
		                    sizeof(*addr))
		            == 0);
		(void)setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on,
		                 sizeof(on));
		event.data.fd = fds[i];
		BENCH_CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &event) == 0);
	}
	for (int i = 0; i < connections; i++)
		BENCH_CHECK(send(fds[i], message, ECHO_SIZE, 0) == ECHO_SIZE);
	while (done < ECHO_MESSAGES) {
		int count = epoll_wait(ep, events, connections, -1);

		for (int i = 0; i < count; i++, done++) {
			int fd = events[i].data.fd;

			BENCH_CHECK(recv(fd, message, ECHO_SIZE, MSG_WAITALL)
			            == ECHO_SIZE);
			BENCH_CHECK(send(fd, message, ECHO_SIZE, 0)
			            == ECHO_SIZE);
		}
	}
	for (int i = 0; i < connections; i++)
		(void)close(fds[i]);
	_exit(0);
}

static double
measure_echo(const char *backend, int connections)
{
	struct sockaddr_in addr;
	int fd = listen_anywhere(&addr), status = 0;
	uint64_t begin;
	pid_t child;

	raise_limit();
	child = fork();
	BENCH_CHECK(child >= 0);
	if (child == 0)
		be_clients(&addr, connections);
	echo_open(fd, backend);
	begin = bench_cpu_ns();
	echo_run();
	begin = bench_cpu_ns() - begin;
	BENCH_CHECK(waitpid(child, &status, 0) == child && status == 0);
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

/* A peer has one way for both. */
static const struct bench_row echo_rows[] = {
	{ "echo.callback.cpu.512", callback_512 },
	{ "echo.callback.cpu.512.epoll", callback_512_epoll },
	{ "echo.threadlet.cpu.64", threadlet_64 },
	{ "echo.threadlet.cpu.1000", threadlet_1000 },
	{ "echo.threadlet.cpu.1000.epoll", threadlet_1000_epoll },
};

BENCH_MAIN(echo_rows)
