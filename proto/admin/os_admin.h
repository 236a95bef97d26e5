/* os_admin.h - what the window asks of the system that weft has no call for.  Private. */
#ifndef WEFT_ADMIN_OS_ADMIN_H
#define WEFT_ADMIN_OS_ADMIN_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

struct sockaddr_storage;

/* Of the process; 0: not known. */
struct weft__admin_process {
	uint64_t pid;
	uint64_t cpu_ns;
	uint64_t rss_bytes, virtual_bytes;
	uint64_t fds, fds_max;
	uint64_t threads;
	uint64_t uptime_ns;
	uint64_t started_ms; /* since 1970 */
};

void weft__admin_os_process(struct weft__admin_process *out);

/* The program's name, for ever. */
const char *weft__admin_os_program(void);

/* Whether the address is of a Unix socket. */
bool weft__admin_os_is_unix(const struct sockaddr_storage *addr);

/* Whether the text is an address of the loopback: 127.0.0.0/8, or with `six` ::1. */
bool weft__admin_os_is_loopback(const char *text, bool six);

/* Fill `out` with what nobody can guess.  False: there is no such. */
bool weft__admin_os_random(void *out, size_t size);

#endif
