/* semantics_sockets.c - stream sockets, on any kernel.
 *
 * Connections use the loopback, where packets may be delayed: tests wait for readiness, or let
 * everything settle before they check.  What the two families do differently is tested for
 * each.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/un.h>
#include "sim/selftest/semantics.h"

static int
listen_on(const struct host *host, int backlog, struct sockaddr_in *name)
{
	socklen_t size = sizeof(*name);
	int fd = ok(host, host->sys->socket(AF_INET, SOCK_STREAM, 0));

	*name = (struct sockaddr_in){ .sin_family = AF_INET,
		                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK_EQ(host->sys->bind(fd, (struct sockaddr *)name, size), 0);
	CHECK_EQ(host->sys->listen(fd, backlog), 0);
	CHECK_EQ(host->sys->sockname(fd, (struct sockaddr *)name, &size), 0);
	CHECK_EQ(size, sizeof(*name));
	return fd;
}

static int
connect_to(const struct host *host, const struct sockaddr_in *name)
{
	int fd = ok(host, host->sys->socket(AF_INET, SOCK_STREAM, 0));
	int rc = host->sys->connect(fd, (const struct sockaddr *)name, sizeof(*name));

	CHECK_EQ(rc == 0 || rc == -EINPROGRESS ? 0 : rc, 0);
	return fd;
}

static void
tcp_pair(const struct host *host, int out[2])
{
	struct sockaddr_in name;
	int listener = listen_on(host, 5, &name);

	out[0] = connect_to(host, &name);
	CHECK_EQ(ready_soon(host, listener, POLLIN), POLLIN);
	out[1] = ok(host, host->sys->accept(listener));
	CHECK_EQ(ready_soon(host, out[0], POLLOUT), POLLOUT);
	end(host, listener, -1);
}

static int
error_of(const struct host *host, int fd)
{
	int error = -1;

	CHECK_EQ(host->sys->so_error(fd, &error), 0);
	return error;
}

/* --- connecting ------------------------------------------------------- */

static void
tcp_connects_and_carries_bytes(const struct host *host)
{
	int fds[2];
	char buf[16];

	tcp_pair(host, fds);
	CHECK_EQ(error_of(host, fds[0]), 0);
	CHECK_EQ(host->sys->recv(fds[1], buf, sizeof(buf), 0), -EAGAIN);
	CHECK_EQ(host->sys->send(fds[0], "h", 1, 0), 1);
	CHECK_EQ(ready_soon(host, fds[1], POLLIN), POLLIN);
	CHECK_EQ(host->sys->recv(fds[1], buf, sizeof(buf), MSG_PEEK), 1);
	CHECK_EQ(host->sys->read(fds[1], buf, sizeof(buf)), 1);
	CHECK_EQ(buf[0], 'h');
	CHECK_EQ(host->sys->recv(fds[1], buf, sizeof(buf), 0), -EAGAIN);
	CHECK_EQ(host->sys->recv(fds[1], buf, 0, 0), -EAGAIN);
	CHECK_EQ(host->sys->send(fds[1], buf, 0, 0), 0);
	end(host, fds[0], fds[1]);
}

static void
tcp_connect_reports_its_success_once(const struct host *host)
{
	struct sockaddr_in name;
	int listener = listen_on(host, 5, &name), fd = connect_to(host, &name);
	int rc;

	CHECK_EQ(ready_soon(host, fd, POLLOUT), POLLOUT);
	rc = host->sys->connect(fd, (struct sockaddr *)&name, sizeof(name));
	CHECK_EQ(rc == 0 || rc == -EISCONN ? 0 : rc, 0);
	CHECK_EQ(host->sys->connect(fd, (struct sockaddr *)&name, sizeof(name)), -EISCONN);
	end(host, fd, listener);
}

