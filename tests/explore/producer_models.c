/* producer_models.c - the producer queues of an inbox, over all schedules.
 *
 * inbox_models.c runs these models together with its own.
 */
#include "inbox_world.h"

/* --- posting ------------------------------------------------------------ */

/* As weft_loop_post() does it; false if the inbox was closed. */
static bool
post(struct world *w, uintptr_t what)
{
	struct weft__inbox *inbox = w->inbox;
	int rc;

	do
		rc = weft__inbox_is_closed(inbox) ? WEFT_ESHUTDOWN
		                                  : weft__producer_post(inbox, mark, (void *)what);
	while (rc == WEFT_EAGAIN && (weft__sys->yield(), true));
	if (rc >= 0)
		(void)weft__add(&w->accepted, 1, WEFT__RELAXED);
	wake(w, inbox, rc);
	return rc >= 0;
}

static bool
post_node(struct world *w, uintptr_t what)
{
	struct weft__node *node = &w->node[0][what % 2];
	int rc;

	fill(node, what);
	rc = weft__inbox_is_closed(w->inbox) ? WEFT_ESHUTDOWN
	                                     : weft__producer_post_node(w->inbox, node);
	if (rc >= 0)
		(void)weft__add(&w->accepted, 1, WEFT__RELAXED);
	wake(w, w->inbox, rc);
	return rc >= 0;
}

static void
post_one(struct world *w, uintptr_t what)
{
	EXPLORE_CHECK(post(w, what));
}

/* --- setups ------------------------------------------------------------- */

/* Detach the queues that setup has made; the first thread takes them over by take_producers(). */
static void
leave_producers(struct world *w)
{
	w->maker = *weft__thread_self();
	*weft__thread_self() = (struct weft__thread){ 0 };
}

static void
take_producers(struct world *w)
{
	*weft__thread_self() = w->maker;
}

static int
no_barrier(void)
{
	return 0;
}

/* Planted: the barrier of the sys table does nothing. */
static void
without_barrier(void)
{
	static struct weft__sys table;

	table = *weft__sys;
	table.barrier = no_barrier;
	weft__sys = &table;
}

/* A HOT queue: the loop checks it in every iteration. */
static void
setup_hot(void *state)
{
	struct world *w = state;

	open_world(w, 256);
	if (w->bug == NO_BARRIER)
		without_barrier();
	w->inbox->hot_after = 1;
	post_one(w, 1);
	take_all(w);
	leave_producers(w);
	EXPLORE_CHECK(w->inbox->listed.first->hot);
}

/* The same queue, after the loop has stopped checking it. */
static void
setup_cool(void *state)
{
	struct world *w = state;

	setup_hot(w);
	EXPLORE_CHECK(weft__producers_rest(w->inbox));
	w->inbox->hot_after = 512;
}

static void
setup_narrow(void *state)
{
	open_world(state, 1);
}

static void
setup_four(void *state)
{
	struct world *w = state;

	setup(w);
	weft__store(&w->inbox->slots_left, 4, WEFT__RELAXED);
	w->inbox->slots_max = 128; /* queues begin with two entries */
}

/* A queue whose thread has ended, with an unread entry, and its node still in the inbox. */
static void
setup_left(void *state)
{
	struct world *w = state;

	setup_four(w);
	post_one(w, UNORDERED);
	weft__thread_end(weft__thread_self());
}

/* A full queue whose thread has ended: both threads find it. */
static void
setup_full(void *state)
{
	struct world *w = state;

	setup(w);
	weft__store(&w->inbox->slots_left, 1, WEFT__RELAXED);
	post_one(w, 1);
	weft__thread_end(weft__thread_self());
}

/* Two queues without an owner: first a full one, then one with room.  The thread that adopts
 * the full one takes that room over, while the other thread may be about to adopt the queue
 * with room. */
