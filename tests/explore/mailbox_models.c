/* mailbox_models.c - letters from threads to a loop, over all schedules.
 *
 * The mailbox, its node and the inbox are the real source.  A planted bug is a step of the
 * protocol that is left out or comes too early.  inbox_models.c runs these models together with
 * its own.
 */
#include <stddef.h>
#include "base/thread.h"
#include "explore.h"
#include "loop/post/inbox.h"
#include "loop/post/mailbox.h"
#include "models.h"

enum bug {
	NO_BUG,
	ALWAYS_SEND, /* the node is sent although it is on its way */
	EARLY_EMPTY, /* a drain leaves EMPTY, so that the next post sends the node again */
	NO_TURN,     /* the letters are taken newest first */
	FREE_EARLY,  /* the mailbox is freed when it has no letters, though the node is under way */
};

enum { SENDERS = 2, LETTERS = 2 };

struct letter {
	struct weft__letter letter; /* first */
	unsigned who, number;       /* written before the post */
};

struct world {
	enum bug bug;
	struct weft__inbox inbox;
	struct weft__mailbox *box; /* allocated, so that it can be freed */
	struct letter letters[SENDERS][LETTERS];
	unsigned last[SENDERS];
	unsigned got, refused;
	struct weft__node_list first, rest;
};

static struct world *here; /* the world that runs */

/* --- the loop's side -------------------------------------------------------- */

static void
on_letter(struct weft__mailbox *box, struct weft__letter *posted)
{
	struct letter *letter = (struct letter *)(void *)posted;
	unsigned who = weft__get(letter->who);

	EXPLORE_CHECK(box == here->box);
	EXPLORE_CHECK(weft__get(letter->number) == here->last[who] + 1);
	here->last[who]++;
	here->got++;
}

static void
setup(void *state)
{
	struct world *w = state;

	here = w;
	w->bug = (enum bug)planted;
	weft__inbox_init(&w->inbox, 2);
	w->box = weft__sys->alloc(sizeof(*w->box));
	weft__mailbox_init(w->box, NULL, on_letter);
}

static void
take_newest_first(struct weft__mailbox *box)
{
	struct weft__letter *letter = (struct weft__letter *)weft__exchange(
		&box->head, WEFT__MAILBOX_EMPTY, WEFT__ACQ_REL);

	for (; letter; letter = weft__get(letter->next))
		on_letter(box, letter);
}

/* Run the nodes that have arrived. */
static void
run_nodes(struct world *w)
{
	struct weft__node_call call;

	(void)weft__inbox_take(&w->inbox, &w->first, &w->rest);
	while (weft__node_pop(&w->first, &call)) {
		if (w->bug == NO_TURN)
			take_newest_first(w->box);
		else
			call.fn(call.arg);
	}
}

static void
sleep_in_park(struct world *w)
{
	if (!weft__inbox_begin_sleep(&w->inbox, WEFT__IN_PARK))
		return;
	weft__inbox_park(&w->inbox, WEFT_NEVER);
	weft__inbox_end_sleep(&w->inbox, WEFT__IN_PARK);
}

static void
drain(struct world *w)
{
	weft__mailbox_drain(w->box);
	if (w->bug == EARLY_EMPTY
	    && weft__load(&w->box->head, WEFT__RELAXED) == WEFT__MAILBOX_EXPECTED)
		weft__store(&w->box->head, WEFT__MAILBOX_EMPTY, WEFT__RELEASE);
}

/* Take `want` letters, and free the mailbox as soon as it is not due. */
static void
receive(struct world *w, unsigned want, bool drains)
{
	while (w->got < want || (w->bug != FREE_EARLY && weft__mailbox_is_due(w->box))) {
		run_nodes(w);
		if (drains)
			drain(w);
		if (w->got < want || weft__mailbox_is_due(w->box))
			sleep_in_park(w);
	}
	weft__sys->release(w->box);
	w->box = NULL;
}

static void
receive_two(void *state)
{
	receive(state, 2, false);
}

