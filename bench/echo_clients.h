/* echo_clients.h - the clients of an echo server, the same for all implementations.
 *
 * They keep one 64-byte message in flight on each connection.
 */
#ifndef WEFT_BENCH_ECHO_CLIENTS_H
#define WEFT_BENCH_ECHO_CLIENTS_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "limits.h"

#define ECHO_MAX      1000 /* connections */
#define ECHO_MESSAGES 400000u
#define ECHO_SIZE     64

/* Open all connections, keep one message in flight on each, and close all at the end. */
static void
be_clients(const struct sockaddr_in *addr, int connections)
{
	static struct epoll_event events[ECHO_MAX];
	int fds[ECHO_MAX], poller = epoll_create1(0), on = 1;
	char message[ECHO_SIZE] = { 0 };
	uint64_t done = 0;

	for (int i = 0; i < connections; i++) {
		struct epoll_event event = { .events = EPOLLIN };

		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		BENCH_CHECK(connect(fds[i], (const struct sockaddr *)addr,
		                    sizeof(*addr))
		            == 0);
		(void)setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on,
		                 sizeof(on));
		event.data.fd = fds[i];
		BENCH_CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, fds[i], &event)
		            == 0);
	}
	for (int i = 0; i < connections; i++)
		BENCH_CHECK(send(fds[i], message, ECHO_SIZE, 0) == ECHO_SIZE);
	while (done < ECHO_MESSAGES) {
		int count = epoll_wait(poller, events, connections, -1);

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

#endif
