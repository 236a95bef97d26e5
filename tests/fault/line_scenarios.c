/* line_scenarios.c - one program on a bare ring, correct and with mistakes.
 *
 * It polls a descriptor repeatedly, receives a byte, and cancels a receive that nothing else
 * ends.  Each mistake is one that users of io_uring make.  It shows only when a request, a
 * completion or a call fails.  The sweep must find each mistake, and nothing in the correct
 * program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "backend/uring_ring.h"
#include "fault.h"
#include "scenarios.h"

enum mistake {
	NO_MISTAKE,
	FORGETS, /* does not poll again after the kernel has ended the poll */
	REPEATS, /* makes a request again after an error of uring_enter, which took none */
	INSISTS, /* expects that a canceled request ends only with ECANCELED */
};

enum { POLL = 1, RECEIVE, CANCEL, WAITER, REQUESTS }; /* user data */

struct line {
	struct weft__uring ring;
	enum mistake mistake;
	int bell;
	int fds[2], others[2];
	char byte;
	int result[REQUESTS];
	int ends[REQUESTS]; /* completions without F_MORE */
	int rings;          /* poll results of the eventfd `bell` */
};

static void
request(struct line *line, int what)
{
	struct io_uring_sqe *sqe = weft__uring_get(&line->ring);

	if (!sqe)
		return;
	sqe->user_data = (uint64_t)what;
	switch (what) {
	case POLL:
		sqe->opcode = IORING_OP_POLL_ADD;
		sqe->fd = line->bell;
		sqe->poll32_events = POLLIN;
		sqe->len = IORING_POLL_ADD_MULTI;
		break;
	case CANCEL:
		sqe->opcode = IORING_OP_ASYNC_CANCEL;
		sqe->addr = WAITER;
		break;
	default:
		sqe->opcode = IORING_OP_RECV;
		sqe->fd = what == RECEIVE ? line->fds[0] : line->others[0];
		sqe->addr = (uint64_t)(uintptr_t)&line->byte;
		sqe->len = 1;
		break;
	}
}

static void
take(struct line *line, const struct io_uring_cqe *cqe)
{
	int what = (int)cqe->user_data;
	bool ended = !(cqe->flags & IORING_CQE_F_MORE);

	if (what == 0) /* ignored */
		return;
	line->result[what] = cqe->res;
	line->ends[what] += ended;
	if (what == POLL) {
		line->rings += cqe->res > 0;
		if (ended && line->mistake != FORGETS)
			request(line, POLL);
	} else if (what == RECEIVE && cqe->res == -EINTR) {
		line->ends[what]--;
		request(line, RECEIVE);
	} else if (what == WAITER && line->mistake == INSISTS && cqe->res != -ECANCELED) {
		line->ends[what]--;
	}
}

/* Submit, wait a little, and handle the completions.  `what` was requested. */
static void
turn_line(struct line *line, int what)
{
	struct io_uring_cqe cqe;
	int rc = weft__uring_enter(&line->ring, (int64_t)(WAIT_NS / 20));

	if (rc < 0 && line->mistake == REPEATS)
		request(line, what);
	while (weft__uring_next(&line->ring, &cqe))
		take(line, &cqe);
}

static void
ring_bell(struct line *line)
{
	uint64_t one = 1;
	int before = line->rings;

	(void)!write(line->bell, &one, sizeof(one));
	for (int i = 0; i < 4 && line->rings == before; i++)
		turn_line(line, POLL);
	EXPECT(line->rings > before || (fault_hits() > 0 && !fault_is_painless()));
}

static void
receive_one(struct line *line)
{
	put_byte(line->fds[1]);
	put_byte(line->fds[1]); /* for a request too many */
	request(line, RECEIVE);
	for (int i = 0; i < 4; i++)
		turn_line(line, RECEIVE);
	EXPECT(line->ends[RECEIVE] == 1);
	EXPECT(line->result[RECEIVE] == 1 || fault_hits() > 0);
}

static void
cancel_one(struct line *line)
{
	request(line, WAITER);
	turn_line(line, WAITER);
	request(line, CANCEL);
	for (int i = 0; i < 4 && line->ends[WAITER] == 0; i++)
		turn_line(line, CANCEL);
	EXPECT(line->ends[WAITER] == 1);
}

static void
run_mistaken(enum mistake mistake)
{
	weft__a64 calls = { 0 };
	struct line line = { .mistake = mistake, .ring = { .syscalls = &calls } };

	if (weft__uring_open(&line.ring, 4, true) < 0) {
		EXPECT(fault_hits() > 0);
		return;
	}
	line.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (make_blocking_pair(line.fds) && make_blocking_pair(line.others)) {
		request(&line, POLL);
		for (int i = 0; i < 3; i++)
			ring_bell(&line);
		receive_one(&line);
		cancel_one(&line);
	}
	weft__uring_close(&line.ring);
	close_both(line.fds);
	close_both(line.others);
	fault_close(line.bell);
}

void
run_line(const char *backend)
{
	(void)backend;
	run_mistaken(NO_MISTAKE);
}

static void
run_forgets(const char *backend)
{
	(void)backend;
	run_mistaken(FORGETS);
}

static void
run_repeats(const char *backend)
{
	(void)backend;
	run_mistaken(REPEATS);
}

static void
run_insists(const char *backend)
{
	(void)backend;
	run_mistaken(INSISTS);
}

const struct scenario mistaken[] = {
	{ "forgets", run_forgets },
	{ "repeats", run_repeats },
	{ "insists", run_insists },
};
const size_t mistaken_count = sizeof(mistaken) / sizeof(mistaken[0]);
