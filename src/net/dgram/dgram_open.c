/* dgram_open.c - opens a datagram socket.
 *
 * An empty host means every interface, by one dual-stack socket for IPv6 and IPv4.  Where there
 * is no IPv6, the socket is IPv4.
 */
#include <errno.h>
#include <netinet/in.h>
#include "base/thread.h"
#include "net/dgram/dgram.h"

static int
set_flag(const weft_dgram *dgram, int level, int name, int value)
{
	return weft__sys->set_option(dgram->fd, level, name, &value, sizeof(value));
}

static bool
is_any6(const weft_addr *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr->bytes;

	return weft__addr_family(addr) == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

/* Returns 0 or -errno.  The caller closes the descriptor, also after an error. */
static int
make_socket(weft_dgram *dgram, int family, const weft_dgram_opts *opts)
{
	int rc = weft__sys->socket(family, SOCK_DGRAM, 0);

	if (rc < 0)
		return rc;
	dgram->fd = rc;
	dgram->family = family;
	dgram->join_max = family == AF_UNIX ? 0 : SIZE_MAX;
	rc = 0;
	if (opts->broadcast)
		rc = set_flag(dgram, SOL_SOCKET, SO_BROADCAST, 1);
	if (rc == 0 && opts->reuse_port)
		rc = set_flag(dgram, SOL_SOCKET, SO_REUSEPORT, 1);
	return rc;
}

static bool
is_unnamed(const weft_addr *addr)
{
	return weft__addr_family(addr) == AF_UNIX && addr->size <= sizeof(sa_family_t);
}

/* Whether `addr` is a path in the file system, which the close of the socket removes. */
static bool
is_path(const weft_addr *addr)
{
	return weft__addr_family(addr) == AF_UNIX && addr->size > sizeof(sa_family_t)
	       && weft__addr_sockaddr(addr)->sa_data[0];
}

static int
open_at(weft_dgram *dgram, const weft_addr *addr, const weft_dgram_opts *opts)
{
	int rc = make_socket(dgram, weft__addr_family(addr), opts);

	if (rc == 0 && is_any6(addr))
		rc = set_flag(dgram, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (rc < 0 || is_unnamed(addr))
		return rc;
	rc = weft__sys->bind(dgram->fd, weft__addr_sockaddr(addr), addr->size);
	if (rc == 0 && is_path(addr))
		dgram->path = *addr;
	return rc;
}

/* Every interface of IPv6 and IPv4, or else of IPv4. */
static int
open_any(weft_dgram *dgram, const weft_addr *addr, const weft_dgram_opts *opts)
{
	int rc = open_at(dgram, addr, opts);
	weft_addr any4;

	if (rc != -EAFNOSUPPORT && rc != -EADDRNOTAVAIL)
		return rc;
	if (dgram->fd >= 0)
		(void)weft__sys->close(dgram->fd);
	dgram->fd = -1;
	weft__addr_any4(weft__addr_port(addr), SOCK_DGRAM, &any4);
	return open_at(dgram, &any4, opts);
}

static bool
is_udp(const weft_dgram *dgram)
{
	int protocol = 0;
	socklen_t size = sizeof(protocol);

	return dgram->family != AF_UNIX
	       && weft__sys->get_option(dgram->fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0
	       && protocol == IPPROTO_UDP;
}

/* Take a descriptor from the caller, and read its properties. */
static int
open_fd(weft_dgram *dgram, int fd, const weft_dgram_opts *opts)
{
	weft_addr addr = { 0 };
	socklen_t size = sizeof(addr.bytes), type_size = sizeof(int);
	int type = 0, rc;

	rc = weft__sys->sockname(fd, (struct sockaddr *)(void *)addr.bytes, &size);
	if (rc == 0)
		rc = weft__sys->get_option(fd, SOL_SOCKET, SO_TYPE, &type, &type_size);
	if (rc < 0)
		return rc;
	if (type != SOCK_DGRAM)
		return -EPROTOTYPE;
	dgram->fd = fd;
	dgram->borrowed = opts->borrow;
	dgram->family = weft__addr_sockaddr(&addr)->sa_family;
	if (is_udp(dgram))
		dgram->join_max = SIZE_MAX;
	if (opts->broadcast)
		rc = set_flag(dgram, SOL_SOCKET, SO_BROADCAST, 1);
	return rc;
}

static int
connect_peer(const weft_dgram *dgram, const weft_addr *peer)
{
	weft_addr addr = *peer;

	if (dgram->family == AF_INET6)
		weft__addr_map(&addr);
	return weft__sys->connect(dgram->fd, weft__addr_sockaddr(&addr), addr.size);
}

/* Open the socket as `parts` describe it.  Returns 0 or -errno. */
static int
open_parts(weft_dgram *dgram, const struct weft__addr_parts *parts, const weft_dgram_opts *opts)
{
	int rc;

	if (!parts)
		rc = make_socket(dgram, weft__addr_family(&opts->peer), opts);
	else if (parts->scheme == WEFT__ADDR_FD)
		rc = open_fd(dgram, parts->fd, opts);
	else if (parts->scheme == WEFT__ADDR_UDP && parts->host_size == 0)
		rc = open_any(dgram, &parts->addr, opts);
	else
		rc = open_at(dgram, &parts->addr, opts);
	if (rc == 0 && opts->peer.size > 0)
		rc = connect_peer(dgram, &opts->peer);
	return rc;
}

static int
dgram_open_check(const char *address, const weft_dgram_opts *opts, struct weft__addr_parts *parts)
{
	int rc = address ? weft__addr_split(address, parts) : 0;

	if (rc < 0)
		return rc;
	if (address
	    && (parts->scheme == WEFT__ADDR_TCP || parts->scheme == WEFT__ADDR_TLS
	        || parts->scheme == WEFT__ADDR_UNIX))
		return weft_fail(
			WEFT_EINVAL,
			"weft_dgram_open %.300s: not a datagram address; use udp://, unixdgram: "
			"or fd:",
			address);
	if (address && parts->scheme == WEFT__ADDR_UDP && !parts->is_literal)
		return weft_fail(
			WEFT_EINVAL,
			"weft_dgram_open %.300s: the host must be an IP address, not a name",
			address);
	if (opts->peer.size > 0
	    && (opts->peer.kind != SOCK_DGRAM || opts->peer.size > sizeof(opts->peer.bytes)))
		return weft__fail(WEFT_EINVAL,
		                  "weft_dgram_open: opts.peer is not a datagram address");
	return 0;
}

int
weft_dgram_open(const char *address, const weft_dgram_opts *opts, weft_dgram **out)
{
	static const weft_dgram_opts defaults;
	struct weft__addr_parts parts;
	weft_dgram *dgram;
	int rc;

	opts = opts ? opts : &defaults;
	if (!out || (!address && opts->peer.size == 0))
		return weft__misuse(WEFT_EINVAL,
		                    "weft_dgram_open: out is NULL, or there is neither address "
		                    "nor peer");
	rc = dgram_open_check(address, opts, &parts);
	if (rc < 0)
		return rc;
	dgram = weft__alloc_zero(sizeof(*dgram));
	if (!dgram)
		return weft__fail(WEFT_ENOMEM, "weft_dgram_open: out of memory");
	dgram->fd = -1;
	rc = open_parts(dgram, address ? &parts : NULL, opts);
	if (rc == 0) {
		*out = dgram;
		return 0;
	}
	if (dgram->path.size > 0)
		(void)weft__sys->path_remove(weft__addr_sockaddr(&dgram->path)->sa_data);
	if (dgram->fd >= 0 && (!address || parts.scheme != WEFT__ADDR_FD))
		(void)weft__sys->close(dgram->fd);
	weft__sys->release(dgram);
	return weft_fail(rc, "weft_dgram_open %.300s: %s", address ? address : "to a peer",
	                 weft_strerror(rc));
}
