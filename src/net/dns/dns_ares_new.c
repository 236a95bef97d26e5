/* dns_ares_new.c - c-ares from 1.34 on.
 *
 * Its socket functions have more parameters than those of dns_ares.c need: flags and addresses
 * of TCP Fast Open, which c-ares does not use unless its options request it.
 */
#include <errno.h>
#include <net/if.h>
#include <sys/uio.h>
#include "base/thread.h"
#include "net/dns/dns_ares.h"

static int
set_option(ares_socket_t fd, ares_socket_opt_t option, const void *value, ares_socklen_t size,
           void *arg)
{
	(void)fd;
	(void)option;
	(void)value;
	(void)size;
	(void)arg;
	*weft__errno() = ENOSYS; /* c-ares continues without it */
	return -1;
}

static int
connect_to(ares_socket_t fd, const struct sockaddr *addr, ares_socklen_t size, unsigned int flags,
           void *arg)
{
	(void)flags;
	return weft__dns_sockets.aconnect(fd, addr, size, arg);
}

/* tidy: wide, because c-ares defines the parameters of its functions. */
static ares_ssize_t
send_to(ares_socket_t fd, const void *data, size_t size, int flags, const struct sockaddr *addr,
        ares_socklen_t addr_size, void *arg)
{
	struct iovec part = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };

	(void)flags;
	(void)addr;
	(void)addr_size;
	return weft__dns_sockets.asendv(fd, &part, 1, arg);
}

static unsigned int
index_of(const char *name, void *arg)
{
	(void)arg;
	return if_nametoindex(name);
}

/* c-ares passes at least IF_NAMESIZE. */
static const char *
name_of(unsigned int index, char *name, size_t size, void *arg)
{
	(void)arg;
	return size < IF_NAMESIZE ? NULL : if_indextoname(index, name);
}

int
weft__dns_set_sockets(ares_channel channel, void *engine)
{
	const struct ares_socket_functions_ex functions = {
		.version = 1,
		.flags = ARES_SOCKFUNC_FLAG_NONBLOCKING,
		.asocket = weft__dns_sockets.asocket,
		.aclose = weft__dns_sockets.aclose,
		.asetsockopt = set_option,
		.aconnect = connect_to,
		.arecvfrom = weft__dns_sockets.arecvfrom,
		.asendto = send_to,
		.aif_nametoindex = index_of,
		.aif_indextoname = name_of,
	};

	return (int)ares_set_socket_functions_ex(channel, &functions, engine);
}

int
weft__dns_no_cache(struct ares_options *options)
{
	options->qcache_max_ttl = 0;
	return ARES_OPT_QUERY_CACHE;
}
