/* file.c - file calls, by the backend if it accepts file ops, else by the blocking pool.
 *
 *   1. A job is in library memory, together with the data it reads or writes, and belongs to
 *      its op until that has finished.  Then it belongs to the caller, which waits for it.  If
 *      the caller has left, the job is freed, and a file that it opened is closed.
 *   2. A caller that is canceled or times out leaves: the job continues without it, in the list
 *      of its loop.  weft_file_close() first waits for such jobs on its descriptor; otherwise
 *      the call might be made on the next file that gets the number.
 */
#include <weft/file.h>
#include "threadlet/threadlet.h"
#include "work/pool.h"

#define COPY_MAX ((size_t)1 << 20)

struct weft__file_job {
	weft_op op;
	struct weft__file_call call;
	struct weft__waiter *waiter;       /* the caller; NULL: it has left */
	struct weft__file_job *next_left;  /* next job that its caller left, on this loop */
	struct weft__file_job **link_left; /* the pointer to this one in that list */
	bool ran;                          /* the call was made, or given to the kernel */
	char data[];                       /* a path, or bytes */
};

/* The caller's wait for a job. */
struct job_waiter {
	struct weft__waiter waiter;
	struct weft__file_job *job; /* NULL: the caller has left */
};

/* On a thread of the pool. */
static int
run_job(void *arg)
{
	struct weft__file_job *job = arg;
	const struct weft__file_call *call = &job->call;

	job->ran = true;
	switch (call->kind) {
	case WEFT__OP_FILE_OPEN:
		return weft__sys->file_open(call->buf, call->flags, (mode_t)call->offset);
	case WEFT__OP_FILE_READ:
		return (int)weft__sys->file_read(call->fd, call->buf, call->length, call->offset);
	case WEFT__OP_FILE_WRITE:
		return (int)weft__sys->file_write(call->fd, call->buf, call->length, call->offset);
	case WEFT__OP_FILE_SYNC:
		return weft__sys->file_sync(call->fd);
	default:
		return weft__sys->close(call->fd);
	}
}

static void
list_left(struct weft__file_job *job)
{
	job->link_left = weft__loop_left_jobs(job->op.loop);
	job->next_left = *job->link_left;
	if (job->next_left)
		job->next_left->link_left = &job->next_left;
	*job->link_left = job;
}

static void
work_file_unlist(struct weft__file_job *job)
{
	*job->link_left = job->next_left;
	if (job->next_left)
		job->next_left->link_left = job->link_left;
}

static void
on_done(weft_op *op, int64_t result, void *arg)
{
	struct weft__file_job *job = arg;

	(void)op;
	if (job->waiter) {
		if (weft__claim(job->waiter))
			weft__wake(job->waiter, result);
		return;
	}
	work_file_unlist(job);
	if (job->call.kind == WEFT__OP_FILE_OPEN && result >= 0)
		(void)weft__sys->close((int)result);
	weft__sys->release(job);
}

/* Invariant 2. */
static void
leave_job(struct weft__waiter *waiter, int why)
{
	struct job_waiter *w = (struct job_waiter *)(void *)waiter;
	struct weft__file_job *job = w->job;

	if (!job->op.pending || !weft__claim(waiter))
		return; /* it already has its result */
	w->job = NULL;
	job->waiter = NULL;
	list_left(job);
	weft__op_request_cancel(weft__op_of(&job->op), why); /* if it can still be stopped */
	weft__wake(waiter, why);
}

/* A job for that call on `loop`, with room for `size` bytes of data; or NULL. */
static struct weft__file_job *
make_job(weft_loop *loop, const struct weft__file_call *call, size_t size)
{
	struct weft__file_job *job = weft__sys->alloc(sizeof(*job) + size);

	if (!job) {
		(void)weft__fail(WEFT_ENOMEM, "weft_file_*: out of memory");
		return NULL;
	}
	*job = (struct weft__file_job){ .call = *call };
	(void)weft_op_init(&job->op, loop, on_done, job);
	return job;
}

static int
start_job(struct weft__file_job *job)
{
	int rc;

	if (!weft__loop_has_files(job->op.loop))
		return weft_work_op(WEFT_BLOCKING, run_job, job, &job->op, WEFT_NEVER);
	rc = weft__op_start_file(&job->op, &job->call, WEFT_NEVER);
	job->ran = rc == 0;
	return rc;
}

/* Run a job and wait for it.  The job still belongs to the caller if *done. */
static int
do_job(struct weft__file_job *job, uint64_t deadline_ns, bool *done)
{
	struct job_waiter w = { .waiter = { .what = "file",
		                            .on = job->call.fd,
		                            .request_end = leave_job,
		                            .deaf = job->call.kind == WEFT__OP_FILE_CLOSE },
		                .job = job };
	int rc;

	*done = true;
	if (!weft__loop_left_jobs(job->op.loop)) /* for the caller to leave */
		return weft__fail(WEFT_ENOMEM, "weft_file_*: out of memory");
	weft_op_set_background(&job->op, weft__self()->background);
	rc = start_job(job);
	if (rc < 0)
		return rc;
	job->waiter = &w.waiter;
	rc = (int)weft__wait(&w.waiter, deadline_ns);
	*done = w.job != NULL;
	return rc;
}

