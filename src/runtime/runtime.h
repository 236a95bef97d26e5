/* runtime.h - several loops, as shared by the files of this layer.  Private.
 *
 * Needs: threadlet, loop.  Thread: members say which.
 */
#ifndef WEFT_RUNTIME_RUNTIME_H
#define WEFT_RUNTIME_RUNTIME_H

#include <weft/runtime.h>
#include <weft/work.h>
#include "base/lock.h"
#include "loop/core/access.h"
#include "runtime/dumper.h"

/* State of quiet.c; all except the last member under the lock. */
struct weft__quiet {
	struct weft__lock lock;
	uint32_t   count;  /* number of quiet loops */
	uint64_t   wakes;  /* how often a loop has stopped being quiet */
	bool       over;   /* a deadlock was reported: do not check again */
	bool       outside_wakers; /* other threads that can wake the loops were seen */
	weft_loop *reporter; /* the loop that must report the deadlock, or NULL */
	char      *text;   /* the text of the report; NULL: no memory */
	weft__a32  main_waits; /* 1: see weft__runtime_main_waits() */
};

struct weft_runtime {
	struct weft__part part; /* first; of all its loops */
	struct weft_runtime *next; /* in the list of runtimes */
	uint32_t count;
	weft__a32 turn; /* start of the search for the least loaded loop */
	weft__a32 stopping;
	bool started;
	weft_pool *cpu, *blocking; /* shared by all its loops */
	struct weft__dumper dumper;
	struct weft__quiet quiet;
	weft_loop *loops[];
};

/* The runtime that the loop is part of, or NULL. */
static inline struct weft_runtime *
weft__runtime_of(const weft_loop *loop)
{
	return (struct weft_runtime *)(void *)weft__loop_part(loop, WEFT__PART_RUNTIME);
}

/* --- quiet.c: operations of struct weft__runtime_ops ------------------------ */

bool weft__runtime_begin_quiet(weft_loop *loop);
void weft__runtime_end_quiet(weft_loop *loop);
bool weft__runtime_has_outside_wakers(const weft_loop *loop);

/* A fork handler: the list of runtimes of a forked child is empty. */
void weft__runtimes_forked(void);

/* From now on the calling thread only starts the program's threadlet, waits until it ends, and
 * handles signals. */
void weft__runtime_main_waits(weft_runtime *runtime);

#endif
