/* fd_scenarios.c - programs that move bytes: echo, TCP, no free descriptors, the poller. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/poller.h>
#include <weft/weft.h>
#include "fault.h"
#include "loop/core/loop.h"
#include "scenarios.h"

/* --- echo: round trips over a socketpair -------------------------------- */

#define TEXT      "the quick brown fox"
#define TEXT_SIZE (sizeof(TEXT) - 1)

struct letter {
	struct msghdr msg;
	struct iovec iov;
	char bytes[TEXT_SIZE];
};

static void
address(struct letter *letter, size_t size)
{
	letter->iov = (struct iovec){ letter->bytes, size };
	letter->msg = (struct msghdr){ .msg_iov = &letter->iov, .msg_iovlen = 1 };
}

static int
start_send(struct job *job, int fd, struct letter *letter, size_t size)
{
	address(letter, size);
	if (fd % 2)
		return weft__op_sendmsg(&job->op, fd, &letter->msg, 0, weft_after(WAIT_NS));
	return weft_op_send(&job->op, fd, letter->bytes, size, 0, weft_after(WAIT_NS));
}

static int
start_receive(struct job *job, int fd, struct letter *letter)
{
	address(letter, TEXT_SIZE);
	return weft_op_recv(&job->op, fd, letter->bytes, TEXT_SIZE, 0, weft_after(WAIT_NS));
}

/* Send `size` bytes of the text.  Returns how many arrived. */
static size_t
pass(struct world *world, int from, int to, size_t size)
{
	struct letter sent, got = { .bytes = { 0 } };
	struct job out, in;
	int64_t n, m;

	memcpy(sent.bytes, TEXT, TEXT_SIZE);
	init(world, &out);
	init(world, &in);
	begin(&in, start_receive(&in, to, &got));
	begin(&out, start_send(&out, from, &sent, size));
	n = await(world, &out);
	EXPECT(n == (int64_t)size || fault_hits() > 0);
	m = n > 0 ? await(world, &in) : end_job(world, &in);
	EXPECT(m == n || fault_hits() > 0);
	EXPECT(m <= (int64_t)size);
	if (m <= 0)
		return 0;
	EXPECT(memcmp(got.bytes, TEXT, (size_t)m) == 0);
	return m == n ? (size_t)m : 0; /* otherwise the stream is out of sync */
}

void
run_echo(const char *backend)
{
	struct world world;
	struct job last;
	size_t size = TEXT_SIZE;
	char byte;
	int fds[2];

	if (!make_world(&world, backend, 0))
		return;
	if (make_pair(fds)) {
		for (int i = 0; i < 3 && size > 0; i++)
			size = pass(&world, fds[i % 2], fds[1 - i % 2], size);
		init(&world, &last); /* ends at the end of the stream or at its deadline */
		begin(&last, weft_op_recv(&last.op, fds[0], &byte, 1, 0, weft_after(WEFT_MS)));
		close_by_op(&world, fds[1]);
		(void)await(&world, &last);
	}
	check_works(&world);
	close_by_op(&world, fds[0]);
	end_world(&world);
}

/* --- tcp: multishot accept, connect, multishot receive, close ----------- */

struct station {
	struct world world;
	struct sockaddr_in addr;
	int listener;
	struct job accept;
};

