/* events.c - stream callbacks: received bytes, room to write, the end. */
#include "net/stream/stream.h"

/* on_buffer is called for memory only if at least this many bytes are queued. */
#define MUCH 4096u

static bool
is_started(const weft_stream *stream)
{
	return stream->flags & WEFT__STREAM_STARTED;
}

static void
stream_events_begin(weft_stream *stream)
{
	weft_loop *loop = weft__stream_loop(stream);
	struct weft__net *net = weft__net_of(loop);

	if (is_started(stream))
		return;
	stream->flags |= WEFT__STREAM_STARTED;
	stream->next = net->started;
	if (stream->next)
		stream->next->link = &stream->next;
	stream->link = &net->started;
	net->started = stream;
}

void
weft__events_end(weft_stream *stream)
{
	if (!is_started(stream))
		return;
	stream->flags &= ~(uint32_t)WEFT__STREAM_STARTED;
	*stream->link = stream->next;
	if (stream->next)
		stream->next->link = stream->link;
	stream->link = NULL;
}

/* --- reports ------------------------------------------------------------ */

/* Move bytes into `buf`, the memory of on_buffer, unless on_buffer has stopped the callbacks or
 * skipped all bytes. */
static weft_span
stream_events_move(weft_stream *stream, void *buf, size_t size)
{
	if (!is_started(stream) || stream->in_queue.size == 0)
		return (weft_span){ NULL, 0 };
	size = weft__queue_take(&stream->in_queue, &weft__net_of(weft__stream_loop(stream))->chunks,
	                        buf, size);
	weft__stream_fd_skip(stream, size);
	weft__receive_more(stream);
	weft__events_again(stream);
	return (weft_span){ buf, size };
}

/* The first piece of the queue. */
static inline weft_span
stream_events_piece(const weft_stream *stream)
{
	const void *data = NULL;
	size_t size = is_started(stream) ? weft__queue_piece(&stream->in_queue, &data) : 0;

	return (weft_span){ data, size };
}

/* Whether on_data is to report the end now.  It reports the end once, after all bytes were skipped,
 * but the stop of the loop at once. */
static inline bool
stream_events_take_end(weft_stream *stream)
{
	int state = weft__receive_state(stream);

	if (state > 0 || !is_started(stream)
	    || (stream->in_queue.size > 0 && state != WEFT_ESHUTDOWN))
		return false;
	weft__events_end(stream);
	return true;
}

/* Report received bytes, the end or an error.  A callback may close the stream, which is freed
 * after the callback has returned: so the stream may be gone afterwards.
 *
 * Inlined into its callers, which the loop calls: so there are no further frames between the loop
 * and the program. */
static inline __attribute__((always_inline)) void
stream_events_report(weft_stream *stream)
{
	size_t size = stream->in_queue.size;
	void *buf = NULL;
	weft_span bytes;

	stream->flags &= ~(uint32_t)WEFT__STREAM_AGAIN;
	stream->flags |= WEFT__STREAM_CALLED;
	if (size >= MUCH && stream->events.on_buffer)
		buf = stream->events.on_buffer(stream, &size, stream->arg);
	bytes = buf && size > 0 ? stream_events_move(stream, buf, size)
	                        : stream_events_piece(stream);
	if (bytes.size > 0)
		stream->events.on_data(stream, bytes.data, (ssize_t)bytes.size, stream->arg);
	if (stream_events_take_end(stream))
		stream->events.on_data(stream, NULL, weft__receive_state(stream), stream->arg);
	weft__events_returned(stream);
	if (stream->flags & WEFT__STREAM_CLOSING)
		(void)weft__close_go_on(stream);
}

void
weft__events_on_received(weft_op *op, int64_t result, void *arg)
{
	weft_stream *stream = arg;

	if (!weft__receive_result(stream, op, result))
		return;
	if (is_started(stream))
		stream_events_report(stream);
	else
		weft__reader_serve(stream);
}

