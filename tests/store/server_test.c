/* server_test.c - the store over connections: many clients, slow clients, clients that
 * disconnect. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#include <weft/weft.h>
#include "store/connection/client.h"
#include "unit/threadlet/sched.h"

#define CLIENTS 1000

struct scene {
	weft_store *store;
	char address[WEFT_ADDR_TEXT_MAX];
	void (*play)(struct scene *scene);
	bool closed;
	weft_stream *stream; /* used by the play function */
	size_t sent;         /* used by the play function */
};

static void
on_closed(void *arg)
{
	((struct scene *)arg)->closed = true;
}

static int
run_play(void *arg)
{
	struct scene *scene = arg;

	scene->play(scene);
	weft_store_close(scene->store, on_closed, scene);
	return 0;
}

static void
play_with(const weft_store_opts *opts, void (*play)(struct scene *scene))
{
	struct scene scene = { .play = play };
	weft_loop *loop = make();
	weft_addr bound;

	OK(weft_store_open(loop, opts, &scene.store));
	OK(weft_store_listen(scene.store, "tcp://127.0.0.1:0", &bound));
	CHECK(weft_addr_format(&bound, scene.address, sizeof(scene.address)) > 0);
	(void)go_on(loop, run_play, &scene);
	OK(weft_loop_run(loop));
	CHECK(scene.closed);
	OK(weft_loop_free(loop));
}

static weft_stream *
enter(struct scene *scene)
{
	weft_stream *stream;

	OK(weft_stream_connect(scene->address, NULL, &stream, weft_after(HOUR)));
	return stream;
}

static void
send_text(weft_stream *stream, const char *text)
{
	CHECK_EQ(weft_stream_write(stream, text, strlen(text), weft_after(HOUR)), strlen(text));
}

static void
expect(weft_stream *stream, const char *want)
{
	char got[512];
	size_t size = strlen(want);

	CHECK(size < sizeof(got));
	CHECK_EQ(weft_stream_read_exact(stream, got, size, weft_after(HOUR)), size);
	got[size] = '\0';
	CHECK_STR(got, want);
}

static void
expect_end(weft_stream *stream)
{
	char got[16];

	CHECK(weft_stream_read(stream, got, sizeof(got), weft_after(HOUR)) <= 0);
	weft_stream_close(stream);
}

/* --- plays ------------------------------------------------------------------ */

static void
ask_and_quit(struct scene *scene)
{
	weft_stream *stream = enter(scene);

	send_text(stream, "SET a 1\r\nGET a\r\nQUIT\r\nGET a\r\n");
	expect(stream, "+OK\r\n$1\r\n1\r\n+OK\r\n");
	expect_end(stream);
}

/* Port 0 lets the system choose the port of each permitted address. */
TEST(store_without_a_password_listens_only_on_this_machine)
{
	static const char *const far[] = { "tcp://0.0.0.0:0", "tcp://[::]:0" };
	const weft_store_opts all[] = {
		{ 0 },
		{ .password = "p" },
		{ .without_password = true },
	};
	char local[64]; /* a name of this process: the backends' tests run at the same time */

	(void)snprintf(local, sizeof(local), "unix:@weft-store-test-%ld", (long)getpid());
	for (int i = 0; i < 3; i++) {
		weft_loop *loop = weft_loop_new(NULL);
		weft_store *store;

		OK(weft_store_open(loop, &all[i], &store));
		for (int k = 0; k < 2; k++)
			CHECK_EQ(weft_store_listen(store, far[k], NULL), i == 0 ? WEFT_EPERM : 0);
		OK(weft_store_listen(store, "tcp://127.0.0.1:0", NULL));
		OK(weft_store_listen(store, local, NULL));
		weft_store_close(store, NULL, NULL);
		OK(weft_loop_run(loop));
		OK(weft_loop_free(loop));
	}
}

TEST(client_gets_replies_and_can_quit)
{
	play_with(NULL, ask_and_quit);
}

static void
shut_and_expect(struct scene *scene)
{
	weft_stream *stream = enter(scene);

	send_text(stream, "PING\r\nPING\r\n");
	OK(weft_stream_shutdown(stream, weft_after(HOUR)));
	expect(stream, "+PONG\r\n+PONG\r\n");
	expect_end(stream);
}

TEST(client_that_half_closes_still_gets_its_replies)
{
	play_with(NULL, shut_and_expect);
}

static void
leave_open(struct scene *scene)
{
	weft_stream *streams[3];

	for (int i = 0; i < 3; i++)
		streams[i] = enter(scene);
	send_text(streams[0], "BLPOP a 0\r\n");
	send_text(streams[1], "SUBSCRIBE a\r\n");
	send_text(streams[2], "PING\r\n");
	expect(streams[2], "+PONG\r\n");
	weft_store_close(scene->store, on_closed, scene);
	scene->store = NULL;
	for (int i = 0; i < 3; i++) {
		char got[128];

		while (weft_stream_read(streams[i], got, sizeof(got), weft_after(HOUR)) > 0)
			;
		weft_stream_close(streams[i]);
	}
}

