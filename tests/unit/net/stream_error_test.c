/* stream_error_test.c - errors of a connection name the peer. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "unit/threadlet/sched.h"

struct line {
	weft_listener *listener;
	char address[WEFT_ADDR_TEXT_MAX];
	weft_stream *near, *far;
};

/* Connects over TCP.  `far` is the accepted end. */
static void
connect_line(struct line *line)
{
	weft_addr addr;

	OK(weft_listener_open("tcp://127.0.0.1:0", NULL, &line->listener));
	OK(weft_listener_local(line->listener, &addr));
	CHECK(weft_addr_format(&addr, line->address, sizeof(line->address)) > 0);
	OK(weft_stream_connect(line->address, NULL, &line->near, WEFT_NEVER));
	OK(weft_listener_accept(line->listener, &line->far, WEFT_NEVER));
	weft_listener_close(line->listener);
}

static void
check_named(const struct line *line, int64_t result)
{
	CHECK(result == WEFT_ECONNRESET || result == WEFT_EPIPE);
	CHECK(strstr(weft_detail(), line->address) != NULL);
	CHECK(strstr(weft_detail(), weft_strerror((int)result)) != NULL);
	(void)weft_fail(0, "%s", "");
}

/* A reader gets the reset itself, on every read. */
static void
check_reset(const struct line *line, int64_t result)
{
	CHECK_EQ(result, WEFT_ECONNRESET);
	check_named(line, result);
}

static int
reset_far(void *arg)
{
	weft_stream_reset(((struct line *)arg)->far);
	return 0;
}

static int
read_reset(void *arg)
{
	struct line line;
	char buf[8];

	(void)arg;
	connect_line(&line);
	CHECK(weft_go(reset_far, &line) > 0);
	check_reset(&line, weft_stream_read(line.near, buf, 8, WEFT_NEVER));
	check_reset(&line, weft_stream_read(line.near, buf, 8, WEFT_NEVER));
	check_reset(&line, weft_stream_read_exact(line.near, buf, 8, WEFT_NEVER));
	check_named(&line, weft_stream_write(line.near, buf, 8, WEFT_NEVER));
	check_named(&line, weft_stream_write(line.near, buf, 8, WEFT_NEVER));
	weft_stream_close(line.near);
	return 0;
}

TEST(read_error_after_a_reset_names_the_peer)
{
	run_threadlet(read_reset, NULL);
}

static int
write_reset(void *arg)
{
	static char much[64 << 20];
	struct line line;

	(void)arg;
	connect_line(&line);
	CHECK(weft_go(reset_far, &line) > 0);
	check_named(&line, weft_stream_write(line.near, much, sizeof(much), WEFT_NEVER));
	weft_stream_close(line.near);
	return 0;
}

TEST(write_error_after_a_reset_names_the_peer)
{
	run_threadlet(write_reset, NULL);
}

/* --- missing permission ----------------------------------------------------- */

#define NOBODY 65534

struct trial {
	const char *address;
	bool refused;
};

static int
connect_forbidden(void *arg)
{
	struct trial *trial = arg;
	weft_stream *stream;

	trial->refused = weft_stream_connect(trial->address, NULL, &stream, WEFT_NEVER) == -EACCES
	                 && strstr(weft_detail(), trial->address);
	return 0;
}

/* Runs in a forked child, as a user without permission.  The child can report only by its exit
 * status. */
static bool
is_refused(const char *address)
{
	struct trial trial = { address, false };
	weft_listener *listener;
	weft_go_opts opts = { .loop = weft_loop_new(NULL) };

	if (setreuid(NOBODY, NOBODY) < 0 || !opts.loop
	    || weft_go_with(&opts, connect_forbidden, &trial) < 0 || weft_loop_run(opts.loop) < 0)
		return false;
	return weft_listener_open("unix:/weft-forbidden", NULL, &listener) == -EACCES
	       && strstr(weft_detail(), "unix:/weft-forbidden") && trial.refused;
}

/* --- a peer that is dropped for not reading --------------------------------- */

#define PIECES 300

struct dropped {
	struct line line;
	int failed;
};

static char piece[100000];

static int
read_dropped(void *arg)
{
	struct dropped *d = arg;
	char buf[8];

	CHECK_EQ(weft_stream_read(d->line.near, buf, 8, WEFT_NEVER), 3);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(weft_stream_read(d->line.near, buf, 8, WEFT_NEVER), WEFT_ENOBUFS);
		CHECK(strstr(weft_detail(), d->line.address) != NULL);
		CHECK(strstr(weft_detail(), "write_max") != NULL);
		(void)weft_fail(0, "%s", "");
	}
	return 0;
}

static void
on_piece(weft_op *op, int64_t result, void *arg)
{
	struct dropped *d = arg;

	(void)op;
	CHECK(result == sizeof(piece) || result == WEFT_ENOBUFS);
	d->failed += result < 0;
}

/* The peer sends three bytes and reads none. */
static int
write_until_dropped(void *arg)
{
	static weft_op ops[PIECES];
	static const weft_span span = { piece, sizeof(piece) };
	struct dropped d = { .failed = 0 };
	weft_scope scope;

	(void)arg;
	connect_line(&d.line);
	CHECK_EQ(weft_stream_write(d.line.far, "abc", 3, WEFT_NEVER), 3);
	OK(weft_stream_set(d.line.near, "write_max", 1000000));
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, read_dropped, &d) > 0);
	for (int i = 0; d.failed == 0; i++) {
		CHECK(i < PIECES);
		OK(weft_op_init(&ops[i], NULL, on_piece, &d));
		CHECK(weft_stream_write_op(d.line.near, &span, 1, &ops[i], WEFT_NEVER) >= 0);
		OK(weft_yield());
	}
	OK(weft_scope_close(&scope));
	weft_stream_close(d.line.near);
	weft_stream_close(d.line.far);
	return 0;
}

TEST(reader_of_a_dropped_peer_gets_enobufs_after_the_bytes_that_arrived)
{
	run_threadlet(write_until_dropped, NULL);
}

TEST(permission_error_names_the_address)
{
	weft_listener *listener;
	char address[64];
	int status;
	pid_t pid;

	if (geteuid() != 0)
		test_skip("only root can become one who is refused");
	(void)snprintf(address, sizeof(address), "unix:/tmp/weft-mine-%d", (int)getpid());
	OK(weft_listener_open(address, NULL, &listener));
	pid = fork();
	if (pid == 0)
		_exit(is_refused(address) ? 0 : 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	weft_listener_close(listener);
}
