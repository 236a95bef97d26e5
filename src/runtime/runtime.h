/* runtime.h - several loops, as the files of this layer share them.  Private.
 *
 * Needs: threadlet, loop.  Thread: members say which.
 */
#ifndef WEFT_RUNTIME_RUNTIME_H
#define WEFT_RUNTIME_RUNTIME_H

#include <weft/runtime.h>
#include <weft/work.h>
#include "base/lock.h"
#include "loop/loop.h"
#include "runtime/dumper.h"

/* Of quiet.c; all but the last under the lock. */
struct weft__quiet {
	struct weft__lock lock;
	uint32_t   count;  /* loops that are quiet */
	uint64_t   wakes;  /* how often one has gone on */
	bool       over;   /* a deadlock was reported: not looked for any more */
	bool       fed;    /* there have been threads that can wake them */
	weft_loop *teller; /* that has to report it, or NULL */
	char      *text;   /* that it reports; NULL: no memory */
	weft__a32  main_waits; /* the thread of weft_main() does nothing else */
};

struct weft_runtime {
	struct weft_runtime *next; /* of the list */
	uint32_t count;
	weft__a32 turn; /* where the search for the least loaded begins */
	weft__a32 stopping;
	bool started;
	weft_pool *cpu, *blocking; /* of all its loops */
	struct weft__dumper dumper;
	struct weft__quiet quiet;
	weft_loop *loops[];
};

/* From now on the calling thread only starts the program's threadlet, waits for its end and
 * sees to signals. */
void weft__runtime_main_waits(weft_runtime *runtime);

#endif
