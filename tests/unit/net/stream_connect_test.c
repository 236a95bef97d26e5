/* stream_connect_test.c - connecting to a peer that does not answer, to several addresses, and
 * from a chosen local address. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include "net/addr.h"
#include "open_fds.h"
#include "unit/threadlet/sched.h"

#define STAGGER_NS (20 * WEFT_MS)

/* A listening socket, whose backlog may be full. */
struct place {
	int door, client; /* client: -1 if none has connected */
	weft_addr addr;
	char text[WEFT_ADDR_TEXT_MAX];
};

static bool
try_listen(struct place *place, const weft_addr *addr)
{
	int one = 1;

	*place = (struct place){ .client = -1, .addr = *addr };
	place->door = socket(weft__addr_family(addr), SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (place->door < 0)
		return false;
	OK(setsockopt(place->door, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	if (bind(place->door, weft__addr_sockaddr(addr), addr->size) == 0
	    && listen(place->door, 0) == 0) {
		socklen_t size = place->addr.size;

		OK(getsockname(place->door, (struct sockaddr *)place->addr.bytes, &size));
		CHECK(weft_addr_format(&place->addr, place->text, sizeof(place->text)) > 0);
		return true;
	}
	OK(close(place->door));
	return false;
}

/* Fills the backlog, which has room for one connection.  Further connects get no answer. */
static void
fill_up(struct place *place)
{
	struct pollfd come = { .fd = place->door, .events = POLLIN };

	place->client = socket(weft__addr_family(&place->addr), SOCK_STREAM | SOCK_CLOEXEC, 0);
	OK(connect(place->client, weft__addr_sockaddr(&place->addr), place->addr.size));
	CHECK_EQ(poll(&come, 1, -1), 1);
}

static void
leave(struct place *place)
{
	OK(close(place->door));
	if (place->client >= 0)
		OK(close(place->client));
}

static struct place
listen_at(const char *text)
{
	struct place place;
	weft_addr addr;

	OK(weft_addr_parse(text, &addr));
	CHECK(try_listen(&place, &addr));
	return place;
}

/* --- no answer ------------------------------------------------------------ */

static int
wait_for_answer(void *arg)
{
	struct place *place = arg;
	weft_stream *stream = NULL;
	uint64_t until_ns = weft_after(20 * WEFT_MS);

	CHECK_EQ(weft_stream_connect(place->text, NULL, &stream, until_ns), WEFT_ETIMEDOUT);
	CHECK(weft_now() >= until_ns);
	CHECK(strstr(weft_detail(), place->text) != NULL);
	CHECK(strstr(weft_detail(), weft_strerror(WEFT_ETIMEDOUT)) != NULL);
	CHECK(stream == NULL);
	return 0;
}

TEST(connect_without_an_answer_ends_at_its_deadline_and_names_the_address)
{
	struct place place = listen_at("tcp://127.0.0.1:0");

	fill_up(&place);
	run_threadlet(wait_for_answer, &place);
	leave(&place);
}

/* Yields to the loop until exactly `count` descriptors are open. */
static void
wait_for_fds(int count)
{
	while (test_open_fds() != count)
		OK(weft_yield());
}

struct caller {
	struct place *place;
	int result;
};

static int
call(void *arg)
{
	struct caller *caller = arg;
	weft_stream *stream;

	caller->result = weft_stream_connect(caller->place->text, NULL, &stream, WEFT_NEVER);
	return 0;
}

static int
cancel_call(void *arg)
{
	struct caller *caller = arg;
	weft_threadlet who = weft_go(call, caller);
	int fds;

	for (int i = 0; i < 5; i++)
		OK(weft_yield());
	CHECK_EQ(caller->result, 1);
	fds = test_open_fds();
	OK(weft_cancel(who));
	while (caller->result == 1)
		OK(weft_yield());
	CHECK_EQ(caller->result, WEFT_ECANCELED);
	wait_for_fds(fds - 1);
	return 0;
}

TEST(canceled_connect_closes_its_socket)
{
	struct place place = listen_at("tcp://127.0.0.1:0");
	struct caller caller = { &place, 1 };

	fill_up(&place);
	run_threadlet(cancel_call, &caller);
	leave(&place);
}

/* --- several addresses ---------------------------------------------------- */

/* Both addresses of this host, in the order in which they are tried, on one port. */
struct host {
	struct place first, second;
	char name[64];
	bool has_both;
};

static int
find_host(void *arg)
{
	struct host *host = arg;
	weft_addr found[2];

	host->has_both = false;
	CHECK_EQ(weft_dns_resolve("tcp://localhost:0", found, 2, WEFT_NEVER), 2);
	for (int i = 0; i < 50 && !host->has_both; i++) {
		if (!try_listen(&host->first, &found[0]))
			return 0;
		weft__addr_set_port(&found[1], weft__addr_port(&host->first.addr));
		host->has_both = try_listen(&host->second, &found[1]);
		if (!host->has_both) /* the port is in use there */
			OK(close(host->first.door));
	}
	(void)snprintf(host->name, sizeof(host->name), "tcp://localhost:%u",
	               (unsigned)weft__addr_port(&found[1]));
	return 0;
}

/* The peer's address must be that of `place`. */
static void
check_is_with(weft_stream *stream, const struct place *place)
{
	weft_addr peer;

	OK(weft_stream_peer(stream, &peer));
	CHECK(weft_addr_equal(&peer, &place->addr));
}

static int
call_slow_host(void *arg)
{
	struct host *host = arg;
	weft_stream_connect_opts opts = { .stagger_ns = STAGGER_NS };
	weft_stream *stream;
	uint64_t start_ns = weft_now();
	int fds = test_open_fds();

	OK(weft_stream_connect(host->name, &opts, &stream, WEFT_NEVER));
	CHECK(weft_now() >= start_ns + STAGGER_NS);
	check_is_with(stream, &host->second);
	wait_for_fds(fds + 1); /* the losing attempt is closed */
	weft_stream_close(stream);
	return 0;
}

static int
call_host_twice(void *arg)
{
	weft_stream *stream;

	/* Connects once first, so that lazily created resources exist. */
	OK(weft_stream_connect(((struct host *)arg)->second.text, NULL, &stream, WEFT_NEVER));
	weft_stream_close(stream);
	OK(close(accept(((struct host *)arg)->second.door, NULL, NULL)));
	return call_slow_host(arg);
}

TEST(address_that_does_not_answer_is_overtaken_by_the_next)
{
	struct host host;

	run_threadlet(find_host, &host);
	if (!host.has_both)
		return; /* no IPv6 here */
	fill_up(&host.first);
	run_threadlet(call_host_twice, &host);
	leave(&host.first);
	leave(&host.second);
}

static int
call_half_dead_host(void *arg)
{
	struct host *host = arg;
	weft_stream_connect_opts opts = { .stagger_ns = HOUR };
	weft_stream *stream;

	OK(weft_stream_connect(host->name, &opts, &stream, weft_after(HOUR / 2)));
	check_is_with(stream, &host->second);
	weft_stream_close(stream);
	return 0;
}

TEST(address_that_refuses_is_followed_by_the_next_at_once)
{
	struct host host;

	run_threadlet(find_host, &host);
	if (!host.has_both)
		return;
	OK(close(host.first.door));
	run_threadlet(call_half_dead_host, &host);
	leave(&host.second);
}

static int
call_quick_host(void *arg)
{
	struct host *host = arg;
	weft_stream_connect_opts opts = { .stagger_ns = HOUR };
	weft_stream *stream;

	OK(weft_stream_connect(host->name, &opts, &stream, weft_after(HOUR / 2)));
	check_is_with(stream, &host->first);
	weft_stream_close(stream);
	return 0;
}

TEST(address_that_answers_is_not_followed_by_another)
{
	struct host host;
	struct pollfd come;

	run_threadlet(find_host, &host);
	if (!host.has_both)
		return;
	run_threadlet(call_quick_host, &host);
	come = (struct pollfd){ .fd = host.second.door, .events = POLLIN };
	CHECK_EQ(poll(&come, 1, 0), 0);
	leave(&host.first);
	leave(&host.second);
}

static int
call_dead_host(void *arg)
{
	struct host *host = arg;
	weft_stream_connect_opts opts = { .stagger_ns = WEFT_MS };
	weft_stream *stream;

	CHECK_EQ(weft_stream_connect(host->name, &opts, &stream, weft_after(20 * WEFT_MS)),
	         WEFT_ETIMEDOUT);
	CHECK(strstr(weft_detail(), host->name) != NULL);
	return 0;
}

TEST(connect_to_addresses_that_never_answer_ends_at_its_deadline)
{
	struct host host;

	run_threadlet(find_host, &host);
	if (!host.has_both)
		return;
	fill_up(&host.first);
	fill_up(&host.second);
	run_threadlet(call_dead_host, &host);
	leave(&host.first);
	leave(&host.second);
}

/* --- local address -------------------------------------------------------- */

static int
call_from(void *arg)
{
	weft_listener *listener = arg;
	weft_stream_connect_opts opts = { .stagger_ns = 0 };
	char text[WEFT_ADDR_TEXT_MAX];
	weft_stream *here, *there;
	weft_addr addr, mine;

	OK(weft_listener_local(listener, &addr));
	CHECK(weft_addr_format(&addr, text, sizeof(text)) > 0);
	OK(weft_addr_parse("tcp://127.0.0.2:0", &opts.local));
	OK(weft_stream_connect(text, &opts, &here, WEFT_NEVER));
	OK(weft_listener_accept(listener, &there, WEFT_NEVER));
	OK(weft_stream_peer(there, &addr));
	OK(weft_stream_local(here, &mine));
	CHECK(weft_addr_equal(&addr, &mine));
	CHECK(weft_addr_format(&addr, text, sizeof(text)) > 0);
	CHECK(strncmp(text, "tcp://127.0.0.2:", 16) == 0);
	weft_stream_close(here);
	weft_stream_close(there);
	return 0;
}

/* Uses a local address that this host does not have. */
static int
call_from_elsewhere(void *arg)
{
	weft_listener *listener = arg;
	weft_stream_connect_opts opts = { .stagger_ns = 0 };
	char text[WEFT_ADDR_TEXT_MAX];
	weft_stream *stream;
	weft_addr addr;

	OK(weft_listener_local(listener, &addr));
	CHECK(weft_addr_format(&addr, text, sizeof(text)) > 0);
	OK(weft_addr_parse("tcp://192.0.2.1:0", &opts.local));
	CHECK_EQ(weft_stream_connect(text, &opts, &stream, WEFT_NEVER), -EADDRNOTAVAIL);
	CHECK(strstr(weft_detail(), text) != NULL);
	return 0;
}

TEST(connection_is_made_from_the_requested_local_address)
{
	weft_loop *loop = make();
	weft_listener *listener;

	OK(weft_listener_open("tcp://127.0.0.1:0", NULL, &listener));
	(void)go_on(loop, call_from, listener);
	OK(weft_loop_run(loop));
	(void)go_on(loop, call_from_elsewhere, listener);
	OK(weft_loop_run(loop));
	weft_listener_close(listener);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}
