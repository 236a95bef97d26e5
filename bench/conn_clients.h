/* conn_clients.h - clients that connect, have one message echoed, and stay connected.
 *
 * None of them disconnects before all are connected.
 */
#ifndef WEFT_BENCH_CONN_CLIENTS_H
#define WEFT_BENCH_CONN_CLIENTS_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "child.h"
#include "limits.h"

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

struct meeting { /* in memory that the processes share */
	atomic_int left;
};

static inline struct meeting *
meeting_new(int count)
{
	struct meeting *meeting
		= mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE,
	               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	BENCH_CHECK(meeting != MAP_FAILED);
	atomic_init(&meeting->left, count);
	return meeting;
}

/* Listen on a free port; fills `addr`. */
static inline int
conn_listen(struct sockaddr_in *addr)
{
	socklen_t size = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET };
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	BENCH_CHECK(fd >= 0);
	BENCH_CHECK(bind(fd, (struct sockaddr *)addr, size) == 0);
	BENCH_CHECK(listen(fd, 1024) == 0);
	BENCH_CHECK(getsockname(fd, (struct sockaddr *)addr, &size) == 0);
	return fd;
}

static inline void
conn_start(const struct sockaddr_in *addr, uint32_t number)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	char word[64] = { 0 };

	from.sin_addr.s_addr = htonl((127u << 24) + (1u << 8) + number);
	BENCH_CHECK(fd >= 0);
	BENCH_CHECK(setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on,
	                       sizeof(on))
	            == 0);
	BENCH_CHECK(bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0);
	BENCH_CHECK(connect(fd, (const struct sockaddr *)addr, sizeof(*addr))
	            == 0);
	BENCH_CHECK(send(fd, word, sizeof(word), 0) == sizeof(word));
	BENCH_CHECK(recv(fd, word, sizeof(word), MSG_WAITALL) == sizeof(word));
}

/* Start a process with `count` connections.  They all come from one loopback address, which
 * `number` selects: one address has enough ports for `count`. */
static inline pid_t
conn_clients(const struct sockaddr_in *addr, int count, uint32_t number,
             struct meeting *meeting)
{
	pid_t child = child_fork();

	if (child > 0)
		return child;
	(void)raise_limit();
	for (int i = 0; i < count; i++)
		conn_start(addr, number);
	atomic_fetch_sub(&meeting->left, 1);
	while (atomic_load(&meeting->left) > 0)
		bench_sleep(BENCH_MS);
	_exit(0);
}

#endif
