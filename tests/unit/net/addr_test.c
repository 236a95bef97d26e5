/* addr_test.c - parsing, formatting and comparing addresses. */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "net/addr.h"
#include "net/ip.h"
#include "test.h"

static weft_addr
parse(const char *text)
{
	weft_addr addr;
	int rc = weft_addr_parse(text, &addr);

	if (rc < 0)
		printf("%s\n", weft_detail());
	CHECK_EQ(rc, 0);
	return addr;
}

static const char *
format(const weft_addr *addr)
{
	static char text[WEFT_ADDR_TEXT_MAX];
	int size = weft_addr_format(addr, text, sizeof(text));

	CHECK_EQ(size, strlen(text));
	return text;
}

/* Parses `text`, which must be formatted as `want`. */
static void
check_text(const char *text, const char *want)
{
	weft_addr addr = parse(text);

	CHECK_STR(format(&addr), want);
}

TEST(addresses_are_parsed_and_formatted)
{
	static const char *const same[] = {
		"tcp://127.0.0.1:80",
		"udp://255.255.255.255:65535",
		"tcp://0.0.0.0:0",
		"tcp://[::]:0",
		"udp://[::1]:53",
		"tcp://[2001:db8::1]:443",
		"tcp://[fe80::1%7]:1",
		"tcp://[2001:db8:0:1:1:1:1:1]:1",
		"tcp://[1::1:0:0:1]:1",
		"tcp://[1:0:0:1::]:1",
		"tcp://[1:2:3:4:5:6:7:8]:1",
		"tcp://[::ffff:10.0.0.1]:9",
		"unix:/run/a.sock",
		"unix:relative",
		"unix:@abstract",
		"unix:",
		"unixdgram:/dev/log",
		"unixdgram:@x",
		"unixdgram:",
	};

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		check_text(same[i], same[i]);
}

TEST(equivalent_texts_are_formatted_alike)
{
	check_text("tls://127.0.0.1:443", "tcp://127.0.0.1:443");
	check_text("tcp://:7000", "tcp://[::]:7000");
	check_text("udp://:0", "udp://[::]:0");
	check_text("tcp://[0:0:0:0:0:0:0:1]:1", "tcp://[::1]:1");
	check_text("tcp://[2001:DB8:0::0:1]:1", "tcp://[2001:db8::1]:1");
	check_text("tcp://[1:0:0:0:1:0:0:1]:1", "tcp://[1::1:0:0:1]:1");
	check_text("tcp://[1:2:3:4:5:6:7::]:1", "tcp://[1:2:3:4:5:6:7:0]:1");
	check_text("tcp://[::ffff:a00:1]:9", "tcp://[::ffff:10.0.0.1]:9");
	check_text("tcp://[64:ff9b::1.2.3.4]:9", "tcp://[64:ff9b::102:304]:9");
	check_text("tcp://[1:2:3:4:5:6:1.2.3.4]:9", "tcp://[1:2:3:4:5:6:102:304]:9");
}

static void
check_wrong(const char *text, const char *why)
{
	weft_addr addr = { .size = 77 };

	if (weft_addr_parse(text, &addr) == 0)
		test_fail(__FILE__, __LINE__, "%s was read", text);
	CHECK_EQ(weft_addr_parse(text, &addr), WEFT_EINVAL);
	CHECK_EQ(addr.size, 77); /* untouched */
	if (!strstr(weft_detail(), why))
		test_fail(__FILE__, __LINE__, "%s: \"%s\", not \"%s\"", text, weft_detail(), why);
}

