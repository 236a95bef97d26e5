/* dumper.h - a dump of all threadlets at a signal.  Private.
 *
 * Needs: threadlet, loop.  Owned by: one runtime, embedded.  Thread: any, one at a time,
 * but stop(), which any number may call.
 */
#ifndef WEFT_RUNTIME_DUMPER_H
#define WEFT_RUNTIME_DUMPER_H

#include <weft/loop.h>
#include <weft/watch.h>

struct weft__dumper {
	weft_loop *loop; /* NULL: there is none */
	int        signo;
	weft_watch watch;

	/* The loop's thread's. */
	bool busy;  /* a dump is being written, */
	bool again; /* and another was asked for */
};

/* Prepare one for `signo`; 0: none.  0 or an error. */
int  weft__dumper_make(struct weft__dumper *dumper, int signo);
void weft__dumper_free(struct weft__dumper *dumper);

/* Take the signal over; 0 or an error.  Give it back, and wait for the end of that. */
int  weft__dumper_start(struct weft__dumper *dumper);
int  weft__dumper_stop(struct weft__dumper *dumper, uint64_t deadline_ns);

#endif
