/* differ.c - random programs for two kernels.
 *
 * A program has a few slots for descriptors and two epoll sets.  Its next step depends on its
 * seed and on which slots are in use, never on a result, so that both kernels execute the same
 * calls.  Every result is logged: descriptor numbers relative to the first free one, events
 * sorted by their data.
 *
 *   1. Nothing fills up: the capacities of the two kernels differ, and may differ.
 *   2. For AF_UNIX, edges are used for input only.  Linux reports new room for every message
 *      that was read to its end, the simulated kernel for every read.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim/selftest/differ.h"
#include "sim/run/rng.h"

enum { SLOTS = 8, SETS = 2, STEPS = 80, BYTES_MAX = 16, AFTER = 5 };

enum kind { NONE, PIPE, COUNTER, LOCAL, TCP };

struct program {
	const struct host *host;
	struct differ_log *log;
	uint64_t seed, draws;
	bool tcp;
	int base; /* the first free number */
	int sets[SETS];
	int last[SLOTS];       /* the slot's current or last number; -1: none yet */
	enum kind kind[SLOTS]; /* NONE: free */
};

static uint64_t
pick(struct program *program, uint64_t n)
{
	return sim_mix(program->seed, program->draws++) % n;
}

static void
log_step(struct program *program, const char *what, int64_t a, int64_t b, int64_t result)
{
	struct differ_log *log = program->log;

	if (log->count < DIFFER_LOG_MAX)
		log->steps[log->count++] =
			(struct differ_step){ .what = what, .a = a, .b = b, .result = result };
}

static int
free_slot(const struct program *program, int from)
{
	for (int i = from; i < SLOTS; i++)
		if (program->kind[i] == NONE)
			return i;
	return -1;
}

static void
keep(struct program *program, const char *what, int fd, enum kind kind)
{
	int slot = free_slot(program, 0);

	log_step(program, what, slot, kind, fd < 0 ? fd : fd - program->base);
	if (fd < 0)
		return;
	program->last[slot] = fd;
	program->kind[slot] = kind;
}

static void
settle_tcp(struct program *program)
{
	if (program->tcp)
		(void)program->host->sys->poll(NULL, 0, 200000);
}

/* Linux acknowledges a FIN up to 40 ms late, and that makes an edge. */
static void
settle_end(struct program *program, int slot)
{
	for (int i = 0; i < 15 && program->kind[slot] == TCP; i++)
		settle(program->host);
}

/* --- making and closing ----------------------------------------------- */

