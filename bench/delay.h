/* delay.h - a proxy that delays every byte in both directions, like a distant network.
 *
 * One process, which accepts connections and connects each to a port of this machine.  It
 * writes everything that it reads half a millisecond later, in order.
 */
#ifndef WEFT_BENCH_DELAY_H
#define WEFT_BENCH_DELAY_H

#include "bench.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "local.h"

#define DELAY_NS    (BENCH_MS / 2)
#define DELAY_PAIRS 64
#define DELAY_BYTES 65536 /* read at once */

/* Delayed bytes, in a list, oldest first. */
struct delay_piece {
	struct delay_piece *next;
	uint64_t due;
	size_t size, sent;
	char data[];
};

/* One direction of a connection. */
struct delay_way {
	int from, to;
	struct delay_piece *first, **end;
	bool blocked; /* `to` is not writable */
};

static inline void
delay_read(struct delay_way *way)
{
	static char buffer[DELAY_BYTES];
	ssize_t size = recv(way->from, buffer, sizeof(buffer), MSG_DONTWAIT);
	struct delay_piece *piece;

	if (size < 0 && errno == EAGAIN)
		return;
	if (size <= 0)
		_exit(0); /* the measurement is over */
	piece = malloc(sizeof(*piece) + (size_t)size);
	BENCH_CHECK(piece);
	*piece = (struct delay_piece){ .due = bench_wall_ns() + DELAY_NS,
		                       .size = (size_t)size };
	memcpy(piece->data, buffer, (size_t)size);
	*way->end = piece;
	way->end = &piece->next;
}

/* Write what is due. */
static inline void
delay_write(struct delay_way *way, uint64_t now)
{
	struct delay_piece *piece;

	way->blocked = false;
	while ((piece = way->first) && piece->due <= now) {
		ssize_t size = send(way->to, piece->data + piece->sent,
		                    piece->size - piece->sent,
		                    MSG_DONTWAIT | MSG_NOSIGNAL);

		if (size < 0 && errno != EAGAIN)
			_exit(0);
		piece->sent += size > 0 ? (size_t)size : 0;
		way->blocked = piece->sent < piece->size;
		if (way->blocked)
			return;
		way->first = piece->next;
		if (!way->first)
			way->end = &way->first;
		free(piece);
	}
}

/* The time until the next piece is due; NULL if there is none. */
static inline struct timespec *
delay_until(const struct delay_way *ways, int count, struct timespec *out)
{
	uint64_t due = UINT64_MAX, now = bench_wall_ns(), wait;

	for (int i = 0; i < count; i++)
		if (ways[i].first && !ways[i].blocked && ways[i].first->due < due)
			due = ways[i].first->due;
	if (due == UINT64_MAX)
		return NULL;
	wait = due > now ? due - now : 0;
	*out = (struct timespec){ 0, (long)wait };
	return out;
}

static inline int
delay_accept(int listener, int port, struct delay_way *ways, int count)
{
	int client = accept(listener, NULL, NULL), server = local_connect(port);

	BENCH_CHECK(client >= 0 && count + 2 <= 2 * DELAY_PAIRS);
	local_hurry(client);
	for (int i = 0; i < 2; i++) {
		struct delay_way *way = &ways[count + i];

		*way = (struct delay_way){ i ? server : client,
			                   i ? client : server, NULL, NULL,
			                   false };
		way->end = &way->first;
	}
	return count + 2;
}

/* Serve until a connection ends, then exit. */
__attribute__((noreturn)) static inline void
delay_serve(int listener, int port)
{
	static struct delay_way ways[2 * DELAY_PAIRS];
	struct pollfd polls[2 * DELAY_PAIRS + 1];
	struct timespec wait;
	int count = 0;

	BENCH_CHECK(prctl(PR_SET_TIMERSLACK, 1) == 0);
	for (;;) {
		polls[0] = (struct pollfd){ listener, POLLIN, 0 };
		for (int i = 0; i < count; i++) {
			/* Each direction writes to the socket that the other one reads. */
			short out = ways[i ^ 1].blocked ? POLLOUT : 0;

			polls[i + 1] = (struct pollfd){ ways[i].from,
				                        POLLIN | out, 0 };
		}
		(void)ppoll(polls, (nfds_t)count + 1,
		            delay_until(ways, count, &wait), NULL);
		for (int i = 0; i < count; i++) {
			if (polls[i + 1].revents & (POLLIN | POLLHUP | POLLERR))
				delay_read(&ways[i]);
			delay_write(&ways[i], bench_wall_ns());
		}
		if (polls[0].revents)
			count = delay_accept(listener, port, ways, count);
	}
}

#endif
