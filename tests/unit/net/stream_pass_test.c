/* stream_pass_test.c - passing descriptors over Unix streams (SCM_RIGHTS). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "lines.h"

struct fd_pair {
	struct ends ends;
	int fds[2]; /* a pipe; its read end is passed */
	int count;
	int64_t result;
	weft_threadlet waiter;
};

static struct fd_pair
open_fd_pair(enum line_kind kind)
{
	struct fd_pair p = { .ends = open_ends(kind) };

	OK(pipe2(p.fds, O_CLOEXEC));
	return p;
}

static void
close_pipe(struct fd_pair *p)
{
	OK(close(p->fds[0]));
	OK(close(p->fds[1]));
}

static int
close_both(struct fd_pair *p)
{
	weft_stream_close(p->ends.a);
	weft_stream_close(p->ends.b);
	return 0;
}

/* The descriptor must be the one that was sent, under a new number. */
static void
check_received(struct fd_pair *p, int fd)
{
	struct stat sent, got;

	CHECK(fd >= 0 && fd != p->fds[0]);
	OK(fstat(p->fds[0], &sent));
	OK(fstat(fd, &got));
	CHECK_EQ(got.st_ino, sent.st_ino);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	OK(close(fd));
}

/* Sends descriptors by a direct system call. */
static void
send_raw(int by, const char *bytes, const int *fds, size_t count)
{
	union {
		struct cmsghdr head;
		char room[256];
	} control = { .room = { 0 } };
	struct iovec part = { (void *)(uintptr_t)bytes, strlen(bytes) };
	struct msghdr msg = { .msg_iov = &part,
		              .msg_iovlen = 1,
		              .msg_control = &control,
		              .msg_controllen = CMSG_SPACE(count * sizeof(int)) };

	control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(count * sizeof(int)),
		                         .cmsg_level = SOL_SOCKET,
		                         .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
	CHECK_EQ(sendmsg(by, &msg, MSG_NOSIGNAL), strlen(bytes));
}

/* --- passing ------------------------------------------------------------- */

static int
pass_one(void *arg)
{
	struct fd_pair *p = arg;
	int fd = -1;

	OK(weft_stream_send_fd(p->ends.a, p->fds[0], WEFT_NEVER));
	OK(weft_stream_recv_fd(p->ends.b, &fd, WEFT_NEVER));
	check_received(p, fd);
	OK(weft_stream_send_fd(p->ends.b, p->fds[0], WEFT_NOWAIT));
	OK(weft_stream_recv_fd(p->ends.a, &fd, WEFT_NEVER));
	check_received(p, fd);
	return close_both(p);
}

TEST(descriptor_is_passed_over_a_unix_stream)
{
	for (int kind = LINE_UNIX; kind <= LINE_PAIR; kind++) {
		struct fd_pair p = open_fd_pair(kind);

		run_threadlet(pass_one, &p);
		close_pipe(&p);
	}
}

#define MANY 40

static int
pass_many(void *arg)
{
	struct fd_pair *p = arg;

	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(weft_stream_write(p->ends.a, "take this\n", 10, WEFT_NEVER), 10);
		OK(weft_stream_send_fd(p->ends.a, p->fds[0], WEFT_NEVER));
		if (i % 3 == 0)
			OK(weft_stream_send_fd(p->ends.a, p->fds[0], WEFT_NEVER));
	}
	weft_stream_close(p->ends.a);
	return 0;
}

static int
take_many(void *arg)
{
	struct fd_pair *p = arg;
	char line[32];
	int fd;

	OK(weft_stream_set(p->ends.b, "fds", 1));
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(weft_stream_read_until(p->ends.b, "\n", line, sizeof(line), WEFT_NEVER),
		         10);
		OK(weft_stream_recv_fd(p->ends.b, &fd, WEFT_NEVER));
		check_received(p, fd);
		if (i % 3 == 0) {
			OK(weft_stream_recv_fd(p->ends.b, &fd, WEFT_NEVER));
			check_received(p, fd);
		}
	}
	CHECK_EQ(weft_stream_recv_fd(p->ends.b, &fd, WEFT_NEVER), WEFT_EOF);
	weft_stream_close(p->ends.b);
	return 0;
}

