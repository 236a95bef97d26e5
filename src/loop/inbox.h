/* inbox.h - the door into a loop: one queue, one wake word, any thread.
 *
 * Needs: base.  Owned by: one loop, embedded in it.  Thread: any may push, close
 * and ring; the rest is the loop's.
 */
#ifndef WEFT_LOOP_INBOX_H
#define WEFT_LOOP_INBOX_H

#include "base/node.h"
#include "base/thread.h"

/* How a loop sleeps, as written into the wake word. */
enum {
	WEFT__AWAKE = 0,
	WEFT__IN_PARK = 1,     /* on the head word itself */
	WEFT__IN_BACKEND = 2,  /* in the backend's wait; its wake() ends that */
	WEFT__IN_FOREIGN = 3,  /* in another's loop, which polls our descriptor */
};

#define WEFT__INBOX_MARKS ((uintptr_t)7) /* bits of head that are not the node */

/* Whether this process can have barriers in all its threads. */
enum { WEFT__BARRIERS_UNKNOWN, WEFT__BARRIERS_WORK, WEFT__BARRIERS_NONE };

struct weft__lane_list {
	struct weft__lane *first, *last;
	uint32_t           count;
};

struct weft__inbox {
	char pad_before[64];    /* producers write here, the loop's data is around */
	weft__aptr head;        /* newest node, or how the loop sleeps; and CLOSED */
	weft__a32  wakes_done;  /* by producers that took a sleep mark, when through */
	weft__aptr lanes;       /* of the threads that post; only grows */
	weft__a32  slots_left[2]; /* how many more may be made: posts, first posts */
	char pad_after[64];
	weft__a64  wakes_owed;  /* counted by the loop: sleep marks that others took */
	struct weft__lane_list listed[2]; /* the loop's: lanes to be looked into */
	uint32_t   barriers;    /* WEFT__BARRIERS_* */
	uint32_t   hot_after;   /* calls in a row; lanes.c */
	uint64_t   sleeps;      /* so many */
	uint32_t   slots_max;   /* set once, as the next */
	uint64_t   id;          /* of this inbox, never reused */
};

void weft__inbox_init(struct weft__inbox *inbox, uint32_t slots_max);

/* Wait for those who still owe a wake, then give back the slots.  In a forked
 * child nobody is left to wait for: `alone`. */
void weft__inbox_fini(struct weft__inbox *inbox, bool alone);

/* Push a node; `internal` ones pass a closed door.  Returns how the loop must be
 * woken (WEFT__IN_*), WEFT__AWAKE for not at all, or WEFT_ESHUTDOWN.  Whoever gets
 * one of the former wakes it and then calls weft__inbox_woken(). */
int  weft__inbox_push(struct weft__inbox *inbox, struct weft__node *node,
                      bool internal);
void weft__inbox_ring(struct weft__inbox *inbox);  /* wakes a loop that is IN_PARK */
void weft__inbox_woken(struct weft__inbox *inbox);

/* Refuse pushes from now on, except internal ones. */
void weft__inbox_close(struct weft__inbox *inbox);
bool weft__inbox_is_closed(const struct weft__inbox *inbox);

/* The loop looks into some lanes; is there something in them? */
static inline bool
weft__inbox_has_lanes(const struct weft__inbox *inbox)
{
	return inbox->listed[0].count | inbox->listed[1].count;
}
bool weft__lanes_look(const struct weft__inbox *inbox, int which);

/* Most likely so: one that is very busy is not looked at. */
static inline bool
weft__lanes_may_have(const struct weft__inbox *inbox, int which)
{
	return inbox->listed[which].count > 0
	       && weft__lanes_look(inbox, which);
}

/* Something is there to take: the head word has more than marks, or a lane may have. */
static inline bool
weft__inbox_has(const struct weft__inbox *inbox)
{
	return weft__load(&inbox->head, WEFT__RELAXED) > WEFT__INBOX_MARKS
	       || weft__lanes_may_have(inbox, 0) || weft__lanes_may_have(inbox, 1);
}

/* The loop sleeps, or its host does; any thread. */
static inline bool
weft__inbox_is_asleep(const struct weft__inbox *inbox)
{
	uintptr_t head = weft__load(&inbox->head, WEFT__RELAXED);

	return head <= WEFT__INBOX_MARKS && (head & WEFT__IN_FOREIGN) != WEFT__AWAKE;
}

/* Calls that wait in lanes; any thread. */
uint64_t weft__lanes_depth(struct weft__inbox *inbox);

/* Have all lanes call before the loop looks into them again; false if it should look
 * now. */
bool weft__lanes_rest(struct weft__inbox *inbox);

/* Move what is there to the ends of `first` and `rest`; returns how many of them are
 * posts, and not the library's own. */
uint32_t weft__inbox_take(struct weft__inbox *inbox,
                          struct weft__node_list *first,
                          struct weft__node_list *rest);

/* A lane has called, by its node. */
void weft__lane_heard(struct weft__node *node);

/* Take a node off a list, ready to be pushed again, and give what it calls; false
 * at its end.  A lane's node calls nothing: it is listed. */
static inline bool
weft__node_pop(struct weft__node_list *list, weft_fn *fn, void **arg)
{
	struct weft__node *node;

	while ((node = list->first)) {
		uint32_t kind = weft__get(node->kind);

		list->first = node->next;
		if (!list->first)
			list->end = &list->first;
		if (__builtin_expect(kind & WEFT__NODE_LANE, 0)) {
			weft__lane_heard(node);
			continue;
		}
		*fn = weft__get(node->fn);
		*arg = weft__get(node->arg);
		if (!(kind & WEFT__NODE_KEEP))
			weft__store(&node->state, 0, WEFT__RELEASE); /* N */
		return true;
	}
	return false;
}

/* Write down that the loop goes to sleep in `mode`; false if there is something to
 * take.  Then sleep, and tell when that is over. */
bool weft__inbox_doze(struct weft__inbox *inbox, uintptr_t mode);
void weft__inbox_rouse(struct weft__inbox *inbox, uintptr_t mode);

/* Of a loop that dozes IN_PARK: sleep until rung or the deadline. */
void weft__inbox_park(struct weft__inbox *inbox, uint64_t deadline_ns);

#endif
