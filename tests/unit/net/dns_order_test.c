/* dns_order_test.c - the order of resolved addresses. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include "net/dns/dns.h"
#include "test.h"

/* Our source addresses: for IPv4, and for IPv6 by scope.  "" means that there is no route. */
static const char *ours4, *ours6, *ours_local6;
static struct sockaddr_storage source;
static int sockets;

static int
fake_socket(int domain, int type, int protocol)
{
	(void)type;
	(void)protocol;
	sockets++;
	return domain == AF_INET ? 4 : 6;
}

static int
fake_close(int fd)
{
	(void)fd;
	sockets--;
	return 0;
}

static int
fake_connect(int fd, const struct sockaddr *addr, socklen_t size)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&source;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&source;
	const uint8_t *to = (const uint8_t *)addr;
	const char *ours = fd == 4 ? ours4 : ours6;

	(void)size;
	if (addr->sa_family == AF_UNSPEC)
		return 0;
	if (fd == 6 && to[8] == 0xfe && to[9] == 0x80)
		ours = ours_local6;
	if (!*ours)
		return -ENETUNREACH;
	memset(&source, 0, sizeof(source));
	source.ss_family = addr->sa_family;
	if (fd == 4)
		CHECK(inet_pton(AF_INET, ours, &in->sin_addr) == 1);
	else
		CHECK(inet_pton(AF_INET6, ours, &in6->sin6_addr) == 1);
	return 0;
}

static int
fake_sockname(int fd, struct sockaddr *addr, socklen_t *size)
{
	(void)fd;
	memcpy(addr, &source, *size);
	return 0;
}

/* Orders the addresses of a text and returns them as one text. */
static const char *
order(const char *given)
{
	static char out[1000];
	struct weft__host hosts[2 * WEFT__DNS_ADDRS_MAX];
	const struct weft__sys *before = weft__sys;
	struct weft__sys fake = *weft__sys;
	uint32_t count = 0;
	char text[1000], *rest = text, *word;

	(void)snprintf(text, sizeof(text), "%s", given);
	while ((word = strtok_r(rest, " ", &rest))) {
		bool is6 = strchr(word, ':') != NULL;

		hosts[count] = (struct weft__host){ .family = is6 ? AF_INET6 : AF_INET };
		CHECK(inet_pton(hosts[count].family, word, hosts[count].ip) == 1);
		count++;
	}
	fake.socket = fake_socket;
	fake.close = fake_close;
	fake.connect = fake_connect;
	fake.sockname = fake_sockname;
	weft__sys = &fake;
	weft__dns_order(hosts, count);
	weft__sys = before;
	CHECK_EQ(sockets, 0);
	out[0] = 0;
	for (uint32_t i = 0; i < count; i++) {
		(void)snprintf(out + strlen(out), sizeof(out) - strlen(out), i ? " " : "");
		CHECK(inet_ntop(hosts[i].family, hosts[i].ip, out + strlen(out), 100) != NULL);
	}
	return out;
}

static void
be_at(const char *v4, const char *v6, const char *local6)
{
	ours4 = v4;
	ours6 = v6;
	ours_local6 = local6;
}

TEST(dns_order_prefers_reachable_addresses)
{
	be_at("192.0.2.100", "", "");
	CHECK_STR(order("2001:db8::1 192.0.2.1"), "192.0.2.1 2001:db8::1");
	be_at("", "2001:db8::100", "");
	CHECK_STR(order("192.0.2.1 2001:db8::1"), "2001:db8::1 192.0.2.1");
}

TEST(dns_order_prefers_matching_scopes_labels_and_precedence)
{
	be_at("192.0.2.100", "2001:db8::100", "fe80::100");
	CHECK_STR(order("192.0.2.1 2001:db8::1"), "2001:db8::1 192.0.2.1");
	/* Our address is 6to4, so the labels match for IPv4 only. */
	be_at("192.0.2.100", "2002:c000:264::100", "");
	CHECK_STR(order("2001:db8::1 192.0.2.1"), "192.0.2.1 2001:db8::1");
	/* Of two scopes that match, the smaller one comes first. */
	be_at("192.0.2.100", "2001:db8::100", "fe80::100");
	CHECK_STR(order("2001:db8::1 fe80::1"), "fe80::1 2001:db8::1");
	/* Our address is link-local, theirs is not. */
	be_at("192.0.2.100", "fe80::100", "fe80::100");
	CHECK_STR(order("2001:db8::1 192.0.2.1"), "192.0.2.1 2001:db8::1");
	/* Unique local addresses come after global IPv4. */
	be_at("192.0.2.100", "2001:db8::100", "");
	CHECK_STR(order("fd00::1 192.0.2.1"), "192.0.2.1 fd00::1");
}

TEST(dns_order_prefers_the_longest_ipv6_prefix_and_keeps_the_ipv4_order)
{
	be_at("10.0.0.1", "2001:db8:1::100", "");
	CHECK_STR(order("2001:db8:3::1 2001:db8:1::1"), "2001:db8:1::1 2001:db8:3::1");
	CHECK_STR(order("192.0.2.1 10.0.0.2 10.0.0.1"), "192.0.2.1 10.0.0.2 10.0.0.1");
}

TEST(dns_order_alternates_between_families)
{
	be_at("192.0.2.100", "2001:db8::100", "");
	CHECK_STR(order("10.0.0.1 10.0.0.2 10.0.0.3 2001:db8::1 2001:db8::2"),
	          "2001:db8::1 10.0.0.1 2001:db8::2 10.0.0.2 10.0.0.3");
	be_at("192.0.2.100", "", "");
	CHECK_STR(order("2001:db8::1 10.0.0.1 2001:db8::2 10.0.0.2"),
	          "10.0.0.1 10.0.0.2 2001:db8::1 2001:db8::2");
	CHECK_STR(order("10.0.0.1"), "10.0.0.1");
	CHECK_STR(order(""), "");
}
