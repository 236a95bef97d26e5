/* http_io_file.c - send a part of a file, with a minimum pace.
 *
 * The kernel sends the bytes.  A timer periodically checks how many are left, and interrupts
 * the write once the peer's pace has run out.
 */
#include "http/message/exchange.h"
#include <weft/loop.h>
#include <weft/timer.h>

struct look {
	weft_timer timer;
	struct weft__http_io *io;
	uint64_t since_ns;
};

static void
look_now(struct look *look)
{
	uint64_t now = weft_now();

	weft__http_io_waited(look->io, now - look->since_ns);
	look->since_ns = now;
}

static int start_look(struct look *look);

static void
on_look(weft_timer *timer, void *arg)
{
	struct look *look = arg;
	struct weft__http_io *io = look->io;

	(void)timer;
	look_now(look);
	if (io->out_pace.left_ns > 0 && start_look(look) == 0)
		return;
	io->slow = true;
	weft_stream_interrupt(io->stream);
}

static int
start_look(struct look *look)
{
	uint64_t at_ns = weft__http_io_recheck(look->io, look->since_ns);

	return at_ns == WEFT_NEVER ? 0
	                           : weft_timer_start(weft_loop_current(), &look->timer, at_ns, 0,
	                                              on_look, look);
}

int
weft__http_io_file(struct weft__http_io *io, int fd, struct weft__http_range part,
                   uint64_t deadline_ns)
{
	struct look look = { .timer = WEFT_INIT, .io = io, .since_ns = weft_now() };
	int64_t n;

	if (io->error)
		return io->error;
	io->unsent += part.size;
	weft_timer_set_background(&look.timer, true);
	n = start_look(&look);
	if (n == 0)
		n = weft_stream_write_file(io->stream, fd, part.first, part.size, deadline_ns);
	(void)weft_timer_stop(&look.timer);
	if (n == WEFT_EINTR && io->slow)
		n = weft_fail(WEFT_ETIMEDOUT, "http: the peer reads too slowly");
	if (n >= 0 && (uint64_t)n < part.size)
		n = weft_fail(WEFT_ETRUNCATED, "http: the file became shorter while it was sent");
	io->error = n < 0 ? (int)n : 0;
	return io->error;
}
