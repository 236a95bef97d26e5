/* semantics_epoll.c - epoll, on any kernel.
 *
 * Each test makes what it needs, and leaves no descriptor open.
 */
#define _GNU_SOURCE
#include <errno.h>
#include "sim/selftest/semantics.h"

/* --- epoll: what is reported when ------------------------------------- */

static void
epoll_level_reports_until_it_is_read(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create());
	int fd = ok(host, host->sys->eventfd());
	uint64_t value;

	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fd, EPOLLIN), 0);
	CHECK_EQ(report(host, ep), 0);
	add(host, fd);
	CHECK_EQ(report(host, ep), EPOLLIN);
	CHECK_EQ(report(host, ep), EPOLLIN);
	CHECK_EQ(host->sys->read(fd, &value, sizeof(value)), 8);
	CHECK_EQ(report(host, ep), 0);
	end(host, fd, ep);
}

static void
epoll_edge_reports_each_arrival_once(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create());
	int fd = ok(host, host->sys->eventfd());

	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET), 0);
	add(host, fd);
	CHECK_EQ(report(host, ep), EPOLLIN);
	CHECK_EQ(report(host, ep), 0);
	add(host, fd);
	add(host, fd);
	CHECK_EQ(report(host, ep), EPOLLIN);
	CHECK_EQ(report(host, ep), 0);
	end(host, fd, ep);
}

static void
epoll_edge_reports_what_holds_when_it_is_fetched(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create());
	int fd = ok(host, host->sys->eventfd());
	uint64_t value;

	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET), 0);
	add(host, fd);
	CHECK_EQ(host->sys->read(fd, &value, sizeof(value)), 8);
	CHECK_EQ(report(host, ep), 0);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT | EPOLLET), 0);
	CHECK_EQ(report(host, ep), EPOLLOUT);
	add(host, fd); /* wakes for input, and reports both */
	CHECK_EQ(report(host, ep), EPOLLIN | EPOLLOUT);
	end(host, fd, ep);
}

static void
epoll_edge_is_armed_again_by_a_modification(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create());
	int fd = ok(host, host->sys->eventfd());

	add(host, fd);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET), 0);
	CHECK_EQ(report(host, ep), EPOLLIN); /* ready when it was added */
	CHECK_EQ(report(host, ep), 0);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLET), 0);
	CHECK_EQ(report(host, ep), EPOLLIN);
	CHECK_EQ(report(host, ep), 0);
	end(host, fd, ep);
}

static void
epoll_oneshot_is_silent_until_it_is_modified(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create());
	int fd = ok(host, host->sys->eventfd());

	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLONESHOT), 0);
	add(host, fd);
	CHECK_EQ(report(host, ep), EPOLLIN);
	add(host, fd);
	CHECK_EQ(report(host, ep), 0);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fd, EPOLLIN), -EEXIST);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT), 0);
	CHECK_EQ(report(host, ep), EPOLLIN);
	CHECK_EQ(report(host, ep), 0);
	end(host, fd, ep);
}

static void
epoll_oneshot_that_has_fired_hides_even_a_hangup(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create());
	int fds[2] = { -1, -1 };

	CHECK_EQ(host->sys->pipe(fds), 0);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fds[0], EPOLLIN | EPOLLONESHOT), 0);
	CHECK_EQ(host->sys->write(fds[1], "x", 1), 1);
	CHECK_EQ(report(host, ep), EPOLLIN);
	CHECK_EQ(host->sys->close(fds[1]), 0);
	CHECK_EQ(report(host, ep), 0);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_MOD, fds[0], 0), 0);
	CHECK_EQ(report(host, ep), EPOLLHUP);
	end(host, fds[0], ep);
}

static void
epoll_with_few_slots_goes_round(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create()), fds[3];
	int seen[3] = { 0, 0, 0 };

	for (int i = 0; i < 3; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.fd = i };

		fds[i] = ok(host, host->sys->eventfd());
		CHECK_EQ(host->sys->epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &event), 0);
		add(host, fds[i]);
	}
	for (int i = 0; i < 6; i++) {
		struct epoll_event event;

		CHECK_EQ(host->sys->epoll_wait(ep, &event, 1, 0), 1);
		seen[event.data.fd]++;
	}
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(seen[i], 2);
		end(host, fds[i], -1);
	}
	end(host, ep, -1);
}