TEST(descriptors_arrive_at_their_positions_among_the_bytes)
{
	for (int order = 0; order < 2; order++) {
		weft_loop *loop = make();
		struct fd_pair p = open_fd_pair(LINE_UNIX);

		(void)go_on(loop, order ? take_many : pass_many, &p);
		(void)go_on(loop, order ? pass_many : take_many, &p);
		OK(weft_loop_run(loop));
		OK(weft_loop_free(loop));
		close_pipe(&p);
	}
}

/* --- descriptors that are not received ----------------------------------- */

static int
read_over(void *arg)
{
	struct fd_pair *p = arg;
	char buf[16];
	int fd, count = p->count;

	if (count > 0)
		OK(weft_stream_set(p->ends.b, "fds", 1));
	for (int i = 0; i < 200; i++)
		OK(weft_stream_send_fd(p->ends.a, p->fds[0], WEFT_NEVER));
	for (int i = 0; i < 5; i++)
		CHECK_EQ(weft_stream_read_exact(p->ends.b, buf, 16, WEFT_NEVER), 16);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(weft_stream_read(p->ends.b, buf, 1, WEFT_NEVER), 1);
	/* Only descriptors that have not been read yet may still be open. */
	OK(weft_stream_set(p->ends.b, "read_max", 1));
	fd = dup(0);
	CHECK(fd < p->fds[1] + 40);
	OK(close(fd));
	return close_both(p);
}

TEST(descriptors_skipped_by_reads_are_closed)
{
	for (int count = 0; count < 2; count++) {
		struct fd_pair p = open_fd_pair(LINE_PAIR);

		p.count = count;
		run_threadlet(read_over, &p);
		close_pipe(&p);
	}
}

static int
take_first_of_three(void *arg)
{
	struct fd_pair *p = arg;
	int three[3] = { p->fds[0], p->fds[1], p->fds[1] }, fd;
	char buf[4];

	OK(weft_stream_set(p->ends.b, "fds", 1));
	send_raw(weft_stream_fd(p->ends.a), "many", three, 3);
	OK(weft_stream_recv_fd(p->ends.b, &fd, WEFT_NEVER));
	check_received(p, fd);
	CHECK_EQ(weft_stream_read_exact(p->ends.b, buf, 3, WEFT_NEVER), 3);
	CHECK(memcmp(buf, "any", 3) == 0);
	return close_both(p);
}

TEST(first_of_several_descriptors_in_one_message_is_kept)
{
	struct fd_pair p = open_fd_pair(LINE_UNIX);

	run_threadlet(take_first_of_three, &p);
	close_pipe(&p);
}

static int
close_with_one(void *arg)
{
	struct fd_pair *p = arg;
	const void *seen;

	OK(weft_stream_set(p->ends.b, "fds", 1));
	OK(weft_stream_send_fd(p->ends.a, p->fds[0], WEFT_NEVER));
	OK(weft_stream_send_fd(p->ends.a, p->fds[0], WEFT_NEVER));
	CHECK_EQ(weft_stream_peek(p->ends.b, 1, &seen, WEFT_NEVER), 1);
	return close_both(p);
}

TEST(close_of_a_stream_closes_descriptors_that_were_not_received)
{
	struct fd_pair p = open_fd_pair(LINE_PAIR);

	run_threadlet(close_with_one, &p);
	close_pipe(&p);
}

/* --- errors -------------------------------------------------------------- */

