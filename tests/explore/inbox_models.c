/* inbox_models.c - the inbox of a loop, its lanes and its lock, over all schedules.
 *
 * The models call the real source.  Each says what must hold in every execution;
 * then every memory order in it is weakened by a step, one at a time, which some
 * model must notice, or the order is not needed.  Planted bugs are the protocol with
 * one step left out; the explorer must find each of them.
 *
 * tidy: long file, because the orders of one source are weakened over all its models.
 */
#include <stdio.h>
#include <string.h>
#include "base/lock.h"
#include "base/thread.h"
#include "explore.h"
#include "loop/lane.h"

enum bug {
	NO_BUG,
	NO_COMPARE, /* the loop looks, then parks without the mark */
	NO_RING,    /* the producer that took the mark does not wake */
	NO_DEBT,    /* the loop does not wait for who still owes a wake */
	LATE_CLOSE, /* the door is closed after the last look */
	LIFO,       /* the chain is not turned around */
	NO_BARRIER, /* a hot lane is left without one */
	NO_REST,    /* the loop ends while lanes are hot */
	NO_DOZE, /* an embedded loop goes back to its host without the mark */
	NO_LOOK, /* its host does not ask whether the doze has failed */
};

#define UNORDERED ((uintptr_t)32) /* an argument */

struct world {
	enum bug bug;
	struct weft__inbox *inbox; /* allocated, so that it can be given up */
	struct weft__node node[2][2];
	weft__a32 accepted;
	uint32_t got, last[2];
	struct weft__node_list first, rest;
	int shared;
	int opened; /* the backend: written before the loop first waits there */
	struct weft__lock lock;
	struct weft__thread maker; /* of lanes, in setup */
};

static enum bug planted;

static void
setup(void *state)
{
	struct world *w = state;

	w->bug = planted;
	w->inbox = weft__sys->alloc(sizeof(*w->inbox));
	weft__inbox_init(w->inbox, 2);
}

static void
mark(void *arg)
{
	(void)arg;
}

/* --- producers ---------------------------------------------------------- */

static void
wake(struct world *w, struct weft__inbox *inbox, int mode)
{
	uint64_t one = 1;

	if (mode <= 0 || w->bug == NO_RING)
		return;
	if (mode == WEFT__IN_PARK) {
		weft__inbox_ring(inbox);
	} else {
		EXPLORE_CHECK(weft__get(w->opened) == 1);
		(void)weft__sys->write(EXPLORE_FD, &one, sizeof(one));
	}
	weft__inbox_woken(inbox);
}

