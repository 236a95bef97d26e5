/* dns_order.c - decides which address of a host is tried first.
 *
 * RFC 6724, section 6, as far as a program can know.  A connected datagram socket, which sends
 * nothing, shows from which local address the kernel would reach a host; one socket serves all
 * addresses of a family.  Rules 3, 4 and 7 (deprecated, home and tunneled addresses) need
 * knowledge of interfaces and are left out.  Rule 9 is for IPv6 only, because it would undo the
 * order in which servers spread the load.
 *
 * Then the families alternate (RFC 8305, section 4), so that a caller that tries one address
 * after the other does not wait for all addresses of a broken family.
 */
#include <netinet/in.h>
#include <string.h>
#include "net/addr.h"
#include "net/dns/dns.h"

enum { SCOPE_LINK = 2, SCOPE_SITE = 5, SCOPE_GLOBAL = 14 };

/* The properties that the rules compare. */
struct rank {
	struct weft__host host;
	bool usable;
	bool same_scope; /* as the local address */
	bool same_label; /* as the local address */
	uint8_t scope;
	uint8_t precedence;
	uint8_t prefix; /* bits in common with the local address */
};

/* Map an IPv4 address into IPv6, for the rules. */
static void
map(const struct weft__host *host, uint8_t ip[16])
{
	memset(ip, 0, 16);
	if (host->family == AF_INET6) {
		memcpy(ip, host->ip, 16);
	} else {
		ip[10] = ip[11] = 0xff;
		memcpy(ip + 12, host->ip, 4);
	}
}

/* The default policy table, longest prefix first. */
static const struct policy {
	uint8_t prefix[16];
	uint8_t bits, precedence, label;
} policies[] = {
	{ { [15] = 1 }, 128, 50, 0 },                /* ::1 */
	{ { [10] = 0xff, [11] = 0xff }, 96, 35, 4 }, /* IPv4 */
	{ { 0 }, 96, 1, 3 },                         /* IPv4 compatible */
	{ { 0x20, 0x01 }, 32, 5, 5 },                /* Teredo */
	{ { 0x20, 0x02 }, 16, 30, 2 },               /* 6to4 */
	{ { 0x3f, 0xfe }, 16, 1, 12 },               /* 6bone */
	{ { 0xfe, 0xc0 }, 10, 1, 11 },               /* site-local */
	{ { 0xfc }, 7, 3, 13 },                      /* unique local */
	{ { 0 }, 0, 40, 1 },
};

static unsigned
common_bits(const uint8_t a[16], const uint8_t b[16])
{
	unsigned i = 0;

	while (i < 128 && !((a[i / 8] ^ b[i / 8]) & (0x80 >> i % 8)))
		i++;
	return i;
}

static const struct policy *
policy_of(const uint8_t ip[16])
{
	const struct policy *p = policies;

	while (common_bits(p->prefix, ip) < p->bits)
		p++;
	return p;
}

static uint8_t
scope_of(const uint8_t ip[16])
{
	static const uint8_t one[16] = { [15] = 1 };

	if (policy_of(ip)->label == 4) /* IPv4: 127/8 and 169.254/16 */
		return ip[12] == 127 || (ip[12] == 169 && ip[13] == 254) ? SCOPE_LINK
		                                                         : SCOPE_GLOBAL;
	if (ip[0] == 0xff)
		return ip[1] & 0xf;
	if (memcmp(ip, one, 16) == 0 || (ip[0] == 0xfe && ip[1] >> 6 == 2))
		return SCOPE_LINK;
	return ip[0] == 0xfe && ip[1] >> 6 == 3 ? SCOPE_SITE : SCOPE_GLOBAL;
}

/* Connect `fd` to find the local address that the kernel would use.  False if the host cannot be
 * reached. */
