/* names.c - the names of sockets: which socket is bound to which name.
 *
 * A name is a port of AF_INET or AF_INET6, for any loopback address, or the bytes of an AF_UNIX
 * name.  Automatically assigned ports count up from a random start.
 *
 *   1. A socket is on the list from the time it gets a name until it ends.  An accepted socket
 *      shares its listener's name and is not on the list.
 *   2. No two sockets on the list have the same name.
 *
 * There is no TIME_WAIT, no SO_REUSEADDR, and no file system: an AF_UNIX name disappears with
 * its socket.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include "sim/run/rng.h"
#include "sim/kernel/socket.h"

enum { PORT_FIRST = 32768, PORTS = 28232 };

static struct {
	struct sim_socket *named;
	uint32_t next_port;
	uint32_t next_local;
} names;

void
sim_names_reset(void)
{
	names.named = NULL;
	names.next_port = (uint32_t)sim_below(SIM_DRAW_SETUP, PORTS);
	names.next_local = 1;
}

static in_port_t *
port_of(struct sockaddr_storage *name)
{
	if (name->ss_family == AF_INET)
		return &((struct sockaddr_in *)(void *)name)->sin_port;
	if (name->ss_family == AF_INET6)
		return &((struct sockaddr_in6 *)(void *)name)->sin6_port;
	return NULL;
}

int
sim_name_copy(int domain, const struct sockaddr *addr, socklen_t size, struct sockaddr_storage *out,
              int unknown)
{
	const struct sockaddr_in *in = (const void *)addr;
	socklen_t least = domain == AF_UNIX ? sizeof(sa_family_t) : sizeof(struct sockaddr_in);

	if (size < least || size > sizeof(*out))
		return -EINVAL;
	if (addr->sa_family != domain)
		return domain == AF_UNIX ? -EINVAL : -EAFNOSUPPORT;
	if (domain == AF_INET && in->sin_addr.s_addr != htonl(INADDR_ANY)
	    && ntohl(in->sin_addr.s_addr) >> 24 != 127)
		return unknown;
	memset(out, 0, sizeof(*out));
	memcpy(out, addr, size);
	return 0;
}

static bool
same_name(struct sockaddr_storage *a, struct sockaddr_storage *b)
{
	in_port_t *port = port_of(a);

	if (a->ss_family != b->ss_family)
		return false;
	if (port)
		return *port == *port_of(b);
	return memcmp(a, b, sizeof(struct sockaddr_un)) == 0;
}

struct sim_socket *
sim_name_find(struct sockaddr_storage *name, bool listening)
{
	for (struct sim_socket *s = names.named; s; s = s->named_next)
		if (same_name(&s->name, name) && (!listening || s->state == SIM_SOCK_LISTENING))
			return s;
	return NULL;
}

static int
draw_port(struct sockaddr_storage *name)
{
	for (int i = 0; i < PORTS; i++) {
		*port_of(name) = htons((uint16_t)(PORT_FIRST + names.next_port++ % PORTS));
		if (!sim_name_find(name, false))
			return 0;
	}
	return -EADDRINUSE;
}

/* AF_UNIX autobind: Linux generates a name of a NUL and five digits. */
static socklen_t
draw_local(struct sockaddr_storage *name)
{
	struct sockaddr_un *un = (struct sockaddr_un *)(void *)name;

	do
		(void)snprintf(un->sun_path + 1, 6, "%05x", names.next_local++ & 0xfffff);
	while (sim_name_find(name, false));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 6);
}

int
sim_name_give(struct sim_socket *socket, struct sockaddr_storage *name, socklen_t size)
{
	int rc = 0;

	if (name->ss_family == AF_UNIX && size == sizeof(sa_family_t))
		size = draw_local(name);
	else if (port_of(name) && *port_of(name) == 0)
		rc = draw_port(name);
	else if (sim_name_find(name, false))
		rc = -EADDRINUSE;
	if (rc < 0)
		return rc;
	socket->name = *name;
	socket->name_size = size;
	socket->named_next = names.named;
	names.named = socket;
	return 0;
}

int
sim_name_give_any(struct sim_socket *socket)
{
	struct sockaddr_storage name = { .ss_family = (sa_family_t)socket->domain };

	if (socket->name.ss_family)
		return 0;
	if (socket->domain == AF_UNIX)
		return -EINVAL;
	if (socket->domain == AF_INET6) {
		((struct sockaddr_in6 *)(void *)&name)->sin6_addr = in6addr_loopback;
		return sim_name_give(socket, &name, sizeof(struct sockaddr_in6));
	}
	((struct sockaddr_in *)(void *)&name)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sim_name_give(socket, &name, sizeof(struct sockaddr_in));
}

void
sim_name_drop(struct sim_socket *socket)
{
	struct sim_socket **link = &names.named;

	while (*link && *link != socket)
		link = &(*link)->named_next;
	if (*link)
		*link = socket->named_next;
}
