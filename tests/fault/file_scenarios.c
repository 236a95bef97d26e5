/* file_scenarios.c - files, read and written by ops and by a threadlet.
 *
 * Whatever fails, each started op ends once, the data that was read is the data that was
 * written, and a descriptor that was passed to a close is closed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "fault.h"
#include "scenarios.h"

enum { READERS = 4 };

static const char text[] = "what is written";

/* Returns a descriptor, owned by the scenario, of a file that is already unlinked. */
static int
make_file(char *path, size_t size)
{
	int fd;

	(void)snprintf(path, size, "/tmp/weft-sweep-%d", (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	(void)unlink(path);
	return fd;
}

/* How much of the text was transferred: all of it, unless a fault was injected. */
static size_t
count_of(int64_t result)
{
	bool whole = result == (int64_t)sizeof(text);

	EXPECT(whole || fault_hits() > 0);
	EXPECT(whole || !fault_is_painless() || result == 1);
	return result > 0 ? (size_t)result : 0;
}

/* --- ops ---------------------------------------------------------------- */

/* The result may be WEFT_EAGAIN if no thread can be started. */
static void
on_file(weft_op *op, int64_t result, void *arg)
{
	struct job *job = arg;

	(void)op;
	EXPECT(job->left == 1);
	job->left = 0;
	job->result = result;
}

static void
init_file(struct world *world, struct job *job)
{
	*job = (struct job){ .result = WEFT_EINVAL };
	EXPECT(weft_op_init(&job->op, world->loop, on_file, job) == 0);
}

static size_t
write_by_op(struct world *world, int fd)
{
	struct job job;

	init_file(world, &job);
	begin(&job,
	      weft_file_write_op(fd, text, sizeof(text), 0, &job.op, weft_after(50 * WAIT_NS)));
	return count_of(await(world, &job));
}

/* Several reads at once, one of which is canceled. */
static void
read_by_ops(struct world *world, int fd, size_t there)
{
	char bufs[READERS][sizeof(text)];
	struct job jobs[READERS];
	int64_t count;

	for (int i = 0; i < READERS; i++) {
		init_file(world, &jobs[i]);
		begin(&jobs[i],
		      weft_file_read_op(fd, bufs[i], sizeof(text), 0, &jobs[i].op, WEFT_NEVER));
	}
	weft_op_cancel(&jobs[0].op);
	for (int i = 0; i < READERS; i++) {
		count = await(world, &jobs[i]);
		EXPECT(count == (int64_t)there || fault_hits() > 0
		       || (i == 0 && count == WEFT_ECANCELED));
		EXPECT(count <= (int64_t)there);
		EXPECT(count <= 0 || memcmp(bufs[i], text, (size_t)count) == 0);
	}
}

/* --- a threadlet -------------------------------------------------------- */

struct reader {
	int left;
	char path[64];
};

static int
use_file(void *arg)
{
	struct reader *reader = arg;
	char buf[sizeof(text)];
	ssize_t there, count;
	int fd = weft_file_open(reader->path, O_RDWR | O_CREAT, 0600, WEFT_NEVER);

	if (went_well(fd < 0 ? fd : 0, 0)) {
		there = weft_file_write(fd, text, sizeof(text), 0, WEFT_NEVER);
		(void)count_of(there);
		(void)went_well(weft_file_sync(fd, WEFT_NEVER), 0);
		count = weft_file_read(fd, buf, sizeof(buf), 0, weft_after(3600 * WEFT_S));
		EXPECT(count == there || fault_hits() > 0);
		EXPECT(count <= 0 || memcmp(buf, text, (size_t)count) == 0);
		(void)went_well(weft_file_close(fd), 0);
	}
	reader->left = 0;
	return 0;
}

static void
go_reading(struct world *world)
{
	struct reader reader = { .left = 1 };
	weft_go_opts opts = { .loop = world->loop };

	(void)snprintf(reader.path, sizeof(reader.path), "/tmp/weft-swept-%d", (int)getpid());
	if (weft_go_with(&opts, use_file, &reader) < 0) {
		EXPECT(fault_hits() > 0);
		return;
	}
	for (int i = 0; i < STEPS_MIN && reader.left > 0; i++)
		drive(world->loop, &reader.left);
	EXPECT(reader.left == 0);
	(void)unlink(reader.path);
}

void
run_file(const char *backend)
{
	struct world world;
	char path[64];
	int fd = make_file(path, sizeof(path));

	if (make_world(&world, backend, 0)) {
		size_t there = write_by_op(&world, fd);

		read_by_ops(&world, fd, there);
		go_reading(&world);
		if (fault_hits() > 0) {
			fault_heal();
			EXPECT(write_by_op(&world, fd) == sizeof(text));
		}
		check_works(&world);
		end_world(&world);
	}
	fault_close(fd);
}
