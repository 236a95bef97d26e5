/* inbox.c - a lock-free queue that is also the wake word.
 *
 * The head word holds the newest node, each pointing to the next older one, or,
 * while the queue is empty, how the loop sleeps; its lowest bits are marks.  So
 * "push, and see whether somebody must be woken" is one compare-exchange, and "sleep
 * unless something came" is another: nothing can come between looking and sleeping.
 * The loop takes the whole chain with one more and turns it around.
 *
 *   1. The sleep mark is set by the loop alone, only on an empty queue, and is taken
 *      by exactly one: the producer whose push replaces it, or the loop itself when
 *      it wakes for another reason.  So at most one wake is under way, and none while
 *      the loop is awake.
 *   2. A producer that took the mark wakes the loop and then adds one to wakes_done,
 *      its last access.  The loop counts the marks it did not get back (wakes_owed)
 *      and its memory is not given up before the two agree: a wake never reaches a
 *      loop that is gone.  A producer that took no mark touches nothing after its
 *      compare-exchange.
 *   3. CLOSED stays once set.  A push that is not internal fails after it; so what
 *      was accepted is exactly what the loop finds.
 *   4. A node is its pusher's until the compare-exchange, then the loop's until
 *      weft__node_pop() has read it.  The push releases (P), the take acquires (T):
 *      T reads P or a later push of the same chain, which continues P's release
 *      sequence, so the loop sees every node of the chain as it was pushed.
 *   5. A caller's node is free again when its state is 0, written by the loop (N,
 *      release) when it has read the node; whoever pushes it anew acquires that.
 *   6. The queue is last in, first out; turned around it has every producer's pushes
 *      in their order.
 */
#include "loop/inbox.h"
#include "loop/lane.h"

#define MODE      ((uintptr_t)3)
#define CLOSED    ((uintptr_t)4)
#define MARKS     WEFT__INBOX_MARKS

#define HOT_AFTER 512u

static struct weft__node *
node_of(uintptr_t head)
{
	return (struct weft__node *)(head & ~MARKS);
}

/* --- the queue ---------------------------------------------------------- */

int
weft__inbox_push(struct weft__inbox *inbox, struct weft__node *node, bool internal)
{
	uintptr_t head = weft__load(&inbox->head, WEFT__RELAXED);

	do {
		if ((head & CLOSED) && !internal)
			return WEFT_ESHUTDOWN;
		weft__put(node->next, node_of(head));
	} while (!weft__cas(&inbox->head, &head, (uintptr_t)node | (head & CLOSED),
	                    WEFT__ACQ_REL)); /* P */
	return (int)(head & MODE);
}

void
weft__inbox_close(struct weft__inbox *inbox)
{
	(void)weft__or(&inbox->head, CLOSED, WEFT__RELAXED);
}

bool
weft__inbox_is_closed(const struct weft__inbox *inbox)
{
	return weft__load(&inbox->head, WEFT__RELAXED) & CLOSED;
}

uint32_t
weft__inbox_take(struct weft__inbox *inbox, struct weft__node_list *first,
                 struct weft__node_list *rest)
{
	uintptr_t head = weft__load(&inbox->head, WEFT__RELAXED);
	struct weft__node *node, *turned;
	uint32_t count = 0;

	if (!node_of(head))
		return 0;
	while (!weft__cas(&inbox->head, &head, head & CLOSED, WEFT__ACQUIRE)) /* T */
		;
	turned = weft__node_turn(node_of(head));
	while (turned) {
		uint32_t kind;

		node = turned;
		turned = node->next;
		kind = weft__get(node->kind);
		count += !(kind & (WEFT__NODE_OWN | WEFT__NODE_LANE));
		weft__node_append(kind & WEFT__NODE_FIRST ? first : rest, node);
	}
	return count;
}

/* --- sleep and wake ----------------------------------------------------- */

/* Once the mark is in place, every push comes after it and finds it.  It releases (M)
 * what a producer needs to wake the loop there, the opened backend; the push that
 * takes the mark acquires that (P). */
bool
weft__inbox_doze(struct weft__inbox *inbox, uintptr_t mode)
{
	uintptr_t head;

	if (!weft__lanes_rest(inbox))
		return false;
	head = weft__load(&inbox->head, WEFT__RELAXED);
	do {
		if (node_of(head))
			return false;
	} while (!weft__cas(&inbox->head, &head, (head & CLOSED) | mode, WEFT__RELEASE)); /* M */
	inbox->sleeps++;
	return true;
}

void
weft__inbox_rouse(struct weft__inbox *inbox, uintptr_t mode)
{
	uintptr_t head = weft__load(&inbox->head, WEFT__RELAXED);

	while ((head & MODE) == mode)
		if (weft__cas(&inbox->head, &head, head & CLOSED, WEFT__RELAXED))
			return;
	weft__count(&inbox->wakes_owed, 1); /* invariant 2 */
}

/* The half of the head word that has the marks, which the kernel compares as it
 * goes to sleep: a push between doze and park makes the two differ. */
static weft__a32 *
mark_word(struct weft__inbox *inbox)
{
	WEFT_STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	                   "the marks are in the first half");
	return (weft__a32 *)(void *)&inbox->head;
}

/* A close after the doze does not change the mode: its wake, which follows, does. */
void
weft__inbox_park(struct weft__inbox *inbox, uint64_t deadline_ns)
{
	uintptr_t closed = weft__load(&inbox->head, WEFT__RELAXED) & CLOSED;

	/* Rung, too late, or for no reason: the loop looks around in any case. */
	(void)weft__sys->park(mark_word(inbox), (uint32_t)(closed | WEFT__IN_PARK), deadline_ns);
}

void
weft__inbox_ring(struct weft__inbox *inbox)
{
	weft__sys->unpark(mark_word(inbox));
}

void
weft__inbox_woken(struct weft__inbox *inbox)
{
	(void)weft__add(&inbox->wakes_done, 1, WEFT__RELEASE); /* D */
}

/* --- life --------------------------------------------------------------- */

void
weft__inbox_init(struct weft__inbox *inbox, uint32_t slots_max)
{
	static weft__a64 last_id;

	*inbox = (struct weft__inbox){
		.id = weft__add(&last_id, 1, WEFT__RELAXED) + 1,
		.slots_left = { { slots_max }, { slots_max } },
		.slots_max = slots_max,
		.hot_after = HOT_AFTER,
	};
}

void
weft__inbox_fini(struct weft__inbox *inbox, bool alone)
{
	/* Each is between its push and the end of its wake; acquires D. */
	while (!alone
	       && weft__load(&inbox->wakes_done, WEFT__ACQUIRE)
	                  != (uint32_t)weft__count_get(&inbox->wakes_owed))
		weft__sys->yield();
	weft__lanes_give_up(inbox);
}
