/* file_late_test.c - file calls that continue after their caller has given up. */
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/sys.h"
#include "unit/threadlet/sched.h"

#define TURNS 20000 /* enough yields for a close that does not wait */

static weft__a32 writing, let_go, written;

static int64_t
write_late(int fd, const void *buf, size_t size, uint64_t offset)
{
	int64_t rc;

	weft__store(&writing, 1, WEFT__RELEASE);
	while (!weft__load(&let_go, WEFT__ACQUIRE))
		sched_yield();
	rc = weft__sys_real.file_write(fd, buf, size, offset);
	weft__store(&written, 1, WEFT__RELEASE);
	return rc;
}

static int
make_file(void)
{
	char name[] = "/tmp/weft-file-XXXXXX";
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	OK(unlink(name));
	return fd;
}

/* The descriptor number of a closed file is reused by the next one. */
static int
write_close_open(void *arg)
{
	struct stat stat;
	int fd = make_file();

	(void)arg;
	CHECK_EQ(weft_file_write(fd, "late", 4, 0, WEFT_NEVER), WEFT_EINTR);
	OK(weft_file_close(fd));
	fd = make_file();
	weft__store(&let_go, 1, WEFT__RELEASE);
	while (!weft__load(&written, WEFT__ACQUIRE))
		OK(weft_yield());
	OK(fstat(fd, &stat));
	CHECK_EQ(stat.st_size, 0);
	OK(close(fd));
	return 0;
}

static int
interrupt_writer(void *arg)
{
	while (!weft__load(&writing, WEFT__ACQUIRE))
		OK(weft_yield());
	OK(weft_interrupt(*(weft_threadlet *)arg));
	for (int i = 0; i < TURNS && !weft__load(&let_go, WEFT__ACQUIRE); i++) {
		OK(weft_yield());
		sched_yield();
	}
	weft__store(&let_go, 1, WEFT__RELEASE);
	return 0;
}

TEST(interrupted_write_never_reaches_another_file_with_the_same_number)
{
	const struct weft__sys *before = weft__sys;
	struct weft__sys slow = *before;
	weft_loop *loop = weft_loop_new(&(weft_loop_opts){ .backend = "poll" });
	weft_threadlet writer;

	slow.file_write = write_late;
	weft__sys = &slow;
	writer = go_on(loop, write_close_open, NULL);
	(void)go_on(loop, interrupt_writer, &writer);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
	weft__sys = before;
}
