/* wire_file.c - parts of files, as fast as the peer has to take them.
 *
 * The kernel sends them, so nobody here sees the bytes go.  A timer looks at what is left
 * each time that the peer's grace would be used up, and interrupts the write if the peer
 * has used it up.
 */
#include "exchange.h"
#include <weft/loop.h>
#include <weft/timer.h>

struct look {
	weft_timer timer;
	struct weft__http_wire *wire;
	uint64_t since_ns;
	uint64_t left; /* bytes, then */
};

static void
look_at(struct look *look, uint64_t left)
{
	uint64_t now = weft_now();
	/* What grows is another piece of the same file. */
	uint64_t moved = left <= look->left ? look->left - left : look->left;

	weft__http_pace_spend(look->wire, &look->wire->out_pace,
	                      now - look->since_ns, moved);
	look->since_ns = now;
	look->left = left;
}

static int start_look(struct look *look);

static void
on_look(weft_timer *timer, void *arg)
{
	struct look *look = arg;
	struct weft__http_wire *wire = look->wire;
	int64_t queued = 0;

	(void)timer;
	(void)weft_stream_get(wire->stream, "queued", &queued);
	look_at(look, (uint64_t)queued);
	if (wire->out_pace.left_ns > 0 && start_look(look) == 0)
		return;
	wire->slow = true;
	weft_stream_interrupt(wire->stream);
}

static int
start_look(struct look *look)
{
	uint64_t end = weft__http_pace_end(look->wire, &look->wire->out_pace,
	                                   look->since_ns);

	return end == WEFT_NEVER
	               ? 0
	               : weft_timer_start(weft_loop_current(), &look->timer,
	                                  end, 0, on_look, look);
}

int
weft__http_wire_file(struct weft__http_wire *wire, int fd,
                     struct weft__http_range part, uint64_t deadline_ns)
{
	struct look look = { .timer = WEFT_INIT,
		             .wire = wire,
		             .since_ns = weft_now(),
		             .left = part.size };
	int64_t n;

	if (wire->error)
		return wire->error;
	weft_timer_set_background(&look.timer, true);
	n = start_look(&look);
	if (n == 0)
		n = weft_write_file(wire->stream, fd, part.first, part.size,
		                    deadline_ns);
	(void)weft_timer_stop(&look.timer);
	look_at(&look, 0);
	if (n == WEFT_EINTR && wire->slow)
		n = weft_fail(WEFT_ETIMEDOUT,
		              "http: the peer reads too slowly");
	if (n >= 0 && (uint64_t)n < part.size)
		n = weft_fail(WEFT_ETRUNCATED, "http: the file has shrunk");
	wire->error = n < 0 ? (int)n : 0;
	return wire->error;
}
