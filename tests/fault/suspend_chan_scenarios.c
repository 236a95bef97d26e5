/* suspend_chan_scenarios.c - channels and selects, disturbed while they wait.
 *
 *   1. A value is received exactly once if its send succeeded, and never otherwise.  A
 *      disturbed call does not access the caller's value after it returns.
 *   2. A select performs exactly one of its cases, or none if it is disturbed.
 *   3. The last sender or receiver that ends closes the channel, so that the other side does
 *      not wait forever.
 */
#include <sys/socket.h>
#include <unistd.h>
#include "fault.h"
#include "suspend.h"

/* Like how().  In addition, WEFT_EPIPE is expected if all `others` have ended and closed the
 * channel. */
static enum went
how_open(int64_t rc, const int *others)
{
	if (rc != WEFT_ECLOSED)
		return how(rc, 0);
	EXPECT(*others == 0);
	return DISTURBED;
}

/* --- channels ----------------------------------------------------------- */

enum { SIDES = 2, VALUES = 3, NONE = 31 };

/* A channel with senders and receivers.  Values are bit numbers in `sent` and `received`.  NONE
 * is never sent. */
struct line {
	weft_chan *chan;
	int senders, receivers;         /* that have not ended */
	int sending[SIDES], got[SIDES]; /* the value of each */
	int senders_came, receivers_came;
	uint32_t sent, received;
};

static int
send_some(void *arg)
{
	struct line *line = arg;
	int number = line->senders_came++, *value = &line->sending[number];
	enum went went = WELL;

	for (int i = 0; i < VALUES && went == WELL; i++) {
		(void)nap(i); /* so that sometimes one side waits, sometimes the other */
		*value = number * VALUES + i;
		RETRY(went,
		      how_open(weft_chan_send(line->chan, value, WEFT_NEVER), &line->receivers));
		if (went == WELL)
			line->sent |= 1u << *value;
		*value = NONE;
	}
	if (--line->senders == 0)
		weft_chan_close(line->chan);
	return 0;
}

static void
note(struct line *line, int value)
{
	EXPECT(!(line->received & 1u << value));
	line->received |= 1u << value;
}

static int
receive_all(void *arg)
{
	struct line *line = arg;
	int *value = &line->got[line->receivers_came++];
	enum went went = WELL;

	while (went == WELL) {
		*value = NONE;
		RETRY(went,
		      how_open(weft_chan_recv(line->chan, value, WEFT_NEVER), &line->senders));
		if (went == WELL) {
			note(line, *value);
			(void)nap(2);
		}
	}
	if (--line->receivers == 0)
		weft_chan_close(line->chan);
	return 0;
}

/* All threadlets have ended; invariant 1. */
static void
end_line(struct line *line)
{
	int value;

	while (weft_chan_recv(line->chan, &value, WEFT_NOWAIT) == 0)
		note(line, value);
	EXPECT(line->received == line->sent);
	for (int i = 0; i < line->receivers_came; i++)
		EXPECT(line->got[i] == NONE);
	weft_chan_unref(line->chan);
}

static int
run_line(const struct stage *stage, size_t capacity)
{
	struct line line = { .chan = weft_chan_new(sizeof(int), capacity, stage->flags),
		             .senders = SIDES,
		             .receivers = SIDES };
	weft_scope scope;

	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	for (int i = 0; i < SIDES; i++) {
		weft_loop *loop = i % 2 ? stage->there : NULL;

		(void)start_in(&scope, loop, send_some, &line);
		(void)start_in(&scope, loop, receive_all, &line);
	}
	EXPECT(weft_scope_close(&scope) == 0);
	end_line(&line);
	return 0;
}

int
run_chan(void *arg)
{
	return run_line(arg, 0);
}

int
run_chan_buffered(void *arg)
{
	return run_line(arg, 1);
}

/* --- closing ------------------------------------------------------------ */

/* One channel is empty, the other full. */
struct doors {
	weft_chan *empty, *full;
	int value;
};

