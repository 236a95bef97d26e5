/* weft/select.h - wait for the first of several sources.
 *
 * Each case names one source, by setting one member of the struct:
 *
 *	weft_case cases[] = {
 *		{ .recv = jobs, .value = &job },
 *		{ .event = &quit },
 *		{ .op = &reply },
 *	};
 *	which = weft_select(cases, 3, weft_after(5 * WEFT_S));
 */
#ifndef WEFT_SELECT_H
#define WEFT_SELECT_H

#include <weft/base.h>
#include <weft/op.h>
#include <weft/sync.h>

WEFT_BEGIN

typedef struct weft_case {
	weft_chan     *recv;     /* receive a value into `value` */
	weft_chan     *send;     /* send the value at `value` */
	void          *value;
	weft_op       *op;       /* wait until this op, which was started and has no on_done, has
	                          * finished; the op still belongs to the caller */
	weft_event    *event;    /* wait until the event is set */
	weft_threadlet joined;   /* wait until this threadlet of an open scope has ended */
	uint64_t       until_ns; /* wait until this time; 0: the case has another source */
	int64_t        result;   /* filled for the chosen case: the value that the call for one
	                          * source, such as weft_chan_recv(), returns; for `joined` the
	                          * value that the threadlet returned */
	uint64_t       spare[2]; /* must be zero: room for later versions */
} weft_case;

/* Wait until one case can proceed, and perform only that one.  If several can proceed, one is
 * chosen at random.  A case without a source is never chosen.  With WEFT_NOWAIT the call is like
 * a select with a default case in Go.  `count` is at most 1,024.
 * Returns the index of the chosen case, with its outcome in `result`; WEFT_EINVAL, WEFT_ENOMEM
 * (more than 8 cases), WEFT_EWRONGLOOP, WEFT_EBUSY if another caller already waits for the op.
 * Thread: loop, or any if all sources are shared.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_select(weft_case *cases, size_t count, uint64_t deadline_ns);

WEFT_END
#endif
