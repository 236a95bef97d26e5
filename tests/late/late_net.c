/* late_net.c - the table of waiting calls: descriptors, streams, datagrams, listeners. */
#include <fcntl.h>
#include <unistd.h>
#include <weft/debug.h>
#include "base/sys.h"
#include "threadlet/threadlet.h"
#include "late/late.h"

/* --- socket pairs ---------------------------------------------------------- */

static void
open_pair_of(struct waiter *w, int type)
{
	int size = 4096, fds[2];

	OK(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds));
	for (int i = 0; i < 2; i++)
		OK(setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)));
	w->fd = fds[0];
	w->peer = fds[1];
}

static void
open_fds(struct waiter *w)
{
	open_pair_of(w, SOCK_STREAM);
}

static void
close_fds(struct waiter *w)
{
	OK(close(w->fd));
	OK(close(w->peer));
}

static void
open_full_fds(struct waiter *w)
{
	open_fds(w);
	fill(w->fd);
}

static void
open_stream(struct waiter *w)
{
	open_fds(w);
	OK(weft_stream_open_fd(w->fd, false, &w->stream));
}

static void
open_full_stream(struct waiter *w)
{
	open_stream(w);
	fill(w->fd);
}

/* Discard the queued data: a close would wait for the peer. */
static void
close_stream(struct waiter *w)
{
	weft_stream_reset(w->stream);
	OK(close(w->peer));
}

static void
send_line(struct waiter *w)
{
	put(w->peer, "hello\n");
}

static void
make_room(struct waiter *w)
{
	CHECK(drain(w->peer) > 0);
}

/* --- streams: reading -------------------------------------------------------- */

static int64_t
call_read(struct waiter *w, uint64_t deadline_ns)
{
	return weft_stream_read(w->stream, w->buf, sizeof(w->buf), deadline_ns);
}

static int64_t
call_read_exact(struct waiter *w, uint64_t deadline_ns)
{
	return weft_stream_read_exact(w->stream, w->buf, 6, deadline_ns);
}

static int64_t
call_read_until(struct waiter *w, uint64_t deadline_ns)
{
	return weft_stream_read_until(w->stream, "\n", w->buf, sizeof(w->buf), deadline_ns);
}

static int64_t
call_peek(struct waiter *w, uint64_t deadline_ns)
{
	const void *data;

	return weft_stream_peek(w->stream, 6, &data, deadline_ns);
}

static void
begin_peek(struct waiter *w, uint64_t deadline_ns)
{
	OK(weft_op_init(&w->op, NULL, NULL, NULL));
	OK(weft_stream_peek_op(w->stream, 6, &w->op, deadline_ns));
}

static int64_t
call_peek_op(struct waiter *w, uint64_t deadline_ns)
{
	begin_peek(w, deadline_ns);
	return weft_op_wait(&w->op, WEFT_NEVER);
}

static int64_t
call_wait_for_peek(struct waiter *w, uint64_t deadline_ns)
{
	begin_peek(w, WEFT_NEVER);
	return weft_op_wait(&w->op, deadline_ns);
}

/* Select on an op that was started.  The op has ended when this returns. */
static int64_t
select_op(struct waiter *w, uint64_t deadline_ns)
{
	weft_case c = { .op = &w->op };
	int64_t rc = weft_select(&c, 1, deadline_ns);

	if (rc == 0)
		return c.result;
	weft_op_cancel(&w->op);
	(void)weft_op_wait(&w->op, WEFT_NEVER);
	return rc;
}

static int64_t
call_select_peek(struct waiter *w, uint64_t deadline_ns)
{
	begin_peek(w, WEFT_NEVER);
	return select_op(w, deadline_ns);
}

static int64_t
call_recv_fd(struct waiter *w, uint64_t deadline_ns)
{
	int fd, rc = weft_stream_recv_fd(w->stream, &fd, deadline_ns);

	if (rc == 0)
		OK(close(fd));
	return rc;
}

