/* inbox.h - how other threads reach a loop: one queue and one wake word.
 *
 * Needs: base.  Owned by: one loop, embedded in it.  Thread: any thread may push, close and
 * wake; only the loop's thread may do the rest.
 */
#ifndef WEFT_LOOP_INBOX_H
#define WEFT_LOOP_INBOX_H

#include "base/node.h"
#include "base/thread.h"

/* How a loop sleeps; written into the wake word. */
enum {
	WEFT__AWAKE = 0,
	WEFT__IN_PARK = 1,     /* futex wait on the head word itself */
	WEFT__IN_BACKEND = 2,  /* in the backend's wait(), which its wake() ends */
	WEFT__IN_FOREIGN = 3,  /* in a foreign loop, which polls the loop's descriptor */
};

#define WEFT__INBOX_MARKS ((uintptr_t)7) /* the bits of head that are not the node pointer */

/* Whether the kernel can issue a memory barrier in all threads of this process. */
enum { WEFT__BARRIERS_UNKNOWN, WEFT__BARRIERS_WORK, WEFT__BARRIERS_NONE };

struct weft__producer_list {
	struct weft__producer *first, *last;
	uint32_t           count;
};

struct weft__inbox {
	char pad_before[64];    /* producers write the next lines; the loop's data is around them */
	weft__aptr head;        /* newest node, or how the loop sleeps; and CLOSED */
	weft__a32  wakes_done;  /* wakes finished by producers that removed a sleep mark */
	weft__aptr producers;   /* producer queues, one per posting thread; only grows */
	weft__a32  slots_left;  /* entries that are not in the share of a producer queue yet */
	char pad_after[64];
	weft__a64  wakes_owed;  /* counted by the loop: sleep marks that producers removed */
	struct weft__producer_list listed; /* the loop's: producer queues that it must read */
	uint32_t   barriers;    /* WEFT__BARRIERS_* */
	uint32_t   hot_after;   /* entries run without a sleep that make a queue hot; producers.c */
	uint64_t   sleeps;      /* number of sleeps */
	uint32_t   slots_max;   /* limit of waiting entries; set once, like the next */
	uint64_t   id;          /* of this inbox; never reused */
};

void weft__inbox_init(struct weft__inbox *inbox, uint32_t slots_max);

/* Wait for the producers that still owe a wake, then drop the producer queues.  In a forked
 * child (`alone`) there is no thread to wait for. */
void weft__inbox_fini(struct weft__inbox *inbox, bool alone);

/* Push a node.  An `internal` node is accepted even after close.  Returns how the loop must be
 * woken (WEFT__IN_*), WEFT__AWAKE if it need not be woken, or WEFT_ESHUTDOWN.  A caller that
 * gets WEFT__IN_* must wake the loop and then call weft__inbox_wake_done(). */
int  weft__inbox_push(struct weft__inbox *inbox, struct weft__node *node,
                      bool internal);
void weft__inbox_futex_wake(struct weft__inbox *inbox); /* for a loop that is IN_PARK */
void weft__inbox_wake_done(struct weft__inbox *inbox);

/* Refuse pushes from now on, except internal ones. */
void weft__inbox_close(struct weft__inbox *inbox);
bool weft__inbox_is_closed(const struct weft__inbox *inbox);

/* The loop has producer queues to read.  And: one of them probably holds an entry.  A very busy
 * queue is not checked, but assumed to hold one. */
static inline bool
weft__inbox_has_producers(const struct weft__inbox *inbox)
{
	return inbox->listed.count > 0;
}
bool weft__producers_peek(const struct weft__inbox *inbox);

/* Like weft__producers_peek(), without the call if no queue is listed. */
static inline bool
weft__producers_may_have(const struct weft__inbox *inbox)
{
	return inbox->listed.count > 0 && weft__producers_peek(inbox);
}

/* There is something to take: the head word holds more than marks, or a producer queue may
 * hold an entry. */
static inline bool
weft__inbox_has(const struct weft__inbox *inbox)
{
	return weft__load(&inbox->head, WEFT__RELAXED) > WEFT__INBOX_MARKS
	       || weft__producers_may_have(inbox);
}

/* The loop sleeps, or its host does.  Any thread may call it. */
static inline bool
weft__inbox_is_asleep(const struct weft__inbox *inbox)
{
	uintptr_t head = weft__load(&inbox->head, WEFT__RELAXED);

	return head <= WEFT__INBOX_MARKS && (head & WEFT__IN_FOREIGN) != WEFT__AWAKE;
}

/* Number of entries that wait in producer queues.  Any thread may call it. */
uint64_t weft__producers_depth(struct weft__inbox *inbox);

/* Require every producer queue to signal before the loop reads it again.  False if the loop
 * should read some of them now. */
bool weft__producers_rest(struct weft__inbox *inbox);

struct weft__taken {
	uint32_t posts; /* nodes of callers */
	uint32_t first; /* nodes that were added to `first`, which are the library's own */
};

/* Move all nodes to the ends of `first` and `rest`. */
struct weft__taken weft__inbox_take(struct weft__inbox *inbox,
                                    struct weft__node_list *first,
                                    struct weft__node_list *rest);

/* A producer queue has signaled the loop: its node was taken from the inbox. */
void weft__producer_heard(struct weft__node *node);

/* What a node asks the loop to do. */
struct weft__node_call {
	weft_fn fn;
	void   *arg;
	bool    is_post; /* a caller's, as opposed to the library's own */
};

/* Take the next node off a list, so that it may be pushed again, and return its call; false at
 * the end of the list.  The node of a producer queue has no call: the queue is added to those
 * that the loop reads. */
static inline bool
weft__node_pop(struct weft__node_list *list, struct weft__node_call *call)
{
	struct weft__node *node;

	while ((node = list->first)) {
		uint32_t kind = weft__get(node->kind);

		list->first = node->next;
		if (!list->first)
			list->end = &list->first;
		if (__builtin_expect(kind & WEFT__NODE_PRODUCER, 0)) {
			weft__producer_heard(node);
			continue;
		}
		call->fn = weft__get(node->fn);
		call->arg = weft__get(node->arg);
		call->is_post = !(kind & WEFT__NODE_OWN);
		if (!(kind & WEFT__NODE_KEEP))
			weft__store(&node->state, 0, WEFT__RELEASE); /* N */
		return true;
	}
	return false;
}

/* Begin a sleep: write `mode` into the wake word; false if there is something to take.  After
 * the sleep, call weft__inbox_end_sleep(). */
bool weft__inbox_begin_sleep(struct weft__inbox *inbox, uintptr_t mode);
void weft__inbox_end_sleep(struct weft__inbox *inbox, uintptr_t mode);

/* For a loop that sleeps IN_PARK: sleep until a futex wake or the deadline. */
void weft__inbox_park(struct weft__inbox *inbox, uint64_t deadline_ns);

#endif
