/* inbox.c - a lock-free queue whose head word is also the wake word.
 *
 * The head word points to the newest node, and each node points to the next older one.  While
 * the queue is empty, the head word instead says how the loop sleeps.  Its lowest bits are
 * marks.  So "push, and learn whether the loop must be woken" is one compare-exchange, and
 * "sleep unless a node has arrived" is another: no push can slip in between the check and the
 * sleep.  The loop takes the whole chain with a third compare-exchange and reverses it.
 *
 *   1. Only the loop sets the sleep mark, and only on an empty queue.  Exactly one thread
 *      removes it: the producer whose push replaces it, or the loop itself when it wakes for
 *      another reason.  So each sleep causes at most one wake, and a push to a loop that is
 *      awake causes none.
 *   2. A producer that removed the mark wakes the loop and then adds one to wakes_done, which
 *      is its last access.  The loop counts the marks that it did not get back (wakes_owed).
 *      Its memory is not freed before the two counts are equal: so no wake reaches a loop that
 *      was freed.  A producer that removed no mark touches nothing after its compare-exchange.
 *   3. CLOSED stays set once it is set.  After that a push fails, unless it is internal.  So
 *      the accepted nodes are exactly those that the loop finds.
 *   4. A node belongs to its producer until the compare-exchange, then to the loop until
 *      weft__node_pop() has read it.  The push releases (P), the take acquires (T): T reads P
 *      or a later push of the same chain, which continues P's release sequence.  So the loop
 *      sees every node of the chain as it was pushed.
 *   5. A caller's node may be pushed again when its state is 0.  The loop writes that (N,
 *      release) after it has read the node; the thread that pushes the node again acquires it.
 *   6. The queue is last in, first out.  Reversed, it has the pushes of each producer in the
 *      order in which that producer made them.
 */
#include "loop/post/inbox.h"
#include "loop/post/producer.h"

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

struct weft__taken
weft__inbox_take(struct weft__inbox *inbox, struct weft__node_list *first,
                 struct weft__node_list *rest)
{
	uintptr_t head = weft__load(&inbox->head, WEFT__RELAXED);
	struct weft__node *node, *turned;
	struct weft__taken taken = { 0 };

	if (!node_of(head))
		return taken;
	while (!weft__cas(&inbox->head, &head, head & CLOSED, WEFT__ACQUIRE)) /* T */
		;
	turned = weft__node_turn(node_of(head));
	while (turned) {
		uint32_t kind;

		node = turned;
		turned = node->next;
		kind = weft__get(node->kind);
		taken.posts += !(kind & (WEFT__NODE_OWN | WEFT__NODE_PRODUCER));
		taken.first += kind & WEFT__NODE_FIRST;
		weft__node_append(kind & WEFT__NODE_FIRST ? first : rest, node);
	}
	return taken;
}

/* --- sleep and wake ----------------------------------------------------- */

/* The first push after M finds the mark.  M releases what a producer needs to wake the loop,
 * which is the opened backend; the push that removes the mark acquires that (P). */
bool
weft__inbox_begin_sleep(struct weft__inbox *inbox, uintptr_t mode)
{
	uintptr_t head;

	if (!weft__producers_rest(inbox))
		return false;
	head = weft__load(&inbox->head, WEFT__RELAXED);
	do {
		if (node_of(head))
			return false;
		weft__assert(!(head & MODE)); /* invariant 1 */
	} while (!weft__cas(&inbox->head, &head, (head & CLOSED) | mode, WEFT__RELEASE)); /* M */
	inbox->sleeps++;
	return true;
}

void
weft__inbox_end_sleep(struct weft__inbox *inbox, uintptr_t mode)
{
	uintptr_t head = weft__load(&inbox->head, WEFT__RELAXED);

	while ((head & MODE) == mode)
		if (weft__cas(&inbox->head, &head, head & CLOSED, WEFT__RELAXED))
			return;
	weft__count(&inbox->wakes_owed, 1); /* invariant 2 */
}

/* The half of the head word that holds the marks.  The kernel compares it as the thread goes
 * to sleep: a push between begin_sleep and park makes the comparison fail. */
static weft__a32 *
mark_word(struct weft__inbox *inbox)
{
	WEFT_STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	                   "the marks are in the first half");
	return (weft__a32 *)(void *)&inbox->head;
}

/* A close after begin_sleep does not change the mode.  The wake that follows the close does. */
void
weft__inbox_park(struct weft__inbox *inbox, uint64_t deadline_ns)
{
	uintptr_t closed = weft__load(&inbox->head, WEFT__RELAXED) & CLOSED;

	/* The result does not matter: the loop checks for work after every return. */
	(void)weft__sys->park(mark_word(inbox), (uint32_t)(closed | WEFT__IN_PARK), deadline_ns);
}

void
weft__inbox_futex_wake(struct weft__inbox *inbox)
{
	weft__sys->unpark(mark_word(inbox));
}

void
weft__inbox_wake_done(struct weft__inbox *inbox)
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
		.slots_left = { slots_max },
		.slots_max = slots_max,
		.hot_after = HOT_AFTER,
	};
}

void
weft__inbox_fini(struct weft__inbox *inbox, bool alone)
{
	/* Wait for producers that are between their push and the end of their wake.  Acquires
	 * D. */
	while (!alone
	       && weft__load(&inbox->wakes_done, WEFT__ACQUIRE)
	                  != (uint32_t)weft__count_get(&inbox->wakes_owed))
		weft__sys->yield();
	weft__producers_give_up(inbox);
}
