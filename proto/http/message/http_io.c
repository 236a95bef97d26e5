/* http_io.c - bytes of an exchange to and from its stream.
 *
 * Output is collected in a buffer, so that the replies to pipelined requests, or a head and its
 * body, leave in one write.
 *
 * A peer may make no progress for some time: its pace, initially grace_ns.  Each wait uses the
 * pace up, and each byte that the peer moves adds to the pace, up to pause_ns.  So a transfer of
 * any length finishes if its average rate is above rate_min, and a peer that stops is dropped.
 * The kernels on both sides move bytes in bursts of up to a megabyte, which may be minutes
 * apart for a slow reader.  Therefore output counts as moved when the peer acknowledges it, not
 * when the kernel accepts it; and pause_ns has to cover the time between two acknowledgments.
 */
#include "http/message/exchange.h"
#include <weft/select.h>

#define SPANS    7
#define COPY_MAX (WEFT__HTTP_SLAB / 2)
#define CHECKS   8 /* checks of a pending write per pause_ns */

int
weft__http_io_init(struct weft__http_io *io, weft_stream *stream)
{
	*io = (struct weft__http_io){
		.stream = stream,
		.local = weft__http_local(),
	};
	return io->local ? 0 : weft_fail(WEFT_ENOMEM, "weft_http_*: out of memory");
}

void
weft__http_io_fini(struct weft__http_io *io)
{
	weft__http_slab_give(io->local, io->out);
	io->out = NULL;
	io->out_size = 0;
}

/* --- pace ------------------------------------------------------------------ */

uint64_t
weft__http_pace_end(const struct weft__http_io *io, const struct weft__http_pace *pace,
                    uint64_t now_ns)
{
	if (io->rate_min == 0 || pace->left_ns > WEFT_NEVER - now_ns)
		return WEFT_NEVER;
	return now_ns + pace->left_ns;
}

void
weft__http_pace_spend(const struct weft__http_io *io, struct weft__http_pace *pace,
                      uint64_t waited_ns, uint64_t bytes)
{
	uint64_t most = UINT64_C(1) << 33; /* prevents overflow of the product */
	uint64_t cap = io->grace_ns > io->pause_ns ? io->grace_ns : io->pause_ns;
	uint64_t left = pace->left_ns > waited_ns ? pace->left_ns - waited_ns : 0;

	if (io->rate_min == 0)
		return;
	bytes = bytes < most ? bytes : most;
	left += bytes * WEFT_S / io->rate_min;
	pace->left_ns = left < cap ? left : cap;
}

static void
report_progress(struct weft__http_io *io)
{
	if (io->on_progress)
		io->on_progress(io);
}

void
weft__http_io_waited(struct weft__http_io *io, uint64_t waited_ns)
{
	int64_t unsent = 0;
	uint64_t moved = 0;

	(void)weft_stream_get(io->stream, "unsent", &unsent);
	if ((uint64_t)unsent < io->unsent)
		moved = io->unsent - (uint64_t)unsent;
	io->unsent = (uint64_t)unsent;
	weft__http_pace_spend(io, &io->out_pace, waited_ns, moved);
	if (moved > 0)
		report_progress(io);
}

static uint64_t
earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t
weft__http_io_recheck(const struct weft__http_io *io, uint64_t now_ns)
{
	return earlier(weft__http_pace_end(io, &io->out_pace, now_ns),
	               now_ns + io->pause_ns / CHECKS);
}

/* --- output ---------------------------------------------------------------- */

/* Wait for a write op, as long as the peer accepts bytes fast enough. */
static int
wait_paced(struct weft__http_io *io, weft_op *op, uint64_t deadline_ns)
{
	weft_case wait = { .op = op };

	for (;;) {
		uint64_t now = weft_now(), then;
		uint64_t check_ns = weft__http_io_recheck(io, now);
		int rc = weft_select(&wait, 1, earlier(check_ns, deadline_ns));

		then = weft_now();
		weft__http_io_waited(io, then - now);
		if (rc == 0)
			return wait.result < 0 ? (int)wait.result : 0;
		if (rc != WEFT_ETIMEDOUT || deadline_ns <= then)
			return rc;
		if (io->out_pace.left_ns == 0) {
			io->slow = true;
			return weft_fail(WEFT_ETIMEDOUT, "weft_http_*: the peer reads too slowly");
		}
		if (then < check_ns) /* the deadline of an enclosing scope */
			return rc;
	}
}

/* The kernel's buffer is full: send the rest with an op. */
static int
send_paced(struct weft__http_io *io, const weft_span *spans, size_t count, uint64_t deadline_ns)
{
	weft_op op;
	int rc;

	for (size_t i = 0; i < count; i++)
		io->unsent += spans[i].size;
	(void)weft_op_init(&op, NULL, NULL, NULL);
	rc = weft_stream_write_op(io->stream, spans, count, &op, WEFT_NEVER);
	if (rc < 0)
		return rc;
	rc = io->wait ? io->wait(io, &op, deadline_ns) : wait_paced(io, &op, deadline_ns);
	if (op.pending) {
		weft_op_cancel(&op);
		(void)weft_op_wait(&op, WEFT_NEVER);
		if (rc < 0) /* by now weft_detail() is about the end of `op` */
			rc = weft_fail(rc, "%s", weft_strerror(rc));
	}
	return rc;
}

