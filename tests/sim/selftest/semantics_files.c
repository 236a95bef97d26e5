/* semantics_files.c - pipes, eventfds, poll, descriptor numbers and parking, on any kernel.
 *
 * Each test makes what it needs, and leaves no descriptor open.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include "sim/selftest/semantics.h"

/* --- eventfd, pipes, files, poll -------------------------------------- */

static void
eventfd_counts_and_refuses_too_much(const struct host *host)
{
	int fd = ok(host, host->sys->eventfd());
	uint64_t value = UINT64_MAX;

	CHECK_EQ(ready_now(host, fd, POLLIN | POLLOUT), POLLOUT);
	CHECK_EQ(host->sys->read(fd, &value, sizeof(value)), -EAGAIN);
	CHECK_EQ(host->sys->write(fd, &value, sizeof(value)), -EINVAL);
	CHECK_EQ(host->sys->write(fd, &value, 7), -EINVAL);
	add(host, fd);
	add(host, fd);
	CHECK_EQ(host->sys->read(fd, &value, 7), -EINVAL);
	CHECK_EQ(host->sys->read(fd, &value, sizeof(value)), 8);
	CHECK_EQ(value, 2);
	value = UINT64_MAX - 1;
	CHECK_EQ(host->sys->write(fd, &value, sizeof(value)), 8);
	CHECK_EQ(ready_now(host, fd, POLLIN | POLLOUT), POLLIN);
	value = 1;
	CHECK_EQ(host->sys->write(fd, &value, sizeof(value)), -EAGAIN);
	end(host, fd, -1);
}

static void
pipe_ends_with_a_hangup_and_zero_bytes(const struct host *host)
{
	int fds[2] = { -1, -1 };
	char buf[8];

	CHECK_EQ(host->sys->pipe(fds), 0);
	CHECK_EQ(host->sys->read(fds[0], buf, 8), -EAGAIN);
	CHECK_EQ(host->sys->read(fds[1], buf, 8), -EBADF);
	CHECK_EQ(host->sys->write(fds[0], buf, 8), -EBADF);
	CHECK_EQ(ready_now(host, fds[0], POLLIN | POLLOUT), 0);
	CHECK_EQ(ready_now(host, fds[1], POLLIN | POLLOUT), POLLOUT);
	CHECK_EQ(host->sys->write(fds[1], "abc", 3), 3);
	CHECK_EQ(host->sys->close(fds[1]), 0);
	CHECK_EQ(ready_now(host, fds[0], POLLIN), POLLIN | POLLHUP);
	CHECK_EQ(host->sys->read(fds[0], buf, 8), 3);
	CHECK_EQ(ready_now(host, fds[0], POLLIN), POLLHUP);
	CHECK_EQ(host->sys->read(fds[0], buf, 8), 0);
	end(host, fds[0], -1);
}

static void
pipe_without_a_reader_is_broken(const struct host *host)
{
	int fds[2] = { -1, -1 };

	CHECK_EQ(host->sys->pipe(fds), 0);
	CHECK_EQ(host->sys->close(fds[0]), 0);
	CHECK_EQ(ready_now(host, fds[1], POLLOUT), POLLOUT | POLLERR);
	CHECK_EQ(host->sys->write(fds[1], "x", 1), -EPIPE);
	end(host, fds[1], -1);
}

static void
pipe_that_is_full_takes_again_when_a_page_is_read(const struct host *host)
{
	static char page[PIPE_BUF];
	int ep = ok(host, host->sys->epoll_create()), fds[2] = { -1, -1 };
	int64_t rc;

	CHECK_EQ(host->sys->pipe(fds), 0);
	do
		rc = host->sys->write(fds[1], page, sizeof(page));
	while (rc > 0);
	CHECK_EQ(rc, -EAGAIN);
	CHECK_EQ(ready_now(host, fds[1], POLLOUT), 0);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fds[1], EPOLLOUT | EPOLLET), 0);
	CHECK_EQ(report(host, ep), 0);
	CHECK_EQ(host->sys->read(fds[0], page, 1), 1);
	CHECK_EQ(report(host, ep), 0);
	CHECK_EQ(host->sys->read(fds[0], page, sizeof(page) - 1), sizeof(page) - 1);
	CHECK_EQ(report(host, ep), EPOLLOUT);
	CHECK_EQ(host->sys->write(fds[1], page, sizeof(page)), sizeof(page));
	end(host, fds[0], fds[1]);
	end(host, ep, -1);
}

static void
pipe_edge_comes_with_every_write(const struct host *host)
{
	int ep = ok(host, host->sys->epoll_create()), fds[2] = { -1, -1 };

	CHECK_EQ(host->sys->pipe(fds), 0);
	CHECK_EQ(watch(host, ep, EPOLL_CTL_ADD, fds[0], EPOLLIN | EPOLLET), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(host->sys->write(fds[1], "x", 1), 1);
		CHECK_EQ(report(host, ep), EPOLLIN);
		CHECK_EQ(report(host, ep), 0);
	}
	CHECK_EQ(host->sys->close(fds[1]), 0);
	CHECK_EQ(report(host, ep), EPOLLIN | EPOLLHUP);
	CHECK_EQ(report(host, ep), 0);
	end(host, fds[0], ep);
}

