/* lines.h - two connected streams, of every kind. */
#ifndef WEFT_TESTS_LINES_H
#define WEFT_TESTS_LINES_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>
#include "stream_pair.h"
#include "unit/threadlet/sched.h"

enum line_kind {
	LINE_TCP,
	LINE_UNIX,
	LINE_PAIR,
	LINE_PIPE, /* one way: from `a` to `b` */
	LINE_PTY,  /* `a` is the terminal, `b` its master side */
	LINE_KINDS
};

struct ends {
	weft_stream *a, *b;
};

static inline const char *
line_name(enum line_kind kind)
{
	static const char *const names[] = { "tcp", "unix", "pair", "pipe",
		                             "pty" };

	return names[kind];
}

/* What a read returns at the end of the stream.  A terminal reports a hangup. */
static inline int
line_end(enum line_kind kind)
{
	return kind == LINE_PTY ? -EIO : 0;
}

/* Connects two sockets through a listener, whose address the kernel chooses. */
static inline void
connect_fds(int family, int fds[2])
{
	struct sockaddr_storage name = { .ss_family = (sa_family_t)family };
	socklen_t size = family == AF_INET ? sizeof(struct sockaddr_in)
	                                   : sizeof(sa_family_t);
	int door = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(door >= 0);
	if (family == AF_INET)
		((struct sockaddr_in *)(void *)&name)->sin_addr.s_addr =
			htonl(INADDR_LOOPBACK);
	OK(bind(door, (struct sockaddr *)&name, size));
	OK(listen(door, 1));
	size = sizeof(name);
	OK(getsockname(door, (struct sockaddr *)&name, &size));
	fds[0] = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fds[0] >= 0);
	OK(connect(fds[0], (struct sockaddr *)&name, size));
	fds[1] = accept(door, NULL, NULL);
	CHECK(fds[1] >= 0);
	OK(close(door));
}

/* Opens a pseudo-terminal in raw mode: fds[0] is the terminal, fds[1] the master side. */
static inline void
open_terminal(int fds[2])
{
	struct termios raw;

	OK(openpty(&fds[1], &fds[0], NULL, NULL, NULL));
	OK(tcgetattr(fds[0], &raw));
	cfmakeraw(&raw);
	OK(tcsetattr(fds[0], TCSANOW, &raw));
}

static inline struct ends
open_ends(enum line_kind kind)
{
	struct ends ends;
	int fds[2];

	if (kind == LINE_PAIR) {
		OK(open_stream_pair(&ends.a, &ends.b));
		return ends;
	}
	if (kind == LINE_PIPE) {
		OK(pipe(fds));
		OK(weft_stream_open_fd(fds[1], false, &ends.a));
		OK(weft_stream_open_fd(fds[0], false, &ends.b));
		return ends;
	}
	if (kind == LINE_PTY)
		open_terminal(fds);
	else
		connect_fds(kind == LINE_TCP ? AF_INET : AF_UNIX, fds);
	OK(weft_stream_open_fd(fds[0], false, &ends.a));
	OK(weft_stream_open_fd(fds[1], false, &ends.b));
	return ends;
}

/* The byte at an offset of an endless pattern, in which lost or repeated bytes show. */
static inline char
byte_at(uint64_t at)
{
	return (char)((at * 0x9e3779b97f4a7c15u) >> 56);
}

#endif