/* An interrupt may have posted the letter, or weft__events_again(), or both. */
void
weft__events_on_letter(struct weft__mailbox *box, struct weft__letter *letter)
{
	weft_stream *stream = weft__letter_stream(letter);

	if (!weft__stream_open_letter(stream))
		return;
	weft__stream_end_wait(stream);
	if (stream->flags & WEFT__STREAM_CLOSING)
		(void)weft__close_go_on(stream);
	else if ((stream->flags & WEFT__STREAM_AGAIN) && is_started(stream))
		stream_events_report(stream);
	weft__checkpoint(box->loop);
}

bool
weft__events_begin_drain(weft_stream *stream)
{
	if (!(stream->flags & WEFT__STREAM_HIGH) || stream->queued > stream->low_water)
		return false;
	stream->flags &= ~(uint32_t)WEFT__STREAM_HIGH;
	if (!stream->events.on_drain || (stream->flags & WEFT__STREAM_CLOSING))
		return false;
	stream->flags |= WEFT__STREAM_CALLED;
	return true;
}

void
weft__events_again(weft_stream *stream)
{
	if (!is_started(stream) || (stream->in_queue.size == 0 && weft__receive_state(stream) > 0))
		return;
	stream->flags |= WEFT__STREAM_AGAIN;
	if (!(stream->flags & WEFT__STREAM_CALLED))
		weft__stream_post(stream);
}

/* The flag AGAIN may be out of date: since it was set, the callback may have skipped all bytes, or
 * the end may have been reported.  So it is set again, if there is still something to report. */
void
weft__events_returned(weft_stream *stream)
{
	bool again = stream->flags & WEFT__STREAM_AGAIN;

	stream->flags &= ~(uint32_t)(WEFT__STREAM_CALLED | WEFT__STREAM_AGAIN);
	if (again)
		weft__events_again(stream);
}

/* A stream with a queue that is full, or holds the last bytes of a connection that has ended,
 * has no op that the loop could end. */
void
weft__events_stop(weft_loop *loop)
{
	struct weft__net *net = weft__net_of(loop);

	for (weft_stream *s = net->started; s; s = s->next)
		if (!s->in.pending) {
			s->in_error = WEFT_ESHUTDOWN;
			weft__events_again(s);
		}
}

/* --- starting ----------------------------------------------------------- */

static void
set_background(weft_stream *stream)
{
	if (stream->in.loop)
		weft_op_set_background(&stream->in,
		                       !is_started(stream)
		                               || (stream->flags & WEFT__STREAM_BACKGROUND));
}

int
weft_stream_start(weft_stream *stream, weft_loop *loop, const weft_stream_events *events, void *arg)
{
	int rc = weft__stream_use(stream, loop, "weft_stream_start");

	if (rc < 0)
		return rc;
	if (!events || !events->on_data)
		return weft__misuse(WEFT_EINVAL, "weft_stream_start: events or on_data is NULL");
	if (stream->reader || stream->reader_op)
		return weft__fail(WEFT_EBUSY, "weft_stream_start: the stream already has a reader");
	if (weft__loop_is_ending(weft__stream_loop(stream)))
		return weft__fail(WEFT_ESHUTDOWN, "weft_stream_start: the loop is stopping");
	stream_events_begin(stream);
	set_background(stream);
	rc = weft__receive_start(stream);
	if (rc < 0) { /* a stream that did not start gets no callbacks */
		weft__events_end(stream);
		return rc;
	}
	stream->events = (struct weft__stream_calls){
		.on_data = events->on_data,
		.on_drain = events->on_drain,
		.on_close = events->on_close,
		.on_buffer = events->on_buffer,
	};
	stream->arg = arg;
	weft__events_again(stream);
	return 0;
}

int
weft_stream_stop(weft_stream *stream)
{
	int rc = weft__stream_use(stream, NULL, "weft_stream_stop");

	if (rc < 0)
		return rc;
	weft__events_end(stream);
	set_background(stream);
	return weft__receive_start(stream);
}

void
weft_stream_set_background(weft_stream *stream, bool on)
{
	if (weft__stream_use(stream, NULL, "weft_stream_set_background") < 0)
		return;
	if (on)
		stream->flags |= WEFT__STREAM_BACKGROUND;
	else
		stream->flags &= ~(uint32_t)WEFT__STREAM_BACKGROUND;
	set_background(stream);
}
