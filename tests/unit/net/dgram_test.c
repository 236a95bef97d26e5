/* dgram_test.c - datagram sockets: opening, sending and receiving without waiting, options. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>
#include "base/sys.h"
#include "unit/net/letters.h"

/* --- messages ----------------------------------------------------------- */

static void
talk(const char *address_a, const char *address_b)
{
	weft_dgram *a = open_at(address_a), *b = open_at(address_b);
	weft_addr at_a = local_of(a), at_b = local_of(b);
	struct got got;

	CHECK_EQ(recv_text(b, &got, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(send_text(a, &at_b, "hello"), 1);
	CHECK_EQ(recv_text(b, &got, WEFT_NOWAIT), 1);
	CHECK_STR(got.text, "hello");
	CHECK(weft_addr_equal(&got.message.addr, &at_a));
	CHECK_EQ(got.message.addr.kind, SOCK_DGRAM);
	CHECK(!got.message.truncated);
	CHECK_EQ(send_text(b, &got.message.addr, ""), 1);
	CHECK_GOT(a, "");
	weft_dgram_close(a);
	weft_dgram_close(b);
}

static bool
has_ipv6(void)
{
	weft_dgram *dgram;
	int rc = weft_dgram_open("udp://[::1]:0", NULL, &dgram);

	if (rc == 0)
		weft_dgram_close(dgram);
	return rc == 0;
}

TEST(messages_are_sent_over_every_kind_of_address)
{
	char a[64], b[64];

	talk(LOOPBACK, LOOPBACK);
	if (has_ipv6())
		talk("udp://[::1]:0", "udp://[::1]:0");
	(void)snprintf(a, sizeof(a), "unixdgram:@weft-a-%d", (int)getpid());
	(void)snprintf(b, sizeof(b), "unixdgram:@weft-b-%d", (int)getpid());
	talk(a, b);
}

TEST(unix_socket_path_exists_until_the_socket_is_closed)
{
	char a[64], b[64];

	(void)snprintf(a, sizeof(a), "unixdgram:/tmp/weft-a-%d", (int)getpid());
	(void)snprintf(b, sizeof(b), "unixdgram:/tmp/weft-b-%d", (int)getpid());
	talk(a, b);
	CHECK(access(strchr(a, '/'), F_OK) < 0);
	talk(a, b);
	CHECK(access(strchr(b, '/'), F_OK) < 0);
}

TEST(unnamed_unix_socket_can_send_and_has_an_empty_address)
{
	char name[64], text[WEFT_ADDR_TEXT_MAX];
	weft_dgram *a = open_at("unixdgram:"), *b;
	weft_addr to;
	struct got got;

	(void)snprintf(name, sizeof(name), "unixdgram:@weft-c-%d", (int)getpid());
	b = open_at(name);
	to = local_of(b);
	CHECK_EQ(send_text(a, &to, "x"), 1);
	CHECK_EQ(recv_text(b, &got, WEFT_NOWAIT), 1);
	CHECK_EQ(got.message.addr.size, 0); /* no address */
	to = local_of(a);
	CHECK(weft_addr_format(&to, text, sizeof(text)) > 0);
	CHECK_STR(text, "unixdgram:");
	weft_dgram_close(a);
	weft_dgram_close(b);
}

#define MANY 100

TEST(batches_keep_the_order_of_messages)
{
	weft_dgram *a = open_at(LOOPBACK), *b = open_at(LOOPBACK);
	weft_addr to = local_of(b);
	weft_message messages[MANY];
	char bytes[MANY][4];
	int done = 0;

	for (int i = 0; i < MANY; i++) {
		bytes[i][0] = (char)i;
		messages[i] = (weft_message){ bytes[i], 1 + (size_t)i % 3, to, false };
	}
	CHECK_EQ(weft_dgram_send(a, messages, MANY, WEFT_NOWAIT), MANY);
	memset(bytes, 0x7f, sizeof(bytes));
	for (int i = 0; i < MANY; i++)
		messages[i].size = 4;
	while (done < MANY) {
		int rc = weft_dgram_recv(b, messages + done, (size_t)(MANY - done), WEFT_NOWAIT);

		CHECK(rc > 0);
		done += rc;
	}
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(bytes[i][0], i);
		CHECK_EQ(messages[i].size, 1 + i % 3);
	}
	CHECK_EQ(weft_dgram_recv(b, messages, MANY, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	weft_dgram_close(a);
	weft_dgram_close(b);
}

TEST(batch_receive_returns_what_is_available)
{
	weft_dgram *a = open_at(LOOPBACK), *b = open_at(LOOPBACK);
	weft_addr to = local_of(b);
	weft_message messages[40] = { { 0 } };
	char byte;

	for (int i = 0; i < 40; i++)
		messages[i] = (weft_message){ &byte, 1, { 0 }, false };
	for (int i = 0; i < 35; i++)
		CHECK_EQ(send_text(a, &to, "x"), 1);
	CHECK_EQ(weft_dgram_recv(b, messages, 33, WEFT_NOWAIT), 33);
	CHECK_EQ(weft_dgram_recv(b, messages, 40, WEFT_NOWAIT), 2);
	weft_dgram_close(a);
	weft_dgram_close(b);
}

TEST(message_larger_than_its_buffer_is_truncated_and_marked)
{
	weft_dgram *a = open_at(LOOPBACK), *b = open_at(LOOPBACK);
	weft_addr to = local_of(b);
	char room[4] = "....";
	weft_message message = { room, 3, { 0 }, false };

	CHECK_EQ(send_text(a, &to, "abcdef"), 1);
	CHECK_EQ(send_text(a, &to, "xyz"), 1);
	CHECK_EQ(weft_dgram_recv(b, &message, 1, WEFT_NOWAIT), 1);
	CHECK(message.truncated);
	CHECK_EQ(message.size, 3);
	CHECK_EQ(memcmp(room, "abc.", 4), 0);
	CHECK_EQ(weft_dgram_recv(b, &message, 1, WEFT_NOWAIT), 1);
	CHECK(!message.truncated);
	CHECK_EQ(memcmp(room, "xyz.", 4), 0);
	weft_dgram_close(a);
	weft_dgram_close(b);
}

TEST(oversized_message_is_refused_and_those_before_it_are_sent)
{
	static char large[70000];
	weft_dgram *a = open_at(LOOPBACK), *b = open_at(LOOPBACK);
	weft_addr to = local_of(b);
	weft_message messages[2] = { letter("x", &to), { large, sizeof(large), to, false } };

	CHECK_EQ(weft_dgram_send(a, messages, 2, WEFT_NOWAIT), 1);
	CHECK_EQ(weft_dgram_send(a, messages + 1, 1, WEFT_NOWAIT), WEFT_EMSGSIZE);
	CHECK_STR(weft_detail(), "weft_dgram_send: too large");
	CHECK_EQ(send_text(a, &to, "y"), 1); /* no error is left over */
	CHECK_GOT(b, "x");
	CHECK_GOT(b, "y");
	weft_dgram_close(a);
	weft_dgram_close(b);
}

/* --- peers -------------------------------------------------------------- */

TEST(connected_socket_receives_only_from_its_peer)
{
	weft_dgram *b = open_at(LOOPBACK), *other = open_at(LOOPBACK);
	weft_addr at_b = local_of(b), at_a;
	weft_dgram *a = open_to(NULL, &at_b);
	struct got got;

	at_a = local_of(a);
	CHECK_EQ(send_text(other, &at_a, "stranger"), 1);
	CHECK_EQ(recv_text(a, &got, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(send_text(a, NULL, "to my peer"), 1);
	CHECK_GOT(b, "to my peer");
	CHECK_EQ(send_text(b, &at_a, "back"), 1);
	CHECK_GOT(a, "back");
	CHECK_EQ(send_text(b, NULL, "to nobody"), -EDESTADDRREQ);
	weft_dgram_close(a);
	weft_dgram_close(b);
	weft_dgram_close(other);
}

TEST(socket_on_every_interface_handles_ipv4_and_ipv6)
{
	weft_dgram *all = open_at("udp://:0"), *four = open_at(LOOPBACK), *six;
	weft_addr at_all = local_of(all), at_four = local_of(four), to;
	weft_dgram_opts opts = { .peer = at_four };
	char text[64];
	struct got got;
	unsigned port = (unsigned)at_all.bytes[2] << 8 | at_all.bytes[3];

	(void)snprintf(text, sizeof(text), "udp://127.0.0.1:%u", port);
	OK(weft_addr_parse(text, &to));
	CHECK_EQ(send_text(four, &to, "4"), 1);
	CHECK_EQ(recv_text(all, &got, WEFT_NOWAIT), 1);
	CHECK(weft_addr_equal(&got.message.addr, &at_four));
	CHECK_EQ(send_text(all, &got.message.addr, "back"), 1);
	CHECK_GOT(four, "back");
	if (has_ipv6()) {
		(void)snprintf(text, sizeof(text), "udp://[::1]:%u", port);
		OK(weft_addr_parse(text, &to));
		six = open_at("udp://[::1]:0");
		CHECK_EQ(send_text(six, &to, "6"), 1);
		CHECK_GOT(all, "6");
		weft_dgram_close(six);
	}
	weft_dgram_close(all);
	OK(weft_dgram_open("udp://:0", &opts, &all)); /* the peer has an IPv4 address */
	CHECK_EQ(send_text(all, NULL, "to four"), 1);
	CHECK_GOT(four, "to four");
	weft_dgram_close(all);
	weft_dgram_close(four);
}

static struct weft__sys poor;

static int
socket_of_ipv4(int domain, int type, int protocol)
{
	return domain == AF_INET6 ? -EAFNOSUPPORT : weft__sys_real.socket(domain, type, protocol);
}

TEST(socket_on_every_interface_uses_ipv4_if_there_is_no_ipv6)
{
	const struct weft__sys *before = weft__sys;
	char text[WEFT_ADDR_TEXT_MAX];
	weft_dgram *all;
	weft_addr at;

	poor = *before;
	poor.socket = socket_of_ipv4;
	weft__sys = &poor;
	all = open_at("udp://:0");
	at = local_of(all);
	CHECK(weft_addr_format(&at, text, sizeof(text)) > 0);
	CHECK(strncmp(text, "udp://0.0.0.0:", 14) == 0);
	weft_dgram_close(all);
	weft__sys = before;
}

TEST(connection_refused_is_reported_once)
{
	weft_addr none = nowhere();
	weft_dgram *a = open_to(NULL, &none);
	struct got got;

	CHECK_EQ(send_text(a, NULL, "x"), 1);
	CHECK_EQ(recv_text(a, &got, WEFT_NOWAIT), WEFT_ECONNREFUSED);
	CHECK_STR(weft_detail(), "weft_dgram_recv: connection refused");
	CHECK_EQ(recv_text(a, &got, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(send_text(a, NULL, "x"), 1);
	CHECK_EQ(send_text(a, NULL, "x"), WEFT_ECONNREFUSED);
	CHECK_EQ(send_text(a, NULL, "x"), 1);
	weft_dgram_close(a);
}

TEST(connection_refused_is_not_lost_in_a_batch)
{
	weft_addr none = nowhere();
	weft_dgram *a = open_to(NULL, &none);
	weft_message messages[5];
	struct got got;

	for (int i = 0; i < 5; i++)
		messages[i] = letter("x", NULL);
	CHECK_EQ(weft_dgram_send(a, messages, 5, WEFT_NOWAIT), 5);
	CHECK_EQ(recv_text(a, &got, WEFT_NOWAIT), WEFT_ECONNREFUSED);
	weft_dgram_close(a);
}

/* --- opening ------------------------------------------------------------ */

static void
check_not_opened(const char *address, const weft_dgram_opts *opts, int error, const char *why)
{
	weft_dgram *dgram = (weft_dgram *)&dgram;

	CHECK_EQ(weft_dgram_open(address, opts, &dgram), error);
	CHECK(dgram == (weft_dgram *)&dgram); /* untouched */
	if (!strstr(weft_detail(), why))
		test_fail(__FILE__, __LINE__, "\"%s\", not \"%s\"", weft_detail(), why);
}

TEST(failed_open_reports_a_reason)
{
	weft_dgram *a = open_at(LOOPBACK);
	weft_addr at = local_of(a);
	weft_dgram_opts opts = { .peer = at };
	char text[WEFT_ADDR_TEXT_MAX];
	int pair[2];

	CHECK(weft_addr_format(&at, text, sizeof(text)) > 0);
	check_not_opened(text, NULL, WEFT_EADDRINUSE, "address in use");
	check_not_opened("tcp://127.0.0.1:0", NULL, WEFT_EINVAL, "not a datagram address");
	check_not_opened("unix:/tmp/x", NULL, WEFT_EINVAL, "not a datagram address");
	check_not_opened("udp://name:1", NULL, WEFT_EINVAL, "must be an IP address, not a name");
	check_not_opened("udp://1.2.3.4", NULL, WEFT_EINVAL, "the port is missing");
	check_not_opened("udp://192.0.2.1:0", NULL, -EADDRNOTAVAIL, "192.0.2.1");
	check_not_opened("unixdgram:/no/such/folder/x", NULL, WEFT_ENOENT, "");
	opts.peer.kind = SOCK_STREAM;
	check_not_opened(NULL, &opts, WEFT_EINVAL, "opts.peer is not a datagram address");
	check_not_opened("fd:99", NULL, WEFT_EBADF, "fd:99");
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	(void)snprintf(text, sizeof(text), "fd:%d", pair[0]);
	check_not_opened(text, NULL, -EPROTOTYPE, text);
	OK(close(pair[0])); /* weft_dgram_open() did not close it */
	OK(close(pair[1]));
	weft_dgram_close(a);
}

TEST(misuse_is_reported)
{
	weft_dgram *a = open_at(LOOPBACK);
	weft_message message = { 0 };

	CHECK_MISUSE(weft_dgram_open(LOOPBACK, NULL, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_dgram_open(NULL, NULL, &a), WEFT_EINVAL);
	CHECK_MISUSE(weft_dgram_recv(a, NULL, 1, WEFT_NOWAIT), WEFT_EINVAL);
	CHECK_MISUSE(weft_dgram_recv(a, &message, 0, WEFT_NOWAIT), WEFT_EINVAL);
	CHECK_MISUSE(weft_dgram_send(NULL, &message, 1, WEFT_NOWAIT), WEFT_EINVAL);
	CHECK_MISUSE(weft_dgram_start(a, NULL, NULL, NULL), WEFT_EINVAL);
	CHECK_EQ(weft_dgram_recv(a, &message, 1, WEFT_NEVER), WEFT_ENOSUSPEND);
	CHECK_EQ(weft_dgram_send(a, &message, 1, WEFT_NEVER), WEFT_ENOSUSPEND);
	weft_dgram_close(a);
	weft_dgram_close(NULL);
}

TEST(sockets_share_a_port_if_all_set_reuse_port)
{
	weft_dgram_opts opts = { .reuse_port = true };
	char text[WEFT_ADDR_TEXT_MAX];
	weft_dgram *a, *b;
	weft_addr at;

	OK(weft_dgram_open(LOOPBACK, &opts, &a));
	at = local_of(a);
	CHECK(weft_addr_format(&at, text, sizeof(text)) > 0);
	OK(weft_dgram_open(text, &opts, &b));
	check_not_opened(text, NULL, WEFT_EADDRINUSE, text);
	weft_dgram_close(a);
	weft_dgram_close(b);
}

TEST(descriptor_is_owned_or_borrowed)
{
	weft_dgram_opts opts = { .borrow = true };
	char text[16];
	weft_dgram *a;
	int fds[2];

	OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
	(void)snprintf(text, sizeof(text), "fd:%d", fds[0]);
	OK(weft_dgram_open(text, &opts, &a));
	CHECK_EQ(weft_dgram_fd(a), fds[0]);
	CHECK_EQ(send_text(a, NULL, "x"), 1);
	take(fds[1]);
	weft_dgram_close(a);
	CHECK(fcntl(fds[0], F_GETFD) >= 0);
	opts.borrow = false;
	OK(weft_dgram_open(text, &opts, &a));
	put(fds[1], "y");
	CHECK_GOT(a, "y");
	weft_dgram_close(a);
	CHECK(fcntl(fds[0], F_GETFD) < 0);
	OK(close(fds[1]));
}

/* --- options ------------------------------------------------------------ */

TEST(broadcasts_must_be_enabled)
{
	weft_dgram_opts opts = { .broadcast = true };
	weft_dgram *a = open_at("udp://0.0.0.0:0"), *b;
	weft_addr all;
	int rc;

	OK(weft_addr_parse("udp://127.255.255.255:9", &all));
	rc = send_text(a, &all, "x");
	CHECK_EQ(rc, -EACCES);
	weft_dgram_close(a);
	OK(weft_dgram_open("udp://0.0.0.0:0", &opts, &b));
	CHECK_EQ(send_text(b, &all, "x"), 1);
	weft_dgram_close(b);
}

static void
set_interface(weft_dgram *dgram, uint32_t index)
{
	struct ip_mreqn four = { .imr_ifindex = (int)index };
	int fd = weft_dgram_fd(dgram), six = (int)index;

	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &six, sizeof(six));
	(void)setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &four, sizeof(four));
}

static int
set_group(weft_dgram *dgram, const weft_addr *group, uint32_t index, int what)
{
	struct group_req request = { .gr_interface = index };

	memcpy(&request.gr_group, group->bytes, group->size);
	return setsockopt(weft_dgram_fd(dgram),
	                  request.gr_group.ss_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, what,
	                  &request, sizeof(request));
}

/* Uses the loopback interface, so that nothing leaves the machine. */
static void
check_group(const char *address, const char *group_text)
{
	weft_dgram *a = open_at(address), *b = open_at(address);
	weft_addr at = local_of(b), group;
	uint32_t lo = if_nametoindex("lo");
	struct got got;
	int rc;

	OK(weft_addr_parse(group_text, &group));
	group.bytes[2] = at.bytes[2]; /* set the port */
	group.bytes[3] = at.bytes[3];
	set_interface(a, lo);
	OK(set_group(b, &group, lo, MCAST_JOIN_GROUP));
	rc = send_text(a, &group, "to all");
	CHECK(rc == 1 || rc == -ENETUNREACH); /* not every machine supports it */
	if (rc == 1)
		CHECK_GOT(b, "to all");
	OK(set_group(b, &group, lo, MCAST_LEAVE_GROUP));
	CHECK_EQ(send_text(a, &group, "to nobody"), rc);
	CHECK_EQ(recv_text(b, &got, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	weft_dgram_close(a);
	weft_dgram_close(b);
}

TEST(multicast_group_is_joined_and_left_by_options_of_the_descriptor)
{
	if (if_nametoindex("lo") == 0)
		return;
	check_group("udp://0.0.0.0:0", "udp://239.255.77.1:0");
	if (has_ipv6())
		check_group("udp://:0", "udp://239.255.77.2:0");
	if (has_ipv6())
		check_group("udp://[::]:0", "udp://[ff12::77]:0");
}
