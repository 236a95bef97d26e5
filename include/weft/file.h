/* weft/file.h - file I/O by descriptor and offset, without blocking the loop.
 *
 * The calls use io_uring, or else the loop's blocking pool (weft/work.h).  A read or write that
 * has begun can rarely be canceled.  So the kernel works on a copy in library memory, and a call
 * can return at its deadline while the kernel still uses that copy.  Any number of calls may be
 * in progress on one descriptor; close the descriptor after they have returned.  For files
 * without offsets, such as pipes, use weft/op.h: the calls here return -ESPIPE for them, except
 * on io_uring, which ignores the offset.
 */
#ifndef WEFT_FILE_H
#define WEFT_FILE_H

#include <weft/base.h>

WEFT_BEGIN

/* Open `path`.  `flags` and `mode` have the meaning they have for open(2); O_CLOEXEC is implied.
 * Returns the descriptor, or -errno; WEFT_EAGAIN if the pool is full.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_file_open(const char *path, int flags, mode_t mode,
                            uint64_t deadline_ns);

/* Read into `buf`, or write from it, at `offset`; at most 1 MiB per call.
 * Return the count, 0 for a read at the end; or -errno, WEFT_ENOMEM, WEFT_EAGAIN if the pool is
 * full.  After WEFT_ETIMEDOUT or WEFT_ECANCELED a write may still happen.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_file_read(int fd, void *buf, size_t size, uint64_t offset,
                                uint64_t deadline_ns);
WEFT_API ssize_t weft_file_write(int fd, const void *buf, size_t size,
                                 uint64_t offset, uint64_t deadline_ns);

/* Flush written data to the disk.
 * Returns 0, or -errno.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_file_sync(int fd, uint64_t deadline_ns);

/* Close `fd`, which is taken; not cancelable.  In a threadlet the call first waits for
 * operations of this loop on `fd` that are still in progress although their callers have
 * returned.  Elsewhere, for example in a callback, it closes `fd` at once, and close(2) may
 * block the thread.
 * Returns 0, or -errno from the disk.
 * Thread: loop.  Blocks: suspends in a threadlet, else the thread.  Since: 0.1. */
WEFT_API int weft_file_close(int fd);

WEFT_END
#endif