static void
tcp_refusal_is_an_error_that_is_reported_once(const struct host *host)
{
	struct sockaddr_in name;
	int fd, rc;

	end(host, listen_on(host, 5, &name), -1);
	fd = ok(host, host->sys->socket(AF_INET, SOCK_STREAM, 0));
	rc = host->sys->connect(fd, (struct sockaddr *)&name, sizeof(name));
	if (rc == -EINPROGRESS) {
		CHECK_EQ(ready_soon(host, fd, POLLIN | POLLOUT | POLLRDHUP),
		         POLLIN | POLLOUT | POLLRDHUP | POLLERR | POLLHUP);
		CHECK_EQ(error_of(host, fd), ECONNREFUSED);
	} else {
		CHECK_EQ(rc, -ECONNREFUSED);
	}
	CHECK_EQ(error_of(host, fd), 0);
	CHECK_EQ(host->sys->send(fd, "x", 1, 0), -EPIPE);
	end(host, fd, -1);
}

static void
tcp_refusal_is_reported_by_recv_or_the_next_connect(const struct host *host)
{
	struct sockaddr_in name;
	char buf[4];
	int fds[2];

	end(host, listen_on(host, 5, &name), -1);
	for (int i = 0; i < 2; i++)
		fds[i] = connect_to(host, &name);
	settle(host);
	CHECK_EQ(host->sys->recv(fds[0], buf, 4, 0), -ECONNREFUSED);
	CHECK_EQ(host->sys->recv(fds[0], buf, 4, 0), 0);
	CHECK_EQ(host->sys->connect(fds[1], (struct sockaddr *)&name, sizeof(name)), -ECONNREFUSED);
	CHECK_EQ(error_of(host, fds[1]), 0);
	end(host, fds[0], fds[1]);
}

static void
tcp_socket_without_connection_says_so(const struct host *host)
{
	int fd = ok(host, host->sys->socket(AF_INET, SOCK_STREAM, 0));
	char buf[4];

	CHECK_EQ(ready_now(host, fd, POLLIN | POLLOUT), POLLOUT | POLLHUP);
	CHECK_EQ(host->sys->recv(fd, buf, 4, 0), -ENOTCONN);
	CHECK_EQ(host->sys->send(fd, buf, 4, 0), -EPIPE);
	CHECK_EQ(host->sys->shutdown(fd, SHUT_WR), -ENOTCONN);
	CHECK_EQ(host->sys->accept(fd), -EINVAL);
	CHECK_EQ(host->sys->shutdown(fd, 9), -EINVAL);
	end(host, fd, -1);
}

static void
tcp_names_are_taken_once(const struct host *host)
{
	struct sockaddr_in name, other;
	int listener = listen_on(host, 5, &name);
	int fd = ok(host, host->sys->socket(AF_INET, SOCK_STREAM, 0));
	socklen_t size = sizeof(other);

	CHECK_EQ(host->sys->bind(fd, (struct sockaddr *)&name, sizeof(name)), -EADDRINUSE);
	name.sin_port = 0;
	CHECK_EQ(host->sys->bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	CHECK_EQ(host->sys->bind(fd, (struct sockaddr *)&name, sizeof(name)), -EINVAL);
	CHECK_EQ(host->sys->bind(fd, (struct sockaddr *)&name, 3), -EINVAL);
	CHECK_EQ(host->sys->sockname(fd, (struct sockaddr *)&other, &size), 0);
	CHECK_EQ(other.sin_port != 0, 1);
	CHECK_EQ(other.sin_family, AF_INET);
	end(host, fd, listener);
}

static void
tcp_backlog_that_is_full_keeps_others_waiting(const struct host *host)
{
	struct sockaddr_in name;
	int listener = listen_on(host, 1, &name), fds[3];

	for (int i = 0; i < 2; i++) { /* one more than the backlog */
		fds[i] = connect_to(host, &name);
		CHECK_EQ(ready_soon(host, fds[i], POLLOUT), POLLOUT);
	}
	fds[2] = connect_to(host, &name);
	settle(host); /* it waits, or a stricter kernel has refused it */
	CHECK_EQ((ready_now(host, fds[2], POLLOUT) & (POLLOUT | POLLERR)) == POLLOUT, 0);
	end(host, ok(host, host->sys->accept(listener)), -1);
	end(host, ok(host, host->sys->accept(listener)), -1);
	/* Connected when the request was repeated, or refused. */
	CHECK_EQ((ready_soon(host, fds[2], POLLOUT) & POLLOUT) != 0, 1);
	for (int i = 0; i < 3; i++)
		end(host, fds[i], -1);
	end(host, listener, -1);
}

static void
tcp_listener_that_closes_resets_pending_connections(const struct host *host)
{
	struct sockaddr_in name;
	int listener = listen_on(host, 5, &name), fd = connect_to(host, &name);

	CHECK_EQ(ready_soon(host, listener, POLLIN), POLLIN);
	CHECK_EQ(ready_soon(host, fd, POLLOUT), POLLOUT);
	end(host, listener, -1);
	settle(host);
	CHECK_EQ(ready_now(host, fd, POLLIN | POLLOUT | POLLRDHUP),
	         POLLIN | POLLOUT | POLLRDHUP | POLLERR | POLLHUP);
	CHECK_EQ(error_of(host, fd), ECONNRESET);
	end(host, fd, -1);
}

static void
tcp_edge_of_a_connect_comes_once(const struct host *host)
{
	struct sockaddr_in name;
	int listener = listen_on(host, 5, &name);
	int fd = ok(host, host->sys->socket(AF_INET, SOCK_STREAM, 0));
	int ep = ok(host, host->sys->epoll_create());

	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT | EPOLLET), 0);
	CHECK_EQ(report(host, ep), EPOLLOUT | EPOLLHUP);
	(void)host->sys->connect(fd, (struct sockaddr *)&name, sizeof(name));
	settle(host);
	CHECK_EQ(report(host, ep), EPOLLOUT);
	CHECK_EQ(report(host, ep), 0);
	end(host, fd, ep);
	end(host, listener, -1);
}

