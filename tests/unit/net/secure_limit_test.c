/* secure_limit_test.c - peers that send nothing during a handshake, and how long the other side
 * waits for them. */
#include <errno.h>
#include <unistd.h>
#include <weft/debug.h>
#include "base/sys.h"
#include "loop/core/loop.h"
#include "threadlet/threadlet.h"
#include "unit/net/secure_world.h"

#define LIMIT_NS (5 * WEFT_MS)

/* --- three ways to accept ------------------------------------------------- */

/* Accepts one peer.  Dropped peers are not returned by the accept. */
static int
accept_one(void *arg)
{
	struct house *house = arg;
	weft_stream *peer;

	OK(weft_listener_accept(house->listener, &peer, WEFT_NEVER));
	(void)echo(peer, house);
	return 0;
}

struct caller {
	struct house *house;
	weft_stream *peer;
};

static int
echo_caller(void *arg)
{
	struct caller caller = *(struct caller *)arg;

	free(arg);
	return echo(caller.peer, caller.house);
}

static void
on_client(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	struct caller *caller;

	(void)listener;
	if (!peer) {
		CHECK_EQ(error, WEFT_ESHUTDOWN);
		return;
	}
	caller = malloc(sizeof(*caller));
	CHECK(caller);
	*caller = (struct caller){ arg, peer };
	CHECK(weft_go(echo_caller, caller) > 0);
}

static int
be_called(void *arg)
{
	struct house *house = arg;

	OK(weft_listener_start(house->listener, NULL, on_client, house));
	return 0;
}

static const weft_threadlet_fn ways[] = { accept_one, serve, be_called };

/* Runs the visits in each way, with this limit. */
static void
run_visits(weft_threadlet_fn visits, uint64_t limit_ns)
{
	make_world();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct house house = open_house(limit_ns);
		weft_loop *loop = make();

		(void)go_on(loop, ways[i], &house);
		(void)go_on(loop, visits, &house);
		OK(weft_loop_run(loop));
		CHECK_EQ(house.served, 1);
		OK(weft_loop_free(loop));
	}
	drop_world();
}

/* --- the server's limit --------------------------------------------------- */

/* Sends a word and expects it back.  On a busy machine a handshake may exceed the limit, and
 * the client may notice that only later. */
static bool
is_served(const struct house *house)
{
	weft_stream_connect_opts opts = { .tls = world.client };
	weft_stream *stream;
	bool served;
	char buf[4];

	if (weft_stream_connect(house->address, &opts, &stream, WEFT_NEVER) < 0)
		return false;
	served = weft_stream_write(stream, "word", 4, WEFT_NEVER) == 4
	         && weft_stream_read_exact(stream, buf, 4, WEFT_NEVER) == 4;
	weft_stream_close(stream);
	return served;
}

static int
say_nothing(void *arg)
{
	struct house *house = arg;
	uint64_t begun_ns = weft_now();
	weft_stream *silent;
	char byte;

	OK(weft_stream_connect(house->plain, NULL, &silent, WEFT_NEVER));
	CHECK_EQ(weft_stream_read(silent, &byte, 1, WEFT_NEVER), WEFT_ECONNRESET);
	CHECK(weft_now() - begun_ns >= LIMIT_NS);
	weft_stream_close(silent);
	while (!is_served(house))
		;
	weft_listener_close(house->listener);
	return 0;
}

TEST(peer_that_sends_nothing_is_dropped_and_the_next_is_served)
{
	run_visits(say_nothing, LIMIT_NS);
}

/* Sends the first bytes of a handshake, and no more. */
static int
say_little(void *arg)
{
	struct house *house = arg;
	weft_stream *silent = NULL;
	char byte;

	do { /* until it is not dropped before it could send these bytes */
		weft_stream_close(silent);
		OK(weft_stream_connect(house->plain, NULL, &silent, WEFT_NEVER));
	} while (weft_stream_write(silent, "\x16\x03\x01\x01", 4, WEFT_NEVER) != 4);
	CHECK_EQ(weft_stream_read(silent, &byte, 1, WEFT_NEVER), WEFT_ECONNRESET);
	weft_stream_close(silent);
	while (!is_served(house))
		;
	weft_listener_close(house->listener);
	return 0;
}

TEST(peer_that_stops_during_its_handshake_is_dropped)
{
	run_visits(say_little, LIMIT_NS);
}

