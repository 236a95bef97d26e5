/* weft/trace.h - record what the whole program does, for a trace viewer.
 *
 * A recording holds timed events: iterations, waits, phases and posts of loops; when threadlets
 * run and what they wait for; work of pools; steps of DAG runs that are made during the
 * recording.  weft_trace_read() returns it as a Chrome trace (a JSON array), for Perfetto and
 * chrome://tracing.  The trace has one track for each loop, threadlet and pool thread, and arrows
 * from posts to the callbacks they ran, from work to the thread that ran it, and along the edges
 * of DAGs.
 *
 *   1. While nothing is recorded, tracing costs one comparison at each point.
 *   2. An event that began before the recording, or has not ended by its end, is left out.
 *   3. When the memory is full, further events are dropped; their number is at the end of the
 *      text ("dropped_events").
 */
#ifndef WEFT_TRACE_H
#define WEFT_TRACE_H

#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_trace weft_trace;

typedef struct weft_trace_opts {
	size_t   bytes_max; /* memory for all events; default: 64 MiB */
	uint64_t spare[4];  /* must be zero: room for later versions */
} weft_trace_opts;

/* Start recording.  A process can have one recording at a time.
 * Returns 0 and fills `out`, WEFT_EBUSY while another one exists, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_trace_begin(const weft_trace_opts *opts, weft_trace **out);

/* Stop recording.  Waits for events that other threads are writing at this moment.  Further
 * calls have no effect.
 * Returns 0, WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_trace_end(weft_trace *trace);

/* Read the next piece of an ended recording, as text of a Chrome trace.  Fills `out` with at most
 * 64 KiB of text, borrowed until the next call, and `size` with its length.
 * Returns 1; 0 at the end; WEFT_EBUSY before the recording has ended, WEFT_ENOMEM; WEFT_EWRONGLOOP
 * in a forked child, which can only free the recording.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_trace_read(weft_trace *trace, const char **out, size_t *size);

/* Free a recording, and stop it first if it still records.  Accepts NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_trace_free(weft_trace *trace);

WEFT_END
#endif
