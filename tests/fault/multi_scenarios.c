/* multi_scenarios.c - multishot ops: a stream in pieces, several connections at once.
 *
 * Whatever ends such a request in the kernel, the op continues.  Nothing is lost, reported
 * twice or out of order, unless the fault is an error that the op must report.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/weft.h>
#include "fault.h"
#include "scenarios.h"

/* Whether results may be missing. */
static bool
is_excused(void)
{
	return fault_hits() > 0 && !fault_is_painless();
}

/* --- stream ------------------------------------------------------------- */

#define BURSTS 6
#define PIECES 3 /* of a burst; each is one byte longer than the one before */

struct stream {
	struct world world;
	weft_op op;
	int fds[2];
	int left; /* 1: has not ended */
	unsigned char sent, got;
};

static void
on_piece(weft_op *op, int64_t result, void *arg)
{
	struct stream *stream = arg;
	const unsigned char *data = weft_op_data(op);

	EXPECT(stream->left == 1);
	EXPECT(op->more == (result > 0));
	EXPECT(result >= 0 || is_excused());
	for (int64_t i = 0; i < result; i++)
		EXPECT(data[i] == stream->got++);
	if (!op->more)
		stream->left = 0;
}

static void
send_burst(struct stream *stream)
{
	for (int i = 1; i <= PIECES; i++) {
		unsigned char bytes[PIECES];

		for (int k = 0; k < i; k++)
			bytes[k] = stream->sent++;
		(void)!write(stream->fds[1], bytes, (size_t)i);
	}
}

static void
run_pieces(struct stream *stream)
{
	weft_loop *loop = stream->world.loop;

	EXPECT(weft_op_init(&stream->op, loop, on_piece, stream) == 0);
	if (weft_op_recv_multi(&stream->op, stream->fds[0], WEFT_NEVER) < 0) {
		EXPECT(is_excused());
		return;
	}
	stream->left = 1;
	for (int i = 0; i < BURSTS; i++) {
		send_burst(stream);
		turn(loop);
	}
	(void)shutdown(stream->fds[1], SHUT_WR);
	drive(loop, &stream->left);
	EXPECT(stream->left == 0 || is_excused());
	EXPECT(stream->got == stream->sent || is_excused());
	weft_op_cancel(&stream->op);
	drive(loop, &stream->left);
	EXPECT(stream->left == 0);
}

void
run_stream(const char *backend)
{
	struct stream stream = { .left = 0 };

	if (!make_world(&stream.world, backend, 0))
		return;
	if (make_blocking_pair(stream.fds))
		run_pieces(&stream);
	check_works(&stream.world);
	close_both(stream.fds);
	end_world(&stream.world);
}

/* --- connections -------------------------------------------------------- */

#define CLIENTS 6 /* more than a small completion ring holds */

struct house {
	struct world world;
	struct sockaddr_in addr;
	weft_op op;
	int listener;
	int clients[CLIENTS];
	int came;
	int left; /* connections that were not accepted */
	int open; /* 1: the accept has not ended */
};

static void
on_client(weft_op *op, int64_t result, void *arg)
{
	struct house *house = arg;

	EXPECT(house->open == 1);
	EXPECT(op->more == (result >= 0) || !house->left);
	if (result >= 0) {
		house->came++;
		house->left--;
		fault_close((int)result);
	}
	if (!op->more)
		house->open = 0;
}

static bool
open_house(struct house *house)
{
	struct sockaddr *addr = (struct sockaddr *)&house->addr;
	socklen_t size = sizeof(house->addr);

	house->addr = (struct sockaddr_in){ .sin_family = AF_INET };
	house->addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	house->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	EXPECT(weft_op_init(&house->op, house->world.loop, on_client, house) == 0);
	return bind(house->listener, addr, size) == 0 && listen(house->listener, CLIENTS) == 0
	       && getsockname(house->listener, addr, &size) == 0
	       && weft_op_accept(&house->op, house->listener, WEFT_MULTI, WEFT_NEVER) == 0;
}

static void
send_clients(struct house *house)
{
	for (int i = 0; i < CLIENTS; i++) {
		house->clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		(void)connect(house->clients[i], (struct sockaddr *)&house->addr,
		              sizeof(house->addr));
	}
}

/* An accept that found no free descriptor is retried 20 ms later. */
static void
await_clients(struct house *house)
{
	for (int i = 0; i < 3 && house->left > 0 && house->open; i++)
		drive(house->world.loop, &house->left);
	EXPECT(house->left == 0 || is_excused());
	EXPECT(house->came <= CLIENTS);
	weft_op_cancel(&house->op);
	drive(house->world.loop, &house->open);
	EXPECT(house->open == 0);
}

void
run_clients(const char *backend)
{
	struct house house = { .left = CLIENTS, .listener = -1 };

	if (!make_world(&house.world, backend, 0))
		return;
	memset(house.clients, -1, sizeof(house.clients));
	if (open_house(&house)) {
		house.open = 1;
		turn(house.world.loop);
		send_clients(&house);
		await_clients(&house);
	}
	check_works(&house.world);
	for (int i = 0; i < CLIENTS; i++)
		fault_close(house.clients[i]);
	fault_close(house.listener);
	end_world(&house.world);
}