/* --- ending ----------------------------------------------------------- */

static void
tcp_half_close_lets_the_other_half_go_on(const struct host *host)
{
	int fds[2];
	char buf[4];

	tcp_pair(host, fds);
	CHECK_EQ(host->sys->shutdown(fds[0], SHUT_WR), 0);
	CHECK_EQ(host->sys->send(fds[0], "x", 1, 0), -EPIPE);
	settle(host);
	CHECK_EQ(ready_now(host, fds[1], POLLIN | POLLOUT | POLLRDHUP),
	         POLLIN | POLLOUT | POLLRDHUP);
	CHECK_EQ(host->sys->recv(fds[1], buf, 4, 0), 0);
	CHECK_EQ(host->sys->recv(fds[1], buf, 4, 0), 0);
	CHECK_EQ(host->sys->send(fds[1], "y", 1, 0), 1);
	CHECK_EQ(ready_soon(host, fds[0], POLLIN), POLLIN);
	CHECK_EQ(host->sys->recv(fds[0], buf, 4, 0), 1);
	CHECK_EQ(host->sys->shutdown(fds[1], SHUT_WR), 0);
	settle(host);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(ready_now(host, fds[i], POLLIN | POLLOUT | POLLRDHUP),
		         POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
	end(host, fds[0], fds[1]);
}

static void
tcp_end_comes_after_the_data(const struct host *host)
{
	int fds[2];
	char buf[8];

	tcp_pair(host, fds);
	CHECK_EQ(host->sys->send(fds[0], "x", 1, 0), 1);
	CHECK_EQ(host->sys->close(fds[0]), 0);
	settle(host);
	CHECK_EQ(ready_now(host, fds[1], POLLIN | POLLRDHUP), POLLIN | POLLRDHUP);
	CHECK_EQ(host->sys->recv(fds[1], buf, 8, 0), 1);
	CHECK_EQ(host->sys->recv(fds[1], buf, 8, 0), 0);
	end(host, fds[1], -1);
}

static void
tcp_edge_comes_with_the_end(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create()), fds[2];

	tcp_pair(host, fds);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fds[1], EPOLLIN | EPOLLRDHUP | EPOLLET), 0);
	CHECK_EQ(report(host, ep), 0);
	CHECK_EQ(host->sys->send(fds[0], "x", 1, 0), 1);
	settle(host);
	CHECK_EQ(report(host, ep), EPOLLIN);
	CHECK_EQ(report(host, ep), 0);
	CHECK_EQ(host->sys->shutdown(fds[0], SHUT_WR), 0);
	settle(host);
	CHECK_EQ(report(host, ep), EPOLLIN | EPOLLRDHUP);
	CHECK_EQ(report(host, ep), 0);
	end(host, fds[0], fds[1]);
	end(host, ep, -1);
}

