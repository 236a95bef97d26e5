/* addr.c - addresses as values: sockaddrs in a struct that can be copied and compared.
 *
 * A Unix address has a size, not a terminator: the size of a path includes its NUL, an abstract
 * name begins with a NUL and may contain others, and a socket without a name has neither.  The
 * kernel is lax in what it accepts and returns, so every address from outside is normalized
 * here.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>
#include "base/sys.h"
#include "net/addr.h"
#include "net/ip.h"

#define PATH_AT offsetof(struct sockaddr_un, sun_path)

_Static_assert(sizeof(struct sockaddr_un) <= sizeof(((weft_addr *)0)->bytes),
               "the largest sockaddr fits");

/* Convert to or from network byte order. */
static uint16_t
net16(uint16_t number)
{
	uint8_t bytes[2] = { (uint8_t)(number >> 8), (uint8_t)number };

	memcpy(&number, bytes, sizeof(number));
	return number;
}

static struct sockaddr_in *
inet_of(weft_addr *addr)
{
	return (struct sockaddr_in *)(void *)addr->bytes;
}

static struct sockaddr_in6 *
inet6_of(weft_addr *addr)
{
	return (struct sockaddr_in6 *)(void *)addr->bytes;
}

int
weft__addr_family(const weft_addr *addr)
{
	return addr->size >= sizeof(sa_family_t) ? weft__addr_sockaddr(addr)->sa_family : AF_UNSPEC;
}

/* sin_port is also the port of an IPv6 address. */
_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
               "ports are in one place");

static bool
has_port(const weft_addr *addr)
{
	int family = weft__addr_family(addr);

	return family == AF_INET || family == AF_INET6;
}

uint16_t
weft__addr_port(const weft_addr *addr)
{
	const struct sockaddr_in *in = (const void *)addr->bytes;

	return has_port(addr) ? net16(in->sin_port) : 0;
}

void
weft__addr_set_port(weft_addr *addr, uint16_t port)
{
	if (has_port(addr))
		inet_of(addr)->sin_port = net16(port);
}

void
weft__addr_any4(uint16_t port, uint32_t kind, weft_addr *out)
{
	*out = (weft_addr){ .size = sizeof(struct sockaddr_in), .kind = kind };
	inet_of(out)->sin_family = AF_INET;
	inet_of(out)->sin_port = net16(port);
}

void
weft__addr_map(weft_addr *addr)
{
	struct sockaddr_in in = *inet_of(addr);
	struct sockaddr_in6 *in6 = inet6_of(addr);

	if (weft__addr_family(addr) != AF_INET)
		return;
	addr->size = sizeof(*in6);
	*in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = in.sin_port };
	memset(in6->sin6_addr.s6_addr + 10, 0xff, 2);
	memcpy(in6->sin6_addr.s6_addr + 12, &in.sin_addr, 4);
}

static void
unmap(weft_addr *addr)
{
	struct sockaddr_in6 in6 = *inet6_of(addr);

	if (!weft__ip6_is_mapped(in6.sin6_addr.s6_addr))
		return;
	weft__addr_any4(net16(in6.sin6_port), addr->kind, addr);
	memcpy(&inet_of(addr)->sin_addr, in6.sin6_addr.s6_addr + 12, 4);
}

/* The size of a Unix name, without the NUL at the end of a path. */
static size_t
name_size(const weft_addr *addr)
{
	const struct sockaddr_un *un = (const void *)addr->bytes;
	size_t size = addr->size < PATH_AT ? 0 : addr->size - PATH_AT;

	if (size > sizeof(un->sun_path))
		size = sizeof(un->sun_path);
	return size > 0 && un->sun_path[0] ? strnlen(un->sun_path, size) : size;
}

/* Put one NUL behind a path.  If sun_path has no room for the NUL, no bind accepts the path. */
static void
trim_unix(weft_addr *addr)
{
	const struct sockaddr_un *un = (const void *)addr->bytes;
	size_t size = name_size(addr);

	if (size > 0 && un->sun_path[0])
		size++;
	memset(addr->bytes + PATH_AT + size, 0, sizeof(addr->bytes) - PATH_AT - size);
	addr->size = (uint32_t)(PATH_AT + size);
}

void
weft__addr_settle(weft_addr *addr, socklen_t size)
{
	if (size > sizeof(struct sockaddr_un))
		size = sizeof(struct sockaddr_un);
	addr->size = size;
	memset(addr->bytes + size, 0, sizeof(addr->bytes) - size);
	switch (weft__addr_family(addr)) {
	case AF_INET6:
		inet6_of(addr)->sin6_flowinfo = 0;
		unmap(addr);
		break;
	case AF_UNIX:
		trim_unix(addr);
		break;
	case AF_UNSPEC: /* the peer has no name */
		*addr = (weft_addr){ 0 };
		break;
	}
}

void
weft__addr_from(const struct sockaddr *from, socklen_t size, uint32_t kind, weft_addr *out)
{
	out->kind = kind;
	memcpy(out->bytes, from,
	       size < sizeof(struct sockaddr_un) ? size : sizeof(struct sockaddr_un));
	weft__addr_settle(out, size);
}

static bool
is_same_inet6(const weft_addr *a, const weft_addr *b)
{
	const struct sockaddr_in6 *one = (const void *)a->bytes;
	const struct sockaddr_in6 *two = (const void *)b->bytes;

	return one->sin6_port == two->sin6_port && one->sin6_scope_id == two->sin6_scope_id
	       && memcmp(&one->sin6_addr, &two->sin6_addr, 16) == 0;
}

static bool
is_same_inet(const weft_addr *a, const weft_addr *b)
{
	const struct sockaddr_in *one = (const void *)a->bytes;
	const struct sockaddr_in *two = (const void *)b->bytes;

	return one->sin_port == two->sin_port && one->sin_addr.s_addr == two->sin_addr.s_addr;
}

bool
weft_addr_equal(const weft_addr *a, const weft_addr *b)
{
	int family = weft__addr_family(a);

	if (family != weft__addr_family(b) || a->kind != b->kind)
		return false;
	switch (family) {
	case AF_INET:
		return is_same_inet(a, b);
	case AF_INET6:
		return is_same_inet6(a, b);
	case AF_UNIX:
		return name_size(a) == name_size(b)
		       && memcmp(a->bytes + PATH_AT, b->bytes + PATH_AT, name_size(a)) == 0;
	default:
		return a->size == b->size
		       && (a->size > sizeof(a->bytes) || memcmp(a->bytes, b->bytes, a->size) == 0);
	}
}

bool
weft_addr_is_local(const weft_addr *addr)
{
	static const uint8_t loopback[16] = { [15] = 1 };
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const struct sockaddr_in *in4 = (const void *)addr->bytes;
	const struct sockaddr_in6 *in6 = (const void *)addr->bytes;
	const uint8_t *ip = in6->sin6_addr.s6_addr;

	switch (weft__addr_family(addr)) {
	case AF_INET:
		return *(const uint8_t *)&in4->sin_addr == 127;
	case AF_INET6:
		return memcmp(ip, loopback, sizeof(loopback)) == 0
		       || (memcmp(ip, mapped, sizeof(mapped)) == 0 && ip[12] == 127);
	default:
		return weft__addr_family(addr) == AF_UNIX;
	}
}