static int
take_none(void *arg)
{
	struct fd_pair *p = arg;
	char buf[4];
	int fd = -7;

	CHECK_EQ(weft_stream_recv_fd(p->ends.b, &fd, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_stream_recv_fd(p->ends.b, &fd, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_stream_write(p->ends.a, "abc", 3, WEFT_NEVER), 3);
	CHECK_EQ(weft_stream_recv_fd(p->ends.b, &fd, WEFT_NEVER), WEFT_EPROTO);
	CHECK_EQ(weft_stream_read(p->ends.b, buf, 4, WEFT_NEVER), 3);
	CHECK_EQ(weft_stream_send_fd(p->ends.a, 100000, WEFT_NEVER), WEFT_EBADF);
	/* The error does not affect the stream. */
	OK(weft_stream_send_fd(p->ends.a, p->fds[0], WEFT_NEVER));
	CHECK_EQ(fd, -7);
	OK(weft_stream_recv_fd(p->ends.b, &fd, WEFT_NEVER));
	check_received(p, fd);
	weft_stream_close(p->ends.b);
	CHECK_EQ(weft_stream_send_fd(p->ends.a, p->fds[0], WEFT_NEVER), WEFT_EPIPE);
	weft_stream_close(p->ends.a);
	return 0;
}

TEST(recv_fd_and_send_fd_report_why_no_descriptor_is_passed)
{
	struct fd_pair p = open_fd_pair(LINE_PAIR);

	run_threadlet(take_none, &p);
	close_pipe(&p);
}

static int
be_refused(void *arg)
{
	struct fd_pair *p = arg;
	int fd = -7;

	CHECK_EQ(weft_stream_send_fd(p->ends.a, p->fds[0], WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_stream_recv_fd(p->ends.b, &fd, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_stream_set(p->ends.b, "fds", 1), WEFT_EINVAL);
	CHECK_EQ(fd, -7);
	return close_both(p);
}

TEST(streams_other_than_unix_sockets_pass_no_descriptors)
{
	for (int kind = 0; kind < LINE_KINDS; kind++) {
		struct fd_pair p;

		if (kind == LINE_UNIX || kind == LINE_PAIR)
			continue;
		p = open_fd_pair(kind);
		run_threadlet(be_refused, &p);
		close_pipe(&p);
	}
}

static int
pass_to_nobody(void *arg)
{
	struct fd_pair *p = arg;
	int rc = 0;

	OK(weft_stream_set(p->ends.a, "sndbuf", 5000));
	while (rc == 0)
		rc = weft_stream_send_fd(p->ends.a, p->fds[0], weft_after(5 * WEFT_MS));
	CHECK_EQ(rc, WEFT_ETIMEDOUT);
	CHECK_EQ(weft_stream_send_fd(p->ends.a, p->fds[0], WEFT_NOWAIT), WEFT_ETIMEDOUT);
	return close_both(p);
}

TEST(send_fd_without_room_ends_at_its_deadline)
{
	struct fd_pair p = open_fd_pair(LINE_PAIR);

	run_threadlet(pass_to_nobody, &p);
	close_pipe(&p);
}

/* --- after reads, after a move, and in callbacks ------------------------- */

static int
enable_late(void *arg)
{
	struct fd_pair *p = arg;
	char buf[4];
	int fd;

	/* With io_uring, a receive has been armed since the first read. */
	CHECK_EQ(weft_stream_write(p->ends.a, "abc", 3, WEFT_NEVER), 3);
	CHECK_EQ(weft_stream_read(p->ends.b, buf, 3, WEFT_NEVER), 3);
	OK(weft_stream_set(p->ends.b, "fds", 1));
	CHECK_EQ(weft_stream_recv_fd(p->ends.b, &fd, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	OK(weft_stream_send_fd(p->ends.a, p->fds[0], WEFT_NEVER));
	OK(weft_stream_recv_fd(p->ends.b, &fd, WEFT_NEVER));
	check_received(p, fd);
	return close_both(p);
}

TEST(descriptors_can_be_enabled_after_bytes_were_read)
{
	struct fd_pair p = open_fd_pair(LINE_UNIX);

	run_threadlet(enable_late, &p);
	close_pipe(&p);
}

static void
on_data(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct fd_pair *p = arg;
	int fd;

	(void)data;
	if (size <= 0) {
		CHECK_EQ(size, 0);
		weft_stream_close(stream);
		return;
	}
	OK(weft_stream_recv_fd(stream, &fd, WEFT_NOWAIT));
	check_received(p, fd);
	p->count++;
}

static int
pass_five(void *arg)
{
	struct fd_pair *p = arg;

	for (int i = 0; i < 5; i++)
		OK(weft_stream_send_fd(p->ends.a, p->fds[0], WEFT_NEVER));
	weft_stream_close(p->ends.a);
	return 0;
}

TEST(callback_receives_descriptors_without_waiting)
{
	const weft_stream_events events = { .on_data = on_data };
	struct fd_pair p = open_fd_pair(LINE_UNIX);
	weft_loop *loop = make();

	OK(weft_stream_set(p.ends.b, "fds", 1));
	(void)go_on(loop, pass_five, &p);
	OK(weft_stream_start(p.ends.b, loop, &events, &p));
	OK(weft_loop_run(loop));
	CHECK_EQ(p.count, 5);
	OK(weft_loop_free(loop));
	close_pipe(&p);
}
