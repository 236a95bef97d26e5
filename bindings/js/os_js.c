/* os_js.c - system calls of the adapter: files, descriptors, the environment, the date. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "engine.h"

#define FILE_MAX ((size_t)16 << 20) /* bytes of a module */

extern char **environ;

static int64_t
os_js_refuse(const char *path)
{
	int error = -errno;

	return weft_fail(error, "%s: %s", path, weft_strerror(error));
}

/* Rejects anything that is not a regular file, because its end may never come, and files too
 * large for source text.  Returns 0 or an error. */
static int
check_file(int fd, const char *path, size_t *out)
{
	struct stat info;

	if (fstat(fd, &info) < 0)
		return (int)os_js_refuse(path);
	if (!S_ISREG(info.st_mode))
		return weft_fail(WEFT_EINVAL, "%s: not a regular file", path);
	if ((uint64_t)info.st_size > FILE_MAX)
		return weft_fail(WEFT_EMSGSIZE, "%s: the file is larger than 16 MiB", path);
	*out = (size_t)info.st_size;
	return 0;
}

/* Reads to the end of the file, whatever size stat reported.  Returns NULL if out of memory. */
static char *
os_js_read_all(JSContext *ctx, int fd, size_t room, int64_t *out)
{
	char *text = js_malloc(ctx, room + 1);
	size_t size = 0;
	ssize_t got = 1;

	while (text && got != 0 && size <= FILE_MAX) {
		if (size == room) {
			char *more = js_realloc(ctx, text, 2 * room + 1);

			if (!more)
				js_free(ctx, text);
			text = more;
			room *= 2;
			continue;
		}
		got = read(fd, text + size, room - size);
		if (got > 0)
			size += (size_t)got;
		else if (got < 0 && errno != EINTR)
			break;
	}
	*out = got < 0 ? -errno : size > FILE_MAX ? WEFT_EMSGSIZE : (int64_t)size;
	if (text)
		text[size] = '\0';
	return text;
}

/* O_NONBLOCK: opening a FIFO would wait for its other end. */
int64_t
weft__js_read_file(JSContext *ctx, const char *path, char **out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t expected = 0;
	int64_t size;

	if (fd < 0)
		return os_js_refuse(path);
	size = check_file(fd, path, &expected);
	if (size < 0) {
		(void)close(fd);
		return size;
	}
	*out = os_js_read_all(ctx, fd, expected + 1, &size);
	(void)close(fd);
	if (!*out)
		return weft_fail(WEFT_ENOMEM, "%s: out of memory", path);
	if (size >= 0)
		return size;
	js_free(ctx, *out);
	return weft_fail((int)size, "%s: %s", path, weft_strerror((int)size));
}

bool
weft__js_real_path(const char *path, char *out, size_t room)
{
	return room >= PATH_MAX && realpath(path, out) != NULL;
}

/* Waits if the descriptor is in non-blocking mode. */
void
weft__js_write(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t done = write(fd, text, size);
		struct pollfd ready = { .fd = fd, .events = POLLOUT };

		if (done >= 0) {
			text += done;
			size -= (size_t)done;
		} else if (errno == EAGAIN) {
			(void)poll(&ready, 1, -1);
		} else if (errno != EINTR) {
			return;
		}
	}
}

char **
weft__js_environment(void)
{
	return environ;
}

double
weft__js_date_ms(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}