static void
send_a_descriptor(struct waiter *w)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
		                .cmsg_level = SOL_SOCKET,
		                .cmsg_type = SCM_RIGHTS } };
	char x = 0;
	struct iovec byte = { &x, 1 };
	struct msghdr msg = { .msg_iov = &byte,
		              .msg_iovlen = 1,
		              .msg_control = &control,
		              .msg_controllen = sizeof(control.bytes) };
	int fd = STDOUT_FILENO;

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	CHECK_EQ(sendmsg(w->peer, &msg, 0), 1);
}

static void
accept_descriptors(struct waiter *w)
{
	open_stream(w);
	OK(weft_stream_set(w->stream, "fds", 1));
}

/* --- scope deadlines ---------------------------------------------------------- */

static int64_t
call_in_scope(struct waiter *w, uint64_t deadline_ns)
{
	int64_t rc;

	OK(weft_scope_open(&w->scope, 0, deadline_ns));
	rc = weft_stream_read(w->stream, w->buf, sizeof(w->buf), WEFT_NEVER);
	(void)weft_scope_close(&w->scope);
	return rc;
}

static int64_t
call_in_bounded_scope(struct waiter *w, uint64_t deadline_ns)
{
	int64_t rc;

	OK(weft_scope_open(&w->scope, 0, WEFT_NEVER));
	OK(weft_scope_set_deadline(&w->scope, deadline_ns));
	rc = weft_stream_read(w->stream, w->buf, sizeof(w->buf), WEFT_NEVER);
	(void)weft_scope_close(&w->scope);
	return rc;
}

/* The abort signal cancels the scope, with its own reason. */
static int64_t
call_in_aborted_scope(struct waiter *w, uint64_t deadline_ns)
{
	weft_abort *abort = weft_abort_new_timeout(NULL, deadline_ns);
	int64_t rc;

	CHECK(abort != NULL);
	OK(weft_scope_open(&w->scope, 0, WEFT_NEVER));
	OK(weft_abort_scope(abort, &w->scope));
	rc = weft_stream_read(w->stream, w->buf, sizeof(w->buf), WEFT_NEVER);
	(void)weft_scope_close(&w->scope);
	(void)weft_abort_unref(abort);
	return rc == WEFT_ECANCELED ? WEFT_ETIMEDOUT : rc;
}

/* --- streams: writing --------------------------------------------------------- */

static int64_t
call_write(struct waiter *w, uint64_t deadline_ns)
{
	return weft_stream_write(w->stream, "x", 1, deadline_ns);
}

static int64_t
call_write_op(struct waiter *w, uint64_t deadline_ns)
{
	w->span = weft_text("x");
	OK(weft_op_init(&w->op, NULL, NULL, NULL));
	OK(weft_stream_write_op(w->stream, &w->span, 1, &w->op, deadline_ns));
	return weft_op_wait(&w->op, WEFT_NEVER);
}

static void
open_file(struct stage *stage)
{
	char path[] = "late_test.XXXXXX";

	stage->fd = mkstemp(path);
	CHECK(stage->fd >= 0);
	OK(unlink(path));
	CHECK_EQ(write(stage->fd, "x", 1), 1);
}

static void
close_file(struct stage *stage)
{
	OK(close(stage->fd));
}

static int64_t
call_write_file(struct waiter *w, uint64_t deadline_ns)
{
	return weft_stream_write_file(w->stream, w->stage->fd, 0, 1, deadline_ns);
}

/* Without sendfile(2) the blocking pool reads the file before the call waits for room, so the
 * director waits until no threadlet waits for the pool.  Asking once, for the first waiter, covers
 * all of them. */
static bool
has_read_file(struct waiter *w)
{
	weft_threadlet_info infos[64];
	uint64_t cursor = 0;
	int n;

	if (w != w->stage->waiters)
		return true;
	while ((n = weft__threadlet_list(weft_loop_current(), &cursor, infos, 64, WEFT_NOWAIT)) > 0)
		for (int i = 0; i < n; i++)
			if (strcmp(infos[i].waits_for, "file") == 0)
				return false;
	return true;
}

static int64_t
call_send_fd(struct waiter *w, uint64_t deadline_ns)
{
	return weft_stream_send_fd(w->stream, STDOUT_FILENO, deadline_ns);
}

