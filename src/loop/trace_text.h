/* trace_text.h - a recording that is read.  Private.
 *
 * trace_index.c finds what belongs together, trace_write.c makes text of it.
 *
 * Needs: trace.h.  Thread: that which reads.
 */
#ifndef WEFT_LOOP_TRACE_TEXT_H
#define WEFT_LOOP_TRACE_TEXT_H

#include "loop/trace.h"

#define WEFT__TRACE_PIECE   ((size_t)65536)
#define WEFT__TRACE_SYMBOL  160u
#define WEFT__TRACE_SYMBOLS 64u /* that are remembered */

struct weft__trace_text {
	size_t size;
	uint32_t chunk, event; /* the next to be written */
	uint64_t flows;        /* arrows written */
	uint64_t pid;
	bool begun, ended;
	size_t post_count;
	const struct weft__trace_event **posts; /* sorted; trace_index.c */
	const struct weft__trace_event *
		*names; /* of threadlets by number, less 1 */
	struct {
		const void *code;
		char text[WEFT__TRACE_SYMBOL];
	} symbols[WEFT__TRACE_SYMBOLS];
	char piece[WEFT__TRACE_PIECE];
};

/* Make trace->text.  0, WEFT_ENOMEM. */
int weft__trace_prepare(weft_trace *trace);

/* How many chunks it has; how many slots an event takes. */
uint32_t weft__trace_chunks(const weft_trace *trace);
uint32_t weft__trace_slots(const struct weft__trace_event *event);

/* The last post of that key that began by then; the name of a threadlet's track.  Or
 * NULL. */
const struct weft__trace_event *weft__trace_find_post(const struct weft__trace_text *text,
                                                      uint64_t key, uint64_t at_ns);
const struct weft__trace_event *weft__trace_name_of(const weft_trace *trace,
                                                    uint64_t track);

#endif
