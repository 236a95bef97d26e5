/* semantics.c - what the tests of kernels share. */
#include <stdio.h>
#include "sim/selftest/semantics.h"

void
check_eq_at(const struct host *host, const char *place, int64_t got, int64_t want)
{
	char text[512];

	if (got == want)
		return;
	(void)snprintf(text, sizeof(text), "%s: on the %s kernel %lld, want %lld", place,
	               host->name, (long long)got, (long long)want);
	host->fail(text);
}

void
settle(const struct host *host)
{
	(void)host->sys->poll(NULL, 0, (int64_t)host->settle_ns);
}

static uint32_t
ready_within(const struct host *host, int fd, uint32_t events, int64_t timeout_ns)
{
	struct pollfd pollfd = { .fd = fd, .events = (short)events };
	int rc = host->sys->poll(&pollfd, 1, timeout_ns);

	CHECK_EQ(rc < 0 ? rc : 0, 0);
	return rc > 0 ? (uint32_t)(uint16_t)pollfd.revents : 0;
}

uint32_t
ready_now(const struct host *host, int fd, uint32_t events)
{
	return ready_within(host, fd, events, 0);
}

uint32_t
ready_soon(const struct host *host, int fd, uint32_t events)
{
	return ready_within(host, fd, events, 10 * (int64_t)WEFT_S);
}

int
watch(const struct host *host, int ep, int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return host->sys->epoll_ctl(ep, op, fd, &event);
}

uint32_t
report(const struct host *host, int ep)
{
	struct epoll_event events[8] = { { .events = 0 } };
	int rc = host->sys->epoll_wait(ep, events, 8, 0);

	CHECK_EQ(rc < 0 || rc > 1 ? rc : 0, 0);
	return rc == 1 ? events[0].events : 0;
}

int
ok(const struct host *host, int rc)
{
	CHECK_EQ(rc < 0 ? rc : 0, 0);
	return rc;
}

void
end(const struct host *host, int a, int b)
{
	CHECK_EQ(host->sys->close(a), 0);
	if (b >= 0)
		CHECK_EQ(host->sys->close(b), 0);
}

void
add(const struct host *host, int fd)
{
	uint64_t one = 1;

	CHECK_EQ(host->sys->write(fd, &one, sizeof(one)), sizeof(one));
}
