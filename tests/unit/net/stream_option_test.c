/* stream_option_test.c - stream options: defaults, values that can be set, and values that
 * cannot. */
#include <errno.h>
#include <netinet/tcp.h>
#include "lines.h"

static int64_t
get(weft_stream *stream, const char *name)
{
	int64_t value = -1;

	OK(weft_stream_get(stream, name, &value));
	return value;
}

/* The value is stored, and stays when a bad one is refused. */
static void
check_set(weft_stream *stream, const char *name, int64_t value, int64_t bad)
{
	OK(weft_stream_set(stream, name, value));
	CHECK_EQ(get(stream, name), value);
	CHECK_EQ(weft_stream_set(stream, name, bad), WEFT_EINVAL);
	CHECK(strstr(weft_detail(), name) != NULL);
	CHECK_EQ(get(stream, name), value);
}

/* --- options of the stream ------------------------------------------------ */

static void
check_own(weft_stream *stream)
{
	CHECK_EQ(get(stream, "read_max"), 65536);
	CHECK_EQ(get(stream, "high_water"), 65536);
	CHECK_EQ(get(stream, "low_water"), 16384);
	CHECK_EQ(get(stream, "write_max"), 16 << 20);
	CHECK_EQ(get(stream, "linger_ns"), (int64_t)(10 * WEFT_S));
	CHECK_EQ(get(stream, "queued"), 0);
	CHECK_EQ(get(stream, "fds"), 0);
	check_set(stream, "read_max", 1, 0);
	check_set(stream, "read_max", 1 << 20, -1);
	check_set(stream, "high_water", INT32_MAX, 0);
	check_set(stream, "high_water", 1, (int64_t)INT32_MAX + 1);
	check_set(stream, "low_water", 0, -1);
	check_set(stream, "low_water", 5, (int64_t)INT32_MAX + 1);
	check_set(stream, "write_max", INT64_MAX, 0);
	check_set(stream, "write_max", 1, -1);
	check_set(stream, "linger_ns", 0, -1);
	check_set(stream, "linger_ns", INT64_MAX, INT64_MIN);
	CHECK_EQ(weft_stream_set(stream, "queued", 0), WEFT_EINVAL);
	CHECK_EQ(weft_stream_set(stream, "fds", 0), WEFT_EINVAL);
}

TEST(watermarks_and_limits_have_documented_defaults_and_can_be_set)
{
	for (int kind = 0; kind < LINE_KINDS; kind++) {
		struct ends ends = open_ends(kind);

		check_own(ends.a);
		weft_stream_close(ends.a);
		weft_stream_close(ends.b);
	}
}

TEST(error_for_an_unknown_option_names_it)
{
	struct ends ends = open_ends(LINE_PAIR);
	int64_t value = 7;

	CHECK_EQ(weft_stream_get(ends.a, "no_delay", &value), WEFT_ENOENT);
	CHECK_STR(weft_detail(), "weft_stream_get: there is no option named \"no_delay\"");
	CHECK_EQ(weft_stream_get(ends.a, NULL, &value), WEFT_ENOENT);
	CHECK_EQ(weft_stream_set(ends.a, "", 1), WEFT_ENOENT);
	CHECK_EQ(value, 7);
	CHECK_MISUSE(weft_stream_get(ends.a, "nodelay", NULL), WEFT_EINVAL);
	weft_stream_close(ends.a);
	weft_stream_close(ends.b);
}

/* --- options of the socket ------------------------------------------------ */

static int
option_of(weft_stream *stream, int level, int name)
{
	socklen_t size = sizeof(int);
	int value = -1;

	OK(getsockopt(weft_stream_fd(stream), level, name, &value, &size));
	return value;
}

/* The kernel doubles the requested size. */
static void
check_buffer(weft_stream *stream, const char *name, int option)
{
	OK(weft_stream_set(stream, name, 30000));
	CHECK(get(stream, name) >= 30000 && get(stream, name) <= 60000);
	CHECK_EQ(get(stream, name), option_of(stream, SOL_SOCKET, option));
	CHECK_EQ(weft_stream_set(stream, name, 0), WEFT_EINVAL);
	CHECK_EQ(weft_stream_set(stream, name, INT32_MAX), WEFT_EINVAL);
}

