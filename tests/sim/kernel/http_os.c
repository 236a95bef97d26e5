/* http_os.c - the system functions of HTTP, simulated: a wall clock that follows the virtual
 * one, and no files. */
#include <errno.h>
#include "http/server/os_http.h"
#include "sim/kernel/clock.h"
#include "sim/run/sim.h"

#define EPOCH_S INT64_C(1700000000) /* the date at virtual time 0 */

int64_t
weft__http_os_seconds(void)
{
	return EPOCH_S + (int64_t)(sim_clock.now_ns / WEFT_S);
}

int
weft__http_os_open(const char *root, const char *name, struct weft__http_opened *out)
{
	(void)root, (void)name, (void)out;
	return -ENOENT;
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