static void
epoll_in_epoll_reports_what_is_inside(const struct host *host)
{
	int outer = ok(host, host->sys->epoll_create());
	int inner = ok(host, host->sys->epoll_create());
	int fd = ok(host, host->sys->eventfd());

	CHECK_EQ(watch(host, inner, EPOLL_CTL_ADD, fd, EPOLLIN), 0);
	CHECK_EQ(watch(host, outer, EPOLL_CTL_ADD, inner, EPOLLIN), 0);
	CHECK_EQ(report(host, outer), 0);
	add(host, fd);
	CHECK_EQ(report(host, outer), EPOLLIN);
	CHECK_EQ(ready_now(host, inner, POLLIN), POLLIN);
	CHECK_EQ(report(host, inner), EPOLLIN);
	CHECK_EQ(report(host, outer), EPOLLIN);
	CHECK_EQ(watch(host, inner, EPOLL_CTL_DEL, fd, 0), 0);
	CHECK_EQ(report(host, outer), 0);
	end(host, fd, inner);
	end(host, outer, -1);
}

/* --- epoll: errors, and the identity of a registration ---------------- */

static void
epoll_refuses_what_it_must(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create());
	int fd = ok(host, host->sys->eventfd());
	int file = ok(host, host->open_file(10));
	struct epoll_event event;

	CHECK_EQ(watch(host, ep, EPOLL_CTL_MOD, fd, EPOLLIN), -ENOENT);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_DEL, fd, 0), -ENOENT);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fd, EPOLLIN), 0);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fd, EPOLLIN), -EEXIST);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, file, EPOLLIN), -EPERM);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, 1000, EPOLLIN), -EBADF);
	CHECK_EQ(watch(host, 1000, EPOLL_CTL_ADD, fd, EPOLLIN), -EBADF);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, ep, EPOLLIN), -EINVAL);
	CHECK_EQ(watch(host, fd, EPOLL_CTL_ADD, ep, EPOLLIN), -EINVAL);
	CHECK_EQ(watch(host, ep, 77, fd, EPOLLIN), -EINVAL);
	CHECK_EQ(host->sys->epoll_wait(ep, &event, 0, 0), -EINVAL);
	CHECK_EQ(host->sys->epoll_wait(fd, &event, 1, 0), -EINVAL);
	CHECK_EQ(host->sys->epoll_wait(1000, &event, 1, 0), -EBADF);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLEXCLUSIVE), -EINVAL);
	end(host, file, fd);
	end(host, ep, -1);
}

static void
epoll_refuses_loops_and_deep_nests(const struct host *host)
{
	int eps[7];

	for (int i = 0; i < 7; i++)
		eps[i] = ok(host, host->sys->epoll_create());
	CHECK_EQ(watch(host, eps[0], EPOLL_CTL_ADD, eps[1], EPOLLIN), 0);
	CHECK_EQ(watch(host, eps[1], EPOLL_CTL_ADD, eps[0], EPOLLIN), -ELOOP);
	CHECK_EQ(watch(host, eps[1], EPOLL_CTL_ADD, eps[2], EPOLLIN), 0);
	CHECK_EQ(watch(host, eps[2], EPOLL_CTL_ADD, eps[0], EPOLLIN), -ELOOP);
	CHECK_EQ(watch(host, eps[2], EPOLL_CTL_ADD, eps[3], EPOLLIN), 0);
	CHECK_EQ(watch(host, eps[3], EPOLL_CTL_ADD, eps[4], EPOLLIN), 0);
	CHECK_EQ(watch(host, eps[4], EPOLL_CTL_ADD, eps[5], EPOLLIN), -ELOOP);
	CHECK_EQ(watch(host, eps[5], EPOLL_CTL_ADD, eps[0], EPOLLIN), -ELOOP);
	CHECK_EQ(watch(host, eps[5], EPOLL_CTL_ADD, eps[1], EPOLLIN), 0);
	CHECK_EQ(watch(host, eps[6], EPOLL_CTL_ADD, eps[5], EPOLLIN), -ELOOP);
	for (int i = 0; i < 7; i++)
		end(host, eps[i], -1);
}

static void
epoll_forgets_a_number_with_its_last_dup(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create());
	int fd = ok(host, host->sys->eventfd()), twin;

	add(host, fd);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fd, EPOLLIN), 0);
	twin = ok(host, host->dup(fd));
	CHECK_EQ(host->sys->close(fd), 0);
	CHECK_EQ(report(host, ep), EPOLLIN); /* for a number that is closed */
	CHECK_EQ(watch(host, ep, EPOLL_CTL_DEL, fd, 0), -EBADF);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_DEL, twin, 0), -ENOENT);
	CHECK_EQ(host->sys->close(twin), 0);
	CHECK_EQ(report(host, ep), 0);
	end(host, ep, -1);
}

