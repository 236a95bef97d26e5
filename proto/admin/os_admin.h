/* os_admin.h - system calls that the admin endpoint needs and weft does not offer.  Private. */
#ifndef WEFT_ADMIN_OS_ADMIN_H
#define WEFT_ADMIN_OS_ADMIN_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

struct sockaddr_storage;

/* Numbers of the process; 0 means unknown. */
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

/* The program's name; valid forever. */
const char *weft__admin_os_program(void);

/* Whether the address is that of a Unix socket. */
bool weft__admin_os_is_unix(const struct sockaddr_storage *addr);

/* Whether the text is a loopback address: in 127.0.0.0/8, or with `six` ::1. */
bool weft__admin_os_is_loopback(const char *text, bool six);

/* Fill `out` with cryptographically random bytes.  False if the system has none. */
bool weft__admin_os_random(void *out, size_t size);

#endif