/* Make a call in library memory: copies `from` in before, and data that was read out to `into`
 * after.  Either may be NULL. */
static int
do_call(struct weft__file_call call, size_t size, const void *from, void *into,
        uint64_t deadline_ns)
{
	struct weft__file_job *job;
	bool done;
	int rc = weft__may_wait_in(deadline_ns, "weft_file_*");

	if (rc < 0)
		return rc;
	job = make_job(NULL, &call, size);
	if (!job)
		return WEFT_ENOMEM;
	job->call.buf = job->data;
	if (from)
		__builtin_memcpy(job->data, from, size);
	rc = do_job(job, deadline_ns, &done);
	if (into && rc > 0)
		__builtin_memcpy(into, job->data, (size_t)rc);
	if (done)
		weft__sys->release(job);
	return rc;
}

/* An offset above INT64_MAX is an error; io_uring would take -1 as "the current position". */
static int
work_file_check(const void *buf, size_t size, uint64_t offset)
{
	if (!buf && size > 0)
		return weft__misuse(WEFT_EINVAL, "weft_file_*: buf is NULL but size is not 0");
	return offset > INT64_MAX ? weft__fail(WEFT_EINVAL, "weft_file_*: offset exceeds INT64_MAX")
	                          : 0;
}

int
weft_file_open(const char *path, int flags, mode_t mode, uint64_t deadline_ns)
{
	struct weft__file_call call = {
		.kind = WEFT__OP_FILE_OPEN, .fd = -1, .flags = flags, .offset = mode
	};

	if (!path)
		return weft__misuse(WEFT_EINVAL, "weft_file_open: path is NULL");
	return do_call(call, __builtin_strlen(path) + 1, path, NULL, deadline_ns);
}

ssize_t
weft_file_read(int fd, void *buf, size_t size, uint64_t offset, uint64_t deadline_ns)
{
	struct weft__file_call call = { .kind = WEFT__OP_FILE_READ, .fd = fd, .offset = offset };
	int rc = work_file_check(buf, size, offset);

	size = size < COPY_MAX ? size : COPY_MAX;
	call.length = (uint32_t)size;
	return rc < 0 ? rc : do_call(call, size, NULL, buf, deadline_ns);
}

ssize_t
weft_file_write(int fd, const void *buf, size_t size, uint64_t offset, uint64_t deadline_ns)
{
	struct weft__file_call call = { .kind = WEFT__OP_FILE_WRITE, .fd = fd, .offset = offset };
	int rc = work_file_check(buf, size, offset);

	size = size < COPY_MAX ? size : COPY_MAX;
	call.length = (uint32_t)size;
	return rc < 0 ? rc : do_call(call, size, buf, NULL, deadline_ns);
}

int
weft_file_sync(int fd, uint64_t deadline_ns)
{
	struct weft__file_call call = { .kind = WEFT__OP_FILE_SYNC, .fd = fd };

	return do_call(call, 0, NULL, NULL, deadline_ns);
}

/* Invariant 2: wait for the jobs on this descriptor that their callers left. */
static void
await_left(weft_loop *loop, int fd)
{
	struct weft__file_job *job = *weft__loop_left_jobs(loop);

	while (job) {
		struct weft__waiter waiter = { .what = "file", .on = fd, .deaf = true };

		if (job->call.fd != fd || job->call.kind == WEFT__OP_FILE_OPEN) {
			job = job->next_left;
			continue;
		}
		work_file_unlist(job);
		job->waiter = &waiter;
		(void)weft__wait(&waiter, WEFT_NEVER);
		weft__sys->release(job);
		job = *weft__loop_left_jobs(loop);
	}
}

/* The descriptor must be closed in any case.  If there is no other way, the loop's thread closes
 * it: also if the kernel had no thread for the request.  An interrupted close has closed the
 * descriptor. */
int
weft_file_close(int fd)
{
	const struct weft__file_call call = { .kind = WEFT__OP_FILE_CLOSE, .fd = fd };
	weft_loop *loop = weft__self() ? weft__self()->sched->loop : NULL;
	struct weft__file_job *job;
	bool done;
	int rc;

	if (!loop || weft__loop_is_ending(loop) || weft__loop_is_forked(loop))
		return weft__sys->close(fd);
	await_left(loop, fd);
	job = make_job(loop, &call, 0);
	if (!job)
		return weft__sys->close(fd);
	rc = do_job(job, WEFT_NEVER, &done);
	if (!job->ran || rc == WEFT_ECANCELED)
		rc = weft__sys->close(fd);
	weft__sys->release(job);
	return rc == WEFT_EINTR ? 0 : rc;
}
