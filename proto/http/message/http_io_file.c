/* http_io_file.c - send a part of a file, as long as the peer's pace lasts.
 *
 * One call of the stream sends all bytes.  A timer periodically checks how many the peer has
 * acknowledged, and interrupts the call once the peer's pace has run out.
 */
#include "http/message/exchange.h"
#include <weft/loop.h>
#include <weft/timer.h>

struct check {
	weft_timer timer;
	struct weft__http_io *io;
	uint64_t since_ns;
};

static void
check_now(struct check *check)
{
	uint64_t now = weft_now();

	weft__http_io_waited(check->io, now - check->since_ns);
	check->since_ns = now;
}

static int start_check(struct check *check);

static void
on_check(weft_timer *timer, void *arg)
{
	struct check *check = arg;
	struct weft__http_io *io = check->io;

	(void)timer;
	check_now(check);
	if (io->out_pace.left_ns > 0 && start_check(check) == 0)
		return;
	io->slow = true;
	weft_stream_interrupt(io->stream);
}

static int
start_check(struct check *check)
{
	uint64_t at_ns = weft__http_io_recheck(check->io, check->since_ns);

	return at_ns == WEFT_NEVER ? 0
	                           : weft_timer_start(weft_loop_current(), &check->timer, at_ns, 0,
	                                              on_check, check);
}

int
weft__http_io_file(struct weft__http_io *io, int fd, struct weft__http_range part,
                   uint64_t deadline_ns)
{
	struct check check = { .timer = WEFT_INIT, .io = io, .since_ns = weft_now() };
	int64_t n;

	if (io->error)
		return io->error;
	io->unsent += part.size;
	weft_timer_set_background(&check.timer, true);
	n = start_check(&check);
	if (n == 0)
		n = weft_stream_write_file(io->stream, fd, part.first, part.size, deadline_ns);
	(void)weft_timer_stop(&check.timer);
	if (n == WEFT_EINTR && io->slow)
		n = weft_fail(WEFT_ETIMEDOUT, "weft_http_*: the peer reads too slowly");
	if (n >= 0 && (uint64_t)n < part.size)
		n = weft_fail(WEFT_ETRUNCATED,
		              "weft_http_reply_file: the file became shorter while it was sent");
	io->error = n < 0 ? (int)n : 0;
	return io->error;
}
