/* dgram_option.c - options by name, and multicast groups.
 *
 * Options that IPv4 and IPv6 have separately are set for both on a dual-stack socket: the
 * destination of a message decides which of them applies.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include "base/thread.h"
#include "net/dgram/dgram.h"

enum { SOCKET, INTERNET, WRITE_MAX, QUEUED };

static const struct option {
	const char *name;
	int kind;
	int name4; /* of the socket level, or of IPv4 */
	int name6;
	int64_t min, max;
} options[] = {
	{ "broadcast", SOCKET, SO_BROADCAST, 0, 0, 1 },
	{ "rcvbuf", SOCKET, SO_RCVBUF, 0, 1, INT32_MAX },
	{ "sndbuf", SOCKET, SO_SNDBUF, 0, 1, INT32_MAX },
	{ "ttl", INTERNET, IP_TTL, IPV6_UNICAST_HOPS, 1, 255 },
	{ "multicast_ttl", INTERNET, IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS, 0, 255 },
	{ "multicast_loop", INTERNET, IP_MULTICAST_LOOP, IPV6_MULTICAST_LOOP, 0, 1 },
	{ "multicast_interface", INTERNET, IP_MULTICAST_IF, IPV6_MULTICAST_IF, 0, INT32_MAX },
	{ "write_max", WRITE_MAX, 0, 0, 0, INT64_MAX },
	{ "queued", QUEUED, 0, 0, 1, 0 },
};

static const struct weft__sys *
dgram_option_kernel(const weft_dgram *dgram)
{
	weft_loop *loop = weft__dgram_loop(dgram);

	return loop ? weft__kernel(&loop->backend) : weft__sys;
}

/* The option of that name for this socket.  If there is none, returns NULL and sets *rc. */
static const struct option *
dgram_option_find(const weft_dgram *dgram, const char *name, int *rc)
{
	*rc = weft__dgram_check(dgram, "weft_dgram option");
	if (*rc == 0 && !name)
		*rc = weft__misuse(WEFT_EINVAL, "weft_dgram option: name is NULL");
	for (size_t i = 0; *rc == 0 && i < sizeof(options) / sizeof(options[0]); i++) {
		if (strcmp(options[i].name, name) != 0)
			continue;
		if (options[i].kind != INTERNET || dgram->family == AF_INET
		    || dgram->family == AF_INET6)
			return &options[i];
		*rc = weft_fail(WEFT_EINVAL, "weft_dgram option %s: only for UDP sockets", name);
	}
	if (*rc == 0)
		*rc = weft_fail(WEFT_ENOENT, "weft_dgram option %.100s: unknown option", name);
	return NULL;
}

static int
set_int(const weft_dgram *dgram, int level, int name, int value)
{
	return dgram_option_kernel(dgram)->set_option(dgram->fd, level, name, &value,
	                                              sizeof(value));
}

/* IPv4 takes the interface in a struct. */
static int
set_inet(const weft_dgram *dgram, int name, int value)
{
	struct ip_mreqn interface = { .imr_ifindex = value };

	if (name != IP_MULTICAST_IF)
		return set_int(dgram, IPPROTO_IP, name, value);
	return dgram_option_kernel(dgram)->set_option(dgram->fd, IPPROTO_IP, name, &interface,
	                                              sizeof(interface));
}

static int
set_internet(const weft_dgram *dgram, const struct option *option, int value)
{
	int rc;

	if (dgram->family == AF_INET)
		return set_inet(dgram, option->name4, value);
	rc = set_int(dgram, IPPROTO_IPV6, option->name6, value);
	/* A failure is ignored: the socket may be for IPv6 only. */
	(void)set_inet(dgram, option->name4, value);
	return rc;
}

int
weft_dgram_set(weft_dgram *dgram, const char *name, int64_t value)
{
	int rc;
	const struct option *option = dgram_option_find(dgram, name, &rc);

	if (!option)
		return rc;
	if (value < option->min || value > option->max)
		return weft_fail(WEFT_EINVAL, "weft_dgram_set %s: the value %lld is not allowed",
		                 name, (long long)value);
	if (option->kind == WRITE_MAX)
		dgram->write_max = (uint64_t)value;
	else if (option->kind == SOCKET)
		rc = set_int(dgram, SOL_SOCKET, option->name4, (int)value);
	else
		rc = set_internet(dgram, option, (int)value);
	if (rc == 0 && option->name4 == IP_MULTICAST_IF && option->kind == INTERNET)
		dgram->multicast_interface = (uint32_t)value;
	return rc < 0 ? weft_fail(rc, "weft_dgram_set %s: %s", name, weft_strerror(rc)) : 0;
}

static int
get_int(const weft_dgram *dgram, const struct option *option, int64_t *out)
{
	bool is_socket = option->kind == SOCKET;
	bool is_inet6 = dgram->family == AF_INET6 && !is_socket;
	int value = 0;
	socklen_t size = sizeof(value);
	int rc = dgram_option_kernel(dgram)->get_option(dgram->fd,
	                                                is_socket  ? SOL_SOCKET
	                                                : is_inet6 ? IPPROTO_IPV6
	                                                           : IPPROTO_IP,
	                                                is_inet6 ? option->name6 : option->name4,
	                                                &value, &size);

	if (rc == 0)
		*out = value;
	return rc;
}

int
weft_dgram_get(weft_dgram *dgram, const char *name, int64_t *out)
{
	int rc;
	const struct option *option = dgram_option_find(dgram, name, &rc);

	if (!option)
		return rc;
	if (!out)
		return weft__misuse(WEFT_EINVAL, "weft_dgram_get: out is NULL");
	if (option->kind == WRITE_MAX)
		*out = (int64_t)dgram->write_max;
	else if (option->kind == QUEUED)
		*out = (int64_t)dgram->queued;
	else if (option->kind == INTERNET && option->name4 == IP_MULTICAST_IF)
		*out = dgram->multicast_interface;
	else
		rc = get_int(dgram, option, out);
	return rc < 0 ? weft_fail(rc, "weft_dgram_get %s: %s", name, weft_strerror(rc)) : 0;
}

int
weft_dgram_set_group(weft_dgram *dgram, const weft_addr *group, uint32_t index, bool on)
{
	struct group_req request = { .gr_interface = index };
	int family = group ? weft__addr_family(group) : AF_UNSPEC;
	int rc = weft__dgram_check(dgram, "weft_dgram_set_group");

	if (rc < 0)
		return rc;
	if ((family != AF_INET && family != AF_INET6) || group->size > sizeof(group->bytes))
		return weft__fail(WEFT_EINVAL, "weft_dgram_set_group: group is not an IP address");
	memcpy(&request.gr_group, group->bytes, group->size);
	rc = dgram_option_kernel(dgram)->set_option(
		dgram->fd, family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6,
		on ? MCAST_JOIN_GROUP : MCAST_LEAVE_GROUP, &request, sizeof(request));
	return rc < 0 ? weft_fail(rc, "weft_dgram_set_group: %s", weft_strerror(rc)) : 0;
}
