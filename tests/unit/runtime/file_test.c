/* file_test.c - files, without blocking the loop. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/sys.h"
#include "unit/runtime/job.h"
#include "unit/threadlet/sched.h"

#define MANY 40 /* more than a pool runs at once */

static char path[64];

static bool
is_uring(void)
{
	const char *backend = getenv("WEFT_BACKEND");

	return backend && strcmp(backend, "uring") == 0;
}

/* Creates a file and unlinks it, so that no other process sees it. */
static int
make_file(const char *text)
{
	int fd;

	(void)snprintf(path, sizeof(path), "/tmp/weft-file-%d", (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	(void)unlink(path);
	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static int
write_and_read(void *arg)
{
	static char large[3 << 20];
	char buf[32] = "";
	int fd;

	(void)arg;
	(void)snprintf(path, sizeof(path), "/tmp/weft-file-%d", (int)getpid());
	fd = weft_file_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600, WEFT_NEVER);
	CHECK(fd >= 0);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK_EQ(weft_file_write(fd, "hello", 5, 100, WEFT_NEVER), 5);
	OK(weft_file_sync(fd, WEFT_NEVER));
	CHECK_EQ(weft_file_read(fd, buf, sizeof(buf), 101, WEFT_NEVER), 4);
	CHECK_STR(buf, "ello");
	CHECK_EQ(weft_file_read(fd, buf, sizeof(buf), 500, WEFT_NEVER), 0);
	CHECK_EQ(weft_file_write(fd, large, sizeof(large), 0, WEFT_NEVER), 1 << 20);
	CHECK_EQ(weft_file_read(fd, large, sizeof(large), 0, WEFT_NEVER), 1 << 20);
	OK(weft_file_close(fd));
	CHECK_EQ(weft_file_read(fd, buf, 1, 0, WEFT_NEVER), WEFT_EBADF);
	CHECK_EQ(weft_file_sync(fd, WEFT_NEVER), WEFT_EBADF);
	CHECK_EQ(weft_file_close(fd), WEFT_EBADF);
	CHECK_EQ(weft_file_open("/no/such/file", O_RDONLY, 0, WEFT_NEVER), WEFT_ENOENT);
	CHECK_MISUSE(weft_file_open(NULL, O_RDONLY, 0, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_file_read(0, buf, 1, 0, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	(void)unlink(path);
	return 0;
}

TEST(data_written_at_an_offset_is_read_there)
{
	run_threadlet(write_and_read, NULL);
}

/* For the kernel, an offset of -1 means the current file position. */
static int
ask_for_no_offset(void *arg)
{
	int fd = make_file("abc");
	char byte;

	(void)arg;
	CHECK_EQ(weft_file_read(fd, &byte, 1, UINT64_MAX, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_file_write(fd, "x", 1, UINT64_MAX, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 3);
	OK(close(fd));
	return 0;
}

TEST(file_offset_out_of_range_is_an_error)
{
	run_threadlet(ask_for_no_offset, NULL);
}

/* --- FIFOs: opening one end waits for the other ------------------------- */

static void
make_fifo(void)
{
	(void)snprintf(path, sizeof(path), "/tmp/weft-fifo-%d", (int)getpid());
	OK(mkfifo(path, 0600));
}

static int
give_up(void *arg)
{
	int fd;

	(void)arg;
	make_fifo();
	CHECK_EQ(weft_file_open(path, O_RDONLY, 0, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	/* A job that is still running closes what it opened, or finds no file. */
	fd = open(path, O_RDWR | O_NONBLOCK);
	CHECK(fd >= 0);
	(void)unlink(path);
	OK(close(fd));
	return 0;
}

TEST(open_that_timed_out_leaves_nothing_open)
{
	run_threadlet(give_up, NULL);
}

static int
open_to_write(void *arg)
{
	*(int *)arg = weft_file_open(path, O_WRONLY, 0, WEFT_NEVER);
	return 0;
}

static int
open_both_ends(void *arg)
{
	int in, out = -1;
	weft_scope scope;

	(void)arg;
	make_fifo();
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, open_to_write, &out) > 0);
	OK(weft_yield());
	in = weft_file_open(path, O_RDONLY, 0, WEFT_NEVER);
	OK(weft_scope_close(&scope));
	CHECK(in >= 0);
	CHECK(out >= 0);
	OK(weft_file_close(in));
	OK(weft_file_close(out));
	(void)unlink(path);
	return 0;
}

TEST(opening_one_end_of_a_fifo_waits_for_the_other)
{
	run_threadlet(open_both_ends, NULL);
}

static void
in_callback(void *arg)
{
	char byte;

	(void)arg;
	CHECK_EQ(weft_file_read(0, &byte, 1, 0, WEFT_NEVER), WEFT_ENOSUSPEND);
	CHECK_EQ(weft_file_write(0, &byte, 1, 0, WEFT_NEVER), WEFT_ENOSUSPEND);
	CHECK_EQ(weft_file_open("/", O_RDONLY, 0, WEFT_NEVER), WEFT_ENOSUSPEND);
	CHECK_EQ(weft_file_sync(0, WEFT_NEVER), WEFT_ENOSUSPEND);
}

TEST(file_calls_outside_a_threadlet_are_refused)
{
	in_callback(NULL);
}

struct use {
	int fd;
	uint64_t deadline_ns;
	char byte;
	ssize_t result;
	weft_threadlet id;
};

static int
read_byte(void *arg)
{
	struct use *use = arg;

	use->result = weft_file_read(use->fd, &use->byte, 1, 0, use->deadline_ns);
	return 0;
}

static void
start_reading(weft_loop *loop, struct use *use, int fd, uint64_t deadline_ns)
{
	*use = (struct use){ .fd = fd, .deadline_ns = deadline_ns };
	use->id = go_on(loop, read_byte, use);
}

TEST(many_threadlets_read_one_file_at_once)
{
	weft_loop *loop = make();
	static struct use uses[MANY];
	int fd = make_file("abc");

	for (int i = 0; i < MANY; i++)
		start_reading(loop, &uses[i], fd, WEFT_NEVER);
	OK(weft_loop_run(loop));
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(uses[i].result, 1);
		CHECK_EQ(uses[i].byte, 'a');
	}
	OK(weft_loop_free(loop));
	OK(close(fd));
}

static int
misuse_files(void *arg)
{
	char byte;

	(void)arg;
	CHECK_EQ(weft_file_read(-1, &byte, 1, 0, WEFT_NEVER), WEFT_EBADF);
	CHECK_EQ(weft_file_read(0, &byte, 1, UINT64_MAX, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE(weft_file_read(0, NULL, 1, 0, WEFT_NEVER), WEFT_EINVAL);
	return 0;
}

TEST(file_read_of_a_bad_descriptor_offset_or_buffer_is_refused)
{
	run_threadlet(misuse_files, NULL);
}

TEST(loop_stop_ends_file_reads)
{
	weft_loop *loop = make();
	static struct use uses[MANY];
	int fd = make_file("abc");

	for (int i = 0; i < MANY; i++)
		start_reading(loop, &uses[i], fd, WEFT_NEVER);
	turn(loop);
	stop_idle(loop);
	for (int i = 0; i < MANY; i++)
		CHECK(uses[i].result == 1 || uses[i].result == WEFT_ECANCELED);
	OK(close(fd));
}

TEST(file_read_of_a_pipe_fails_with_espipe_without_io_uring)
{
	struct use use = { .deadline_ns = WEFT_NEVER };
	int fds[2];

	OK(pipe(fds));
	CHECK_EQ(write(fds[1], "a", 1), 1);
	use.fd = fds[0];
	run_threadlet(read_byte, &use);
	CHECK_EQ(use.result, is_uring() ? 1 : -ESPIPE);
	OK(close(fds[0]));
	OK(close(fds[1]));
}

/* --- reads that are stuck: their pool is busy, or io_uring reads an empty pipe -- */

struct stuck {
	weft_loop *loop;
	weft_pool *cpu, *pool; /* one thread each; that of `pool` is busy with `job` */
	struct job job;
	int fds[2];
};

static void
make_stuck(struct stuck *stuck)
{
	stuck->loop = make();
	stuck->cpu = make_pool(1, 0);
	stuck->pool = make_pool(1, 0);
	OK(weft__loop_set_pools(stuck->loop, stuck->cpu, stuck->pool));
	push_job(stuck->loop, stuck->pool, &stuck->job);
	weft_op_set_background(&stuck->job.p.op, true);
	await_running(&stuck->job);
	OK(pipe(stuck->fds));
}

static void
free_stuck(struct stuck *stuck)
{
	open_gate(&stuck->job);
	stop_idle(stuck->loop);
	OK(weft_pool_free(stuck->pool));
	OK(weft_pool_free(stuck->cpu));
	OK(close(stuck->fds[0]));
	OK(close(stuck->fds[1]));
}

TEST(stuck_file_read_can_be_canceled_and_times_out)
{
	struct use asked, late, left;
	struct stuck stuck;

	make_stuck(&stuck);
	start_reading(stuck.loop, &asked, stuck.fds[0], WEFT_NEVER);
	start_reading(stuck.loop, &late, stuck.fds[0], weft_after(WEFT_MS));
	start_reading(stuck.loop, &left, stuck.fds[0], WEFT_NEVER);
	while (late.result == 0)
		(void)weft_loop_run_once(stuck.loop, weft_after(WEFT_MS));
	OK(weft_cancel(asked.id));
	while (asked.result == 0)
		(void)weft_loop_run_once(stuck.loop, weft_after(WEFT_MS));
	CHECK_EQ(asked.result, WEFT_ECANCELED);
	CHECK_EQ(late.result, WEFT_ETIMEDOUT);
	CHECK_EQ(left.result, 0);
	free_stuck(&stuck);
	/* The pool may have started it while the loop stopped. */
	CHECK(left.result == -ESPIPE || left.result == WEFT_ECANCELED);
}

/* --- which thread makes the calls --------------------------------------- */

static struct weft__sys table;
static pthread_t loop_thread;
static weft__a32 reads;

static int64_t
read_elsewhere(int fd, void *buf, size_t size, uint64_t offset)
{
	CHECK(!pthread_equal(pthread_self(), loop_thread));
	(void)weft__add(&reads, 1, WEFT__RELAXED);
	return weft__sys_real.file_read(fd, buf, size, offset);
}

static int
read_twice(void *arg)
{
	char byte;

	CHECK_EQ(weft_file_read(*(int *)arg, &byte, 1, 0, WEFT_NEVER), 1);
	CHECK_EQ(weft_file_read(*(int *)arg, &byte, 1, 1, WEFT_NEVER), 1);
	return 0;
}

TEST(file_reads_run_in_the_kernel_or_on_other_threads)
{
	const struct weft__sys *before = weft__sys;
	int fd = make_file("abc");

	table = *before;
	table.file_read = read_elsewhere;
	weft__store(&reads, 0, WEFT__RELAXED);
	loop_thread = pthread_self();
	weft__sys = &table;
	run_threadlet(read_twice, &fd);
	weft__sys = before;
	CHECK_EQ(weft__load(&reads, WEFT__RELAXED), is_uring() ? 0 : 2);
	OK(close(fd));
}
