/* inbox_models.c - the inbox of a loop and its lock, over all schedules.
 *
 * The models call the real source.  A planted bug is the protocol with one step missing.
 *
 * main() also runs the models of producer_models.c and mailbox_models.c.
 */
#include "inbox_world.h"

/* --- producers ---------------------------------------------------------- */

/* Push `count` nodes; the argument of each encodes its producer and number. */
static void
produce(struct world *w, int who, uint32_t count)
{
	struct weft__inbox *inbox = w->inbox;

	for (uint32_t i = 0; i < count; i++) {
		struct weft__node *node = &w->node[who][i];
		int mode;

		fill(node, 16 * (uintptr_t)who + i + 1);
		mode = weft__inbox_push(inbox, node, false);
		if (mode >= 0)
			(void)weft__add(&w->accepted, 1, WEFT__RELAXED);
		wake(w, inbox, mode);
	}
}

static void
produce_one(void *state)
{
	produce(state, 0, 1);
}

static void
produce_two(void *state)
{
	produce(state, 0, 2);
}

static void
produce_other(void *state)
{
	produce(state, 1, 1);
}

/* Push the same node twice, the second time after it was seen to be free. */
static void
push_node_twice(void *state)
{
	struct world *w = state;
	struct weft__node *node = &w->node[0][0];

	for (uintptr_t i = 1; i <= 2; i++) {
		while (weft__load(&node->state, WEFT__ACQUIRE))
			weft__sys->yield();
		weft__store(&node->state, WEFT__NODE_QUEUED, WEFT__RELAXED);
		fill(node, i);
		(void)weft__add(&w->accepted, 1, WEFT__RELAXED);
		wake(w, w->inbox, weft__inbox_push(w->inbox, node, false));
	}
}

/* --- the loop's side ---------------------------------------------------- */

static void
consume_two_by_both(void *state)
{
	consume(state, 2, true);
}

/* As a host runs an embedded loop: one iteration, at its end the sleep mark IN_FOREIGN, a check
 * as in weft_loop_next(), and a wait for the descriptor. */
static void
host(struct world *w, uint32_t want)
{
	bool foreign = false;

	for (;;) {
		if (foreign)
			weft__inbox_end_sleep(w->inbox, WEFT__IN_FOREIGN);
		take_all(w);
		if (w->got >= want)
			return;
		open_backend(w);
		foreign = w->bug != NO_BEGIN_SLEEP
		          && weft__inbox_begin_sleep(w->inbox, WEFT__IN_FOREIGN);
		if (w->bug == NO_CHECK || !weft__inbox_has(w->inbox))
			(void)explore_fd_wait(EXPLORE_FD, WEFT_NEVER);
	}
}

static void
host_two(void *state)
{
	host(state, 2);
}

/* Freed between two iterations, while a producer may still be waking it. */
static void
host_and_free(void *state)
{
	struct world *w = state;

	host(w, 1);
	open_backend(w);
	if (weft__inbox_begin_sleep(w->inbox, WEFT__IN_FOREIGN))
		weft__inbox_end_sleep(w->inbox, WEFT__IN_FOREIGN);
	end_world(w, w->bug == NO_DEBT);
}

/* --- the lock ----------------------------------------------------------- */

static void
lock_and_add(void *state)
{
	struct world *w = state;

	weft__lock_take(&w->lock);
	weft__put(w->shared, weft__get(w->shared) + 1);
	weft__lock_give(&w->lock);
}

static void
check_shared(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->shared == 2);
	weft__sys->release(w->inbox);
}

/* --- the models --------------------------------------------------------- */

#define MODEL(name_, ...)                                                                      \
	{                                                                                      \
		.name = name_, .state_size = sizeof(struct world), .setup = setup, __VA_ARGS__ \
	}

enum { HOST_MODEL = 7 }; /* its index; two related models follow */

static const struct explore_model models[] = {
	MODEL("a loop that goes to sleep misses no push", .threads = 2,
	      .thread = { produce_two, consume_two }, .check = check_accepted, .spurious = 1),
	MODEL("order and wakes hold when the way of sleeping changes", .threads = 2,
	      .thread = { produce_two, consume_two_by_both }, .check = check_accepted),
	MODEL("a wake never reaches an inbox that is gone", .threads = 2,
	      .thread = { produce_one, consume_and_free }, .check = check_gone, .spurious = 1),
	MODEL("what is accepted while the door closes is found", .threads = 2,
	      .thread = { produce_two, close_and_take }, .check = check_accepted),
	MODEL("a node that was seen to be free is", .threads = 2,
	      .thread = { push_node_twice, consume_two }, .check = check_accepted,
	      .preemptions = 3),
	MODEL("the lock lets one in at a time", .threads = 2,
	      .thread = { lock_and_add, lock_and_add }, .check = check_shared),
	MODEL("two producers and a loop", .threads = 3,
	      .thread = { produce_one, produce_other, consume_two }, .check = check_accepted,
	      .preemptions = 3),
	[HOST_MODEL] = MODEL("a loop that lives in another misses no push", .threads = 2,
	                     .thread = { produce_two, host_two }, .check = check_accepted),
	MODEL("two producers and a loop that lives in another", .threads = 3,
	      .thread = { produce_one, produce_other, host_two }, .check = check_accepted,
	      .preemptions = 3),
	MODEL("a wake never reaches a loop that was freed in its host", .threads = 2,
	      .thread = { produce_one, host_and_free }, .check = check_gone),
};

static const struct plant plants[] = {
	{ NO_COMPARE, &models[0], 0, "checks, then parks elsewhere than on the mark" },
	{ NO_WAKE_CALL, &models[0], 0, "takes the mark and does not wake" },
	{ NO_DEBT, &models[2], 0, "does not wait for who owes a wake" },
	{ LATE_CLOSE, &models[3], 0, "closes the door after its last check" },
	{ LIFO, &models[0], 0, "does not turn the chain around" },
	{ NO_BEGIN_SLEEP, &models[HOST_MODEL], 0, "goes back to its host without the mark" },
	{ NO_CHECK, &models[HOST_MODEL], 0,
	  "waits for the descriptor though begin_sleep has failed" },
	{ NO_WAKE_CALL, &models[HOST_MODEL + 1], 0, "takes the mark IN_FOREIGN and does not wake" },
	{ NO_DEBT, &models[HOST_MODEL + 2], 0, "is freed in its host while a wake is owed" },
};

static const struct model_set inbox_models = {
	.models = models,
	.plants = plants,
	.model_count = COUNT(models),
	.plant_count = COUNT(plants),
};

/* --- the run ------------------------------------------------------------ */

int
main(int argc, char **argv)
{
	static const struct model_set *const sets[] = { &inbox_models, &producer_models,
		                                        &mailbox_models };

	(void)argv;
	return models_run(sets, COUNT(sets), argc);
}