static bool
find_source(int fd, const struct weft__host *host, uint8_t out[16])
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct weft__host source = { .family = host->family };
	socklen_t size = sizeof(in6);
	weft_addr addr;

	weft__dns_make_addr(host, 53, SOCK_DGRAM, &addr);
	if (fd >= 0) /* else the local address of the last connect would stay */
		(void)weft__sys->connect(fd, &none, sizeof(none));
	if (fd < 0 || weft__sys->connect(fd, weft__addr_sockaddr(&addr), addr.size) < 0
	    || weft__sys->sockname(fd, (struct sockaddr *)&in6, &size) < 0)
		return false;
	if (host->family == AF_INET6)
		memcpy(source.ip, &in6.sin6_addr, 16);
	else
		memcpy(source.ip, &((struct sockaddr_in *)(void *)&in6)->sin_addr, 4);
	map(&source, out);
	return true;
}

static void
rank(struct rank *r, const struct weft__host *host, int fd)
{
	uint8_t ip[16], source[16];

	map(host, ip);
	*r = (struct rank){ .host = *host,
		            .scope = scope_of(ip),
		            .precedence = policy_of(ip)->precedence };
	r->usable = find_source(fd, host, source);
	if (!r->usable)
		return;
	r->same_scope = scope_of(source) == r->scope;
	r->same_label = policy_of(source)->label == policy_of(ip)->label;
	r->prefix = host->family == AF_INET6 ? (uint8_t)common_bits(ip, source) : 0;
}

/* Whether `a` must move before `b`, which precedes it. */
static bool
is_better(const struct rank *a, const struct rank *b)
{
	if (a->usable != b->usable) /* rule 1 */
		return a->usable;
	if (a->same_scope != b->same_scope) /* 2 */
		return a->same_scope;
	if (a->same_label != b->same_label) /* 5 */
		return a->same_label;
	if (a->precedence != b->precedence) /* 6 */
		return a->precedence > b->precedence;
	if (a->scope != b->scope) /* 8 */
		return a->scope < b->scope;
	if (a->host.family == AF_INET6 && b->host.family == AF_INET6)
		return a->prefix > b->prefix; /* 9 */
	return false;                         /* 10: keep the order */
}

static void
sort(struct rank *ranks, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		struct rank moved = ranks[i];
		uint32_t at = i;

		for (; at > 0 && is_better(&moved, &ranks[at - 1]); at--)
			ranks[at] = ranks[at - 1];
		ranks[at] = moved;
	}
}

/* Alternate the families among [0, count), beginning with that of the first. */
static void
take_turns(const struct rank *ranks, uint32_t count, struct weft__host *out)
{
	uint16_t family = count > 0 ? ranks[0].host.family : 0;
	uint32_t at[2] = { 0, 0 }; /* next index, of the first's family and of the other */

	for (uint32_t i = 0; i < count; i++) {
		bool other = i % 2;

		for (int tries = 0; tries < 2; tries++) {
			while (at[other] < count
			       && (ranks[at[other]].host.family != family) != other)
				at[other]++;
			if (at[other] < count)
				break;
			other = !other;
		}
		out[i] = ranks[at[other]++].host;
	}
}

void
weft__dns_order(struct weft__host *hosts, uint32_t count)
{
	struct rank ranks[2 * WEFT__DNS_ADDRS_MAX];
	int fds[2] = { -1, -1 };
	uint32_t usable = 0;

	weft__assert(count <= sizeof(ranks) / sizeof(ranks[0]));
	if (count < 2)
		return;
	for (uint32_t i = 0; i < count; i++) {
		int *fd = &fds[hosts[i].family == AF_INET6];

		if (*fd == -1)
			*fd = weft__sys->socket(hosts[i].family, SOCK_DGRAM, 0);
		rank(&ranks[i], &hosts[i], *fd < 0 ? -2 : *fd);
		if (*fd < 0)
			*fd = -2; /* do not try again */
	}
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			(void)weft__sys->close(fds[i]);
	sort(ranks, count);
	while (usable < count && ranks[usable].usable)
		usable++;
	take_turns(ranks, usable, hosts);
	take_turns(ranks + usable, count - usable, hosts + usable);
}
