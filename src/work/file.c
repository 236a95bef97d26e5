/* file.c - files, by the pool for what blocks.
 *
 *   1. A job is in library memory, with what it reads or writes, and belongs to its op
 *      until that has finished.  Then it is the caller's, who waits for it; or it is
 *      freed, if the caller has gone, and a file that it opened is closed.
 *   2. The caller leaves when it is told to end: the job goes on without it.
 */
#include <weft/file.h>
#include "threadlet/threadlet.h"
#include "work/pool.h"

#define BYTES_MAX ((size_t)1 << 20)

enum { OPEN, READ, WRITE, SYNC, CLOSE };

struct job {
	weft_op op;
	struct weft__waiter *waiter; /* NULL: the caller has gone */
	bool ran;
	int kind;
	int fd;
	int flags;
	mode_t mode;
	size_t size;
	uint64_t offset;
	char data[]; /* a path, or bytes */
};

/* What the caller waits by. */
struct job_waiter {
	struct weft__waiter waiter;
	struct job *job; /* NULL: left */
};

/* On a thread of the pool. */
static int
run_job(void *arg)
{
	struct job *job = arg;

	job->ran = true;
	switch (job->kind) {
	case OPEN:
		return weft__sys->file_open(job->data, job->flags, job->mode);
	case READ:
		return (int)weft__sys->file_read(job->fd, job->data, job->size,
		                                 job->offset);
	case WRITE:
		return (int)weft__sys->file_write(job->fd, job->data, job->size,
		                                  job->offset);
	case SYNC:
		return weft__sys->file_sync(job->fd);
	default:
		return weft__sys->close(job->fd);
	}
}

static void
on_done(weft_op *op, int64_t result, void *arg)
{
	struct job *job = arg;

	(void)op;
	if (job->waiter) {
		if (weft__claim(job->waiter))
			weft__wake(job->waiter, result);
		return;
	}
	if (job->kind == OPEN && result >= 0)
		(void)weft__sys->close((int)result);
	weft__sys->release(job);
}

/* Invariant 2. */
static void
leave_job(struct weft__waiter *waiter, int why)
{
	struct job_waiter *w = (struct job_waiter *)(void *)waiter;
	struct job *job = w->job;

	if (!job->op.pending || !weft__claim(waiter))
		return; /* it has its result */
	w->job = NULL;
	job->waiter = NULL;
	weft__op_ask(weft__op_of(&job->op), why); /* if it is still queued */
	weft__wake(waiter, why);
}

static struct job *
make_job(int kind, int fd, size_t size)
{
	struct job *job = weft__sys->alloc(sizeof(*job) + size);

	if (job)
		*job = (struct job){ .kind = kind, .fd = fd, .size = size };
	return job;
}

/* Have it done and wait for that.  The job is still the caller's if *done. */
static int
do_job(struct job *job, uint64_t deadline_ns, bool *done)
{
	struct job_waiter w = { .waiter = { .what = "file",
		                            .on = job->fd,
		                            .ask = leave_job,
		                            .deaf = job->kind == CLOSE },
		                .job = job };
	int rc;

	*done = true;
	(void)weft_op_init(&job->op, NULL, on_done, job);
	weft_op_set_background(&job->op, weft__self()->background);
	rc = weft_work_op(WEFT_BLOCKING, run_job, job, &job->op, WEFT_NEVER);
	if (rc < 0)
		return rc;
	job->waiter = &w.waiter;
	rc = (int)weft__wait(&w.waiter, deadline_ns);
	*done = w.job != NULL;
	return rc;
}

/* The same, and the end of the job. */
static int
finish_job(struct job *job, uint64_t deadline_ns)
{
	bool done;
	int rc;

	if (!job)
		return weft__fail(WEFT_ENOMEM, "weft_file: out of memory");
	rc = do_job(job, deadline_ns, &done);
	if (done)
		weft__sys->release(job);
	return rc;
}

int
weft_file_open(const char *path, int flags, mode_t mode, uint64_t deadline_ns)
{
	struct job *job;
	size_t size;
	int rc;

	if (!path)
		return weft__misuse(WEFT_EINVAL, "weft_file_open: no path");
	rc = weft__may_wait(deadline_ns);
	if (rc < 0)
		return rc;
	size = __builtin_strlen(path) + 1;
	job = make_job(OPEN, -1, size);
	if (job) {
		__builtin_memcpy(job->data, path, size);
		job->flags = flags;
		job->mode = mode;
	}
	return finish_job(job, deadline_ns);
}

ssize_t
weft_file_read(int fd, void *buf, size_t size, uint64_t offset,
               uint64_t deadline_ns)
{
	struct job *job;
	bool done;
	int rc = weft__may_wait(deadline_ns);

	if (rc < 0)
		return rc;
	job = make_job(READ, fd, size < BYTES_MAX ? size : BYTES_MAX);
	if (!job)
		return weft__fail(WEFT_ENOMEM, "weft_file_read: no memory");
	job->offset = offset;
	rc = do_job(job, deadline_ns, &done);
	if (rc > 0)
		__builtin_memcpy(buf, job->data, (size_t)rc);
	if (done)
		weft__sys->release(job);
	return rc;
}

ssize_t
weft_file_write(int fd, const void *buf, size_t size, uint64_t offset,
                uint64_t deadline_ns)
{
	struct job *job;
	int rc = weft__may_wait(deadline_ns);

	if (rc < 0)
		return rc;
	size = size < BYTES_MAX ? size : BYTES_MAX;
	job = make_job(WRITE, fd, size);
	if (job) {
		__builtin_memcpy(job->data, buf, size);
		job->offset = offset;
	}
	return finish_job(job, deadline_ns);
}

int
weft_file_sync(int fd, uint64_t deadline_ns)
{
	int rc = weft__may_wait(deadline_ns);

	return rc < 0 ? rc : finish_job(make_job(SYNC, fd, 0), deadline_ns);
}

/* Where the pool cannot do it the loop does, since the descriptor is taken. */
int
weft_file_close(int fd)
{
	struct job *job = weft__self() && !weft__self()->crew->loop->ending
	                          ? make_job(CLOSE, fd, 0)
	                          : NULL;
	bool done;
	int rc;

	if (!job)
		return weft__sys->close(fd);
	rc = do_job(job, WEFT_NEVER, &done);
	if (!job->ran)
		rc = weft__sys->close(fd);
	weft__sys->release(job);
	return rc;
}