static void
check_tcp(weft_stream *stream)
{
	CHECK_EQ(get(stream, "nodelay"), 1);
	CHECK_EQ(option_of(stream, IPPROTO_TCP, TCP_NODELAY), 1);
	check_set(stream, "nodelay", 0, 2);
	CHECK_EQ(option_of(stream, IPPROTO_TCP, TCP_NODELAY), 0);
	check_set(stream, "nodelay", 1, -1);
	CHECK_EQ(get(stream, "keepalive_s"), 0);
	check_set(stream, "keepalive_s", 45, -1);
	CHECK_EQ(option_of(stream, SOL_SOCKET, SO_KEEPALIVE), 1);
	CHECK_EQ(option_of(stream, IPPROTO_TCP, TCP_KEEPIDLE), 45);
	check_set(stream, "keepalive_s", 0, 32768);
	CHECK_EQ(option_of(stream, SOL_SOCKET, SO_KEEPALIVE), 0);
	check_buffer(stream, "rcvbuf", SO_RCVBUF);
	check_buffer(stream, "sndbuf", SO_SNDBUF);
}

/* Checks a connected and an accepted stream. */
static int
meet(void *arg)
{
	char text[WEFT_ADDR_TEXT_MAX];
	weft_stream *here, *there;
	weft_listener *listener;
	weft_addr addr;

	(void)arg;
	OK(weft_listener_open("tcp://127.0.0.1:0", NULL, &listener));
	OK(weft_listener_local(listener, &addr));
	CHECK(weft_addr_format(&addr, text, sizeof(text)) > 0);
	OK(weft_stream_connect(text, NULL, &here, WEFT_NEVER));
	OK(weft_listener_accept(listener, &there, WEFT_NEVER));
	check_tcp(here);
	check_tcp(there);
	weft_listener_close(listener);
	weft_stream_close(here);
	weft_stream_close(there);
	return 0;
}

TEST(tcp_connection_has_nodelay_and_its_socket_options_can_be_set)
{
	run_threadlet(meet, NULL);
}

TEST(error_for_an_option_the_descriptor_lacks_names_it)
{
	struct ends pair = open_ends(LINE_PAIR), line = open_ends(LINE_PIPE);
	int64_t value = 7;

	CHECK_EQ(weft_stream_get(pair.a, "nodelay", &value), -EOPNOTSUPP);
	CHECK(strstr(weft_detail(), "nodelay") != NULL);
	CHECK_EQ(weft_stream_set(pair.a, "keepalive_s", 9), -EOPNOTSUPP);
	CHECK_EQ(weft_stream_get(line.a, "sndbuf", &value), -ENOTSOCK);
	CHECK(strstr(weft_detail(), "sndbuf") != NULL);
	CHECK_EQ(weft_stream_set(line.a, "rcvbuf", 9), -ENOTSOCK);
	CHECK_EQ(weft_stream_set(line.a, "fds", 1), WEFT_EINVAL);
	CHECK_EQ(value, 7);
	weft_stream_close(pair.a);
	weft_stream_close(pair.b);
	weft_stream_close(line.a);
	weft_stream_close(line.b);
}

/* --- effects -------------------------------------------------------------- */

static int
check_remote(void *arg)
{
	struct ends *ends = arg;
	const void *seen;

	OK(weft_stream_set(ends->b, "read_max", 100));
	CHECK_EQ(weft_stream_peek(ends->b, 101, &seen, WEFT_NEVER), WEFT_EMSGSIZE);
	CHECK_EQ(weft_stream_write(ends->a, (char[200]){ 0 }, 200, WEFT_NEVER), 200);
	CHECK(weft_stream_peek(ends->b, 100, &seen, WEFT_NEVER) >= 100);
	weft_stream_close(ends->a);
	weft_stream_close(ends->b);
	return 0;
}

TEST(peek_beyond_read_max_is_refused)
{
	struct ends ends = open_ends(LINE_TCP);

	run_threadlet(check_remote, &ends);
}

/* --- calls from another thread than the loop's ---------------------------- */