TEST(error_for_a_malformed_address_names_the_reason_and_position)
{
	check_wrong("", "not tcp://");
	check_wrong("127.0.0.1:80", "not tcp://");
	check_wrong("TCP://127.0.0.1:80", "not tcp://, tls://, udp://, unix:, "
	                                  "unixdgram: or fd:, at byte 0");
	check_wrong(" tcp://127.0.0.1:80", "not tcp://");
	check_wrong("tcp://", "the port is missing, at byte 6");
	check_wrong("tcp://127.0.0.1", "the port is missing, at byte 15");
	check_wrong("tcp://127.0.0.1:", "the port is not a number from 0 to 65535");
	check_wrong("tcp://127.0.0.1:65536",
	            "the port is not a number from 0 to 65535, at byte 16");
	check_wrong("tcp://127.0.0.1:99999999999", "the port is not a number");
	check_wrong("tcp://127.0.0.1:080", "the port is not a number");
	check_wrong("tcp://127.0.0.1:00", "the port is not a number");
	check_wrong("tcp://127.0.0.1:+1", "the port is not a number");
	check_wrong("tcp://127.0.0.1:-1", "the port is not a number");
	check_wrong("tcp://127.0.0.1: 1", "the port is not a number");
	check_wrong("tcp://127.0.0.1:80 ", "the port is not a number");
	check_wrong("tcp://127.0.0.1:80/", "the port is not a number");
	check_wrong("tcp://127.0.0.1:80:81", "IPv6 addresses need brackets");
	check_wrong("tcp://::1:80", "IPv6 addresses need brackets");
	check_wrong("tcp://1.2.3:80", "not an IPv4 address, at byte 6");
	check_wrong("tcp://1.2.3.4.5:80", "not an IPv4 address");
	check_wrong("tcp://1.2.3.256:80", "not an IPv4 address");
	check_wrong("tcp://1.2.3.04:80", "not an IPv4 address");
	check_wrong("tcp://12345:80", "not an IPv4 address");
	check_wrong("tcp://1.2.3.4.:80", "not an IPv4 address");
	check_wrong("tcp://name:80", "the host is a name");
	check_wrong("tcp://user@host:80", "not allowed in a host name, at byte 10");
	check_wrong("tcp://a..b:80", "a label of the host name is empty");
	check_wrong("tcp://.b:80", "a label of the host name is empty");
	check_wrong("tcp://[::1", "the bracket is not closed, at byte 6");
	check_wrong("tcp://[::1]", "the port is missing, at byte 11");
	check_wrong("tcp://[::1]80", "the port is missing");
	check_wrong("tcp://[::1]x:80", "the port is missing");
	check_wrong("tcp://[]:80", "not an IPv6 address");
	check_wrong("tcp://[1.2.3.4]:80", "not an IPv6 address");
	check_wrong("tcp://[::1%]:80", "the scope is not the name or number of an interface");
	check_wrong("tcp://[::1%no-such-one]:80", "no interface has this name");
	check_wrong("tcp://[::1%longer-than-any-interface]:80", "the scope");
	check_wrong("fd:3", "fd: does not name an address");
	check_wrong("fd:", "not a descriptor number");
	check_wrong("fd:3x", "not a descriptor number");
	check_wrong("fd:2147483648", "not a descriptor number");
	check_wrong("unix:@", "the name is empty");
}

TEST(malformed_ipv6_is_refused)
{
	static const char *const wrong[] = {
		":",
		"1",
		":1",
		"1:",
		"1:2",
		":::",
		"1::2::3",
		"1:2:3:4:5:6:7:8:9",
		"1:2:3:4:5:6:7:8::",
		"::1:2:3:4:5:6:7:8",
		"12345::",
		"g::",
		"1:2:3:4:5:6:7:1.2.3.4",
		"::1.2.3",
		"::1.2.3.4:5",
		"1.2.3.4::",
		"::1.2.3.400",
		"1: :2",
		"::1 ",
		"1:2:3:4:5:6:7:",
	};
	uint8_t ip[16];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (weft__ip6_read(wrong[i], strlen(wrong[i]), ip))
			test_fail(__FILE__, __LINE__, "%s was read", wrong[i]);
}

/* Draws a random text that resembles an IPv6 address. */
static size_t
draw_text(uint64_t *seed, char *out)
{
	static const char letters[] = ":::::0123af.";
	size_t size = test_random(seed) % 24;

	for (size_t i = 0; i < size; i++)
		out[i] = letters[test_random(seed) % (sizeof(letters) - 1)];
	out[size] = '\0';
	return size;
}

TEST(ipv6_is_parsed_as_by_inet_pton)
{
	uint64_t seed = test_seed();
	uint32_t read = 0;

	for (int i = 0; i < 300000; i++) {
		uint8_t ours[16], theirs[16];
		char text[32], back[INET6_ADDRSTRLEN];
		size_t size = draw_text(&seed, text);
		bool ok = weft__ip6_read(text, size, ours);
		struct weft__text out = weft__text_begin(back, sizeof(back));

		CHECK_EQ(ok, inet_pton(AF_INET6, text, theirs) == 1);
		if (!ok)
			continue;
		read++;
		CHECK(memcmp(ours, theirs, 16) == 0);
		weft__ip6_write(&out, ours);
		CHECK_EQ(inet_pton(AF_INET6, back, theirs), 1);
		CHECK(memcmp(ours, theirs, 16) == 0);
	}
	CHECK(read > 100);
}

