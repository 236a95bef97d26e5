/* os_admin.c - system calls that the admin endpoint needs and weft does not offer: numbers of
 * the process, addresses, random bytes.
 *
 * Without /proc, numbers that are not known otherwise are 0.
 */
#define _GNU_SOURCE
#include "os_admin.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FDS_COUNTED 20000u

/* --- the process ----------------------------------------------------------------- */

/* Read a small file as text; "" if it cannot be read. */
static void
read_file(const char *name, char *out, size_t room)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;

	if (fd >= 0) {
		n = read(fd, out, room - 1);
		(void)close(fd);
	}
	out[n > 0 ? n : 0] = '\0';
}

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Newer kernels report the count as the size of the directory; on others the entries are
 * counted. */
static uint64_t
count_fds(void)
{
	struct stat st;
	uint64_t count = 0;
	DIR *folder;

	if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
		return (uint64_t)st.st_size;
	folder = opendir("/proc/self/fd");
	if (!folder)
		return 0;
	while (count < FDS_COUNTED && readdir(folder))
		count++;
	(void)closedir(folder);
	return count > 3 ? count - 3 : 0; /* ".", ".." and the one of opendir() */
}

/* Field `number`, from 1, of /proc/self/stat.  The second field may contain blanks and
 * parentheses. */
static uint64_t
stat_field(const char *text, int number)
{
	const char *at = strrchr(text, ')');

	for (int i = 2; at && i < number; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

static void
read_times(struct weft__admin_process *out, const char *stat)
{
#ifdef CLOCK_BOOTTIME
	uint64_t now = clock_ns(CLOCK_BOOTTIME);
#else
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
#endif
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t since = stat_field(stat, 22);

	if (since == 0 || ticks == 0)
		return;
	since = since / ticks * 1000000000u + since % ticks * 1000000000u / ticks;
	out->uptime_ns = now > since ? now - since : 0;
	out->started_ms = (clock_ns(CLOCK_REALTIME) - out->uptime_ns) / 1000000;
}

void
weft__admin_os_process(struct weft__admin_process *out)
{
	char text[1024];
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct rlimit limit;

	*out = (struct weft__admin_process){
		.pid = (uint64_t)getpid(),
		.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		.fds = count_fds(),
	};
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		out->fds_max = (uint64_t)limit.rlim_cur;
	read_file("/proc/self/stat", text, sizeof(text));
	if (!text[0])
		return;
	out->threads = stat_field(text, 20);
	out->virtual_bytes = stat_field(text, 23);
	out->rss_bytes = stat_field(text, 24) * page;
	read_times(out, text);
}

const char *
weft__admin_os_program(void)
{
#ifdef __GLIBC__
	return program_invocation_short_name;
#else
	return "weft";
#endif
}

/* --- addresses ------------------------------------------------------------------- */

static bool
is_loopback4(uint32_t address)
{
	return ntohl(address) >> 24 == 127;
}

bool
weft__admin_os_is_unix(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_UNIX;
}

bool
weft__admin_os_is_loopback(const char *text, bool six)
{
	struct in6_addr in6;
	struct in_addr in4;

	if (six)
		return inet_pton(AF_INET6, text, &in6) == 1 && IN6_IS_ADDR_LOOPBACK(&in6);
	return inet_pton(AF_INET, text, &in4) == 1 && is_loopback4(in4.s_addr);
}

bool
weft__admin_os_random(void *out, size_t size)
{
	return getentropy(out, size) == 0;
}