static void
tcp_close_with_unread_bytes_resets(const struct host *host)
{
	int fds[2];
	char buf[4];

	tcp_pair(host, fds);
	CHECK_EQ(host->sys->send(fds[1], "y", 1, 0), 1);
	CHECK_EQ(host->sys->send(fds[0], "x", 1, 0), 1);
	settle(host);
	CHECK_EQ(host->sys->close(fds[1]), 0);
	settle(host);
	CHECK_EQ(ready_now(host, fds[0], POLLIN | POLLOUT | POLLRDHUP),
	         POLLIN | POLLOUT | POLLRDHUP | POLLERR | POLLHUP);
	CHECK_EQ(host->sys->recv(fds[0], buf, 4, 0), 1); /* data that arrived before the reset */
	CHECK_EQ(host->sys->recv(fds[0], buf, 4, 0), -ECONNRESET);
	CHECK_EQ(host->sys->recv(fds[0], buf, 4, 0), 0);
	CHECK_EQ(host->sys->send(fds[0], buf, 4, 0), -EPIPE);
	CHECK_EQ(host->sys->shutdown(fds[0], SHUT_WR), -ENOTCONN);
	end(host, fds[0], -1);
}

static void
tcp_close_that_may_not_linger_resets(const struct host *host)
{
	struct linger at_once = { .l_onoff = 1 };
	int fds[2];
	char buf[4];

	tcp_pair(host, fds);
	CHECK_EQ(host->sys->set_option(fds[1], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)),
	         0);
	CHECK_EQ(host->sys->send(fds[1], "y", 1, 0), 1);
	settle(host);
	CHECK_EQ(host->sys->close(fds[1]), 0);
	settle(host);
	CHECK_EQ(host->sys->recv(fds[0], buf, 4, 0), 1);
	CHECK_EQ(host->sys->recv(fds[0], buf, 4, 0), -ECONNRESET);
	CHECK_EQ(host->sys->recv(fds[0], buf, 4, 0), 0);
	end(host, fds[0], -1);
}

static void
tcp_reset_is_reported_by_send_once(const struct host *host)
{
	int fds[2];

	tcp_pair(host, fds);
	CHECK_EQ(host->sys->send(fds[0], "x", 1, 0), 1);
	settle(host);
	CHECK_EQ(host->sys->close(fds[1]), 0);
	settle(host);
	CHECK_EQ(host->sys->send(fds[0], "x", 1, 0), -ECONNRESET);
	CHECK_EQ(host->sys->send(fds[0], "x", 1, 0), -EPIPE);
	CHECK_EQ(error_of(host, fds[0]), 0);
	end(host, fds[0], -1);
}

static void
tcp_bytes_to_a_peer_that_has_gone_are_answered_by_a_reset(const struct host *host)
{
	int fds[2];
	char buf[4];

	tcp_pair(host, fds);
	CHECK_EQ(host->sys->close(fds[1]), 0);
	settle(host);
	CHECK_EQ(ready_now(host, fds[0], POLLIN | POLLRDHUP), POLLIN | POLLRDHUP);
	CHECK_EQ(host->sys->send(fds[0], "x", 1, 0), 1);
	settle(host);
	CHECK_EQ(ready_now(host, fds[0], POLLIN), POLLIN | POLLERR | POLLHUP);
	CHECK_EQ(host->sys->recv(fds[0], buf, 4, 0), 0);
	CHECK_EQ(error_of(host, fds[0]), EPIPE);
	CHECK_EQ(host->sys->send(fds[0], "x", 1, 0), -EPIPE);
	end(host, fds[0], -1);
}

/* Send until nothing moves, neither here nor in transit.  `ep` watches for edges of room.
 * Returns how many bytes were sent. */
