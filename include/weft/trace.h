/* weft/trace.h - a recording of what the whole program does, for a trace viewer.
 *
 * While it lasts, loops write down their turns, waits, phases and posts, threadlets when
 * they run and what they wait for, pools their work, and runs of graphs that are made
 * meanwhile their steps; each with its times.  Read as a Chrome trace (a JSON array) it
 * has a track for each loop, threadlet and thread of a pool, and arrows from posts to
 * what they ran, from work to the thread that did it, and along the edges of graphs.
 * Perfetto and chrome://tracing open it.
 *
 *   1. While nothing is recorded, that costs one comparison where it would be.
 *   2. What has begun before, or has not ended by the end, is not part of it.
 *   3. When the memory is full, what comes is dropped; how much is told at the end of the
 *      text ("dropped_events").
 */
#ifndef WEFT_TRACE_H
#define WEFT_TRACE_H

#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_trace weft_trace;

typedef struct weft_trace_opts {
	size_t   bytes_max; /* of memory for all that is recorded; default: 64 MiB */
	uint64_t spare[4];
} weft_trace_opts;

/* Begin to record.  There is one recording at a time in a process.
 * Returns 0 and fills `out`, WEFT_EBUSY while there is another, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_trace_begin(const weft_trace_opts *opts, weft_trace **out);

/* Record no more: what others are just writing down is waited for, which takes no longer
 * than that.  Again, it does nothing.
 * Returns 0, WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_trace_end(weft_trace *trace);

/* Read the next piece of an ended recording as a Chrome trace: fills `out` with at most
 * 64 KiB, borrowed until the next call, and `size`.
 * Returns 1, 0 at the end, WEFT_EBUSY before the recording has ended, WEFT_ENOMEM,
 * WEFT_EWRONGLOOP in a forked child, which can only free it.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_trace_read(weft_trace *trace, const char **out, size_t *size);

/* Free it; one that still records ends first.  Accepts NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_trace_free(weft_trace *trace);

WEFT_END
#endif
