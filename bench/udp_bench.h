/* udp_bench.h - CPU time of a UDP echo server per 64-byte message.
 *
 * The server is this process, on the first core.  The client is a child on the second, which
 * keeps a window of messages in flight and sends a new one for each that comes back.  The window
 * fits the buffers of both sockets, so none is lost.  An empty message ends the run.  An
 * implementation defines
 *
 *   udp_open(fd)   start to echo the messages of that socket
 *   udp_run()      run until an empty message arrives
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include "child.h"

#define UDP_MESSAGES 400000
#define UDP_SIZE     64
#define UDP_WINDOW   128
#define UDP_BATCH    64

static int
bind_anywhere(struct sockaddr_in *addr)
{
	socklen_t size = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET };
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	BENCH_CHECK(fd >= 0);
	BENCH_CHECK(bind(fd, (struct sockaddr *)addr, size) == 0);
	BENCH_CHECK(getsockname(fd, (struct sockaddr *)addr, &size) == 0);
	return fd;
}

static void
be_client(const struct sockaddr_in *addr)
{
	static char bytes[UDP_BATCH][UDP_SIZE];
	struct mmsghdr batch[UDP_BATCH] = { 0 };
	struct iovec spans[UDP_BATCH];
	int fd = socket(AF_INET, SOCK_DGRAM, 0), done = 0;

	BENCH_CHECK(connect(fd, (const struct sockaddr *)addr, sizeof(*addr))
	            == 0);
	for (int i = 0; i < UDP_BATCH; i++) {
		spans[i] = (struct iovec){ bytes[i], UDP_SIZE };
		batch[i].msg_hdr.msg_iov = &spans[i];
		batch[i].msg_hdr.msg_iovlen = 1;
	}
	for (int i = 0; i < UDP_WINDOW; i += UDP_BATCH)
		BENCH_CHECK(sendmmsg(fd, batch, UDP_BATCH, 0) == UDP_BATCH);
	while (done < UDP_MESSAGES) {
		int n = recvmmsg(fd, batch, UDP_BATCH, MSG_WAITFORONE, NULL);

		BENCH_CHECK(n > 0 && batch[n - 1].msg_len == UDP_SIZE);
		BENCH_CHECK(sendmmsg(fd, batch, (unsigned)n, 0) == n);
		done += n;
	}
	BENCH_CHECK(send(fd, NULL, 0, 0) == 0);
	_exit(0);
}

static double
udp_echo_cpu(void)
{
	struct sockaddr_in addr;
	int fd = bind_anywhere(&addr);
	uint64_t begin;
	pid_t child = child_fork();

	if (child == 0)
		be_client(&addr);
	udp_open(fd);
	begin = bench_cpu_ns();
	udp_run();
	begin = bench_cpu_ns() - begin;
	child_wait(child);
	return (double)begin / UDP_MESSAGES;
}

static const struct bench_row udp_rows[] = {
	{ "udp.echo.cpu", udp_echo_cpu },
};

BENCH_MAIN(udp_rows)
