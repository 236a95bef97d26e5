/* pipe.c - pipes and eventfds.
 *
 * A pipe is a ring of bytes between two files.  A write of up to PIPE_BUF bytes is done
 * completely or not at all; a pipe is writable when such a write would fit.  An eventfd is a
 * counter.
 *
 *   1. Every write notifies the reader, even if the pipe was not empty: Linux does so for
 *      pipes in an epoll set, because programs depend on it.
 *   2. A read notifies the writer only if it made the pipe writable.
 *   3. An end that is closed is NULL.
 *
 * Pages and their merging are not simulated: the capacity is in bytes.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include "sim/run/fault.h"
#include "sim/kernel/kernel.h"
#include "sim/run/rng.h"

struct end {
	struct sim_file file;
	struct pipe *pipe;
};

struct pipe {
	unsigned char *bytes;
	size_t capacity;
	size_t begin, count;
	struct end *reader, *writer;
};

static size_t
room(const struct pipe *pipe)
{
	return pipe->capacity - pipe->count;
}

static uint32_t
reader_ready(struct sim_file *file)
{
	const struct pipe *pipe = ((struct end *)file)->pipe;

	return (pipe->count ? (uint32_t)EPOLLIN : 0) | (pipe->writer ? 0 : (uint32_t)EPOLLHUP);
}

static uint32_t
writer_ready(struct sim_file *file)
{
	const struct pipe *pipe = ((struct end *)file)->pipe;

	return (room(pipe) >= PIPE_BUF ? (uint32_t)EPOLLOUT : 0)
	       | (pipe->reader ? 0 : (uint32_t)EPOLLERR);
}

static int64_t
pipe_read(struct sim_file *file, void *buf, size_t size)
{
	struct pipe *pipe = ((struct end *)file)->pipe;
	bool was_full = room(pipe) < PIPE_BUF;
	size_t most = size < pipe->count ? size : pipe->count;

	if (size == 0)
		return 0;
	if (pipe->count == 0)
		return pipe->writer ? -EAGAIN : 0;
	size = sim_fault_short(SIM_CALL_read, most);
	for (size_t i = 0; i < size; i++)
		((unsigned char *)buf)[i] = pipe->bytes[(pipe->begin + i) % pipe->capacity];
	pipe->begin = (pipe->begin + size) % pipe->capacity;
	pipe->count -= size;
	if (pipe->writer && was_full && room(pipe) >= PIPE_BUF)
		sim_file_notify(&pipe->writer->file, EPOLLOUT);
	if (size < most) /* a short count means "no more", so notify that there is more */
		sim_file_notify(file, EPOLLIN);
	return (int64_t)size;
}

static int64_t
pipe_write(struct sim_file *file, const void *buf, size_t size)
{
	struct pipe *pipe = ((struct end *)file)->pipe;

	if (size == 0)
		return 0;
	if (!pipe->reader)
		return -EPIPE;
	if (room(pipe) == 0 || (size <= PIPE_BUF && size > room(pipe)))
		return -EAGAIN;
	if (size > PIPE_BUF)
		size = sim_fault_short(SIM_CALL_write, size);
	if (size > room(pipe))
		size = room(pipe);
	for (size_t i = 0; i < size; i++)
		pipe->bytes[(pipe->begin + pipe->count + i) % pipe->capacity] =
			((const unsigned char *)buf)[i];
	pipe->count += size;
	sim_file_notify(&pipe->reader->file, EPOLLIN);
	return (int64_t)size;
}

static int64_t
wrong_way_read(struct sim_file *file, void *buf, size_t size)
{
	(void)file;
	(void)buf;
	(void)size;
	return -EBADF;
}

static int64_t
wrong_way_write(struct sim_file *file, const void *buf, size_t size)
{
	(void)file;
	(void)buf;
	(void)size;
	return -EBADF;
}

static void
end_gone(struct pipe *pipe, struct end *other)
{
	if (other) {
		sim_file_notify(&other->file, 0);
		return;
	}
	sim_buffer_free(pipe->bytes);
	pipe->bytes = NULL;
}