/* Remove `size` bytes from the front. */
static void
advance(weft_span **spans, size_t *count, size_t size)
{
	while (*count > 0 && size >= (*spans)->size) {
		size -= (*spans)->size;
		(*spans)++;
		(*count)--;
	}
	if (*count > 0) {
		(*spans)->data = (const char *)(*spans)->data + size;
		(*spans)->size -= size;
	}
}

/* Send all bytes; changes `spans`. */
static int
send_all(struct weft__http_io *io, weft_span *spans, size_t count, uint64_t deadline_ns)
{
	int rc = io->wait ? io->wait(io, NULL, deadline_ns) : 0;
	ssize_t n = rc < 0 ? rc : weft_stream_write_some(io->stream, spans, count);

	if (n >= 0) {
		io->unsent += (uint64_t)n;
		report_progress(io);
		advance(&spans, &count, (size_t)n);
	}
	if (n < 0)
		rc = (int)n;
	else if (count > 0)
		rc = send_paced(io, spans, count, deadline_ns);
	io->error = rc;
	return rc;
}

int
weft__http_io_flush(struct weft__http_io *io, uint64_t deadline_ns)
{
	weft_span span = { io->out, io->out_size };

	if (io->error || io->out_size == 0)
		return io->error;
	io->out_size = 0;
	return send_all(io, &span, 1, deadline_ns);
}

void
weft__http_io_rest(struct weft__http_io *io)
{
	if (io->out && io->out_size == 0) {
		weft__http_slab_give(io->local, io->out);
		io->out = NULL;
	}
}

char *
weft__http_io_room(struct weft__http_io *io, size_t size, uint64_t deadline_ns)
{
	if (io->error)
		return NULL;
	if (!io->out) {
		io->out = weft__http_slab_take(io->local);
		if (!io->out) {
			io->error = weft_fail(WEFT_ENOMEM, "weft_http_*: out of memory");
			return NULL;
		}
	}
	if (size > WEFT__HTTP_SLAB - io->out_size && weft__http_io_flush(io, deadline_ns) < 0)
		return NULL;
	return io->out + io->out_size;
}

int
weft__http_io_put(struct weft__http_io *io, const void *bytes, size_t size, uint64_t deadline_ns)
{
	char *at = weft__http_io_room(io, size, deadline_ns);

	if (!at)
		return io->error;
	if (size > 0)
		memcpy(at, bytes, size);
	weft__http_io_add(io, at + size);
	return 0;
}

static int
put_spans(struct weft__http_io *io, const weft_span *spans, size_t count, uint64_t deadline_ns)
{
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = weft__http_io_put(io, spans[i].data, spans[i].size, deadline_ns);
	return rc;
}

int
weft__http_io_send(struct weft__http_io *io, const weft_span *spans, size_t count, bool now,
                   uint64_t deadline_ns)
{
	weft_span all[SPANS] = { { io->out, io->out_size } };
	size_t total = 0, used = io->out_size > 0;

	if (io->error)
		return io->error;
	for (size_t i = 0; i < count && used < SPANS; i++) {
		total += spans[i].size;
		if (spans[i].size > 0)
			all[used++] = spans[i];
	}
	if (!now && total <= COPY_MAX)
		return put_spans(io, spans, count, deadline_ns);
	io->out_size = 0;
	return used > 0 ? send_all(io, all, used, deadline_ns) : 0;
}

/* --- input ----------------------------------------------------------------- */

ssize_t
weft__http_io_peek(struct weft__http_io *io, size_t min, const void **out, uint64_t deadline_ns)
{
	ssize_t n;

	if (io->out_size > 0) {
		n = weft_stream_peek(io->stream, 0, out, WEFT_NOWAIT);
		if (n < 0 || (size_t)n >= min)
			return n;
		n = weft__http_io_flush(io, deadline_ns);
		if (n < 0)
			return n;
	}
	return weft_stream_peek(io->stream, min, out, deadline_ns);
}

ssize_t
weft__http_io_peek_paced(struct weft__http_io *io, size_t min, const void **out,
                         struct weft__http_pace *pace, uint64_t deadline_ns)
{
	ssize_t here = weft_stream_peek(io->stream, 0, out, WEFT_NOWAIT), n;
	uint64_t begin, end, waited;

	if (here < 0 || (size_t)here >= min)
		return here;
	n = weft__http_io_flush(io, deadline_ns);
	if (n < 0)
		return n;
	begin = weft_now();
	end = weft__http_pace_end(io, pace, begin);
	n = weft_stream_peek(io->stream, min, out, earlier(end, deadline_ns));
	waited = weft_now() - begin;
	weft__http_pace_spend(io, pace, waited, n > here ? (uint64_t)(n - here) : 0);
	if (n > here)
		report_progress(io);
	if (n == WEFT_ETIMEDOUT && io->rate_min && pace->left_ns == 0) {
		io->slow = true;
		return weft_fail(WEFT_ETIMEDOUT, "weft_http_*: the peer sends too slowly");
	}
	return n;
}

bool
weft__http_has_more(struct weft__http_io *io)
{
	const void *data;

	return weft_stream_peek(io->stream, 0, &data, WEFT_NOWAIT) > 0;
}