static void
epoll_distinguishes_a_number_from_its_next_owner(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create());
	int fd = ok(host, host->sys->eventfd()), twin, next;
	struct epoll_event events[4];

	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fd, EPOLLIN), 0);
	twin = ok(host, host->dup(fd));
	CHECK_EQ(host->sys->close(fd), 0);
	next = ok(host, host->sys->eventfd());
	CHECK_EQ(next, fd); /* the lowest free number */
	CHECK_EQ(watch(host, ep, EPOLL_CTL_DEL, next, 0), -ENOENT);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, next, EPOLLIN), 0);
	add(host, twin);
	CHECK_EQ(report(host, ep), EPOLLIN); /* for the old owner, with its number */
	add(host, next);
	CHECK_EQ(host->sys->epoll_wait(ep, events, 4, 0), 2);
	CHECK_EQ(host->sys->close(twin), 0);
	CHECK_EQ(report(host, ep), EPOLLIN);
	end(host, next, ep);
}

static void
epoll_watches_both_of_two_dups(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create());
	int fd = ok(host, host->sys->eventfd()), twin = ok(host, host->dup(fd));
	struct epoll_event events[4];

	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fd, EPOLLIN), 0);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, twin, EPOLLIN | EPOLLET), 0);
	add(host, fd);
	CHECK_EQ(host->sys->epoll_wait(ep, events, 4, 0), 2);
	CHECK_EQ(host->sys->epoll_wait(ep, events, 4, 0), 1);
	end(host, fd, twin);
	CHECK_EQ(host->sys->epoll_wait(ep, events, 4, 0), 0);
	end(host, ep, -1);
}

static void
epoll_wait_is_never_early(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create());
	struct epoll_event event;
	uint64_t start_ns = host->sys->now();

	CHECK_EQ(host->sys->epoll_wait(ep, &event, 1, 3000001), 0);
	CHECK_EQ(host->sys->now() - start_ns >= 3000001, 1);
	start_ns = host->sys->now();
	CHECK_EQ(host->sys->poll(NULL, 0, 2000001), 0);
	CHECK_EQ(host->sys->now() - start_ns >= 2000001, 1);
	end(host, ep, -1);
}

/* --- threads ---------------------------------------------------------- */

struct waiter {
	const struct host *host;
	int ep;
	int rc;
};

static void
wait_for_events(void *arg)
{
	struct waiter *waiter = arg;
	struct epoll_event event;

	waiter->rc = waiter->host->sys->epoll_wait(waiter->ep, &event, 1, -1);
}

static void
epoll_wait_ends_when_another_thread_writes(const struct host *host)
{
	struct waiter waiter = { .host = host, .ep = ok(host, host->sys->epoll_create()) };
	struct weft__thread_opts opts = { .fn = wait_for_events, .arg = &waiter };
	int fd = ok(host, host->sys->eventfd());
	uint64_t thread = 0;

	CHECK_EQ(host->sys->thread_start(&opts, &thread), 0);
	settle(host);
	CHECK_EQ(watch(host, waiter.ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET), 0);
	add(host, fd);
	CHECK_EQ(host->sys->thread_join(thread), 0);
	CHECK_EQ(waiter.rc, 1);
	CHECK_EQ(report(host, waiter.ep), 0);
	end(host, fd, waiter.ep);
}

#define TEST(name)          \
	{                   \
#name, name \
	}

const struct semantic_test semantics_epoll[] = {
	TEST(epoll_level_reports_until_it_is_read),
	TEST(epoll_edge_reports_each_arrival_once),
	TEST(epoll_edge_reports_what_holds_when_it_is_fetched),
	TEST(epoll_edge_is_armed_again_by_a_modification),
	TEST(epoll_oneshot_is_silent_until_it_is_modified),
	TEST(epoll_oneshot_that_has_fired_hides_even_a_hangup),
	TEST(epoll_with_few_slots_goes_round),
	TEST(epoll_in_epoll_reports_what_is_inside),
	TEST(epoll_refuses_what_it_must),
	TEST(epoll_refuses_loops_and_deep_nests),
	TEST(epoll_forgets_a_number_with_its_last_dup),
	TEST(epoll_distinguishes_a_number_from_its_next_owner),
	TEST(epoll_watches_both_of_two_dups),
	TEST(epoll_wait_is_never_early),
	TEST(epoll_wait_ends_when_another_thread_writes),
	{ NULL, NULL },
};
