/* weft/select.h - wait for the first of several things.
 *
 * A case names one source by setting one member:
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
	weft_chan     *recv;     /* a value can be received: into `value` */
	weft_chan     *send;     /* a value can be sent: from `value` */
	void          *value;
	weft_op       *op;       /* a started op without on_done has finished; stays
	                          * the caller's */
	weft_event    *event;    /* is set */
	weft_threadlet joined;   /* a threadlet of an open scope has ended */
	uint64_t       until_ns; /* that time has come; 0: not this source */
	int64_t        result;   /* fills, of the chosen case: as the plain call's; of
	                          * `joined` what it returned */
	uint64_t       spare[2];
} weft_case;

/* Wait until one case can go on, and do that one and no other.  Of several, one
 * is chosen at random.  A case without a source is never ready; with WEFT_NOWAIT
 * this is the form with a default.  At most 1,024 cases.
 * Returns the index of the case, whose `result` tells how it went; WEFT_EINVAL,
 * WEFT_ENOMEM (more than 8 cases), WEFT_EWRONGLOOP, WEFT_EBUSY for an op that another waits
 * for.
 * Thread: loop, or any if all sources are shared.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_select(weft_case *cases, size_t count, uint64_t deadline_ns);

WEFT_END
#endif