TEST(closing_the_store_disconnects_its_clients)
{
	play_with(NULL, leave_open);
}

static void
have_files(rlim_t count)
{
	struct rlimit limit;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < count)
		test_skip("too few descriptors may be open");
	limit.rlim_cur = limit.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void
come_in_crowds(struct scene *scene)
{
	static weft_stream *streams[CLIENTS];
	char line[64];

	for (int i = 0; i < CLIENTS; i++)
		streams[i] = enter(scene);
	for (int i = 0; i < CLIENTS; i++) {
		snprintf(line, sizeof(line), "INCR a\r\nECHO %04d\r\n", i);
		send_text(streams[i], line);
	}
	for (int i = 0; i < CLIENTS; i++) {
		char got[64];

		CHECK(weft_stream_read_until(streams[i], "\r\n", got, sizeof(got), weft_after(HOUR))
		      > 0);
		snprintf(line, sizeof(line), "$4\r\n%04d\r\n", i);
		expect(streams[i], line);
	}
	send_text(streams[0], "GET a\r\n");
	expect(streams[0], "$4\r\n1000\r\n");
	CHECK_EQ(map_count(&scene->store->clients), CLIENTS);
	for (int i = 0; i < CLIENTS; i++)
		weft_stream_close(streams[i]);
}

TEST(thousand_clients_are_served)
{
	have_files(2 * CLIENTS + 100);
	play_with(NULL, come_in_crowds);
}

static void
be_one_too_many(struct scene *scene)
{
	weft_stream *one = enter(scene), *two = enter(scene), *three;

	send_text(one, "PING\r\n");
	expect(one, "+PONG\r\n");
	send_text(two, "PING\r\n");
	expect(two, "+PONG\r\n");
	three = enter(scene);
	expect(three, "-ERR max number of clients reached\r\n");
	expect_end(three);
	weft_stream_close(one);
	while (map_count(&scene->store->clients) == 2)
		(void)weft_yield();
	three = enter(scene);
	send_text(three, "PING\r\n");
	expect(three, "+PONG\r\n");
	weft_stream_close(three);
	weft_stream_close(two);
}

TEST(client_over_the_limit_gets_an_error)
{
	const weft_store_opts opts = { .clients_max = 2 };

	play_with(&opts, be_one_too_many);
}

/* --- shutdown of the loop ----------------------------------------------------- */

static int
stop_the_loop(void *arg)
{
	struct scene *scene = arg;

	scene->stream = enter(scene);
	send_text(scene->stream, "BLPOP a 0\r\n");
	while (scene->store->blocked_count == 0)
		(void)weft_yield();
	weft_loop_shutdown(weft_loop_current());
	weft_stream_close(scene->stream);
	return 0;
}

TEST(store_can_be_closed_after_its_loop_has_stopped)
{
	struct scene scene = { 0 };
	weft_loop *loop = make();
	weft_addr bound;

	OK(weft_store_open(loop, NULL, &scene.store));
	OK(weft_store_listen(scene.store, "tcp://127.0.0.1:0", &bound));
	CHECK(weft_addr_format(&bound, scene.address, sizeof(scene.address)) > 0);
	(void)go_on(loop, stop_the_loop, &scene);
	OK(weft_loop_run(loop));
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	CHECK_EQ(map_count(&scene.store->clients), 0);
	weft_store_close(scene.store, on_closed, &scene);
	CHECK(scene.closed);
	OK(weft_loop_free(loop));
}

TEST(store_without_clients_is_closed_at_once)
{
	struct scene scene = { 0 };
	weft_loop *loop = make();

	OK(weft_store_open(loop, NULL, &scene.store));
	weft_store_close(scene.store, on_closed, &scene);
	CHECK(scene.closed);
	weft_store_close(NULL, on_closed, &scene);
	OK(weft_loop_free(loop));
}

/* --- clients that do not read ----------------------------------------------- */

#define GETS  3000
#define VALUE 100000

static int
ask_much(void *arg)
{
	struct scene *scene = arg;

	for (; scene->sent < GETS; scene->sent++)
		send_text(scene->stream, "GET a\r\n");
	return 0;
}

static void
expect_bytes(weft_stream *stream, size_t size)
{
	static char got[1 << 16];

	while (size > 0) {
		ssize_t n = weft_stream_read(stream, got, size < sizeof(got) ? size : sizeof(got),
		                             weft_after(HOUR));

		CHECK(n > 0);
		size -= (size_t)n;
	}
}

static void
ask_and_not_read(struct scene *scene)
{
	static char value[VALUE + 32];
	int begin = snprintf(value, sizeof(value), "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$%d\r\n", VALUE);

	memset(value + begin, 'v', VALUE);
	scene->stream = enter(scene);
	CHECK_EQ(weft_stream_write(scene->stream, value, (size_t)begin + VALUE, weft_after(HOUR)),
	         begin + VALUE);
	send_text(scene->stream, "\r\n");
	expect(scene->stream, "+OK\r\n");
	CHECK(weft_go(ask_much, scene) > 0);
	while (scene->sent < GETS
	       && ((struct client *)map_at(&scene->store->clients, 0))->unwritten == 0)
		(void)weft_yield();
	CHECK(scene->store->traffic.used < 4 << 20);
	expect_bytes(scene->stream, (size_t)GETS * (VALUE + 11));
	while (scene->sent < GETS)
		(void)weft_yield();
	CHECK(scene->store->traffic.peak < 8 << 20);
	weft_stream_close(scene->stream);
}