static void
draw_bytes(uint64_t *seed, void *out, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)out)[i] = (uint8_t)test_random(seed);
}

/* Many groups are zero, so that runs of zeros occur at all positions. */
static void
draw_inet6(uint64_t *seed, struct sockaddr_in6 *in6)
{
	in6->sin6_family = AF_INET6;
	in6->sin6_port = (uint16_t)test_random(seed);
	draw_bytes(seed, &in6->sin6_addr, 16);
	for (int i = 0; i < 8; i++)
		if (test_random(seed) % 2)
			memset(in6->sin6_addr.s6_addr + 2 * i, 0, 2);
	if (test_random(seed) % 4 == 0) {
		memset(&in6->sin6_addr, 0, 10);
		memset(in6->sin6_addr.s6_addr + 10, 0xff, 2);
	}
	if (test_random(seed) % 4 == 0)
		in6->sin6_scope_id = (uint32_t)test_random(seed);
}

static socklen_t
draw_unix(uint64_t *seed, struct sockaddr_un *un)
{
	size_t size = test_random(seed) % 108;

	un->sun_family = AF_UNIX;
	for (size_t i = 0; i < size; i++)
		un->sun_path[i] = (char)(1 + test_random(seed) % 255);
	if (size > 1 && test_random(seed) % 2) {
		un->sun_path[0] = '\0'; /* abstract */
		return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
	}
	if (un->sun_path[0] == '@')
		un->sun_path[0] = '/';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (size > 0));
}

static weft_addr
draw_addr(uint64_t *seed)
{
	weft_addr addr = { .kind = test_random(seed) % 2 ? SOCK_DGRAM : SOCK_STREAM };
	void *bytes = addr.bytes;
	struct sockaddr_in *in = bytes;

	switch (test_random(seed) % 3) {
	case 0:
		in->sin_family = AF_INET;
		in->sin_port = (uint16_t)test_random(seed);
		draw_bytes(seed, &in->sin_addr, 4);
		addr.size = sizeof(*in);
		break;
	case 1:
		draw_inet6(seed, bytes);
		addr.size = sizeof(struct sockaddr_in6);
		break;
	default:
		addr.size = draw_unix(seed, bytes);
	}
	return addr;
}

TEST(formatted_address_parses_back_to_the_same_address)
{
	uint64_t seed = test_seed();

	for (int i = 0; i < 100000; i++) {
		weft_addr addr = draw_addr(&seed), again = draw_addr(&seed);
		char text[WEFT_ADDR_TEXT_MAX], room[WEFT_ADDR_TEXT_MAX];
		int size = weft_addr_format(&addr, text, sizeof(text));

		CHECK_EQ(size, strlen(text));
		CHECK_EQ(weft_addr_format(&addr, room, (size_t)size + 1), size);
		memset(room, 'x', sizeof(room));
		CHECK_EQ(weft_addr_format(&addr, room, (size_t)size), WEFT_EMSGSIZE);
		CHECK_EQ(room[0], 'x');
		CHECK_EQ(weft_addr_parse(text, &again), 0);
		CHECK(weft_addr_equal(&addr, &again));
		CHECK_EQ(memcmp(&addr, &again, sizeof(addr)), 0);
	}
}

/* Parses a path of `size` bytes after the scheme.  Returns whether it was accepted. */
static bool
is_path_read(const char *scheme, char first, size_t size)
{
	char text[300];
	size_t start = strlen(scheme);
	weft_addr addr;
	int rc;

	memcpy(text, scheme, start);
	memset(text + start, 'p', size);
	text[start] = first;
	text[start + size] = '\0';
	rc = weft_addr_parse(text, &addr);
	if (rc == 0)
		CHECK_STR(format(&addr), text);
	else
		CHECK(strstr(weft_detail(), "the path is too long"));
	return rc == 0;
}

