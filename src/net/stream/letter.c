/* letter.c - what reaches a stream later, on its loop: interrupts, and reports of what is left.
 *
 * Each stream has a letter for the mailbox of its loop's streams.  A thread that interrupts the
 * stream sets its flag and posts the letter.  The loop posts the letter, too, so that on_data gets
 * the rest of the queue in another call.
 *
 *   1. A stream without a loop is only marked.  The sender sets `interrupted` before it reads
 *      `loop`; the owner stores `loop` before it reads `interrupted` (I, S).
 *   2. `lock` protects `loop` and `letter_state`.  The letter is posted at most once, and only
 *      while the stream has a loop and is not SEALED.  A thread that posts holds the lock, so the
 *      loop exists until the post is complete.
 *   3. The wait that ends with WEFT_EINTR clears the flag: the current wait, or else the next one.
 *   4. A stream that has a loop is freed only once it is SEALED.  If the letter is on its way
 *      then, its arrival continues the close, and until then the loop does not end (`awaited`).  A
 *      loop that has stopped takes no letters, so the close drains the mailbox itself.  That calls
 *      no callback of the program, because no stream of such a loop is started.
 */
#include "net/stream/stream.h"

enum {
	IDLE,
	POSTED,
	AWAITED, /* posted, and a close waits for its arrival */
	SEALED,  /* not posted any further */
};

void
weft__stream_bind(weft_stream *stream, weft_loop *loop)
{
	weft__lock_take(&stream->lock);
	weft__store(&stream->forks, weft__loop_forks(loop), WEFT__RELAXED);
	weft__store(&stream->loop, (uintptr_t)loop, WEFT__SEQ_CST); /* S */
	weft__lock_give(&stream->lock);
}

void
weft__stream_post(weft_stream *stream)
{
	weft_loop *loop;

	weft__lock_take(&stream->lock);
	loop = weft__stream_loop(stream);
	if (loop && stream->letter_state == IDLE) {
		(void)weft__mailbox_post(&weft__net_of(loop)->letters, &stream->letter);
		stream->letter_state = POSTED;
	}
	weft__lock_give(&stream->lock);
}

/* Invariant 4. */
bool
weft__stream_seal(weft_stream *stream)
{
	weft_loop *loop = weft__stream_loop(stream);
	struct weft__net *net = weft__net_of(loop);
	bool stopped = weft_loop_state(loop) == WEFT_STOPPED;
	uint8_t state;

	weft__lock_take(&stream->lock);
	state = stream->letter_state;
	if (state == IDLE || stopped)
		stream->letter_state = SEALED;
	else if (state == POSTED)
		stream->letter_state = AWAITED;
	weft__lock_give(&stream->lock);
	if (stopped)
		weft__mailbox_drain(&net->letters);
	else
		net->awaited += state == POSTED;
	return stopped || state == IDLE || state == SEALED;
}

bool
weft__stream_open_letter(weft_stream *stream)
{
	uint8_t state;

	weft__lock_take(&stream->lock);
	state = stream->letter_state;
	if (state != SEALED)
		stream->letter_state = IDLE;
	weft__lock_give(&stream->lock);
	weft__net_of(weft__stream_loop(stream))->awaited -= state == AWAITED;
	return state != SEALED;
}

/* --- interrupts --------------------------------------------------------- */

void
weft__stream_end_wait(weft_stream *stream)
{
	bool reads = stream->reader || stream->reader_op;

	if ((!reads && !stream->first) || !weft__stream_take_interrupt(stream))
		return;
	if (reads)
		weft__reader_end(stream, WEFT_EINTR);
	else
		weft__send_request_cancel(stream->first, WEFT_EINTR);
}

/* A forked child only sets the flag: no thread there runs the loop, and the lock may be held by a
 * thread that does not exist there. */
void
weft_stream_interrupt(weft_stream *stream)
{
	if (!stream || weft__exchange(&stream->interrupted, 1, WEFT__SEQ_CST)) /* I */
		return;                              /* already interrupted */
	if (weft__load(&stream->loop, WEFT__SEQ_CST) /* S */
	    && weft__load(&stream->forks, WEFT__RELAXED)
	               == weft__load(&weft__program.forks, WEFT__RELAXED))
		weft__stream_post(stream);
}
