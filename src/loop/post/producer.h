/* producer.h - producer queues: posts whose memory the library provides.
 *
 * Needs: inbox.h.  Owned by: the inbox and the thread, together.  Thread: members and
 * functions state which.  producer.c has the rules and the producer's side, producers.c the loop's.
 */
#ifndef WEFT_LOOP_PRODUCER_H
#define WEFT_LOOP_PRODUCER_H

#include "base/ring.h"
#include "loop/post/inbox.h"

/* What a producer must do after it has put an entry into its queue; the values of `called`.
 * All but QUIET contain the bit of CALLED, so that one atomic `or` both sets it and returns
 * the value before. */
enum {
	WEFT__PRODUCER_QUIET = 0,  /* the loop does not read the queue: signal it */
	WEFT__PRODUCER_CALLED = 1, /* the loop has been signaled, and will read the queue */
	WEFT__PRODUCER_HOT = 3,    /* it is read in every iteration: not even the `or` is needed */
};

/* A circular array of a queue.  A queue that is full continues in a larger one. */
struct weft__producer_piece {
	struct weft__producer_piece *next;
	weft__a64         end;   /* number of the first entry in `next` */
	uint32_t          size;
	struct weft__call calls[];
};

#define WEFT__LINE __attribute__((aligned(64)))

struct weft__producer {
	/* Members of the thread that has `owned` set. */
	void     *memory; /* start of the allocation */
	weft__a32 refs;
	weft__a32 owned;
	weft__a32 gone;  /* 1: the inbox was freed */
	uint64_t  inbox_id;
	struct weft__inbox *inbox; /* valid until `gone` */
	struct weft__producer *next_of_inbox; /* written before the queue is published */
	struct weft__producer *next_of_thread;
	struct weft__producer_piece *fill;
	uint32_t  at;      /* index in `fill` */
	uint32_t  share;   /* entries that may wait */
	bool      lent;    /* one entry of the share is beyond the inbox's limit */
	uint64_t  full_at; /* number of the first entry without room, as last read */

	/* What both sides need for a single post, in one cache line. */
	struct {
		weft__a64 made;    /* entries written; stored by the producer */
		weft__a32 called;  /* WEFT__PRODUCER_* */
		weft__a32 rests;   /* 1: the loop is done with the queue until it is signaled */
		weft__aptr extra;  /* callers' nodes, newest first */
		struct weft__node_head node; /* pushed into the inbox to signal the loop */
	} call WEFT__LINE;

	weft__a64 done WEFT__LINE; /* entries read; stored by the loop */
	/* Members of the loop's thread. */
	uint64_t  limit;   /* entries known to be there */
	uint64_t  stop;    /* the first entry that is not simply the next in `drain` */
	struct weft__producer_piece *drain;
	uint32_t  drain_at;
	struct weft__node_list nodes; /* taken from `extra`, in order */
	struct weft__producer *next_listed;
	uint64_t  heat;    /* entries run since the loop last slept */
	uint64_t  slept;   /* the inbox's `sleeps` at that time */
	uint32_t  idle;    /* checks in a row that found nothing */
	bool      hot;
	bool      due;     /* the node is on its way, or the producer withdraws its entry */
};

/* --- both sides --------------------------------------------------------- */

/* Drop a reference; the last one frees the queue. */
void weft__producer_unref(struct weft__producer *producer);

/* Disown the queues of `thread`: all, or only those whose inbox was freed. */
void weft__producers_forget(struct weft__thread *thread, bool all);

/* The trace key of entry `number` of a queue; for trace.h. */
static inline uint64_t
weft__producer_key(const struct weft__producer *producer, uint64_t number)
{
	return (uintptr_t)producer * UINT64_C(0x9e3779b97f4a7c15) + number;
}

/* The trace key of the last entry that this thread has put into its queue. */
uint64_t weft__producer_last_key(uint64_t inbox_id);

/* The newest queue of an inbox, or NULL; the others follow by next_of_inbox. */
static inline struct weft__producer *
weft__producers_first(const struct weft__inbox *inbox)
{
	return (struct weft__producer *)weft__load(&inbox->producers, WEFT__ACQUIRE);
}

/* --- the producer ------------------------------------------------------- */

/* The first puts fn(arg) into the queue of this thread.  The second pushes a caller's node: onto
 * this thread's queue if it has one, else into the inbox.  Both return how the loop must be
 * woken, as weft__inbox_push() does, or WEFT_ESHUTDOWN; the first also WEFT_EAGAIN. */
int weft__producer_post(struct weft__inbox *inbox, weft_fn fn, void *arg);
int weft__producer_post_node(struct weft__inbox *inbox, struct weft__node *node);

/* The queue seems to be full; reading `done` again may find room. */
static inline bool
weft__producer_is_full(const struct weft__producer *producer)
{
	return weft__load(&producer->call.made, WEFT__RELAXED) == producer->full_at;
}

/* Write an entry.  False if the producer must then call weft__producer_signal(), which signals the
 * loop and returns the same as weft__producer_post(). */
static inline bool
weft__producer_put(struct weft__producer *producer, weft_fn fn, void *arg)
{
	struct weft__producer_piece *piece = producer->fill;
	uint32_t at = producer->at;

	weft__put(piece->calls[at].fn, fn);
	weft__put(piece->calls[at].arg, arg);
	producer->at = at + 1 == piece->size ? 0 : at + 1;
	weft__store(&producer->call.made,
	            weft__load(&producer->call.made, WEFT__RELAXED) + 1,
	            WEFT__RELEASE);  /* M */
	weft__compiler_fence();  /* L */
	return weft__load(&producer->call.called, WEFT__RELAXED) == WEFT__PRODUCER_HOT;
}
int weft__producer_signal(struct weft__inbox *inbox, struct weft__producer *producer);

/* --- the loop ----------------------------------------------------------- */

/* begin: take the next queue off the list and read how much it holds.  end: `ran` of its entries
 * have run; list the queue again or put it to rest. */
struct weft__producer *weft__producer_begin(struct weft__inbox *inbox);
void weft__producer_end(struct weft__producer *producer, uint32_t ran);

bool weft__producer_next_slow(struct weft__producer *producer, weft_fn *fn, void **arg);

/* The next entry of a queue; false if there was none when the loop last read `made`. */
static inline bool
weft__producer_next(struct weft__producer *producer, weft_fn *fn, void **arg)
{
	uint64_t done = weft__load(&producer->done, WEFT__RELAXED);
	struct weft__call *call = &producer->drain->calls[producer->drain_at];

	if (done == producer->stop)
		return weft__producer_next_slow(producer, fn, arg);
	*fn = weft__get(call->fn);
	*arg = weft__get(call->arg);
	producer->drain_at = producer->drain_at + 1 == producer->drain->size
	                         ? 0 : producer->drain_at + 1;
	weft__store(&producer->done, done + 1, WEFT__RELEASE); /* C */
	return true;
}

/* Check the busy queues that weft__producers_peek() assumes to hold more. */
void weft__producers_check(struct weft__inbox *inbox);

/* The calling thread, which runs the loop, has unread entries in a queue to that same loop. */
bool weft__producers_own(const struct weft__inbox *inbox);

#define weft__node_producer(n)                                   \
	((struct weft__producer *)(void *)((char *)(n)                \
	                               - offsetof(struct weft__producer, call.node)))

/* The inbox ends: drop its references.  A queue that a thread still owns is freed later, by
 * that thread. */
void weft__producers_give_up(struct weft__inbox *inbox);

#endif
