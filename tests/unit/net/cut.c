/* cut.c - the calls that transfer bytes, and epoll_ctl(). */
#include "cut.h"
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include "base/sys.h"
#include "test.h"

#define real       weft__sys_real
#define BLOCKS_ONE 16u /* one call in this many reports EAGAIN */

struct interest {
	int ep; /* -1: not registered with epoll */
	struct epoll_event event;
};

static struct {
	const struct weft__sys *before;
	struct weft__sys table;
	enum cut how;
	uint64_t chance;
	int fds[2];
	bool drains;
	struct interest interest[2];
} cut;

uint32_t
cut_chance(void)
{
	return (uint32_t)(test_random(&cut.chance) >> 16);
}

static int
index_of(int fd)
{
	return fd == cut.fds[0] ? 0 : fd == cut.fds[1] ? 1 : -1;
}

bool
cut_is_end(int fd)
{
	return index_of(fd) >= 0;
}

bool
cut_is_to_bytes(void)
{
	return cut.how == CUT_TO_BYTES;
}

size_t
cut_size(size_t size)
{
	if (size < 2)
		return size;
	return cut.how == CUT_TO_BYTES ? 1 : 1 + cut_chance() % size;
}

/* Causes a readiness event by rule 3. */
static void
notify_ready(int fd)
{
	struct interest *interest = &cut.interest[index_of(fd)];

	if (interest->ep >= 0)
		(void)real.epoll_ctl(interest->ep, EPOLL_CTL_MOD, fd, &interest->event);
}

/* Rule 2. */
bool
cut_blocks(int fd, int event)
{
	struct pollfd now = { .fd = fd, .events = (short)event };

	if (cut_chance() % BLOCKS_ONE > 0 || real.poll(&now, 1, 0) <= 0)
		return false;
	notify_ready(fd);
	return true;
}

/* --- sending --------------------------------------------------------------- */

static int64_t
on_send(int fd, const void *buf, size_t size, int flags)
{
	if (!cut_is_end(fd))
		return real.send(fd, buf, size, flags);
	if (cut_blocks(fd, POLLOUT))
		return -EAGAIN;
	return real.send(fd, buf, cut_size(size), flags);
}

/* Streams never pass an empty first buffer. */
static int64_t
on_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return cut_is_end(fd) ? on_send(fd, msg->msg_iov->iov_base, msg->msg_iov->iov_len, flags)
	                      : real.sendmsg(fd, msg, flags);
}

static int64_t
on_write_quiet(int fd, const void *buf, size_t size)
{
	if (!cut_is_end(fd))
		return real.write_quiet(fd, buf, size);
	if (cut_blocks(fd, POLLOUT))
		return -EAGAIN;
	return real.write_quiet(fd, buf, cut_size(size));
}

/* --- receiving -------------------------------------------------------------- */

/* Rule 1. */
static int64_t
received(int fd, size_t interest, int64_t n)
{
	if (cut.drains && n > 0 && (uint64_t)n < interest)
		notify_ready(fd);
	return n;
}

static int64_t
on_recv(int fd, void *buf, size_t size, int flags)
{
	if (!cut_is_end(fd))
		return real.recv(fd, buf, size, flags);
	if (cut_blocks(fd, POLLIN))
		return -EAGAIN;
	return received(fd, size, real.recv(fd, buf, cut_size(size), flags));
}

static int64_t
on_read(int fd, void *buf, size_t size)
{
	if (!cut_is_end(fd))
		return real.read(fd, buf, size);
	if (cut_blocks(fd, POLLIN))
		return -EAGAIN;
	return received(fd, size, real.read(fd, buf, cut_size(size)));
}

static int64_t
on_recvmsg(int fd, struct msghdr *msg, int flags)
{
	size_t size = msg->msg_iov->iov_len;
	int64_t n;

	if (!cut_is_end(fd))
		return real.recvmsg(fd, msg, flags);
	if (cut_blocks(fd, POLLIN))
		return -EAGAIN;
	CHECK_EQ(msg->msg_iovlen, 1);
	msg->msg_iov->iov_len = cut_size(size);
	n = received(fd, size, real.recvmsg(fd, msg, flags));
	msg->msg_iov->iov_len = size;
	return n;
}

/* --- setup ------------------------------------------------------------------ */

static int
on_epoll_ctl(int ep, int op, int fd, struct epoll_event *event)
{
	int rc = real.epoll_ctl(ep, op, fd, event), i = index_of(fd);

	if (i >= 0 && rc == 0 && op == EPOLL_CTL_DEL)
		cut.interest[i].ep = -1;
	else if (i >= 0 && rc == 0)
		cut.interest[i] = (struct interest){ ep, *event };
	return rc;
}

void
cut_ends(int a, int b, bool drains)
{
	cut.fds[0] = a;
	cut.fds[1] = b;
	cut.drains = drains;
	cut.interest[0].ep = cut.interest[1].ep = -1;
}

void
cut_begin(enum cut how)
{
	cut.how = how;
	cut.before = weft__sys;
	cut_ends(-1, -1, false);
	if (how == CUT_NOT)
		return;
	cut.chance = test_seed();
	cut.table = *weft__sys;
	cut.table.send = on_send;
	cut.table.sendmsg = on_sendmsg;
	cut.table.write_quiet = on_write_quiet;
	cut.table.recv = on_recv;
	cut.table.read = on_read;
	cut.table.recvmsg = on_recvmsg;
	cut.table.epoll_ctl = on_epoll_ctl;
	cut_wrap_ring(&cut.table);
	weft__sys = &cut.table;
}

void
cut_end(void)
{
	weft__sys = cut.before;
}