static int
wait_at_empty(void *arg)
{
	struct doors *doors = arg;
	int value = NONE;
	enum went went;

	RETRY(went, how(weft_chan_recv(doors->empty, &value, WEFT_NEVER), WEFT_ECLOSED));
	EXPECT(value == NONE);
	return 0;
}

static int
wait_at_full(void *arg)
{
	struct doors *doors = arg;
	enum went went;

	RETRY(went, how(weft_chan_send(doors->full, &doors->value, WEFT_NEVER), WEFT_ECLOSED));
	return 0;
}

int
run_chan_close(void *arg)
{
	const struct stage *stage = arg;
	struct doors doors = {
		.empty = weft_chan_new(sizeof(int), 0, stage->flags),
		.full = weft_chan_new(sizeof(int), 1, stage->flags),
		.value = 1,
	};
	weft_scope scope;

	EXPECT(weft_chan_send(doors.full, &doors.value, WEFT_NOWAIT) == 0);
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	for (int i = 0; i < 2; i++) {
		weft_loop *loop = i % 2 ? stage->there : NULL;

		(void)start_in(&scope, loop, wait_at_empty, &doors);
		(void)start_in(&scope, loop, wait_at_full, &doors);
	}
	(void)nap(2);
	weft_chan_close(doors.empty);
	weft_chan_close(doors.full);
	EXPECT(weft_scope_close(&scope) == 0);
	weft_chan_unref(doors.empty);
	weft_chan_unref(doors.full);
	return 0;
}

/* --- select ------------------------------------------------------------- */

/* More than eight cases need an allocation; the last ones are empty. */
enum { RECV, SEND, OP, EVENT, JOIN, TIME, CASES = 10 };
enum { FED = 5, REQUEST = 6, RETURNED = 7 };

/* One threadlet selects, and another one makes each of the cases ready. */
struct choice {
	weft_chan *in, *out;
	weft_event event;
	weft_op op;
	char byte;
	int fd;                /* used by the feeder */
	int feeders, choosers; /* that have not ended */
	int sent, value, got;  /* FED, or 0; got: from a chosen case */
	int offered, taken;    /* REQUEST */
	weft_case cases[CASES];
	uint32_t left; /* bit set of the cases that were not chosen */
};

static void
close_both(struct choice *choice)
{
	weft_chan_close(choice->in);
	weft_chan_close(choice->out);
}

static int
feed(void *arg)
{
	struct choice *choice = arg;
	enum went went;
	int value = FED;

	(void)nap(1);
	RETRY(went, how_open(weft_chan_send(choice->in, &value, WEFT_NEVER), &choice->choosers));
	choice->sent = went == WELL ? FED : 0;
	RETRY(went,
	      how_open(weft_chan_recv(choice->out, &choice->taken, WEFT_NEVER), &choice->choosers));
	if (nap(1) == 0)
		EXPECT(write(choice->fd, "b", 1) == 1);
	(void)nap(1);
	choice->feeders--;
	close_both(choice);
	(void)shutdown(choice->fd, SHUT_WR);
	EXPECT(weft_event_set(&choice->event) == 0);
	return RETURNED;
}

/* The second result is possible only after the feeder has ended. */
static void
check_case(const struct choice *choice, int number)
{
	static const int64_t usual[] = { 0, 0, 1, 0, RETURNED, 0 };
	static const int64_t ended[] = { WEFT_ECLOSED, WEFT_ECLOSED, 0, 0, RETURNED, 0 };
	int64_t result = choice->cases[number].result;

	EXPECT(choice->left & 1u << number);
	EXPECT(result == usual[number] || (result == ended[number] && choice->feeders == 0));
	EXPECT(number != EVENT || choice->feeders == 0);
}

