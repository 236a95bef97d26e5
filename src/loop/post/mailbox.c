/* mailbox.c - a stack of letters whose head word also says whether its node is on the way.
 *
 *   1. The head is EMPTY if and only if no node is on its way, and no thread is about to send it.
 *      The thread whose post replaces EMPTY sends the node; the arrival of the node restores
 *      EMPTY.  So the node is never queued twice.
 *   2. A drain leaves EXPECTED instead: no letters, but the node is still on its way.
 *   3. A letter belongs to its sender until the compare-exchange (P), then to the loop.  The post
 *      releases, the taking exchange (T) acquires it.  T reads P or a later post, which continues
 *      P's release sequence: so the loop sees every letter as it was posted.
 *   4. The node belongs to the loop until T has written EMPTY; T releases, and a post that finds
 *      EMPTY acquires.  So the sender may write the node again.
 *   5. CLOSED is final.  A post finds it instead of adding a letter, so close() returns exactly
 *      the letters that were accepted and not taken.
 */
#include "loop/core/loop.h"
#include "loop/post/mailbox.h"

#define EMPTY    WEFT__MAILBOX_EMPTY
#define EXPECTED WEFT__MAILBOX_EXPECTED
#define CLOSED   WEFT__MAILBOX_CLOSED

static struct weft__letter *
letter_of(uintptr_t head)
{
	return head > CLOSED ? (struct weft__letter *)head : NULL;
}

int
weft__mailbox_add(struct weft__mailbox *box, struct weft__letter *letter)
{
	uintptr_t head = weft__load(&box->head, WEFT__RELAXED);

	do {
		if (head == CLOSED)
			return WEFT_ESHUTDOWN;
		weft__put(letter->next, letter_of(head));
	} while (!weft__cas(&box->head, &head, (uintptr_t)letter, WEFT__ACQ_REL)); /* P */
	return head == EMPTY;
}

void
weft__mailbox_announce(struct weft__mailbox *box)
{
	weft__loop_send(box->loop, &box->node, weft__mailbox_arrive, box);
}

bool
weft__mailbox_post(struct weft__mailbox *box, struct weft__letter *letter)
{
	int rc = weft__mailbox_add(box, letter);

	if (rc > 0)
		weft__mailbox_announce(box);
	return rc >= 0;
}

/* Take all letters, oldest first. */
static struct weft__letter *
take_all(struct weft__mailbox *box, uintptr_t leave)
{
	struct weft__letter *letter = letter_of(
		weft__exchange(&box->head, leave, WEFT__ACQ_REL)); /* T */
	struct weft__letter *oldest = NULL, *next;

	for (; letter; letter = next) {
		next = weft__get(letter->next);
		weft__put(letter->next, oldest);
		oldest = letter;
	}
	return oldest;
}

/* These two are inlined, so that a `take` that calls the program is near the loop.
 *
 * A drain that `take` calls gives out the rest before this loop continues. */
static inline __attribute__((always_inline)) void
deliver_taken(struct weft__mailbox *box)
{
	struct weft__letter *letter;

	while ((letter = box->taken)) {
		box->taken = weft__get(letter->next);
		box->take(box, letter);
	}
}

static inline __attribute__((always_inline)) void
deliver(struct weft__mailbox *box, uintptr_t leave)
{
	deliver_taken(box);
	box->taken = take_all(box, leave);
	deliver_taken(box);
}

void
weft__mailbox_arrive(void *arg)
{
	struct weft__mailbox *box = arg;

	weft__assert(weft__count_get(&box->head) != EMPTY); /* invariant 1 */
	if (weft__load(&box->head, WEFT__RELAXED) != CLOSED)
		deliver(box, EMPTY);
}

void
weft__mailbox_drain_now(struct weft__mailbox *box)
{
	deliver_taken(box);
	if (letter_of(weft__load(&box->head, WEFT__RELAXED)))
		deliver(box, EXPECTED);
}

struct weft__letter *
weft__mailbox_close(struct weft__mailbox *box)
{
	return take_all(box, CLOSED);
}