/* Queue a byte that must be sent before the half-close. */
static void
queue_byte(struct waiter *w)
{
	w->span = weft_text("x");
	OK(weft_op_init(&w->op, NULL, NULL, NULL));
	OK(weft_stream_write_op(w->stream, &w->span, 1, &w->op, WEFT_NEVER));
}

static int64_t
call_shutdown(struct waiter *w, uint64_t deadline_ns)
{
	int64_t rc;

	queue_byte(w);
	rc = weft_stream_shutdown(w->stream, deadline_ns);
	weft_op_cancel(&w->op);
	(void)weft_op_wait(&w->op, WEFT_NEVER);
	return rc;
}

/* --- descriptors ---------------------------------------------------------------- */

static int64_t
call_wait_fd(struct waiter *w, uint64_t deadline_ns)
{
	return weft_wait_fd(w->fd, WEFT_READABLE, deadline_ns);
}

static int64_t
call_op_poll(struct waiter *w, uint64_t deadline_ns)
{
	OK(weft_op_init(&w->op, NULL, NULL, NULL));
	OK(weft_op_poll(&w->op, w->fd, WEFT_READABLE, deadline_ns));
	return weft_op_wait(&w->op, WEFT_NEVER);
}

static void
begin_recv(struct waiter *w, uint64_t deadline_ns)
{
	OK(weft_op_init(&w->op, NULL, NULL, NULL));
	OK(weft_op_recv(&w->op, w->fd, w->buf, sizeof(w->buf), 0, deadline_ns));
}

static int64_t
call_op_recv(struct waiter *w, uint64_t deadline_ns)
{
	begin_recv(w, deadline_ns);
	return weft_op_wait(&w->op, WEFT_NEVER);
}

static int64_t
call_op_wait(struct waiter *w, uint64_t deadline_ns)
{
	begin_recv(w, WEFT_NEVER);
	return weft_op_wait(&w->op, deadline_ns);
}

static int64_t
call_select_recv(struct waiter *w, uint64_t deadline_ns)
{
	begin_recv(w, WEFT_NEVER);
	return select_op(w, deadline_ns);
}

static int64_t
call_op_send(struct waiter *w, uint64_t deadline_ns)
{
	OK(weft_op_init(&w->op, NULL, NULL, NULL));
	OK(weft_op_send(&w->op, w->fd, w->buf, 1, 0, deadline_ns));
	return weft_op_wait(&w->op, WEFT_NEVER);
}

/* Keep the first of many results, then end the op. */
static void
on_received(weft_op *op, int64_t result, void *arg)
{
	struct waiter *w = arg;

	if (w->value == 0)
		w->value = result;
	if (op->more)
		weft_op_cancel(op);
	else
		OK(weft_event_set(w->object));
}

static int64_t
call_op_recv_multi(struct waiter *w, uint64_t deadline_ns)
{
	weft_event over = WEFT_INIT;

	w->object = &over;
	OK(weft_op_init(&w->op, NULL, on_received, w));
	OK(weft_op_recv_multi(&w->op, w->fd, deadline_ns));
	OK(weft_event_wait(&over, WEFT_NEVER));
	return w->value;
}

/* --- connections ------------------------------------------------------------------ */

/* Each waiter has its own address, 127.1.x.y, so that thousands of them do not use up the ports
 * of one address. */
static struct sockaddr_in
door_of(const struct waiter *w)
{
	uint32_t index = (uint32_t)(w - w->stage->waiters);

	return (struct sockaddr_in){ .sin_family = AF_INET,
		                     .sin_port = (in_port_t)w->value,
		                     .sin_addr.s_addr = htonl(0x7f010001 + index) };
}

static void
write_door(const struct waiter *w, char *out, size_t size)
{
	uint32_t index = 1 + (uint32_t)(w - w->stage->waiters);

	(void)snprintf(out, size, "tcp://127.1.%u.%u:%u", index >> 8, index & 255,
	               ntohs((in_port_t)w->value));
}

static void
open_door(struct waiter *w)
{
	struct sockaddr_in addr;
	socklen_t size = sizeof(addr);

	w->value = 0;
	addr = door_of(w);
	w->fd = weft__sys->socket(AF_INET, SOCK_STREAM, 0);
	OK(bind(w->fd, (struct sockaddr *)&addr, size));
	OK(listen(w->fd, 8));
	OK(getsockname(w->fd, (struct sockaddr *)&addr, &size));
	w->value = addr.sin_port;
}

