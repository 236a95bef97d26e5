/* weft/file.h - files by descriptor and offset, without blocking the loop.
 *
 * On io_uring, else by the loop's pool for what blocks (weft/work.h).  A read or write in
 * flight can seldom be taken back: at a deadline the call returns, and the bytes land in
 * library memory, never in the caller's.  Any number of calls may be under way on one
 * descriptor; it is closed after them.  What has no offsets, such as a pipe, is for
 * weft/op.h: here it is -ESPIPE, or on io_uring read and written all the same.
 */
#ifndef WEFT_FILE_H
#define WEFT_FILE_H

#include <weft/base.h>
#include <weft/op.h>

WEFT_BEGIN

/* Open `path`; `flags` and `mode` as open(2), O_CLOEXEC implied.
 * Returns the descriptor, or -errno; WEFT_EAGAIN if the pool is full.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_file_open(const char *path, int flags, mode_t mode,
                            uint64_t deadline_ns);

/* Read into, or write from, `buf` at `offset`; at most 1 MiB at a time.
 * Return the count, for a read 0 at the end; or -errno, WEFT_ENOMEM, WEFT_EAGAIN if the
 * pool is full.  After WEFT_ETIMEDOUT or WEFT_ECANCELED a write may still happen.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_file_read(int fd, void *buf, size_t size, uint64_t offset,
                                uint64_t deadline_ns);
WEFT_API ssize_t weft_file_write(int fd, const void *buf, size_t size,
                                 uint64_t offset, uint64_t deadline_ns);

/* The same as ops, up to 2 GiB at a time; `buf` belongs to the op until it has finished,
 * which is not before the kernel or the pool is through with it.
 * Return as every start (weft/op.h), WEFT_ENOMEM without io_uring.
 * Thread: loop of `op`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_file_read_op(int fd, void *buf, size_t size, uint64_t offset,
                               weft_op *op, uint64_t deadline_ns);
WEFT_API int weft_file_write_op(int fd, const void *buf, size_t size,
                                uint64_t offset, weft_op *op,
                                uint64_t deadline_ns);

/* Bring what was written to the disk.
 * Returns 0, or -errno.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_file_sync(int fd, uint64_t deadline_ns);

/* Close; takes `fd`.  Not cancellable.  What goes on with it on this loop, though its
 * caller has given up, is waited for, but in callbacks.
 * Returns 0, or -errno from the disk.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_file_close(int fd);

WEFT_END
#endif
