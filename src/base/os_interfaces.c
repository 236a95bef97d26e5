/* os_interfaces.c - the machine's network interfaces. */
#define _GNU_SOURCE
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <weft/addr.h>
#include "base/os.h"

/* Size of the address in a weft_addr; 0 if it is not an IP address. */
static size_t
size_of(const struct ifaddrs *entry)
{
	if (!entry->ifa_addr)
		return 0;
	switch (entry->ifa_addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

static uint32_t
bits_of(const struct sockaddr *mask, int family)
{
	const uint8_t *bytes;
	size_t size = family == AF_INET ? 4 : 16;
	uint32_t bits = 0;

	if (!mask)
		return (uint32_t)size * 8;
	bytes = (const uint8_t *)mask
	        + (family == AF_INET ? offsetof(struct sockaddr_in, sin_addr)
	                             : offsetof(struct sockaddr_in6, sin6_addr));
	for (size_t i = 0; i < size; i++)
		bits += (uint32_t)__builtin_popcount(bytes[i]);
	return bits;
}

static void
os_interfaces_fill(weft_interface *out, const struct ifaddrs *entry)
{
	size_t size = strnlen(entry->ifa_name, sizeof(out->name) - 1);

	*out = (weft_interface){ .index = if_nametoindex(entry->ifa_name),
		                 .flags = entry->ifa_flags };
	memcpy(out->name, entry->ifa_name, size);
	out->addr.size = (uint32_t)size_of(entry);
	out->addr.kind = SOCK_STREAM;
	memcpy(out->addr.bytes, entry->ifa_addr, out->addr.size);
	out->prefix_bits = bits_of(entry->ifa_netmask, entry->ifa_addr->sa_family);
}

int
weft__os_interfaces(struct weft_interface *out, size_t max)
{
	struct ifaddrs *all, *entry;
	size_t count = 0;

	if (getifaddrs(&all) < 0)
		return -errno;
	for (entry = all; entry; entry = entry->ifa_next) {
		if (size_of(entry) == 0)
			continue;
		if (count < max)
			os_interfaces_fill(&out[count], entry);
		count++;
	}
	freeifaddrs(all);
	return (int)count;
}

int
weft__os_interface_index(const char *name)
{
	unsigned index = if_nametoindex(name);

	return index ? (int)index : -errno;
}