TEST(unix_path_length_is_limited)
{
	CHECK(is_path_read("unix:", '/', 107));
	CHECK(!is_path_read("unix:", '/', 108));
	CHECK(is_path_read("unixdgram:", '@', 108));
	CHECK(!is_path_read("unixdgram:", '@', 109));
	CHECK(!is_path_read("unixdgram:", '@', 200));
}

TEST(format_refuses_addresses_that_have_no_text)
{
	weft_addr none = { 0 }, nul = parse("unix:@ab"), odd = { .size = 8 };
	weft_addr path = parse("unix:/x");
	char text[WEFT_ADDR_TEXT_MAX];

	nul.bytes[offsetof(struct sockaddr_un, sun_path) + 1] = '\0';
	odd.kind = SOCK_STREAM;
	odd.bytes[0] = AF_PACKET;
	path.bytes[offsetof(struct sockaddr_un, sun_path)] = '@';
	CHECK_EQ(weft_addr_format(&none, text, sizeof(text)), WEFT_EINVAL);
	CHECK_EQ(weft_addr_format(&nul, text, sizeof(text)), WEFT_EINVAL);
	CHECK_EQ(weft_addr_format(&odd, text, sizeof(text)), WEFT_EINVAL);
	CHECK_EQ(weft_addr_format(&path, text, sizeof(text)), WEFT_EINVAL);
}

static bool
is_same(const char *a, const char *b)
{
	weft_addr one = parse(a), two = parse(b);

	return weft_addr_equal(&one, &two);
}

TEST(addresses_are_compared_by_kind_host_port_and_scope)
{
	weft_addr none = { 0 }, also_none = { 0 }, some = parse("udp://:1");

	CHECK(is_same("tcp://1.2.3.4:5", "tls://1.2.3.4:5"));
	CHECK(!is_same("tcp://1.2.3.4:5", "udp://1.2.3.4:5"));
	CHECK(!is_same("tcp://1.2.3.4:5", "tcp://1.2.3.4:6"));
	CHECK(!is_same("tcp://1.2.3.4:5", "tcp://1.2.3.5:5"));
	CHECK(!is_same("tcp://1.2.3.4:5", "tcp://[::ffff:1.2.3.4]:5"));
	CHECK(!is_same("tcp://[fe80::1%1]:5", "tcp://[fe80::1%2]:5"));
	CHECK(!is_same("tcp://[fe80::1]:5", "tcp://[fe80::2]:5"));
	CHECK(is_same("unix:/a", "unix:/a"));
	CHECK(!is_same("unix:/a", "unix:/ab"));
	CHECK(!is_same("unix:/a", "unix:@a"));
	CHECK(!is_same("unix:/a", "unixdgram:/a"));
	CHECK(!is_same("unix:", "unix:@a"));
	CHECK(weft_addr_equal(&none, &also_none));
	CHECK(!weft_addr_equal(&none, &some));
}

static weft_addr
from(const void *bytes, size_t size)
{
	weft_addr addr;

	weft__addr_from(bytes, (socklen_t)size, SOCK_DGRAM, &addr);
	return addr;
}

static bool
is_local(const char *text)
{
	weft_addr addr;

	CHECK_EQ(weft_addr_parse(text, &addr), 0);
	return weft_addr_is_local(&addr);
}

TEST(loopback_addresses_and_unix_sockets_are_local)
{
	static const weft_addr none;

	CHECK(is_local("tcp://127.0.0.1:1"));
	CHECK(is_local("tcp://127.255.0.9:1"));
	CHECK(is_local("tcp://[::1]:1"));
	CHECK(is_local("tcp://[::ffff:127.0.0.1]:1"));
	CHECK(is_local("unix:/a"));
	CHECK(is_local("unix:@a"));
	CHECK(!is_local("tcp://0.0.0.0:1"));
	CHECK(!is_local("tcp://[::]:1"));
	CHECK(!is_local("tcp://10.0.0.1:1"));
	CHECK(!is_local("tcp://128.0.0.1:1"));
	CHECK(!is_local("tcp://[::2]:1"));
	CHECK(!is_local("tcp://[::127.0.0.1]:1"));
	CHECK(!is_local("tcp://[::ffff:10.0.0.1]:1"));
	CHECK(!weft_addr_is_local(&none));
}