static void
reader_end(struct sim_file *file)
{
	struct pipe *pipe = ((struct end *)file)->pipe;

	pipe->reader = NULL;
	end_gone(pipe, pipe->writer);
}

static void
writer_end(struct sim_file *file)
{
	struct pipe *pipe = ((struct end *)file)->pipe;

	pipe->writer = NULL;
	end_gone(pipe, pipe->reader);
}

static const struct sim_file_ops reader_ops = {
	.name = "pipe, reading end",
	.kind = WEFT__FD_OTHER,
	.waits = true,
	.ready = reader_ready,
	.read = pipe_read,
	.write = wrong_way_write,
	.end = reader_end,
};

static const struct sim_file_ops writer_ops = {
	.name = "pipe, writing end",
	.kind = WEFT__FD_OTHER,
	.waits = true,
	.ready = writer_ready,
	.read = wrong_way_read,
	.write = pipe_write,
	.end = writer_end,
};

static bool roomy; /* all pipes of this run have the usual size */

void
sim_pipe_reset(bool calm)
{
	roomy = calm;
}

/* Linux gives a user with many pipes small ones, of one or two pages. */
static size_t
draw_capacity(void)
{
	static const size_t sizes[] = { 65536, PIPE_BUF, 2 * PIPE_BUF, 65536 };

	return sizes[roomy ? 0 : sim_below(SIM_DRAW_NET, 4)];
}

int
sim_pipe_new(int out[2])
{
	struct pipe *pipe;
	int rc = sim_fd_room(2);

	if (rc < 0)
		return rc;
	pipe = sim_keep(sizeof(*pipe));
	pipe->capacity = draw_capacity();
	pipe->bytes = sim_buffer_new(pipe->capacity);
	pipe->reader = sim_file_new(&reader_ops, sizeof(*pipe->reader));
	pipe->writer = sim_file_new(&writer_ops, sizeof(*pipe->writer));
	pipe->reader->pipe = pipe;
	pipe->writer->pipe = pipe;
	out[0] = sim_fd_new(&pipe->reader->file);
	out[1] = sim_fd_new(&pipe->writer->file);
	return 0;
}

/* --- eventfd ---------------------------------------------------------- */

struct counter {
	struct sim_file file;
	uint64_t value; /* at most UINT64_MAX - 1 */
};

static uint32_t
counter_ready(struct sim_file *file)
{
	uint64_t value = ((struct counter *)file)->value;

	return (value ? (uint32_t)EPOLLIN : 0) | (value < UINT64_MAX - 1 ? (uint32_t)EPOLLOUT : 0);
}

static int64_t
counter_read(struct sim_file *file, void *buf, size_t size)
{
	struct counter *counter = (struct counter *)file;

	if (size < sizeof(counter->value))
		return -EINVAL;
	if (counter->value == 0)
		return -EAGAIN;
	memcpy(buf, &counter->value, sizeof(counter->value));
	counter->value = 0;
	sim_file_notify(file, EPOLLOUT);
	return sizeof(counter->value);
}

/* Only a full counter returns EAGAIN, which takes 2^64 writes.  So EAGAIN is not injected: a
 * waiter that uses edges may never read the counter, and would lose an edge. */
static int64_t
counter_write(struct sim_file *file, const void *buf, size_t size)
{
	struct counter *counter = (struct counter *)file;
	uint64_t add;

	if (size < sizeof(add))
		return -EINVAL;
	memcpy(&add, buf, sizeof(add));
	if (add == UINT64_MAX)
		return -EINVAL;
	if (add > UINT64_MAX - 1 - counter->value)
		return -EAGAIN;
	counter->value += add;
	sim_file_notify(file, EPOLLIN);
	return sizeof(add);
}

static void
counter_end(struct sim_file *file)
{
	(void)file;
}

static const struct sim_file_ops counter_ops = {
	.name = "eventfd",
	.kind = WEFT__FD_OTHER,
	.waits = true,
	.ready = counter_ready,
	.read = counter_read,
	.write = counter_write,
	.end = counter_end,
};

int
sim_eventfd_new(void)
{
	int rc = sim_fd_room(1);

	if (rc < 0)
		return rc;
	return sim_fd_new(sim_file_new(&counter_ops, sizeof(struct counter)));
}