static void
connect_there(struct waiter *w)
{
	struct sockaddr_in addr = door_of(w);

	w->peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(w->peer >= 0);
	OK(connect(w->peer, (struct sockaddr *)&addr, sizeof(addr)));
}

static void
close_door(struct waiter *w)
{
	OK(close(w->fd));
	if (w->peer >= 0)
		OK(close(w->peer));
}

static int64_t
call_op_accept(struct waiter *w, uint64_t deadline_ns)
{
	int64_t rc;

	OK(weft_op_init(&w->op, NULL, NULL, NULL));
	OK(weft_op_accept(&w->op, w->fd, 0, deadline_ns));
	rc = weft_op_wait(&w->op, WEFT_NEVER);
	if (rc >= 0)
		OK(close((int)rc));
	return rc;
}

static void
open_listener(struct waiter *w)
{
	weft_listener *listener;
	weft_addr addr;
	char text[WEFT_ADDR_TEXT_MAX];

	w->value = 0;
	write_door(w, text, sizeof(text));
	OK(weft_listener_open(text, NULL, &listener));
	OK(weft_listener_local(listener, &addr));
	CHECK(weft_addr_format(&addr, text, sizeof(text)) > 0);
	w->value = htons((in_port_t)strtol(strrchr(text, ':') + 1, NULL, 10));
	w->object = listener;
}

static void
close_listener(struct waiter *w)
{
	weft_listener_close(w->object);
	if (w->peer >= 0)
		OK(close(w->peer));
}

static int64_t
call_listener_accept(struct waiter *w, uint64_t deadline_ns)
{
	weft_stream *stream;
	int64_t rc = weft_listener_accept(w->object, &stream, deadline_ns);

	if (rc == 0)
		weft_stream_reset(stream);
	return rc;
}

static void
name_door(struct waiter *w)
{
	open_door(w);
	write_door(w, w->buf, sizeof(w->buf));
}

static int64_t
call_connect(struct waiter *w, uint64_t deadline_ns)
{
	int64_t rc = weft_stream_connect(w->buf, NULL, &w->stream, deadline_ns);

	if (rc == 0)
		weft_stream_reset(w->stream);
	return rc;
}

static int64_t
call_connect_op(struct waiter *w, uint64_t deadline_ns)
{
	int64_t rc;

	OK(weft_op_init(&w->op, NULL, NULL, NULL));
	OK(weft_stream_connect_op(w->buf, NULL, &w->stream, &w->op, deadline_ns));
	rc = weft_op_wait(&w->op, WEFT_NEVER);
	if (rc == 0)
		weft_stream_reset(w->stream);
	return rc;
}

static int64_t
call_op_connect(struct waiter *w, uint64_t deadline_ns)
{
	struct sockaddr_in addr = door_of(w);
	int fd = weft__sys->socket(AF_INET, SOCK_STREAM, 0);
	int64_t rc;

	CHECK(fd >= 0);
	OK(weft_op_init(&w->op, NULL, NULL, NULL));
	OK(weft_op_connect(&w->op, fd, (struct sockaddr *)&addr, sizeof(addr), deadline_ns));
	rc = weft_op_wait(&w->op, WEFT_NEVER);
	OK(close(fd));
	return rc;
}

/* --- datagrams ---------------------------------------------------------------------- */

static void
open_dgram(struct waiter *w)
{
	weft_dgram *dgram;
	char text[32];

	open_pair_of(w, SOCK_DGRAM);
	(void)snprintf(text, sizeof(text), "fd:%d", w->fd);
	OK(weft_dgram_open(text, NULL, &dgram));
	w->object = dgram;
}

static void
open_full_dgram(struct waiter *w)
{
	open_dgram(w);
	while (send(w->fd, "x", 1, MSG_DONTWAIT) == 1)
		;
}

static void
close_dgram(struct waiter *w)
{
	weft_dgram_close(w->object);
	OK(close(w->peer));
}

static weft_message
message(struct waiter *w, size_t size)
{
	return (weft_message){ .data = w->buf, .size = size };
}