static void
drain_two(void *state)
{
	receive(state, 2, true);
}

/* Close the mailbox while letters are posted. */
static void
receive_and_close(void *state)
{
	struct world *w = state;
	struct weft__letter *letter, *next;

	run_nodes(w);
	for (letter = weft__mailbox_close(w->box); letter; letter = next) {
		next = letter->next;
		on_letter(w->box, letter);
	}
}

/* --- senders ------------------------------------------------------------------ */

/* As weft__loop_send(). */
static void
send_node(struct world *w, struct weft__mailbox *box)
{
	struct weft__node *node = (struct weft__node *)(void *)&box->node;
	int mode;

	weft__put(node->fn, weft__mailbox_arrive);
	weft__put(node->arg, (void *)box);
	weft__put(node->kind, WEFT__NODE_OWN | WEFT__NODE_KEEP | WEFT__NODE_FIRST);
	mode = weft__inbox_push(&w->inbox, node, true);
	if (mode <= 0)
		return;
	weft__inbox_futex_wake(&w->inbox);
	weft__inbox_wake_done(&w->inbox);
}

static void
post(struct world *w, unsigned who, unsigned count)
{
	struct weft__mailbox *box = w->box;

	for (unsigned i = 0; i < count; i++) {
		struct letter *letter = &w->letters[who][i];
		int rc;

		weft__put(letter->who, who);
		weft__put(letter->number, i + 1);
		rc = weft__mailbox_add(box, &letter->letter);
		if (rc > 0 || (rc == 0 && w->bug == ALWAYS_SEND))
			send_node(w, box);
		if (rc < 0)
			weft__put(w->refused, weft__get(w->refused) + 1);
	}
}

static void
post_one(void *state)
{
	post(state, 0, 1);
}

static void
post_two(void *state)
{
	post(state, 0, 2);
}

static void
post_other(void *state)
{
	post(state, 1, 1);
}

/* --- checks --------------------------------------------------------------------- */

static void
check_taken(void *state)
{
	struct world *w = state;

	weft__inbox_fini(&w->inbox, false);
}

/* Each letter was either refused or returned; what a late node finds is nothing. */
static void
check_closed(void *state)
{
	struct world *w = state;

	run_nodes(w);
	EXPLORE_CHECK(w->got + w->refused == 2);
	weft__inbox_fini(&w->inbox, false);
	weft__sys->release(w->box);
}

/* --- the models ------------------------------------------------------------------- */

#define MODEL(name_, check_, ...)                                                  \
	{                                                                          \
		.name = name_, .state_size = sizeof(struct world), .setup = setup, \
		.check = check_, __VA_ARGS__                                       \
	}

static const struct explore_model models[] = {
	MODEL("letters arrive once and in order", check_taken, .threads = 2,
	      .thread = { post_two, receive_two }),
	MODEL("a drain takes letters ahead of the node", check_taken, .threads = 2,
	      .thread = { post_two, drain_two }),
	MODEL("letters of two threads arrive", check_taken, .threads = 3,
	      .thread = { post_one, post_other, receive_two }, .preemptions = 3),
	MODEL("letters of two threads arrive at a loop that drains", check_taken, .threads = 3,
	      .thread = { post_one, post_other, drain_two }, .preemptions = 3),
	MODEL("a closed mailbox returns the letters that it accepted", check_closed, .threads = 2,
	      .thread = { post_two, receive_and_close }),
};

static const struct plant plants[] = {
	{ ALWAYS_SEND, &models[0], 0, "sends the node for each letter" },
	{ EARLY_EMPTY, &models[1], 0, "forgets in a drain that the node is on its way" },
	{ NO_TURN, &models[0], 0, "takes the newest letter first" },
	{ FREE_EARLY, &models[1], 0, "frees a mailbox whose node is on its way" },
};

const struct model_set mailbox_models = {
	.models = models,
	.plants = plants,
	.model_count = COUNT(models),
	.plant_count = COUNT(plants),
};
