/* late_scenarios.c - a loop that is held up while bytes arrive and deadlines pass.
 *
 * A callback sends to some of the waiters, and keeps the loop busy for a while, in which their
 * deadlines pass.  A waiter whose byte arrived in time must get a result.  As many ops as one
 * poll can fetch, and more, end at about the same time.
 */
#include <string.h>
#include <weft/stream.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/scenarios.h"

enum { LINES = 300, CALLS = 3000, RECV = 0, MULTI, POLL, PEEK, KINDS };

struct late_line {
	int ends[2];
	weft_stream *stream; /* for PEEK */
	weft_op op;
	struct once once;
	uint64_t deadline_ns, arrived_ns;
	uint64_t kind;
	char byte;
};

static struct {
	weft_loop *loop;
	struct late_line lines[LINES];
	weft_timer holder;
	int left; /* calls still to be made */
} late;

static int
begin_call(struct late_line *line)
{
	switch (line->kind) {
	case RECV:
		return weft_op_recv(&line->op, line->ends[0], &line->byte, 1, 0, line->deadline_ns);
	case MULTI:
		return weft_op_recv_multi(&line->op, line->ends[0], line->deadline_ns);
	case POLL:
		return weft_op_poll(&line->op, line->ends[0], WEFT_READABLE, line->deadline_ns);
	default:
		return weft_stream_peek_op(line->stream, 1, &line->op, line->deadline_ns);
	}
}

/* A call that cannot begin is begun later, by hold(). */
static void
call_line(struct late_line *line)
{
	if (late.left == 0)
		return;
	line->deadline_ns = weft_after(sim_random_below(4 * WEFT_MS));
	if (begin_call(line) < 0)
		return;
	late.left--;
	once_begin(&line->once);
}

/* Consume what has arrived. */
static void
empty_line(struct late_line *line, int64_t result)
{
	char bytes[16];

	if (line->kind == PEEK && result > 0)
		sim_check(weft_stream_skip(line->stream, (size_t)result) == 0);
	if (line->kind == POLL)
		result = weft__sys->recv(line->ends[0], bytes, sizeof(bytes), 0);
	if (result > 0)
		line->arrived_ns = 0;
}

static void
on_late_done(weft_op *op, int64_t result, void *arg)
{
	struct late_line *line = arg;

	late_check(result, line->arrived_ns, line->deadline_ns);
	empty_line(line, result);
	if (op->more)
		return;
	once_end(&line->once);
	call_line(line);
}

static void
feed_line(struct late_line *line)
{
	if (!once_is_open(&line->once) || line->arrived_ns > 0)
		return;
	if (weft__sys->send(line->ends[1], "x", 1, 0) == 1)
		line->arrived_ns = sim_time();
}

static bool
is_over(void)
{
	for (int i = 0; i < LINES; i++)
		if (once_is_open(&late.lines[i].once))
			return false;
	return late.left == 0;
}

static void
hold(weft_timer *timer, void *arg)
{
	uint64_t share = 1 + sim_random_below(4);

	(void)arg;
	if (is_over()) {
		(void)weft_timer_stop(timer);
		return;
	}
	for (int i = 0; i < LINES; i++) {
		if (!once_is_open(&late.lines[i].once))
			call_line(&late.lines[i]);
		else if (sim_random_below(share) == 0)
			feed_line(&late.lines[i]);
	}
	pause_ns(sim_random_below(6 * WEFT_MS));
}

static void
open_line(struct late_line *line, uint64_t kind)
{
	memset(line, 0, sizeof(*line));
	line->kind = kind;
	while (sim_socketpair(line->ends) < 0)
		continue;
	if (kind == PEEK)
		while (weft_stream_open_fd(line->ends[0], true, &line->stream) < 0)
			continue;
	sim_check(weft_op_init(&line->op, late.loop, on_late_done, line) == 0);
}

static void
close_line(struct late_line *line)
{
	once_check(&line->once);
	if (line->stream)
		weft_stream_reset(line->stream);
}

static void
run_late(void *arg)
{
	weft_loop_opts opts = WEFT_INIT;

	(void)arg;
	sim_heal(); /* a poll that fails would find nothing */
	late.left = CALLS;
	late.loop = loop_make(&opts);
	memset(&late.holder, 0, sizeof(late.holder));
	for (uint64_t i = 0; i < LINES; i++)
		open_line(&late.lines[i], i % KINDS);
	sim_check(weft_timer_start(late.loop, &late.holder, weft_after(0), WEFT_MS, hold, NULL)
	          == 0);
	sim_check(weft_loop_run(late.loop) == 0);
	for (int i = 0; i < LINES; i++)
		close_line(&late.lines[i]);
	sim_check(weft_loop_run(late.loop) == 0);
	for (int i = 0; i < LINES; i++)
		for (int end = 0; end < 2; end++)
			(void)weft__sys->close(late.lines[i].ends[end]);
	weft_loop_shutdown(late.loop);
	sim_check(weft_loop_free(late.loop) == 0);
}

const struct sim_scenario sim_scenario_late = { .name = "loop_late", .run = run_late };