/* Push `count` nodes whose argument tells producer and number. */
static void
produce(struct world *w, int who, uint32_t count)
{
	struct weft__inbox *inbox = w->inbox;

	for (uint32_t i = 0; i < count; i++) {
		struct weft__node *node = &w->node[who][i];
		int mode;

		weft__put(node->fn, mark);
		weft__put(node->arg,
		          (void *)(uintptr_t)(16 * who + (int)i + 1));
		weft__put(node->kind, 0);
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

/* --- the loop's side ---------------------------------------------------- */

/* Each producer's nodes come in their order, each once. */
static void
note(struct world *w, void *arg)
{
	uintptr_t what = (uintptr_t)arg;
	unsigned who = (unsigned)what / 16;

	w->got++;
	if (what == UNORDERED)
		return;
	EXPLORE_CHECK(what % 16 == w->last[who] + 1);
	w->last[who]++;
}

static void
run_lanes(struct world *w)
{
	for (uint32_t left = w->inbox->listed[0].count; left > 0; left--) {
		struct weft__lane *lane = weft__lane_begin(w->inbox, 0);
		uint32_t ran = 0;
		weft_fn fn;
		void *arg;

		while (weft__lane_next(lane, &fn, &arg)) {
			EXPLORE_CHECK(fn == mark);
			note(w, arg);
			ran++;
		}
		weft__lane_end(lane, ran);
	}
}

static void
take_all(struct world *w)
{
	weft_fn fn;
	void *arg;

	(void)weft__inbox_take(w->inbox, &w->first, &w->rest);
	if (w->bug == LIFO && w->rest.first && w->rest.first->next) {
		struct weft__node *a = w->rest.first, *b = a->next;

		w->rest.first = b;
		b->next = a;
		a->next = NULL;
	}
	while (weft__node_pop(&w->rest, &fn, &arg)) {
		EXPLORE_CHECK(fn == mark);
		note(w, arg);
	}
	run_lanes(w);
}

static void
open_backend(struct world *w)
{
	if (!w->opened)
		weft__put(w->opened, 1);
}

static void
sleep_once(struct world *w, bool by_fd)
{
	if (by_fd) {
		open_backend(w);
		if (!weft__inbox_doze(w->inbox, WEFT__IN_BACKEND))
			return;
		(void)explore_fd_wait(EXPLORE_FD, WEFT_NEVER);
		weft__inbox_rouse(w->inbox, WEFT__IN_BACKEND);
	} else if (w->bug == NO_COMPARE) {
		if (!weft__inbox_has(w->inbox)
		    && weft__inbox_doze(w->inbox, WEFT__IN_PARK)) {
			static weft__a32 other;

			(void)weft__sys->park(&other, 0, WEFT_NEVER);
		}
	} else {
		weft__inbox_park(w->inbox, WEFT_NEVER);
	}
}

static void
consume(struct world *w, uint32_t want, bool switch_modes)
{
	for (;;) {
		take_all(w);
		if (w->got >= want)
			return;
		sleep_once(w, switch_modes && explore_choose(2));
	}
}

static void
consume_two(void *state)
{
	consume(state, 2, false);
}

static void
consume_two_by_both(void *state)
{
	consume(state, 2, true);
}

/* As a host does with a loop that lives in it: a turn, a doze IN_FOREIGN as that ends,
 * a look at weft_loop_next(), and a wait for the descriptor. */
static void
host(struct world *w, uint32_t want)
{
	bool foreign = false;

	for (;;) {
		if (foreign)
			weft__inbox_rouse(w->inbox, WEFT__IN_FOREIGN);
		take_all(w);
		if (w->got >= want)
			return;
		open_backend(w);
		foreign = w->bug != NO_DOZE
		          && weft__inbox_doze(w->inbox, WEFT__IN_FOREIGN);
		if (w->bug == NO_LOOK || !weft__inbox_has(w->inbox))
			(void)explore_fd_wait(EXPLORE_FD, WEFT_NEVER);
	}
}

static void
host_two(void *state)
{
	host(state, 2);
}

/* Freed between turns, while a wake may be under way. */
static void
host_and_free(void *state)
{
	struct world *w = state;

	host(w, 1);
	open_backend(w);
	if (weft__inbox_doze(w->inbox, WEFT__IN_FOREIGN))
		weft__inbox_rouse(w->inbox, WEFT__IN_FOREIGN);
	weft__inbox_fini(w->inbox, w->bug == NO_DEBT);
	weft__sys->release(w->inbox);
	w->inbox = NULL;
}

/* Take what comes and give up the inbox at once. */
static void
consume_and_free(void *state)
{
	struct world *w = state;

	consume(w, 1, false);
	weft__inbox_fini(w->inbox, w->bug == NO_DEBT);
	weft__sys->release(w->inbox);
	w->inbox = NULL;
}

/* Close, take what was accepted, and take nothing ever after. */
static void
close_and_take(void *state)
{
	struct world *w = state;

	if (w->bug != LATE_CLOSE)
		weft__inbox_close(w->inbox);
	do
		take_all(w);
	while (w->bug != NO_REST
	       && (!weft__lanes_rest(w->inbox) || weft__inbox_has(w->inbox)));
	if (w->bug == LATE_CLOSE)
		weft__inbox_close(w->inbox);
}

static void
check_accepted(void *state)
{
	struct world *w = state;

	EXPLORE_CHECK(w->got == weft__load(&w->accepted, WEFT__RELAXED));
	weft__inbox_fini(w->inbox, false);
	weft__sys->release(w->inbox);
}

static void
check_gone(void *state)
{
	(void)state;
}

/* --- lanes -------------------------------------------------------------- */

/* Hand the lanes that setup has made over to the first thread, which takes them. */
static void
leave_lanes(struct world *w)
{
	w->maker = *weft__thread_self();
	*weft__thread_self() = (struct weft__thread){ 0 };
}

static void
take_lanes(struct world *w)
{
	*weft__thread_self() = w->maker;
}

/* As weft_loop_post() does it; false if the door was closed. */
static bool
post(struct world *w, uintptr_t what)
{
	struct weft__inbox *inbox = w->inbox;
	int rc;

	do
		rc = weft__inbox_is_closed(inbox)
		             ? WEFT_ESHUTDOWN
		             : weft__lane_post(inbox, mark, (void *)what, 0);
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

	weft__put(node->fn, mark);
	weft__put(node->arg, (void *)what);
	weft__put(node->kind, 0);
	rc = weft__inbox_is_closed(w->inbox)
	             ? WEFT_ESHUTDOWN
	             : weft__lane_post_node(w->inbox, node);
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

/* Two posts: with room for one, the second waits until the first was read. */
static void
post_two(void *state)
{
	post_one(state, 1);
	post_one(state, 2);
}

/* The order of calls and nodes of one thread. */
static void
post_mixed(void *state)
{
	struct world *w = state;

	if (post(w, 1) && post_node(w, 2))
		(void)post(w, 3);
}

static void
post_more(void *state)
{
	struct world *w = state;

	take_lanes(w);
	if (post(w, 2))
		(void)post(w, 3);
}

static void
post_second(void *state)
{
	take_lanes(state);
	(void)post(state, 2);
}

/* As it has a lane already: a node after a call. */
static void
post_second_node(void *state)
{
	take_lanes(state);
	if (post(state, 2))
		(void)post_node(state, 3);
}

static void
post_three(void *state)
{
	for (uintptr_t i = 1; i <= 3; i++)
		post_one(state, i);
}

static void
post_node_more(void *state)
{
	take_lanes(state);
	(void)post_node(state, 2);
}

static void
consume_three(void *state)
{
	consume(state, 3, false);
}

static int
no_barrier(void)
{
	return 0;
}

/* Planted: the sys table has a barrier that is none. */
static void
without_barrier(void)
{
	static struct weft__sys table;

	table = *weft__sys;
	table.barrier = no_barrier;
	weft__sys = &table;
}

/* A lane that the loop looks into at every turn. */
static void
setup_hot(void *state)
{
	struct world *w = state;

	w->bug = planted;
	if (w->bug == NO_BARRIER)
		without_barrier();
	w->inbox = weft__sys->alloc(sizeof(*w->inbox));
	weft__inbox_init(w->inbox, 256);
	w->inbox->hot_after = 1;
	post_one(w, 1);
	take_all(w);
	leave_lanes(w);
	EXPLORE_CHECK(w->inbox->listed[0].first->hot);
}

/* ... and one that it does not. */
static void
setup_cool(void *state)
{
	struct world *w = state;

	setup_hot(w);
	EXPLORE_CHECK(weft__lanes_rest(w->inbox));
	w->inbox->hot_after = 512;
}

/* A thread posts and ends; the other reads that and posts in the same place. */
static void
post_and_end(void *state)
{
	post_one(state, 1);
	weft__thread_end(weft__thread_self());
}

static void
consume_and_post(void *state)
{
	consume(state, 1, false);
	post_one(state, 2);
	consume(state, 2, false);
	weft__thread_end(weft__thread_self());
}

/* The thread that posted ends while the inbox is given up. */
static void
consume_free_end(void *state)
{
	consume_and_free(state);
	weft__thread_end(weft__thread_self());
}

static void setup_four(void *state);

/* The loop runs the call, goes and is freed, while the thread has not come back. */
static void
post_second_and_end(void *state)
{
	take_lanes(state);
	(void)post(state, 2);
	weft__thread_end(weft__thread_self());
}

static void
post_node_and_end(void *state)
{
	take_lanes(state);
	(void)post_node(state, 2);
	weft__thread_end(weft__thread_self());
}

static void
consume_two_and_free(void *state)
{
	struct world *w = state;

	consume(w, 2, false);
	while (!weft__lanes_rest(w->inbox))
		take_all(w);
	weft__inbox_fini(w->inbox, false);
	weft__sys->release(w->inbox);
	w->inbox = NULL;
}

/* A node goes in by the door, as there is no lane; then a lane is taken over. */
static void
post_node_then_call(void *state)
{
	struct world *w = state;

	(void)post_node(w, 1);
	(void)post(w, 2);
}

/* A budget of one: a node of the list in each turn, then all lanes. */
static void
consume_in_steps(void *state)
{
	struct world *w = state;

	while (w->got < 3) {
		weft_fn fn;
		void *arg;

		(void)weft__inbox_take(w->inbox, &w->first, &w->rest);
		if (weft__node_pop(&w->rest, &fn, &arg))
			note(w, arg);
		run_lanes(w);
		if (w->got < 3 && !w->rest.first)
			sleep_once(w, false);
	}
}

/* A lane that another thread has left, with its node in the queue, and behind it. */
static void
setup_left(void *state)
{
	struct world *w = state;

	setup_four(w);
	post_one(w, UNORDERED);
	weft__thread_end(weft__thread_self());
}

/* The same node twice: the second time when it was seen to be free. */
static void
push_node_twice(void *state)
{
	struct world *w = state;
	struct weft__node *node = &w->node[0][0];

	for (uintptr_t i = 1; i <= 2; i++) {
		while (weft__load(&node->state, WEFT__ACQUIRE))
			weft__sys->yield();
		weft__store(&node->state, WEFT__NODE_QUEUED, WEFT__RELAXED);
		weft__put(node->fn, mark);
		weft__put(node->arg, (void *)i);
		weft__put(node->kind, 0);
		(void)weft__add(&w->accepted, 1, WEFT__RELAXED);
		wake(w, w->inbox, weft__inbox_push(w->inbox, node, false));
	}
}

/* Two threads make and take over lanes of one inbox; the loop reads at the end.  One
 * that has ended is another when it comes again: no order binds the two. */
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

/* A thread that has ended left a lane that is full: both look at it. */
static void
setup_full(void *state)
{
	struct world *w = state;

	setup(w);
	weft__store(&w->inbox->slots_left[0], 1, WEFT__RELAXED);
	post_one(w, 1);
	weft__thread_end(weft__thread_self());
}

static void
find_full(void *state)
{
	struct world *w = state;

	int rc = weft__lane_post(w->inbox, mark, (void *)UNORDERED, 0);

	/* Who gets the lane finds it full; the other makes one for one call. */
	EXPLORE_CHECK(rc == WEFT_EAGAIN || rc == WEFT__AWAKE);
	if (rc >= 0)
		(void)weft__add(&w->accepted, 1, WEFT__RELAXED);
}

/* Two lanes of nobody: first one that is full, then one with room.  Who takes over the
 * full one takes that room away, and the other may be about to take over the lane. */
static void
setup_two_lanes(void *state)
{
	struct world *w = state;
	struct weft__lane *roomy;

	setup(w);
	weft__store(&w->inbox->slots_left[0], 3, WEFT__RELAXED);
	w->inbox->slots_max = 128; /* lanes begin with two */
	post_one(w, UNORDERED);
	take_all(w);
	roomy = weft__thread_self()->lanes;
	*weft__thread_self() = (struct weft__thread){ 0 };
	post_one(w, UNORDERED);
	take_all(w);
	weft__store(&roomy->owned, 0, WEFT__RELAXED);
	(void)weft__add(&roomy->refs, UINT32_MAX, WEFT__RELAXED);
	weft__thread_end(weft__thread_self());
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

static void
setup_four(void *state)
{
	struct world *w = state;

	setup(w);
	weft__store(&w->inbox->slots_left[0], 4, WEFT__RELAXED);
	w->inbox->slots_max = 128; /* lanes begin with two */
}

static void
take_and_check(void *state)
{
	take_all(state);
	check_accepted(state);
}

static void
setup_narrow(void *state)
{
	struct world *w = state;

	w->bug = planted;
	w->inbox = weft__sys->alloc(sizeof(*w->inbox));
	weft__inbox_init(w->inbox, 1);
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

/* --- the run ------------------------------------------------------------ */

#define MODEL(name_, ...)                                          \
	{                                                          \
		.name = name_, .state_size = sizeof(struct world), \
		.setup = setup, __VA_ARGS__                        \
	}

#define LANES(name_, setup_, post_, loop_, bound_) \
	LANES_(name_, setup_, post_, loop_, bound_, check_accepted)
#define LANES_(name_, setup_, post_, loop_, bound_, check_)                \
	{                                                                  \
		.name = name_, .state_size = sizeof(struct world),         \
		.setup = setup_, .threads = 2, .thread = { post_, loop_ }, \
		.check = check_, .preemptions = bound_                     \
	}

static const struct explore_model models[] = {
	MODEL("a loop that goes to sleep misses no push", .threads = 2,
	      .thread = { produce_two, consume_two }, .check = check_accepted,
	      .spurious = 1),
	MODEL("order and wakes hold when the way of sleeping changes",
	      .threads = 2, .thread = { produce_two, consume_two_by_both },
	      .check = check_accepted),
	MODEL("a wake never reaches an inbox that is gone", .threads = 2,
	      .thread = { produce_one, consume_and_free }, .check = check_gone,
	      .spurious = 1),
	MODEL("what is accepted while the door closes is found", .threads = 2,
	      .thread = { produce_two, close_and_take },
	      .check = check_accepted),
	MODEL("a thread ends while the loop it posted to is freed",
	      .threads = 2, .thread = { post_and_end, consume_free_end },
	      .check = check_gone, .preemptions = 3),
	MODEL("a node that was seen to be free is", .threads = 2,
	      .thread = { push_node_twice, consume_two },
	      .check = check_accepted, .preemptions = 3),
	{ .name = "two threads find a full lane",
	  .state_size = sizeof(struct world),
	  .setup = setup_full,
	  .threads = 2,
	  .thread = { find_full, find_full },
	  .check = take_and_check,
	  .preemptions = 1 },
	MODEL("the lock lets one in at a time", .threads = 2,
	      .thread = { lock_and_add, lock_and_add }, .check = check_shared),
	{ .name = "a slot is not used again before it was read",
	  .state_size = sizeof(struct world),
	  .setup = setup_narrow,
	  .threads = 2,
	  .thread = { post_two, consume_two },
	  .check = check_accepted,
	  .preemptions = 1 },
	{ .name = "two threads share the lanes that others left",
	  .state_size = sizeof(struct world),
	  .setup = setup_four,
	  .threads = 2,
	  .thread = { post_twice_and_end, post_once_and_end },
	  .check = take_and_check,
	  .preemptions = 1 },
	{ .name = "a lane passes from one thread to another",
	  .state_size = sizeof(struct world),
	  .setup = setup_narrow,
	  .threads = 2,
	  .thread = { post_and_end, consume_and_post },
	  .check = check_accepted,
	  .preemptions = 2 },
	LANES("a loop that leaves a hot lane misses no call", setup_hot,
	      post_second, consume_two, 0),
	LANES("... nor one of two", setup_hot, post_more, consume_three, 2),
	LANES("a loop that goes quiet on a lane misses no call", setup_cool,
	      post_second, consume_two, 0),
	LANES("... nor one of two", setup_cool, post_more, consume_three, 2),
	LANES("what a hot lane accepts while the door closes is found",
	      setup_hot, post_second, close_and_take, 0),
	LANES("... also of two", setup_hot, post_more, close_and_take, 3),
	LANES("what a quiet lane accepts while the door closes is found",
	      setup_cool, post_second, close_and_take, 0),
	LANES("... also of two", setup_cool, post_more, close_and_take, 3),
	LANES("a node that a lane accepts while the door closes is found",
	      setup_cool, post_node_more, close_and_take, 0),
	LANES("... also of a hot one", setup_hot, post_second_node,
	      close_and_take, 3),
	{ .name = "calls and nodes of a thread keep their order",
	  .state_size = sizeof(struct world),
	  .setup = setup_four,
	  .threads = 2,
	  .thread = { post_mixed, consume_three },
	  .check = check_accepted,
	  .preemptions = 2 },
	MODEL("a lane goes on in pieces that the loop gives back", .threads = 2,
	      .thread = { post_three, consume_three }, .check = check_accepted,
	      .preemptions = 1),
	MODEL("two producers and a loop", .threads = 3,
	      .thread = { produce_one, produce_other, consume_two },
	      .check = check_accepted, .preemptions = 3),
	LANES_("a call that has run touches no inbox that is gone", setup_hot,
	       post_second_and_end, consume_two_and_free, 3, check_gone),
	LANES_("nor does one of a quiet lane", setup_cool, post_second_and_end,
	       consume_two_and_free, 3, check_gone),
	LANES_("nor does a node", setup_hot, post_node_and_end,
	       consume_two_and_free, 3, check_gone),
	LANES("a lane that is taken over does not overtake a node", setup_left,
	      post_node_then_call, consume_in_steps, 2),
	{ .name = "room that a lane does not use goes to another",
	  .state_size = sizeof(struct world),
	  .setup = setup_two_lanes,
	  .threads = 2,
	  .thread = { post_two_unordered, post_one_unordered },
	  .check = take_and_check,
	  .preemptions = 2 },
	MODEL("a loop that lives in another misses no push", .threads = 2,
	      .thread = { produce_two, host_two }, .check = check_accepted),
	MODEL("two producers and a loop that lives in another", .threads = 3,
	      .thread = { produce_one, produce_other, host_two },
	      .check = check_accepted, .preemptions = 3),
	MODEL("a wake never reaches a loop that was freed in its host",
	      .threads = 2, .thread = { produce_one, host_and_free },
	      .check = check_gone),
};

enum { HOT_MODEL = 11, HOST_MODEL = 29 }; /* their numbers */

static const struct {
	enum bug bug;
	int model;
	const char *what;
} plants[] = {
	{ NO_COMPARE, 0, "looks, then parks elsewhere than on the mark" },
	{ NO_RING, 0, "takes the mark and does not wake" },
	{ NO_DEBT, 2, "does not wait for who owes a wake" },
	{ LATE_CLOSE, 3, "closes the door after its last look" },
	{ LIFO, 0, "does not turn the chain around" },
	{ NO_BARRIER, HOT_MODEL, "leaves a hot lane without a barrier" },
	{ NO_REST, HOT_MODEL + 4, "ends while a lane is hot" },
	{ NO_DOZE, HOST_MODEL, "goes back to its host without the mark" },
	{ NO_LOOK, HOST_MODEL,
	  "waits for the descriptor though the doze has failed" },
	{ NO_RING, HOST_MODEL + 1,
	  "takes the mark IN_FOREIGN and does not wake" },
	{ NO_DEBT, HOST_MODEL + 2,
	  "is freed in its host while a wake is owed" },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

int
main(int argc, char **argv)
{
	struct explore_result result;
	unsigned failed = 0, passed = 0;

	(void)argv;
	setvbuf(stdout, NULL, _IOLBF, 0);

	for (size_t i = 0; i < COUNT(models); i++) {
		int rc = explore_report(&models[i], false, &result);

		rc |= !result.complete || result.executions < 2;
		failed += rc != 0;
		passed += rc == 0;
	}
	for (size_t i = 0; i < COUNT(plants); i++) {
		planted = plants[i].bug;
		printf("planted: %s\n", plants[i].what);
		if (explore_report(&models[plants[i].model], true, &result)
		    == 0)
			failed++;
		else
			passed++;
	}
	planted = NO_BUG;
	if (argc > 1) /* the same source in another build: once is enough */
		printf("not weakened in this build\n");
	else if (explore_weaken_all(models, COUNT(models)) == 0)
		passed++;
	else
		failed++;
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