TEST(client_that_does_not_read_its_replies_is_throttled)
{
	play_with(NULL, ask_and_not_read);
}

static void
publish_to_the_deaf(struct scene *scene)
{
	weft_stream *deaf = enter(scene), *speaker = enter(scene);
	static char line[100000];

	send_text(deaf, "SUBSCRIBE a\r\n");
	expect(deaf, "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
	memset(line, 'v', sizeof(line));
	memcpy(line, "PUBLISH a ", 10);
	memcpy(line + 60000, "\r\n", 3);
	for (;;) {
		char got[8];

		send_text(speaker, line);
		CHECK_EQ(weft_stream_read_exact(speaker, got, 4, weft_after(HOUR)), 4);
		if (got[1] == '0')
			break;
	}
	CHECK(scene->store->traffic.peak < 8 << 20);
	weft_stream_close(speaker);
	weft_stream_reset(deaf);
}

TEST(subscriber_that_does_not_read_is_dropped)
{
	const weft_store_opts opts = { .output_max = 2 << 20 };

	play_with(&opts, publish_to_the_deaf);
}

/* --- blocked clients -------------------------------------------------------- */

static void
wait_and_leave(struct scene *scene)
{
	weft_stream *waiter = enter(scene), *giver = enter(scene);

	send_text(waiter, "BLPOP a 0\r\n");
	while (scene->store->blocked_count == 0)
		(void)weft_yield();
	weft_stream_close(waiter);
	while (scene->store->blocked_count == 1)
		(void)weft_yield();
	send_text(giver, "RPUSH a 1\r\nLLEN a\r\n");
	expect(giver, ":1\r\n:1\r\n");
	weft_stream_close(giver);
}

TEST(client_that_disconnects_while_blocked_takes_no_element)
{
	play_with(NULL, wait_and_leave);
}

static void
wait_for_a_moment(struct scene *scene)
{
	weft_stream *stream = enter(scene);

	send_text(stream, "BLPOP a 0.01\r\nXREAD BLOCK 10 STREAMS a $\r\nPING\r\n");
	expect(stream, "*-1\r\n*-1\r\n+PONG\r\n");
	weft_stream_close(stream);
}

TEST(blocking_command_ends_at_its_timeout)
{
	play_with(NULL, wait_for_a_moment);
}

#define BEHIND 20000

/* More requests arrive behind the blocking one than the read queue of the stream holds. */
static void
wait_with_requests(struct scene *scene)
{
	weft_stream *stream = enter(scene), *giver = enter(scene);
	static char requests[6 * BEHIND + 1];

	for (int i = 0; i < BEHIND; i++)
		memcpy(requests + 6 * i, "PING\r\n", 6);
	send_text(stream, "BLPOP a 0\r\n");
	send_text(stream, requests);
	while (scene->store->blocked_count == 0)
		(void)weft_yield();
	send_text(giver, "PING\r\nRPUSH a 1\r\n");
	expect(giver, "+PONG\r\n:1\r\n");
	expect(stream, "*2\r\n$1\r\na\r\n$1\r\n1\r\n");
	for (int i = 0; i < BEHIND; i++)
		expect(stream, "+PONG\r\n");
	weft_stream_close(stream);
	weft_stream_close(giver);
}

TEST(requests_behind_a_blocking_command_run_after_it)
{
	play_with(NULL, wait_with_requests);
}

static void
end_with_requests(struct scene *scene)
{
	weft_stream *stream = enter(scene);

	send_text(stream, "PING\r\nBLPOP a 0\r\nPING\r\n");
	OK(weft_stream_shutdown(stream, weft_after(HOUR)));
	expect(stream, "+PONG\r\n");
	expect_end(stream);
}

TEST(client_that_half_closes_does_not_wait)
{
	play_with(NULL, end_with_requests);
}

/* --- large requests --------------------------------------------------------- */

#define LARGE (20 << 20)

static void
send_large(struct scene *scene)
{
	weft_stream *stream = enter(scene);
	char *value = weft_alloc(LARGE);

	memset(value, 'v', LARGE);
	send_text(stream, "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$20971520\r\n");
	CHECK_EQ(weft_stream_write(stream, value, LARGE, weft_after(HOUR)), LARGE);
	send_text(stream, "\r\nSTRLEN a\r\n");
	expect(stream, "+OK\r\n:20971520\r\n");
	send_text(stream, "GET a\r\nPING\r\n");
	expect(stream, "$20971520\r\n");
	expect_bytes(stream, LARGE);
	expect(stream, "\r\n+PONG\r\n");
	weft_release(value);
	weft_stream_close(stream);
}

TEST(large_value_is_stored_and_returned)
{
	play_with(NULL, send_large);
}
