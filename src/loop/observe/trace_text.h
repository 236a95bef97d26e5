/* trace_text.h - the state of reading a recording.  Private.
 *
 * trace_index.c finds which events belong together, trace_write.c converts them to text.
 *
 * Needs: trace.h.  Thread: the one that reads.
 */
#ifndef WEFT_LOOP_TRACE_TEXT_H
#define WEFT_LOOP_TRACE_TEXT_H

#include "loop/observe/trace.h"

#define WEFT__TRACE_PIECE   ((size_t)65536)
#define WEFT__TRACE_SYMBOL  160u
#define WEFT__TRACE_SYMBOLS 64u /* cached symbols */

struct weft__trace_text {
	size_t size;
	uint32_t chunk, event; /* the next to be written */
	uint64_t flows;        /* number of arrows written */
	uint64_t pid;
	bool begun, ended;
	size_t post_count;
	const struct weft__trace_event **posts; /* sorted; trace_index.c */
	const struct weft__trace_event *
		*names; /* of threadlets, by track number minus 1 */
	struct {
		const void *code;
		char text[WEFT__TRACE_SYMBOL];
	} symbols[WEFT__TRACE_SYMBOLS];
	char piece[WEFT__TRACE_PIECE];
};

/* Make trace->text.  0, WEFT_ENOMEM. */
int weft__trace_prepare(weft_trace *trace);

/* The number of chunks that were taken; the number of slots that an event occupies. */
uint32_t weft__trace_chunks(const weft_trace *trace);
uint32_t weft__trace_slots(const struct weft__trace_event *event);

/* The last post with that key that began by then; the name of a threadlet's track.  Or NULL. */
const struct weft__trace_event *weft__trace_find_post(const struct weft__trace_text *text,
                                                      uint64_t key, uint64_t at_ns);
const struct weft__trace_event *weft__trace_name_of(const weft_trace *trace,
                                                    uint64_t track);

#endif
