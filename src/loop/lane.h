/* lane.h - a thread's own way into an inbox, for calls that need memory of ours.
 *
 * Needs: inbox.h.  Owned by: the inbox and the thread, together.  Thread: members and
 * functions say which.  lane.c has the rules and the thread's side, lanes.c the loop's.
 */
#ifndef WEFT_LOOP_LANE_H
#define WEFT_LOOP_LANE_H

#include "base/ring.h"
#include "loop/inbox.h"

/* What a thread that has put something into its lane must do; the word `called`.
 * CALLED is a bit of all but QUIET, so that one `or` says that and asks. */
enum {
	WEFT__LANE_QUIET = 0,  /* the loop does not look: call it */
	WEFT__LANE_CALLED = 1, /* it has been called, and will look */
	WEFT__LANE_HOT = 3,    /* it looks in every turn: nothing, not even that `or` */
};

/* A circular piece of a lane; a lane that is full goes on in a larger one. */
struct weft__lane_piece {
	struct weft__lane_piece *next;
	weft__a64         end;   /* number of the call that is the first in `next` */
	uint32_t          size;
	struct weft__call calls[];
};

#define WEFT__LINE __attribute__((aligned(64)))

struct weft__lane {
	/* The thread's that has `owned` set. */
	void     *memory; /* where the allocation begins */
	weft__a32 refs;
	weft__a32 owned;
	weft__a32 gone;  /* the inbox is */
	uint32_t  kind;  /* WEFT__NODE_FIRST or 0 */
	uint64_t  inbox_id;
	struct weft__inbox *inbox; /* as long as that is there */
	struct weft__lane *next_of_inbox; /* written before it is published */
	struct weft__lane *next_of_thread;
	struct weft__lane_piece *fill;
	uint32_t  at;      /* in that */
	uint32_t  share;   /* calls that may wait */
	bool      lent;    /* one of that is beyond the limit */
	uint64_t  full_at; /* number of the first call that has no room, as last seen */

	/* What both sides need for a call that comes alone, in one line. */
	struct {
		weft__a64 made;    /* calls put in; written by the thread */
		weft__a32 called;  /* WEFT__LANE_* */
		weft__a32 rests;   /* 1: the loop is done with it until it hears from it */
		weft__aptr extra;  /* callers' nodes, newest first */
		struct weft__node_head node; /* by which it calls */
	} call WEFT__LINE;

	weft__a64 done WEFT__LINE; /* calls read; written by the loop */
	/* The loop's. */
	uint64_t  limit;   /* calls that are known to be there */
	uint64_t  stop;    /* the first of them that is not simply the next in `drain` */
	struct weft__lane_piece *drain;
	uint32_t  drain_at;
	struct weft__node_list nodes; /* taken from `extra`, in order */
	struct weft__lane *next_listed;
	uint64_t  heat;    /* calls run since the loop has slept */
	uint64_t  slept;   /* the inbox's sleeps then */
	uint32_t  idle;    /* looks in a row that found nothing */
	bool      hot;
	bool      due;     /* its node is on the way, or the thread takes back */
};

/* --- both --------------------------------------------------------------- */

/* Let go of a lane; the last one to do so frees it. */
void weft__lane_unref(struct weft__lane *lane);

/* Take its lanes from `thread`: all, or only those whose inbox is gone. */
void weft__lanes_forget(struct weft__thread *thread, bool all);

/* By what the call of that number in a lane is known; for trace.h. */
static inline uint64_t
weft__lane_key(const struct weft__lane *lane, uint64_t number)
{
	return (uintptr_t)lane * UINT64_C(0x9e3779b97f4a7c15) + number;
}

/* The same of the call that this thread has put last into its lane of that kind. */
uint64_t weft__lane_last_key(uint64_t inbox_id, uint32_t kind);

/* The newest lane of an inbox, or NULL; the others follow by next_of_inbox. */
static inline struct weft__lane *
weft__lanes_first(const struct weft__inbox *inbox)
{
	return (struct weft__lane *)weft__load(&inbox->lanes, WEFT__ACQUIRE);
}

/* --- the thread --------------------------------------------------------- */

/* Put fn(arg) into a lane of this thread's, or a caller's node if it has a lane.
 * Returns how the loop must be woken, as weft__inbox_push(). */
int weft__lane_post(struct weft__inbox *inbox, weft_fn fn, void *arg, uint32_t kind);
int weft__lane_post_node(struct weft__inbox *inbox, struct weft__node *node);

/* There seems to be no room in it; a second look may find some. */
static inline bool
weft__lane_is_full(const struct weft__lane *lane)
{
	return weft__load(&lane->call.made, WEFT__RELAXED) == lane->full_at;
}

/* Put fn(arg) in; false if the loop must be told, which returns as above. */
static inline bool
weft__lane_put(struct weft__lane *lane, weft_fn fn, void *arg)
{
	struct weft__lane_piece *piece = lane->fill;
	uint32_t at = lane->at;

	weft__put(piece->calls[at].fn, fn);
	weft__put(piece->calls[at].arg, arg);
	lane->at = at + 1 == piece->size ? 0 : at + 1;
	weft__store(&lane->call.made,
	            weft__load(&lane->call.made, WEFT__RELAXED) + 1,
	            WEFT__RELEASE);  /* M */
	weft__compiler_fence();  /* L */
	return weft__load(&lane->call.called, WEFT__RELAXED) == WEFT__LANE_HOT;
}
int weft__lane_tell(struct weft__inbox *inbox, struct weft__lane *lane);

/* --- the loop ----------------------------------------------------------- */

/* Take the next lane of a list and look into it; and put it back, or to rest, when
 * `ran` calls of it have been run. */
struct weft__lane *weft__lane_begin(struct weft__inbox *inbox, int which);
void weft__lane_end(struct weft__lane *lane, uint32_t ran);

bool weft__lane_next_slow(struct weft__lane *lane, weft_fn *fn, void **arg);

/* The next call of a lane; false if there was none at the last look. */
static inline bool
weft__lane_next(struct weft__lane *lane, weft_fn *fn, void **arg)
{
	uint64_t done = weft__load(&lane->done, WEFT__RELAXED);
	struct weft__call *call = &lane->drain->calls[lane->drain_at];

	if (done == lane->stop)
		return weft__lane_next_slow(lane, fn, arg);
	*fn = weft__get(call->fn);
	*arg = weft__get(call->arg);
	lane->drain_at = lane->drain_at + 1 == lane->drain->size
	                         ? 0 : lane->drain_at + 1;
	weft__store(&lane->done, done + 1, WEFT__RELEASE); /* C */
	return true;
}

/* Forget what a turn has left as likely: a lane has something, or has not. */
void weft__lanes_check(struct weft__inbox *inbox);

/* This thread, which is the loop's, has put something in itself. */
bool weft__lanes_own(const struct weft__inbox *inbox);

#define weft__node_lane(n)                                   \
	((struct weft__lane *)(void *)((char *)(n)                \
	                               - offsetof(struct weft__lane, call.node)))

/* The inbox ends: its lanes go now, or with the threads that still know them. */
void weft__lanes_give_up(struct weft__inbox *inbox);

#endif