static void
setup_two_producers(void *state)
{
	struct world *w = state;
	struct weft__producer *roomy;

	setup(w);
	weft__store(&w->inbox->slots_left, 3, WEFT__RELAXED);
	w->inbox->slots_max = 128; /* queues begin with two entries */
	post_one(w, UNORDERED);
	take_all(w);
	roomy = weft__thread_self()->producers;
	*weft__thread_self() = (struct weft__thread){ 0 };
	post_one(w, UNORDERED);
	take_all(w);
	weft__store(&roomy->owned, 0, WEFT__RELAXED);
	(void)weft__add(&roomy->refs, UINT32_MAX, WEFT__RELAXED);
	weft__thread_end(weft__thread_self());
}

/* --- threads that post -------------------------------------------------- */

/* Two posts.  With room for one, the second waits until the loop has read the first. */
static void
post_two(void *state)
{
	post_one(state, 1);
	post_one(state, 2);
}

static void
post_three(void *state)
{
	for (uintptr_t i = 1; i <= 3; i++)
		post_one(state, i);
}

/* Calls and nodes of one thread keep their order. */
static void
post_mixed(void *state)
{
	struct world *w = state;

	if (post(w, 1) && post_node(w, 2))
		(void)post(w, 3);
}

static void
post_second(void *state)
{
	take_producers(state);
	(void)post(state, 2);
}

static void
post_more(void *state)
{
	struct world *w = state;

	take_producers(w);
	if (post(w, 2))
		(void)post(w, 3);
}

/* The thread already has a queue: it posts a call, then a node. */
static void
post_second_node(void *state)
{
	take_producers(state);
	if (post(state, 2))
		(void)post_node(state, 3);
}

static void
post_node_more(void *state)
{
	take_producers(state);
	(void)post_node(state, 2);
}

/* A thread posts and ends; the other thread reads that and posts into the same queue. */
static void
post_and_end(void *state)
{
	post_one(state, 1);
	weft__thread_end(weft__thread_self());
}

/* The loop may run the call, end and be freed before post() returns. */
static void
post_second_and_end(void *state)
{
	take_producers(state);
	(void)post(state, 2);
	weft__thread_end(weft__thread_self());
}

static void
post_node_and_end(void *state)
{
	take_producers(state);
	(void)post_node(state, 2);
	weft__thread_end(weft__thread_self());
}

/* There is no queue yet, so the node goes directly into the inbox; then the thread adopts one. */
static void
post_node_then_call(void *state)
{
	struct world *w = state;

	(void)post_node(w, 1);
	(void)post(w, 2);
}

/* Two threads make and adopt queues of one inbox; the loop reads at the end.  A thread that
 * ends and posts again counts as a new thread, so its posts are unordered. */
static void
post_twice_and_end(void *state)
{
	for (int i = 0; i < 2; i++) {
		post_one(state, UNORDERED);
		weft__thread_end(weft__thread_self());
	}
}

static void
post_once_and_end(void *state)
{
	post_one(state, UNORDERED);
	weft__thread_end(weft__thread_self());
}

static void
find_full(void *state)
{
	struct world *w = state;
	int rc = weft__producer_post(w->inbox, mark, (void *)UNORDERED);

	/* The thread that adopts the queue finds it full; the other makes one for a single call. */
	EXPLORE_CHECK(rc == WEFT_EAGAIN || rc == WEFT__AWAKE);
	if (rc >= 0)
		(void)weft__add(&w->accepted, 1, WEFT__RELAXED);
}

static void
post_two_unordered(void *state)
{
	post_one(state, UNORDERED);
	post_one(state, UNORDERED);
}

static void
post_one_unordered(void *state)
{
	post_one(state, UNORDERED);
}

/* --- the loop's side ---------------------------------------------------- */

static void
consume_three(void *state)
{
	consume(state, 3, false);
}

static void
consume_and_post(void *state)
{
	consume(state, 1, false);
	post_one(state, 2);
	consume(state, 2, false);
	weft__thread_end(weft__thread_self());
}

/* The posting thread ends while this one frees the inbox. */
static void
consume_free_end(void *state)
{
	consume_and_free(state);
	weft__thread_end(weft__thread_self());
}

static void
consume_two_and_free(void *state)
{
	struct world *w = state;

	consume(w, 2, false);
	while (!weft__producers_rest(w->inbox))
		take_all(w);
	end_world(w, false);
}