static int64_t
fill_tcp(const struct host *host, int ep, int fd)
{
	static char block[16384];
	int64_t sent = 0, rc;

	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fd, EPOLLOUT | EPOLLET), 0);
	CHECK_EQ(report(host, ep), EPOLLOUT);
	do {
		settle(host);
		while ((rc = host->sys->send(fd, block, sizeof(block), 0)) > 0)
			sent += rc;
		CHECK_EQ(rc, -EAGAIN);
		settle(host);
	} while (report(host, ep));
	CHECK_EQ(ready_now(host, fd, POLLOUT), 0);
	return sent;
}

static void
read_bytes(const struct host *host, int fd, int64_t size)
{
	static char block[16384];
	int64_t got = 0, rc;

	while (got < size) {
		CHECK_EQ(ready_soon(host, fd, POLLIN), POLLIN);
		rc = host->sys->recv(fd, block, sizeof(block), 0);
		CHECK_EQ(rc > 0, 1);
		got += rc;
	}
	CHECK_EQ(got, size);
}

static void
tcp_that_is_full_is_writable_when_enough_was_read(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create()), fds[2];

	tcp_pair(host, fds);
	read_bytes(host, fds[1], fill_tcp(host, ep, fds[0]));
	settle(host);
	CHECK_EQ(report(host, ep), EPOLLOUT);
	end(host, fds[0], fds[1]);
	end(host, ep, -1);
}

static void
tcp_that_is_full_is_writable_when_its_reader_has_closed(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create()), fds[2];
	int64_t sent;

	tcp_pair(host, fds);
	sent = fill_tcp(host, ep, fds[0]);
	CHECK_EQ(host->sys->shutdown(fds[1], SHUT_WR), 0);
	settle(host);
	(void)report(host, ep);
	read_bytes(host, fds[1], sent);
	end(host, fds[1], -1);
	settle(host);
	CHECK_EQ(report(host, ep), EPOLLOUT);
	CHECK_EQ(host->sys->send(fds[0], "x", 1, 0), 1);
	settle(host);
	CHECK_EQ(host->sys->send(fds[0], "x", 1, 0), -EPIPE);
	end(host, fds[0], ep);
}

/* --- AF_UNIX ---------------------------------------------------------- */

static void
local_pair_is_there_at_once(const struct host *host)
{
	int fds[2];
	char buf[8];

	CHECK_EQ(host->socketpair(fds), 0);
	CHECK_EQ(ready_now(host, fds[0], POLLIN | POLLOUT), POLLOUT);
	CHECK_EQ(host->sys->send(fds[0], "a", 1, 0), 1);
	CHECK_EQ(host->sys->write(fds[0], "b", 1), 1);
	CHECK_EQ(ready_now(host, fds[1], POLLIN | POLLOUT), POLLIN | POLLOUT);
	CHECK_EQ(host->sys->recv(fds[1], buf, 8, 0), 2);
	CHECK_EQ(memcmp(buf, "ab", 2), 0);
	CHECK_EQ(host->sys->recv(fds[1], buf, 8, 0), -EAGAIN);
	CHECK_EQ(host->sys->recv(fds[1], buf, 0, 0), -EAGAIN);
	end(host, fds[0], fds[1]);
}

