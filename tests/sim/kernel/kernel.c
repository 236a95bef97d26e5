/* kernel.c - the table of descriptors, and regular files.
 *
 * The lowest free number is assigned first, as POSIX requires, and a closed number is free at
 * once.  So the simulator detects events and calls that reach the next owner of a number.
 *
 *   1. Every number below `lowest` is in use.
 *   2. A file has one reference for each number that refers to it, and one for each call that
 *      sleeps on it.
 *   3. A file whose last reference was dropped has id 0.  Its memory stays until the run ends,
 *      so that late events can check that.
 *
 * Numbers 0 to 2 are in use from the start, as in any process, except in a few seeds.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim/kernel/kernel.h"
#include "sim/run/rng.h"

#define FDS_MAX     65536
#define CHUNK_BYTES ((size_t)64 << 10)

static struct {
	struct sim_file *files[FDS_MAX]; /* by number */
	int used;                        /* numbers from here on were never used */
	int lowest;                      /* invariant 1 */
	int limit;
	int open; /* without those open from the start */
	uint64_t ids;
} table;

/* --- memory that lives until the run ends ----------------------------- */

struct chunk {
	struct chunk *next;
	size_t used;
	_Alignas(16) unsigned char bytes[CHUNK_BYTES];
};

static struct chunk *chunks, *chunk; /* all, and the one in use */

void *
sim_keep(size_t size)
{
	struct chunk **link = chunk ? &chunk->next : &chunks;
	void *mem;

	size = (size + 15) & ~(size_t)15;
	assert(size <= CHUNK_BYTES);
	if (!chunk || chunk->used + size > CHUNK_BYTES) {
		if (!*link) {
			*link = malloc(sizeof(**link));
			if (!*link)
				abort();
			(*link)->next = NULL;
		}
		chunk = *link;
		chunk->used = 0;
	}
	mem = chunk->bytes + chunk->used;
	chunk->used += size;
	return memset(mem, 0, size);
}

struct buffer {
	_Alignas(16) struct buffer *next;
	struct buffer **link; /* what points here */
};

static struct buffer *buffers;

void *
sim_buffer_new(size_t size)
{
	struct buffer *buffer = malloc(sizeof(*buffer) + size);

	if (!buffer)
		abort();
	buffer->next = buffers;
	buffer->link = &buffers;
	if (buffers)
		buffers->link = &buffer->next;
	buffers = buffer;
	return buffer + 1;
}

void
sim_buffer_free(void *mem)
{
	struct buffer *buffer;

	if (!mem)
		return;
	buffer = (struct buffer *)mem - 1;
	*buffer->link = buffer->next;
	if (buffer->next)
		buffer->next->link = buffer->link;
	free(buffer);
}

/* --- files ------------------------------------------------------------ */

void *
sim_file_new(const struct sim_file_ops *ops, size_t size)
{
	struct sim_file *file = sim_keep(size);

	file->ops = ops;
	file->id = ++table.ids;
	file->refs = 1;
	return file;
}

void
sim_file_ref(struct sim_file *file)
{
	assert(file->refs > 0);
	file->refs++;
}

void
sim_file_unref(struct sim_file *file)
{
	assert(file->refs > 0);
	if (--file->refs > 0)
		return;
	sim_items_drop(file);
	file->ops->end(file);
	file->id = 0;
}

void
sim_file_notify(struct sim_file *file, uint32_t key)
{
	sim_items_wake(file, key);
	sim_poll_wake();
}

/* --- descriptor numbers ----------------------------------------------- */

static int
next_free(int fd)
{
	while (fd < table.used && table.files[fd])
		fd++;
	return fd;
}

int
sim_fd_room(int count)
{
	int fd = table.lowest - 1;

	while (count-- > 0)
		fd = next_free(fd + 1);
	return fd < table.limit ? 0 : -EMFILE;
}

int
sim_fd_new(struct sim_file *file)
{
	int fd = next_free(table.lowest);

	assert(fd < table.limit && file->refs > 0);
	table.files[fd] = file;
	table.lowest = fd + 1;
	if (fd == table.used)
		table.used++;
	table.open++;
	return fd;
}

struct sim_file *
sim_fd_file(int fd)
{
	return fd >= 0 && fd < table.used ? table.files[fd] : NULL;
}

int
sim_fd_close(int fd)
{
	struct sim_file *file = sim_fd_file(fd);

	if (!file)
		sim_fail("closes descriptor %d, which it does not own", fd);
	table.files[fd] = NULL;
	table.open--;
	if (fd < table.lowest)
		table.lowest = fd;
	sim_file_unref(file);
	return 0;
}

int
sim_dup(int fd)
{
	struct sim_file *file = sim_fd_file(fd);
	int rc = file ? sim_fd_room(1) : -EBADF;

	if (rc < 0)
		return rc;
	sim_file_ref(file);
	return sim_fd_new(file);
}

void
sim_limit_fds(int count)
{
	assert(count >= 0 && count <= FDS_MAX);
	table.limit = count;
}

int
sim_count_fds(void)
{
	return table.open;
}

int
sim_kernel_leaks(char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (int fd = 0; fd < table.used && at < size; fd++) {
		struct sim_file *file = table.files[fd];
		int n;

		if (!file || strcmp(file->ops->name, "terminal") == 0)
			continue;
		n = snprintf(text + at, size - at, "  descriptor %d: %s\n", fd, file->ops->name);
		at += n > 0 ? (size_t)n : 0;
	}
	return table.open;
}

/* --- regular files, and numbers 0 to 2 -------------------------------- */

struct regular {
	struct sim_file file;
	size_t size, at;
};

static uint32_t
always_ready(struct sim_file *file)
{
	(void)file;
	return EPOLLIN | EPOLLOUT;
}

static int64_t
regular_read(struct sim_file *file, void *buf, size_t size)
{
	struct regular *regular = (struct regular *)file;
	size_t left = regular->size - regular->at;

	if (size > left)
		size = left;
	for (size_t i = 0; i < size; i++)
		((unsigned char *)buf)[i] = (unsigned char)regular->at++;
	return (int64_t)size;
}

static int64_t
swallow(struct sim_file *file, const void *buf, size_t size)
{
	(void)file;
	(void)buf;
	return (int64_t)size;
}

static void
nothing(struct sim_file *file)
{
	(void)file;
}

static const struct sim_file_ops regular_ops = {
	.name = "regular file",
	.kind = WEFT__FD_FILE,
	.ready = always_ready,
	.read = regular_read,
	.write = swallow,
	.end = nothing,
};

static const struct sim_file_ops terminal_ops = {
	.name = "terminal",
	.kind = WEFT__FD_OTHER,
	.waits = true,
	.ready = always_ready,
	.read = regular_read,
	.write = swallow,
	.end = nothing,
};

int
sim_open_file(size_t size)
{
	struct regular *regular;
	int rc = sim_fd_room(1);

	if (rc < 0)
		return rc;
	regular = sim_file_new(&regular_ops, sizeof(*regular));
	regular->size = size;
	return sim_fd_new(&regular->file);
}

void
sim_kernel_reset(void)
{
	memset(table.files, 0, (size_t)table.used * sizeof(table.files[0]));
	table.used = 0;
	table.lowest = 0;
	table.limit = 1024;
	table.ids = 0;
	chunk = NULL;
	while (buffers)
		sim_buffer_free(buffers + 1);
	if (sim_below(SIM_DRAW_SETUP, 16) != 0)
		for (int i = 0; i < 3; i++)
			(void)sim_fd_new(sim_file_new(&terminal_ops, sizeof(struct regular)));
	table.open = 0;
}
