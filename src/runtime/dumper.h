/* dumper.h - dumps all threadlets on a signal.  Private.
 *
 * Needs: threadlet, loop.  Owned by: one runtime, embedded.  Thread: any, one at a time;
 * several threads may call stop().
 */
#ifndef WEFT_RUNTIME_DUMPER_H
#define WEFT_RUNTIME_DUMPER_H

#include <weft/loop.h>
#include <weft/watch.h>

struct weft__dumper {
	weft_loop *loop; /* NULL: no dumper */
	int        signo;
	weft_watch watch;

	/* Used on the loop's thread. */
	bool busy;  /* a dump is being written */
	bool again; /* ... and another one was requested */
};

/* Prepare a dumper for `signo`; 0: none.  0 or an error. */
int  weft__dumper_make(struct weft__dumper *dumper, int signo);
void weft__dumper_free(struct weft__dumper *dumper);

/* Take over the signal; 0 or an error.  Stop restores its action and waits until the loop has
 * stopped. */
int  weft__dumper_start(struct weft__dumper *dumper);
int  weft__dumper_stop(struct weft__dumper *dumper, uint64_t deadline_ns);

#endif