static void
poll_skips_negative_numbers_and_knows_bad_ones(const struct host *host)
{
	int fd = ok(host, host->sys->eventfd()), file = ok(host, host->open_file(5));
	struct pollfd fds[] = { { .fd = -1, .events = POLLIN },
		                { .fd = 1000, .events = POLLIN },
		                { .fd = fd, .events = POLLOUT },
		                { .fd = file, .events = POLLIN | POLLOUT } };

	CHECK_EQ(host->sys->poll(fds, 4, 0), 3);
	CHECK_EQ(fds[0].revents, 0);
	CHECK_EQ(fds[1].revents, POLLNVAL);
	CHECK_EQ(fds[2].revents, POLLOUT);
	CHECK_EQ(fds[3].revents, POLLIN | POLLOUT);
	end(host, fd, file);
}

static void
numbers_are_the_lowest_free_ones(const struct host *host)
{
	int a = ok(host, host->sys->eventfd()), b = ok(host, host->sys->eventfd());
	int c = ok(host, host->sys->eventfd());

	CHECK_EQ(host->sys->close(b), 0);
	CHECK_EQ(host->sys->close(a), 0);
	CHECK_EQ(host->sys->eventfd(), a < b ? a : b);
	CHECK_EQ(host->dup(c), a < b ? b : a);
	end(host, a, b);
	end(host, c, -1);
}

static void
numbers_run_out(const struct host *host)
{
	int fds[2] = { -1, -1 }, fd;

	host->allow_fds(1);
	CHECK_EQ(host->sys->pipe(fds), -EMFILE);
	fd = ok(host, host->sys->eventfd());
	CHECK_EQ(host->sys->eventfd(), -EMFILE);
	CHECK_EQ(host->sys->epoll_create(), -EMFILE);
	CHECK_EQ(host->sys->socket(AF_INET, SOCK_STREAM, 0), -EMFILE);
	CHECK_EQ(host->dup(fd), -EMFILE);
	host->allow_fds(-1);
	end(host, fd, -1);
}

static void
kinds_are_distinguished(const struct host *host)
{
	int file = ok(host, host->open_file(1)), fd = ok(host, host->sys->eventfd());
	int socket = ok(host, host->sys->socket(AF_INET, SOCK_STREAM, 0));

	CHECK_EQ(host->sys->kind(file), WEFT__FD_FILE);
	CHECK_EQ(host->sys->kind(fd), WEFT__FD_OTHER);
	CHECK_EQ(host->sys->kind(socket), WEFT__FD_SOCKET);
	CHECK_EQ(host->sys->kind(1000), -EBADF);
	CHECK_EQ(host->sys->set_nonblock(socket), 0);
	CHECK_EQ(host->sys->recv(fd, NULL, 0, 0), -ENOTSOCK);
	CHECK_EQ(host->sys->accept(1000), -EBADF);
	end(host, file, fd);
	end(host, socket, -1);
}

/* --- threads ---------------------------------------------------------- */

struct sleeper {
	const struct host *host;
	weft__a32 word;
	int rc;
};

static void
sleep_until_changed(void *arg)
{
	struct sleeper *sleeper = arg;
	const struct host *host = sleeper->host;

	/* On the real kernel this is a real thread, where the weft__load() of a hooked build is
	 * not atomic. */
	while (__atomic_load_n(&sleeper->word.raw, __ATOMIC_ACQUIRE) == 0)
		sleeper->rc = host->sys->park(&sleeper->word, 0, WEFT_NEVER);
}

static void
park_ends_with_an_unpark(const struct host *host)
{
	struct sleeper sleeper = { .host = host, .rc = 77 };
	uint64_t thread = 0;

	CHECK_EQ(host->sys->thread_start(&(struct weft__thread_opts){ .name = "sleeper",
	                                                              .fn = sleep_until_changed,
	                                                              .arg = &sleeper },
	                                 &thread),
	         0);
	settle(host);
	__atomic_store_n(&sleeper.word.raw, 1, __ATOMIC_RELEASE);
	host->sys->unpark(&sleeper.word);
	CHECK_EQ(host->sys->thread_join(thread), 0);
	CHECK_EQ(sleeper.rc == 0 || sleeper.rc == 77 || sleeper.rc == -EAGAIN, 1);
}

static void
park_compares_and_has_a_deadline(const struct host *host)
{
	weft__a32 word = { .raw = 5 };
	uint64_t deadline_ns = host->sys->now() + 2000000;

	CHECK_EQ(host->sys->park(&word, 4, WEFT_NEVER), -EAGAIN);
	CHECK_EQ(host->sys->park(&word, 5, 1), -ETIMEDOUT);
	CHECK_EQ(host->sys->park(&word, 5, deadline_ns), -ETIMEDOUT);
	CHECK_EQ(host->sys->now() >= deadline_ns, 1);
	host->sys->unpark(&word); /* no thread is parked, and the wake is not remembered */
	CHECK_EQ(host->sys->park(&word, 5, deadline_ns), -ETIMEDOUT);
}

#define TEST(name)          \
	{                   \
#name, name \
	}

const struct semantic_test semantics_files[] = {
	TEST(eventfd_counts_and_refuses_too_much),
	TEST(pipe_ends_with_a_hangup_and_zero_bytes),
	TEST(pipe_without_a_reader_is_broken),
	TEST(pipe_that_is_full_takes_again_when_a_page_is_read),
	TEST(pipe_edge_comes_with_every_write),
	TEST(poll_skips_negative_numbers_and_knows_bad_ones),
	TEST(numbers_are_the_lowest_free_ones),
	TEST(numbers_run_out),
	TEST(kinds_are_distinguished),
	TEST(park_ends_with_an_unpark),
	TEST(park_compares_and_has_a_deadline),
	{ NULL, NULL },
};