static int
make_socket(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool
make_listener(struct station *station)
{
	socklen_t size = sizeof(station->addr);
	struct sockaddr *addr = (struct sockaddr *)&station->addr;

	station->addr = (struct sockaddr_in){ .sin_family = AF_INET };
	station->addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	station->listener = make_socket();
	return station->listener >= 0 && bind(station->listener, addr, size) == 0
	       && listen(station->listener, 8) == 0
	       && getsockname(station->listener, addr, &size) == 0;
}

static void
on_accepted(weft_op *op, int64_t result, void *arg)
{
	struct job *job = arg;

	if (result >= 0 && job->fd_count < 4)
		job->fds[job->fd_count++] = (int)result;
	else if (result >= 0)
		fault_close((int)result);
	/* The library handles a connection that died in the queue. */
	EXPECT(result != -ECONNABORTED && result != -EPROTO);
	on_done(op, result, arg);
}

static void
start_accepting(struct station *station)
{
	struct job *job = &station->accept;

	*job = (struct job){ .result = WEFT_EAGAIN };
	EXPECT(weft_op_init(&job->op, station->world.loop, on_accepted, job) == 0);
	begin(job,
	      weft_op_accept(&job->op, station->listener, WEFT_MULTI, weft_after(100 * WAIT_NS)));
}

/* Connect a client; returns its descriptor, or -1. */
static int
connect_client(struct station *station)
{
	struct job job;
	int fd = make_socket();

	if (fd < 0)
		return -1;
	init(&station->world, &job);
	begin(&job, weft_op_connect(&job.op, fd, (struct sockaddr *)&station->addr,
	                            sizeof(station->addr), weft_after(WAIT_NS)));
	if (await(&station->world, &job) == 0)
		return fd;
	EXPECT(fault_hits() > 0);
	close_by_op(&station->world, fd);
	return -1;
}

/* Run the loop until `count` connections were accepted. */
static int
await_accepted(struct station *station, int count)
{
	int left = count - station->accept.fd_count;

	for (int i = 0; left > 0 && i < 2 * STEPS_MIN; i++) {
		(void)weft_loop_run_once(station->world.loop, weft_after(WAIT_NS / 10));
		left = count - station->accept.fd_count;
	}
	EXPECT(left <= 0 || fault_hits() > 0);
	return left <= 0 ? station->accept.fds[count - 1] : -1;
}

static int64_t
send_text(struct world *world, int fd)
{
	struct job job;

	init(world, &job);
	begin(&job, weft_op_send(&job.op, fd, TEXT, TEXT_SIZE, 0, weft_after(WAIT_NS)));
	return await(world, &job);
}

/* Two messages from client to server, then the end of the stream. */
static void
talk(struct world *world, int client, int server)
{
	struct job in;
	int64_t sent = 0;

	init(world, &in);
	begin(&in, weft_op_recv_multi(&in.op, server, weft_after(WAIT_NS)));
	for (int i = 0; i < 2; i++) {
		int64_t n = send_text(world, client);

		sent += n > 0 ? n : 0;
		turn(world->loop);
	}
	close_by_op(world, client);
	(void)await(world, &in);
	EXPECT((int64_t)in.bytes == sent || fault_hits() > 0);
	EXPECT((int64_t)in.bytes <= sent);
	close_by_op(world, server);
}

/* The same, received piece by piece. */
static void
talk_slowly(struct world *world, int client, int server)
{
	char bytes[TEXT_SIZE + 1];
	struct job in;
	int64_t sent = send_text(world, client);
	size_t got = 0;

	close_by_op(world, client);
	do {
		size_t room = sizeof(bytes) - got < 8 ? sizeof(bytes) - got : 8;

		init(world, &in);
		begin(&in, weft_op_recv(&in.op, server, bytes + got, room, 0, weft_after(WAIT_NS)));
		(void)await(world, &in);
		got += in.bytes;
	} while (in.result > 0 && got < sizeof(bytes));
	EXPECT((int64_t)got == sent || fault_hits() > 0);
	EXPECT(memcmp(bytes, TEXT, got < TEXT_SIZE ? got : TEXT_SIZE) == 0);
	close_by_op(world, server);
}

static void
visit(struct station *station, int number)
{
	int client = connect_client(station), server;

	if (client < 0)
		return;
	server = await_accepted(station, number);
	if (server < 0)
		close_by_op(&station->world, client);
	else if (number == 1)
		talk(&station->world, client, server);
	else
		talk_slowly(&station->world, client, server);
	if (server >= 0)
		station->accept.fds[number - 1] = -1;
}

/* Close the accepted connections that visit() has not used. */
static void
close_accepted(struct station *station)
{
	(void)end_job(&station->world, &station->accept);
	for (int i = 0; i < station->accept.fd_count; i++)
		close_by_op(&station->world, station->accept.fds[i]);
}

/* An accept that has not ended still accepts. */
static void
check_accepts(struct station *station)
{
	int fd, before = station->accept.fd_count;

	if (fault_hits() == 0 || station->accept.left == 0)
		return;
	fault_heal();
	fd = make_socket();
	(void)connect(fd, (struct sockaddr *)&station->addr, sizeof(station->addr));
	(void)await_accepted(station, before + 1);
	EXPECT(station->accept.fd_count > before);
	fault_close(fd);
}

void
run_tcp(const char *backend)
{
	struct station station;

	if (!make_world(&station.world, backend, 0))
		return;
	if (make_listener(&station)) {
		start_accepting(&station);
		visit(&station, 1);
		visit(&station, station.accept.fd_count + 1);
		check_accepts(&station);
		close_accepted(&station);
	}
	check_works(&station.world);
	close_by_op(&station.world, station.listener);
	end_world(&station.world);
}

/* --- full: an accept that finds no free descriptor ---------------------- */

/* Lower the descriptor limit so that none can be opened. */
static void
limit_fds(struct rlimit *before)
{
	struct rlimit none;
	int next = dup(0);

	(void)getrlimit(RLIMIT_NOFILE, before);
	none = *before;
	if (next >= 0)
		none.rlim_cur = (rlim_t)next;
	fault_close(next);
	(void)setrlimit(RLIMIT_NOFILE, &none);
}

/* Connect while the accepting side has no free descriptor. */
static int
knock(struct station *station, int fd)
{
	return connect(fd, (struct sockaddr *)&station->addr, sizeof(station->addr));
}

void
run_full(const char *backend)
{
	struct station station;
	struct rlimit before;
	int fd = -1;

	if (!make_world(&station.world, backend, 0))
		return;
	if (make_listener(&station)) {
		start_accepting(&station);
		fd = make_socket();
		limit_fds(&before);
		(void)knock(&station, fd);
		turn(station.world.loop);
		(void)setrlimit(RLIMIT_NOFILE, &before);
		fault_warp(2 * WAIT_NS); /* the library retries after 20 ms */
		(void)await_accepted(&station, 1);
		check_accepts(&station);
		close_accepted(&station);
		fault_close(fd);
	}
	check_works(&station.world);
	close_by_op(&station.world, station.listener);
	end_world(&station.world);
}

/* Two accepts that wait for descriptors.  One is canceled and started again. */
static void
fill_two(struct station *a, struct station *b)
{
	struct rlimit before;
	int fds[2] = { make_socket(), make_socket() };

	start_accepting(a);
	start_accepting(b);
	limit_fds(&before);
	(void)knock(a, fds[0]);
	(void)knock(b, fds[1]);
	turn(a->world.loop);
	(void)end_job(&a->world, &a->accept);
	start_accepting(a);
	turn(a->world.loop);
	(void)setrlimit(RLIMIT_NOFILE, &before);
	fault_warp(2 * WAIT_NS);
	(void)await_accepted(a, 1);
	(void)await_accepted(b, 1);
	close_both(fds);
	check_accepts(a);
	check_accepts(b);
}

void
run_full_two(const char *backend)
{
	struct station a, b;

	if (!make_world(&a.world, backend, 0))
		return;
	b.world = a.world;
	b.listener = -1;
	if (make_listener(&a) && make_listener(&b)) {
		fill_two(&a, &b);
		close_accepted(&a);
		close_accepted(&b);
	}
	check_works(&a.world);
	close_by_op(&a.world, a.listener);
	close_by_op(&a.world, b.listener);
	end_world(&a.world);
}

/* --- poller ------------------------------------------------------------- */

/* Wait for `token`.  Returns its events, or 0 if none arrive. */
static uint32_t
poll_for(weft_poller *poller, uint64_t token)
{
	weft_poller_event events[4];
	uint32_t found = 0;

	for (int i = 0; i < 3 && !found; i++) {
		int n = weft_poller_wait(poller, events, 4, weft_after(i ? WAIT_NS / 10 : 0));

		EXPECT(n >= 0 || fault_hits() > 0);
		for (int k = 0; k < n; k++)
			if (events[k].token == token)
				found = events[k].events;
	}
	return found;
}

static void
try_poller(weft_poller *poller, const int fds[2], int file)
{
	bool added = weft_poller_add(poller, fds[0], WEFT_READABLE, 1) == 0;

	EXPECT(added || fault_hits() > 0);
	EXPECT(!added || poll_for(poller, 1) == 0 || fault_hits() > 0);
	put_byte(fds[1]);
	EXPECT(!added || poll_for(poller, 1) || fault_hits() > 0);
	if (weft_poller_modify(poller, fds[0], 0, 1) == 0)
		EXPECT(poll_for(poller, 1) == 0 || fault_hits() > 0);
	if (weft_poller_modify(poller, fds[0], WEFT_READABLE | WEFT_EDGE, 2) == 0)
		EXPECT(poll_for(poller, 2) || fault_hits() > 0);
	if (weft_poller_add(poller, fds[1], WEFT_WRITABLE, 3) == 0)
		EXPECT(poll_for(poller, 3) || fault_hits() > 0);
	if (file >= 0 && weft_poller_add(poller, file, WEFT_READABLE, 4) == 0) {
		EXPECT(poll_for(poller, 4) || fault_hits() > 0);
		EXPECT(weft_poller_remove(poller, file) == 0);
	}
	EXPECT((weft_poller_remove(poller, fds[0]) == 0) == added);
	(void)weft_poller_remove(poller, fds[1]);
}

static void
check_poller(weft_poller *poller, const int fds[2])
{
	if (fault_hits() > 0)
		fault_heal();
	put_byte(fds[1]);
	if (weft_poller_add(poller, fds[0], WEFT_READABLE, 5) == 0)
		EXPECT(poll_for(poller, 5) || fault_hits() > 0);
	else
		EXPECT(fault_hits() > 0);
	weft_poller_wake(poller);
	EXPECT(poll_for(poller, 5) || fault_hits() > 0);
}

void
run_poller(const char *backend)
{
	weft_poller *poller = NULL;
	int fds[2], file;

	if (weft_poller_open(backend, &poller) < 0) {
		EXPECT(fault_hits() > 0 && !poller);
		return;
	}
	file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (make_pipe(fds)) {
		try_poller(poller, fds, file);
		check_poller(poller, fds);
	}
	weft_poller_close(poller);
	close_both(fds);
	fault_close(file);
}
