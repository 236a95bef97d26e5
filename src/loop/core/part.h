/* part.h - what the layers above the loop attach to it.
 *
 * A layer has one part on a loop: a struct of its own that begins with a struct weft__part.  The
 * loop knows a part only by its operations, and calls them at fixed points of its life.
 *
 *   1. A part is attached at most once, by any thread or by the loop's, and stays until the loop
 *      is freed, unless its own `ended` removes it.
 *   2. A slot that is closed before a part was attached stays empty.  Either the thread that
 *      attaches sees the slot closed, or the loop sees the part (P: released by attach, acquired
 *      by each reader).
 *
 * Needs: base.  Thread: operations run on the loop's thread, but for free(), which runs on the
 * thread that frees the loop.
 */
#ifndef WEFT_LOOP_PART_H
#define WEFT_LOOP_PART_H

#include "base/thread.h"

/* In the order in which the parts of a loop are freed. */
enum weft__part_slot {
	WEFT__PART_POOLS,    /* src/work */
	WEFT__PART_STREAMS,  /* src/net/stream */
	WEFT__PART_DNS,      /* src/net/dns */
	WEFT__PART_SCHED,    /* src/threadlet; its operations are struct weft__sched_ops */
	WEFT__PART_PROMISES, /* src/promise */
	WEFT__PART_RUNTIME,  /* src/runtime; its operations are struct weft__runtime_ops */
	WEFT__PARTS,
};

/* Each may be NULL. */
struct weft__part_ops {
	/* Something of the part is alive or pending. */
	bool     (*has)(weft_loop *loop);
	/* The microtask queue is empty, and weft__loop_set_promises_due() was called since the last
	 * call.  Returns how many jobs ran. */
	uint64_t (*due)(weft_loop *loop);
	/* The loop stops and has ended its ops. */
	void     (*stop)(weft_loop *loop);
	/* Apart from parts and drop functions, the loop has stopped: end all that is pending.
	 * True: call again after another iteration. */
	bool     (*end)(weft_loop *loop);
	/* The last call before the loop's state is STOPPED. */
	void     (*ended)(weft_loop *loop);
	/* The loop is freed; `alone`: in a forked child, where its threads do not exist. */
	void     (*free)(weft_loop *loop, bool alone);
};

struct weft__part {
	const struct weft__part_ops *ops;
};

#define WEFT__PART_CLOSED ((uintptr_t)1) /* in a slot: no part can be attached */

/* Attach a part.  Returns the part that is attached now: this one, or the part of a thread that was
 * faster; NULL if the slot is closed. */
struct weft__part *weft__loop_attach(weft_loop *loop, enum weft__part_slot slot,
                                     struct weft__part *part);

/* Empty a slot, as the part in it is freed. */
void weft__loop_detach(weft_loop *loop, enum weft__part_slot slot);

/* Close a slot, unless it has a part. */
void weft__loop_close_slot(weft_loop *loop, enum weft__part_slot slot);

/* Call an operation of each part that has it.  have and end: true if one returned true. */
bool weft__parts_have(weft_loop *loop);
void weft__parts_stop(weft_loop *loop);
bool weft__parts_end(weft_loop *loop);
void weft__parts_ended(weft_loop *loop);
void weft__parts_free(weft_loop *loop, bool alone);

#endif
