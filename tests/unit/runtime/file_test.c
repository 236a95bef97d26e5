/* file_test.c - files, without blocking the loop. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "unit/threadlet/crew.h"

static char path[64];

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
	CHECK_EQ(weft_file_write(fd, "hello", 5, 100, WEFT_NEVER), 5);
	OK(weft_file_sync(fd, WEFT_NEVER));
	CHECK_EQ(weft_file_read(fd, buf, sizeof(buf), 101, WEFT_NEVER), 4);
	CHECK_STR(buf, "ello");
	CHECK_EQ(weft_file_read(fd, buf, sizeof(buf), 500, WEFT_NEVER), 0);
	CHECK_EQ(weft_file_write(fd, large, sizeof(large), 0, WEFT_NEVER),
	         1 << 20);
	CHECK_EQ(weft_file_read(fd, large, sizeof(large), 0, WEFT_NEVER),
	         1 << 20);
	OK(weft_file_close(fd));
	CHECK_EQ(weft_file_read(fd, buf, 1, 0, WEFT_NEVER), WEFT_EBADF);
	CHECK_EQ(weft_file_sync(fd, WEFT_NEVER), WEFT_EBADF);
	CHECK_EQ(weft_file_close(fd), WEFT_EBADF);
	CHECK_EQ(weft_file_open("/no/such/file", O_RDONLY, 0, WEFT_NEVER),
	         WEFT_ENOENT);
	CHECK_MISUSE(weft_file_open(NULL, O_RDONLY, 0, WEFT_NEVER),
	             WEFT_EINVAL);
	CHECK_EQ(weft_file_read(0, buf, 1, 0, WEFT_NOW), WEFT_ETIMEDOUT);
	(void)unlink(path);
	return 0;
}

TEST(what_is_written_at_an_offset_is_read_there)
{
	run_threadlet(write_and_read, NULL);
}

/* Opening one end of a FIFO blocks until there is the other. */
static int
give_up(void *arg)
{
	int fd;

	(void)arg;
	(void)snprintf(path, sizeof(path), "/tmp/weft-fifo-%d", (int)getpid());
	OK(mkfifo(path, 0600));
	CHECK_EQ(weft_file_open(path, O_RDONLY, 0, weft_in(WEFT_MS)),
	         WEFT_ETIMEDOUT);
	fd = open(path,
	          O_WRONLY); /* the job goes on, and closes what it opened */
	CHECK(fd >= 0);
	OK(close(fd));
	(void)unlink(path);
	return 0;
}

TEST(a_call_that_gave_up_leaves_nothing_open)
{
	run_threadlet(give_up, NULL);
}

static void
in_callback(void *arg)
{
	char byte;

	(void)arg;
	CHECK_EQ(weft_file_read(0, &byte, 1, 0, WEFT_NEVER), WEFT_EDEADLK);
	CHECK_EQ(weft_file_write(0, &byte, 1, 0, WEFT_NEVER), WEFT_EDEADLK);
	CHECK_EQ(weft_file_open("/", O_RDONLY, 0, WEFT_NEVER), WEFT_EDEADLK);
	CHECK_EQ(weft_file_sync(0, WEFT_NEVER), WEFT_EDEADLK);
}

TEST(files_are_for_threadlets)
{
	in_callback(NULL);
}