/* Select until each case was chosen, or until the threadlet must end. */
static void
choose(struct choice *choice)
{
	while (choice->left) {
		int rc = weft_select(choice->cases, CASES, WEFT_NEVER);
		enum went went = how(rc < 0 ? rc : 0, 0);

		if (went == DISTURBED)
			return;
		if (went == AGAIN)
			continue;
		check_case(choice, rc);
		if (rc == RECV)
			choice->got = choice->value;
		if (rc == SEND && choice->cases[rc].result == 0)
			choice->offered = REQUEST;
		choice->left &= ~(1u << rc);
		choice->cases[rc] = (weft_case)WEFT_INIT;
	}
}

static void
set_cases(struct choice *choice, weft_threadlet feeder)
{
	static int request = REQUEST;
	weft_case *cases = choice->cases;

	cases[RECV] = (weft_case){ .recv = choice->in, .value = &choice->value };
	cases[SEND] = (weft_case){ .send = choice->out, .value = &request };
	cases[OP].op = &choice->op;
	cases[EVENT].event = &choice->event;
	cases[JOIN].joined = feeder > 0 ? feeder : 0;
	cases[TIME].until_ns = weft_after(SHORT_NS);
	choice->left = (1u << (TIME + 1)) - 1;
	if (feeder < 0)
		choice->left &= ~(1u << JOIN);
}

/* The op still belongs to the selecting threadlet; invariant 2. */
static void
end_choice(struct choice *choice)
{
	choice->choosers--;
	close_both(choice);
	weft_op_cancel(&choice->op);
	EXPECT(weft_op_wait(&choice->op, WEFT_NEVER) != WEFT_EINVAL);
	EXPECT(!choice->op.pending);
}

int
run_select(void *arg)
{
	const struct stage *stage = arg;
	struct choice choice = {
		.in = weft_chan_new(sizeof(int), 0, stage->flags),
		.out = weft_chan_new(sizeof(int), 0, stage->flags),
		.event = { .flags = stage->flags },
		.fd = stage->fds[1],
		.feeders = 1,
		.choosers = 1,
	};
	weft_scope scope;

	EXPECT(weft_op_init(&choice.op, NULL, NULL, NULL) == 0);
	EXPECT(weft_op_recv(&choice.op, stage->fds[0], &choice.byte, 1, 0, WEFT_NEVER) == 0);
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	set_cases(&choice, start_in(&scope, stage->there, feed, &choice));
	choose(&choice);
	end_choice(&choice);
	EXPECT(weft_scope_close(&scope) == 0);
	EXPECT(choice.value == choice.sent && choice.got == choice.sent);
	EXPECT(choice.taken == choice.offered);
	weft_chan_unref(choice.in);
	weft_chan_unref(choice.out);
	return 0;
}

/* Only its own deadline ends the select. */
int
run_select_late(void *arg)
{
	const struct stage *stage = arg;
	weft_chan *chan = weft_chan_new(sizeof(int), 0, stage->flags);
	int value = NONE, rc;
	weft_case cases[] = { { .recv = chan, .value = &value },
		              { .until_ns = weft_after(3600 * WEFT_S) } };

	for (int i = 0; i < 2; i++) {
		rc = weft_select(cases, 2, weft_after(SHORT_NS));
		if (how(rc, WEFT_ETIMEDOUT) == DISTURBED)
			break;
	}
	EXPECT(value == NONE);
	weft_chan_unref(chan);
	return 0;
}

/* --- planted ------------------------------------------------------------ */

/* Loses a value that it has received when it must end. */
static int
lose_value(void *arg)
{
	struct line *line = arg;
	int value;

	if (weft_chan_recv(line->chan, &value, WEFT_NOWAIT) == 0 && nap(1) == 0)
		note(line, value);
	return 0;
}

int
plant_value(void *arg)
{
	struct line line = { .chan = weft_chan_new(sizeof(int), 1, 0), .sent = 1u << 0 };
	int value = 0;
	weft_scope scope;

	(void)arg;
	EXPECT(weft_chan_send(line.chan, &value, WEFT_NOWAIT) == 0);
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, lose_value, &line);
	EXPECT(weft_scope_close(&scope) == 0);
	end_line(&line);
	return 0;
}
