/* listen.c - opens a listening socket by the text of its address. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/un.h>
#include "net/addr.h"
#include "net/listen/listener.h"

#define BACKLOG 511

static int
listen_fail(int error, const char *address)
{
	return weft_fail(error, "listen %s: %s", address, weft_strerror(error));
}

static int
set_int(int fd, int level, int name, int value)
{
	return weft__sys->set_option(fd, level, name, &value, sizeof(value));
}

/* Accepted sockets inherit TCP_NODELAY.  An empty host means IPv4, too. */
static int
prepare_tcp(int fd, const struct weft__addr_parts *parts, bool share)
{
	int rc = set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);

	if (rc == 0 && share)
		rc = set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (rc == 0)
		rc = set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (rc == 0 && weft__addr_family(&parts->addr) == AF_INET6)
		rc = set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, parts->host_size > 0);
	return rc;
}

static bool
has_path(const struct weft__addr_parts *parts)
{
	return parts->scheme == WEFT__ADDR_UNIX && parts->path_size > 0 && parts->path[0] != '@';
}

/* Whether no process listens on the socket at that path. */
static bool
is_dead(const weft_addr *addr)
{
	int fd = weft__sys->socket(AF_UNIX, SOCK_STREAM, 0), rc;

	if (fd < 0)
		return false;
	rc = weft__sys->connect(fd, weft__addr_sockaddr(addr), addr->size);
	(void)weft__sys->close(fd);
	return rc == -ECONNREFUSED;
}

static int
bind_to(int fd, const weft_addr *addr)
{
	return weft__sys->bind(fd, weft__addr_sockaddr(addr), addr->size);
}

static int
bind_path(int fd, const struct weft__addr_parts *parts, const weft_listener_opts *opts)
{
	mode_t mode = opts->mode ? opts->mode : 0600;
	int rc = weft__sys->path_mode(fd, mode);

	if (rc == 0)
		rc = bind_to(fd, &parts->addr);
	if (rc == -EADDRINUSE && opts->replace && is_dead(&parts->addr)) {
		rc = weft__sys->path_remove(parts->path);
		if (rc == 0)
			rc = bind_to(fd, &parts->addr);
	}
	return rc;
}

static int
bind_and_listen(int fd, const struct weft__addr_parts *parts, const weft_listener_opts *opts)
{
	int backlog = opts->backlog ? (int)opts->backlog : BACKLOG;
	int rc = parts->scheme == WEFT__ADDR_UNIX ? 0 : prepare_tcp(fd, parts, opts->reuse_port);

	if (rc == 0)
		rc = has_path(parts) ? bind_path(fd, parts, opts) : bind_to(fd, &parts->addr);
	return rc == 0 ? weft__sys->listen(fd, backlog) : rc;
}

/* Where there is no IPv6, an empty host means every IPv4 address. */
static int
open_socket(struct weft__addr_parts *parts)
{
	int fd = weft__sys->socket(weft__addr_family(&parts->addr), SOCK_STREAM, 0);

	if (fd != -EAFNOSUPPORT || parts->host_size > 0 || parts->scheme == WEFT__ADDR_UNIX)
		return fd;
	weft__addr_any4(parts->port, SOCK_STREAM, &parts->addr);
	return weft__sys->socket(AF_INET, SOCK_STREAM, 0);
}

static int
check_parts(const struct weft__addr_parts *parts, const char *address,
            const weft_listener_opts *opts)
{
	if (parts->scheme == WEFT__ADDR_UDP || parts->scheme == WEFT__ADDR_UNIXDGRAM)
		return weft_fail(
			WEFT_EINVAL,
			"listen %s: cannot listen at a datagram address; use weft_dgram_open()",
			address);
	if (opts->reuse_port && parts->scheme != WEFT__ADDR_TCP && parts->scheme != WEFT__ADDR_TLS)
		return weft_fail(WEFT_EINVAL, "listen %s: reuse_port needs a tcp or tls address",
		                 address);
	if (parts->scheme == WEFT__ADDR_TLS && !opts->tls)
		return weft_fail(WEFT_EINVAL,
		                 "listen %s: a tls address needs a certificate; set opts.tls",
		                 address);
	if (parts->scheme != WEFT__ADDR_FD && !parts->is_literal)
		return weft_fail(WEFT_EINVAL,
		                 "listen %s: the host must be an IP address, not a name", address);
	return 0;
}

static int
read_local(int fd, weft_addr *out)
{
	struct sockaddr_storage name = { 0 };
	socklen_t size = sizeof(name);
	int rc = weft__sys->sockname(fd, (struct sockaddr *)&name, &size);

	if (rc == 0)
		weft__addr_from((struct sockaddr *)&name, size, SOCK_STREAM, out);
	return rc;
}

/* Copy the path, for its removal. */
static int
copy_path(const struct weft__addr_parts *parts, char **out)
{
	*out = NULL;
	if (!has_path(parts))
		return 0;
	*out = weft__sys->alloc(parts->path_size + 1);
	if (!*out)
		return WEFT_ENOMEM;
	memcpy(*out, parts->path, parts->path_size);
	(*out)[parts->path_size] = '\0';
	return 0;
}

int
weft__listen(const char *address, const weft_listener_opts *opts, weft_addr *local, char **path)
{
	struct weft__addr_parts parts;
	int rc = weft__addr_split(address, &parts), fd = -1;

	if (rc == 0)
		rc = check_parts(&parts, address, opts);
	if (rc < 0)
		return rc;
	rc = copy_path(&parts, path);
	if (rc == 0)
		rc = fd = parts.scheme == WEFT__ADDR_FD ? parts.fd : open_socket(&parts);
	if (rc >= 0 && parts.scheme != WEFT__ADDR_FD)
		rc = bind_and_listen(fd, &parts, opts);
	if (rc >= 0)
		rc = read_local(fd, local);
	if (rc >= 0)
		return fd;
	if (fd >= 0 && parts.scheme != WEFT__ADDR_FD)
		(void)weft__sys->close(fd);
	weft__sys->release(*path);
	return listen_fail(rc, address);
}