static void
local_close_hangs_up(const struct host *host)
{
	int fds[2];
	char buf[8];

	CHECK_EQ(host->socketpair(fds), 0);
	CHECK_EQ(host->sys->send(fds[0], "a", 1, 0), 1);
	CHECK_EQ(host->sys->close(fds[0]), 0);
	CHECK_EQ(ready_now(host, fds[1], POLLIN | POLLOUT | POLLRDHUP),
	         POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
	CHECK_EQ(host->sys->send(fds[1], "x", 1, 0), -EPIPE);
	CHECK_EQ(host->sys->recv(fds[1], buf, 8, 0), 1);
	CHECK_EQ(host->sys->recv(fds[1], buf, 8, 0), 0);
	end(host, fds[1], -1);
}

static void
local_close_with_unread_bytes_resets(const struct host *host)
{
	int fds[2];
	char buf[8];

	CHECK_EQ(host->socketpair(fds), 0);
	CHECK_EQ(host->sys->send(fds[1], "a", 1, 0), 1);
	CHECK_EQ(host->sys->close(fds[0]), 0);
	CHECK_EQ(ready_now(host, fds[1], POLLIN), POLLIN | POLLERR | POLLHUP);
	CHECK_EQ(host->sys->send(fds[1], "x", 1, 0), -EPIPE);
	CHECK_EQ(host->sys->recv(fds[1], buf, 8, 0), -ECONNRESET);
	CHECK_EQ(host->sys->recv(fds[1], buf, 8, 0), 0);
	end(host, fds[1], -1);
}

static void
local_shutdown_reaches_the_peer(const struct host *host)
{
	int fds[2];
	char buf[8];

	CHECK_EQ(host->socketpair(fds), 0);
	CHECK_EQ(host->sys->shutdown(fds[0], SHUT_WR), 0);
	CHECK_EQ(host->sys->send(fds[0], "x", 1, 0), -EPIPE);
	CHECK_EQ(ready_now(host, fds[1], POLLIN | POLLOUT | POLLRDHUP),
	         POLLIN | POLLOUT | POLLRDHUP);
	CHECK_EQ(host->sys->recv(fds[1], buf, 8, 0), 0);
	CHECK_EQ(host->sys->send(fds[1], "y", 1, 0), 1);
	CHECK_EQ(host->sys->shutdown(fds[1], SHUT_WR), 0);
	CHECK_EQ(ready_now(host, fds[0], POLLIN), POLLIN | POLLHUP);
	CHECK_EQ(host->sys->recv(fds[0], buf, 8, 0), 1);
	CHECK_EQ(host->sys->recv(fds[0], buf, 8, 0), 0);
	end(host, fds[0], fds[1]);
}

/* A listener with a name that the kernel chooses. */
static int
listen_local(const struct host *host, int backlog, struct sockaddr_un *name, socklen_t *size)
{
	int fd = ok(host, host->sys->socket(AF_UNIX, SOCK_STREAM, 0));

	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	*size = sizeof(*name);
	CHECK_EQ(host->sys->bind(fd, (struct sockaddr *)name, sizeof(sa_family_t)), 0);
	CHECK_EQ(host->sys->listen(fd, backlog), 0);
	CHECK_EQ(host->sys->sockname(fd, (struct sockaddr *)name, size), 0);
	CHECK_EQ(*size, sizeof(sa_family_t) + 6);
	return fd;
}

static int
connect_local(const struct host *host, int fd, const struct sockaddr_un *name, socklen_t size)
{
	return host->sys->connect(fd, (const struct sockaddr *)name, size);
}

static void
local_connect_is_done_at_once_or_not_at_all(const struct host *host)
{
	struct sockaddr_un name;
	socklen_t size;
	int listener = listen_local(host, 0, &name, &size), fds[2], other;
	char buf[4];

	for (int i = 0; i < 2; i++)
		fds[i] = ok(host, host->sys->socket(AF_UNIX, SOCK_STREAM, 0));
	CHECK_EQ(ready_now(host, fds[0], POLLIN | POLLOUT), POLLOUT | POLLHUP);
	CHECK_EQ(host->sys->send(fds[0], "x", 1, 0), -ENOTCONN);
	CHECK_EQ(host->sys->recv(fds[0], buf, 4, 0), -EINVAL);
	CHECK_EQ(connect_local(host, fds[0], &name, size), 0);
	CHECK_EQ(connect_local(host, fds[1], &name, size), -EAGAIN);
	CHECK_EQ(ready_now(host, listener, POLLIN | POLLOUT), POLLIN);
	other = ok(host, host->sys->accept(listener));
	CHECK_EQ(host->sys->accept(listener), -EAGAIN);
	CHECK_EQ(connect_local(host, fds[0], &name, size), -EISCONN);
	CHECK_EQ(host->sys->send(fds[0], "x", 1, 0), 1);
	CHECK_EQ(host->sys->recv(other, buf, 4, 0), 1);
	CHECK_EQ(connect_local(host, fds[1], &name, size), 0);
	end(host, listener, other);
	CHECK_EQ(error_of(host, fds[1]), ECONNRESET);
	CHECK_EQ(host->sys->send(fds[1], "x", 1, 0), -EPIPE);
	end(host, fds[0], fds[1]);
	fds[0] = ok(host, host->sys->socket(AF_UNIX, SOCK_STREAM, 0));
	CHECK_EQ(connect_local(host, fds[0], &name, size), -ECONNREFUSED);
	end(host, fds[0], -1);
}

static void
accept_without_a_number_keeps_the_connection(const struct host *host)
{
	struct sockaddr_in name;
	int listener = listen_on(host, 5, &name), fd = connect_to(host, &name);

	CHECK_EQ(ready_soon(host, listener, POLLIN), POLLIN);
	host->allow_fds(0);
	CHECK_EQ(host->sys->accept(listener), -EMFILE);
	host->allow_fds(-1);
	CHECK_EQ(ready_now(host, listener, POLLIN), POLLIN);
	end(host, ok(host, host->sys->accept(listener)), fd);
	CHECK_EQ(host->sys->accept(listener), -EAGAIN);
	end(host, listener, -1);
}

static void
messages_are_gathered_and_scattered(const struct host *host)
{
	char a[3], b[4], text[] = "abcdef";
	struct iovec out[] = { { .iov_base = text, .iov_len = 2 },
		               { .iov_base = text, .iov_len = 0 },
		               { .iov_base = text + 2, .iov_len = 4 } };
	struct iovec in[] = { { .iov_base = a, .iov_len = 3 }, { .iov_base = b, .iov_len = 4 } };
	struct msghdr sent = { .msg_iov = out, .msg_iovlen = 3 };
	struct msghdr got = { .msg_iov = in, .msg_iovlen = 2 };
	int fds[2];
	int64_t rc;

	tcp_pair(host, fds);
	rc = host->sys->sendmsg(fds[0], &sent, 0);
	CHECK_EQ(rc > 0, 1);
	settle(host);
	CHECK_EQ(host->sys->recvmsg(fds[1], &got, MSG_PEEK), rc);
	CHECK_EQ(host->sys->recvmsg(fds[1], &got, 0), rc);
	CHECK_EQ(memcmp(a, "abc", rc < 3 ? (size_t)rc : 3), 0);
	CHECK_EQ(rc <= 3 ? 0 : memcmp(b, "def", (size_t)rc - 3), 0);
	CHECK_EQ(got.msg_flags, 0);
	end(host, fds[0], fds[1]);
}

#define TEST(name)          \
	{                   \
#name, name \
	}

const struct semantic_test semantics_sockets[] = {
	TEST(tcp_connects_and_carries_bytes),
	TEST(tcp_connect_reports_its_success_once),
	TEST(tcp_refusal_is_an_error_that_is_reported_once),
	TEST(tcp_refusal_is_reported_by_recv_or_the_next_connect),
	TEST(tcp_socket_without_connection_says_so),
	TEST(tcp_names_are_taken_once),
	TEST(tcp_backlog_that_is_full_keeps_others_waiting),
	TEST(tcp_listener_that_closes_resets_pending_connections),
	TEST(tcp_edge_of_a_connect_comes_once),
	TEST(tcp_half_close_lets_the_other_half_go_on),
	TEST(tcp_end_comes_after_the_data),
	TEST(tcp_edge_comes_with_the_end),
	TEST(tcp_close_with_unread_bytes_resets),
	TEST(tcp_close_that_may_not_linger_resets),
	TEST(tcp_reset_is_reported_by_send_once),
	TEST(tcp_bytes_to_a_peer_that_has_gone_are_answered_by_a_reset),
	TEST(tcp_that_is_full_is_writable_when_enough_was_read),
	TEST(tcp_that_is_full_is_writable_when_its_reader_has_closed),
	TEST(local_pair_is_there_at_once),
	TEST(local_close_hangs_up),
	TEST(local_close_with_unread_bytes_resets),
	TEST(local_shutdown_reaches_the_peer),
	TEST(local_connect_is_done_at_once_or_not_at_all),
	TEST(accept_without_a_number_keeps_the_connection),
	TEST(messages_are_gathered_and_scattered),
	{ NULL, NULL },
};