/* Connects while the server still waits for a silent peer. */
static int
come_later(void *arg)
{
	struct house *house = arg;
	weft_stream *silent;
	char byte;

	OK(weft_stream_connect(house->plain, NULL, &silent, WEFT_NEVER));
	CHECK(is_served(house));
	CHECK_EQ(weft_stream_read(silent, &byte, 1, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	weft_stream_reset(silent);
	weft_listener_close(house->listener);
	return 0;
}

TEST(peer_that_sends_nothing_does_not_delay_others)
{
	run_visits(come_later, HOUR);
}

struct silence {
	struct house house;
	weft_stream *silent;
};

static int
serve_silence(void *arg)
{
	return serve(&((struct silence *)arg)->house);
}

static int
close_beside_silence(void *arg)
{
	struct silence *silence = arg;

	OK(weft_stream_connect(silence->house.plain, NULL, &silence->silent, WEFT_NEVER));
	weft_listener_close(silence->house.listener);
	silence->house.listener = NULL;
	return 0;
}

/* The close gives the handshake half a second, even if the loop stops meanwhile. */
TEST(loop_stops_although_a_peer_sends_nothing_in_its_handshake)
{
	struct silence silence = { .silent = NULL };
	uint64_t deadline_ns = weft_after(60 * WEFT_S);
	weft_loop *loop = make();

	make_world();
	silence.house = open_house(HOUR);
	(void)go_on(loop, serve_silence, &silence);
	(void)go_on(loop, close_beside_silence, &silence);
	while (silence.house.listener)
		turn(loop);
	turns(loop, 10);
	weft_loop_shutdown(loop);
	while (weft_loop_state(loop) != WEFT_STOPPED && weft_now() < deadline_ns)
		(void)weft_loop_run_once(loop, deadline_ns);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	CHECK_EQ(silence.house.served, 0);
	weft_stream_close(silence.silent);
	OK(weft_loop_free(loop));
	drop_world();
}

/* --- stacks ----------------------------------------------------------------- */

static int
serve_on_small_stacks(void *arg)
{
	const weft_listener_serve_opts opts = { .name = "client", .stack_bytes = 16 << 10 };
	struct house *house = arg;

	house->ended = weft_listener_serve(house->listener, &opts, echo, house, WEFT_NEVER);
	return 0;
}

static int
inspect_stacks(void *arg)
{
	struct house *house = arg;
	weft_stream_connect_opts opts = { .tls = world.client };
	weft_threadlet_info infos[8];
	weft_stream *stream;
	uint64_t cursor = 0;
	int count, found = 0;

	OK(weft_stream_connect(house->address, &opts, &stream, WEFT_NEVER));
	exchange(stream);
	count = weft__threadlet_list(weft_loop_current(), &cursor, infos, 8, WEFT_NEVER);
	for (int i = 0; i < count; i++)
		if (strcmp(infos[i].name, "client") == 0) {
			CHECK(infos[i].stack_bytes >= 64 << 10);
			found++;
		}
	CHECK_EQ(found, 1);
	weft_stream_close(stream);
	weft_listener_close(house->listener);
	return 0;
}

TEST(threadlet_of_a_peer_has_a_stack_for_its_handshake)
{
	struct house house;
	weft_loop *loop;

	make_world();
	house = open_house(HOUR);
	loop = make();
	(void)go_on(loop, serve_on_small_stacks, &house);
	(void)go_on(loop, inspect_stacks, &house);
	OK(weft_loop_run(loop));
	CHECK_EQ(house.ended, WEFT_ESHUTDOWN);
	OK(weft_loop_free(loop));
	drop_world();
}

/* --- close of a service --------------------------------------------------- */

static struct {
	const struct weft__sys *before;
	struct weft__sys table;
	uint64_t now_ns;
} hooked;

static uint64_t
hooked_now(void)
{
	return hooked.now_ns;
}

/* The clock moves only when a test moves it. */
static void
run_with_own_clock(weft_threadlet_fn visits)
{
	struct house house;
	weft_loop *loop;

	hooked.before = weft__sys;
	hooked.table = *weft__sys;
	hooked.table.now = hooked_now;
	hooked.now_ns = weft__sys->now();
	weft__sys = &hooked.table;
	make_world();
	house = open_house(HOUR);
	loop = make();
	(void)go_on(loop, serve, &house);
	(void)go_on(loop, visits, &house);
	OK(weft_loop_run(loop));
	CHECK_EQ(house.ended, WEFT_ESHUTDOWN);
	OK(weft_loop_free(loop));
	drop_world();
	weft__sys = hooked.before;
}

/* Connects, and closes the listener before the handshake. */
static weft_stream *
come_before_the_end(struct house *house)
{
	const weft_loop *loop = weft_loop_current();
	weft_stream *stream;

	OK(weft_stream_connect(house->plain, NULL, &stream, WEFT_NEVER));
	while (weft__count_get(&loop->counts.accepted) == 0)
		OK(weft_yield());
	weft_listener_close(house->listener);
	for (int i = 0; i < 20; i++)
		OK(weft_yield());
	CHECK_EQ(house->served, 0);
	return stream;
}

static int
shake_hands_late(void *arg)
{
	struct house *house = arg;
	weft_stream *stream = come_before_the_end(house);

	hooked.now_ns += WEFT_S / 4;
	OK(weft_tls_start(stream, world.client, WEFT_TLS_CLIENT, "localhost", WEFT_NEVER));
	exchange(stream);
	CHECK_EQ(house->served, 1);
	weft_stream_close(stream);
	return 0;
}

TEST(handshake_in_progress_at_the_close_of_a_service_is_finished_and_served)
{
	run_with_own_clock(shake_hands_late);
}

static int
stay_silent(void *arg)
{
	weft_stream *stream = come_before_the_end(arg);
	char byte;

	CHECK_EQ(weft_stream_read(stream, &byte, 1, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	hooked.now_ns += WEFT_S / 2;
	CHECK_EQ(weft_stream_read(stream, &byte, 1, WEFT_NEVER), WEFT_ECONNRESET);
	weft_stream_close(stream);
	return 0;
}

TEST(handshake_is_cut_half_a_second_after_the_close_of_a_service)
{
	run_with_own_clock(stay_silent);
}

static int
close_before_the_handshake(void *arg)
{
	weft_stream *stream = come_before_the_end(arg);
	char byte;

	CHECK_EQ(weft_stream_read(stream, &byte, 1, WEFT_NEVER), WEFT_ECONNRESET);
	weft_stream_close(stream);
	return 0;
}

/* --- close of a listener without a service -------------------------------- */

static int
accept_in_vain(void *arg)
{
	struct house *house = arg;
	weft_stream *stream;

	house->ended = weft_listener_accept(house->listener, &stream, WEFT_NEVER);
	return 0;
}

/* Without a cut, the handshake would last an hour, and the loop with it. */
TEST(handshake_is_cut_when_a_listener_without_a_service_is_closed)
{
	struct house house;
	weft_loop *loop;

	make_world();
	house = open_house(HOUR);
	loop = make();
	(void)go_on(loop, accept_in_vain, &house);
	(void)go_on(loop, close_before_the_handshake, &house);
	OK(weft_loop_run(loop));
	CHECK_EQ(house.ended, WEFT_ESHUTDOWN);
	OK(weft_loop_free(loop));
	drop_world();
}

/* --- the client's limit --------------------------------------------------- */

struct quiet {
	char address[WEFT_ADDR_TEXT_MAX];
};

static int
wait_in_vain(void *arg)
{
	struct quiet *quiet = arg;
	weft_stream_connect_opts opts = { .tls = world.client, .handshake_ns = LIMIT_NS };
	uint64_t begun_ns = weft_now();
	weft_stream *stream = NULL;

	CHECK_EQ(weft_stream_connect(quiet->address, &opts, &stream, WEFT_NEVER), WEFT_ETIMEDOUT);
	CHECK(!stream);
	CHECK(weft_now() - begun_ns >= LIMIT_NS);
	CHECK(strstr(weft_detail(), quiet->address) != NULL);
	/* The deadline of weft_stream_connect() covers the handshake, too. */
	opts.handshake_ns = HOUR;
	CHECK_EQ(weft_stream_connect(quiet->address, &opts, &stream, weft_after(LIMIT_NS)),
	         WEFT_ETIMEDOUT);
	CHECK(!stream);
	return 0;
}

TEST(connect_to_a_server_that_sends_nothing_ends_in_time)
{
	struct sockaddr_in name;
	struct quiet quiet;
	int door = make_listener(5, &name);
	char buf[2048];

	make_world();
	(void)snprintf(quiet.address, sizeof(quiet.address), "tls://127.0.0.1:%d",
	               ntohs(name.sin_port));
	run_threadlet(wait_in_vain, &quiet);
	for (int i = 0; i < 2; i++) { /* both connections were closed */
		int fd = accept(door, NULL, NULL);

		CHECK(fd >= 0);
		while (recv(fd, buf, sizeof(buf), 0) > 0)
			;
		OK(close(fd));
	}
	OK(close(door));
	drop_world();
}