static void
connect_pair(struct program *program, int out[2])
{
	const struct weft__sys *sys = program->host->sys;
	struct sockaddr_in name = { .sin_family = AF_INET,
		                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(name);
	int listener = sys->socket(AF_INET, SOCK_STREAM, 0);

	(void)sys->bind(listener, (struct sockaddr *)&name, size);
	(void)sys->listen(listener, 5);
	(void)sys->sockname(listener, (struct sockaddr *)&name, &size);
	out[0] = sys->socket(AF_INET, SOCK_STREAM, 0);
	(void)sys->connect(out[0], (struct sockaddr *)&name, size);
	(void)ready_soon(program->host, listener, POLLIN);
	out[1] = sys->accept(listener);
	(void)ready_soon(program->host, out[0], POLLOUT);
	(void)sys->close(listener);
	for (int i = 0; i < 2; i++)
		program->host->no_delay(out[i]);
}

static void
make(struct program *program)
{
	const struct host *host = program->host;
	uint64_t what = pick(program, program->tcp ? 4 : 3);
	int first = free_slot(program, 0), fds[2] = { -1, -1 };

	if (first < 0)
		return;
	if (what == 0) {
		keep(program, "eventfd", host->sys->eventfd(), COUNTER);
		return;
	}
	if (free_slot(program, first + 1) < 0)
		return;
	if (what == 1)
		log_step(program, "pipe", 0, 0, host->sys->pipe(fds));
	else if (what == 2)
		log_step(program, "socketpair", 0, 0, host->socketpair(fds));
	else
		connect_pair(program, fds);
	for (int i = 0; i < 2; i++)
		keep(program, "  end", fds[i], what == 1 ? PIPE : what == 2 ? LOCAL : TCP);
}

static void
twin(struct program *program, int slot)
{
	if (program->kind[slot] != NONE && free_slot(program, 0) >= 0)
		keep(program, "dup", program->host->dup(program->last[slot]), program->kind[slot]);
}

static void
drop(struct program *program, int slot)
{
	if (program->kind[slot] == NONE)
		return;
	program->kind[slot] = NONE;
	log_step(program, "close", slot, 0, program->host->sys->close(program->last[slot]));
	settle_tcp(program);
}

/* --- bytes ------------------------------------------------------------ */

static void
put(struct program *program, int slot)
{
	uint64_t one = 1;
	char bytes[BYTES_MAX] = { 0 };
	size_t size = program->kind[slot] == COUNTER ? sizeof(one) : 1 + pick(program, BYTES_MAX);

	memcpy(bytes, &one, sizeof(one));
	if (program->kind[slot] == NONE)
		return;
	log_step(program, "write", slot, (int64_t)size,
	         program->host->sys->write(program->last[slot], bytes, size));
	settle_tcp(program);
}

static void
get(struct program *program, int slot)
{
	char bytes[4 * BYTES_MAX];
	size_t size = 8 + pick(program, sizeof(bytes) - 8);

	if (program->kind[slot] == NONE)
		return;
	log_step(program, "read", slot, (int64_t)size,
	         program->host->sys->read(program->last[slot], bytes, size));
	settle_tcp(program);
}

static void
look_at_socket(struct program *program, int slot)
{
	const struct weft__sys *sys = program->host->sys;
	char bytes[BYTES_MAX];
	int how = (int)pick(program, 3), error = 0, fd = program->last[slot];

	if (program->kind[slot] == NONE)
		return;
	switch (pick(program, 4)) {
	case 0:
		log_step(program, "shutdown", slot, how, sys->shutdown(fd, how));
		settle_end(program, slot);
		break;
	case 1:
		log_step(program, "so_error", slot, 0, sys->so_error(fd, &error));
		log_step(program, "  gave", slot, 0, error);
		break;
	case 2:
		log_step(program, "peek", slot, 0, sys->recv(fd, bytes, sizeof(bytes), MSG_PEEK));
		break;
	default:
		log_step(program, "kind", slot, 0, sys->kind(fd));
	}
}

/* --- readiness -------------------------------------------------------- */

static uint32_t
draw_events(struct program *program, enum kind kind)
{
	uint32_t events = 0;

	events |= pick(program, 4) ? (uint32_t)EPOLLIN : 0;
	events |= pick(program, 2) ? (uint32_t)EPOLLOUT : 0;
	events |= pick(program, 2) ? (uint32_t)EPOLLRDHUP : 0;
	events |= pick(program, 3) == 0 ? (uint32_t)EPOLLONESHOT : 0;
	events |= pick(program, 2) ? (uint32_t)EPOLLET : 0;
	if (kind == LOCAL && (events & EPOLLET))
		events &= ~(uint32_t)EPOLLOUT;
	return events;
}

static void
change(struct program *program, int slot)
{
	static const int ops[] = { EPOLL_CTL_ADD, EPOLL_CTL_ADD, EPOLL_CTL_ADD,
		                   EPOLL_CTL_MOD, EPOLL_CTL_MOD, EPOLL_CTL_DEL };
	int op = ops[pick(program, 6)];
	int set = (int)pick(program, SETS), fd = program->last[slot];
	struct epoll_event event = { .events = draw_events(program, program->kind[slot]),
		                     .data.u64 = program->draws };

	if (fd < 0)
		return;
	log_step(program, "epoll_ctl", set * 1000 + op * 100 + slot, (int64_t)event.events,
	         program->host->sys->epoll_ctl(program->sets[set], op, fd, &event));
}

static int
by_data(const void *a, const void *b)
{
	uint64_t x = ((const struct epoll_event *)a)->data.u64;
	uint64_t y = ((const struct epoll_event *)b)->data.u64;

	return (x > y) - (x < y);
}

static void
fetch(struct program *program)
{
	struct epoll_event events[32];
	int set = (int)pick(program, SETS);
	int rc = program->host->sys->epoll_wait(program->sets[set], events, 32, 0);

	log_step(program, "epoll_wait", set, 0, rc);
	if (rc > 0)
		qsort(events, (size_t)rc, sizeof(events[0]), by_data);
	for (int i = 0; i < rc; i++)
		log_step(program, "  event", (int64_t)events[i].data.u64, 0, events[i].events);
}

static void
look(struct program *program, int slot)
{
	if (program->kind[slot] != NONE)
		log_step(program, "poll", slot, 0,
		         ready_now(program->host, program->last[slot],
		                   POLLIN | POLLOUT | POLLRDHUP));
}

static void
step(struct program *program)
{
	int slot = (int)pick(program, SLOTS);

	switch (pick(program, 16)) {
	case 0:
	case 1:
		make(program);
		break;
	case 2:
		twin(program, slot);
		break;
	case 3:
		drop(program, slot);
		break;
	case 4:
	case 5:
		put(program, slot);
		break;
	case 6:
	case 7:
		get(program, slot);
		break;
	case 8:
		look_at_socket(program, slot);
		break;
	case 9:
	case 10:
	case 11:
		change(program, slot);
		break;
	case 12:
		look(program, slot);
		break;
	default:
		fetch(program);
	}
}

void
differ_run(const struct host *host, uint64_t seed, bool tcp, struct differ_log *log)
{
	struct program program = { .host = host, .log = log, .seed = seed, .tcp = tcp };

	log->count = 0;
	program.base = host->open_file(1);
	(void)host->sys->close(program.base);
	for (int i = 0; i < SETS; i++)
		program.sets[i] = host->sys->epoll_create();
	for (int i = 0; i < SLOTS; i++)
		program.last[i] = -1;
	for (int i = 0; i < STEPS; i++)
		step(&program);
	for (int i = 0; i < SLOTS; i++)
		drop(&program, i);
	for (int i = 0; i < SETS; i++) {
		fetch(&program);
		(void)host->sys->close(program.sets[i]);
	}
}

/* The number of equal steps at the beginning. */
static size_t
equal_steps(const struct differ_log *real, const struct differ_log *simulated)
{
	size_t at = 0;

	while (at < real->count && at < simulated->count) {
		const struct differ_step *a = &real->steps[at];
		const struct differ_step *b = &simulated->steps[at];

		if (strcmp(a->what, b->what) != 0 || a->a != b->a || a->b != b->b
		    || a->result != b->result)
			break;
		at++;
	}
	return at;
}

bool
differ_equal(const struct differ_log *real, const struct differ_log *simulated)
{
	return real->count == simulated->count && equal_steps(real, simulated) == real->count;
}

static void
print_step(const char *who, const struct differ_step *step)
{
	(void)printf("%s %s(%lld, 0x%llx) = %lld\n", who, step->what, (long long)step->a,
	             (unsigned long long)step->b, (long long)step->result);
}

void
differ_print(const struct differ_log *real, const struct differ_log *simulated)
{
	size_t equal = equal_steps(real, simulated);

	for (size_t i = 0; i < equal; i++)
		print_step("  both:", &real->steps[i]);
	for (size_t i = equal; i < real->count && i < equal + AFTER; i++)
		print_step("  real:", &real->steps[i]);
	for (size_t i = equal; i < simulated->count && i < equal + AFTER; i++)
		print_step("  simulated:", &simulated->steps[i]);
}