/* A budget of one: in each iteration one node of the list, then all queues. */
static void
consume_in_steps(void *state)
{
	struct world *w = state;

	while (w->got < 3) {
		struct weft__node_call call;

		(void)weft__inbox_take(w->inbox, &w->first, &w->rest);
		if (weft__node_pop(&w->rest, &call))
			note(w, call.arg);
		run_producers(w);
		if (w->got < 3 && !w->rest.first)
			sleep_once(w, false);
	}
}

static void
take_and_check(void *state)
{
	take_all(state);
	check_accepted(state);
}

/* --- the models --------------------------------------------------------- */

#define PRODUCERS(name_, setup_, post_, loop_, bound_) \
	PRODUCERS_(name_, setup_, post_, loop_, bound_, check_accepted)
#define PRODUCERS_(name_, setup_, one_, other_, bound_, check_)                                   \
	{                                                                                         \
		.name = name_, .state_size = sizeof(struct world), .setup = setup_, .threads = 2, \
		.thread = { one_, other_ }, .check = check_, .preemptions = bound_                \
	}

enum { HOT_MODEL = 5 }; /* its index; 4 later: the same while the inbox closes */

static const struct explore_model models[] = {
	PRODUCERS_("a thread ends while the loop it posted to is freed", setup, post_and_end,
	           consume_free_end, 3, check_gone),
	PRODUCERS_("two threads find a full producer", setup_full, find_full, find_full, 1,
	           take_and_check),
	PRODUCERS("a slot is not used again before it was read", setup_narrow, post_two,
	          consume_two, 1),
	PRODUCERS_("two threads share the producers that others left", setup_four,
	           post_twice_and_end, post_once_and_end, 1, take_and_check),
	PRODUCERS("a producer passes from one thread to another", setup_narrow, post_and_end,
	          consume_and_post, 2),
	[HOT_MODEL] = PRODUCERS("a loop that leaves a hot producer misses no call", setup_hot,
	                        post_second, consume_two, 0),
	PRODUCERS("... nor one of two", setup_hot, post_more, consume_three, 2),
	PRODUCERS("a loop that goes quiet on a producer misses no call", setup_cool, post_second,
	          consume_two, 0),
	PRODUCERS("... nor one of two", setup_cool, post_more, consume_three, 2),
	PRODUCERS("what a hot producer accepts while the door closes is found", setup_hot,
	          post_second, close_and_take, 0),
	PRODUCERS("... also of two", setup_hot, post_more, close_and_take, 3),
	PRODUCERS("what a quiet producer accepts while the door closes is found", setup_cool,
	          post_second, close_and_take, 0),
	PRODUCERS("... also of two", setup_cool, post_more, close_and_take, 3),
	PRODUCERS("a node that a producer accepts while the door closes is found", setup_cool,
	          post_node_more, close_and_take, 0),
	PRODUCERS("... also of a hot one", setup_hot, post_second_node, close_and_take, 3),
	PRODUCERS("calls and nodes of a thread keep their order", setup_four, post_mixed,
	          consume_three, 2),
	PRODUCERS("a producer goes on in pieces that the loop gives back", setup, post_three,
	          consume_three, 1),
	PRODUCERS_("a call that has run touches no inbox that is gone", setup_hot,
	           post_second_and_end, consume_two_and_free, 3, check_gone),
	PRODUCERS_("nor does one of a quiet producer", setup_cool, post_second_and_end,
	           consume_two_and_free, 3, check_gone),
	PRODUCERS_("nor does a node", setup_hot, post_node_and_end, consume_two_and_free, 3,
	           check_gone),
	PRODUCERS("a producer that is taken over does not overtake a node", setup_left,
	          post_node_then_call, consume_in_steps, 2),
	PRODUCERS_("room that a producer does not use goes to another", setup_two_producers,
	           post_two_unordered, post_one_unordered, 2, take_and_check),
};

static const struct plant plants[] = {
	{ NO_BARRIER, &models[HOT_MODEL], 0, "leaves a hot producer without a barrier" },
	{ NO_REST, &models[HOT_MODEL + 4], 0, "ends while a producer is hot" },
};

const struct model_set producer_models = {
	.models = models,
	.plants = plants,
	.model_count = COUNT(models),
	.plant_count = COUNT(plants),
};