static int64_t
call_dgram_recv(struct waiter *w, uint64_t deadline_ns)
{
	weft_message m = message(w, sizeof(w->buf));

	return weft_dgram_recv(w->object, &m, 1, deadline_ns);
}

static int64_t
call_dgram_send(struct waiter *w, uint64_t deadline_ns)
{
	weft_message m = message(w, 1);

	return weft_dgram_send(w->object, &m, 1, deadline_ns);
}

/* clang-format off */
#define ROW(call_) .call = #call_
#define READS(call_it_) \
	.prepare = open_stream, .call_it = call_it_, .finish = close_stream, .feed = send_line
#define WRITES(call_it_) \
	.prepare = open_full_stream, .call_it = call_it_, .finish = close_stream, \
	.feed = make_room
#define RECEIVES(call_it_) \
	.prepare = open_fds, .call_it = call_it_, .finish = close_fds, .feed = send_line
#define SENDS(call_it_) \
	.prepare = open_full_fds, .call_it = call_it_, .finish = close_fds, .feed = make_room
/* The kernel connects at once, so a connect that waits until its deadline is not possible. */
#define CONNECTS(call_it_) \
	.prepare = name_door, .call_it = call_it_, .finish = close_door, .at_once = true, \
	.has_no_end = true, .max = 60
const struct row late_net_rows[] = {
	{ ROW(weft_stream_read), READS(call_read) },
	{ ROW(weft_stream_read_exact), READS(call_read_exact) },
	{ ROW(weft_stream_read_until), READS(call_read_until) },
	{ ROW(weft_stream_peek), READS(call_peek) },
	{ ROW(weft_stream_peek_op), READS(call_peek_op) },
	{ ROW(weft_op_wait), READS(call_wait_for_peek) },
	{ ROW(weft_select), READS(call_select_peek) },
	{ ROW(weft_stream_recv_fd), .prepare = accept_descriptors, .call_it = call_recv_fd,
	  .finish = close_stream, .feed = send_a_descriptor },
	{ ROW(weft_scope_open), READS(call_in_scope) },
	{ ROW(weft_scope_set_deadline), READS(call_in_bounded_scope) },
	{ ROW(weft_abort_new_timeout), READS(call_in_aborted_scope) },
	{ ROW(weft_stream_write), WRITES(call_write) },
	{ ROW(weft_stream_write_op), WRITES(call_write_op) },
	{ ROW(weft_stream_write_file), WRITES(call_write_file), .is_waiting = has_read_file,
	  .open = open_file, .close = close_file },
	{ ROW(weft_stream_send_fd), WRITES(call_send_fd) },
	{ ROW(weft_stream_shutdown), WRITES(call_shutdown) },
	{ ROW(weft_wait_fd), RECEIVES(call_wait_fd) },
	{ ROW(weft_op_poll), RECEIVES(call_op_poll) },
	{ ROW(weft_op_recv), RECEIVES(call_op_recv) },
	{ ROW(weft_op_recv_multi), RECEIVES(call_op_recv_multi) },
	{ ROW(weft_op_wait), RECEIVES(call_op_wait) },
	{ ROW(weft_select), RECEIVES(call_select_recv) },
	{ ROW(weft_op_send), SENDS(call_op_send) },
	{ ROW(weft_op_accept), .prepare = open_door, .call_it = call_op_accept,
	  .finish = close_door, .feed = connect_there },
	{ ROW(weft_listener_accept), .prepare = open_listener,
	  .call_it = call_listener_accept, .finish = close_listener,
	  .feed = connect_there },
	{ ROW(weft_stream_connect), CONNECTS(call_connect) },
	{ ROW(weft_stream_connect_op), CONNECTS(call_connect_op) },
	{ ROW(weft_op_connect), CONNECTS(call_op_connect) },
	{ ROW(weft_dgram_recv), .prepare = open_dgram, .call_it = call_dgram_recv,
	  .finish = close_dgram, .feed = send_line },
	{ ROW(weft_dgram_send), .prepare = open_full_dgram, .call_it = call_dgram_send,
	  .finish = close_dgram, .feed = make_room },
	{ NULL },
};
/* clang-format on */