TEST(addresses_from_the_kernel_are_normalized)
{
	weft_addr mapped = parse("udp://[::ffff:1.2.3.4]:5");
	weft_addr plain = from(mapped.bytes, mapped.size);
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "/a" };
	weft_addr path = from(&un, sizeof(un)), want = parse("unixdgram:/a");
	weft_addr nameless = from(&un, offsetof(struct sockaddr_un, sun_path));
	weft_addr nothing = from(&un, 0);

	CHECK_STR(format(&plain), "udp://1.2.3.4:5");
	weft__addr_map(&plain);
	CHECK_EQ(memcmp(&plain, &mapped, sizeof(plain)), 0);
	CHECK_EQ(memcmp(&path, &want, sizeof(path)), 0);
	CHECK_STR(format(&nameless), "unixdgram:");
	CHECK_EQ(nothing.size, 0);
	memset(un.sun_path, 'p', sizeof(un.sun_path)); /* not terminated */
	path = from(&un, sizeof(un) + 1);
	CHECK_EQ(path.size, sizeof(un) + 1);
}

TEST(address_text_is_split_into_its_parts)
{
	struct weft__addr_parts parts;

	CHECK_EQ(weft__addr_split("tls://example.org.:443", &parts), 0);
	CHECK_EQ(parts.scheme, WEFT__ADDR_TLS);
	CHECK(!parts.is_literal);
	CHECK_EQ(parts.host_size, strlen("example.org."));
	CHECK_EQ(strncmp(parts.host, "example.org.", parts.host_size), 0);
	CHECK_EQ(parts.port, 443);
	CHECK_EQ(weft__addr_split("udp://[::1%1]:9", &parts), 0);
	CHECK_EQ(parts.scheme, WEFT__ADDR_UDP);
	CHECK(parts.is_literal);
	CHECK_EQ(parts.host_size, 3);
	CHECK_EQ(weft__addr_port(&parts.addr), 9);
	CHECK_EQ(weft__addr_split("tcp://:9", &parts), 0);
	CHECK_EQ(parts.host_size, 0);
	CHECK(parts.is_literal);
	CHECK_EQ(weft__addr_split("fd:0", &parts), 0);
	CHECK_EQ(parts.scheme, WEFT__ADDR_FD);
	CHECK_EQ(parts.fd, 0);
	CHECK(!parts.is_literal);
	CHECK_EQ(weft__addr_split("unixdgram:@a b", &parts), 0);
	CHECK_EQ(parts.path_size, 4);
	CHECK_STR(parts.path, "@a b");
	CHECK_EQ(parts.fd, -1);
}

TEST(ipv6_scope_can_be_an_interface_name)
{
	char text[64], want[64];

	if (if_nametoindex("lo") == 0)
		return;
	(void)snprintf(text, sizeof(text), "udp://[fe80::1%%lo]:1");
	(void)snprintf(want, sizeof(want), "udp://[fe80::1%%%u]:1", if_nametoindex("lo"));
	check_text(text, want);
}

/* --- passwords -------------------------------------------------------------- */

static void
check_mask(const char *text, const char *want)
{
	char out[64];

	CHECK_STR(weft_addr_mask(text, out, sizeof(out)), want);
}

TEST(addr_texts_are_shown_without_passwords)
{
	char small[8];

	check_mask("tcp://127.0.0.1:1", "tcp://127.0.0.1:1");
	check_mask("redis://u:p@h:1/2", "redis://***@h:1/2");
	check_mask("redis://:p@@@h", "redis://***@h");
	check_mask("https://u:p@h/?token=t", "https://***@h/?***");
	check_mask("http://h/?token=t@u", "http://***@u");
	check_mask("u:p@h:1", "***@h:1");
	check_mask("unix:@name", "unix:@name");
	check_mask("unix:/a", "unix:/a");
	check_mask("@", "@");
	check_mask("", "");
	CHECK_STR(weft_addr_mask("redis://u:p@host", small, sizeof(small)), "redis:/");
}

TEST(addr_errors_show_no_password)
{
	weft_addr addr;

	CHECK_EQ(weft_addr_parse("tcp://user:secret@127.0.0.1:1", &addr), WEFT_EINVAL);
	CHECK(!strstr(weft_detail(), "secret"));
	CHECK(strstr(weft_detail(), "127.0.0.1:1"));
}
