/* os_http.h - system calls that HTTP needs and weft does not offer.  Private. */
#ifndef WEFT_HTTP_OS_HTTP_H
#define WEFT_HTTP_OS_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct weft__http_opened {
	int      fd;
	bool     is_folder;
	uint64_t size;
	int64_t  modified_s; /* since 1970 */
	uint32_t modified_ns;
};

/* Seconds since 1970. */
int64_t weft__http_os_seconds(void);

/* Open the file or folder `name`, which has no empty, "." or ".." parts, below `root`, and
 * describe it in *out; the caller closes out->fd.  Blocks.  Returns 0 or -errno. */
int  weft__http_os_open(const char *root, const char *name, struct weft__http_opened *out);
void weft__http_os_close(int fd);

/* Read bytes that are in the page cache.  Returns the count, or -errno: -EAGAIN if they are not
 * there. */
ssize_t weft__http_os_read_now(int fd, void *buf, size_t size, uint64_t offset);

#endif
