/* wire_file.c - parts of files, as fast as the peer has to take them.
 *
 * The kernel sends them, so nobody here sees the bytes go.  A timer asks it how many the
 * peer has acknowledged, and interrupts the write if that is too few.  Where the kernel
 * does not tell, there is a deadline for the whole.
 */
#include "exchange.h"
#include <weft/loop.h>
#include <weft/timer.h>
#include "os_http.h"

#define TICK_NS WEFT_S

struct pacer {
	weft_timer timer;
	struct weft__http_wire *wire;
	uint64_t tick_ns;
	int64_t acked; /* bytes; -1: not yet known */
};

static void
on_tick(weft_timer *timer, void *arg)
{
	struct pacer *pacer = arg;
	struct weft__http_wire *wire = pacer->wire;
	int64_t acked = weft__http_os_acked(weft_stream_fd(wire->stream));
	int64_t moved = pacer->acked < 0 ? 0 : acked - pacer->acked;

	if (acked < 0) {
		(void)weft_timer_stop(timer);
		return;
	}
	pacer->acked = acked;
	weft__http_pace_spend(wire, &wire->out_pace, pacer->tick_ns,
	                      (uint64_t)moved);
	if (wire->out_pace.left_ns > 0)
		return;
	wire->slow = true;
	(void)weft_timer_stop(timer);
	weft_stream_interrupt(wire->stream);
}

static uint64_t
whole_end(const struct weft__http_wire *wire, uint64_t size)
{
	uint64_t most = UINT64_C(1) << 33; /* no product overflows */

	if (wire->rate_min == 0)
		return WEFT_NEVER;
	size = size < most ? size : most;
	return weft_in(wire->grace_ns + size * WEFT_S / wire->rate_min);
}

static int
write_file(struct weft__http_wire *wire, int fd, struct weft__http_range part,
           uint64_t deadline_ns)
{
	uint64_t end = whole_end(wire, part.size);
	uint64_t until = end < deadline_ns ? end : deadline_ns;
	int64_t n = weft_write_file(wire->stream, fd, part.first, part.size,
	                            until);

	if (n == WEFT_ETIMEDOUT && weft_now() >= end)
		wire->slow = true;
	if (wire->slow)
		return weft_fail(WEFT_ETIMEDOUT,
		                 "http: the peer reads too slowly");
	if (n >= 0 && (uint64_t)n < part.size)
		return weft_fail(WEFT_ETRUNCATED, "http: the file has shrunk");
	return n < 0 ? (int)n : 0;
}

int
weft__http_wire_file(struct weft__http_wire *wire, int fd,
                     struct weft__http_range part, uint64_t deadline_ns)
{
	weft_loop *loop = weft_loop_current();
	struct pacer pacer = { .wire = wire,
		               .tick_ns = wire->grace_ns / 4 < TICK_NS
		                                  ? wire->grace_ns / 4
		                                  : TICK_NS,
		               .acked = -1 };
	int rc = 0;

	if (wire->error)
		return wire->error;
	weft_timer_set_background(&pacer.timer, true);
	if (wire->rate_min)
		rc = weft_timer_start(loop, &pacer.timer,
		                      weft_loop_now(loop) + pacer.tick_ns,
		                      pacer.tick_ns, on_tick, &pacer);
	if (rc == 0)
		rc = write_file(wire, fd, part, deadline_ns);
	(void)weft_timer_stop(&pacer.timer);
	wire->error = rc;
	return rc;
}
