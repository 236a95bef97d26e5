/* os_http.c - system calls that HTTP needs and weft does not offer: the date, and files below a
 * folder.
 *
 * The kernel resolves a name so that it cannot leave its root (openat2 with RESOLVE_BENEATH):
 * it follows links inside the root, not those that lead out.  Without openat2 a name is opened
 * part by part, and no link is followed.
 */
#define _GNU_SOURCE
#include "http/server/os_http.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__) && defined(SYS_openat2)
#include <linux/openat2.h>
#define HAS_OPENAT2 1
#else
#define HAS_OPENAT2 0
#endif

/* O_NONBLOCK: opening a FIFO does not wait. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

int64_t
weft__http_os_seconds(void)
{
	return (int64_t)time(NULL);
}

static int
open_beneath(int root, const char *name)
{
#if HAS_OPENAT2
	struct open_how how = { .flags = OPEN_FLAGS,
		                .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	long fd = syscall(SYS_openat2, root, name, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
#else
	(void)root, (void)name;
	return -ENOSYS;
#endif
}

/* `name` has no empty, "." or ".." parts. */
static int
open_by_parts(int root, const char *name)
{
	int at = root;

	for (;;) {
		char part[256];
		size_t size = strcspn(name, "/");
		bool last = name[size] == '\0';
		int fd;

		if (size >= sizeof(part))
			return at != root ? (close(at), -ENAMETOOLONG) : -ENAMETOOLONG;
		memcpy(part, name, size);
		part[size] = '\0';
		fd = openat(at, size ? part : ".",
		            OPEN_FLAGS | O_NOFOLLOW | (last ? 0 : O_DIRECTORY));
		fd = fd < 0 ? -errno : fd;
		if (at != root)
			(void)close(at);
		if (fd < 0 || last)
			return fd;
		at = fd;
		name += size + 1;
	}
}

int
weft__http_os_open(const char *root, const char *name, struct weft__http_opened *out)
{
	int base = open(root, O_RDONLY | O_CLOEXEC | O_DIRECTORY), fd;
	struct stat st;

	if (base < 0)
		return -errno;
	fd = open_beneath(base, *name ? name : ".");
	if (fd == -ENOSYS || fd == -EPERM)
		fd = open_by_parts(base, name);
	(void)close(base);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
		(void)close(fd);
		return -ENOENT;
	}
	*out = (struct weft__http_opened){
		.fd = fd,
		.is_folder = S_ISDIR(st.st_mode),
		.size = (uint64_t)st.st_size,
		.modified_s = (int64_t)st.st_mtim.tv_sec,
		.modified_ns = (uint32_t)st.st_mtim.tv_nsec,
	};
	return 0;
}

void
weft__http_os_close(int fd)
{
	(void)close(fd);
}

ssize_t
weft__http_os_read_now(int fd, void *buf, size_t size, uint64_t offset)
{
#if defined(__linux__) && defined(RWF_NOWAIT)
	struct iovec iov = { buf, size };
	ssize_t n = preadv2(fd, &iov, 1, (off_t)offset, RWF_NOWAIT);

	return n < 0 ? -errno : n;
#else
	(void)fd, (void)buf, (void)size, (void)offset;
	return -EAGAIN;
#endif
}