static void
ignore_data(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	(void)data;
	(void)size;
	(void)arg;
	if (size <= 0)
		weft_stream_close(stream);
}

static const weft_stream_events ignoring = { .on_data = ignore_data };

struct strange {
	weft_loop *loop, *other;
	weft_stream *stream, *peer;
	weft_op op; /* belongs to `other` */
	weft__a32 bound;
};

static void
bind_here(void *arg)
{
	struct strange *s = arg;

	OK(weft_stream_start(s->stream, NULL, &ignoring, NULL));
	weft__store(&s->bound, 1, WEFT__RELEASE);
}

static void
close_here(void *arg)
{
	struct strange *s = arg;

	weft_stream_close(s->stream);
	weft_stream_close(s->peer);
}

enum { STRANGE_CALLS = 18 };

/* Calls, by number, every function that only the loop's thread may call on a stream and that
 * returns an error. */
static int64_t
call_strangely(struct strange *s, int what)
{
	static char buf[8];
	const weft_span span = { buf, sizeof(buf) };
	const void *data;
	int64_t value;
	weft_addr addr;
	int fd;

	/* clang-format off */
	switch (what) {
	case 0: return weft_stream_read(s->stream, buf, 1, WEFT_NOWAIT);
	case 1: return weft_stream_read_exact(s->stream, buf, 1, WEFT_NOWAIT);
	case 2: return weft_stream_read_until(s->stream, "x", buf, 8, WEFT_NOWAIT);
	case 3: return weft_stream_peek(s->stream, 1, &data, WEFT_NOWAIT);
	case 4: return weft_stream_peek_op(s->stream, 1, &s->op, WEFT_NEVER);
	case 5: return weft_stream_skip(s->stream, 0);
	case 6: return weft_stream_write(s->stream, buf, 1, WEFT_NOWAIT);
	case 7: return weft_stream_write_some(s->stream, &span, 1);
	case 8: return weft_stream_write_op(s->stream, &span, 1, &s->op, WEFT_NEVER);
	case 9: return weft_stream_write_file(s->stream, 0, 0, 1, WEFT_NOWAIT);
	case 10: return weft_stream_shutdown(s->stream, WEFT_NOWAIT);
	case 11: return weft_stream_start(s->stream, NULL, &ignoring, NULL);
	case 12: return weft_stream_start(s->stream, s->other, &ignoring, NULL);
	case 13: return weft_stream_stop(s->stream);
	case 14: return weft_stream_set(s->stream, "read_max", 7);
	case 15: return weft_stream_get(s->stream, "read_max", &value);
	case 16: return weft_stream_peer(s->stream, &addr);
	default: return weft_stream_recv_fd(s->stream, &fd, WEFT_NOWAIT);
	}
	/* clang-format on */
}

TEST(stream_call_from_a_thread_other_than_its_loops_is_refused)
{
	struct strange s = { .loop = make_started(), .other = make() };

	OK(open_stream_pair(&s.stream, &s.peer));
	OK(weft_op_init(&s.op, s.other, NULL, NULL));
	OK(weft_loop_post(s.loop, bind_here, &s));
	while (!weft__load(&s.bound, WEFT__ACQUIRE))
		(void)sched_yield();
	for (int i = 0; i < STRANGE_CALLS; i++)
		CHECK_MISUSE(call_strangely(&s, i), WEFT_EWRONGLOOP);
	OK(weft_loop_post(s.loop, close_here, &s));
	stop_and_free(s.loop);
	OK(weft_loop_free(s.other));
}

/* The loop is idle, so this thread may use it.  But the stream is bound to that loop. */
TEST(stream_bound_to_one_idle_loop_cannot_be_started_on_another)
{
	weft_loop *loop = make(), *other = make();
	weft_stream *stream, *peer;

	OK(open_stream_pair(&stream, &peer));
	OK(weft_stream_start(stream, loop, &ignoring, NULL));
	CHECK_MISUSE(weft_stream_start(stream, other, &ignoring, NULL), WEFT_EWRONGLOOP);
	weft_stream_close(peer);
	OK(weft_loop_run(loop)); /* until the stream has seen the end */
	OK(weft_loop_free(loop));
	OK(weft_loop_free(other));
}
