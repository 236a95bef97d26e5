/* os_host.c - host names and addresses, by the system's resolver, and names of interfaces. */
#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include "base/os.h"

/* Map a result of getaddrinfo(3) or getnameinfo(3) to an error of the library. */
static int
error_of(int code)
{
	switch (code) {
	case EAI_NONAME:
#ifdef EAI_NODATA
	case EAI_NODATA:
#endif
#ifdef EAI_ADDRFAMILY
	case EAI_ADDRFAMILY:
#endif
		return WEFT_ENONAME;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_OVERFLOW:
		return -EMSGSIZE;
	case EAI_SYSTEM:
		return errno ? -errno : -EIO;
	default:
		return -EAGAIN;
	}
}

/* False if the address is neither IPv4 nor IPv6. */
static bool
read_host(const struct sockaddr *from, struct weft__host *out)
{
	const struct sockaddr_in *in = (const void *)from;
	const struct sockaddr_in6 *in6 = (const void *)from;

	*out = (struct weft__host){ .family = (uint16_t)from->sa_family };
	if (from->sa_family == AF_INET) {
		memcpy(out->ip, &in->sin_addr, sizeof(in->sin_addr));
	} else if (from->sa_family == AF_INET6) {
		memcpy(out->ip, &in6->sin6_addr, sizeof(in6->sin6_addr));
		out->scope = in6->sin6_scope_id;
	} else {
		return false;
	}
	return true;
}

int
weft__os_host_find(const char *name, struct weft__host *out, size_t max)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	int rc = getaddrinfo(name, NULL, &hints, &list);
	size_t count = 0;

	if (rc != 0)
		return error_of(rc);
	for (const struct addrinfo *a = list; a && count < max; a = a->ai_next)
		count += read_host(a->ai_addr, &out[count]);
	freeaddrinfo(list);
	return count > 0 ? (int)count : WEFT_ENONAME;
}

int
weft__os_host_name(const struct weft__host *host, char *out, size_t max)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_scope_id = host->scope };
	bool is6 = host->family == AF_INET6;
	int rc;

	memcpy(&in.sin_addr, host->ip, sizeof(in.sin_addr));
	memcpy(&in6.sin6_addr, host->ip, sizeof(in6.sin6_addr));
	rc = getnameinfo(is6 ? (const struct sockaddr *)&in6 : (const struct sockaddr *)&in,
	                 is6 ? sizeof(in6) : sizeof(in), out, (socklen_t)max, NULL, 0, NI_NAMEREQD);
	return rc == 0 ? (int)strlen(out) : error_of(rc);
}

int
weft__os_interface_index(const char *name)
{
	unsigned index = if_nametoindex(name);

	return index ? (int)index : -errno;
}
