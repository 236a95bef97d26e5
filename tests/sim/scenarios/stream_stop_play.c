/* stream_stop_play.c - streams with callbacks and queued writes on a loop that stops.
 *
 * Pairs of streams write to each other and read less than that, so that writes wait.  Then the
 * loop is stopped, from another thread or by a callback that closes streams in the same call.
 * The other streams are closed when on_data reports the stop, or when a write ends.
 *
 *   1. on_close of a stream is called once, after the results of all ops on it.
 *   2. No callback runs inside a call of the program.
 *   3. When the loop has stopped, every stream is closed.
 */
#include <string.h>
#include <weft/weft.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/stream_play.h"

enum { PAIRS = 6, ENDS = 2 * PAIRS, OPS = 4, PIECE = 1 << 15 };

struct end {
	weft_stream *stream; /* NULL: closed, or never made */
	uint32_t pending;
	struct once once;
	weft_op ops[OPS];
	weft_span span;
};

static struct {
	struct host host;
	struct end ends[ENDS];
	bool inside; /* a call that must not run callbacks is on the stack */
	enum spoil spoil;
} play;

static char piece[PIECE];

static bool
spoils(enum spoil spoil)
{
	if (play.spoil != spoil)
		return false;
	play.spoil = SPOIL_NOTHING;
	return true;
}

static void
check_outside(void)
{
	if (play.inside)
		sim_fail("a callback inside a call");
}

static void
on_closed(void *arg)
{
	struct end *end = arg;

	check_outside();
	if (end->pending > 0)
		sim_fail("on_close comes before %u results", end->pending);
	once_end(&end->once);
}

static void
close_end(struct end *end)
{
	weft_stream *stream = end->stream;

	if (!stream)
		return;
	if (end->pending > 0 && spoils(SPOIL_ORDER))
		on_closed(end);
	end->stream = NULL;
	play.inside = true;
	if (spoils(SPOIL_INSIDE))
		on_closed(end);
	if (sim_random_below(3) == 0)
		weft_stream_reset(stream);
	else
		weft_stream_close(stream);
	play.inside = false;
}

static void
on_written(weft_op *op, int64_t result, void *arg)
{
	struct end *end = arg;

	(void)op, (void)result;
	check_outside();
	end->pending--;
	if (sim_random_below(4) == 0)
		close_end(end);
}

static void
write_some(struct end *end)
{
	for (int i = 0; i < OPS && end->stream; i++) {
		if (end->ops[i].pending || sim_random_below(2))
			continue;
		end->span = (weft_span){ piece, sizeof(piece) };
		sim_check(weft_op_init(&end->ops[i], NULL, on_written, end) == 0);
		play.inside = true;
		if (weft_stream_write_op(end->stream, &end->span, 1, &end->ops[i], WEFT_NEVER) >= 0)
			end->pending++;
		play.inside = false;
	}
}

static void
on_data(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct end *end = arg;

	(void)data;
	check_outside();
	if (size <= 0) {
		close_end(end);
		return;
	}
	if (weft_stream_skip(stream, 1 + sim_random_below((uint64_t)size)) == 0)
		write_some(end);
}

static const weft_stream_events events = { .on_data = on_data, .on_close = on_closed };

static void
start_end(struct end *end)
{
	(void)weft_stream_set(end->stream, "linger_ns", (int64_t)sim_random_below(WEFT_S));
	if (weft_stream_start(end->stream, NULL, &events, end) == 0) {
		once_begin(&end->once);
		write_some(end);
		return;
	}
	weft_stream_close(end->stream);
	end->stream = NULL;
}

static void
start_all(void *arg)
{
	(void)arg;
	for (int i = 0; i < PAIRS; i++) {
		struct end *a = &play.ends[2 * i], *b = a + 1;

		if (open_stream_pair(&a->stream, &b->stream) < 0)
			continue;
		start_end(a);
		start_end(b);
	}
}

/* Stop the loop, and close some streams before and after that. */
static void
stop_here(void *arg)
{
	(void)arg;
	for (int i = 0; i < ENDS; i++)
		if (sim_random_below(4) == 0)
			close_end(&play.ends[i]);
	weft_loop_shutdown(play.host.loop);
	for (int i = 0; i < ENDS; i++)
		if (sim_random_below(2))
			close_end(&play.ends[i]);
}

void
stream_stop_play(enum spoil spoil)
{
	memset(&play, 0, sizeof(play));
	play.spoil = spoil;
	host_make(&play.host);
	host_run(&play.host);
	host_call(&play.host, start_all, NULL);
	pause_ns(sim_random_below(UINT64_C(1) << (8 + sim_random_below(20))));
	if (sim_random_below(4) > 0)
		host_call(&play.host, stop_here, NULL);
	host_end(&play.host);
	for (int i = 0; i < ENDS; i++)
		if (play.ends[i].once.begun > 0)
			once_check(&play.ends[i].once);
}
