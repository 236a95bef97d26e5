/* http_os.c - what HTTP asks of the system, simulated: a wall clock that goes with the
 * virtual one, and a folder in which a file has the size that is its name. */
#include <errno.h>
#include <stdlib.h>
#include "http/os_http.h"
#include "sim/kernel/clock.h"
#include "sim/run/sim.h"

#define EPOCH_S     INT64_C(1700000000) /* when the virtual clock was 0 */
#define MODIFIED_S  INT64_C(1600000000)
#define FILE_MAX    (1u << 20)

int64_t
weft__http_os_seconds(void)
{
	return EPOCH_S + (int64_t)(sim_clock.now_ns / WEFT_S);
}

int
weft__http_os_find(const char *root, const char *name,
                   struct weft__http_found *out)
{
	char *end;
	unsigned long size = strtoul(name, &end, 10);
	int fd;

	(void)root;
	if (end == name || *end || size > FILE_MAX)
		return -ENOENT;
	fd = sim_open_file(size);
	if (fd < 0)
		return fd;
	*out = (struct weft__http_found){ .fd = fd,
		                          .size = size,
		                          .modified_s = MODIFIED_S };
	return 0;
}

void
weft__http_os_close(int fd)
{
	(void)weft__sys->close(fd);
}

ssize_t
weft__http_os_read_now(int fd, void *buf, size_t size, uint64_t offset)
{
	(void)fd, (void)buf, (void)size, (void)offset;
	return -EAGAIN;
}
